"""The true result lies inside, always: checked with fractions and with 60-digit arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import iv, mp, mpf

from attncli.arithmetic.hand import round_decimal
from attncli.arithmetic.interval import Interval, IntervalArithmetic
from attncli.core.matrix import as_matrix
from attncli.problems.matrix_text import parse_matrix

xp = IntervalArithmetic()
_MAX = float(np.finfo(np.float64).max)
_SMALL = 5e-324

FINITE = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-10, 10),
    st.integers(-9, 9).map(float),
    st.sampled_from([0.0, -0.0, 1.0, 0.1, _MAX, -_MAX, _SMALL, -_SMALL, 2.2e-308, 1e-200, 1e200, 2.0**53]),
)


@st.composite
def boxes(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Interval, np.ndarray]:
    """An interval array and numbers in it: at its ends or between. Half of them are points throughout."""
    size = math.prod(shape)
    lo = np.array(draw(st.lists(FINITE, min_size=size, max_size=size)))
    if draw(st.booleans()):
        return Interval(lo.reshape(shape), lo.reshape(shape)), lo.reshape(shape)
    hi = np.array(draw(st.lists(FINITE, min_size=size, max_size=size)))
    lo, hi = np.minimum(lo, hi), np.maximum(lo, hi)
    same = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    hi = np.where(same, lo, hi)
    inside = lo + np.array(draw(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=size, max_size=size))) * (
        hi / 2 - lo / 2
    )
    ends = np.array(draw(st.lists(st.integers(0, 2), min_size=size, max_size=size)))
    values = np.select([ends == 0, ends == 1], [lo, hi], np.clip(inside, lo, hi))
    return Interval(lo.reshape(shape), hi.reshape(shape)), values.reshape(shape)


def holds(lo: Any, hi: Any, value: Fraction) -> bool:
    """Whether a real number lies within float64 bounds, compared exactly."""
    above = lo == -math.inf or (lo != math.inf and Fraction(float(lo)) <= value)
    below = hi == math.inf or (hi != -math.inf and value <= Fraction(float(hi)))
    return above and below


def assert_holds(bounds: Interval, values: np.ndarray) -> None:
    assert not np.isnan(bounds.lo).any() and not np.isnan(bounds.hi).any()
    assert bounds.shape == values.shape
    for index in np.ndindex(bounds.shape):
        assert holds(bounds.lo[index], bounds.hi[index], values[index]), (bounds.lo[index], bounds.hi[index])


def fractions(values: np.ndarray) -> np.ndarray:
    out = np.empty(values.shape, dtype=object)
    for index in np.ndindex(values.shape):
        out[index] = Fraction(float(values[index]))
    return out


@pytest.mark.parametrize("name", ["add", "subtract", "multiply"])
@settings(max_examples=150)
@given(data=st.data())
def test_elementwise_results_lie_inside(name: str, data: st.DataObject) -> None:
    (a, x), (b, y) = data.draw(boxes((1, 2))), data.draw(boxes((1, 2)))
    with xp.context():
        bounds = getattr(xp, name)(a, b)
        floating = getattr(np, name)(x, y)
        assert bounds.contains(floating).all()
    assert_holds(bounds, getattr(np, name)(fractions(x), fractions(y)))


@settings(max_examples=150)
@given(boxes((1, 2)), boxes((1, 2)))
@example(
    (Interval(np.full((1, 2), -1.0), np.full((1, 2), -1.0)),) * 2, (Interval(np.zeros((1, 2)), np.zeros((1, 2))),) * 2
)
def test_quotients_lie_inside_and_a_division_through_zero_is_the_whole_line(
    first: tuple[Interval, Any], second: tuple[Interval, Any]
) -> None:
    (a, x), (b, y) = first, second
    with xp.context():
        bounds = xp.divide(a, b)
    through = (b.lo <= 0) & (b.hi >= 0)
    assert (bounds.lo[through] == -np.inf).all() and (bounds.hi[through] == np.inf).all()
    for index in zip(*np.nonzero(~through), strict=True):
        assert holds(bounds.lo[index], bounds.hi[index], Fraction(float(x[index])) / Fraction(float(y[index])))
        assert not (bounds.lo[index] == bounds.hi[index] == np.inf)


@settings(max_examples=150)
@given(st.integers(0, 4), st.data())
def test_matrix_products_lie_inside(inner: int, data: st.DataObject) -> None:
    (a, x), (b, y) = data.draw(boxes((2, inner))), data.draw(boxes((inner, 2)))
    with xp.context():
        bounds = xp.matmul(a, b)
    exact = np.array(
        [[sum((p * q for p, q in zip(r, c, strict=True)), Fraction(0)) for c in fractions(y).T] for r in fractions(x)],
        dtype=object,
    ).reshape(2, 2)
    assert_holds(bounds, exact)


@settings(max_examples=100)
@given(boxes((2, 3)), st.sampled_from([-1, -2, (-2, -1)]))
def test_sums_lie_inside(box: tuple[Interval, Any], axis: Any) -> None:
    a, x = box
    with xp.context():
        bounds = xp.sum(a, axis)
        assert bounds.contains(np.add.reduce(x, axis, keepdims=True)).all() or not np.isfinite(np.abs(x).sum())
    assert_holds(bounds, np.asarray(np.add.reduce(fractions(x), axis, keepdims=True)))


@given(boxes((3, 2)), st.lists(st.integers(0, 3), min_size=3, max_size=3))
def test_scattered_rows_lie_inside(box: tuple[Interval, Any], rows: list[int]) -> None:
    a, x = box
    with xp.context():
        bounds = xp.scatter_add(a, np.array(rows), 4)
    expected = np.full((4, 2), Fraction(0), dtype=object)
    for i, row in enumerate(rows):
        expected[row] += fractions(x)[i]
    assert_holds(bounds, expected)


@given(boxes((2, 3)), st.sampled_from([-1, -2]))
def test_maxima_lie_inside_and_are_attained(box: tuple[Interval, Any], axis: int) -> None:
    a, x = box
    bounds = xp.max(a, axis)
    assert bounds.contains(x.max(axis, keepdims=True)).all()
    assert np.isin(bounds.lo, a.lo).all() and np.isin(bounds.hi, a.hi).all()


def inside(lo: float, hi: float, value: Any) -> bool:
    return mpf(lo) <= value <= mpf(hi)


TRUE: dict[str, Callable[[Any], Any]] = {"exp": mp.exp, "tanh": mp.tanh, "sqrt": mp.sqrt}


@pytest.mark.parametrize("name", list(TRUE))
@settings(max_examples=150)
@given(data=st.data())
def test_functions_lie_inside(name: str, data: st.DataObject) -> None:
    numbers = st.one_of(st.floats(-750, 720), st.floats(-30, 30), st.sampled_from([0.0, -0.0, -745.2, 709.79, 5e-324]))
    if name == "sqrt":
        numbers = FINITE.map(abs)
    values = np.array(data.draw(st.lists(numbers, min_size=2, max_size=2)))
    box = Interval(np.full(2, values.min()), np.full(2, values.max()))
    with xp.context(), mp.workdps(60):
        bounds = getattr(xp, name)(box)
        assert bounds.contains(getattr(np, name)(values)).all()
        for value in values:
            true = TRUE[name](mpf(value))
            assert inside(bounds.lo[0], bounds.hi[0], true)
        # No wider than 32 units in the last place beyond the ends.
        for end, true in ((bounds.lo[0], TRUE[name](mpf(values.min()))), (bounds.hi[0], TRUE[name](mpf(values.max())))):
            assert abs(mpf(end) - true) <= 32 * mpf(2) ** -53 * abs(true) + mpf(1e-307) or end > 1.79e308


@given(st.floats(0, 5), st.floats(-750, 800))
def test_vectors_of_exp_lie_inside_as_well(width: float, start: float) -> None:
    """NumPy computes long arrays with other instructions than short ones."""
    values = np.linspace(start, start + width, 64)
    with xp.context():
        bounds, floating = xp.exp(Interval(values, values)), np.exp(values)
        assert bounds.contains(floating).all() and (bounds.lo < np.inf).all() and (bounds.lo >= 0).all()


# --- masks, zeros, overflow -----------------------------------------------------------------------


def point(*values: float) -> Interval:
    array = np.array([values], dtype=np.float64)
    return Interval(array, array)


def box(lo: float, hi: float) -> Interval:
    return Interval(np.array([[lo]]), np.array([[hi]]))


def ends(bounds: Interval) -> tuple[float, float]:
    return bounds.lo.item(), bounds.hi.item()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("score", [box(1, 2), box(-_MAX, _MAX), box(0, 0), box(-np.inf, 3)])
def test_what_a_mask_hides_stays_hidden(score: Interval) -> None:
    hidden = point(-np.inf)
    for result in (xp.add(score, hidden), xp.add(hidden, score), xp.divide(hidden, box(1, 2))):
        assert ends(result) == (-np.inf, -np.inf) and xp.hidden(result).all()
    assert ends(xp.multiply(hidden, box(0.5, 2))) == (-np.inf, -np.inf)
    assert ends(xp.multiply(hidden, box(-2, -0.5)))[1] == np.inf
    assert ends(xp.exp(hidden)) == (0, 0)
    assert ends(xp.max(point(-np.inf, 1), -1)) == (1, 1)
    assert ends(IntervalArithmetic(2).round_step(hidden)) == (-np.inf, -np.inf)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_undefined_is_the_whole_line() -> None:
    line = (-np.inf, np.inf)
    hidden = point(-np.inf)
    assert ends(xp.subtract(hidden, hidden)) == line
    assert ends(xp.multiply(point(0), hidden)) == line
    assert ends(xp.multiply(box(0, 1), hidden)) == line
    assert ends(xp.divide(hidden, hidden)) == line
    assert ends(xp.divide(point(0), point(0))) == line
    assert ends(xp.divide(point(1), point(0))) == line
    assert ends(xp.divide(point(1), box(-1, 1))) == line
    assert ends(xp.divide(point(1), box(0, 1))) == line
    assert ends(xp.sqrt(box(-1, 1))) == line
    assert ends(xp.matmul(point(0), hidden)) == line
    assert ends(xp.sum(Interval(np.array([[-np.inf, np.inf]]), np.array([[-np.inf, np.inf]])), -1)) == line


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_overflow_of_finite_numbers_is_no_infinity() -> None:
    large = point(1.5e308)
    assert ends(xp.add(large, large)) == (_MAX, np.inf)
    assert ends(xp.subtract(point(-1.5e308), large)) == (-np.inf, -_MAX)
    assert ends(xp.multiply(large, point(10))) == (_MAX, np.inf)
    assert ends(xp.multiply(large, point(-10))) == (-np.inf, -_MAX)
    assert ends(xp.multiply(box(-np.inf, -1.5e308), point(10))) == (-np.inf, -_MAX)
    assert ends(xp.divide(large, point(0.1))) == (_MAX, np.inf)
    assert not xp.hidden(xp.multiply(large, point(-10))).any()
    for values in ([1.5e308, 1.5e308, -1.5e308], [-1.5e308, 1.5e308, 1.5e308]):
        assert holds(*ends(xp.sum(point(*values), -1)), Fraction(1.5e308))
        column = Interval(np.array(values)[:, None], np.array(values)[:, None])
        assert holds(*ends(xp.matmul(point(1, 1, 1), column)), Fraction(1.5e308))
    lo, hi = ends(xp.exp(point(710.0)))
    assert lo < np.inf and hi == np.inf


def test_underflow_is_not_zero() -> None:
    tiny = point(1e-200)
    assert ends(xp.multiply(tiny, tiny)) == (0, _SMALL)
    assert ends(xp.multiply(tiny, point(-1e-200))) == (-_SMALL, 0)
    assert ends(xp.divide(tiny, point(1e200))) == (0, _SMALL)
    lo, hi = ends(xp.matmul(tiny, tiny))
    assert lo <= 0 < hi
    lo, hi = ends(xp.exp(point(-800.0)))
    assert lo == 0 < hi


def test_a_sum_of_positive_numbers_stays_positive_and_a_zero_row_zero() -> None:
    wide = Interval(np.array([[1e-30, 0.0, 0.0]]), np.array([[1e30, 1.0, 1.0]]))
    assert ends(xp.sum(wide, -1))[0] > 0
    assert ends(xp.sum(point(0, 0), -1)) == (0, 0)
    assert ends(xp.multiply(point(0), box(-1, 1))) == (0, 0)
    assert ends(xp.divide(point(0), box(1, 2))) == (0, 0)


def test_an_empty_sum_is_zero() -> None:
    empty = Interval(np.zeros((2, 0)), np.ones((2, 0)))
    assert ends(xp.sum(Interval(np.zeros((1, 0)), np.zeros((1, 0))), -1)) == (0, 0)
    for right in (empty, Interval(empty.lo, empty.lo)):
        product = xp.matmul(empty, xp.swapaxes(right, -1, -2))
        assert not product.lo.any() and not product.hi.any()
    assert not xp.scatter_add(Interval(np.zeros((0, 2)), np.zeros((0, 2))), np.array([], dtype=int), 3).hi.any()


# --- points ---------------------------------------------------------------------------------------

WHOLE = st.integers(-(2**20), 2**20)


@given(st.lists(WHOLE, min_size=6, max_size=6), st.lists(WHOLE, min_size=6, max_size=6), st.sampled_from([1, 4, 1024]))
def test_whole_numbers_and_short_fractions_stay_points(left: list[int], right: list[int], part: int) -> None:
    scale = part if part == 1 else 1024 // part * part
    a = np.array(left, dtype=np.float64).reshape(2, 3) / (1 if part == 1 else scale)
    b = np.array(right, dtype=np.float64).reshape(3, 2) / (1 if part == 1 else scale)
    product = xp.matmul(xp.constant(as_matrix(a)), xp.constant(as_matrix(b)))
    exact = fractions(a) @ fractions(b)
    if max(abs(value) for value in exact.flat) * scale**2 < 2**50 and np.abs(a).max() * np.abs(b).max() < 2**30:
        assert (product.lo == product.hi).all()
        assert (fractions(product.lo) == exact).all()
    total = xp.sum(xp.constant(as_matrix(a)), -1)
    assert (total.lo == total.hi).all()


def test_large_whole_numbers_stay_points_as_long_as_they_fit() -> None:
    assert ends(xp.matmul(point(94906265.0), point(94906265.0))) == (9007199136250225.0,) * 2
    lo, hi = ends(xp.matmul(point(94906267.0), point(94906267.0)))
    assert lo < hi and holds(lo, hi, Fraction(94906267) ** 2)


def test_exact_steps_stay_points() -> None:
    one_two = xp.constant(parse_matrix("1 2; 3 0.5"))
    assert one_two.lo is one_two.hi
    assert ends(xp.sqrt(point(4))) == (2, 2)
    assert ends(xp.divide(point(3), point(4))) == (0.75, 0.75)
    assert ends(xp.exp(point(0))) == (1, 1)
    assert ends(xp.tanh(point(0)))[0] <= 0 <= ends(xp.tanh(point(0)))[1]
    assert ends(IntervalArithmetic(3).round_step(point(0.125))) == (0.125, 0.125)
    settled = IntervalArithmetic(3).round_step(one_two)
    assert settled.lo is settled.hi
    mixed = Interval(np.array([[1.0, 0.2]]), np.array([[1.0, 0.3]]))
    assert IntervalArithmetic(1).round_step(mixed).hi[0, 0] == IntervalArithmetic(1).round_step(mixed).lo[0, 0] == 1


# --- entering, rounding ---------------------------------------------------------------------------


@given(
    st.decimals(-1000, 1000, allow_nan=False, allow_infinity=False, places=None).filter(
        lambda d: abs(d) > 1e-30 or d == 0
    )
)
def test_a_written_decimal_lies_inside(number: Any) -> None:
    text = f"{number:f}"
    bounds = xp.constant(parse_matrix(text))
    assert holds(bounds.lo.item(), bounds.hi.item(), Fraction(text))
    assert bounds.hi - bounds.lo <= 2 * np.spacing(abs(bounds.hi))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.0000000000000000001", Fraction("1.0000000000000000001")),
        ("9007199254740993", Fraction(9007199254740993)),
        ("1/3", Fraction(1, 3)),
        ("(10^15+0.3)-10^15", Fraction("0.3")),
        ("-(1/3)^3", Fraction(-1, 27)),
        ("(-0.1)^3", Fraction(-1, 1000)),
        ("(-0.1)^-2", Fraction(100)),
        ("0.1*3/0.3", Fraction(1)),
        ("0^3", Fraction(0)),
    ],
)
def test_a_written_expression_lies_inside(text: str, value: Fraction) -> None:
    bounds = xp.constant(parse_matrix(text))
    assert holds(bounds.lo.item(), bounds.hi.item(), value)


@pytest.mark.parametrize(
    ("text", "value"),
    [("√2/2", "sqrt(2)/2"), ("e^-1", "exp(-1)"), ("2^0.5", "sqrt(2)"), ("exp(0.1)*√3", "exp(mpf(1)/10)*sqrt(3)"), ("0.9^(1/3)", "(mpf(9)/10)**(mpf(1)/3)")],
)  # fmt: skip
def test_an_irrational_entry_lies_inside(text: str, value: str) -> None:
    bounds = xp.constant(parse_matrix(text))
    with mp.workdps(60):
        assert inside(
            *ends(Interval(bounds.lo, bounds.hi)), eval(value, {**vars(mp), "sqrt": mp.sqrt, "exp": mp.exp, "mpf": mpf})
        )
    assert bounds.hi - bounds.lo < 1e-14


@settings(max_examples=150)
@given(boxes((2,)), st.integers(0, 15))
def test_every_rounding_lies_inside(interval: tuple[Interval, Any], decimals: int) -> None:
    a, x = interval
    with xp.context():
        settled = IntervalArithmetic(decimals).round_step(a)
    assert settled.contains(x).all()
    for ties in ("away", "even"):
        for near in (0.0, 1e-8):
            assert settled.contains(round_decimal(x, decimals, ties, near)).all()
    for index, value in enumerate(x):
        unit = Fraction(10) ** decimals
        scaled = Fraction(float(value)) * unit
        for rounded in {math.ceil(scaled - Fraction(1, 2)), math.floor(scaled + Fraction(1, 2)), round(scaled)}:
            assert holds(settled.lo[index], settled.hi[index], rounded / unit)


@given(st.integers(-(10**6), 10**6), st.integers(0, 6))
def test_a_rounded_number_stands_for_half_a_unit_on_each_side(digits: int, places: int) -> None:
    value = np.array(digits / 10**places)
    bounds = xp.written(value, places)
    for offset in (Fraction(-1, 2), Fraction(0), Fraction(1, 2)):
        assert holds(bounds.lo, bounds.hi, (digits + offset) / Fraction(10) ** places)
    assert bounds.hi - bounds.lo <= 1.000001 * 10.0**-places
    special = xp.written(np.array([-np.inf, np.nan]), 2)
    assert special.lo.tolist() == [-np.inf, -np.inf] and special.hi.tolist() == [-np.inf, np.inf]


def test_mpmath_agrees_that_bounds_are_not_wider_than_needed() -> None:
    """A chain of steps is within a few units of mpmath's own interval arithmetic."""
    a = Interval(np.array([[0.1, 0.2]]), np.array([[0.3, 0.4]]))
    b = Interval(np.array([[-1.1], [0.7]]), np.array([[-0.9], [0.8]]))
    bounds = xp.matmul(a, b)
    iv.prec = 53
    expected = iv.mpf([0.1, 0.3]) * iv.mpf([-1.1, -0.9]) + iv.mpf([0.2, 0.4]) * iv.mpf([0.7, 0.8])
    assert float(expected.a) == pytest.approx(bounds.lo.item(), abs=1e-14)
    assert float(expected.b) == pytest.approx(bounds.hi.item(), abs=1e-14)


def test_a_large_product_made_piece_by_piece_lies_inside() -> None:
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 40, 40)), random.normal(size=(2, 40, 40))
    bounds = xp.matmul(Interval(a - 1e-3, a + 1e-3), Interval(b - 1e-3, b + 1e-3))
    exact = fractions(a[0]) @ fractions(b[0])
    assert_holds(Interval(bounds.lo[0], bounds.hi[0]), exact)
    assert (bounds.hi - bounds.lo < 0.4).all()
