"""Guaranteed bounds: the true result, and every result that an allowed rounding leads to, lies inside.

Each cell is a pair lo ≤ hi. Sums, products and quotients are rounded outwards by one float64;
a sum of n terms is widened by its a-priori error bound (Higham, Accuracy and Stability of
Numerical Algorithms, 2nd ed., eq. 3.5). Transcendental functions are widened by more than NumPy's
published error. An undefined combination (0·∞) becomes the whole line.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from attncli.arithmetic import Arithmetic, Indices, Value
from attncli.arithmetic.floating import FLOATING
from attncli.arithmetic.rounding import round_decimal
from attncli.matrix import BoolArray, FloatArray, Matrix

_EPS = float(np.finfo(np.float64).eps)
#: Float64 neighbours that a result of exp or tanh is widened by on each side.
_ULPS = 3
#: Products a matrix product may form at once; larger ones go column by column of the inner axis.
_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """Bounds cell by cell: lo ≤ value ≤ hi, two float64 arrays of one shape."""

    lo: FloatArray
    hi: FloatArray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.lo.shape

    @property
    def ndim(self) -> int:
        return self.lo.ndim

    def contains(self, values: Any) -> BoolArray:
        """Where `values` lies within the bounds."""
        inside: BoolArray = (self.lo <= values) & (values <= self.hi)
        return inside


def _down(values: FloatArray, times: int = 1) -> FloatArray:
    for _ in range(times):
        values = np.nextafter(values, -np.inf)
    return values


def _up(values: FloatArray, times: int = 1) -> FloatArray:
    for _ in range(times):
        values = np.nextafter(values, np.inf)
    return values


def _outward(lo: FloatArray, hi: FloatArray, times: int = 1) -> Interval:
    """Bounds moved outwards; an infinite end stays, an undefined one becomes infinite."""
    low = np.where(np.isnan(lo), -np.inf, np.where(np.isinf(lo), lo, _down(lo, times)))
    high = np.where(np.isnan(hi), np.inf, np.where(np.isinf(hi), hi, _up(hi, times)))
    # A finite overflow is unbounded on the outer side only: +inf as a lower bound would be a lie.
    return Interval(low, high)


def _hull(parts: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest of the candidates; NaN anywhere stays NaN."""
    lo, hi = parts[0], parts[0]
    for part in parts[1:]:
        lo, hi = np.minimum(lo, part), np.maximum(hi, part)
    return lo, hi


def _products(a: Interval, b: Interval) -> tuple[FloatArray, FloatArray]:
    lo, hi = _hull([a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi])
    # An overflowed product of finite numbers: its inner bound is the largest float64, not infinity.
    finite = np.isfinite(a.lo) & np.isfinite(a.hi) & np.isfinite(b.lo) & np.isfinite(b.hi)
    largest = np.finfo(np.float64).max
    return np.where(finite & (lo == np.inf), largest, lo), np.where(finite & (hi == -np.inf), -largest, hi)


class IntervalArithmetic:
    """Interval arithmetic on float64 pairs.

    Parameters
    ----------
    decimals : a step that was not written down may have been rounded to so many places (None: never rounded)
    """

    name = "interval"

    def __init__(self, decimals: int | None = None) -> None:
        self.decimals = decimals

    def enter(self, matrix: Matrix) -> Interval:
        """Bounds of what was written: 0.1 and √2 are not float64 numbers, whole numbers are."""
        values = matrix.values
        if matrix.decimals is None and matrix.entries is None:
            return Interval(values, values)
        exact = (values == np.rint(values)) & (np.abs(values) < 2.0**53)
        bounds = _outward(values, values, 4)
        return Interval(np.where(exact, values, bounds.lo), np.where(exact, values, bounds.hi))

    def written(self, values: FloatArray, decimals: Any) -> Interval:
        """Every number that rounds to the written ones: ± half a unit in the last of `decimals` places."""
        half = 0.5 * 10.0 ** -np.asarray(decimals, dtype=np.float64)
        return _outward(values - half, values + half, 2)

    def settle(self, value: Interval) -> Interval:
        if self.decimals is None:
            return value
        lo = np.minimum(value.lo, round_decimal(value.lo, self.decimals, "floor"))
        hi = np.maximum(value.hi, round_decimal(value.hi, self.decimals, "ceil"))
        return Interval(lo, hi)

    aside = settle

    def recording(self, cells: int) -> Arithmetic:
        return self

    def context(self) -> AbstractContextManager[Any]:
        return np.errstate(all="ignore")

    def matmul(self, a: Interval, b: Interval) -> Interval:
        inner = a.shape[-1]
        cells = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        size = int(np.prod(cells, dtype=np.int64)) * a.shape[-2] * b.shape[-1]
        step = max(1, _AT_ONCE // max(size, 1))
        lo: Any = 0.0
        hi: Any = 0.0
        magnitude: Any = 0.0
        for start in range(0, inner, step):
            left = Interval(a.lo[..., start : start + step, None], a.hi[..., start : start + step, None])
            right = Interval(b.lo[..., None, start : start + step, :], b.hi[..., None, start : start + step, :])
            low, high = _products(left, right)
            lo, hi = lo + low.sum(-2), hi + high.sum(-2)
            magnitude = magnitude + np.maximum(np.abs(low), np.abs(high)).sum(-2)
        if inner == 0:
            zero = np.zeros((*cells, a.shape[-2], b.shape[-1]))
            return Interval(zero, zero)
        return self._widened(lo, hi, magnitude, inner)

    def _widened(self, lo: FloatArray, hi: FloatArray, magnitude: FloatArray, terms: int) -> Interval:
        """A sum of `terms` rounded products, by the a-priori bound on its error."""
        error = magnitude * ((terms + 2) * _EPS) + terms * np.finfo(np.float64).smallest_subnormal
        low = np.where(np.isfinite(lo), lo - error, lo)
        high = np.where(np.isfinite(hi), hi + error, hi)
        zero = (magnitude == 0) & (lo == 0) & (hi == 0)
        bounds = _outward(low, high)
        return Interval(np.where(zero, 0.0, bounds.lo), np.where(zero, 0.0, bounds.hi))

    def sum(self, a: Interval, axis: int | tuple[int, ...]) -> Interval:
        axes = (axis,) if isinstance(axis, int) else axis
        terms = int(np.prod([a.shape[i] for i in axes], dtype=np.int64))
        magnitude = np.maximum(np.abs(a.lo), np.abs(a.hi)).sum(axis, keepdims=True)
        return self._widened(a.lo.sum(axis, keepdims=True), a.hi.sum(axis, keepdims=True), magnitude, terms)

    def add(self, a: Interval, b: Interval) -> Interval:
        return _exact_where(a, b, np.add, _outward(a.lo + b.lo, a.hi + b.hi))

    def subtract(self, a: Interval, b: Interval) -> Interval:
        return _outward(a.lo - b.hi, a.hi - b.lo)

    def multiply(self, a: Interval, b: Interval) -> Interval:
        lo, hi = _products(a, b)
        bounds = _outward(lo, hi)
        zero = ((a.lo == 0) & (a.hi == 0) & np.isfinite(b.lo) & np.isfinite(b.hi)) | (
            (b.lo == 0) & (b.hi == 0) & np.isfinite(a.lo) & np.isfinite(a.hi)
        )
        return Interval(np.where(zero, 0.0, bounds.lo), np.where(zero, 0.0, bounds.hi))

    def divide(self, a: Interval, b: Interval) -> Interval:
        lo, hi = _hull([a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi])
        bounds = _outward(lo, hi)
        through = (b.lo <= 0) & (b.hi >= 0)
        zero = (a.lo == 0) & (a.hi == 0) & ~through
        low = np.where(through, -np.inf, np.where(zero, 0.0, bounds.lo))
        high = np.where(through, np.inf, np.where(zero, 0.0, bounds.hi))
        return Interval(low, high)

    def exp(self, a: Interval) -> Interval:
        bounds = _outward(np.exp(a.lo), np.exp(a.hi), _ULPS)
        largest = np.finfo(np.float64).max
        lo = np.where(np.isinf(bounds.lo) & np.isfinite(a.lo), largest, np.maximum(bounds.lo, 0.0))
        return Interval(np.where(a.lo == 0, np.minimum(lo, 1.0), lo), np.where(np.isneginf(a.hi), 0.0, bounds.hi))

    def sqrt(self, a: Interval) -> Interval:
        bounds = _outward(np.sqrt(a.lo), np.sqrt(a.hi))
        return Interval(np.where(a.lo >= 0, np.maximum(bounds.lo, 0.0), -np.inf), bounds.hi)

    def tanh(self, a: Interval) -> Interval:
        bounds = _outward(np.tanh(a.lo), np.tanh(a.hi), _ULPS)
        return Interval(np.maximum(bounds.lo, -1.0), np.minimum(bounds.hi, 1.0))

    def max(self, a: Interval, axis: int) -> Interval:
        return Interval(np.max(a.lo, axis, keepdims=True), np.max(a.hi, axis, keepdims=True))

    def where(self, condition: BoolArray, a: Value, b: Value) -> Interval:
        (a_lo, a_hi), (b_lo, b_hi) = _ends(a), _ends(b)
        return Interval(np.where(condition, a_lo, b_lo), np.where(condition, a_hi, b_hi))

    def swapaxes(self, a: Interval, first: int, second: int) -> Interval:
        return Interval(a.lo.swapaxes(first, second), a.hi.swapaxes(first, second))

    def take(self, a: Interval, rows: Indices) -> Interval:
        return Interval(FLOATING.take(a.lo, rows), FLOATING.take(a.hi, rows))

    def scatter_add(self, a: Interval, rows: Indices, count: int) -> Interval:
        lo, hi = FLOATING.scatter_add(a.lo, rows, count), FLOATING.scatter_add(a.hi, rows, count)
        magnitude = FLOATING.scatter_add(np.maximum(np.abs(a.lo), np.abs(a.hi)), rows, count)
        return self._widened(lo, hi, magnitude, a.shape[-2])

    def concatenate(self, parts: Sequence[Interval], axis: int) -> Interval:
        return Interval(
            np.concatenate([part.lo for part in parts], axis), np.concatenate([part.hi for part in parts], axis)
        )

    def slice(self, a: Interval, axis: int, start: int, stop: int) -> Interval:
        return Interval(FLOATING.slice(a.lo, axis, start, stop), FLOATING.slice(a.hi, axis, start, stop))

    def repeat(self, a: Interval, count: int, axis: int) -> Interval:
        return Interval(np.repeat(a.lo, count, axis), np.repeat(a.hi, count, axis))

    def reshape(self, a: Interval, shape: tuple[int, ...]) -> Interval:
        return Interval(a.lo.reshape(shape), a.hi.reshape(shape))

    def hidden(self, a: Interval) -> BoolArray:
        return np.isneginf(a.hi)


def _ends(value: Value) -> tuple[Any, Any]:
    return (value.lo, value.hi) if isinstance(value, Interval) else (value, value)


def _exact_where(a: Interval, b: Interval, function: Any, bounds: Interval) -> Interval:
    """Keep a point result where one operand is exactly 0 or infinite: nothing was rounded there."""
    point = (a.lo == a.hi) & (b.lo == b.hi) & ((a.lo == 0) | (b.lo == 0))
    value = function(a.lo, b.lo)
    return Interval(np.where(point, value, bounds.lo), np.where(point, value, bounds.hi))
