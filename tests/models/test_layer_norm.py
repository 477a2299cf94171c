"""LayerNorm and RMSNorm: their ids, what they leave alone, all number systems, and the mistakes that are named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import CASES, Case, some, trace_of

from attncli.arithmetic.interval import IntervalArithmetic
from attncli.core.graph import Trace
from attncli.core.message import InputError
from attncli.marking.feedback import Marked
from attncli.marking.mark import Marker
from attncli.problems.answers import sheet
from attncli.problems.problem import Problem, arithmetic_called

FORWARD = ["mean", "centred", "variance", "std", "normalised", "Y"]


def test_the_steps() -> None:
    layer = list(CASES["layer_norm"][0].with_upstream("layer_norm").graph().steps)
    assert layer[: len(FORWARD)] == FORWARD
    back = ["G_gamma", "G_beta", "G_normalised", "G_std", "G_variance", "G_centred", "G_mean", "G_X_mean", "G_X"]
    assert [id for id in layer if id in back] == sorted(back, key=layer.index) and set(back) <= set(layer)
    assert {"G_centred_normalised", "G_centred_variance", "G_X_centred"} <= set(layer)
    rms = list(CASES["rms_norm"][0].with_upstream("rms_norm").graph().steps)
    assert rms[:4] == ["mean_square", "rms", "normalised", "Y"]
    assert {"G_gamma", "G_X_normalised", "G_X_mean_square", "G_X"} <= set(rms)


def test_every_row_is_centred_and_of_size_1() -> None:
    y = trace_of("layer_norm", {"X": some(4, 5)}, eps=0)["Y"]
    np.testing.assert_allclose(y.mean(-1), 0, atol=1e-15)
    np.testing.assert_allclose(y.var(-1), 1, rtol=1e-13)
    y = trace_of("rms_norm", {"X": some(4, 5)}, eps=0)["Y"]
    np.testing.assert_allclose((y**2).mean(-1), 1, rtol=1e-13)


def test_shift_and_size_of_a_row_do_not_matter() -> None:
    x = some(3, 4)
    y = trace_of("layer_norm", {"X": x}, eps=0)["Y"]
    np.testing.assert_allclose(trace_of("layer_norm", {"X": 7 * x + 3}, eps=0)["Y"], y, rtol=1e-12)
    y = trace_of("rms_norm", {"X": x}, eps=0)["Y"]
    np.testing.assert_allclose(trace_of("rms_norm", {"X": 7 * x}, eps=0)["Y"], y, rtol=1e-13)


def test_a_row_of_equal_numbers_needs_eps() -> None:
    assert np.array_equal(trace_of("layer_norm", {"X": [[2.0, 2.0]]})["Y"], [[0, 0]])


def test_gradients_of_x_have_no_mean_and_do_not_stretch_the_row() -> None:
    """Shifting or stretching a row changes nothing, so the gradient has no part in either direction."""
    case = Case({"X": some(3, 4), "gamma": some(1, 4)}, {"eps": 0})
    trace = case.with_upstream("layer_norm").graph().evaluate()
    np.testing.assert_allclose(trace["G_X"].sum(-1), 0, atol=1e-13)
    np.testing.assert_allclose((trace["G_X"] * trace["centred"]).sum(-1), 0, atol=1e-13)


def test_gamma_as_a_list_a_row_and_a_column() -> None:
    x, gamma = some(2, 3), np.array([0.5, 2.0, -1.0])
    usual = trace_of("layer_norm", {"X": x, "gamma": gamma})["Y"]
    for shape in ((1, 3), (3, 1)):
        assert np.array_equal(trace_of("layer_norm", {"X": x, "gamma": gamma.reshape(shape)})["Y"], usual)


def test_what_does_not_fit() -> None:
    with pytest.raises(InputError, match="gamma is 1×2: it has 2 columns, but the axis “d” has length 3, set by X"):
        trace_of("layer_norm", {"X": some(2, 3), "gamma": [1.0, 2.0]})
    with pytest.raises(InputError, match=r"eps: “-1” is not allowed here. Write 0 or a small number above it"):
        trace_of("layer_norm", {"X": some(2, 3)}, eps="-1")


@pytest.mark.parametrize("model", ["layer_norm", "rms_norm"])
def test_every_arithmetic(model: str) -> None:
    for case in CASES[model]:
        graph = case.with_upstream(model).graph()
        plain, bounds = graph.evaluate(), graph.evaluate(IntervalArithmetic(None))
        hand, wide = graph.evaluate(arithmetic_called("hand", 4)), graph.evaluate(IntervalArithmetic(4))
        for step in graph.steps:
            assert bounds[step].contains(plain[step]).all(), step
            assert (bounds[step].hi - bounds[step].lo).max() < 1e-10, step
            assert wide[step].contains(plain[step]).all() and wide[step].contains(hand[step]).all(), step


def test_exact_numbers() -> None:
    sympy = pytest.importorskip("sympy")
    trace = (
        Case({"X": [[1.0, 2.0, 3.0]]}, {"eps": "0"}).problem("layer_norm").graph().evaluate(arithmetic_called("exact"))
    )
    assert trace["variance"][0, 0] == sympy.Rational(2, 3)
    assert trace["Y"][0, 2] == sympy.sqrt(6) / 2


# --- mistakes ---------------------------------------------------------------------------------------------------------


def problem(model: str = "layer_norm") -> Problem:
    inputs = {"X": some(3, 4) * 2, "gamma": some(1, 4) + 1.5}
    if model == "layer_norm":
        inputs["beta"] = some(1, 4)
    return Case(inputs, {"eps": 0.05}).with_upstream(model).changed(decimals=4)


def text(values: Any) -> str:
    return "; ".join(" ".join(f"{v:.4f}" for v in row) for row in np.atleast_2d(values))


def mark(wrong: dict[str, Any], model: str = "layer_norm") -> Marked:
    return Marker(problem(model)).mark(sheet({"answers": {id: text(values) for id, values in wrong.items()}}))


def named(id: str, values: Any, model: str = "layer_norm") -> set[tuple[str, str]]:
    marked = mark({id: values}, model)
    assert marked.first_wrong == id
    (step,) = [step for step in marked.steps if step.id == id]
    return {(one.step, one.id) for one in step.mistakes}


def right(model: str = "layer_norm") -> Trace:
    return problem(model).graph().evaluate()


@pytest.mark.parametrize("model", ["layer_norm", "rms_norm"])
def test_the_right_sheet_is_right(model: str) -> None:
    trace = right(model)
    assert mark({step.id: trace[step.id] for step in trace.steps}, model).ok


WRONG = {
    "sample-variance": ("variance", lambda x, e: x.var(-1, ddof=1, keepdims=True)),
    "eps-outside-root": ("std", lambda x, e: x.std(-1, keepdims=True) + e),
    "not-square-rooted": ("std", lambda x, e: x.var(-1, keepdims=True) + e),
    "normalised-over-tokens": ("normalised", lambda x, e: (x - x.mean(0)) / np.sqrt(x.var(0) + e)),
    "not-centred": ("normalised", lambda x, e: x / np.sqrt((x**2).mean(-1, keepdims=True) + e)),
}


@pytest.mark.parametrize("id", WRONG)
def test_a_mistake_is_named(id: str) -> None:
    step, wrong = WRONG[id]
    found = named(step, wrong(right()["X"], 0.05))
    # An earlier line may carry the same mistake; it goes by the same name.
    assert (step, id) in found and {name for _, name in found} == {id}


@pytest.mark.parametrize("id", WRONG)
def test_a_mistake_is_named_from_the_result_alone(id: str) -> None:
    t, (step, wrong) = right(), WRONG[id]
    given = {step: wrong(t["X"], 0.05)}
    y = problem().graph().evaluate(given=given)["Y"]
    assert id in {name for _, name in named("Y", y)}


def test_columns_for_rows_from_the_first_line() -> None:
    x = right()["X"]
    marked = mark({"mean": x.mean(0)})
    assert [one.id for one in marked.steps[0].mistakes] == ["normalised-over-tokens"]
    assert ("centred", "normalised-over-tokens") in named("centred", x - x.mean(0))


def test_another_constant_is_no_mean() -> None:
    """Softmax does not mind which constant is taken away; a norm does."""
    assert mark({"centred": right()["X"] - 0.5}).first_wrong == "centred"


def test_the_norm_of_the_root_mean_square() -> None:
    t = right("rms_norm")
    x = t["X"]
    assert named("rms", np.sqrt((x**2).mean(-1, keepdims=True)) + 0.05, "rms_norm") == {("rms", "eps-outside-root")}
    wrong = x / np.sqrt((x**2).mean(0) + 0.05)
    assert ("normalised", "normalised-over-tokens") in named("normalised", wrong, "rms_norm")


@pytest.mark.parametrize("model", ["layer_norm", "rms_norm"])
def test_the_paths_of_the_statistics_left_out(model: str) -> None:
    t = right(model)
    divisor = "std" if model == "layer_norm" else "rms"
    assert ("G_X", "norm-paths-missing") in named("G_X", t["G_normalised"] / t[divisor], model)


def test_one_path_left_out() -> None:
    t = right()
    assert ("G_X", "path-missing") in named("G_X", t["G_X_centred"])


@pytest.mark.parametrize("vector", ["gamma", "beta"])
def test_a_gradient_averaged_over_rows(vector: str) -> None:
    assert named(f"G_{vector}", right()[f"G_{vector}"] / 3) == {(f"G_{vector}", "mean-for-sum")}
