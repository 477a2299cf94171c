"""How a person with a calculator and a notebook page works: every written line is rounded, and the rounded line goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Context, Decimal

import numpy as np

from attncli.arithmetic import Arithmetic, Indices, Value
from attncli.arithmetic.floating import Floating
from attncli.arithmetic.rounding import ROUNDINGS, round_decimal
from attncli.core.message import Message, unknown

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

    def recording(self, cells: Sequence[int]) -> Arithmetic:
        return self

    def round_step(self, value: Value) -> Value:
        return round_decimal(value, self.decimals, self.rounding, unseen(self.decimals))

    def matmul(self, a: Value, b: Value) -> Value:
        value = super().matmul(a, b)
        if self.decimals <= _MOST_DECIMALS:
            return value
        heads = value.shape[:-2]
        rows, columns = np.broadcast_to(a, (*heads, *a.shape[-2:])), np.broadcast_to(b, (*heads, *b.shape[-2:]))

        def products(place: tuple[int, ...]) -> Iterable[Decimal]:
            left, right = rows[place[:-1]], columns[place[:-2]][..., place[-1]]
            return (_WIDE.multiply(_read(x), _read(y)) for x, y in zip(left, right, strict=True))

        return self._exact(value, super().matmul(np.abs(a), np.abs(b)), a.shape[-1], products)

    def sum(self, a: Value, axis: int | tuple[int, ...]) -> Value:
        value = super().sum(a, axis)
        if self.decimals <= _MOST_DECIMALS:
            return value
        axes = {summed % a.ndim for summed in ([axis] if isinstance(axis, int) else axis)}

        def terms(place: tuple[int, ...]) -> Iterable[Decimal]:
            part = a[tuple([slice(None) if i in axes else at for i, at in enumerate(place)])]
            return map(_read, part.ravel())

        return self._exact(value, super().sum(np.abs(a), axis), a.size // max(1, value.size), terms)

    def add(self, a: Value, b: Value) -> Value:  # type: ignore[override]
        return self._two(np.add(a, b), a, b)

    def subtract(self, a: Value, b: Value) -> Value:  # type: ignore[override]
        return self._two(np.subtract(a, b), a, -b)

    def scatter_add(self, a: Value, rows: Indices, count: int) -> Value:
        value = super().scatter_add(a, rows, count)
        if self.decimals <= _MOST_DECIMALS or rows.ndim != 1:
            return value

        def terms(place: tuple[int, ...]) -> Iterable[Decimal]:
            return map(_read, a[(*place[:-2], np.flatnonzero(rows == place[-2]), place[-1])])

        return self._exact(value, super().scatter_add(np.abs(a), rows, count), len(rows), terms)

    def _two(self, value: Value, a: Value, b: Value) -> Value:
        if self.decimals <= _MOST_DECIMALS:
            return value
        left, right = np.broadcast_to(a, value.shape), np.broadcast_to(b, value.shape)
        return self._exact(
            value, np.abs(left) + np.abs(right), 2, lambda place: (_read(left[place]), _read(right[place]))
        )

    def _exact(
        self, value: Value, size: Value, count: int, terms: Callable[[tuple[int, ...]], Iterable[Decimal]]
    ) -> Value:
        """The sums, exact where float64 cannot tell on which side of a tie they lie.

        Parameters
        ----------
        size : the same sums with every term positive
        count : how many terms each of them has
        terms : the terms of the sum at a place
        """
        with np.errstate(all="ignore"):
            scaled = np.abs(value) * 10.0**self.decimals
            doubtful = np.abs(scaled - np.floor(scaled) - 0.5) <= size * 10.0**self.decimals * _EPS * (count + 1)
        places = np.argwhere(doubtful & np.isfinite(value))
        if not 0 < len(places) * count <= _MOST_TERMS:
            return value
        value = np.array(value)
        for place in map(tuple, places):
            value[place] = float(_sum(terms(place)))
        return value


def _read(number: float) -> Decimal:
    """The decimal number that a float64 stands for."""
    return Decimal(f"{number:.{_CERTAIN}g}")


def _sum(terms: Iterable[Decimal]) -> Decimal:
    total = Decimal(0)
    for term in terms:
        total = _WIDE.add(total, term)
    return total
