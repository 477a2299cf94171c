"""What a token is, plus where it stands: embeddings and positions added."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from attncli.graph import Swap
from attncli.message import N_
from attncli.ops import Mistake, residual

if TYPE_CHECKING:
    from attncli.graph import Graph, Step


def mistakes(graph: Graph, step: Step) -> Iterator[Mistake]:
    """Positions added for the queries alone: keys and values come from the bare embeddings."""
    bare = step.inputs[0]
    users = [other for other in graph.steps.values() if other.phase == "forward" and step.id in other.inputs]
    names = {other.id: other.id.rpartition(".")[2] for other in users}
    if not {"Q", "K", "V"} <= set(names.values()):
        return
    swap = {
        other.id: Swap(other.op, tuple(bare if id == step.id else id for id in other.inputs), other.params)
        for other in users
        if names[other.id] in ("K", "V")
    }
    yield Mistake("positions-on-queries-only", swap)


# A sum in everything but its mistakes.
OP = residual.OP.changed(
    name="add_positions",
    why=N_(
        "Attention by itself does not see the order of the tokens. What a token is, plus where it stands, tells it both."
    ),
    mistakes=mistakes,
)
