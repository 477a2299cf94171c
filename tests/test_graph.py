"""The graph itself: steps over inputs, evaluated with other numbers, other ops, or only in part."""

from __future__ import annotations

import numpy as np
import pytest

from attncli.arithmetic.hand import Hand
from attncli.core.axes import Axis, show_shape
from attncli.core.graph import Graph, Swap, default_symbol
from attncli.core.matrix import as_matrix
from attncli.core.message import InputError, ShapeError
from attncli.ops.elementwise import EXP, MULTIPLY, SCALE
from attncli.ops.product import PRODUCT
from attncli.ops.rows import ROW_SUM
from attncli.problems.problem import Problem

X = [[1.0, 2.0], [0.5, -1.0], [-2.0, 0.25]]


def self_attention(**settings: object) -> Graph:
    weights = {"W_Q": [[1.0, 2.0], [0.5, -1.0]], "W_K": [[0.5, 1.0], [-1.0, 2.0]], "W_V": [[1.0, 0.0], [2.0, 3.0]]}
    inputs = {name: as_matrix(values) for name, values in ({"X": X} | weights).items()}
    return Problem("self_attention", inputs, settings=settings, loss="sum(O)").graph()


def small() -> Graph:
    """Y = exp(a) ⊙ b, and its row sums."""
    graph = Graph("small")
    graph.input("a", as_matrix([[0.0, 1.0]]), ("row", "column"))
    graph.input("b", as_matrix([[2.0, 3.0]]), ("row", "column"))
    graph.apply(EXP, "e", "a")
    graph.apply(MULTIPLY, "Y", "e", "b")
    graph.apply(ROW_SUM, "sums", "Y")
    graph.output = "sums"
    return graph


# --- until ------------------------------------------------------------------------------------------------------------


def test_until_computes_only_what_is_needed() -> None:
    graph = self_attention(causal=True)
    assert list(graph.evaluate(until="Q")) == ["X", "W_Q", "Q"]
    assert list(graph.evaluate(until="scores")) == ["X", "W_Q", "W_K", "Q", "K", "scores"]
    assert [step.id for step in graph.evaluate(until=["V", "Q"]).steps] == ["Q", "V"]
    assert list(graph.evaluate(until="X")) == ["X"]


def test_until_gives_the_same_numbers() -> None:
    graph = self_attention(causal=True)
    whole = graph.evaluate()
    for id in graph.steps:
        assert np.array_equal(graph.evaluate(until=id)[id], whole[id]), id


def test_the_needed_steps_are_found_through_a_swap() -> None:
    graph = self_attention()
    wrong = {"Q": Swap(PRODUCT, ("X", "W_K"), {})}
    assert "W_K" not in graph.evaluate(until="Q")
    trace = graph.evaluate(swap=wrong, until="Q")
    np.testing.assert_allclose(trace["Q"], trace["X"] @ trace["W_K"])


# --- given ------------------------------------------------------------------------------------------------------------


def test_a_given_value_stands_in_and_everything_after_it_follows() -> None:
    graph = self_attention()
    before = graph.evaluate()
    weights = np.full((3, 3), 1 / 3)
    after = graph.evaluate(given={"A": weights})
    assert after["A"] is weights
    np.testing.assert_allclose(after["O"], np.tile(before["V"].mean(0), (3, 1)))
    np.testing.assert_allclose(after["G_V"], weights.T @ before["G_O"])
    for id in ("Q", "K", "V", "scores", "exp", "row_sum"):
        assert np.array_equal(after[id], before[id]), id


def test_a_given_input_moves_all_that_depends_on_it() -> None:
    graph = small()
    trace = graph.evaluate(given={"b": np.array([[1.0, 1.0]])})
    assert trace["sums"].tolist() == [[1 + np.e]]
    assert graph.evaluate()["sums"].tolist() == [[2 + 3 * np.e]]


def test_a_given_value_is_not_rounded() -> None:
    trace = small().evaluate(Hand(1), given={"e": np.array([[0.123, 0.456]])})
    assert trace["e"].tolist() == [[0.123, 0.456]]
    assert trace["Y"].tolist() == [[0.2, 1.4]]


@pytest.mark.parametrize("id", ["a", "e", "sums"])
def test_a_given_value_of_another_shape_is_refused_by_name(id: str) -> None:
    with pytest.raises(ShapeError) as error:
        small().evaluate(given={id: np.zeros((3, 2))})
    expected = {"a": "1×2", "e": "1×2", "sums": "1×1"}[id]
    assert str(error.value) == f"{id} is 3×2, but this calculation has {expected} there."


def test_a_given_value_with_an_axis_too_few_is_refused() -> None:
    with pytest.raises(ShapeError, match="a is 2, but this calculation has 1×2 there"):
        small().evaluate(given={"a": np.zeros(2)})


def test_a_given_value_for_an_unknown_step_suggests_the_likely_one() -> None:
    with pytest.raises(InputError) as error:
        small().evaluate(given={"sum": np.zeros((1, 1))})
    assert str(error.value) == (
        "The step “sum” does not exist. Did you mean “sums”? Choose from: a, b, e, Y, sums."
    )  # fmt: skip


# --- swap -------------------------------------------------------------------------------------------------------------


def test_a_swapped_op_takes_the_place_and_everything_after_it_follows() -> None:
    graph = small()
    doubled = Swap(SCALE, ("a",), {"factor": as_matrix(2.0)})
    trace = graph.evaluate(swap={"e": doubled})
    assert trace["e"].tolist() == [[0, 2]]
    assert trace["Y"].tolist() == [[0, 6]]
    assert trace["sums"].tolist() == [[6]]
    assert graph.evaluate()["e"].tolist() == [[1, np.e]]


def test_a_swap_may_read_other_steps() -> None:
    graph = self_attention()
    from_scores = Swap(PRODUCT, ("scores", "V"), {})
    trace = graph.evaluate(swap={"O": from_scores})
    np.testing.assert_allclose(trace["O"], trace["scores"] @ trace["V"])


def test_a_given_value_goes_before_a_swap() -> None:
    graph = small()
    trace = graph.evaluate(given={"e": np.array([[5.0, 6.0]])}, swap={"e": Swap(EXP, ("b",), {})})
    assert trace["e"].tolist() == [[5, 6]]


def test_evaluating_changes_nothing_in_the_graph_or_its_inputs() -> None:
    graph = self_attention(causal=True)
    inputs = {id: input.matrix.values.copy() for id, input in graph.inputs.items()}
    first = graph.evaluate()
    graph.evaluate(Hand(1), given={"A": np.zeros((3, 3))})
    second = graph.evaluate()
    assert all(np.array_equal(first[id], second[id]) for id in first)
    assert all(np.array_equal(graph.inputs[id].matrix.values, values) for id, values in inputs.items())


# --- the trace --------------------------------------------------------------------------------------------------------


def test_a_trace_is_a_mapping_by_step_id() -> None:
    trace = small().evaluate()
    assert list(trace) == ["a", "b", "e", "Y", "sums"]
    assert len(trace) == 5
    assert "Y" in trace and "masked" not in trace
    assert trace.get("masked") is None and trace.get("masked", 3) == 3
    assert trace.arithmetic == "floating"
    assert [step.id for step in trace.steps] == ["e", "Y", "sums"]
    with pytest.raises(InputError, match=r"The step “summs” does not exist. Did you mean “sums”?"):
        trace["summs"]


# --- building: what does not fit --------------------------------------------------------------------------------------


def test_an_input_with_another_number_of_axes() -> None:
    graph = Graph("small")
    with pytest.raises(ShapeError) as error:
        graph.input("a", as_matrix([1.0, 2.0]), ("query", "d_k"))
    assert str(error.value) == (
        "a has shape 2, but it needs 2 axes: query × d_k. Write rows separated by “;”, like “1 2; 3 4”."
    )
    with pytest.raises(ShapeError) as error:
        graph.input("T", as_matrix([[1.0, 2.0]]), ("token",))
    assert str(error.value) == (
        "T has shape 1×2, but it needs 1 axis: token. Write one row of numbers, like “0 1 2”."
    )  # fmt: skip


def test_an_axis_that_was_set_before_names_who_set_it() -> None:
    graph = Graph("small")
    graph.input("Q", as_matrix(np.zeros((2, 3))), ("query", "d_k"))
    with pytest.raises(ShapeError) as error:
        graph.input("K", as_matrix(np.zeros((4, 1))), ("key", "d_k"))
    assert str(error.value) == (
        "K is 4×1: it has 1 column, but the axis “d_k” has length 3, set by Q (2×3). Give K 3 columns, or change Q."
    )


def test_operands_that_do_not_fit_are_named_with_their_shapes() -> None:
    graph = Graph("small")
    graph.input("A", as_matrix(np.zeros((2, 3))), ("query", "key"))
    graph.input("V", as_matrix(np.zeros((4, 5))), ("row", "d_v"))
    with pytest.raises(ShapeError) as error:
        graph.apply(PRODUCT, "O", "A", "V")
    assert str(error.value) == (
        "Step O cannot take A 2×3, V 4×5: the axis “key” has length 4 in V but 3 in A."
    )  # fmt: skip


def test_operands_with_too_many_axes_or_other_heads() -> None:
    graph = Graph("small")
    graph.input("a", as_matrix(np.zeros((2, 3, 3))), ("head", "i", "j"))
    graph.input("b", as_matrix(np.zeros((4, 3, 3))), ("group", "i", "j"))
    graph.input("c", as_matrix(np.zeros((3,))), ("i",))
    with pytest.raises(ShapeError) as error:
        graph.apply(MULTIPLY, "Y", "a", "b")
    assert str(error.value) == (
        "Step Y cannot take a 2×3×3, b 4×3×3: the axis “head” has length 4 in b but 2 in a."
    )  # fmt: skip
    with pytest.raises(ShapeError) as error:
        graph.apply(MULTIPLY, "Y", "a", "c")
    assert str(error.value) == "Step Y cannot take a 2×3×3, c 3: c has 1 axis, expected 2."


def test_numpy_never_sees_what_does_not_fit() -> None:
    graph = small()
    with pytest.raises(ShapeError):
        graph.apply(PRODUCT, "Z", "a", "b")
    assert "Z" not in graph


def test_a_step_cannot_be_written_twice() -> None:
    graph = small()
    with pytest.raises(ValueError, match="step 'Y' exists already"):
        graph.apply(EXP, "Y", "a")


def _told(axis: Axis) -> tuple[str, int, str]:
    return axis.name, axis.size, axis.setter


def test_axes_keep_their_names_and_who_set_them() -> None:
    graph = self_attention()
    assert [_told(axis) for axis in graph.axes("scores")] == [("token", 3, "X"), ("token", 3, "X")]
    assert [_told(axis) for axis in graph.axes("O")] == [("token", 3, "X"), ("d_v", 2, "W_V")]
    assert graph.axes("row_max")[-1].size == 1
    assert graph.shape("G_W_Q") == (2, 2)


@pytest.mark.parametrize(
    ("id", "symbol"),
    [("X", "X"), ("W_Q", "W_Q"), ("G_W_Q", "G_{W_Q}"), ("K_past", "K_{past}"), ("self.G_A", "G_A"), ("d_model", "d_{model}")],
)  # fmt: skip
def test_symbols_of_ids(id: str, symbol: str) -> None:
    assert default_symbol(id) == symbol


def test_the_symbols_of_the_steps() -> None:
    graph = self_attention(causal=True)
    symbols = {id: graph.symbol(id) for id in ("scores", "masked", "G_masked", "G_scores", "G_W_Q", "G_X", "G_X_Q")}
    assert symbols == {
        "scores": "S",
        "masked": "S_{masked}",
        "G_masked": "G_{masked}",
        "G_scores": "G_S",
        "G_W_Q": "G_{W_Q}",
        "G_X": "G_X",
        "G_X_Q": "G_X^{(Q)}",
    }


def test_shapes_in_words() -> None:
    assert show_shape((3, 2)) == "3×2"
    assert show_shape((2, 3, 4)) == "2×3×4"
    assert show_shape(()) == "1"
