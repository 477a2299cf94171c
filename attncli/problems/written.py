"""What a learner wrote for one step, and which numbers it stands for."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from attncli.arithmetic.interval import Interval
from attncli.core.matrix import EXACT, BoolArray, FloatArray, Matrix
from attncli.core.record import Record

#: A number from a program stands for every number this many units in the last place around it; what it lost on the
#: way there is accounted for by the bounds it is held against.
_ULPS = 2


class Written(Record):
    """One written matrix.

    Parameters
    ----------
    values : as written; NaN where blank
    places : decimals each cell was written with; `EXACT` for an expression such as √2/2
    blank : cells left open
    eps : relative precision of the program that wrote it (float32, float64), or None for a person
    """

    values: FloatArray
    places: Any
    blank: BoolArray
    eps: float | None = None

    def key(self) -> tuple[Any, ...]:
        """What tells it from other matrices of its shape."""
        return self.values.tobytes(), self.places.tobytes(), self.blank.tobytes(), self.eps

    def at(self, index: Any) -> Written:
        """The same cells in another arrangement (transposed, reshaped)."""
        return self.changed(values=index(self.values), places=index(self.places), blank=index(self.blank))

    def rounded_to(self, decimals: int) -> Interval:
        """Every number that rounds to the written ones at `decimals` places (or at a program's precision)."""
        known: dict[int, Interval] = self.__dict__.setdefault("_rounded", {})
        if decimals not in known:
            known[decimals] = around(self.values, 0.5 * 10.0**-decimals if self.eps is None else self._near())
        return known[decimals]

    def as_written(self, decimals: int) -> Interval:
        """Every number that rounds to the written ones at the places they were written with, if those are fewer."""
        if self.eps is not None:
            return self.rounded_to(decimals)
        fewer = np.where(self.places == EXACT, decimals, np.minimum(self.places, decimals))
        return around(self.values, 0.5 * 10.0 ** -fewer.astype(np.float64))

    def is_short(self, decimals: int) -> bool:
        """Whether some cell was written with fewer places than asked for."""
        return self.eps is None and has_fewer(self.places, decimals)

    def cut_off(self, decimals: int) -> Interval:
        """Every number of which the written ones are the beginning: 0.66 for 0.669. One with more digits than asked for
        was cut off after those."""
        known: dict[int, Interval] = self.__dict__.setdefault("_cut", {})
        if decimals not in known:
            known[decimals] = self._cut_off(decimals)
        return known[decimals]

    def _cut_off(self, decimals: int) -> Interval:
        places = np.where(self.places == EXACT, decimals, self.places)
        unit = 10.0 ** -places.astype(np.float64)
        lo = np.where(self.values > 0, self.values, self.values - unit)
        hi = np.where(self.values < 0, self.values, self.values + unit)
        return Interval(_outward(lo, -np.inf), _outward(hi, np.inf))

    def _near(self) -> FloatArray:
        near: FloatArray = _ULPS * float(self.eps or 0.0) * np.where(np.isfinite(self.values), np.abs(self.values), 0.0)
        return near


def has_fewer(places: Any, decimals: int) -> bool:
    """Whether some cell was written with fewer places than `decimals`."""
    least = int(places.min(initial=decimals))
    return least < decimals and (least != EXACT or bool(((places != EXACT) & (places < decimals)).any()))


def written(matrix: Matrix, eps: float | None = None) -> Written:
    """What was written, from a matrix read from an answer."""
    values = matrix.values
    places = np.broadcast_to(_EXACT, values.shape) if matrix.decimals is None else matrix.decimals
    blank = _none_blank(values.shape) if matrix.blank is None else matrix.blank
    return Written(values, places, blank, eps)


_EXACT = np.asarray(EXACT)


@lru_cache(maxsize=64)
def _none_blank(shape: tuple[int, ...]) -> BoolArray:
    """No cell left open; one array serves all matrices of a shape."""
    marks: BoolArray = np.zeros(shape, dtype=np.bool_)
    marks.flags.writeable = False
    return marks


#: Widening of half a unit, which is not a float64 itself, and of adding it.
_OUTWARD = 4 * float(np.finfo(np.float64).eps)


def around(values: FloatArray, half: Any) -> Interval:
    """Every number within `half` of the values; what is infinite stands for itself."""
    reach = np.abs(values)
    reach += half
    reach *= _OUTWARD
    reach += half
    lo, hi = values - reach, values + reach
    if np.isnan(hi - lo).any():
        infinite = np.isinf(values)
        lo, hi = np.where(infinite, values, lo), np.where(infinite, values, hi)
    return Interval(lo, hi)


def _outward(values: FloatArray, to: float) -> FloatArray:
    """Two float64 numbers outwards: the half unit is not a float64 itself."""
    moved: FloatArray = np.nextafter(np.nextafter(values, to), to)
    return np.where(np.isinf(values), values, moved)


def meets(one: Interval, other: Interval) -> BoolArray:
    """Where two intervals have a number in common."""
    common: BoolArray = (one.lo <= other.hi) & (other.lo <= one.hi)
    return common
