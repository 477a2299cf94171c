"""Naming mistakes: which wrong calculation, made by some habit of carrying numbers on, comes to what was written.

All sheets that are wrong at one step are looked into side by side. Plain numbers sort out first what lies far off; what is
near is worked out by every habit, each line of the wrong way a line that may have been rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from attncli.arithmetic import Value
from attncli.core.graph import Graph, Swap
from attncli.core.matrix import EXACT, BoolArray
from attncli.core.record import Record
from attncli.marking.chain import MISFITS, Chain, Family, Setting
from attncli.marking.habits import TOO_EARLY, Habit
from attncli.marking.judge import IMPRECISE, RIGHT, WRONG, Line, Rules, judge
from attncli.marking.seeds import hull
from attncli.mistakes import Mistake, mistakes_at
from attncli.mistakes.catalogue import rank
from attncli.mistakes.slips import POWERS, orders_exchanged

#: Pairs of mistakes tried for one step before giving up.
MOST_PAIRS = 800
#: Numbers that a line must hold to show two mistakes at once.
_LEAST_FOR_TWO = 2
#: Unwritten steps before one that are searched for a mistake that comes with another.
_MOST_OPEN = 6
#: Steps worked out for single mistakes that come near a line; in a deep stack the nearest are looked into first.
MOST_STEPS = 1600
#: Distances between right witnesses, and units in the last place, beyond which a wrong calculation is not looked into.
_FAR = 12.0


class Named(Record):
    """A mistake by name, and the step it was made at."""

    step: str
    id: str


class Found(Record):
    """A mistake that explains what was written: its name, and what is calculated instead.

    `turn` : when it was tried, among those of one line
    """

    named: tuple[Named, ...]
    swap: Mapping[str, Swap]
    alike: Mapping[str, Swap] = {}
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


class Explainer:
    """Tries wrong calculations at a step and at the unwritten steps before it."""

    def __init__(self, graph: Graph, setting: Setting) -> None:
        self.graph = graph
        self.setting = setting
        self._mistakes: dict[str, list[Mistake]] = {}

    def mistakes(self, id: str) -> list[Mistake]:
        """The mistakes at a step whose calculation does not need its own result; with those made alike elsewhere, too."""
        if id not in self._mistakes:
            found = []
            for mistake in mistakes_at(self.graph, id):
                if any(({step} | self.setting[step]).intersection(swap.inputs) for step, swap in mistake.swap.items()):
                    continue
                found.append(mistake)
                if mistake.alike:
                    found.append(mistake.changed(swap={**mistake.swap, **mistake.alike}))
            self._mistakes[id] = found
        return self._mistakes[id]

    def singles(
        self,
        id: str,
        line: Line,
        numbers: Numbers,
        rules: Rules,
        open_steps: Sequence[str],
        kept: Mapping[str, BoolArray],
    ) -> list[list[Found]]:
        """By sheet, the single mistakes that explain what was written, those at the step itself first.

        To the last digit by some habit; where there are none, between habits; else by habits that are mixed.

        Parameters
        ----------
        open_steps : unwritten steps before this one that reach it without passing a written one
        kept : by step, which sheets go on from a wrong line that they wrote
        """
        count = len(line.values)
        tiers: list[list[dict[tuple[str, str, int], Found]]] = [[{} for _ in range(count)] for _ in range(3)]
        near: list[tuple[Family, str, Mistake, Any]] = []
        for family in filter(None, (numbers.own, numbers.right)):
            for where, mistake, rows in self._near(id, line, family.chains[0], numbers.spread, rules, open_steps):
                near.append((family, where, mistake, rows))
                for tier, fits in zip(
                    tiers, self._fitting(id, line.of(rows), family, rows, mistake, rules), strict=True
                ):
                    _note(tier, rows[fits], where, self._same(where, mistake, id), len(near))
        found: list[dict[tuple[str, str, int], Found]] = [
            next((tier for tier in each if tier), {}) for each in zip(*tiers, strict=True)
        ]
        if line.eps is None and rules.by_person:
            nothing = np.array([not each for each in found])
            for turn, (family, where, mistake, rows) in enumerate(near, 1):
                left = rows[nothing[rows]]
                if left.size:
                    fits = self._mixed(id, line.of(left), family.chains[0], left, mistake, rules, kept)
                    _note(found, left[fits], where, self._same(where, mistake, id), turn)
        return [list(each.values()) for each in found]

    def _fitting(
        self, id: str, line: Line, family: Family, rows: Any, mistake: Mistake, rules: Rules
    ) -> tuple[BoolArray, BoolArray, BoolArray]:
        """Which of some sheets a mistake explains, by any habit: to the last digit, cut off or with too few, and between
        habits."""
        witnesses = []
        for chain in family.chains:
            value = _value(self._reached, chain, rows, mistake.swap, id)
            if value is not None:
                witnesses.append(either_way(value, line.values.shape))
        if not witnesses:
            none = np.zeros(len(line.values), dtype=np.bool_)
            return none, none, none
        exactly = judge(line, witnesses, rules.changed(widened=False)).worst
        return exactly == RIGHT, exactly > WRONG, judge(line, witnesses, rules).worst > WRONG

    def _mixed(
        self,
        id: str,
        line: Line,
        chain: Chain,
        rows: Any,
        mistake: Mistake,
        rules: Rules,
        kept: Mapping[str, BoolArray],
    ) -> BoolArray:
        """Which of some sheets a mistake explains that was made by learners who mix their habits."""
        wrong = chain.fork(rows=rows).fork(mistake.swap)
        bounds = _value(hull, wrong, np.arange(len(rows)), id, {at: which[rows] for at, which in kept.items()})
        if bounds is None or bounds[0].shape != line.values.shape:
            return np.zeros(len(rows), dtype=np.bool_)
        fits: BoolArray = judge(line, [wrong.raw(id), *bounds], rules.changed(short=False)).worst > WRONG
        return fits

    def _reached(self, chain: Chain, rows: Any, swap: Mapping[str, Swap], id: str) -> Value:
        fork = chain.fork(rows=rows)
        if [*swap] == [id]:
            return fork.done(id, swap[id])
        return fork.fork(swap).raw(id)

    def _near(
        self, id: str, line: Line, chain: Chain, spread: Any, rules: Rules, open_steps: Sequence[str]
    ) -> list[tuple[str, Mistake, Any]]:
        """The mistakes that come near what was written in plain numbers, and for which sheets; the nearest where they
        are too many."""
        near: list[tuple[str, Mistake, Any]] = []
        distances, costs = [], []
        reach = _reach(line, spread, rules)
        for where in (id, *reversed(open_steps)):
            for mistake, value in self._plain(chain, where, id):
                off = _off(line, value)
                rows = np.flatnonzero(off <= reach)
                if rows.size:
                    near.append((where, mistake, rows))
                    distances.append(off[rows] / reach[rows])
                    costs.append(self.steps_between(mistake.swap, id, open_steps))
        if sum(costs) <= MOST_STEPS:
            return near
        kept: list[list[int]] = [[] for _ in near]
        for row in range(len(line.values)):
            # What one sheet can afford does not depend on the sheets beside it.
            tried = [i for i, (_, _, rows) in enumerate(near) if row in rows]
            own = [float(distances[i][near[i][2] == row][0]) for i in tried]
            for i in affordable(own, [costs[i] for i in tried], MOST_STEPS):
                kept[tried[i]].append(row)
        return [(where, mistake, np.array(rows)) for (where, mistake, _), rows in zip(near, kept, strict=True) if rows]

    def _plain(self, chain: Chain, where: str, id: str) -> list[tuple[Mistake, Value]]:
        """What a step comes out as with each of the mistakes at an earlier one, or at itself, in plain numbers."""
        found: list[tuple[Mistake, Value]] = []
        group: list[tuple[Mistake, Value]] = []
        seen = set[tuple[tuple[str, int], ...]]()
        for mistake in self.mistakes(where):
            # What is done alike somewhere that does not lead here makes no other numbers.
            leads = self._leads(mistake, id)
            if leads in seen:
                continue
            seen.add(leads)
            if [*mistake.swap] != [where]:
                value = _value(chain.fork(mistake.swap).raw, id)
                found += [(mistake, value)] if value is not None else []
                continue
            value = _value(chain.done, where, mistake.swap[where])
            if value is None:
                continue
            if where == id:
                found.append((mistake, value))
            elif value.shape[1:] == self.graph.shape(where):
                group.append((mistake, value))
            else:
                value = _value(chain.fork(mistake.swap).raw, id)
                found += [(mistake, value)] if value is not None else []
        return found + (self._carried_on(chain, where, id, group) if group else [])

    def _leads(self, mistake: Mistake, id: str) -> tuple[tuple[str, int], ...]:
        """What of a mistake leads to a step."""
        return tuple((at, builtin_id(swap)) for at, swap in mistake.swap.items() if at == id or id in self.setting[at])

    def _same(self, where: str, mistake: Mistake, id: str) -> list[Mistake]:
        """The mistakes that come to the same at a step, and go on otherwise elsewhere."""
        leads = self._leads(mistake, id)
        return [one for one in self.mistakes(where) if one.id == mistake.id and self._leads(one, id) == leads]

    def _carried_on(
        self, chain: Chain, where: str, id: str, group: Sequence[tuple[Mistake, Value]]
    ) -> list[tuple[Mistake, Value]]:
        """The same for several numbers of one step, all side by side."""
        count = max(len(value) for _, value in group)
        rows = np.tile(np.arange(count), len(group))
        fork = chain.fork(rows=rows)
        fork.give(where, np.concatenate([np.broadcast_to(v, (count, *v.shape[1:])) for _, v in group]))
        reached = _value(fork.raw, id)
        if reached is None or len(reached) != len(rows):
            return []
        parts = reached.reshape(len(group), count, *reached.shape[1:])
        return [(mistake, parts[i]) for i, (mistake, _) in enumerate(group)]

    def steps_between(self, wrong: Iterable[str], id: str, open_steps: Sequence[str]) -> int:
        """How many steps have to be worked out again where these are done otherwise."""
        after = self.setting.after(wrong)
        return 1 + sum(step in after for step in open_steps)

    # One sheet at a time, where no single mistake explains the line.

    def too_early(self, id: str, line: Line, family: Family, rules: Rules) -> BoolArray:
        """Which sheets' lines are right for lines before them that were rounded at fewer places than asked for."""
        found = np.zeros(len(line.values), dtype=np.bool_)
        for habit in TOO_EARLY:
            value = _value(self._with_fewer_places, family.chains[0], habit, id)
            if value is not None:
                found |= judge(line, [value], rules.changed(short=False)).worst > IMPRECISE
        return found

    def _with_fewer_places(self, chain: Chain, habit: Habit, id: str) -> Value:
        """What a step comes out as from lines that are rounded first by this habit."""
        step = self.graph.steps[id]
        operands = [
            chain.carried(name)
            if name in self.graph.inputs
            else habit.arithmetic(self.setting.places[name]).round_step(chain.carried(name))
            for name in step.inputs
        ]
        return chain.with_operands(id, step, operands)

    def slips(
        self, id: str, line: Line, witnesses: Sequence[Value], wrong: Any, rules: Rules
    ) -> list[tuple[str, Value]]:
        """Slips of writing that turn one sheet's wrong line into a right one, and what it then is with all its digits."""
        found: list[tuple[str, Value]] = []
        exactly = rules.changed(short=False)
        turned = line.at(lambda cells: cells.swapaxes(-1, -2)) if line.values.ndim > 2 else None
        if turned is not None and (judge(turned, witnesses, exactly).worst > IMPRECISE).all():
            found.append(("layout-transposed", witnesses[0][0].swapaxes(-1, -2)))
        if wrong is None or not wrong.any() or line.values.shape[1:] != witnesses[0].shape[1:]:
            return found
        return found + self.cell_slips(line, witnesses, wrong, exactly)

    def cell_slips(self, line: Line, witnesses: Sequence[Value], wrong: Any, rules: Rules) -> list[tuple[str, Value]]:
        """Slips in single cells; never where the right number is 0."""
        found: list[tuple[str, Value]] = []
        stack = np.stack([np.broadcast_to(one, line.values.shape) for one in witnesses])
        lo, hi, full = stack.min(0), stack.max(0), stack[0][0]
        half = 0.5 * 10.0**-rules.decimals
        if (~(np.abs(stack) <= half).any(0) | ~wrong).all():
            power = self._power(line, witnesses, wrong, rules, lo, hi)
            if _is_near(-line.values, lo, hi, wrong, 12 * half) and self._mended(
                line.changed(values=-line.values), witnesses, wrong, rules
            ):
                found.append(("sign", np.where(wrong[0], -full, full)))
            elif power is not None:
                found.append(("decimal-point", np.where(wrong[0], full * 10.0**-power, full)))
        for order in orders_exchanged(line.values.shape[1:], wrong[0]):
            moved = line.at(lambda cells, order=order: cells.reshape(len(cells), -1)[:, order].reshape(cells.shape))
            if (judge(moved, witnesses, rules).worst > IMPRECISE).all():
                found.append(("cells-exchanged", full.reshape(-1)[order].reshape(full.shape)))
                break
        return found

    def _power(self, line: Line, witnesses: Sequence[Value], wrong: Any, rules: Rules, lo: Any, hi: Any) -> int | None:
        """The power of ten, as its exponent, that mends every wrong cell."""
        half = 0.5 * 10.0**-rules.decimals
        for power in POWERS:
            near = _is_near(line.values * 10.0**power, lo, hi, wrong, 12 * half * max(1.0, 10.0**power))
            if near and self._mended(_moved(line, power), witnesses, wrong, _moved_rules(rules, power)):
                return power
        return None

    @staticmethod
    def _mended(line: Line, witnesses: Sequence[Value], wrong: Any, rules: Rules) -> bool:
        return bool(((judge(line, witnesses, rules).cells > IMPRECISE) | ~wrong).all())

    def with_slip(self, id: str, line: Line, numbers: Numbers, rules: Rules, open_steps: Sequence[str]) -> list[Found]:
        """A mistake here or at an earlier unwritten step of one sheet, and a slip in a cell of this one."""
        most = max(1, line.values[0].size // 3)
        reach = _reach(line, numbers.spread, rules) / 4
        for family in filter(None, (numbers.own, numbers.right)):
            for where in [id, *reversed(open_steps)][: _MOST_OPEN + 1]:
                found = []
                for mistake, value in self._plain(family.chains[0], where, id):
                    if value.shape[1:] != line.values.shape[1:]:
                        continue
                    with np.errstate(invalid="ignore"):
                        far = ~(np.abs(value[0] - line.values[0]) <= reach[0]) & ~(value[0] == line.values[0])
                    if not 0 < np.count_nonzero(line.shown(far[None])) <= most:
                        continue
                    reached = [_value(self._reached, chain, None, mistake.swap, id) for chain in family.chains]
                    witnesses = [one for one in reached if one is not None]
                    judged = judge(line, witnesses, rules)
                    for slip, _ in self.cell_slips(line, witnesses, judged.cells == WRONG, rules.changed(short=False)):
                        found.append(Found((Named(where, mistake.id), Named(id, slip)), mistake.swap, mistake.alike))
                if found:
                    return found
        return []

    def pairs(self, id: str, line: Line, numbers: Numbers, rules: Rules, open_steps: Sequence[str]) -> list[Found]:
        """Pairs of mistakes at different steps that explain one sheet's line: those of the first two steps that do."""
        if (
            line.eps is None and line.shown(np.isfinite(line.values) & (line.values != 0)).sum() < _LEAST_FOR_TWO
        ) or _has_fewer(line, rules):
            return []  # so many pairs come to a single number by chance
        left = MOST_PAIRS
        places = [id, *reversed(open_steps)][: _MOST_OPEN + 1]
        reach = _reach(line, numbers.spread, rules)
        for family in filter(None, (numbers.own, numbers.right)):
            for at, earlier in enumerate(places):
                found: dict[tuple[str, str, str], Found] = {}
                for later in places[:at]:
                    if later not in self.setting[earlier]:
                        continue
                    left -= len(self.mistakes(earlier)) * len(self.mistakes(later))
                    if left < 0:
                        return []
                    for one in self.mistakes(earlier):
                        fork = family.chains[0].fork(one.swap)
                        for other, value in self._plain(fork, later, id):
                            if later in one.swap or not (_off(line, value) <= reach).all():
                                continue
                            swap = {**one.swap, **other.swap}
                            witnesses = family.fork(swap).raws(id)
                            if witnesses and (judge(line, witnesses, rules).worst > WRONG).all():
                                pair = (Named(earlier, one.id), Named(later, other.id))
                                found[one.id, later, other.id] = Found(pair, swap, {**one.alike, **other.alike})
                if found:
                    return list(found.values())
        return []


builtin_id = id


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


def _is_near(values: Any, lo: Any, hi: Any, wrong: Any, reach: float) -> bool:
    """Whether every wrong cell would lie close to the witnesses with these values."""
    near = (values >= 2 * lo - hi - reach) & (values <= 2 * hi - lo + reach) | (values == lo)
    return bool((near | ~wrong).all())


def _moved(line: Line, power: int) -> Line:
    """The line with its decimal points moved."""
    return line.changed(values=line.values * 10.0**power, places=None)


def _moved_rules(rules: Rules, power: int) -> Rules:
    """A number whose point has slipped keeps the digits it was written with."""
    return rules.changed(decimals=max(0, rules.decimals - max(power, 0)), by_person=False, widened=False)


def either_way(value: Value, shape: Sequence[int]) -> Value:
    """A vector the way round it was written: one number for every column may stand in a column."""
    own, wanted = value.shape[1:], tuple(shape[1:])
    if own == wanted or len(own) != len(wanted) or sorted(own) != sorted(wanted) or 1 not in wanted:
        return value
    return value.reshape(len(value), *wanted)


def _note(
    found: Sequence[dict[tuple[str, str, int], Found]], rows: Any, where: str, mistakes: Sequence[Mistake], turn: int
) -> None:
    """Add mistakes that give the same numbers to what was found about some sheets."""
    for mistake in mistakes:
        one = Found((Named(where, mistake.id),), mistake.swap, mistake.alike, turn)
        # What is made at several steps at once may go on in several ways from here.
        key = where, mistake.id, builtin_id(mistake) if len(mistake.swap) > 1 else 0
        for row in rows.tolist():
            found[row].setdefault(key, one)


def may_be_slips(line: Line, right: Value, spread: Any, rules: Rules) -> BoolArray:
    """Which sheets may hold a slip of writing, by the right numbers in full: a sign, a point, a place."""
    turned = right.swapaxes(-1, -2) if right.ndim > 2 else right
    reach = _reach(line, spread, rules) / 2
    found: BoolArray = _off(line, turned) <= reach
    if right.shape[1:] != line.values.shape[1:]:
        return found
    wide = reach.reshape(-1, *(1,) * (line.values.ndim - 1))
    written = np.where(np.isfinite(line.values), line.values, 0.0)
    same = (np.abs(line.values - right) <= wide) | (line.values == right)
    if line.blank is not None:
        same |= line.blank
    slipped = (np.abs(written + right) <= wide) | (line.values == -right)
    for power in POWERS:
        slipped |= np.abs(written * 10.0**power - right) <= wide * max(1.0, 10.0**power)
    count = len(written)
    found |= (same | slipped).reshape(count, -1).all(1)
    moved = np.sort(written.reshape(count, -1)) - np.sort(
        np.broadcast_to(np.where(np.isfinite(right), right, 0.0), written.shape).reshape(count, -1)
    )
    found |= (np.abs(moved) <= reach[:, None]).all(1)
    return found


def is_near(line: Line, value: Value, spread: Any, rules: Rules) -> BoolArray:
    """Which sheets wrote about these numbers."""
    near: BoolArray = _off(line, value) <= _reach(line, spread, rules)
    return near


def _reach(line: Line, spread: Any, rules: Rules) -> Any:
    """By sheet, how far off a wrong calculation may be and still be looked into."""
    if line.eps is not None:
        largest = np.abs(np.where(np.isfinite(line.values), line.values, 0.0)).reshape(len(line.values), -1).max(1)
        return _FAR * (spread + line.eps * largest) + 1e-12
    unit = np.full(len(line.values), 10.0**-rules.decimals)
    if line.places is not None:
        shortest = np.where(line.places < 0, rules.decimals, line.places).reshape(len(line.values), -1).min(1)
        unit = np.maximum(unit, 10.0 ** -shortest.astype(np.float64))
    return _FAR * (spread + unit)


def _off(line: Line, value: Value) -> Any:
    """By sheet, how far the farthest cell is from what was written; of another shape: infinitely."""
    value = either_way(value, line.values.shape)
    if value.shape[1:] != line.values.shape[1:]:
        return np.full(len(line.values), np.inf)
    with np.errstate(invalid="ignore"):
        off = np.where(value == line.values, 0.0, np.abs(value - line.values))
    if line.blank is not None:
        off = np.where(line.blank, 0.0, off)
    return np.where(np.isnan(off), np.inf, off).reshape(len(line.values), -1).max(1, initial=0.0)


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


def order(named: Named, id: str) -> tuple[Any, ...]:
    """The likelier first: seen oftener, then nearer to the step."""
    return rank(named.id), named.step != id
