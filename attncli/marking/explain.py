"""Naming mistakes: which wrong calculation, made by some habit of carrying numbers on, comes to what was written.

All sheets that are wrong at one step are looked into side by side. Plain numbers sort out first what lies far off; what is
near is worked out by every habit, each line of the wrong way a line that may have been rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from attncli.arithmetic import Value
from attncli.core.graph import Graph, Swap
from attncli.core.matrix import EXACT, BoolArray
from attncli.core.message import Message
from attncli.core.record import Record
from attncli.marking.chain import MISFITS, Chain, Family, Lineage
from attncli.marking.distance import are_close, either_way, is_one_of, off, reach
from attncli.marking.habits import TOO_EARLY, Habit
from attncli.marking.judge import IMPRECISE, RIGHT, WRONG, Line, Rules, judge
from attncli.marking.seeds import reconsidered
from attncli.marking.slips import BETWEEN, CLOSELY, FAR, MIXED, NOT, SHORT, Against, cell_slips
from attncli.mistakes import look, mistakes_at, rank, varies, without_vaguer
from attncli.mistakes.mistake import Mistake

#: Share of its numbers that a wrong calculation may be off by, where nothing else explains a line.
_SHARE = 0.1
#: Steps worked out for these.
_MOST_WIDE = 200
#: Pairs of mistakes tried for one step before giving up.
MOST_PAIRS = 800
#: Numbers that a line must hold to show two mistakes at once.
_LEAST_FOR_TWO = 2
#: Unwritten steps before one that are searched for a mistake that comes with another.
_MOST_OPEN = 6
#: Steps worked out for single mistakes that come near a line; in a deep stack the nearest are looked into first.
MOST_STEPS = 1600


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


class Numbers(Record):
    """What the sheets at hand may have worked a step out from.

    Parameters
    ----------
    own : each learner's own lines; right: the right ones in place of wrong ones, None where that is the same
    spread : (sheets,) how far right calculations of this step lie apart
    """

    own: Family
    right: Family | None
    spread: Any

    def of(self, rows: Any) -> Numbers:
        """The same for some of the sheets."""
        right = None if self.right is None else self.right.fork(rows=rows)
        return Numbers(self.own.fork(rows=rows), right, self.spread[rows])


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
    """

    family: Family
    where: str
    mistake: Mistake
    rows: Any
    value: Value

    def of(self, which: BoolArray) -> Near:
        """The same for some of its sheets."""
        return self.changed(rows=self.rows[which], value=self.value if len(self.value) == 1 else self.value[which])

    def value_of(self, row: int) -> Value:
        """What it comes to for one of its sheets."""
        return self.value if len(self.value) == 1 else self.value[self.rows == row]


class Explainer:
    """Tries wrong calculations at a step and at the unwritten steps before it."""

    def __init__(self, graph: Graph, lineage: Lineage) -> None:
        self.graph = graph
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

    def singles(
        self,
        step_id: str,
        line: Line,
        numbers: Numbers,
        rules: Rules,
        open_steps: Sequence[str],
        kept: Mapping[str, BoolArray],
    ) -> list[Explained]:
        """By sheet, the single mistakes that explain what was written, those at the step itself first.

        To the last digit by some habit; where there are none, cut off or short; then between habits; else by habits that
        are mixed. Beside them stand those that come to the very same numbers with all digits.

        Parameters
        ----------
        open_steps : unwritten steps before this one that reach it without passing a written one
        kept : by step, which sheets go on from a wrong line that they wrote
        """
        close, wide = self._near(step_id, line, numbers, rules, open_steps)
        tiers = self._tried(step_id, line, close, rules, kept)
        nothing: Any = (tiers >= NOT).all(0)
        if nothing.any() and line.eps is None and rules.by_person:
            wide = [one.of(nothing[one.rows]) for one in wide if nothing[one.rows].any()]
            tiers = np.concatenate([tiers, self._tried(step_id, line, wide, rules, kept)])
            close += wide
        return [self._explained(step_id, close, tiers[:, row], row) for row in range(len(line.values))]

    def _tried(
        self, step_id: str, line: Line, near: Sequence[Near], rules: Rules, kept: Mapping[str, BoolArray]
    ) -> Any:
        """(mistakes, sheets) how well each mistake explains what was written."""
        tiers = np.full((len(near), len(line.values)), FAR)
        for one, tier in zip(near, tiers, strict=True):
            tier[one.rows] = self._tiers(step_id, line.of(one.rows), one, rules)
        if line.eps is None and rules.by_person and near:
            nothing: Any = (tiers >= NOT).all(0)
            for one, tier in zip(near, tiers, strict=True):
                left: Any = nothing[one.rows]
                if left.any():
                    of_some = one.of(left)
                    fits = self._mixed(step_id, line.of(of_some.rows), of_some, rules, kept)
                    tier[of_some.rows[fits]] = MIXED
        return tiers

    def _explained(self, step_id: str, near: Sequence[Near], tiers: Any, row: int) -> Explained:
        """What explains one sheet's line best, and what comes to the very same."""
        best = int(tiers.min(initial=NOT))
        if best == NOT:
            return NOTHING
        there = [(i, near[i].value_of(row), int(tiers[i])) for i in np.flatnonzero(tiers < FAR).tolist()]
        values = tuple(value for _, value, tier in there if tier == best)
        found: dict[tuple[str, str, int], Found] = {}
        for turn, value, tier in there:
            one = near[turn]
            if tier == best or is_one_of(value, values):
                for mistake in self._same(one.where, one.mistake, step_id):
                    # What is made at several steps at once may go on in several ways from here.
                    key = one.where, mistake.id, id(mistake) if len(mistake.swap) > 1 else 0
                    found.setdefault(key, Found((Named(one.where, mistake.id),), mistake.swap, turn))
        return Explained(best, tuple(found.values()), values)

    def _tiers(self, step_id: str, line: Line, near: Near, rules: Rules) -> Any:
        """How well a mistake explains some sheets' lines, by any habit: to the last digit, cut off or with too few, between
        habits, or not."""
        witnesses = self._witnesses(step_id, line, near)
        if not witnesses:
            return np.full(len(line.values), NOT)
        exactly = judge(line, witnesses, rules.changed(widened=False)).worst
        between = judge(line, witnesses, rules).worst > WRONG
        return np.select([exactly == RIGHT, exactly > WRONG, between], [CLOSELY, SHORT, BETWEEN], NOT)

    def _witnesses(self, step_id: str, line: Line, near: Near) -> list[Value]:
        """What a mistake comes to by each habit."""
        reached = [_value(self._reached, chain, near.rows, near.mistake.swap, step_id) for chain in near.family.chains]
        return [either_way(value, line.values.shape) for value in reached if value is not None]

    def _mixed(self, step_id: str, line: Line, near: Near, rules: Rules, kept: Mapping[str, BoolArray]) -> BoolArray:
        """Which of some sheets a mistake explains that was made by learners who mix their habits."""
        wrong = near.family.chains[0].fork(rows=near.rows).fork(near.mistake.swap)
        judged = judge(line, self._witnesses(step_id, line, near), rules.changed(short=False))
        of_some = {at: which[near.rows] for at, which in kept.items()}
        fits: BoolArray = reconsidered(step_id, line, judged, wrong, of_some, rules).worst > IMPRECISE
        return fits

    def _reached(self, chain: Chain, rows: Any, swap: Mapping[str, Swap], step_id: str) -> Value:
        fork = chain.fork(rows=rows)
        if [*swap] == [step_id]:
            return fork.done(step_id, swap[step_id])
        return fork.fork(swap).raw(step_id)

    def _near(
        self, step_id: str, line: Line, numbers: Numbers, rules: Rules, open_steps: Sequence[str]
    ) -> tuple[list[Near], list[Near]]:
        """The mistakes that come near what was written in plain numbers, the nearest where they are too many; and those that
        only come near but for a share of their numbers: where a wrong way divides by next to nothing, rounding moves it
        far."""
        far = reach(line, numbers.spread, rules)
        close: list[tuple[Near, Any, int]] = []
        others: list[tuple[Near, Any, int]] = []
        for family in filter(None, (numbers.own, numbers.right)):
            full = family.chains[0]
            for where, tried in [
                *((where, self._plain(full, where, step_id)) for where in (step_id, *reversed(open_steps))),
                *self._unseen(full, step_id, open_steps),
            ]:
                for mistake, value in tried:
                    distance = off(line, value)
                    but_for_a_share = (off(line, value, _SHARE) <= far) & (distance > far)
                    for found, which in ((close, distance <= far), (others, but_for_a_share)):
                        rows = np.flatnonzero(which)
                        if rows.size:
                            near = Near(family, where, mistake, rows, value if len(value) == 1 else value[rows])
                            cost = self.steps_between(mistake.swap, step_id, open_steps)
                            found.append((near, distance[rows] / far[rows], cost))
        return _nearest(close, MOST_STEPS), _nearest(others, _MOST_WIDE)

    def _plain(self, chain: Chain, where: str, step_id: str) -> list[tuple[Mistake, Value]]:
        """What a step comes out as with each of the mistakes at an earlier one, or at itself, in plain numbers."""
        found: list[tuple[Mistake, Value]] = []
        group: list[tuple[Mistake, Value]] = []
        seen = set[tuple[tuple[str, int], ...]]()
        for mistake in self.mistakes(where):
            # What is done alike somewhere that does not lead here makes no other numbers.
            leads = self._leads(mistake, step_id)
            if leads in seen:
                continue
            seen.add(leads)
            if [*mistake.swap] != [where]:
                value = _value(chain.fork(mistake.swap).raw, step_id)
                found += [(mistake, value)] if value is not None else []
                continue
            value = _value(chain.done, where, mistake.swap[where])
            if value is None:
                continue
            if where == step_id:
                found.append((mistake, value))
            elif value.shape[1:] == self.graph.shape(where):
                group.append((mistake, value))
            else:
                value = _value(chain.fork(mistake.swap).raw, step_id)
                found += [(mistake, value)] if value is not None else []
        return found + (self._carried_on(chain, where, step_id, group) if group else [])

    def _unseen(
        self, chain: Chain, step_id: str, open_steps: Sequence[str]
    ) -> Iterator[tuple[str, list[tuple[Mistake, Value]]]]:
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
            right, wrong = _value(chain.raw, where), _value(chain.done, where, mistake.swap[where])
            value = _value(chain.fork(mistake.swap).raw, step_id)
            if right is None or wrong is None or value is None or right.shape[1:] != wrong.shape[1:]:
                continue
            unseen = are_close(right, wrong).reshape(max(len(right), len(wrong)), -1).all(1)
            if unseen.any():  # for the others it comes to nothing
                yield where, [(mistake, np.where(unseen.reshape(-1, *(1,) * (value.ndim - 1)), value, np.nan))]

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
        """The same for several numbers of one step, all side by side."""
        count = max(len(value) for _, value in group)
        rows = np.tile(np.arange(count), len(group))
        fork = chain.fork(rows=rows)
        fork.give(where, np.concatenate([np.broadcast_to(v, (count, *v.shape[1:])) for _, v in group]))
        reached = _value(fork.raw, step_id)
        if reached is None or len(reached) != len(rows):
            return []
        parts = reached.reshape(len(group), count, *reached.shape[1:])
        return [(mistake, parts[i]) for i, (mistake, _) in enumerate(group)]

    def steps_between(self, wrong: Iterable[str], step_id: str, open_steps: Sequence[str]) -> int:
        """How many steps have to be worked out again where these are done otherwise."""
        after = self.lineage.after(wrong)
        return 1 + sum(step in after for step in open_steps)

    # One sheet at a time, where no single mistake explains the line.

    def too_early(self, step_id: str, line: Line, family: Family, rules: Rules) -> BoolArray:
        """Which sheets' lines are right for lines before them that were rounded at fewer places than asked for."""
        found = np.zeros(len(line.values), dtype=np.bool_)
        for habit in TOO_EARLY:
            value = _value(self._with_fewer_places, family.chains[0], habit, step_id)
            if value is not None:
                found |= judge(line, [value], rules.changed(short=False)).worst > IMPRECISE
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

    def with_slip(
        self, step_id: str, line: Line, numbers: Numbers, rules: Rules, open_steps: Sequence[str]
    ) -> list[Found]:
        """A mistake here or at an earlier unwritten step of one sheet, and a slip in a cell of this one."""
        most = max(1, line.values[0].size // 3)
        close = reach(line, numbers.spread, rules) / 4
        for family in filter(None, (numbers.own, numbers.right)):
            for where in [step_id, *reversed(open_steps)][: _MOST_OPEN + 1]:
                found = []
                for mistake, value in self._plain(family.chains[0], where, step_id):
                    if value.shape[1:] != line.values.shape[1:]:
                        continue
                    with np.errstate(invalid="ignore"):
                        far = ~(np.abs(value[0] - line.values[0]) <= close[0]) & ~(value[0] == line.values[0])
                    if not 0 < np.count_nonzero(line.shown(far[None])) <= most:
                        continue
                    reached = [_value(self._reached, chain, None, mistake.swap, step_id) for chain in family.chains]
                    against = Against([one for one in reached if one is not None and one.shape == value.shape])
                    wrong = against.judged(line, rules).cells == WRONG
                    for slip in cell_slips(line, against, wrong, rules.changed(short=False))[0]:
                        found.append(Found((Named(where, mistake.id), Named(step_id, slip.id)), mistake.swap))
                if found:
                    return found
        return []

    def pairs(self, step_id: str, line: Line, numbers: Numbers, rules: Rules, open_steps: Sequence[str]) -> list[Found]:
        """Pairs of mistakes at different steps that explain one sheet's line: those of the first two steps that do."""
        if (
            line.eps is None and line.shown(np.isfinite(line.values) & (line.values != 0)).sum() < _LEAST_FOR_TWO
        ) or _has_fewer(line, rules):
            return []  # so many pairs come to a single number by chance
        left = MOST_PAIRS
        places = [step_id, *reversed(open_steps)][: _MOST_OPEN + 1]
        far = reach(line, numbers.spread, rules)
        for family in filter(None, (numbers.own, numbers.right)):
            for at, earlier in enumerate(places):
                found: dict[tuple[str, str, str], Found] = {}
                for later in places[:at]:
                    if later not in self.lineage[earlier]:
                        continue
                    left -= len(self.mistakes(earlier)) * len(self.mistakes(later))
                    if left < 0:
                        return []
                    for one in self.mistakes(earlier):
                        fork = family.chains[0].fork(one.swap)
                        for other, value in self._plain(fork, later, step_id):
                            if later in one.swap or not (off(line, value) <= far).all():
                                continue
                            swap = {**one.swap, **other.swap}
                            witnesses = family.fork(swap).raws(step_id)
                            if witnesses and (judge(line, witnesses, rules).worst > WRONG).all():
                                pair = (Named(earlier, one.id), Named(later, other.id))
                                found[one.id, later, other.id] = Found(pair, swap)
                if found:
                    return list(found.values())
        return []


def _has_fewer(line: Line, rules: Rules) -> bool:
    """Whether some number stands there with fewer places than asked, or with whatever places it likes."""
    if line.places is None:
        return False
    return rules.as_written or bool(((line.places != EXACT) & (line.places < rules.decimals)).any())


def _value(work: Callable[..., Any], *args: Any) -> Any:
    """A number, or None where operands do not fit the other way round."""
    try:
        return work(*args)
    except MISFITS:
        return None


def _nearest(near: Sequence[tuple[Near, Any, int]], most: int) -> list[Near]:
    """The same without what is too much for a sheet; that does not depend on the sheets beside it.

    Parameters
    ----------
    near : each with the distances of its sheets, and the steps that are worked out for it
    """
    if sum(cost for *_, cost in near) <= most:
        return [one for one, *_ in near]
    kept = [np.zeros(len(one.rows), dtype=np.bool_) for one, *_ in near]
    for row in sorted({row for one, *_ in near for row in one.rows.tolist()}):
        tried = [i for i, (one, *_) in enumerate(near) if row in one.rows]
        at = {i: int(np.searchsorted(near[i][0].rows, row)) for i in tried}
        distances, costs = [float(near[i][1][at[i]]) for i in tried], [near[i][2] for i in tried]
        for i in affordable(distances, costs, most):
            kept[tried[i]][at[tried[i]]] = True
    return [one.of(which) for (one, *_), which in zip(near, kept, strict=True) if which.any()]


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


def order(named: Named, step_id: str) -> tuple[Any, ...]:
    """The likelier first: seen oftener, then nearer to the step."""
    return rank(named.id), named.step != step_id
