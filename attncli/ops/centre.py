"""Every row minus its own mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from attncli.message import N_
from attncli.ops import Mistake, instead, pass_on, subtract, with_operands
from attncli.ops._norm import mean, with_variance_of_columns

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def mistakes(graph: Graph, step: Step) -> Iterator[Mistake]:
    """The mean left in, or that of every column taken away."""
    source = step.inputs[0]
    yield with_operands("not-centred", step, pass_on.OP, (source,), {})
    here = instead("normalised-over-tokens", step, lambda xp, a: xp.subtract(a, mean(xp, a, -2)), source)
    yield from with_variance_of_columns(graph, here, step.id)
    yield here


# A subtraction in everything but its mistakes, and in that no other constant will do.
OP = subtract.OP.changed(
    name="centre",
    why=N_("Each {row} minus its mean, so that it is centred on 0."),
    mistakes=mistakes,
)
