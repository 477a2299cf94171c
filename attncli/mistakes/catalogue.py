"""The mistakes by name: how often they were seen, what was done, and what to look at again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attncli.core.graph import Graph
from attncli.core.message import Message
from attncli.mistakes import (
    blocks,
    embedding,
    gradients,
    heads,
    losses,
    masks,
    norms,
    positions,
    products,
    scales,
    slips,
    softmax,
    updates,
)
from attncli.mistakes.entry import Entry, Words
from attncli.mistakes.norms import source_of

#: In the order in which they are named where they were seen equally often.
CATALOGUE: Mapping[str, Entry] = {
    entry.id: entry
    for subject in (
        products,
        scales,
        masks,
        softmax,
        heads,
        norms,
        blocks,
        positions,
        gradients,
        embedding,
        losses,
        updates,
        slips,
    )
    for entry in subject.ENTRIES
}


def rank(id: str) -> tuple[int, int, int]:
    """The likelier first: calculations before slips, the simple and the commoner first, else the catalogue's order."""
    return (*_likeness(id), list(CATALOGUE).index(id))


def order(ids: Sequence[str], distance: int) -> tuple[object, ...]:
    """Among explanations, each of one mistake or more: the likelier first, then those of fewer mistakes, then the nearer.

    Parameters
    ----------
    distance : of the farthest mistake from the step that is explained, in steps
    """
    ranks = [rank(id) for id in ids]
    return max(one[:2] for one in ranks), len(ids), distance, ranks


def _likeness(id: str) -> tuple[int, int]:
    entry = CATALOGUE[id]
    return entry.rank, -entry.seen


def without_vaguer(ids: Sequence[str]) -> list[str]:
    """The ids that are worth a sentence beside the others: what another says more exactly is left out."""
    return [id for id in ids if not CATALOGUE[id].vaguer_than.intersection(ids)]


def did(id: str, graph: Graph | None = None, at: str = "") -> Message:
    """What was done, as a sentence; of a known step in its own words."""
    return Message(_words(id, graph, at).did)


def look(id: str, graph: Graph | None = None, at: str = "") -> Message:
    """What to look at again, without giving the answer away."""
    return Message(_words(id, graph, at).look)


def varies(id: str) -> bool:
    """Whether the words depend on the step."""
    return bool(CATALOGUE[id].elsewhere)


def _words(id: str, graph: Graph | None, at: str) -> Entry | Words:
    entry = CATALOGUE[id]
    if not entry.elsewhere or graph is None or at not in graph.steps:
        return entry
    return entry.elsewhere.get(_kind(graph, at), entry)


def _kind(graph: Graph, at: str) -> str:
    """Whether a step multiplies by a number that is given, belongs to an RMS norm, or is the σ of a LayerNorm."""
    step = graph.steps[at]
    if step.op.name == "scale" and step.params.get("factor") is not None:
        return "factor"
    root = graph.steps.get(step.inputs[1]) if step.op.name == "standardise" else step
    if root is None or root.op.name != "root_eps":
        return ""
    square = graph.steps.get(root.inputs[0])
    if square is None or source_of(graph, square.inputs[0])[1]:
        return "std" if root is step else ""
    return "rms"
