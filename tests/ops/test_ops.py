"""Every op of the registry: axes, formula, the arithmetic of each cell, and its gradient by one random projection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from projection import assert_slope, direction
from samples import OPS, SAMPLES, Sample, some
from term_values import assert_cells_agree

from attncli.core import gradient
from attncli.core.graph import Graph, Step
from attncli.core.matrix import as_matrix
from attncli.models import losses
from attncli.ops.softmax import softmax
from attncli.problems.problem import Problem
from attncli.render.formula import put_in

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
    step = sample.graph(name).steps["Y"]
    # Which rows are hidden decides where a quotient stands, and is no part of it.
    symbols = [rf"\mathsf{{{id}}}" for id in sample.operands if not (name == "divide" and id == "s")]
    for form in (step.formula(columns), step.numbers()):
        if form is None:
            continue
        text = put_in(form, [*symbols, *sample.operands])
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
    assert form({"transpose_b": True}, False) == r"#1 #2^{\top}"
    assert form({"transpose_b": True}, True) == r"#2^{\top} #1"
    assert OPS["look_up"].formula({}, True) == "#1[:, #2]"
    assert OPS["join_rows"].formula({}, True) == r"\begin{bmatrix}#1& #2\end{bmatrix}"


# --- gradients --------------------------------------------------------------------------------------------------------


WITH_RULES = [(n, s) for n, s in EACH if OPS[n].backward]


@pytest.mark.parametrize(("name", "sample"), WITH_RULES, ids=[i for i, (n, _) in zip(IDS, EACH, strict=True) if OPS[n].backward])  # fmt: skip
def test_the_gradient_is_the_slope(name: str, sample: Sample) -> None:
    """Of ⟨v, Y⟩ for a random v: every rule gives Jᵀv."""
    graph = sample.graph(name)
    v = direction(graph.evaluate()["Y"])
    gradient.upstream(graph, as_matrix(v))
    gradient.append(graph)
    trace = graph.evaluate()
    moved = [id for id in sample.operands if id not in sample.constants]
    assert moved, "a sample needs an operand to move"
    for id in moved:

        def number(values: np.ndarray, id: str = id) -> float:
            result = graph.evaluate(given={id: values}, until="Y")["Y"]
            return float(np.sum(v * np.where(np.isfinite(result), result, 0.0)))

        assert_slope(number, trace[id], trace[f"G_{id}"], id)
    for step in graph.steps.values():
        assert trace[step.id].shape == graph.shape(step.id), step.id
        assert_cells_agree(step, trace)


@each_sample
def test_a_gradient_that_is_off_is_caught(name: str, sample: Sample) -> None:
    """A projection sees every entry, though only one number is compared."""
    for id in set(sample.operands) - set(sample.constants):
        values = np.asarray(sample.operands[id], dtype=np.float64)
        right = direction(values, seed=3)
        for place in np.argwhere(np.isfinite(values)):
            wrong = right.copy()
            wrong[tuple(place)] += 1e-4
            with pytest.raises(AssertionError, match="the slope is"):
                assert_slope(lambda v, g=right: float(np.sum(g * np.where(np.isfinite(v), v, 0.0))), values, wrong, id)


@pytest.mark.parametrize("name", [n for n in OPS if OPS[n].backward])
def test_there_is_a_rule_or_none_for_each_operand(name: str) -> None:
    for sample in SAMPLES.get(name, []):
        rules = OPS[name].backward[: len(sample.operands)]
        assert len(rules) == len(sample.operands)
        without = [id for id, rule in zip(sample.operands, rules, strict=True) if rule is None]
        assert set(without) <= set(sample.constants)


# --- ops without a rule, and why that is right ------------------------------------------------------------------------


def steps_of(model: str, loss: str, settings: dict[str, Any] | None = None, **shapes: tuple[int, ...]) -> list[Step]:
    inputs = {id: as_matrix(some(*shape)) for id, shape in shapes.items()}
    return list(Problem(model, inputs, settings=settings or {}, loss=loss).graph().steps.values())


def attention_steps() -> list[Step]:
    heads = {"Q": (2, 2, 2), "K": (1, 2, 2), "V": (1, 2, 2), "K_past": (1, 1, 2), "V_past": (1, 1, 2)}
    return steps_of("attention", "sum(O)", {"softcap": 2.0, "causal": True}, **heads)


def latent_steps() -> list[Step]:
    square = dict.fromkeys(("X", "W_DKV", "W_UK", "W_UV", "W_UQ", "W_O", "W_QR", "W_KR"), (2, 2))
    return steps_of("latent", "sum(output)", **square)


def multi_head_steps() -> list[Step]:
    return steps_of("multi_head", "sum(output)", b_O=(1, 2), **dict.fromkeys(("X", "W_Q", "W_K", "W_V", "W_O"), (2, 2)))


#: No model writes them on the way forward, so nothing asks for their gradient.
BACKWARD_ONLY: dict[str, Callable[[], list[Step]]] = {
    "cap_slope": attention_steps,
    "slice_rows": attention_steps,
    "slice_columns": latent_steps,
    "column_sum": multi_head_steps,
    "sum_paths": multi_head_steps,
    "share_square": lambda: steps_of("rms_norm", "sum(Y)", X=(2, 3)),
    "activation_slope": lambda: steps_of("feed_forward", "sum(Y)", X=(2, 2), W_1=(2, 3), W_2=(3, 2)),
    "to_heads": lambda: steps_of("attention", "A_mean[1,1]", {"average_heads": True}, Q=(2, 2, 2), K=(2, 2, 2)),
}


@pytest.mark.parametrize("name", BACKWARD_ONLY)
def test_it_is_written_on_the_way_back_only(name: str) -> None:
    assert {step.phase for step in BACKWARD_ONLY[name]() if step.op.name == name} == {"backward"}


def test_moving_the_maximum_that_is_subtracted_moves_no_weights() -> None:
    """So the rule of softmax goes round it."""
    graph = Graph("sample")
    graph.input("a", as_matrix(some(2, 3)), ("i", "j"))
    graph.output = softmax(graph, "a")
    assert graph.steps["A"].composite is not None
    trace = graph.evaluate()
    moved = graph.evaluate(given={"row_max": trace["row_max"] + 0.7})
    np.testing.assert_allclose(moved["A"], trace["A"], rtol=1e-14)


#: Tokens and positions are counted: nothing of them can be moved.
COUNTED = ("encode", "angle", "cosine", "sine", "sinusoid")


def test_angles_and_what_is_made_of_them_are_constants() -> None:
    assert all(not sample.operands for sample in SAMPLES["encode"])
    problems = [Problem("positions", settings={"n": 2, "d_model": 4})]
    problems.append(Problem("rotary", {"X": as_matrix(some(2, 4))}, loss="sum(rotated)"))
    for problem in problems:
        graph = problem.graph()
        assert not {"G_angle", "G_cos", "G_sin", "G_PE"} & set(graph.steps)
        assert {"angle"} <= {step.op.name for step in graph.steps.values()}


#: A loss ends the graph; attncli.models.losses writes its gradient itself.
LOSSES = {
    "mean_square": "mse(O, goal)",
    "weighted_sum": "{first} - 2.5*{last}",
    "square_sum": "0.5*sum((O - goal)^2)",
    "weighted_total": "0.5*mse(O, goal) + {first} - 3*{last}",
    "log_loss": "2*{first} - ln {last}",
    "log_slope": "-ln {first} - 2*ln {last}",
}


def assert_loss_has_its_slope(text: str, values: np.ndarray, goal: Any, op_name: str) -> None:
    graph = Graph("sample")
    graph.output = graph.input("O", as_matrix(values), ("head", "i", "j")[-values.ndim :])
    gradient.append(graph, losses.apply(graph, text, {"goal": as_matrix(goal)}))
    assert not op_name or op_name in {step.op.name for step in graph.steps.values()}
    found = graph.evaluate()["G_O"]
    assert_slope(lambda v: float(graph.evaluate(given={"O": v})["L"][0, 0]), values, found, text)


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_writes_its_own_gradient(name: str) -> None:
    for values in (np.abs(some(2, 3)), np.abs(some(2, 2, 3))):
        places = (
            {"first": "O[1,1]", "last": "O[2,3]"} if values.ndim == 2 else {"first": "O[1,1,1]", "last": "O[2,2,3]"}
        )
        assert_loss_has_its_slope(LOSSES[name].format(**places), values, values * 0.3 + 1, name)


CROSS_ENTROPY = ("pick", "negative_log", "average", "class_error", "batch_share")


@pytest.mark.parametrize("name", CROSS_ENTROPY)
def test_cross_entropy_writes_its_own_gradient(name: str) -> None:
    assert_loss_has_its_slope("cross_entropy(O, goal, mean)", some(3, 4), [[1, 0, 3]], name)
    for targets, reduction in (([-1, 2, 2], "mean"), ([3, -100, 0], "sum"), ([-1, 1, -1], "mean")):
        assert_loss_has_its_slope(f"cross_entropy(O, goal, {reduction})", some(3, 4), [targets], "")


UPDATES = ("moving_average", "unbiased", "adam_update")


def test_an_update_stands_behind_the_gradients() -> None:
    """Nothing flows back through it."""
    inputs = {"E": as_matrix(some(3, 2)), "W_Q": as_matrix(some(2, 2)), "W_K": as_matrix(some(2, 1, 2)[:, 0])}
    inputs |= {"W_V": as_matrix(some(2, 3)), "W_out": as_matrix(some(3, 3)), "T": as_matrix([0, 2])}
    settings = {"eta": 0.1, "optimizer": "adam"}
    problem = Problem("gpt", inputs, settings=settings, loss="cross_entropy(logits, T)")
    assert set(UPDATES) == {step.op.name for step in problem.graph().steps.values() if step.phase == "update"}


def test_every_op_without_a_rule_says_why() -> None:
    without = {name for name in OPS if not OPS[name].backward}
    assert without == {"row_max", *BACKWARD_ONLY, *COUNTED, *LOSSES, *CROSS_ENTROPY, *UPDATES}
