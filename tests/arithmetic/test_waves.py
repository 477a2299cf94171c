"""sin, cos, erf and max(x, 0) in bounds: true at 40 digits, tight, and sound over every interval."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from attncli.arithmetic.floating import FLOATING
from attncli.arithmetic.interval import Interval, IntervalArithmetic

BOUNDS = IntervalArithmetic(None)
law = settings(derandomize=True, deadline=None, max_examples=300)
angles = st.floats(-1e6, 1e6) | st.floats(-10, 10) | st.integers(-2000, 2000).map(lambda k: k * math.pi / 4)


def points(values: object) -> Interval:
    array = np.asarray(values, dtype=np.float64)
    return Interval(array, array)


@pytest.mark.parametrize("name", ["sin", "cos", "erf"])
@law
@given(angles)
@example(0.0)
@example(math.pi)
@example(math.pi / 2)
@example(1e22)
def test_the_true_number_lies_within(name: str, x: float) -> None:
    sympy = pytest.importorskip("sympy")
    bounds = getattr(BOUNDS, name)(points([x]))
    true = sympy.N(getattr(sympy, name)(sympy.Rational(x)), 40)
    assert sympy.Rational(float(bounds.lo[0])) <= true <= sympy.Rational(float(bounds.hi[0]))
    assert bounds.contains(np.array([getattr(FLOATING, name)(np.array([x]))[0]])).all()
    if abs(x) < 1e6:
        assert bounds.hi[0] - bounds.lo[0] <= 1e-14


@pytest.mark.parametrize("name", ["sin", "cos", "erf", "positive", "is_positive"])
@law
@given(angles, st.floats(0, 10) | st.floats(0, 1e-6), st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_every_number_of_an_interval_lies_within(name: str, x: float, width: float, at: list[float]) -> None:
    lo, hi = np.array([x]), np.array([x + width])
    bounds = getattr(BOUNDS, name)(Interval(lo, hi))
    inside = np.clip(x + width * np.array(at), lo, hi)
    assert bounds.contains(getattr(FLOATING, name)(inside)).all()


def test_a_peak_between_the_ends_counts() -> None:
    top = BOUNDS.sin(Interval(np.array([1.5]), np.array([1.6])))
    assert top.hi[0] == 1.0 and math.sin(1.5) - 1e-14 < top.lo[0] <= math.sin(1.5)
    trough = BOUNDS.cos(Interval(np.array([3.0]), np.array([3.3])))
    assert trough.lo[0] == -1.0 and trough.hi[0] < -0.98
    whole = BOUNDS.cos(Interval(np.array([0.1]), np.array([7.0])))
    assert (whole.lo[0], whole.hi[0]) == (-1.0, 1.0)


def test_nothing_is_known_of_angles_without_bounds() -> None:
    for angle in (Interval(np.array([-np.inf]), np.array([np.inf])), points([1e300])):
        with BOUNDS.context():
            bounds = BOUNDS.sin(angle)
        assert (bounds.lo[0], bounds.hi[0]) == (-1.0, 1.0)


def test_zero_is_exact() -> None:
    for name, value in (("sin", 0.0), ("cos", 1.0)):
        bounds = getattr(BOUNDS, name)(points([0.0]))
        assert bounds.lo[0] == bounds.hi[0] == value


def test_exact_numbers() -> None:
    sympy = pytest.importorskip("sympy")
    from attncli.arithmetic.exact import Exact

    exact = Exact()
    cells = np.array([sympy.Integer(-1), sympy.Integer(0), sympy.sqrt(2)], dtype=object)
    assert list(exact.positive(cells)) == [0, 0, sympy.sqrt(2)]
    assert list(exact.is_positive(cells)) == [0, 0, 1]
    assert list(exact.sin(cells)) == [-sympy.sin(1), 0, sympy.sin(sympy.sqrt(2))]
    assert exact.round_step(exact.cos(cells))[2] == sympy.cos(sympy.sqrt(2))
