"""Floating is NumPy itself; recording is the same numbers in one block of memory."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from attncli.arithmetic import floating
from attncli.arithmetic.floating import FLOATING, Recording, recording
from attncli.problems.matrix_text import parse_matrix
from attncli.problems.problem import Problem


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "exp", "sqrt", "tanh", "where"])
def test_functions_are_numpys_own(name: str) -> None:
    assert getattr(FLOATING, name) is getattr(np, name)


@pytest.mark.parametrize(
    ("left", "right"), [((3, 4), (4, 2)), ((2, 3, 4), (4, 2)), ((3, 4), (2, 4, 2)), ((2, 3, 4), (2, 4, 2))]
)
def test_products_are_numpys(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    a, b = random.normal(size=left), random.normal(size=right)
    np.testing.assert_allclose(FLOATING.matmul(a, b), np.matmul(a, b), rtol=1e-14)
    np.testing.assert_allclose(
        FLOATING.matmul(b.swapaxes(-1, -2), a.swapaxes(-1, -2)), np.matmul(a, b).swapaxes(-1, -2), rtol=1e-14
    )


def test_small_calculations_are_not_recorded_into_a_block() -> None:
    assert recording(FLOATING, []) is FLOATING
    assert recording(FLOATING, [1000] * 5000) is FLOATING
    assert recording(FLOATING, [floating._SMALL - 1] * 100) is FLOATING
    assert recording(FLOATING, [floating._SMALL]) is FLOATING
    assert isinstance(recording(FLOATING, [1000, 1 << 19, 1 << 19]), Recording)


@pytest.fixture
def placed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices of a few thousand cells are written into the block already."""
    monkeypatch.setattr(floating, "_SMALL", 1 << 12)


OPERANDS = [((80, 70), (70, 90)), ((3, 80, 70), (3, 70, 90)), ((2, 2), (2, 2))]


@pytest.mark.usefixtures("placed")
@pytest.mark.parametrize(("left", "right"), OPERANDS)
def test_recorded_products_equal_plain_ones(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    a, b = random.normal(size=left), random.normal(size=right)
    np.testing.assert_array_equal(Recording(1 << 20).matmul(a, b), np.matmul(a, b))


@pytest.mark.usefixtures("placed")
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
@pytest.mark.parametrize("right", [(80, 90), (80, 1), (1, 90), (3, 80, 90), ()])
def test_recorded_elementwise_results_equal_plain_ones(name: str, right: tuple[int, ...]) -> None:
    random = np.random.default_rng(1)
    a, b = random.normal(size=(80, 90)), random.normal(size=right)
    np.testing.assert_array_equal(getattr(Recording(1 << 20), name)(a, np.asarray(b)), getattr(np, name)(a, b))


@pytest.mark.usefixtures("placed")
def test_results_do_not_share_memory_even_when_the_block_is_full() -> None:
    random = np.random.default_rng(2)
    a, b = random.normal(size=(80, 80)), random.normal(size=(80, 80))
    block = Recording(3 * 6400)
    functions = [np.matmul, np.add, np.subtract, np.multiply, np.divide]
    results = [block.matmul(a, b), block.add(a, b), block.subtract(a, b), block.multiply(a, b), block.divide(a, b)]
    results.append(block.exp(a))
    for first, second in itertools.combinations([a, b, *results], 2):
        assert not np.shares_memory(first, second)
    for result, function in zip(results, functions, strict=False):
        np.testing.assert_array_equal(result, function(a, b))
    np.testing.assert_array_equal(results[-1], np.exp(a))


@pytest.mark.usefixtures("placed")
def test_a_recorded_graph_equals_a_plain_one() -> None:
    random = np.random.default_rng(3)
    matrices = {
        name: parse_matrix(random.normal(size=(70, 66)).round(3).tolist().__repr__()) for name in ("Q", "K", "V")
    }
    graph = Problem("attention", matrices, settings={"causal": True}, upstream=matrices["V"]).graph()
    plain, recorded = graph.evaluate(), graph.evaluate(Recording(1 << 20))
    for id in plain:
        np.testing.assert_array_equal(plain[id], recorded[id])
    owned = [recorded[step.id] for step in recorded.steps if step.op.name in ("product", "multiply", "exp", "subtract")]
    for first, second in itertools.combinations(owned, 2):
        assert not np.shares_memory(first, second)
