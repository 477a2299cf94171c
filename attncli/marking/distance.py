"""How far written lines are from numbers that they might be: what lies far off need not be looked into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from attncli.arithmetic import Value
from attncli.core.matrix import BoolArray
from attncli.marking.judge import Line, Rules

#: Distances between right witnesses, and units in the last place, beyond which a wrong calculation is not looked into.
_FAR = 12.0
#: Relative distance of numbers that are the same but for what the computer has lost.
_SAME = 1e-9


def either_way(value: Value, shape: Sequence[int]) -> Value:
    """A vector the way round it was written: one number for every column may stand in a column."""
    own, wanted = value.shape[1:], tuple(shape[1:])
    if own == wanted or len(own) != len(wanted) or sorted(own) != sorted(wanted) or 1 not in wanted:
        return value
    return value.reshape(len(value), *wanted)


def is_near(line: Line, value: Value, spread: Any, rules: Rules, share: float = 0.0) -> BoolArray:
    """Which sheets wrote about these numbers, but for a share of them."""
    near: BoolArray = off(line, value, share) <= reach(line, spread, rules)
    return near


def reach(line: Line, spread: Any, rules: Rules) -> Any:
    """By sheet, how far off a wrong calculation may be and still be looked into."""
    if line.eps is not None:
        largest = np.abs(np.where(np.isfinite(line.values), line.values, 0.0)).reshape(len(line.values), -1).max(1)
        return _FAR * (spread + line.eps * largest) + 1e-12
    unit = np.full(len(line.values), 10.0**-rules.decimals)
    if line.places is not None:
        shortest = np.where(line.places < 0, rules.decimals, line.places).reshape(len(line.values), -1).min(1)
        unit = np.maximum(unit, 10.0 ** -shortest.astype(np.float64))
    return _FAR * (spread + unit)


def off(line: Line, value: Value, share: float = 0.0) -> Any:
    """By sheet, how far the farthest cell is from what was written, but for a share of it; of another shape: infinitely."""
    value = either_way(value, line.values.shape)
    if value.shape[1:] != line.values.shape[1:]:
        return np.full(len(line.values), np.inf)
    with np.errstate(invalid="ignore"):
        far = np.where(value == line.values, 0.0, np.abs(value - line.values))
        if share:
            far = np.where(np.isfinite(value), np.maximum(far - share * np.abs(value), 0.0), far)
    if line.blank is not None:
        far = np.where(line.blank, 0.0, far)
    return np.where(np.isnan(far), np.inf, far).reshape(len(line.values), -1).max(1, initial=0.0)


def are_same(one: Value, other: Value) -> bool:
    """Whether two calculations come to the very same numbers, which nobody can tell apart."""
    return one.shape == other.shape and bool(are_close(one, other).all())


def are_close(one: Value, other: Value) -> BoolArray:
    """Which cells are the same but for what the computer has lost."""
    with np.errstate(invalid="ignore"):
        near: BoolArray = np.abs(one - other) <= _SAME * (np.abs(one) + np.abs(other)) + 1e-12
    near |= one == other
    return near


def is_one_of(value: Value, others: Sequence[Value]) -> bool:
    """Whether a calculation comes to the same as one of these."""
    return any(are_same(value, other) for other in others)
