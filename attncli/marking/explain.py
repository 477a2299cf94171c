"""Naming mistakes: which wrong calculation, made by some habit of carrying numbers on, comes to what was written.

All sheets that are wrong at one step are looked into side by side. Plain numbers sort out first what lies far off; what is
near is worked out by every habit, each line of the wrong way a line that may have been rounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from attncli.arithmetic import Indices, Value
from attncli.core.graph import Graph, Swap
from attncli.core.matrix import BoolArray, FloatArray
from attncli.core.message import Message
from attncli.core.record import Record
from attncli.marking.chain import TOO_EARLY, Chain, Family, Habit, Lineage, fitting, of_sheets
from attncli.marking.judge import (
    IMPRECISE,
    RIGHT,
    WRONG,
    are_close,
    are_same,
    beside,
    either_way,
    in_all,
    in_some,
    judge,
    off,
)
from attncli.marking.seeds import reconsidered
from attncli.marking.slips import BETWEEN, CLOSELY, FAR, MIXED, NOT, SHORT, Against, WrongLine, cell_slips
from attncli.mistakes import look, mistakes_at, varies, without_vaguer
from attncli.mistakes.mistake import Mistake

#: Share of its numbers that a wrong calculation may be off by, where nothing else explains a line.
_SHARE = 0.1
#: Steps worked out for these.
_MOST_WIDE = 200
#: Pairs of mistakes tried for one step before giving up.
_MOST_PAIRS = 800
#: Numbers that a line must hold to show two mistakes at once.
_LEAST_FOR_TWO = 2
#: Unwritten steps before one that are searched for a mistake that comes with another.
_MOST_OPEN = 6
#: Steps worked out for single mistakes that come near a line; in a deep stack the nearest are looked into first.
_MOST_STEPS = 1600


class Named(Record):
    """A mistake by name, and the step it was made at."""

    step: str
    id: str


def where_to_look(mistakes: Sequence[Named], graph: Graph) -> Message:
    """What to look at again, in the words of the step that the likeliest mistake was made at."""
    told = without_vaguer([named.id for named in mistakes if named.step == mistakes[0].step])
    likeliest = next(named for named in mistakes if named.id == told[0])
    return look(likeliest.id, graph if varies(likeliest.id) else None, likeliest.step)


class Found(Record):
    """A mistake that explains what was written: its name, and what is calculated instead.

    `turn` : when it was tried, among those of one line
    """

    named: tuple[Named, ...]
    swap: Mapping[str, Swap]
    turn: int = 0


class Explained(Record):
    """The mistakes that explain one sheet's line best.

    Parameters
    ----------
    tier : how well
    values : what those come to with all digits, (1, …) each
    """

    tier: int
    found: tuple[Found, ...]
    values: tuple[Value, ...]


#: Of a line that no single mistake explains.
NOTHING = Explained(NOT, (), ())


class Near(Record):
    """A mistake that comes near what some sheets wrote.

    Parameters
    ----------
    family : the numbers it was made from
    rows : which sheets
    value : what it comes to with all digits, (sheets or 1, …)
    distance : (sheets,) how far that is from what they wrote, as a share of what is looked into
    steps : how many steps are worked out again for it
    """

    family: Family
    where: str
    mistake: Mistake
    rows: Indices
    value: Value
    distance: FloatArray
    steps: int

    def of(self, which: BoolArray) -> Near:
        """The same for some of its sheets."""
        rows, distance = self.rows[which], self.distance[which]
        return self.changed(rows=rows, distance=distance, value=of_sheets([self.value], which)[0])

    def value_of(self, row: int) -> Value:
        """What it comes to for one of its sheets."""
        return of_sheets([self.value], self.rows == row)[0]


class Explainer:
    """Tries wrong calculations at a step and at the unwritten steps before it."""

    def __init__(self, lineage: Lineage) -> None:
        self.graph = lineage.graph
        self.lineage = lineage
        self._mistakes: dict[str, list[Mistake]] = {}
        self._alike: dict[str, list[tuple[str, Mistake]]] | None = None

    def mistakes(self, step_id: str) -> list[Mistake]:
        """The mistakes at a step whose calculation does not need its own result; with those made alike elsewhere, too."""
        if step_id not in self._mistakes:
            found = []
            for mistake in mistakes_at(self.graph, step_id):
                if any(({step} | self.lineage[step]).intersection(swap.inputs) for step, swap in mistake.swap.items()):
                    continue
                found.append(mistake)
                if mistake.alike:
                    found.append(mistake.changed(swap={**mistake.swap, **mistake.alike}))
            self._mistakes[step_id] = found
        return self._mistakes[step_id]

    def singles(self, wrong: WrongLine) -> list[Explained]:
        """By sheet, the single mistakes that explain what was written, those at the step itself first.

        To the last digit by some habit; where there are none, cut off or short; then between habits; else by habits that
        are mixed. Beside them stand those that come to the very same numbers with all digits.
        """
        close, wide = self._near(wrong)
        tiers = self._tried(wrong, close)
        nothing = _unexplained(tiers)
        if nothing.any() and wrong.by_person:
            wide = [one.of(nothing[one.rows]) for one in wide if nothing[one.rows].any()]
            tiers = np.concatenate([tiers, self._tried(wrong, wide)])
            close += wide
        return [self._explained(wrong.step_id, close, tiers[:, row], row) for row in range(len(nothing))]

    def _tried(self, wrong: WrongLine, near: Sequence[Near]) -> Indices:
        """(mistakes, sheets) how well each mistake explains what was written."""
        tiers = np.full((len(near), len(wrong.line.values)), FAR)
        for one, tier in zip(near, tiers, strict=True):
            tier[one.rows] = self._tiers(wrong, one)
        if wrong.by_person and near:
            nothing = _unexplained(tiers)
            for one, tier in zip(near, tiers, strict=True):
                left = one.of(nothing[one.rows])
                if left.rows.size:
                    tier[left.rows[self._mixed(wrong, left)]] = MIXED
        return tiers

    def _explained(self, step_id: str, near: Sequence[Near], tiers: Indices, row: int) -> Explained:
        """What explains one sheet's line best, and what comes to the very same."""
        best = int(tiers.min(initial=NOT))
        if best == NOT:
            return NOTHING
        there = [(i, near[i].value_of(row), int(tiers[i])) for i in np.flatnonzero(tiers < FAR).tolist()]
        values = tuple(value for _, value, tier in there if tier == best)
        found: dict[tuple[str, str, int], Found] = {}
        for turn, value, tier in there:
            one = near[turn]
            if tier == best or any(are_same(value, other) for other in values):
                for mistake in self._same(one.where, one.mistake, step_id):
                    # What is made at several steps at once may go on in several ways from here.
                    key = one.where, mistake.id, id(mistake) if len(mistake.swap) > 1 else 0
                    found.setdefault(key, Found((Named(one.where, mistake.id),), mistake.swap, turn))
        return Explained(best, tuple(found.values()), values)

    def _tiers(self, wrong: WrongLine, near: Near) -> Indices:
        """How well a mistake explains its sheets' lines, by any habit: to the last digit, cut off or with too few, between
        habits, or not."""
        line, witnesses = wrong.line.of(near.rows), self._witnesses(wrong, near)
        if not witnesses:
            return np.full(len(line.values), NOT)
        exactly = judge(line, witnesses, wrong.rules.changed(widened=False)).worst
        between = judge(line, witnesses, wrong.rules).worst > WRONG
        return np.select([exactly == RIGHT, exactly > WRONG, between], [CLOSELY, SHORT, BETWEEN], NOT)

    def _witnesses(self, wrong: WrongLine, near: Near) -> list[Value]:
        """What a mistake comes to by each habit."""
        reached = [
            fitting(self._reached, chain.fork(rows=near.rows), near.mistake.swap, wrong.step_id)
            for chain in near.family.chains
        ]
        return [either_way(value, wrong.line.values.shape) for value in reached if value is not None]

    def _mixed(self, wrong: WrongLine, near: Near) -> BoolArray:
        """Which of its sheets a mistake explains that was made by learners who mix their habits."""
        line = wrong.line.of(near.rows)
        full = near.family.full.fork(rows=near.rows).fork(near.mistake.swap)
        judged = judge(line, self._witnesses(wrong, near), wrong.rules.changed(short=False))
        kept = {at: which[near.rows] for at, which in wrong.kept.items()}
        fits: BoolArray = reconsidered(wrong.step_id, line, judged, full, kept, wrong.rules).worst > IMPRECISE
        return fits

    def _reached(self, chain: Chain, swap: Mapping[str, Swap], step_id: str) -> Value:
        return chain.done(step_id, swap[step_id]) if [*swap] == [step_id] else chain.fork(swap).raw(step_id)

    def _near(self, wrong: WrongLine) -> tuple[list[Near], list[Near]]:
        """The mistakes that come near what was written in plain numbers, the nearest where they are too many; and those that
        only come near but for a share of their numbers: where a wrong way divides by next to nothing, rounding moves it
        far."""
        far = wrong.reach
        close: list[Near] = []
        others: list[Near] = []
        for family in wrong.families:
            for where, mistake, value in self._plainly(family.full, wrong):
                distance = off(wrong.line, value)
                but_for_a_share = (off(wrong.line, value, _SHARE) <= far) & (distance > far)
                for found, which in ((close, distance <= far), (others, but_for_a_share)):
                    rows = np.flatnonzero(which)
                    if rows.size:
                        steps = self.lineage.steps_between(mistake.swap, wrong.step_id, wrong.open_steps)
                        (values,) = of_sheets([value], rows)
                        found.append(Near(family, where, mistake, rows, values, distance[rows] / far[rows], steps))
        return _nearest(close, _MOST_STEPS), _nearest(others, _MOST_WIDE)

    def _plainly(self, full: Chain, wrong: WrongLine) -> Iterator[tuple[str, Mistake, Value]]:
        """What a step comes out as with each mistake at it and at the unwritten ones before it, in plain numbers."""
        for where in (wrong.step_id, *reversed(wrong.open_steps)):
            for mistake, value in self._plain(full, where, wrong.step_id):
                yield where, mistake, value
        yield from self._unseen(full, wrong.step_id, wrong.open_steps)

    def _plain(self, chain: Chain, where: str, step_id: str) -> list[tuple[Mistake, Value]]:
        """The same for the mistakes at one step."""
        found: list[tuple[Mistake, Value | None]] = []
        group: list[tuple[Mistake, Value]] = []
        seen = set[tuple[tuple[str, int], ...]]()
        for mistake in self.mistakes(where):
            # What is done alike somewhere that does not lead here makes no other numbers.
            leads = self._leads(mistake, step_id)
            if leads in seen:
                continue
            seen.add(leads)
            alone = [*mistake.swap] == [where]
            value = fitting(chain.done, where, mistake.swap[where]) if alone else None
            if alone and (value is None or where == step_id):
                found.append((mistake, value))
            elif value is not None and value.shape[1:] == self.lineage.shapes[where]:
                group.append((mistake, value))
            else:
                found.append((mistake, fitting(chain.fork(mistake.swap).raw, step_id)))
        fits = [(mistake, value) for mistake, value in found if value is not None]
        return fits + (self._carried_on(chain, where, step_id, group) if group else [])

    def _unseen(self, chain: Chain, step_id: str, open_steps: Sequence[str]) -> Iterator[tuple[str, Mistake, Value]]:
        """Mistakes at written lines that show in none of them (no scale where all scores are 0), made alike here."""
        if self._alike is None:
            self._alike, steps = {}, list(self.graph.steps)
            for place, where in enumerate(steps):
                for mistake in self.mistakes(where):
                    for at in set(mistake.alike).intersection(mistake.swap, steps[place + 1 :]):
                        self._alike.setdefault(at, []).append((where, mistake))
        for where, mistake in self._alike.get(step_id, []):
            if where in open_steps:
                continue
            right, wrong = fitting(chain.raw, where), fitting(chain.done, where, mistake.swap[where])
            value = fitting(chain.fork(mistake.swap).raw, step_id)
            if right is None or wrong is None or value is None or right.shape[1:] != wrong.shape[1:]:
                continue
            unseen = in_all(are_close(right, wrong))
            if unseen.any():  # for the others it comes to nothing
                yield where, mistake, np.where(beside(unseen, value), value, np.nan)

    def _leads(self, mistake: Mistake, step_id: str) -> tuple[tuple[str, int], ...]:
        """What of a mistake leads to a step."""
        return tuple(
            (at, id(swap)) for at, swap in mistake.swap.items() if at == step_id or step_id in self.lineage[at]
        )

    def _same(self, where: str, mistake: Mistake, step_id: str) -> list[Mistake]:
        """The mistakes that come to the same at a step, and go on otherwise elsewhere."""
        leads = self._leads(mistake, step_id)
        return [one for one in self.mistakes(where) if one.id == mistake.id and self._leads(one, step_id) == leads]

    def _carried_on(
        self, chain: Chain, where: str, step_id: str, group: Sequence[tuple[Mistake, Value]]
    ) -> list[tuple[Mistake, Value]]:
        """What several numbers of one step come to, all side by side."""
        count = max(len(value) for _, value in group)
        rows = np.tile(np.arange(count), len(group))
        fork = chain.fork(rows=rows)
        fork.give(where, np.concatenate([np.broadcast_to(v, (count, *v.shape[1:])) for _, v in group]))
        reached = fitting(fork.raw, step_id)
        if reached is None or len(reached) != len(rows):
            return []
        parts = reached.reshape(len(group), count, *reached.shape[1:])
        return [(mistake, part) for (mistake, _), part in zip(group, parts, strict=True)]

    def too_early(self, wrong: WrongLine) -> BoolArray:
        """Which sheets' lines are right for lines before them that were rounded at fewer places than asked for."""
        found = np.zeros(len(wrong.line.values), dtype=np.bool_)
        for habit in TOO_EARLY:
            value = fitting(self._with_fewer_places, wrong.own, habit, wrong.step_id)
            if value is not None:
                found |= judge(wrong.line, [value], wrong.rules.changed(short=False)).worst > IMPRECISE
        return found

    def _with_fewer_places(self, chain: Chain, habit: Habit, step_id: str) -> Value:
        """What a step comes out as from lines that are rounded first by this habit."""
        step = self.graph.steps[step_id]
        operands = [
            chain.carried(name)
            if name in self.graph.inputs
            else habit.arithmetic(self.lineage.places[name]).round_step(chain.carried(name))
            for name in step.inputs
        ]
        return chain.with_operands(step_id, step, operands)

    # One sheet at a time, where no single mistake explains the line.

    def with_slip(self, wrong: WrongLine) -> list[Found]:
        """A mistake here or at an earlier unwritten step of one sheet, and a slip in a cell of this one."""
        line, rules, step_id = wrong.line, wrong.rules, wrong.step_id
        most = max(1, line.values[0].size // 3)
        close = wrong.reach[0] / 4
        for family in wrong.families:
            for where in _at_hand(wrong):
                found = []
                for mistake, value in self._plain(family.full, where, step_id):
                    if value.shape[1:] != line.values.shape[1:]:
                        continue
                    with np.errstate(invalid="ignore"):
                        far = ~(np.abs(value[:1] - line.values) <= close) & ~(value[:1] == line.values) & ~line.blank
                    if not 0 < np.count_nonzero(far) <= most:
                        continue
                    reached = [fitting(self._reached, chain, mistake.swap, step_id) for chain in family.chains]
                    against = Against([one for one in reached if one is not None and one.shape == value.shape])
                    cells = against.judged(line, rules).cells == WRONG
                    for slip in cell_slips(line, against, cells, rules.changed(short=False))[0]:
                        found.append(Found((Named(where, mistake.id), Named(step_id, slip.id)), mistake.swap))
                if found:
                    return found
        return []

    def pairs(self, wrong: WrongLine) -> list[Found]:
        """Pairs of mistakes at different steps that explain one sheet's line: those of the first two steps that do."""
        if not _shows_two(wrong):
            return []
        left = _MOST_PAIRS
        places = _at_hand(wrong)
        for family in wrong.families:
            for at, earlier in enumerate(places):
                found: dict[tuple[str, str, str], Found] = {}
                for later in places[:at]:
                    if later not in self.lineage[earlier]:
                        continue
                    left -= len(self.mistakes(earlier)) * len(self.mistakes(later))
                    if left < 0:
                        return []
                    for one in self.mistakes(earlier):
                        fork = family.full.fork(one.swap)
                        for other, value in self._plain(fork, later, wrong.step_id):
                            swap = {**one.swap, **other.swap}
                            if later not in one.swap and self._explains(wrong, family, swap, value):
                                pair = (Named(earlier, one.id), Named(later, other.id))
                                found[one.id, later, other.id] = Found(pair, swap)
                if found:
                    return list(found.values())
        return []

    def _explains(self, wrong: WrongLine, family: Family, swap: Mapping[str, Swap], value: Value) -> bool:
        """Whether a wrong calculation explains one sheet's line.

        Parameters
        ----------
        value : what it comes to with all digits
        """
        if not (off(wrong.line, value) <= wrong.reach).all():
            return False
        witnesses = family.fork(swap).raws(wrong.step_id)
        return bool(witnesses) and bool((judge(wrong.line, witnesses, wrong.rules).worst > WRONG).all())


def _unexplained(tiers: Indices) -> BoolArray:
    """Which sheets' lines no mistake explains."""
    return np.asarray((tiers >= NOT).all(0))


def _at_hand(wrong: WrongLine) -> list[str]:
    """The steps at which a mistake is looked for that comes with another, the nearest first."""
    return [wrong.step_id, *reversed(wrong.open_steps)][: _MOST_OPEN + 1]


def _shows_two(wrong: WrongLine) -> bool:
    """Whether one sheet's line holds enough to show two mistakes: so many pairs come to a single number by chance."""
    line = wrong.line
    if in_some(line.fewer(wrong.rules.decimals))[0] or (wrong.rules.as_written and np.ndim(line.places)):
        return False
    return line.eps is not None or (np.isfinite(line.values) & (line.values != 0) & ~line.blank).sum() >= _LEAST_FOR_TWO


def _nearest(near: Sequence[Near], most: int) -> list[Near]:
    """The same without what is too much for a sheet; that does not depend on the sheets beside it."""
    if sum(one.steps for one in near) <= most:
        return list(near)
    kept = [np.zeros(len(one.rows), dtype=np.bool_) for one in near]
    for row in sorted({row for one in near for row in one.rows.tolist()}):
        tried = [(i, int(np.searchsorted(one.rows, row))) for i, one in enumerate(near) if row in one.rows]
        distances = [float(near[i].distance[at]) for i, at in tried]
        for chosen in within_budget(distances, [near[i].steps for i, _ in tried], most):
            i, at = tried[chosen]
            kept[i][at] = True
    return [one.of(which) for one, which in zip(near, kept, strict=True) if which.any()]


def within_budget(distances: Sequence[float], costs: Sequence[int], most: int) -> list[int]:
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
