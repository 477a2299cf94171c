"""How a person with a calculator and a notebook page works: every written line is rounded, and the rounded line goes on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Context, Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.arithmetic import Indices, Value
from attncli.arithmetic.floating import Floating
from attncli.core.matrix import BoolArray, FloatArray
from attncli.core.message import Message, unknown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


#: Where a tie goes.
ROUNDINGS = ("away", "even")


#: Relative distance within which a value is read as the decimal number beside it. Two decimal numbers of
#: 15 digits are at least 4.5 eps apart, and forming value·10^decimals costs 1 eps.
_NEAR = 3 * float(np.finfo(np.float64).eps)
#: Beyond 10^14 units the distance above says nothing; what is left of a unit does.
_MOST = 0.1
#: So many units below a decimal number, a value that is cut off is that number all the same: sums that nearly cancel lose more.
_CUT = 1e-7
#: From here on every float64 is a whole number.
_WHOLE = 2.0**52


def round_decimal(values: ArrayLike, decimals: int | NDArray[np.int_], ties: str = "away", near: float = 0.0) -> Any:
    """Round to `decimals` places.

    Parameters
    ----------
    values : float64 array or number; infinities and NaN pass through
    decimals : places after the point, 0 to 15, of all numbers or of each
    ties : where a tie goes: "away" from zero (school), "even", "floor" or "ceil"
    near : distance from a tie, in units of the last place kept, that is put down to the computer as well

    Returns
    -------
    float64 array or number
        The float64 nearest to each rounded decimal number; never −0.
    """
    power = 10.0**decimals
    with np.errstate(all="ignore"):
        scaled = np.abs(values) * power
        below = np.floor(scaled)
        rest = scaled - below
        tie = np.abs(rest - 0.5) <= _tolerance(scaled, near)
        whole = below + np.where(tie, _tie_goes_up(below, values, ties), rest > 0.5)
        return _signed(whole, below, scaled, values, power)


def truncate_decimal(values: ArrayLike, decimals: int | NDArray[np.int_]) -> Any:
    """Cut off after `decimals` places; a value a few units below a decimal number counts as that number."""
    power = 10.0**decimals
    with np.errstate(all="ignore"):
        scaled = np.abs(values) * power
        below, nearest = np.floor(scaled), np.rint(scaled)
        whole = np.where(np.abs(scaled - nearest) <= _tolerance(scaled, _CUT), nearest, below)
        return _signed(whole, below, scaled, values, power)


def _signed(
    whole: FloatArray, below: FloatArray, scaled: FloatArray, values: ArrayLike, power: float | NDArray[np.floating]
) -> Any:
    """`whole` units with the sign of `values`; a number of so many places already is itself."""
    size = np.abs(values)
    same = ~(scaled < _WHOLE) | (below / power == size) | ((below + 1) / power == size)
    return np.where(same, values, np.copysign(whole / power, values))[()] + 0.0


def _tolerance(scaled: FloatArray, near: float = 0.0) -> FloatArray:
    """How far from a tie a value may lie and still be one, in units of the last place kept."""
    return np.maximum(np.minimum(scaled * _NEAR, _MOST), near)


def _tie_goes_up(below: FloatArray, values: ArrayLike, ties: str) -> BoolArray | np.bool_:
    """Whether a tie goes away from zero, given the whole units below it."""
    if ties == "away":
        return np.True_
    if ties == "even":
        odd: BoolArray = below % 2 == 1
        return odd
    if ties == "floor":
        return np.signbit(values)
    if ties == "ceil":
        return ~np.signbit(values)
    raise ValueError(f"ties: {ties!r} is none of away, even, floor, ceil")


#: Distance from a tie, in units of the last place kept, that a calculator does not show. On paper
#: 533.21·51.58 + 905.81·34.80 − 590.96·99.88 is 0.075, a tie; in float64 it is 10^-11 less.
UNSEEN = 1e-8
#: Products of numbers with more decimals than these may truly lie so close to a tie. There sums are worked out exactly
#: where float64 cannot tell: terms that nearly cancel leave less of a tie than it holds.
_MOST_DECIMALS = 6
#: Numbers of one result that are worked out exactly, times the terms of each: 20 ms.
_MOST_TERMS = 20_000
#: Digits of products of two float64 and of sums of millions of them.
_WIDE = Context(prec=60)
#: Relative error of a product, and of each addition after it, with room for another order of adding.
_EPS = 2 * float(np.finfo(np.float64).eps)
#: Significant digits that a float64 holds for certain.
_CERTAIN = 15


def unseen(decimals: int) -> float:
    """The distance from a tie that is put down to the computer, in units of the last of `decimals` places."""
    return UNSEEN if decimals <= _MOST_DECIMALS else 0.0


class Hand(Floating):
    """Float64 rounded to `decimals` places after every step.

    Parameters
    ----------
    decimals : places kept
    rounding : "away" (a tie goes away from zero, as taught in school) or "even" (to the even neighbour)

    Raises
    ------
    InputError
        A rounding that does not exist.
    """

    name = "hand"

    def __init__(self, decimals: int, rounding: str = "away") -> None:
        if rounding not in ROUNDINGS:
            raise unknown(Message("The rounding"), rounding, ROUNDINGS)
        self.decimals = decimals
        self.rounding = rounding

    def round_step(self, value: Value) -> Value:
        return round_decimal(value, self.decimals, self.rounding, unseen(self.decimals))

    def matmul(self, a: Value, b: Value) -> Value:
        def products(place: tuple[int, ...]) -> Iterable[Decimal]:
            heads = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
            left = np.broadcast_to(a, (*heads, *a.shape[-2:]))[place[:-1]]
            right = np.broadcast_to(b, (*heads, *b.shape[-2:]))[place[:-2]][..., place[-1]]
            return (_WIDE.multiply(_read(x), _read(y)) for x, y in zip(left, right, strict=True))

        return self._exact(super().matmul, (a, b), a.shape[-1], products)

    def sum(self, a: Value, axis: int | tuple[int, ...]) -> Value:
        axes = (axis,) if isinstance(axis, int) else axis

        def terms(place: tuple[int, ...]) -> Iterable[Decimal]:
            line: list[Any] = list(place)
            for summed in axes:
                line[summed] = slice(None)
            return map(_read, a[tuple(line)].ravel())

        plain, count = super().sum, math.prod([a.shape[i] for i in axes])
        return self._exact(lambda x: plain(x, axis), (a,), count, terms)

    def add(self, a: Value, b: Value) -> Value:  # type: ignore[override]
        def terms(place: tuple[int, ...]) -> Iterable[Decimal]:
            shape = np.broadcast_shapes(a.shape, b.shape)
            return (_read(np.broadcast_to(part, shape)[place]) for part in (a, b))

        return self._exact(np.add, (a, b), 2, terms)

    def subtract(self, a: Value, b: Value) -> Value:  # type: ignore[override]
        return self.add(a, -b)

    def scatter_add(self, a: Value, rows: Indices, count: int) -> Value:
        plain = super().scatter_add
        if rows.ndim != 1:
            return plain(a, rows, count)

        def terms(place: tuple[int, ...]) -> Iterable[Decimal]:
            return map(_read, a[(*place[:-2], np.flatnonzero(rows == place[-2]), place[-1])])

        return self._exact(lambda x: plain(x, rows, count), (a,), len(rows), terms)

    def _exact(
        self,
        function: Callable[..., Value],
        operands: Sequence[Value],
        count: int,
        terms: Callable[[tuple[int, ...]], Iterable[Decimal]],
    ) -> Value:
        """The sums that a function gives, exact where float64 cannot tell on which side of a tie they lie.

        Parameters
        ----------
        count : how many terms each of them has
        terms : the terms of the sum at a place
        """
        value = function(*operands)
        if self.decimals <= _MOST_DECIMALS:
            return value
        size = function(*map(np.abs, operands))  # the same sums with every term positive
        with np.errstate(all="ignore"):
            scaled = np.abs(value) * 10.0**self.decimals
            doubtful = np.abs(scaled - np.floor(scaled) - 0.5) <= size * 10.0**self.decimals * _EPS * (count + 1)
        places = np.argwhere(doubtful & np.isfinite(value))
        if not 0 < len(places) * count <= _MOST_TERMS:
            return value
        value = np.array(value)
        for place in map(tuple, places):
            value[place] = float(reduce(_WIDE.add, terms(place), Decimal(0)))
        return value


def _read(number: float) -> Decimal:
    """The decimal number that a float64 stands for."""
    return Decimal(f"{number:.{_CERTAIN}g}")
