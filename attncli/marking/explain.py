"""Naming mistakes: which wrong calculation comes to exactly what was written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from attncli.arithmetic.interval import Interval
from attncli.graph import Graph
from attncli.marking.catalogue import rank
from attncli.marking.chain import Chain
from attncli.marking.written import Written, meets
from attncli.ops import Mistake
from attncli.record import Record

#: Pairs of mistakes tried for one step before giving up.
MOST_PAIRS = 600


class Named(Record):
    """A mistake by name, and the step it was made at."""

    step: str
    id: str


def mistakes_at(graph: Graph, id: str) -> list[Mistake]:
    """The catalogue's mistakes at one step, the commoner first."""
    step = graph.steps.get(id)
    if step is None or step.op.mistakes is None:
        return []
    return sorted(step.op.mistakes(graph, step), key=lambda mistake: rank(mistake.id))


class Explainer:
    """Tries wrong calculations at a step and at the unwritten steps before it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._mistakes: dict[str, list[Mistake]] = {}

    def mistakes(self, id: str) -> list[Mistake]:
        if id not in self._mistakes:
            self._mistakes[id] = mistakes_at(self.graph, id)
        return self._mistakes[id]

    def singles(
        self, id: str, written: Written, chains: Iterable[Chain], decimals: int, open_steps: list[str]
    ) -> list[Named]:
        """Single mistakes that explain what was written, those at the step itself first.

        Parameters
        ----------
        chains : the right chain, and the learner's own
        open_steps : unwritten steps before this one that reach it without passing a written one
        """
        found: dict[tuple[str, str], Named] = {}
        for chain in chains:
            for where in (id, *open_steps):
                for mistake in self.mistakes(where):
                    key = (where, mistake.id)
                    if key not in found and explains(chain, mistake, id, written, decimals):
                        found[key] = Named(where, mistake.id)
        return sorted(found.values(), key=lambda named: (named.step != id, rank(named.id)))

    def pairs(
        self, id: str, written: Written, chains: Iterable[Chain], decimals: int, open_steps: list[str]
    ) -> list[Named]:
        """The first pair of mistakes, at different steps, that explains what was written."""
        places = [*open_steps, id]
        for chain in chains:
            for first, second in islice(self._pairs(places), MOST_PAIRS):
                both = Mistake(first[1].id, {**first[1].swap, **second[1].swap})
                if explains(chain, both, id, written, decimals):
                    return [Named(first[0], first[1].id), Named(second[0], second[1].id)]
        return []

    def _pairs(self, places: list[str]) -> Iterator[tuple[tuple[str, Mistake], tuple[str, Mistake]]]:
        for i, earlier in enumerate(places):
            for later in places[i + 1 :]:
                for one in self.mistakes(earlier):
                    for other in self.mistakes(later):
                        yield (earlier, one), (later, other)


def explains(chain: Chain, mistake: Mistake, id: str, written: Written, decimals: int) -> bool:
    """Whether the chain with this mistake comes to what was written, in every cell, to the last digit."""
    try:
        wrong = chain.fork(swap=mistake.swap).raw(id)
    except (ValueError, IndexError):
        return False  # the operands do not fit that way round
    if tuple(wrong.shape) != written.values.shape:
        return False
    return fits(written, wrong, decimals)


def fits(written: Written, reached: Interval, decimals: int) -> bool:
    """Whether every written cell stands for a number that the calculation reaches; what is unbounded explains nothing."""
    unbounded = np.isneginf(reached.lo) & np.isposinf(reached.hi)
    if (unbounded & ~written.blank).any():
        return False
    fine: Any = meets(written.rounded_to(decimals), reached) | written.blank
    if fine.all():
        return True
    fine |= meets(written.as_written(decimals), reached)
    return bool(fine.all())
