"""One graph in four number systems: the same numbers, and every way of rounding within the bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attncli.arithmetic.exact import Exact
from attncli.arithmetic.floating import Floating
from attncli.arithmetic.hand import Hand, round_decimal
from attncli.arithmetic.interval import IntervalArithmetic
from attncli.core.graph import Graph
from attncli.problems.matrix_text import parse_matrix
from attncli.problems.problem import Problem


def matrix(draw: st.DrawFn, rows: int, columns: int, places: int) -> str:
    numbers = st.integers(-3 * 10**places, 3 * 10**places)
    return "; ".join(" ".join(f"{draw(numbers) / 10**places:.{places}f}" for _ in range(columns)) for _ in range(rows))


@st.composite
def graphs(draw: st.DrawFn, most_places: int = 3, most_tokens: int = 3) -> Graph:
    """A small attention or self-attention with all its gradients."""
    places, causal = draw(st.integers(0, most_places)), draw(st.booleans())
    settings: dict[str, Any] = {"causal": True} if causal else {}
    if draw(st.booleans()):
        settings["softcap"] = "2.5"
    n, d = draw(st.integers(1, most_tokens)), draw(st.integers(1, 2))
    shapes = {"X": (n, d), "W_Q": (d, d), "W_K": (d, d), "W_V": (d, d)}
    model = draw(st.sampled_from(["attention", "self_attention"]))
    if model == "attention":
        shapes = {"Q": (n, d), "K": (n, d), "V": (n, d)}
    inputs = {name: parse_matrix(matrix(draw, *shape, places)) for name, shape in shapes.items()}
    return Problem(model, inputs, settings=settings, upstream=parse_matrix(matrix(draw, n, d, places))).graph()


class Whimsical(Floating):
    """A person who rounds a line or does not, half away or half to even, as the mood takes them."""

    def __init__(self, decimals: int, seed: int) -> None:
        self.decimals = decimals
        self.random = np.random.default_rng(seed)

    def round_step(self, value: Any) -> Any:
        mood = self.random.integers(4)
        if mood == 0:
            return value
        if mood == 1:
            return np.where(self.random.random(np.shape(value)) < 0.5, value, round_decimal(value, self.decimals))[()]
        return round_decimal(value, self.decimals, "away" if mood == 2 else "even", 1e-8)

    round_intermediate = round_step


def assert_within(bounds: Any, numbers: Any) -> None:
    for id in numbers:
        good = bounds[id].contains(numbers[id]) | np.isnan(numbers[id])
        assert good.all(), (id, bounds[id].lo, numbers[id], bounds[id].hi)


@settings(max_examples=60)
@given(graphs(), st.integers(1, 4), st.integers(0, 2**32))
def test_every_choice_of_rounding_stays_within_the_bounds(graph: Graph, decimals: int, seed: int) -> None:
    bounds = graph.evaluate(IntervalArithmetic(decimals))
    for i in range(6):
        assert_within(bounds, graph.evaluate(Whimsical(decimals, seed + i)))
    for rounding in ("away", "even"):
        assert_within(bounds, graph.evaluate(Hand(decimals, rounding)))
    assert_within(bounds, graph.evaluate())


@settings(max_examples=60)
@given(graphs())
def test_unrounded_bounds_hold_the_floating_numbers_closely(graph: Graph) -> None:
    bounds, numbers = graph.evaluate(IntervalArithmetic()), graph.evaluate()
    assert_within(bounds, numbers)
    for id in numbers:
        finite = np.isfinite(numbers[id])
        width = bounds[id].hi[finite] - bounds[id].lo[finite]
        assert (width <= 1e-9 * (1 + np.abs(numbers[id][finite]))).all(), id


@settings(max_examples=40)
@given(graphs())
def test_fifteen_decimals_by_hand_are_the_floating_numbers(graph: Graph) -> None:
    hand, numbers = graph.evaluate(Hand(15)), graph.evaluate()
    for id in numbers:
        np.testing.assert_allclose(hand[id], numbers[id], rtol=1e-11, atol=1e-12)


@settings(max_examples=8)
@given(graphs(most_places=1, most_tokens=2))
def test_exact_numbers_agree_with_floating_ones_and_lie_within_the_bounds(graph: Graph) -> None:
    exact, numbers, bounds = graph.evaluate(Exact()), graph.evaluate(), graph.evaluate(IntervalArithmetic())
    for id in numbers:
        values = np.array([float(number.evalf(30)) for number in exact[id].flat]).reshape(numbers[id].shape)
        np.testing.assert_allclose(numbers[id], values, rtol=1e-12, atol=1e-12, err_msg=id)
        # A float64 nearest to a number within bounds is within them.
        assert bounds[id].contains(values).all(), id


@pytest.mark.parametrize("arithmetic", [Floating(), Hand(3), IntervalArithmetic(3), Exact()], ids=lambda a: a.name)
def test_a_row_that_sees_nothing_is_zero_in_all_of_them(arithmetic: Any) -> None:
    graph = Problem(
        "attention",
        {"Q": parse_matrix("1 2; 2 1"), "K": parse_matrix("1 0; 0 1"), "V": parse_matrix("2 0; 0 4")},
        settings={"mask": "-inf -inf; 0 -inf"},
        upstream=parse_matrix("1 1; 1 1"),
    ).graph()
    trace = graph.evaluate(arithmetic)
    for id in ("A", "O"):
        cells = trace[id]
        lo, hi = (cells.lo, cells.hi) if arithmetic.name == "interval" else (cells, cells)
        assert (lo[0] == 0).all() and (hi[0] == 0).all(), id
