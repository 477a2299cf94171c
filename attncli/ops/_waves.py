"""Angles s·p/b^e as numbers that were written down, so that every number system has them in its own way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attncli.core.matrix import EXACT, Entry, Matrix


def angles(
    start: Matrix, count: int, base: Matrix, exponents: Sequence[int], over: int, position_scale: Matrix | None = None
) -> Matrix:
    """Row p: (start + p) · position_scale / base^(e/over) for every exponent e, exactly."""
    rows = [float(start.values) + p for p in range(count)]
    times = 1.0 if position_scale is None else float(position_scale.values)
    divisors = float(base.values) ** (np.array(exponents, dtype=np.float64) / over)
    values = np.array(rows)[:, None] * times / divisors
    (base_entry,), (start_entry,) = base.each(), start.each()
    below = [_power(base_entry, e, over) for e in exponents]
    entries: list[Entry] = []
    for p, row in enumerate(rows):
        above = _number(row) if row.is_integer() else ("+", start_entry, ("num", str(p)))
        if position_scale is not None and times != 1:
            above = ("*", above, *position_scale.each())
        entries.extend(above if power is None else ("/", above, power) for power in below)
    return Matrix(values, np.full(values.shape, EXACT), tuple(entries))


def usual(params: Mapping[str, Any]) -> tuple[list[int], int]:
    """The exponents of a step of angles, as whole numbers over one: 2i/d, 2j/d or i/(d/2 − 1)."""
    count: int = params["pairs"]
    if params["exponents"] == "pairs-minus-one":
        return list(range(count)), max(count - 1, 1)
    return list(range(0, 2 * count, 2)), params["width"]


def _number(value: float) -> Entry:
    return ("num", str(int(value)))


def _power(base: Entry, exponent: int, over: int) -> Entry | None:
    """base^(exponent/over); None where that is 1."""
    if exponent == 0:
        return None
    if exponent == over:
        return base
    return ("^", base, ("/", ("num", str(exponent)), ("num", str(over))))
