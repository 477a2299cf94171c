"""Every op of the registry: axes, formula, the arithmetic of each cell, and its gradient against central differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from samples import OPS, SAMPLES, Sample, some
from term_values import assert_cells_agree

from attncli.core import gradient
from attncli.core.graph import Graph, Trace
from attncli.core.matrix import as_matrix
from attncli.models import losses
from attncli.ops.softmax import softmax
from attncli.problems.problem import Problem

EACH = [(name, sample) for name, samples in SAMPLES.items() for sample in samples]
IDS = [f"{name}-{number}" for name, samples in SAMPLES.items() for number in range(len(samples))]
each_sample = pytest.mark.parametrize(("name", "sample"), EACH, ids=IDS)


def test_every_op_has_a_sample() -> None:
    assert set(SAMPLES) == set(OPS)
    assert all(SAMPLES.values())


@pytest.mark.parametrize("name", OPS)
def test_it_says_why(name: str) -> None:
    op = OPS[name]
    assert op.why.strip().endswith((".", "?", "!"))


@each_sample
def test_the_axes_are_those_of_the_result(name: str, sample: Sample) -> None:
    graph = sample.graph(name)
    trace = graph.evaluate()
    assert trace["Y"].shape == graph.shape("Y")
    assert graph.steps["Y"].cells == trace["Y"].size


@each_sample
def test_the_arithmetic_of_every_cell_gives_its_value(name: str, sample: Sample) -> None:
    graph = sample.graph(name)
    assert_cells_agree(graph.steps["Y"], graph.evaluate())


@each_sample
def test_the_arithmetic_holds_on_other_numbers_than_it_was_built_from(name: str, sample: Sample) -> None:
    """A page and a spreadsheet calculate it anew; a term that looked at the numbers would be wrong there."""
    graph = sample.graph(name)
    built_from = graph.evaluate()
    others = {id: elsewhere(built_from[id]) for id in sample.operands if id not in sample.constants}
    assert_cells_agree(graph.steps["Y"], graph.evaluate(given=others), built_from=built_from)


def elsewhere(values: np.ndarray) -> np.ndarray:
    """Other numbers in other places, of the other sign where both signs may occur."""
    finite = np.isfinite(values)
    factor = -1.25 if (values[finite] < 0).any() else 1.25
    return np.flip(np.where(finite, factor * np.where(finite, values, 0.0), values))


@each_sample
@pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])
def test_the_formula_is_latex_that_names_every_operand(name: str, sample: Sample, columns: bool) -> None:
    op = OPS[name]
    # Which rows are hidden decides where a quotient stands, and is no part of it.
    symbols = [rf"\mathsf{{{id}}}" for id in sample.operands if not (name == "divide" and id == "s")]
    forms = [op.formula(sample.params, columns)]
    if op.numbers is not None:
        forms.append(op.numbers(sample.params))
    for form in forms:
        text = form.format(*symbols, *sample.operands)
        assert text.strip()
        assert all(symbol in text for symbol in symbols)
        assert balanced(text), text


def balanced(text: str) -> bool:
    depth = 0
    for sign in text.replace(r"\{", "").replace(r"\}", ""):
        depth += (sign == "{") - (sign == "}")
        if depth < 0:
            return False
    return depth == 0 and text.count(r"\begin") == text.count(r"\end")


def test_a_product_turns_round_where_tokens_are_columns() -> None:
    form = OPS["product"].formula
    assert form({"transpose_b": True}, False).format("Q", "K") == r"Q K^{\top}"
    assert form({"transpose_b": True}, True).format("Q", "K") == r"K^{\top} Q"
    assert OPS["look_up"].formula({}, True).format("E", "T") == "E[:, T]"
    assert OPS["join_rows"].formula({}, True).format("P", "K") == r"\begin{bmatrix}P& K\end{bmatrix}"


# --- gradients --------------------------------------------------------------------------------------------------------


def slopes(f: Callable[[np.ndarray], float], values: np.ndarray, h: float = 1e-6) -> np.ndarray:
    """Central differences of a number, for every finite entry; 0 where an entry is −∞."""
    found = np.zeros(values.shape)
    for index in np.ndindex(values.shape):
        if np.isfinite(values[index]):
            up, down = values.copy(), values.copy()
            up[index] += h
            down[index] -= h
            found[index] = (f(up) - f(down)) / (2 * h)
    return found


def projected(trace: Trace, id: str, v: np.ndarray) -> float:
    """⟨v, f⟩, where v is 0 at what is hidden."""
    return float(np.sum(v * np.where(np.isfinite(trace[id]), trace[id], 0.0)))


def direction(values: np.ndarray) -> np.ndarray:
    """A random v of this shape; nothing arrives at what is hidden, since its weight is 0."""
    v = np.random.default_rng(7).normal(size=values.shape)
    return np.where(np.isfinite(values), v, 0.0)


WITH_RULES = [(n, s) for n, s in EACH if OPS[n].backward]


@pytest.mark.parametrize(("name", "sample"), WITH_RULES, ids=[i for i, (n, _) in zip(IDS, EACH, strict=True) if OPS[n].backward])  # fmt: skip
def test_the_gradient_is_that_of_central_differences(name: str, sample: Sample) -> None:
    graph = sample.graph(name)
    v = direction(graph.evaluate()["Y"])
    gradient.upstream(graph, as_matrix(v))
    gradient.append(graph)
    trace = graph.evaluate()
    moved = [id for id in sample.operands if id not in sample.constants]
    assert moved, "a sample needs an operand to move"
    for id in moved:

        def f(values: np.ndarray, id: str = id) -> float:
            return projected(graph.evaluate(given={id: values}, until="Y"), "Y", v)

        ours = np.where(np.isfinite(trace[id]), trace[f"G_{id}"], 0.0)
        np.testing.assert_allclose(ours, slopes(f, trace[id]), rtol=1e-6, atol=1e-8, err_msg=id)
    for step in graph.steps.values():
        assert trace[step.id].shape == graph.shape(step.id), step.id
        assert_cells_agree(step, trace)


@pytest.mark.parametrize("name", [n for n in OPS if OPS[n].backward])
def test_there_is_a_rule_or_none_for_each_operand(name: str) -> None:
    for sample in SAMPLES.get(name, []):
        rules = OPS[name].backward[: len(sample.operands)]
        assert len(rules) == len(sample.operands)
        without = [id for id, rule in zip(sample.operands, rules, strict=True) if rule is None]
        assert set(without) <= set(sample.constants)


# --- ops without a rule, and why that is right ------------------------------------------------------------------------


def check_closed_rule_of_softmax() -> None:
    """Moving the maximum that is subtracted does not move the weights, so no gradient goes through it."""
    graph = Graph("sample")
    graph.input("a", as_matrix(some(2, 3)), ("i", "j"))
    graph.output = softmax(graph, "a")
    assert graph.steps["A"].composite is not None
    trace = graph.evaluate()
    moved = graph.evaluate(given={"row_max": trace["row_max"] + 0.7})
    np.testing.assert_allclose(moved["A"], trace["A"], rtol=1e-14)


def backward_only(name: str) -> Callable[[], None]:
    def check() -> None:
        """No model writes it on the way forward, so nothing asks for its gradient."""
        matrices = {"Q": some(2, 2, 2), "K": some(1, 2, 2), "V": some(1, 2, 2)}
        matrices |= {"K_past": some(1, 1, 2), "V_past": some(1, 1, 2)}
        inputs = {id: as_matrix(values) for id, values in matrices.items()}
        problem = Problem("attention", inputs, settings={"softcap": 2.0, "causal": True}, loss="sum(O)")
        phases = {step.phase for step in problem.graph().steps.values() if step.op.name == name}
        assert phases == {"backward"}

    return check


def backward_only_of_averaged_heads() -> None:
    """Weights are averaged on the way forward; only their gradient is shared among the heads."""
    inputs = {id: as_matrix(some(2, 2, 2)) for id in "QK"}
    steps = Problem("attention", inputs, settings={"average_heads": True}, loss="A_mean[1,1]").graph().steps.values()
    assert {step.phase for step in steps if step.op.name == "to_heads"} == {"backward"}


def backward_only_of_a_bias() -> None:
    """What every row shares is used on the way forward; only its gradient adds up rows."""
    shapes = {"X": (2, 2), "W_Q": (2, 2), "W_K": (2, 2), "W_V": (2, 2), "W_O": (2, 2), "b_O": (1, 2)}
    inputs = {id: as_matrix(some(*shape)) for id, shape in shapes.items()}
    steps = Problem("multi_head", inputs, loss="sum(output)").graph().steps.values()
    assert {step.phase for step in steps if step.op.name == "column_sum"} == {"backward"}


def backward_only_of_paths() -> None:
    """Paths are summed where gradients meet, and nothing takes gradients of gradients."""
    inputs = {id: as_matrix(some(2, 2)) for id in ("X", "W_Q", "W_K", "W_V")}
    steps = Problem("self_attention", inputs, loss="sum(O)").graph().steps.values()
    assert {step.phase for step in steps if step.op.name == "sum_paths"} == {"backward"}


def backward_only_of_a_norm() -> None:
    """A mean square is taken on the way forward; only its slope is spread over the row."""
    steps = Problem("rms_norm", {"X": as_matrix(some(2, 3))}, loss="sum(Y)").graph().steps.values()
    assert {step.phase for step in steps if step.op.name == "share_square"} == {"backward"}


def backward_only_of_latents() -> None:
    """Two parts are put side by side on the way forward; only the gradient is cut apart again."""
    shapes = {"X": (2, 2), "W_DKV": (2, 2), "W_UK": (2, 2), "W_UV": (2, 2), "W_UQ": (2, 2), "W_O": (2, 2)}
    shapes |= {"W_QR": (2, 2), "W_KR": (2, 2)}
    inputs = {id: as_matrix(some(*shape)) for id, shape in shapes.items()}
    steps = Problem("latent", inputs, loss="sum(output)").graph().steps.values()
    assert {step.phase for step in steps if step.op.name == "slice_columns"} == {"backward"}


def check_nothing_to_move() -> None:
    """Positions are counted, so angles and their waves are constants."""
    problems = [Problem("positions", settings={"n": 2, "d_model": 4})]
    problems.append(Problem("rotary", {"X": as_matrix(some(2, 4))}, loss="sum(rotated)"))
    for problem in problems:
        graph = problem.graph()
        assert not {"G_angle", "G_cos", "G_sin", "G_PE"} & set(graph.steps)
        assert {"angle"} <= {step.op.name for step in graph.steps.values()}


def backward_only_of_a_bend() -> None:
    """The curve is used on the way forward, its slope on the way back."""
    shapes = {"X": (2, 2), "W_1": (2, 3), "W_2": (3, 2)}
    inputs = {id: as_matrix(some(*shape)) for id, shape in shapes.items()}
    steps = Problem("feed_forward", inputs, loss="sum(Y)").graph().steps.values()
    assert {step.phase for step in steps if step.op.name == "activation_slope"} == {"backward"}


def check_no_operand() -> None:
    """It takes nothing that could be moved."""
    assert all(not sample.operands for sample in SAMPLES["encode"])
    assert str(OPS["encode"].axes).startswith("->")


def loss_writes_it(text: str, name: str) -> Callable[[], None]:
    def check() -> None:
        """A loss ends the graph; attncli.models.losses writes its gradient itself."""
        for values in (np.abs(some(2, 3)), np.abs(some(2, 2, 3))):
            graph = Graph("sample")
            axes = ("head", "i", "j")[-values.ndim :]
            graph.input("O", as_matrix(values), axes)
            graph.output = "O"
            entry = "O[1,1]" if values.ndim == 2 else "O[1,1,1]"
            last = "O[2,3]" if values.ndim == 2 else "O[2,2,3]"
            seeds = losses.apply(graph, text.format(entry, last), {"goal": as_matrix(values * 0.3 + 1)})
            gradient.append(graph, seeds)
            assert name in {step.op.name for step in graph.steps.values()}
            trace = graph.evaluate()
            found = slopes(lambda v, g=graph: float(g.evaluate(given={"O": v})["L"][0, 0]), values)
            np.testing.assert_allclose(trace["G_O"], found, rtol=1e-6, atol=1e-8)

    return check


def entropy_writes_it(name: str) -> Callable[[], None]:
    def check() -> None:
        """Cross-entropy ends the graph with a gradient of its own: that of the loss, by central differences."""
        logits = some(3, 4)
        for targets, reduction in (
            ([1, 0, 3], "mean"),
            ([-1, 2, 2], "mean"),
            ([3, -100, 0], "sum"),
            ([-1, 1, -1], "mean"),
        ):
            graph = Graph("sample")
            graph.input("Z", as_matrix(logits), ("i", "j"))
            graph.output = "Z"
            text = f"cross_entropy(Z, goal, {reduction})"
            gradient.append(graph, losses.apply(graph, text, {"goal": as_matrix([targets])}))
            found = slopes(lambda v, g=graph: float(g.evaluate(given={"Z": v})["L"][0, 0]), logits)
            np.testing.assert_allclose(graph.evaluate()["G_Z"], found, rtol=1e-6, atol=1e-9)
            if targets == [1, 0, 3]:
                assert name in {step.op.name for step in graph.steps.values()}

    return check


def check_behind_the_gradients() -> None:
    """An update stands behind the gradients: nothing flows back through it."""
    inputs = {"E": as_matrix(some(3, 2)), "W_Q": as_matrix(some(2, 2)), "W_K": as_matrix(some(2, 1, 2)[:, 0])}
    inputs |= {"W_V": as_matrix(some(2, 3)), "W_out": as_matrix(some(3, 3)), "T": as_matrix([0, 2])}
    settings = {"eta": 0.1, "optimizer": "adam"}
    problem = Problem("gpt", inputs, settings=settings, loss="cross_entropy(logits, T)")
    steps = problem.graph().steps.values()
    updates = {"moving_average", "unbiased", "adam_update"}
    assert updates == {step.op.name for step in steps if step.phase == "update"}


WITHOUT_RULES = {
    "sum_paths": backward_only_of_paths,
    "row_max": check_closed_rule_of_softmax,
    "cap_slope": backward_only("cap_slope"),
    "slice_rows": backward_only("slice_rows"),
    "slice_columns": backward_only_of_latents,
    "column_sum": backward_only_of_a_bias,
    "share_square": backward_only_of_a_norm,
    "activation_slope": backward_only_of_a_bend,
    "angle": check_nothing_to_move,
    "cosine": check_nothing_to_move,
    "sine": check_nothing_to_move,
    "sinusoid": check_nothing_to_move,
    "encode": check_no_operand,
    "mean_square": loss_writes_it("mse(O, goal)", "mean_square"),
    "weighted_sum": loss_writes_it("{} - 2.5*{}", "weighted_sum"),
    "to_heads": backward_only_of_averaged_heads,
    "square_sum": loss_writes_it("0.5*sum((O - goal)^2)", "square_sum"),
    "weighted_total": loss_writes_it("0.5*mse(O, goal) + {} - 3*{}", "weighted_total"),
    "log_loss": loss_writes_it("2*{} - ln {}", "log_loss"),
    "log_slope": loss_writes_it("-ln {} - 2*ln {}", "log_slope"),
    **{name: entropy_writes_it(name) for name in ("pick", "negative_log", "average", "class_error", "batch_share")},
    **dict.fromkeys(("moving_average", "unbiased", "adam_update"), check_behind_the_gradients),
}


def test_every_op_without_a_rule_says_why() -> None:
    assert {name for name in OPS if not OPS[name].backward} == set(WITHOUT_RULES)


@pytest.mark.parametrize("name", WITHOUT_RULES)
def test_an_op_without_a_rule_needs_none(name: str) -> None:
    WITHOUT_RULES[name]()
