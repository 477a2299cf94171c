"""Laws of attention, on random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attncli.core.graph import Trace
from attncli.core.matrix import as_matrix
from attncli.problems.problem import Problem

law = settings(derandomize=True, deadline=None, max_examples=40)
lengths = st.integers(1, 5)


def numbers(*shape: int, bound: float = 4.0) -> st.SearchStrategy[np.ndarray]:
    return arrays(np.float64, shape, elements=st.floats(-bound, bound, width=64))


def trace_of(model: str, inputs: dict[str, np.ndarray], upstream: np.ndarray | None = None, **asked: Any) -> Trace:
    matrices = {name: as_matrix(values) for name, values in inputs.items()}
    given = None if upstream is None else as_matrix(upstream)
    return Problem(model, matrices, settings=asked, upstream=given).graph().evaluate()


def weights_of(scores: np.ndarray, **asked: Any) -> np.ndarray:
    weights: np.ndarray = trace_of("softmax", {"scores": scores}, **asked)["A"]
    return weights


@st.composite
def attention(draw: st.DrawFn) -> dict[str, np.ndarray]:
    n, m, d_k, d_v = draw(st.tuples(lengths, lengths, lengths, lengths))
    return {"Q": draw(numbers(n, d_k)), "K": draw(numbers(m, d_k)), "V": draw(numbers(m, d_v))}


@st.composite
def attention_and_marks(draw: st.DrawFn) -> tuple[dict[str, np.ndarray], np.ndarray]:
    inputs = draw(attention())
    return inputs, draw(arrays(np.bool_, (len(inputs["Q"]), len(inputs["K"]))))


@st.composite
def tokens(draw: st.DrawFn) -> dict[str, np.ndarray]:
    n, d_model, d_k = draw(st.tuples(st.integers(2, 5), lengths, lengths))
    return {
        "X": draw(numbers(n, d_model)),
        "W_Q": draw(numbers(d_model, d_k, bound=1.0)),
        "W_K": draw(numbers(d_model, d_k, bound=1.0)),
        "W_V": draw(numbers(d_model, 2)),
    }


@law
@given(st.tuples(lengths, lengths).flatmap(lambda shape: numbers(*shape, bound=1e3)))
def test_every_row_of_weights_adds_up_to_1(scores: np.ndarray) -> None:
    weights = weights_of(scores)
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(-1), 1.0, rtol=1e-14)


@law
@given(st.tuples(lengths, lengths).flatmap(lambda shape: numbers(*shape, bound=50)), st.floats(-1e3, 1e3))
def test_a_constant_added_to_every_score_changes_nothing(scores: np.ndarray, c: float) -> None:
    np.testing.assert_allclose(weights_of(scores + c), weights_of(scores), rtol=1e-11, atol=1e-300)


@law
@given(st.tuples(lengths, lengths).flatmap(lambda shape: numbers(*shape, bound=20)), st.floats(-20, 20))
def test_whatever_is_subtracted_first_the_weights_are_the_same(scores: np.ndarray, c: float) -> None:
    usual = weights_of(scores)
    np.testing.assert_allclose(weights_of(scores, subtract="none"), usual, rtol=1e-12)
    np.testing.assert_allclose(weights_of(scores, subtract=c), usual, rtol=1e-12)


@law
@given(attention_and_marks())
def test_hidden_weights_are_exactly_0(given: tuple[dict[str, np.ndarray], np.ndarray]) -> None:
    inputs, keep = given
    trace = trace_of("attention", inputs, np.ones((len(inputs["Q"]), inputs["V"].shape[1])), keep=keep)
    for id in ("A", "G_masked", "G_scores"):
        assert (trace[id][~keep] == 0).all(), id
    seen = keep.any(-1)
    np.testing.assert_allclose(trace["A"].sum(-1), np.where(seen, 1.0, 0.0), rtol=1e-14)
    assert (trace["O"][~seen] == 0).all()
    assert all(np.isfinite(trace[f"G_{id}"]).all() for id in "QKV")


@law
@given(attention_and_marks())
def test_keep_hide_and_a_mask_of_infinities_say_the_same(given: tuple[dict[str, np.ndarray], np.ndarray]) -> None:
    inputs, keep = given
    by_keep = trace_of("attention", inputs, keep=keep)
    for asked in ({"hide": ~keep}, {"mask": np.where(keep, 0.0, -np.inf)}):
        other = trace_of("attention", inputs, **asked)
        assert np.array_equal(other["masked"], by_keep["masked"])
        assert np.array_equal(other["O"], by_keep["O"])


@law
@given(tokens(), st.data())
def test_a_causal_row_does_not_depend_on_later_tokens(inputs: dict[str, np.ndarray], data: st.DataObject) -> None:
    n, d_model = inputs["X"].shape
    row = data.draw(st.integers(0, n - 2))
    later = data.draw(numbers(n - row - 1, d_model))
    changed = inputs | {"X": np.concatenate([inputs["X"][: row + 1], later])}
    before, after = (trace_of("self_attention", each, causal=True) for each in (inputs, changed))
    np.testing.assert_allclose(after["O"][: row + 1], before["O"][: row + 1], rtol=1e-12, atol=1e-14)


@law
@given(attention(), st.randoms(use_true_random=False))
def test_the_order_of_keys_and_values_does_not_matter(inputs: dict[str, np.ndarray], random: Any) -> None:
    order = list(range(len(inputs["K"])))
    random.shuffle(order)
    before = trace_of("attention", inputs)
    after = trace_of("attention", inputs | {"K": inputs["K"][order], "V": inputs["V"][order]})
    np.testing.assert_allclose(after["A"], before["A"][:, order], rtol=1e-12)
    np.testing.assert_allclose(after["O"], before["O"], rtol=1e-12, atol=1e-13)


@law
@given(attention(), st.randoms(use_true_random=False))
def test_each_query_is_answered_by_itself(inputs: dict[str, np.ndarray], random: Any) -> None:
    order = list(range(len(inputs["Q"])))
    random.shuffle(order)
    before, after = trace_of("attention", inputs), trace_of("attention", inputs | {"Q": inputs["Q"][order]})
    np.testing.assert_allclose(after["O"], before["O"][order], rtol=1e-12, atol=1e-13)


@law
@given(attention())
def test_an_output_lies_between_the_values(inputs: dict[str, np.ndarray]) -> None:
    out, values = trace_of("attention", inputs)["O"], inputs["V"]
    assert (out <= values.max(0) + 1e-13).all()
    assert (out >= values.min(0) - 1e-13).all()


@law
@given(attention(), st.floats(0.5, 50))
def test_a_soft_cap_keeps_scores_below_it_and_in_order(inputs: dict[str, np.ndarray], cap: float) -> None:
    trace = trace_of("attention", inputs, softcap=cap)
    source = trace.get("scaled", trace["scores"])
    assert (np.abs(trace["capped"]) <= cap).all()
    order = np.argsort(source, axis=-1, kind="stable")
    assert (np.diff(np.take_along_axis(trace["capped"], order, -1), axis=-1) >= 0).all()


def upstream_of(inputs: dict[str, np.ndarray]) -> st.SearchStrategy[np.ndarray]:
    return numbers(len(inputs["Q"]), inputs["V"].shape[1])


@law
@given(attention(), st.booleans(), st.data())
def test_every_row_of_the_scores_gradient_adds_up_to_0(
    inputs: dict[str, np.ndarray], causal: bool, data: st.DataObject
) -> None:
    trace = trace_of("attention", inputs, data.draw(upstream_of(inputs)), causal=causal)
    size = np.abs(trace["weighted"]).sum() + 1.0
    assert (np.abs(trace["G_scores"].sum(-1)) <= 1e-13 * size).all()


@law
@given(attention(), st.floats(-3, 3), st.floats(-3, 3), st.booleans(), st.data())
def test_gradients_are_linear_in_the_upstream_gradient(
    inputs: dict[str, np.ndarray], a: float, b: float, causal: bool, data: st.DataObject
) -> None:
    first, second = data.draw(upstream_of(inputs)), data.draw(upstream_of(inputs))
    whole = trace_of("attention", inputs, a * first + b * second, causal=causal)
    parts = [trace_of("attention", inputs, each, causal=causal) for each in (first, second)]
    for step in whole.steps:
        if step.phase == "backward":
            expected = a * parts[0][step.id] + b * parts[1][step.id]
            np.testing.assert_allclose(whole[step.id], expected, rtol=1e-9, atol=1e-10, err_msg=step.id)


@law
@given(st.lists(st.integers(0, 4), min_size=1, max_size=8), st.data())
def test_every_token_gives_its_gradient_to_the_table_once(ids: list[int], data: st.DataObject) -> None:
    upstream = data.draw(numbers(len(ids), 3))
    trace = trace_of("embedding", {"E": np.zeros((5, 3)), "T": np.array(ids, dtype=np.float64)}, upstream)
    np.testing.assert_allclose(trace["G_E"].sum(0), upstream.sum(0), atol=1e-12)
    absent = [row for row in range(5) if row not in ids]
    assert (trace["G_E"][absent] == 0).all()
