"""Finite differences as a law: right gradients of every model pass on random numbers, and a gradient that is off does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import CASES, Case
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import attncli
from attncli.core.gradient import verify
from attncli.core.graph import Graph, first_not_finite
from attncli.core.message import InputError, LimitError
from attncli.render import render

LAW = settings(derandomize=True, deadline=None, max_examples=12, database=None)
#: By model its smallest case with gradients.
SMALL = ["attention", "self_attention", "embedded_attention", "softmax", "layer_norm", "rms_norm", "feed_forward"]
MODELS = sorted(set(CASES) - {"tokens", "positions"})


def moved(case: Case, model: str, seed: int, size: float, mean: float) -> attncli.Problem:
    """The case with other numbers: of another size, and around another mean where nothing else is said."""
    problem = case.with_upstream(model)
    r = np.random.default_rng(seed)

    def other(name: str, values: np.ndarray) -> Any:
        if values.ndim < 2 or not np.isfinite(values).all():
            return values
        return r.normal(size=values.shape) * size + (mean if name == "X" else 0.0)

    inputs = {
        name: matrix.changed(values=other(name, matrix.values), decimals=None, entries=None)
        for name, matrix in problem.inputs.items()
    }
    return problem.changed(inputs=inputs)


def off_by(graph: Graph, id: str, factor: float) -> None:
    """The gradient `id` made wrong."""
    step = graph.steps[id]

    def wrong(xp: Any, *operands: Any, **params: Any) -> Any:
        return xp.round_step(step.op.compute(xp, *operands, **params)) * factor

    graph.steps[id] = step.changed(op=step.op.changed(compute=wrong))
    graph._calls = [], []


@pytest.mark.parametrize("model", MODELS)
@settings(LAW, max_examples=4)
@given(st.integers(0, 10**6), st.sampled_from([0.3, 1.0, 3.0]), st.integers(0, 3))
def test_right_gradients_of_every_model_pass(model: str, seed: int, size: float, number: int) -> None:
    cases = CASES[model]
    problem = moved(cases[number % len(cases)], model, seed, size, 0.0)
    graph = problem.graph(backward=True)
    found = verify(graph)
    assert found.ok, [(entry.id, entry.worst) for entry in found.checked if not entry.ok]


@pytest.mark.parametrize("model", ["layer_norm", "rms_norm"])
@LAW
@given(st.integers(0, 10**6), st.sampled_from([0.0, 30.0, 1e3, 1e5]), st.sampled_from([1e-2, 1.0, 10.0]))
def test_right_gradients_of_norms_pass_whatever_the_mean(model: str, seed: int, mean: float, size: float) -> None:
    problem = moved(CASES[model][0], model, seed, size, mean)
    assert verify(problem.graph(backward=True)).ok


@LAW
@given(
    st.lists(st.integers(-50, 50), min_size=2, max_size=4),
    st.sampled_from(["sum(Y)", "Y[1,1] + Y[1,2] - Y[1,1] - Y[1,2]"]),
)
def test_gradients_that_are_0_pass(row: list[int], loss: str) -> None:
    """A norm takes the mean away, so its sum is 0 whatever goes in."""
    assume(len(set(row)) == 1 or max(row) - min(row) > 0)
    problem = attncli.problem("layer_norm", {"X": [list(map(float, row))]}, gradient={"loss": loss})
    assert verify(problem.graph()).ok


@pytest.mark.parametrize("model", SMALL)
@settings(LAW, max_examples=4)
@given(st.integers(0, 10**6), st.sampled_from([0.99, 1.001, -1.0, 2.0, 0.0]), st.data())
def test_a_gradient_that_is_off_is_refused(model: str, seed: int, factor: float, data: st.DataObject) -> None:
    graph = moved(CASES[model][0], model, seed, 1.0, 0.0)._graph(True)
    checked = [entry.id for entry in verify(graph).checked if np.abs(entry.gradient).max() > 1e-4]
    wrong = data.draw(st.sampled_from(checked))
    off_by(graph, f"G_{wrong}", factor)
    found = verify(graph)
    assert [entry.id for entry in found.checked if not entry.ok] == [wrong]


BENT = {"X": "0.1 0.2 0.3", "W_1": "1 0.5; 1 1; -1 2", "W_2": "1; 2"}


def test_at_a_bend_there_is_no_slope_and_that_is_said() -> None:
    problem = attncli.problem("feed_forward", BENT, gradient={"loss": "sum(Y)"})
    found = verify(problem.graph())
    assert found.ok
    said = str(found.warnings[0])
    assert said.startswith("A bend at ") and "X[1,1]" in said and "W_1[1,1]" in said
    assert "W_1[1,2]" not in said and "W_2" not in said
    # What has no bend is compared all the same.
    graph = problem._graph(True)
    off_by(graph, "G_W_2", 1.01)
    assert not verify(graph).ok


OVERFLOW = {"Q": "1e200 1", "K": "1e200 1; 1 1", "V": "1 2; 3 4"}


def test_nan_never_passes() -> None:
    run = attncli.backward(attncli.problem(inputs=OVERFLOW, gradient={"G_O": "1 1"}), check=True)
    assert run.verification is not None and not run.verification.ok
    for format in ("table", "markdown", "html", "latex", "json"):
        assert "is the first number that is not finite" in " ".join(str(render(run, format)).split())
    assert "scores[1,1] = ∞ is the first" in str(render(run, "table"))
    assert '"inf"' in str(render(run, "json"))


@pytest.mark.parametrize(
    ("model", "inputs", "cell", "overflow"),
    [
        ("residual", {"X": "1 1e308", "F": "1 1e308"}, ("Y", (0, 1)), True),
        ("residual", {"X": "1 -1e308", "F": "1 -1e308"}, ("Y", (0, 1)), True),
        ("attention", OVERFLOW, ("scores", (0, 0)), True),
        ("softmax", {"scores": "1 -inf; -inf -inf"}, None, False),
        ("attention", {"Q": "1 2", "K": "1 0; 0 1", "V": "2 0; 0 4"}, None, False),
    ],
)
def test_the_first_number_that_is_not_finite(model: str, inputs: Any, cell: Any, overflow: bool) -> None:
    lost = first_not_finite(attncli.forward(attncli.problem(model, inputs)).trace)
    assert (lost and (lost.step.id, lost.index)) == cell
    assert lost is None or lost.overflow == overflow


TINY = "only too small"


@LAW
@given(st.lists(st.integers(-9, 9), min_size=2, max_size=5), st.integers(1, 9))
def test_an_exact_0_is_not_called_small(row: list[int], upstream: int) -> None:
    """Softmax's gradient of equal upstream numbers is 0, whatever rounding leaves of it."""
    problem = attncli.problem("softmax", {"scores": [row]}, gradient={"G_A": [[float(upstream)] * len(row)]})
    run = attncli.backward(problem, steps=["G_scores"])
    assert not run.is_not_zero("G_scores")
    assert TINY not in str(render(run, "markdown"))


@LAW
@given(st.floats(1e-9, 4e-4), st.integers(1, 9))
def test_a_small_number_is_called_small(size: float, times: int) -> None:
    run = attncli.forward(attncli.problem("residual", {"X": [[size]], "F": [[size / times]]}), steps=["Y"])
    assume(run["Y"][0, 0] < 5e-4)
    assert run.is_not_zero("Y")
    assert TINY in str(render(run, "markdown"))


def test_the_models_that_have_no_gradient_say_so() -> None:
    for model in ("tokens", "positions"):
        with pytest.raises(InputError, match="no gradients"):
            CASES[model][0].problem(model).graph(backward=True)


def test_too_many_numbers_to_move_one_by_one() -> None:
    problem = attncli.problem("softmax", {"scores": np.ones((51, 100))}, gradient={"G_A": np.ones((51, 100))})
    with pytest.raises(LimitError, match="5100 numbers here, the limit is 5000"):
        verify(problem.graph())
