"""Printed numbers, worked with as they stand: decimal numbers of 60 digits, twice as many as any printed one has."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal, getcontext, localcontext

#: To be entered around every calculation with `DECIMALS`. What has no value is NaN.
CONTEXT = Context(prec=60, Emax=10**9, Emin=-(10**9), traps=[])


def rounds_to(value: Decimal, result: Decimal, places: int) -> bool:
    """Whether the value, rounded where the result ends, is the result.

    Parameters
    ----------
    places : where a whole result ends: it is printed without decimals only if it is one
    """
    if not value.is_finite() or not result.is_finite():
        return value == result or (value.is_nan() and result.is_nan())
    exponent = result.as_tuple().exponent
    assert isinstance(exponent, int)
    return value.quantize(Decimal(1).scaleb(exponent or -places), ROUND_HALF_UP) == result


def _difference(a: Decimal, b: Decimal) -> Decimal:
    return a if a == b == Decimal("-Infinity") else a - b  # hidden stays hidden


def _largest(*parts: Decimal) -> Decimal:
    return next((part for part in parts if part.is_nan()), max(parts))


def _tanh(x: Decimal) -> Decimal:
    small = (-2 * abs(x)).exp()
    return ((1 - small) / (1 + small)).copy_sign(x)


def _erf(x: Decimal) -> Decimal:
    """2/√π e^(−x²) Σ 2ⁿ x^(2n+1) / (1·3·5 … (2n+1)), whose terms have one sign."""
    if not x.is_finite() or abs(x) > 12:  # 1 − erf(12) is below 10^−64
        return x if x.is_nan() else Decimal(1).copy_sign(x)
    return 2 * _series(x, lambda n: 2 * x * x / (2 * n + 1)) * (-x * x).exp() / _pi().sqrt()


def _wave(x: Decimal, first: int) -> Decimal:
    """The series of the sine (from x¹ on) or the cosine (from x⁰ on), of what is left after whole turns."""
    if not x.is_finite():
        return Decimal("NaN")
    with localcontext() as context:
        context.prec += max(0, x.adjusted()) + 5
        left = x.remainder_near(2 * _pi())
    return _series(left if first else Decimal(1), lambda n: -left * left / ((2 * n - 1 + first) * (2 * n + first)))


def _pi() -> Decimal:
    """π, by Machin's formula."""
    return 4 * (4 * _arctan_of_inverse(5) - _arctan_of_inverse(239))


def _arctan_of_inverse(x: int) -> Decimal:
    return _series(Decimal(1) / x, lambda n: Decimal(1 - 2 * n) / ((2 * n + 1) * x * x))


def _series(first: Decimal, ratio: Callable[[int], Decimal]) -> Decimal:
    """A series to more digits than are worked with, from its first term and the ratio of term n to the one before it."""
    least = Decimal(1).scaleb(-getcontext().prec - 5)
    term, total, n = first, first, 0
    while abs(term) > least:
        n += 1
        term *= ratio(n)
        total += term
    return total


#: What each kind of term (core/terms.py) does with the numbers of the terms in it.
DECIMALS: Mapping[str, Callable[..., Decimal]] = {
    "sum": lambda *parts: sum(parts, Decimal(0)),
    "product": lambda *parts: math.prod(parts, start=Decimal(1)),
    "difference": _difference,
    "quotient": operator.truediv,
    "negative": operator.neg,
    "exp": Decimal.exp,
    "ln": Decimal.ln,
    "root": Decimal.sqrt,
    "power": operator.pow,
    "max": _largest,
    "positive": lambda a: Decimal(a > 0),
    "tanh": _tanh,
    "erf": _erf,
    "sin": lambda x: _wave(x, 1),
    "cos": lambda x: _wave(x, 0),
}
