"""Guaranteed bounds: the true result, and every result that an allowed rounding leads to, lies inside.

Each cell is a pair lo ≤ hi. A bound moves outwards only where something was rounded off: the error of one
addition is itself a float64 (Knuth's TwoSum; Handbook of Floating-Point Arithmetic, 2nd ed., section 4.3.2),
and small multiples of 2^-10 are multiplied and added exactly. A sum of n terms is widened by its a-priori
error bound (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., eq. 3.5), which holds for every
order of adding, so that what another program computes in float64 lies inside as well.

An infinite bound of a cell with two different bounds means "no bound"; a cell with both bounds at −∞ is −∞,
what a mask hides. An undefined combination (0·∞, x/0) becomes the whole line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from attncli.arithmetic import Indices
from attncli.arithmetic.expression import entry_bounds
from attncli.arithmetic.floating import FLOATING
from attncli.arithmetic.hand import UNSEEN
from attncli.core.matrix import EXACT, BoolArray, FloatArray, Matrix

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The lower and the upper bounds.
Ends: TypeAlias = "tuple[FloatArray, FloatArray]"
#: What is done to either bound alike.
Map: TypeAlias = "Callable[[FloatArray], FloatArray]"

_ONE = np.ones(())
_INFINITY = np.asarray(np.inf)
_EPS = float(np.finfo(np.float64).eps)
_LARGEST = float(np.finfo(np.float64).max)
_TINY = float(np.finfo(np.float64).smallest_normal)
_SUBNORMAL = float(np.finfo(np.float64).smallest_subnormal)
#: Relative widening of exp and tanh: twice the 4 units in the last place that NumPy's vector versions may be off.
_TRANSCENDENTAL = 8 * _EPS
#: The same for sin and cos, absolute: near a zero, what reducing the angle by turns may leave.
_WAVE = 2.0**-60
_TURN = 2 * math.pi
#: Angles from which on sin and cos are not bounded any closer than by −1 and 1.
_FAR = 2.0**30
#: Multiples of 1/2^10 whose sizes add up to 2^33 at most, and whole numbers up to 2^53, are added and multiplied
#: exactly in every order: (steps per unit of a factor, largest size of a sum of products).
_GRIDS = ((np.asarray(1.0), np.asarray(2.0**53)), (np.asarray(2.0**10), np.asarray(2.0**33)))
# Constants as arrays, which NumPy takes up faster than Python's numbers.
#: Distance below which a value is a tie to somebody, twice as wide as `round_decimal` has it: relative, and with the half.
_TIE_RELATIVE = np.asarray(8 * _EPS)
_TIE_ABSOLUTE = np.asarray(0.5 + 2 * UNSEEN)
_ULP = np.asarray(_EPS)
#: Products a matrix product of two inexact operands forms at once, so many that they stay in the cache.
_AT_ONCE = 1 << 14
#: Matrices whose bounds are remembered.
_MOST_ENTERED = 64


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """Bounds cell by cell: lo ≤ value ≤ hi, two float64 arrays of one shape; one and the same array for points."""

    lo: FloatArray
    hi: FloatArray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.lo.shape

    @property
    def ndim(self) -> int:
        return self.lo.ndim

    def contains(self, values: FloatArray) -> BoolArray:
        """Where `values` lies within the bounds."""
        inside: BoolArray = (self.lo <= values) & (values <= self.hi)
        return inside


def _each_end(function: Callable[..., FloatArray]) -> Callable[..., Interval]:
    """A function that keeps order and rounds nothing, on both bounds; points stay points."""

    def on_both(a: Interval, *where: Any) -> Interval:
        lo = function(a.lo, *where)
        return Interval(lo, lo if a.lo is a.hi else function(a.hi, *where))

    return on_both


class IntervalArithmetic:
    """Interval arithmetic on float64 pairs.

    Parameters
    ----------
    decimals : a step that was not written down may have been rounded to so many places (None: never rounded)
    """

    name = "interval"

    positive = staticmethod(_each_end(FLOATING.positive))
    is_positive = staticmethod(_each_end(FLOATING.is_positive))
    max = staticmethod(_each_end(FLOATING.max))
    swapaxes = staticmethod(_each_end(FLOATING.swapaxes))
    take = staticmethod(_each_end(FLOATING.take))
    slice = staticmethod(_each_end(FLOATING.slice))
    repeat = staticmethod(_each_end(FLOATING.repeat))
    reshape = staticmethod(_each_end(FLOATING.reshape))

    def __init__(self, decimals: int | None = None) -> None:
        self.decimals = decimals
        self._entered: dict[int, tuple[Matrix, Interval]] = {}
        self._power = np.asarray(10.0 ** (decimals or 0))
        self._grid = np.asarray(2.0 ** (decimals or 0))

    def constant(self, matrix: Matrix) -> Interval:
        """Bounds of what was written: 0.1 and √2 are not float64 numbers; 3, 0.5 and float64 values are."""
        if matrix.decimals is None and matrix.entries is None:
            return Interval(matrix.values, matrix.values)
        # Marking evaluates the same matrices many times. The matrix is kept with its bounds, so its id is not reused.
        known = self._entered.get(id(matrix))
        if known is None:
            if len(self._entered) >= _MOST_ENTERED:
                self._entered.clear()
            known = self._entered[id(matrix)] = matrix, _written_bounds(matrix)
        return known[1]

    def written(self, values: FloatArray, decimals: int | NDArray[np.int_]) -> Interval:
        """Every number that rounds to the written ones: ± half a unit in the last of `decimals` places."""
        half = 0.5 * 10.0 ** -np.asarray(decimals, dtype=np.float64)
        with np.errstate(invalid="ignore"):
            reach = half + (np.abs(values) + half) * (4 * _EPS)
            lo, hi = np.fmax(values - reach, -np.inf), np.fmin(values + reach, np.inf)
        # A hidden cell stays hidden; a blank one may be anything.
        return Interval(np.where(values == np.inf, values, lo), np.where(values == -np.inf, values, hi))

    def round_step(self, value: Interval) -> Interval:
        """The value, or what rounding it to `decimals` places may make of it, a tie going either way."""
        if self.decimals is None:
            return value
        if value.lo is value.hi and _all(_is_multiple(value.lo, self._grid)):
            return value
        # Both bounds at once: rounding −hi downwards is rounding hi upwards.
        ends = np.empty((2, *value.shape))
        ends[0] = value.lo
        ends[1] = -value.hi
        units = np.multiply(ends, self._power)
        slack = np.abs(units)
        slack *= _TIE_RELATIVE
        slack += _TIE_ABSOLUTE
        units -= slack
        np.ceil(units, units)
        units /= self._power
        # The decimal number itself lies within one float64 of this.
        np.abs(units, slack)
        slack *= _ULP
        units -= slack
        # −hi = ∞ comes out undefined, and stays.
        np.fmin(ends, units, units)
        points = value.lo == value.hi
        if np.count_nonzero(points):
            # Nothing rounds past a decimal number of so many places.
            np.copyto(units, ends, where=points & _is_multiple(ends, self._grid))
        return Interval(units[0], -units[1])

    round_intermediate = round_step

    def context(self) -> AbstractContextManager[None]:
        return np.errstate(all="ignore")

    def matmul(self, a: Interval, b: Interval) -> Interval:
        size = np.matmul(_size(a), _size(b))
        terms = a.shape[-1]
        if a.lo is a.hi and b.lo is b.hi:
            lo = hi = np.matmul(a.lo, b.lo)
            if terms == 0 or _is_exact(a.lo, b.lo, size):
                return Interval(lo, lo)
        elif b.lo is b.hi:
            lo, hi = _times_points(a, b.lo)
        elif a.lo is a.hi:
            lo, hi = _times_points(self.swapaxes(b, -1, -2), a.lo.swapaxes(-1, -2))
            lo, hi = lo.swapaxes(-1, -2), hi.swapaxes(-1, -2)
        else:
            lo, hi = _inner_hulls(a, b)
        # n products and n − 1 additions on either side, and what underflows.
        error = size * ((terms + 3) * _EPS)
        error += terms * _SUBNORMAL
        if _holds_zero(size):
            # A size of 0 may be an underflow, unless a factor of every product is 0.
            error = _put(error, 0.0, np.matmul(~_is_zero(a), ~_is_zero(b)) == 0)
        return _unbounded_where_undefined(lo - error, hi + error)

    def sum(self, a: Interval, axis: int | tuple[int, ...]) -> Interval:
        axes = (axis,) if isinstance(axis, int) else axis
        return _total(a, lambda x: FLOATING.sum(x, axis), math.prod(a.shape[i] for i in axes))

    def scatter_add(self, a: Interval, rows: Indices, count: int) -> Interval:
        return _total(a, lambda x: FLOATING.scatter_add(x, rows, count), a.shape[-2])

    def add(self, a: Interval, b: Interval) -> Interval:
        lo, error = _two_sum(a.lo, b.lo)
        if a.lo is a.hi and b.lo is b.hi:
            if not np.count_nonzero(error):
                return Interval(lo, lo)
            hi, error_hi = lo, error
        else:
            hi, error_hi = _two_sum(a.hi, b.hi)
        # The true sum is the computed one plus the error, so a bound stays where the error points inwards.
        low = _put(np.nextafter(lo, -np.inf), lo, error >= 0)
        high = _put(np.nextafter(hi, np.inf), hi, error_hi <= 0)
        return _with_infinities(low, high, hi, a, b)

    def subtract(self, a: Interval, b: Interval) -> Interval:
        return self.add(a, _negative(b))

    def multiply(self, a: Interval, b: Interval) -> Interval:
        if a.lo is a.hi and b.lo is b.hi:
            lo = hi = a.lo * b.lo
            if _is_exact(a.lo, b.lo, np.abs(lo)):
                return Interval(lo, lo)
        else:
            lo, hi = _hull(a, b, np.multiply)
        low, high = _outwards(lo, hi, a, b)
        if _holds_zero(lo) or _holds_zero(hi):
            nothing = ((lo == 0) & (hi == 0)) & (_is_zero(a) | _is_zero(b))
            low, high = _put(low, 0.0, nothing), _put(high, 0.0, nothing)
        return _with_infinities(low, high, hi, a, b)

    def divide(self, a: Interval, b: Interval) -> Interval:
        if a.lo is a.hi and b.lo is b.hi:
            lo = hi = a.lo / b.lo
            # Multiplying back gives a, exactly.
            if _is_exact(lo, b.lo, np.abs(a.lo)) and _all(lo * b.lo == a.lo) and not _holds_zero(b.lo):
                return Interval(lo, lo)
        else:
            lo, hi = _hull(a, b, np.divide)
        bounds = _with_infinities(*_outwards(lo, hi, a, b), hi, a, b)
        through = (b.lo <= 0) & (b.hi >= 0)
        if np.count_nonzero(through):
            return self.where(through, Interval(-_INFINITY, _INFINITY), bounds)
        return bounds

    def exp(self, a: Interval) -> Interval:
        """e^a. The absolute widening covers results so small that they are flushed to zero."""
        lo = np.minimum(np.exp(a.lo), _LARGEST)
        lo *= 1 - _TRANSCENDENTAL
        lo -= _TINY
        lo = np.maximum(lo, 0.0)
        hi = np.exp(a.hi)
        hi *= 1 + _TRANSCENDENTAL
        hi += _TINY
        lo = _put(lo, 1.0, a.lo == 0)
        hi = _put(hi, 1.0, a.hi == 0)
        hi = _put(hi, 0.0, a.hi == -np.inf)
        return Interval(lo, hi)

    def log(self, a: Interval) -> Interval:
        """ln a, where a is a size that is never negative: a bound below 0 stands for 0."""
        lo, hi = np.log(np.maximum(a.lo, 0.0)), np.log(np.maximum(a.hi, 0.0))
        low = lo - (np.abs(lo) * _TRANSCENDENTAL + _TINY)
        high = hi + (np.abs(hi) * _TRANSCENDENTAL + _TINY)
        return Interval(_put(low, 0.0, a.lo == 1), _put(high, 0.0, a.hi == 1))

    def tanh(self, a: Interval) -> Interval:
        return _sigmoid(a, np.tanh)

    def erf(self, a: Interval) -> Interval:
        return _sigmoid(a, FLOATING.erf)

    def sin(self, a: Interval) -> Interval:
        return _wave(a, np.sin, 0.25, 0.0)

    def cos(self, a: Interval) -> Interval:
        return _wave(a, np.cos, 0.0, 1.0)

    def sqrt(self, a: Interval) -> Interval:
        """√a; the whole line where a may be negative."""
        lo, hi = np.sqrt(a.lo), np.sqrt(a.hi)
        low, high = np.nextafter(lo, 0.0), np.nextafter(hi, np.inf)
        if a.lo is a.hi and _is_exact(lo, lo, a.lo) and _all(lo * lo == a.lo):
            return Interval(lo, lo)
        negative = a.lo < 0
        if np.count_nonzero(negative):
            return Interval(np.where(negative, -np.inf, low), np.where(negative, np.inf, high))
        return Interval(low, high)

    def where(self, condition: BoolArray, a: Interval, b: Interval) -> Interval:
        lo = np.where(condition, a.lo, b.lo)
        return Interval(lo, lo if a.lo is a.hi and b.lo is b.hi else np.where(condition, a.hi, b.hi))

    def concatenate(self, parts: Sequence[Interval], axis: int) -> Interval:
        lo = np.concatenate([part.lo for part in parts], axis)
        if all(part.lo is part.hi for part in parts):
            return Interval(lo, lo)
        return Interval(lo, np.concatenate([part.hi for part in parts], axis))

    def hidden(self, a: Interval) -> BoolArray:
        marks: BoolArray = np.equal(a.hi, -np.inf)
        return marks

    def plain(self, a: Interval) -> FloatArray:
        return a.lo if a.lo is a.hi else a.lo + (a.hi - a.lo) / 2


def _sigmoid(a: Interval, function: Map) -> Interval:
    """Bounds of a function that rises from −1 to 1 and has the sign of its argument."""
    lo, hi = function(a.lo), function(a.hi)
    low = lo - (np.abs(lo) * _TRANSCENDENTAL + _TINY)
    high = hi + (np.abs(hi) * _TRANSCENDENTAL + _TINY)
    low, high = np.where(a.lo >= 0, np.maximum(low, 0.0), low), np.where(a.hi <= 0, np.minimum(high, 0.0), high)
    return Interval(np.clip(low, -1.0, 1.0), np.clip(high, -1.0, 1.0))


def _wave(a: Interval, function: Map, peak: float, at_zero: float) -> Interval:
    """Bounds of sin or cos: at the ends, unless a peak or a trough lies between.

    Parameters
    ----------
    peak : where a maximum is, in turns of 2π; the minima are half a turn away
    """
    first, last = function(a.lo), function(a.hi)
    low = np.minimum(first, last) - (_TRANSCENDENTAL * np.maximum(np.abs(first), np.abs(last)) + _WAVE)
    high = np.maximum(first, last) + (_TRANSCENDENTAL * np.maximum(np.abs(first), np.abs(last)) + _WAVE)
    begin, end = a.lo / _TURN - peak, a.hi / _TURN - peak
    # A peak that may lie just outside is taken to lie inside.
    slack = (np.abs(begin) + np.abs(end) + 1.0) * (4 * _EPS)
    begin, end = begin - slack, end + slack
    far = ~(np.maximum(np.abs(a.lo), np.abs(a.hi)) < _FAR)
    high = np.where((np.floor(end) >= np.ceil(begin)) | far, 1.0, np.minimum(high, 1.0))
    low = np.where((np.floor(end - 0.5) >= np.ceil(begin - 0.5)) | far, -1.0, np.maximum(low, -1.0))
    zero = (a.lo == 0) & (a.hi == 0)
    return Interval(np.where(zero, at_zero, low), np.where(zero, at_zero, high))


def _all(marks: BoolArray) -> bool:
    return bool(np.count_nonzero(marks) == marks.size)


def _put(target: FloatArray, value: FloatArray | float, where: BoolArray) -> FloatArray:
    """`target` with `value` in the marked cells, in place unless NumPy made it a bare number."""
    if not isinstance(target, np.ndarray):
        return np.where(where, value, target)
    np.copyto(target, value, where=where)
    return target


def _negative(a: Interval) -> Interval:
    lo = -a.hi
    return Interval(lo, lo if a.lo is a.hi else -a.lo)


def _size(a: Interval) -> FloatArray:
    """The largest absolute value in each cell."""
    if a.lo is a.hi:
        return np.abs(a.lo)
    return np.maximum(-a.lo, a.hi)


def _is_multiple(values: FloatArray, per_unit: FloatArray) -> BoolArray:
    """Where a value is a multiple of 1/per_unit; true for infinities."""
    scaled = values * per_unit
    marks: BoolArray = np.rint(scaled) == scaled
    return marks


def _written_bounds(matrix: Matrix) -> Interval:
    """Bounds of the numbers that were written, cell by cell."""
    values = matrix.values
    places = np.full(values.shape, EXACT) if matrix.decimals is None else matrix.decimals
    exact = _is_written_exactly(values, places)
    if _all(exact):
        return Interval(values, values)
    lo = np.where(exact, values, np.nextafter(values, -np.inf))
    hi = np.where(exact, values, np.nextafter(values, np.inf))
    if matrix.entries is not None:
        for index in np.flatnonzero(~exact & (places == EXACT)):
            lo.flat[index], hi.flat[index] = entry_bounds(matrix.entries[index])
    return Interval(lo, hi)


def _is_written_exactly(values: FloatArray, places: NDArray[np.int_]) -> BoolArray:
    """Where the float64 is the very number that was written with so many decimals.

    A decimal number of d places is a float64 only if it is a multiple of 2^-d; a float64 that is, is the number
    itself, for another one as near would have more than d places (as long as value·10^d fits into 53 bits).
    """
    grid = np.exp2(np.maximum(places, 0).astype(np.float64))
    fits = np.abs(values) * 10.0 ** np.maximum(places, 0) < 2.0**53
    marks: BoolArray = (_is_multiple(values, grid) & fits & (places != EXACT)) | np.isinf(values)
    return marks


def _is_exact(a: FloatArray, b: FloatArray, size: FloatArray) -> bool:
    """Whether float64 arithmetic gets every product of a and b exactly; `size`: absolute products, summed up."""
    for per_unit, limit in _GRIDS:
        if _all(size <= limit) and _all(_is_multiple(a, per_unit)) and _all(_is_multiple(b, per_unit)):
            return True
    return False


def _holds_zero(values: FloatArray) -> bool:
    return bool(np.count_nonzero(values) != values.size)


def _is_zero(a: Interval) -> BoolArray:
    zeros: BoolArray = (a.lo == 0) & (a.hi == 0)
    return zeros


def _hull(a: Interval, b: Interval, function: Callable[[FloatArray, FloatArray], FloatArray]) -> Ends:
    """Smallest and largest value of a product or quotient, from its corners; NaN anywhere stays NaN."""
    if b.lo is b.hi:
        first, second = function(a.lo, b.lo), function(a.hi, b.lo)
        return np.minimum(first, second), np.maximum(first, second)
    if a.lo is a.hi:
        first, second = function(a.lo, b.lo), function(a.lo, b.hi)
        return np.minimum(first, second), np.maximum(first, second)
    low, first, second, high = function(a.lo, b.lo), function(a.lo, b.hi), function(a.hi, b.lo), function(a.hi, b.hi)
    lo = np.minimum(np.minimum(low, high), np.minimum(first, second))
    hi = np.maximum(np.maximum(low, high), np.maximum(first, second))
    return lo, hi


def _times_points(a: Interval, b: FloatArray) -> Ends:
    """Bounds (not yet widened) of a matrix product with a matrix of points: its signs say which bound counts."""
    above, below = np.maximum(b, 0.0), np.minimum(b, 0.0)
    lo = np.matmul(a.lo, above) + np.matmul(a.hi, below)
    hi = np.matmul(a.hi, above) + np.matmul(a.lo, below)
    return lo, hi


def _inner_hulls(a: Interval, b: Interval) -> Ends:
    """Bounds (not yet widened) of a matrix product, from the bounds of every product in it."""
    cells = math.prod(np.broadcast_shapes(a.shape[:-2], b.shape[:-2])) * a.shape[-2] * b.shape[-1]
    step = max(1, _AT_ONCE // max(cells, 1))
    lo = hi = np.zeros(())
    for start in range(0, max(a.shape[-1], 1), step):
        part = slice(start, start + step)
        left = Interval(a.lo[..., part, None], a.hi[..., part, None])
        right = Interval(b.lo[..., None, part, :], b.hi[..., None, part, :])
        low, high = _hull(left, right, np.multiply)
        lo, hi = lo + np.add.reduce(low, -2), hi + np.add.reduce(high, -2)
    return lo, hi


def _total(a: Interval, total: Map, terms: int) -> Interval:
    """Sums of cells, `total` saying which; nothing underflows in a sum."""
    lo = total(a.lo)
    if terms < 2:
        return Interval(lo, lo if a.lo is a.hi else total(a.hi))
    size = total(np.abs(a.lo))
    if a.lo is a.hi and _is_exact(a.lo, _ONE, size):
        return Interval(lo, lo)
    factor = (terms + 2) * _EPS
    low = lo - size * factor
    if a.lo is a.hi:
        return _unbounded_where_undefined(low, lo + size * factor)
    # Each bound by its own terms: a sum of positive numbers stays positive.
    return _unbounded_where_undefined(low, total(a.hi) + total(np.abs(a.hi)) * factor)


def _unbounded_where_undefined(low: FloatArray, high: FloatArray) -> Interval:
    """Overflow on the way to a sum leaves +∞ − ∞ and what lies beyond: no bound."""
    if not _all(np.isfinite(high - low)):
        low, high = _put(low, -np.inf, ~(low < np.inf)), _put(high, np.inf, ~(high > -np.inf))
    return Interval(low, high)


def _two_sum(a: FloatArray, b: FloatArray) -> Ends:
    """a + b and the exact error of that; NaN where the sum overflows."""
    total = a + b
    added = total - a
    return total, (a - (total - added)) + (b - added)


def _outwards(lo: FloatArray, hi: FloatArray, a: Interval, b: Interval) -> Ends:
    """Bounds of a product or quotient, rounded outwards; where its sign is known, not beyond 0."""
    low, high = np.nextafter(lo, -np.inf), np.nextafter(hi, np.inf)
    if not _holds_zero(lo) and not _holds_zero(hi):
        return low, high
    positive = ((a.lo >= 0) & (b.lo >= 0)) | ((a.hi <= 0) & (b.hi <= 0))
    negative = ((a.lo >= 0) & (b.hi <= 0)) | ((a.hi <= 0) & (b.lo >= 0))
    low = _put(low, 0.0, positive & (low < 0))
    high = _put(high, 0.0, negative & (high > 0))
    return low, high


def _with_infinities(low: FloatArray, high: FloatArray, hi: FloatArray, a: Interval, b: Interval) -> Interval:
    """Bounds with the infinities put right.

    The neighbour of an overflowed inner bound is the largest float64, which bounds it. An operand that is −∞
    itself (hidden by a mask) makes a result that is −∞ itself. What is undefined has no bound.
    """
    if not _all(np.isfinite(high - low)):
        infinite = (hi == -np.inf) & ((a.hi == -np.inf) | (b.hi == -np.inf) | (a.lo == np.inf) | (b.lo == np.inf))
        high = _put(high, -np.inf, infinite)
        low, high = _put(low, -np.inf, np.isnan(low)), _put(high, np.inf, np.isnan(high))
        if _all(low == high):
            return Interval(low, low)
    return Interval(low, high)
