"""Naming mistakes: which wrong calculation comes to exactly what was written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from attncli.arithmetic.interval import Interval
from attncli.graph import Graph, Swap
from attncli.marking.catalogue import rank
from attncli.marking.chain import Chain, followers
from attncli.marking.slips import cell_slips
from attncli.marking.written import Written, meets
from attncli.ops import Mistake
from attncli.record import Record

#: Pairs of mistakes tried for one step before giving up.
MOST_PAIRS = 3000

#: Units in the last place that bounds may be apart and still explain a number to the last digit.
_WIDE = 4.0

#: What goes wrong where operands do not fit the other way round.
_MISFITS = (ValueError, IndexError, RecursionError)


class Named(Record):
    """A mistake by name, and the step it was made at."""

    step: str
    id: str


class Found(Record):
    """A mistake that explains what was written: its name, the chain it was made in, and what was done instead.

    Parameters
    ----------
    width : of the widest bounds it was held against, in units of the last place
    """

    named: tuple[Named, ...]
    chain: Chain
    swap: Mapping[str, Swap]
    width: float = 0.0


def mistakes_at(graph: Graph, id: str) -> list[Mistake]:
    """The catalogue's mistakes at one step, the commoner first."""
    step = graph.steps.get(id)
    if step is None or step.op.mistakes is None:
        return []
    return sorted(step.op.mistakes(graph, step), key=lambda mistake: rank(mistake.id))


class Explainer:
    """Tries wrong calculations at a step and at the unwritten steps before it.

    All mistakes of one step are carried on together, side by side along a leading axis.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._followers = followers(graph)
        self._mistakes: dict[str, list[Mistake]] = {}

    def mistakes(self, id: str) -> list[Mistake]:
        """The mistakes at a step whose calculation does not need its own result."""
        if id not in self._mistakes:
            after = self._followers[id] | {id}
            self._mistakes[id] = [
                mistake
                for mistake in mistakes_at(self.graph, id)
                if not any(after.intersection(swap.inputs) for swap in mistake.swap.values())
            ]
        return self._mistakes[id]

    def singles(
        self, id: str, written: Written, chains: Iterable[Chain], decimals: int, open_steps: Sequence[str]
    ) -> list[Found]:
        """Single mistakes that explain what was written, those at the step itself first.

        Parameters
        ----------
        chains : the learner's own numbers, and the right ones
        open_steps : unwritten steps before this one that reach it without passing a written one
        """
        found: dict[tuple[str, str], Found] = {}
        for chain in chains:
            for where in (id, *reversed(open_steps)):
                for mistake, reached in self._reached(chain, where, id):
                    key = (where, mistake.id)
                    if key not in found and _explained(written, reached, decimals):
                        named = (Named(where, mistake.id),)
                        found[key] = Found(named, chain, mistake.swap, _width(reached, decimals))
        return sorted(sharp(list(found.values())), key=lambda one: _order(one.named[0], id))

    def pairs(
        self, id: str, written: Written, chains: Iterable[Chain], decimals: int, open_steps: Sequence[str]
    ) -> list[Found]:
        """Pairs of mistakes at different steps that explain what was written: those of the first two steps that do."""
        left = MOST_PAIRS
        places = [id, *reversed(open_steps)]
        for chain in chains:
            for later_at, later in enumerate(places):
                for earlier in places[later_at + 1 :]:
                    found: dict[tuple[str, str], Found] = {}
                    for one, other, reached in self._both(chain, earlier, later, id):
                        left -= 1
                        if (one.id, other.id) not in found and _explained(written, reached, decimals):
                            pair = (Named(earlier, one.id), Named(later, other.id))
                            found[one.id, other.id] = Found(pair, chain, {**one.swap, **other.swap})
                    if found:
                        return list(found.values())
                    if left <= 0:
                        return []
        return []

    def with_slip(
        self, id: str, written: Written, chains: Iterable[Chain], decimals: int, open_steps: Sequence[str]
    ) -> list[Found]:
        """A mistake here or at an earlier unwritten step, and a slip in a cell of this one."""
        most = max(1, written.values.size // 3)
        for chain in chains:
            for where in (id, *reversed(open_steps)):
                found = []
                for mistake, reached in self._reached(chain, where, id):
                    if reached.shape != written.values.shape:
                        continue
                    wrong = ~(meets(written.rounded_to(decimals), reached) | written.blank)
                    if np.count_nonzero(wrong) > most:
                        continue
                    for slip in cell_slips(written, reached, wrong, decimals):
                        pair = (Named(where, mistake.id), Named(id, slip))
                        found.append(Found(pair, chain, {at: one for at, one in mistake.swap.items() if at != id}))
                if found:
                    return found
        return []

    def _reached(self, chain: Chain, where: str, id: str) -> Iterator[tuple[Mistake, Interval]]:
        """For every mistake at `where`, what `id` comes out as."""
        results = list(self._results(chain, where))
        if where == id:
            yield from results
            return
        usual = [(mistake, value) for mistake, value in results if value.shape == self.graph.shape(where)]
        odd = [(mistake, value) for mistake, value in results if value.shape != self.graph.shape(where)]
        for group in [usual, *([one] for one in odd)]:
            if group:
                yield from self._carried_on(chain, where, id, group)

    def _carried_on(
        self, chain: Chain, where: str, id: str, group: list[tuple[Mistake, Interval]]
    ) -> Iterator[tuple[Mistake, Interval]]:
        together = side_by_side([value for _, value in group]) if len(group) > 1 else group[0][1]
        try:
            reached = chain.fork(given={where: chain.settle(where, together)}).raw(id)
        except _MISFITS:
            if len(group) > 1:
                for one in group:
                    yield from self._carried_on(chain, where, id, [one])
            return
        if len(group) == 1:
            yield group[0][0], reached
        elif reached.ndim > len(self.graph.shape(id)):
            for i, (mistake, _) in enumerate(group):
                yield mistake, Interval(reached.lo[i], reached.hi[i])

    def _results(self, chain: Chain, where: str) -> Iterator[tuple[Mistake, Interval]]:
        """What a step comes out as with each of its mistakes."""
        for mistake in self.mistakes(where):
            try:
                yield mistake, chain.done(mistake.swap[where])
            except _MISFITS:
                continue  # the operands do not fit that way round

    def _both(self, chain: Chain, earlier: str, later: str, id: str) -> Iterator[tuple[Mistake, Mistake, Interval]]:
        """For every pair of mistakes at two steps, what `id` comes out as."""
        if later not in self._followers[earlier]:
            return
        shape = self.graph.shape(earlier)
        first = [(mistake, value) for mistake, value in self._results(chain, earlier) if value.shape == shape]
        if not first:
            return
        together = side_by_side([value for _, value in first])
        try:
            fork = chain.fork(given={earlier: chain.settle(earlier, together)})
            for other, value in self._results(fork, later):
                reached = value if later == id else fork.fork(given={later: chain.settle(later, value)}).raw(id)
                if reached.ndim <= len(self.graph.shape(id)):
                    continue
                for i, (one, _) in enumerate(first):
                    yield one, other, Interval(reached.lo[i], reached.hi[i])
        except _MISFITS:
            return


def sharp(found: list[Found]) -> list[Found]:
    """Explanations to the last digit; wide bounds, in which nearly anything would lie, only where there is no other."""
    most = max(_WIDE, _WIDE * min((one.width for one in found), default=0.0))
    return [one for one in found if one.width <= most]


def _width(reached: Interval, decimals: int) -> float:
    width = np.where(reached.lo == reached.hi, 0.0, reached.hi - reached.lo)
    return float(width.max(initial=0.0)) * 10.0**decimals


def side_by_side(values: Sequence[Interval]) -> Interval:
    """Values of one shape along a new leading axis."""
    return Interval(np.stack([value.lo for value in values]), np.stack([value.hi for value in values]))


def _order(named: Named, id: str) -> tuple[Any, ...]:
    return named.step != id, rank(named.id)


def _explained(written: Written, reached: Interval, decimals: int) -> bool:
    return tuple(reached.shape) == written.values.shape and fits(written, reached, decimals)


def fits(written: Written, reached: Interval, decimals: int) -> bool:
    """Whether every written cell stands for a number that the calculation reaches; what is unbounded explains nothing."""
    fine: Any = meets(written.rounded_to(decimals), reached) | written.blank
    if not fine.all():
        fine |= meets(written.as_written(decimals), reached)
        if not fine.all():
            return False
    unbounded = np.isneginf(reached.lo) & np.isposinf(reached.hi)
    return not bool((unbounded & ~written.blank).any())
