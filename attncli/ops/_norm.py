"""What goes wrong in a norm: other statistics than those of a row, or another divisor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from attncli.arithmetic import Arithmetic, Value
from attncli.matrix import as_matrix
from attncli.ops import Mistake, instead

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def mean(xp: Arithmetic, a: Value, axis: int) -> Value:
    """The mean along an axis, which is kept with length 1."""
    return xp.divide(xp.sum(a, axis), xp.enter(as_matrix(float(a.shape[axis]))))


def mean_of_squares(xp: Arithmetic, a: Value, axis: int) -> Value:
    return mean(xp, xp.multiply(a, a), axis)


def source_of(graph: Graph, id: str) -> tuple[str, bool]:
    """What is normalised, and whether its mean was taken away: (X, true) for the centred step, (X, false) for X."""
    step: Step | None = graph.steps.get(id)
    return (step.inputs[0], True) if step is not None and step.op.name == "centre" else (id, False)


def with_variance_of_columns(graph: Graph, mistake: Mistake, centred: str) -> Iterator[Mistake]:
    """The mistake, and the mean square of the columns of the centred step: who works downwards does so twice."""
    for step in graph.steps.values():
        if step.op.name == "row_mean_square" and step.inputs[0] == centred:
            also = instead(mistake.id, step, lambda xp, a: mean_of_squares(xp, a, -2), centred)
            yield Mistake(mistake.id, {**mistake.swap, **also.swap})
