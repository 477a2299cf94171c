"""Backward steps: written with ops, in the order of the chain rule, added where paths meet."""

from __future__ import annotations

import numpy as np
import pytest

from attncli.core import gradient
from attncli.core.gradient import SUM_PATHS
from attncli.core.graph import Graph, gradient_id, gradient_symbol
from attncli.core.matrix import as_matrix
from attncli.core.message import InputError, ShapeError
from attncli.ops.elementwise import EXP, MULTIPLY, SCALE
from attncli.ops.product import PRODUCT
from attncli.ops.rows import ROW_MAX, ROW_SUM, SUBTRACT
from attncli.ops.softmax import softmax
from attncli.problems.problem import Problem

A = np.array([[0.5, -1.0], [2.0, 0.25]])
B = np.array([[1.5, 2.0], [-0.5, 3.0]])


def over(*operands: str, values: dict[str, np.ndarray] | None = None, constant: str = "") -> Graph:
    graph = Graph("small")
    for id in operands:
        matrix = as_matrix((values or {"a": A, "b": B})[id])
        graph.input(id, matrix, ("i", "j"), differentiable=id != constant)
    return graph


def backward(graph: Graph, output: str, v: np.ndarray) -> dict[str, np.ndarray]:
    graph.output = output
    gradient.upstream(graph, as_matrix(v))
    gradient.append(graph)
    return dict(graph.evaluate())


def test_names_of_gradients() -> None:
    assert gradient_id("Q") == "G_Q"
    assert gradient_id("self.Q") == "self.G_Q"
    assert gradient_id("layer2.ffn.hidden") == "layer2.ffn.G_hidden"
    assert gradient_symbol("A") == "G_A"
    assert gradient_symbol("W_Q") == "G_{W_Q}"
    assert gradient_symbol("S_{masked}") == "G_{masked}"


def test_an_array_used_twice_by_one_step_gets_two_paths() -> None:
    graph = over("a")
    graph.apply(MULTIPLY, "Y", "a", "a")
    trace = backward(graph, "Y", B)
    assert list(graph.steps) == ["Y", "G_a_Y_2", "G_a_Y_1", "G_a"]
    assert graph.steps["G_a"].op is SUM_PATHS
    np.testing.assert_allclose(trace["G_a"], 2 * A * B)


def test_paths_through_several_steps_are_added() -> None:
    """Y = e^a ⊙ a + … : one path directly, one through exp."""
    graph = over("a")
    graph.apply(EXP, "e", "a")
    graph.apply(MULTIPLY, "Y", "e", "a")
    trace = backward(graph, "Y", B)
    np.testing.assert_allclose(trace["G_a"], B * np.exp(A) * (1 + A))
    assert {id for id in graph.steps if id.startswith("G_a")} == {"G_a_e", "G_a_Y", "G_a"}


def test_a_path_that_ends_elsewhere_sends_nothing() -> None:
    graph = over("a", "b")
    graph.apply(EXP, "unused", "a")
    graph.apply(MULTIPLY, "Y", "a", "b")
    backward(graph, "Y", B)
    assert "G_unused" not in graph
    assert "G_a_unused" not in graph


def test_a_constant_gets_no_gradient() -> None:
    graph = over("a", "b", constant="b")
    graph.apply(MULTIPLY, "Y", "a", "b")
    trace = backward(graph, "Y", np.ones((2, 2)))
    assert "G_b" not in graph
    np.testing.assert_allclose(trace["G_a"], B)


def test_steps_over_constants_get_no_gradient() -> None:
    graph = over("a", "b", constant="b")
    graph.apply(EXP, "e", "b")
    graph.apply(MULTIPLY, "Y", "a", "e")
    backward(graph, "Y", np.ones((2, 2)))
    assert "G_e" not in graph and "G_b" not in graph


def test_the_closed_rule_of_softmax_equals_the_long_way_round() -> None:
    """The same steps without the closed rule: through divide, row_sum, exp and subtract, the maximum held fixed."""
    short = over("a")
    short_trace = backward(short, softmax(short, "a"), B)
    long = over("a")
    top = np.repeat(A.max(-1, keepdims=True), 2, -1)
    long.input("top", as_matrix(top), ("i", "j"), differentiable=False)
    long.apply(SUBTRACT, "shifted", "a", "top")
    long.apply(EXP, "e", "shifted")
    long.apply(ROW_SUM, "sums", "e")
    from attncli.ops.rows import DIVIDE

    long.apply(DIVIDE, "A", "e", "sums")
    long_trace = backward(long, "A", B)
    np.testing.assert_allclose(short_trace["A"], long_trace["A"])
    np.testing.assert_allclose(short_trace["G_a"], long_trace["G_a"], atol=1e-15)
    np.testing.assert_allclose(short_trace["G_a"].sum(-1), 0, atol=1e-15)


def test_the_rule_of_softmax_is_shown_in_its_own_steps() -> None:
    graph = over("a")
    trace = backward(graph, softmax(graph, "a"), B)
    a, g = trace["A"], trace["G_A"]
    np.testing.assert_allclose(trace["weighted"], g * a)
    np.testing.assert_allclose(trace["row_dot"], (g * a).sum(-1, keepdims=True))
    np.testing.assert_allclose(trace["deviation"], g - trace["row_dot"])
    np.testing.assert_allclose(trace["G_a"], a * trace["deviation"])
    for row in range(2):
        jacobian = np.diag(a[row]) - np.outer(a[row], a[row])
        np.testing.assert_allclose(trace["G_a"][row], jacobian @ g[row], atol=1e-15)


def test_softmax_with_a_prefix_keeps_its_gradients_apart() -> None:
    graph = over("a")
    first = softmax(graph, "a", prefix="self.")
    second = softmax(graph, first, prefix="cross.")
    trace = backward(graph, second, B)
    assert {"self.weighted", "cross.weighted", "self.G_A", "cross.G_A"} <= set(graph.steps) | set(graph.inputs)

    def f(values: np.ndarray) -> float:
        return float(np.sum(B * graph.evaluate(given={"a": values}, until=second)[second]))

    h = 1e-6
    for index in np.ndindex(A.shape):
        step = np.zeros_like(A)
        step[index] = h
        np.testing.assert_allclose(trace["G_a"][index], (f(A + step) - f(A - step)) / (2 * h), rtol=1e-5, atol=1e-9)


def test_an_op_without_a_rule_stops_the_gradient() -> None:
    graph = over("a")
    graph.apply(ROW_MAX, "top", "a")
    graph.apply(SCALE, "Y", "top", factor=as_matrix(2.0))
    backward(graph, "Y", np.ones((2, 1)))
    assert "G_a" not in graph


def test_a_rule_that_writes_another_shape_is_refused() -> None:
    """A product of heads with one matrix for all of them would need a sum over heads, which its rule does not write."""
    graph = Graph("small")
    graph.input("a", as_matrix(np.ones((2, 3, 3))), ("head", "i", "j"))
    graph.input("b", as_matrix(np.ones((3, 3))), ("j", "k"))
    graph.output = graph.apply(PRODUCT, "Y", "a", "b")
    gradient.upstream(graph, as_matrix(np.ones((2, 3, 3))))
    with pytest.raises(ValueError, match="the rule of 'product' writes 'G_b' in another shape than 'b'"):
        gradient.append(graph)


def test_the_upstream_gradient_has_the_shape_of_the_output() -> None:
    graph = over("a", "b")
    graph.output = graph.apply(PRODUCT, "Y", "a", "b")
    with pytest.raises(ShapeError) as error:
        gradient.upstream(graph, as_matrix(np.ones((3, 2))))
    assert str(error.value) == (
        "G_Y is 3×2: it has 3 rows, but the axis “i” has length 2, set by a (2×2). Give G_Y 2 rows, or change a."
    )


def test_the_upstream_gradient_is_not_a_step_and_gets_no_gradient() -> None:
    graph = over("a", "b")
    graph.apply(MULTIPLY, "Y", "a", "b")
    backward(graph, "Y", B)
    assert graph.inputs["G_Y"].phase == "upstream"
    assert not graph.inputs["G_Y"].differentiable
    assert all(step.phase == "backward" for id, step in graph.steps.items() if id != "Y")


def test_every_gradient_has_the_shape_of_what_it_belongs_to() -> None:
    inputs = {"Q": np.ones((4, 3, 2)), "K": np.ones((2, 5, 2)), "V": np.ones((2, 5, 3))}
    matrices = {name: as_matrix(values) for name, values in inputs.items()}
    graph = Problem("attention", matrices, loss="sum(O)").graph()
    for id in (*graph.inputs, *graph.steps):
        if f"G_{id}" in graph:
            assert graph.shape(f"G_{id}") == graph.shape(id), id


def test_what_to_give_where_the_gradient_to_start_from_is_missing() -> None:
    matrices = {"A": as_matrix(A), "V": as_matrix(B)}
    with pytest.raises(InputError) as error:
        Problem("product", matrices).graph(backward=True)
    assert str(error.value) == (
        "The backward steps need a gradient to start from: --upstream MATRIX (the gradient G_O, the shape of O),"
        ' or --loss TEXT, like --loss "sum(O)".'
    )
    with pytest.raises(InputError, match=r"Both an upstream gradient and a loss are given\. Keep one"):
        Problem("product", matrices, upstream=as_matrix(A), loss="sum(O)").graph()
