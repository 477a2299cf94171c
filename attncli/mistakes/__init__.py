"""The mistakes people make: what is calculated instead, what it is called, and other ways that are right too.

Each stands in the file of its subject, whole: its id, how often it was seen, its words, where it is made, and what is
calculated instead.
"""

from __future__ import annotations

from collections.abc import Iterator

from attncli.core.graph import Graph, Step
from attncli.mistakes.catalogue import CATALOGUE, rank
from attncli.mistakes.entry import Mistake


def mistakes_at(graph: Graph, step_id: str) -> list[Mistake]:
    """The mistakes that people make at one step, the likelier first.

    Parameters
    ----------
    step_id : the step; at an input, or where there is no such step, no mistake is made
    """
    step = graph.steps.get(step_id)
    return [] if step is None else sorted(_made_at(graph, step), key=lambda mistake: rank(mistake.id))


def _made_at(graph: Graph, step: Step) -> Iterator[Mistake]:
    places = {id: place for place, id in enumerate(graph.steps)}
    for entry in CATALOGUE.values():
        if entry.made is None or not {"", step.op.name}.intersection(entry.at):
            continue
        for swap in entry.made(graph, step):
            # What needs a number that is worked out only afterwards cannot be what somebody did.
            if all(places.get(id, -1) < places[at] for at, one in swap.items() for id in one.inputs):
                yield Mistake(entry.id, swap, {} if entry.alike is None else entry.alike(graph, step, swap))


__all__ = ["Mistake", "mistakes_at"]
