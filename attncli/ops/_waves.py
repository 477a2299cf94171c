"""Angles p/b^(e/d) as numbers that were written down, so that every number system has them in its own way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attncli.matrix import EXACT, Entry, Matrix


def angles(start: Matrix, count: int, base: Matrix, exponents: Sequence[int], width: int) -> Matrix:
    """Row p: (start + p) / base^(e/width) for every exponent e, exactly."""
    rows = [float(start.values) + p for p in range(count)]
    scale = float(base.values) ** (np.array(exponents, dtype=np.float64) / width)
    values = np.array(rows)[:, None] / scale
    (base_entry,), (start_entry,) = base.each(), start.each()
    below = [_power(base_entry, e, width) for e in exponents]
    entries: list[Entry] = []
    for p, row in enumerate(rows):
        above = _number(row) if row.is_integer() else ("+", start_entry, ("num", str(p)))
        entries.extend(above if power is None else ("/", above, power) for power in below)
    return Matrix(values, np.full(values.shape, EXACT), tuple(entries))


def _number(value: float) -> Entry:
    return ("num", str(int(value)))


def _power(base: Entry, exponent: int, width: int) -> Entry | None:
    """base^(exponent/width); None where that is 1."""
    if exponent == 0:
        return None
    if exponent == width:
        return base
    return ("^", base, ("/", ("num", str(exponent)), ("num", str(width))))
