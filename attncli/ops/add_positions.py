"""What a token is, plus where it stands: embeddings and positions added."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from attncli.message import N_
from attncli.ops import Mistake, pass_on, residual, with_operands

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def mistakes(graph: Graph, step: Step) -> Iterator[Mistake]:
    """No positions at all. Left out for keys and values alone, that shows at these: see product."""
    yield with_operands("no-positions", step, pass_on.OP, step.inputs[:1], {})


# A sum in everything but its mistakes.
OP = residual.OP.changed(
    name="add_positions",
    why=N_(
        "Attention by itself does not see the order of the tokens. What a token is, plus where it stands, tells it both."
    ),
    mistakes=mistakes,
)
