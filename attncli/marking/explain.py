"""Naming mistakes: which wrong calculation comes to exactly what was written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from attncli.arithmetic.floating import FLOATING
from attncli.arithmetic.interval import Interval
from attncli.graph import Graph, Swap
from attncli.marking.catalogue import rank
from attncli.marking.chain import Chain, followers
from attncli.marking.slips import cell_slips
from attncli.marking.written import Written, meets
from attncli.ops import Mistake
from attncli.record import Record

#: Pairs of mistakes tried for one step before giving up.
MOST_PAIRS = 800
#: Unwritten steps before one that are searched for a mistake that comes with another.
_MOST_OPEN = 6

#: Units in the last place that bounds may be apart and still explain a number to the last digit.
_WIDE = 4.0

#: Widths of the right bounds, and units in the last place, beyond which a wrong calculation is not looked into.
_FAR = 12.0
#: The same for two things wrong at once, of which there are many more.
_FAR_TOGETHER = 3.0

#: What goes wrong where operands do not fit the other way round.
MISFITS = (ValueError, IndexError, RecursionError)


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
        found: dict[tuple[str, str], Found] = {}
        for chain in chains:
            sieve = _Sieve(chain, id, written, decimals)
            for where in (id, *reversed(open_steps)):
                for mistake in self._near(sieve, where):
                    key = (where, mistake.id)
                    if key in found:
                        continue
                    reached = self._reached(chain, mistake.swap, id)
                    if reached is not None and _explained(written, _either_way(reached, written), decimals):
                        named = (Named(where, mistake.id),)
                        found[key] = Found(named, chain, mistake.swap, _width(reached, decimals))
        return sorted(sharp(list(found.values())), key=lambda one: _order(one.named[0], id))

    def with_slip(
        self, id: str, written: Written, chains: Iterable[Chain], decimals: int, open_steps: Sequence[str]
    ) -> list[Found]:
        """A mistake here or at an earlier unwritten step, and a slip in a cell of this one."""
        most = max(1, written.values.size // 3)
        for chain in chains:
            sieve = _Sieve(chain, id, written, decimals, _FAR_TOGETHER, most)
            for where in [id, *reversed(open_steps)][: _MOST_OPEN + 1]:
                found = []
                for mistake in self._near(sieve, where):
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
            sieve = _Sieve(chain, id, written, decimals, _FAR_TOGETHER)
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

    def _near(self, sieve: _Sieve, where: str) -> Iterator[Mistake]:
        """The mistakes at `where` that come near what was written, in plain numbers: all side by side.

        One that is made at several steps at once (heads cut wrongly in Q, K and V) is not sifted.
        """
        yield from (mistake for mistake in self.mistakes(where) if [*mistake.swap] != [where])
        results = list(self._plain(sieve, where, {}))
        if where == sieve.id:
            results = [(mistake, _either_way(value, sieve.written)) for mistake, value in results]
        usual = [one for one in results if one[1].shape == self.graph.shape(where)]
        for group in [usual, *([one] for one in results if one not in usual)] if where == sieve.id else [usual]:
            if where == sieve.id:
                yield from (
                    mistake
                    for mistake, value in group
                    if value.ndim == sieve.written.values.ndim and sieve.keeps(value)
                )
            elif group:
                yield from _kept(sieve, [mistake for mistake, _ in group], self._carried_on(sieve, where, group))
        if where != sieve.id:
            for mistake, value in results:
                if value.shape != self.graph.shape(where):
                    reached = sieve.reached({where: value})
                    if reached is not None and reached.ndim == sieve.written.values.ndim and sieve.keeps(reached):
                        yield mistake

    def _carried_on(self, sieve: _Sieve, where: str, group: Sequence[tuple[Mistake, Any]]) -> Any:
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
        self, sieve: _Sieve, first: Sequence[tuple[Mistake, Any]], earlier: str, later: str
    ) -> Iterator[tuple[Mistake, Mistake]]:
        wrong = {earlier: np.stack([value for _, value in first])}
        for other, value in self._plain(sieve, later, wrong):
            reached = value if later == sieve.id else sieve.reached({**wrong, later: value})
            for one in _kept(sieve, [mistake for mistake, _ in first], reached):
                yield one, other

    def _plain(self, sieve: _Sieve, where: str, wrong: Mapping[str, Any]) -> Iterator[tuple[Mistake, Any]]:
        """What a step comes out as with each of its mistakes, in plain numbers."""
        known = dict(wrong)
        for mistake in self.mistakes(where):
            if [*mistake.swap] != [where]:
                continue
            swap = mistake.swap[where]
            try:
                yield (
                    mistake,
                    swap.op.compute(FLOATING, *[sieve.number(i, known) for i in swap.inputs], **swap.params),
                )
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


def _kept(sieve: _Sieve, mistakes: Sequence[Mistake], reached: Any) -> Iterator[Mistake]:
    """Those of several calculations side by side that come near what was written."""
    if reached is None or reached.ndim != sieve.written.values.ndim + 1 or len(reached) != len(mistakes):
        return
    for i in np.flatnonzero(sieve.keeps(reached)).tolist():
        yield mistakes[i]


class _Sieve:
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

    def number(self, id: str, known: dict[str, Any]) -> Any:
        """What is carried on from a step, with `known` in place of some and all that follows from them."""
        found = known.get(id)
        if found is None:
            chain = self.chain
            if not chain.is_given(id) and any(id in chain.followers[wrong] for wrong in known):
                doing = chain.swap.get(id) or chain.graph.steps[id]
                found = doing.op.compute(FLOATING, *[self.number(i, known) for i in doing.inputs], **doing.params)
            else:
                return chain.middle(id)
            known[id] = found
        return found

    def reached(self, wrong: Mapping[str, Any]) -> Any:
        """What the step comes out as with these numbers in place of others; None where they do not fit."""
        known = dict(wrong)
        doing = self.chain.swap.get(self.id) or self.chain.graph.steps[self.id]
        try:
            return doing.op.compute(FLOATING, *[self.number(i, known) for i in doing.inputs], **doing.params)
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
