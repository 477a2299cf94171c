"""Statistics along one axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attncli.arithmetic import Arithmetic, Value
from attncli.core.matrix import as_matrix

if TYPE_CHECKING:
    pass


def mean(xp: Arithmetic, a: Value, axis: int) -> Value:
    """The mean along an axis, which is kept with length 1."""
    return xp.divide(xp.sum(a, axis), xp.enter(as_matrix(float(a.shape[axis]))))


def mean_of_squares(xp: Arithmetic, a: Value, axis: int) -> Value:
    return mean(xp, xp.multiply(a, a), axis)
