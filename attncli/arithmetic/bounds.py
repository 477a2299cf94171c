"""Guaranteed bounds of a number that was written as an expression: √2/2, 1/3, e^-1."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from itertools import product
from typing import TypeAlias

from attncli.arithmetic.expression import Operations, evaluate
from attncli.core.matrix import Expression

#: lo ≤ value ≤ hi
Bounds: TypeAlias = tuple[float, float]

_LINE = (-math.inf, math.inf)
#: Float64 neighbours that a result of exp or a power is moved by; C libraries are within one or two.
_ULPS = 4


def entry_bounds(entry: Expression) -> Bounds:
    """Bounds of the exact value of an expression."""
    bounds: Bounds = evaluate(entry, _BOUNDS)
    return bounds


def _number(text: str) -> Bounds:
    value = float(text)
    # Decimal compares numbers with large exponents without writing them out.
    return (value, value) if Decimal(value) == Decimal(text) else _out(value, value)


def _hull(candidates: Iterable[float]) -> Bounds:
    values = list(candidates)
    return _LINE if any(math.isnan(value) for value in values) else (min(values), max(values))


def _out(lo: float, hi: float, times: int = 1) -> Bounds:
    """Bounds moved outwards by so many float64 numbers; an undefined end is no bound."""
    for _ in range(times):
        lo, hi = math.nextafter(lo, -math.inf), math.nextafter(hi, math.inf)
    return (-math.inf if math.isnan(lo) else lo), (math.inf if math.isnan(hi) else hi)


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _power(base: Bounds, exponent: Bounds) -> Bounds:
    """Bounds of a power, from its corners: with a positive base, exponent · log(base) is largest and smallest there."""
    if base[0] <= 0:
        return _whole_power(base, exponent)
    corners = []
    for x, y in product(base, exponent):
        try:
            corners.append(math.pow(x, y))
        except OverflowError:
            corners.append(math.inf)
    lo, hi = _out(*_hull(corners), _ULPS)
    return max(lo, 0.0), hi


def _whole_power(base: Bounds, exponent: Bounds) -> Bounds:
    """Bounds of a power of a number that may be negative; only whole exponents are known to be real."""
    if exponent[0] != exponent[1] or not exponent[0].is_integer():
        return (0.0, 0.0) if base == (0.0, 0.0) and exponent[0] > 0 else _LINE
    power = exponent[0]
    if power == 0:
        return 1.0, 1.0
    if base[1] >= 0 and power < 0:
        return _LINE
    size = _power_of_size(max(-base[0], base[1]), power), _power_of_size(min(-base[0], abs(base[1])), power)
    lo, hi = _out(min(size), max(size), _ULPS)
    lo = max(lo, 0.0)
    if base[1] >= 0:
        return (-hi if power % 2 else 0.0), hi
    return (-hi, -lo) if power % 2 else (lo, hi)


def _power_of_size(size: float, power: float) -> float:
    try:
        return math.pow(size, power)
    except OverflowError:
        return math.inf


_BOUNDS: Operations = {
    "num": _number,
    "inf": lambda: (math.inf, math.inf),
    "e": lambda: _out(math.e, math.e),
    "pi": lambda: _out(math.pi, math.pi),
    "neg": lambda a: (-a[1], -a[0]),
    "+": lambda a, b: _out(a[0] + b[0], a[1] + b[1]),
    "-": lambda a, b: _out(a[0] - b[1], a[1] - b[0]),
    "*": lambda a, b: _out(*_hull(x * y for x, y in product(a, b))),
    "/": lambda a, b: _LINE if b[0] <= 0 <= b[1] else _out(*_hull(x / y for x, y in product(a, b))),
    "sqrt": lambda a: _LINE if a[0] < 0 else _out(math.sqrt(a[0]), math.sqrt(a[1])),
    "exp": lambda a: _out(_exp(a[0]), _exp(a[1]), _ULPS),
    "^": _power,
}
