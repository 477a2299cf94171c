"""What goes wrong in a norm: other statistics than those of a row, or another divisor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attncli.arithmetic import Arithmetic, Value
from attncli.matrix import as_matrix

if TYPE_CHECKING:
    from attncli.graph import Graph, Step


def mean(xp: Arithmetic, a: Value, axis: int) -> Value:
    """The mean along an axis, which is kept with length 1."""
    return xp.divide(xp.sum(a, axis), xp.enter(as_matrix(float(a.shape[axis]))))


def mean_of_squares(xp: Arithmetic, a: Value, axis: int) -> Value:
    return mean(xp, xp.multiply(a, a), axis)


def source_of(graph: Graph, id: str) -> tuple[str, bool]:
    """What is normalised, and whether its mean was taken away: (X, true) for the centred step, (X, false) for X."""
    step: Step | None = graph.steps.get(id)
    return (step.inputs[0], True) if step is not None and step.op.name == "centre" else (id, False)
