"""Naming mistakes: which wrong calculation comes to exactly what was written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from attncli.arithmetic.floating import FLOATING
from attncli.arithmetic.interval import Interval
from attncli.core.graph import Graph, Step, Swap
from attncli.marking.chain import Chain, followers
from attncli.mistakes import Mistake, mistakes_at
from attncli.mistakes.catalogue import rank
from attncli.mistakes.slips import cell_slips
from attncli.problems.written import Written, meets
from attncli.record import Record

#: Pairs of mistakes tried for one step before giving up.
MOST_PAIRS = 800
#: Unwritten steps before one that are searched for a mistake that comes with another.
_MOST_OPEN = 6

#: Steps worked out in bounds for single mistakes that come near a line; in a deep stack those that come nearest are
#: looked into first, and the rest is left.
MOST_STEPS = 1600

#: Units in the last place that bounds may be apart and still explain a number to the last digit.
_WIDE = 4.0

#: Widths of the right bounds, and units in the last place, beyond which a wrong calculation is not looked into.
_FAR = 12.0
#: The same for two things wrong at once, of which there are many more.
_FAR_TOGETHER = 3.0

#: What goes wrong where operands do not fit the other way round.
MISFITS = (ValueError, IndexError, RecursionError)


builtin_id = id


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


class Explainer:
    """Tries wrong calculations at a step and at the unwritten steps before it.

    All mistakes of one step are carried on together, side by side along a leading axis, in plain numbers; those that
    come near what was written are confirmed by bounds.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._followers = followers(graph)
        self._mistakes: dict[str, list[Mistake]] = {}

    def mistakes(self, id: str) -> list[Mistake]:
        """The mistakes at a step whose calculation does not need its own result."""
        if id not in self._mistakes:
            self._mistakes[id] = [
                mistake
                for mistake in mistakes_at(self.graph, id)
                if not any(
                    (self._followers[step] | {step}).intersection(swap.inputs) for step, swap in mistake.swap.items()
                )
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
        found: dict[tuple[str, str, int], Found] = {}
        for chain, where, mistake in self._nearest(id, written, chains, decimals, open_steps):
            # What is made at several steps at once may go on in several ways from here.
            key = (where, mistake.id, builtin_id(mistake) if len(mistake.swap) > 1 else 0)
            if key in found:
                continue
            reached = self._reached(chain, mistake.swap, id)
            if reached is not None and _explained(written, _either_way(reached, written), decimals):
                named = (Named(where, mistake.id),)
                found[key] = Found(named, chain, mistake.swap, _width(reached, decimals))
        return sorted(sharp(list(found.values())), key=lambda one: _order(one.named[0], id))

    def _nearest(
        self, id: str, written: Written, chains: Iterable[Chain], decimals: int, open_steps: Sequence[str]
    ) -> list[tuple[Chain, str, Mistake]]:
        """The mistakes that come near what was written; where they are too many, those that come nearest."""
        near: list[tuple[Chain, str, Mistake]] = []
        distances, costs = [], []
        for chain in chains:
            sieve = Sieve(chain, id, written, decimals)
            for where in (id, *reversed(open_steps)):
                for mistake, distance in self._near(sieve, where):
                    near.append((chain, where, mistake))
                    distances.append(distance)
                    costs.append(self.steps_between(mistake.swap, id, open_steps))
        return [near[i] for i in affordable(distances, costs, MOST_STEPS)]

    def steps_between(self, wrong: Iterable[str], id: str, open_steps: Sequence[str]) -> int:
        """How many steps have to be worked out anew where these are done otherwise."""
        after = frozenset[str]().union(*(self._followers[at] for at in wrong))
        return 1 + sum(step in after for step in open_steps)

    def with_slip(
        self, id: str, written: Written, chains: Iterable[Chain], decimals: int, open_steps: Sequence[str]
    ) -> list[Found]:
        """A mistake here or at an earlier unwritten step, and a slip in a cell of this one."""
        most = max(1, written.values.size // 3)
        for chain in chains:
            sieve = Sieve(chain, id, written, decimals, _FAR_TOGETHER, most)
            for where in [id, *reversed(open_steps)][: _MOST_OPEN + 1]:
                found = []
                for mistake, _ in self._near(sieve, where):
                    reached = self._reached(chain, mistake.swap, id)
                    if reached is None or reached.shape != written.values.shape or _is_unbounded(written, reached):
                        continue
                    wrong = ~(meets(written.rounded_to(decimals), reached) | written.blank)
                    for slip in cell_slips(written, reached, wrong, decimals):
                        pair = (Named(where, mistake.id), Named(id, slip))
                        found.append(Found(pair, chain, mistake.swap, _width(reached, decimals)))
                if found:
                    return sharp(found)
        return []

    def pairs(
        self, id: str, written: Written, chains: Iterable[Chain], decimals: int, open_steps: Sequence[str]
    ) -> list[Found]:
        """Pairs of mistakes at different steps that explain what was written: those of the first two steps that do."""
        left = MOST_PAIRS
        places = [id, *reversed(open_steps)][: _MOST_OPEN + 1]
        for chain in chains:
            sieve = Sieve(chain, id, written, decimals, _FAR_TOGETHER)
            for at, earlier in enumerate(places):
                found: dict[tuple[str, str, str], Found] = {}
                shape = self.graph.shape(earlier)
                first = [one for one in self._plain(sieve, earlier, {}) if one[1].shape == shape] if at else []
                for later in places[:at] if first else ():
                    if later not in self._followers[earlier]:
                        continue
                    left -= len(self.mistakes(earlier)) * len(self.mistakes(later))
                    if left < 0:
                        return []
                    for one, other in self._near_pairs(sieve, first, earlier, later):
                        swap = {earlier: one.swap[earlier], later: other.swap[later]}
                        reached = self._reached(chain, swap, id)
                        if reached is not None and _explained(written, reached, decimals):
                            pair = (Named(earlier, one.id), Named(later, other.id))
                            found[one.id, later, other.id] = Found(pair, chain, swap, _width(reached, decimals))
                if found:
                    return sharp(list(found.values()))
        return []

    def _reached(self, chain: Chain, swap: Mapping[str, Swap], id: str) -> Interval | None:
        """What `id` comes out as with these steps done wrongly; None where the operands do not fit that way round."""
        try:
            reached: Interval = chain.done(swap[id]) if [*swap] == [id] else chain.fork(swap=swap).raw(id)
        except MISFITS:
            return None
        return reached

    def _near(self, sieve: Sieve, where: str) -> Iterator[tuple[Mistake, float]]:
        """The mistakes at `where` that come near what was written, in plain numbers, and how near: all side by side."""
        for mistake in self.mistakes(where):
            if [*mistake.swap] != [where]:
                yield from _kept_alone(sieve, mistake, sieve.swapped(mistake.swap))
        results = list(self._plain(sieve, where, {}))
        if where == sieve.id:
            for mistake, value in results:
                yield from _kept_alone(sieve, mistake, value)
            return
        usual = [one for one in results if one[1].shape == self.graph.shape(where)]
        if usual:
            yield from _kept(sieve, [mistake for mistake, _ in usual], self._carried_on(sieve, where, usual))
        for mistake, value in results:
            if value.shape != self.graph.shape(where):
                yield from _kept_alone(sieve, mistake, sieve.reached({where: value}))

    def _carried_on(self, sieve: Sieve, where: str, group: Sequence[tuple[Mistake, Any]]) -> Any:
        """What the step comes out as with each of these numbers at an earlier one, side by side."""
        reached = sieve.reached({where: np.stack([value for _, value in group])})
        if group[0][1].ndim == sieve.written.values.ndim and reached is not None:
            return reached
        # With heads on the way, company may be taken for a head: the first one by itself must come to the same.
        first = sieve.reached({where: group[0][1]})
        together = reached is not None and first is not None and reached.shape == (len(group), *first.shape)
        if together and np.allclose(reached[0], first, equal_nan=True):
            return reached
        alone = [first, *(sieve.reached({where: value}) for _, value in group[1:])]
        if any(one is None or one.shape != sieve.written.values.shape for one in alone):
            return None
        return np.stack(alone)

    def _near_pairs(
        self, sieve: Sieve, first: Sequence[tuple[Mistake, Any]], earlier: str, later: str
    ) -> Iterator[tuple[Mistake, Mistake]]:
        wrong = {earlier: np.stack([value for _, value in first])}
        for other, value in self._plain(sieve, later, wrong):
            reached = value if later == sieve.id else sieve.reached({**wrong, later: value})
            for one, _ in _kept(sieve, [mistake for mistake, _ in first], reached):
                yield one, other

    def _plain(self, sieve: Sieve, where: str, wrong: Mapping[str, Any]) -> Iterator[tuple[Mistake, Any]]:
        """What a step comes out as with each of its mistakes, in plain numbers."""
        known, after = dict(wrong), sieve.after(wrong)
        for mistake in self.mistakes(where):
            if [*mistake.swap] != [where]:
                continue
            try:
                yield mistake, sieve.done(mistake.swap[where], known, after)
            except MISFITS:
                continue  # the operands do not fit that way round


def _either_way(value: Any, written: Written) -> Any:
    """A vector the way round it was written: one number for every column may stand in a column."""
    shape = written.values.shape
    if value.shape == shape or value.ndim != len(shape) or sorted(value.shape) != sorted(shape) or 1 not in shape:
        return value
    if isinstance(value, Interval):
        return Interval(value.lo.reshape(shape), value.hi.reshape(shape))
    return value.reshape(shape)


def _kept(sieve: Sieve, mistakes: Sequence[Mistake], reached: Any) -> Iterator[tuple[Mistake, float]]:
    """Those of several calculations side by side that come near what was written, and how near."""
    if reached is None or reached.ndim != sieve.written.values.ndim + 1 or len(reached) != len(mistakes):
        return
    for i in np.flatnonzero(sieve.keeps(reached)).tolist():
        yield mistakes[i], sieve.distance(reached[i])


def _kept_alone(sieve: Sieve, mistake: Mistake, reached: Any) -> Iterator[tuple[Mistake, float]]:
    """The mistake, if it comes near what was written, and how near."""
    if reached is None:
        return
    reached = _either_way(reached, sieve.written)
    if reached.ndim == sieve.written.values.ndim and sieve.keeps(reached):
        yield mistake, sieve.distance(reached)


def affordable(distances: Sequence[float], costs: Sequence[int], most: int) -> list[int]:
    """Which of several calculations are made, in their order: the nearest ones until so many steps are worked out."""
    if sum(costs) <= most:
        return list(range(len(costs)))
    chosen, left = [], most
    for i in sorted(range(len(costs)), key=lambda i: distances[i]):
        left -= costs[i]
        if left < 0:
            break
        chosen.append(i)
    return sorted(chosen)


class Sieve:
    """Plain numbers in the middle of a chain's bounds: what is far from the written ones need not be looked into.

    Parameters
    ----------
    far : widths and units that count as far
    most : cells that may be far off
    """

    def __init__(
        self, chain: Chain, id: str, written: Written, decimals: int, far: float = _FAR, most: int = 0
    ) -> None:
        self.chain, self.id, self.written, self.most = chain, id, written, most
        reached = chain.raw(id)
        with np.errstate(invalid="ignore"):
            width = np.nan_to_num(reached.hi - reached.lo, nan=0.0)
        largest = float(np.abs(written.values[np.isfinite(written.values)]).max(initial=0.0))
        places = int(written.places.min(initial=decimals)) if written.is_short(decimals) else decimals
        unit = 10.0 ** -min(places, decimals) if written.eps is None else written.eps * largest
        self._near = far * (float(width.max(initial=0.0)) + unit)

    def keeps(self, value: Any) -> Any:
        """Whether a matrix is near enough to what was written to be looked into; for each of several side by side."""
        values = self.written.values
        if value.shape[value.ndim - values.ndim :] != values.shape:
            return np.zeros(value.shape[: max(0, value.ndim - values.ndim)], dtype=np.bool_)
        near = np.abs(value - values) <= self._near
        near |= value == values
        near |= self.written.blank
        axes = tuple(range(-values.ndim, 0))
        if not self.most:
            return near.all(axes)
        return np.count_nonzero(~near, axes) <= self.most

    def distance(self, value: Any) -> float:
        """How far the farthest cell is from what was written, in what counts as far."""
        values = self.written.values
        with np.errstate(invalid="ignore"):
            off = np.where((value == values) | self.written.blank, 0.0, np.abs(value - values))
        return float(off.max(initial=0.0)) / self._near

    def swapped(self, swap: Mapping[str, Swap]) -> Any:
        """What the step comes out as with several steps done otherwise; None where they do not fit."""
        known: dict[str, Any] = {}
        after = self.after(swap)
        try:
            for id in self.chain.graph.steps:
                if id in swap:
                    known[id] = self.done(swap[id], known, after)
        except MISFITS:
            return None
        return known[self.id] if self.id in swap else self._reached(known, after)

    def after(self, wrong: Iterable[str]) -> frozenset[str]:
        """All that follows from these steps."""
        return frozenset[str]().union(*(self.chain.followers[id] for id in wrong))

    def number(self, id: str, known: dict[str, Any], after: frozenset[str]) -> Any:
        """What is carried on from a step, with `known` in place of some; what follows from those is `after` them."""
        found = known.get(id)
        if found is None:
            chain = self.chain
            if id not in after or chain.is_given(id):
                return chain.middle(id)
            found = known[id] = self.done(chain.swap.get(id) or chain.graph.steps[id], known, after)
        return found

    def done(self, doing: Step | Swap, known: dict[str, Any], after: frozenset[str]) -> Any:
        """What a step, or another op in its place, comes out as in plain numbers."""
        operands = [self.number(i, known, after) for i in doing.inputs]
        return doing.op.compute(FLOATING, *operands, **doing.params)

    def reached(self, wrong: Mapping[str, Any]) -> Any:
        """What the step comes out as with these numbers in place of others; None where they do not fit."""
        return self._reached(dict(wrong), self.after(wrong))

    def _reached(self, known: dict[str, Any], after: frozenset[str]) -> Any:
        try:
            return self.done(self.chain.swap.get(self.id) or self.chain.graph.steps[self.id], known, after)
        except MISFITS:
            return None


def sharp(found: list[Found]) -> list[Found]:
    """Explanations to the last digit; wide bounds, in which nearly anything would lie, only where there is no other."""
    most = max(_WIDE, _WIDE * min((one.width for one in found), default=0.0))
    return [one for one in found if one.width <= most]


def _width(reached: Interval, decimals: int) -> float:
    width = np.where(reached.lo == reached.hi, 0.0, reached.hi - reached.lo)
    return float(width.max(initial=0.0)) * 10.0**decimals


def _order(named: Named, id: str) -> tuple[Any, ...]:
    return named.step != id, rank(named.id)


def _explained(written: Written, reached: Interval, decimals: int) -> bool:
    return tuple(reached.shape) == written.values.shape and fits(written, reached, decimals)


def fits(written: Written, reached: Interval, decimals: int) -> bool:
    """Whether every written cell stands for a number that the calculation reaches; what is unbounded explains nothing."""
    fine: Any = meets(written.rounded_to(decimals), reached) | written.blank
    if not fine.all():
        if not written.is_short(decimals):
            return False
        fine |= meets(written.as_written(decimals), reached)
        if not fine.all():
            return False
    return not _is_unbounded(written, reached)


def _is_unbounded(written: Written, reached: Interval) -> bool:
    """Whether some written cell could be any number at all (the logarithm of what is negative)."""
    unbounded = np.isneginf(reached.lo) & np.isposinf(reached.hi)
    return bool((unbounded & ~written.blank).any())
