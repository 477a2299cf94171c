"""The mistakes people make: what is calculated instead, what it is called, and other ways that are right too."""

from __future__ import annotations

from attncli.core.graph import Graph
from attncli.mistakes.catalogue import rank
from attncli.ops import Mistake


def mistakes_at(graph: Graph, step_id: str) -> list[Mistake]:
    """The mistakes that people make at one step, the likelier first."""
    step = graph.steps.get(step_id)
    if step is None or step.op.mistakes is None:
        return []
    return sorted(step.op.mistakes(graph, step), key=lambda mistake: rank(mistake.id))


__all__ = ["Mistake", "mistakes_at"]
