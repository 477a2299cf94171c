"""Further witnesses: learners who mix their habits from line to line and from cell to cell, drawn with a fixed seed.

Asked only where the plain habits do not show a number, before giving up on it.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from attncli.arithmetic import Indices, Value
from attncli.arithmetic.floating import Floating
from attncli.core.graph import Step, Swap
from attncli.core.matrix import BoolArray, FloatArray
from attncli.marking.chain import Chain, fitting, of_sheets
from attncli.marking.judge import (
    CUT,
    NEARBY,
    NEARBY_SHARE,
    Cells,
    Judged,
    Line,
    Mixture,
    Rows,
    Rules,
    beside,
    each,
    hull,
    in_some,
    judge_mixed,
    size,
)
from attncli.mistakes.routes import Softmax

#: Learners drawn: at first, and where a number lies so near these that more of them may come to it.
FEW, MANY = 54, 432
#: Cells of the largest step, of all learners and sheets together, that are worked out at once.
_CELLS = 1 << 19
#: Distances between the witnesses and units beyond these, or so much, within which mixed habits are asked.
_CLOSE = 4.0
_NEAR = 20.0
_NEARLY = 0.01
#: Units beyond the few learners, and their distance (so many times, where no cell is farther off), past which none of many
#: comes to a number; but where the few lie so many units apart, somebody divides by what has nearly rounded to nothing, and
#: others may come to anything.
_UNITS_BEYOND = 4.0
_TIMES_BEYOND = 4.0
_WILD = 10.0
#: Numbers that are taken away from all scores in place of their maximum.
_CONSTANTS = (0.0, 1.0, 2.0)
#: How near to what was written a learner on either side of it shows that a calculation may come there, however far from
#: the others: so many units, or such a share of it.
_BESIDE = 8.0
_BESIDE_SHARE = 0.03
#: Share of the learners on either side that are few.
_FEW_OUT = 0.03
#: And those who take another number away: so many units, or such a share of the line's largest number.
_WAYS_NEARBY = 3.0
_WAYS_SHARE = 1e-3
#: Share of the numbers that somebody who is of two minds reads off the page.
_FROM_PAGE = 0.5
#: Places beyond those asked that a habit keeps, and what it adds before the rest is dropped (cutting adds only what a
#: computer may have lost): all digits; rounded to the places asked, one, two, three more; cut off there.
_MORE = np.array([0.0, 0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 3.0])
_ADDED = np.array([0.0, 0.5, 0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0]) + 1e-9
#: Shares of these habits in a cell, of the finer learners and of the coarser ones.
_HABITS = (
    (0.44, 0.25, 0.08, 0.04, 0.04, 0.08, 0.03, 0.02, 0.02),
    (0.34, 0.3, 0.08, 0.04, 0.04, 0.13, 0.03, 0.02, 0.02),
)


class Mixed(Chain):
    """The chain of learners who mix their habits, all sheets beside one another for each of them.

    Parameters
    ----------
    base : the full chain of the sheets
    rows : which of its sheets
    kept : by step, which sheets always go on with what they wrote (a wrong line is nothing else)
    learners : how many of them
    """

    def __init__(self, base: Chain, rows: Rows, kept: Mapping[str, BoolArray], learners: int) -> None:
        super().__init__(base.lineage, base.habit, base, np.tile(rows, learners))
        self.count = len(rows)
        self.learners = learners
        self.kept = {step_id: np.tile(which[rows], learners) for step_id, which in kept.items()}
        self._own = set(base.graph.steps)
        self._tops = {one.row_max: one for one in base.lineage.softmaxes}
        self._judged: str | None = None

    def toward(self, step_id: str) -> Value:
        """What the learners come to at a step, by ways that cannot be seen there too."""
        self._judged = step_id
        return self.raw(step_id)

    def raw(self, step_id: str) -> Value:
        found = self._raw.get(step_id)
        if found is None:
            found = super().raw(step_id)
            softmax = self._tops.get(step_id)
            if softmax is not None and self._judged in self.lineage[softmax.weights]:
                found = self._raw[step_id] = self._with_other_tops(softmax, found)
        return found

    def _with_other_tops(self, softmax: Softmax, top: Value) -> Value:
        """The maxima; of some learners whose e^x stands nowhere another number, since any leaves the weights as they are."""
        ways = np.repeat(_ways(self.learners), self.count)
        for line in (softmax.row_max, softmax.shifted, softmax.exp, softmax.row_sum):
            ways = np.where(self._is_written(line), -1, ways)
        column = beside(ways, top)
        for way, constant in enumerate(_CONSTANTS):
            top = np.where(column == way, constant, top)
        if softmax.before is None:
            return top
        before = self.going_on_to(softmax.before, softmax.row_max).max(-1, keepdims=True)
        return np.where(column == len(_CONSTANTS), before, top)

    def _is_written(self, step_id: str) -> BoolArray | np.bool_:
        """Which of the sheets hold a step."""
        given = self._given_below(step_id)
        if given is None:
            return np.False_
        return np.True_ if given[1] is None else in_some(given[1])

    def done(self, step_id: str, doing: Step | Swap) -> Value:
        if doing.inputs:
            return self.with_operands(step_id, doing, [self.going_on_to(i, step_id) for i in doing.inputs])
        # Of nothing but constants: the learners come in where the first of its numbers is noted.
        beside = self.arithmetic(step_id)
        beside.has_learners = False
        value = doing.op.compute(beside, **doing.params)
        return value if beside.has_learners else value[None]

    def going_on_to(self, step_id: str, consumer: str) -> Value:
        """What the learners put in for a step where another one needs it: one may read it off the page here and use the
        calculator's digits there."""
        if step_id in self.graph.inputs:
            return self.raw(step_id)
        given = self._given_below(step_id)
        shape = self.raw(step_id).shape[1:]
        plan = _plan(step_id, consumer, shape, self.learners)
        worked_out = _settled(self.raw(step_id), plan, self.lineage.places[step_id], self.count)
        if given is None:
            return worked_out
        values, where = given
        from_page = np.repeat(_reads_page(step_id, consumer, shape, self.learners), self.count, axis=0)
        kept = self.kept.get(step_id)
        if kept is not None:
            from_page = from_page | beside(kept, from_page)
        return np.where(from_page if where is None else from_page & where, values, worked_out)

    def arithmetic(self, step_id: str) -> _Beside:
        return _Beside(
            step_id, self.lineage.places[step_id], self.count, self.learners, len(self.lineage.shapes[step_id])
        )


class _Beside(Floating):
    """Floats that are rounded by some of the learners where they are noted beside a step (√d_k, a Q that is scaled early)."""

    def __init__(self, step_id: str, places: int, count: int, learners: int, axes: int) -> None:
        self.id, self.places, self.count, self.learners, self.axes = step_id, places, count, learners, axes
        self.has_learners = True
        self.noted = 0

    def round_intermediate(self, value: Value) -> Value:
        if np.ndim(value):
            return self.round_step(value)
        plan = _plan("√", self.id, (), self.learners)
        return _settled(np.asarray(value), plan, self.places, self.count).reshape(-1, *(1,) * self.axes)

    def round_step(self, value: Value) -> Value:
        if not self.has_learners:
            value, self.has_learners = value[None], True
        self.noted += 1
        plan = _plan(f"beside {self.noted}", self.id, value.shape[1:], self.learners)
        return _settled(value, plan, self.places, self.count)


def _settled(value: Value, plan: Indices, places: int, count: int) -> Value:
    """Each cell by its learner's habit."""
    habits = plan[:, None]
    power, added = (10.0 ** (places + _MORE)).take(habits), _ADDED.take(habits)
    # (learners, sheets, …): what all share is settled once for each learner.
    wide = value if value.ndim < plan.ndim else value.reshape(-1, count if len(value) > 1 else 1, *value.shape[1:])
    with np.errstate(invalid="ignore"):
        units = np.floor(np.abs(wide) * power + added) / power
    settled = np.where(habits == 0, wide, np.copysign(units, wide))
    return np.broadcast_to(settled, (len(plan), count, *settled.shape[2:])).reshape(-1, *settled.shape[2:])


@lru_cache(maxsize=1024)
def _plan(step_id: str, consumer: str, shape: Sequence[int], learners: int) -> Indices:
    """(learners, …) by which of the habits each cell goes on."""
    draw = _draws(step_id, consumer, shape, learners)
    coarse = (np.arange(learners) // 9 % 2 == 1).reshape(-1, *(1,) * len(shape))
    fine_ends, coarse_ends = np.cumsum(_HABITS, axis=1)[:, :-1]
    found = np.where(coarse, np.searchsorted(coarse_ends, draw, "right"), np.searchsorted(fine_ends, draw, "right"))
    return found.astype(np.uint8)


def _draws(step_id: str, consumer: str, shape: Sequence[int], learners: int) -> FloatArray:
    """(learners, …) what decides each cell's habit. A third of the learners keep one habit along a line wherever it is
    used, a third where it is used once, a third none."""
    line = np.random.Generator(np.random.PCG64(zlib.crc32(step_id.encode())))
    use = np.random.Generator(np.random.PCG64(zlib.crc32(f"{step_id} for {consumer}".encode())))
    ones = tuple(1 for _ in shape)
    found = use.random((learners, *shape))
    found[::3] = line.random((len(found[::3]), *ones))
    found[1::3] = use.random((len(found[1::3]), *ones))
    return found


@lru_cache(maxsize=8)
def _ways(learners: int) -> Indices:
    """(learners,) which other number each takes away in place of the maximum; −1: the maximum, like all of the first few."""
    block = np.arange(learners) // 9
    return np.where((np.arange(learners) >= FEW) & (block // 2 % 2 == 0), block // 4 % (len(_CONSTANTS) + 1), -1)


@lru_cache(maxsize=1024)
def _reads_page(step_id: str, consumer: str, shape: Sequence[int], learners: int) -> BoolArray:
    """(learners, …) which cells of a right line are read off the page: of some learners none, of some all."""
    minds = (np.arange(learners) // 3 % 3).reshape(-1, *(1,) * len(shape))
    of_two_minds = _draws(f"page {step_id}", consumer, shape, learners) < _FROM_PAGE
    return np.where(minds == 2, of_two_minds, minds == 1)


def mixture(
    base: Chain,
    rows: Rows,
    step_id: str,
    kept: Mapping[str, BoolArray],
    learners: int = FEW,
    written: FloatArray | None = None,
) -> Mixture:
    """What mixed learners come to at a step, for some sheets of a chain; held against `written` numbers where these are
    given."""
    cells = base.lineage.largest
    learners = min(learners, max(FEW, _CELLS // cells))
    portion = max(1, _CELLS // (learners * cells))
    if len(rows) > portion:
        parts = []
        for start in range(0, len(rows), portion):
            some = slice(start, start + portion)
            beside_it = None if written is None else written[some]
            parts.append(mixture(base, rows[some], step_id, kept, learners, beside_it))
        return Mixture(*(np.concatenate([part.__dict__[name] for part in parts]) for name in Mixture._fields))
    chain = Mixed(base, rows, kept, learners)
    with np.errstate(all="ignore"):
        reached = chain.toward(step_id)
        stack = np.broadcast_to(reached, (learners * len(rows), *reached.shape[1:]))
        stack = stack.reshape(learners, len(rows), *reached.shape[1:])
        (full,) = of_sheets([base.raw(step_id)], rows)
        unit = 10.0 ** -base.lineage.places[step_id]
        # Somebody who divided by a number that had rounded to nearly nothing says nothing about the others.
        far = np.broadcast_to(np.maximum(NEARBY * unit, NEARBY_SHARE * np.abs(full)), stack.shape)
        off = np.abs(stack - full)
        wild = (off > far).any(0)
        by_ways = beside(np.maximum(_WAYS_NEARBY * unit, _WAYS_SHARE * size(full)), full)
        far = np.where(_ways(learners).reshape(-1, *(1,) * full.ndim) < 0, far, by_ways)
        heard = np.where(off <= far, stack, np.nan)
        if written is None or stack.shape[1:] != written.shape:
            among = np.zeros(stack.shape[1:], dtype=np.bool_)
        else:
            among = _are_among(written, stack, full, unit)
        return Mixture(*_ends(heard), *_inner_ends(heard), among, wild)


def _are_among(written: FloatArray, stack: Value, full: Value, unit: float) -> BoolArray:
    """Which numbers lie between two that learners come to, both near."""
    near = np.maximum(_BESIDE * unit, _BESIDE_SHARE * np.maximum(np.abs(written), np.abs(written - full)))
    below = np.where(stack <= written + 0.5 * unit, stack, -np.inf).max(0)
    above = np.where(stack >= written - 0.5 * unit, stack, np.inf).min(0)
    found: BoolArray = (written - below <= near) & (above - written <= near)
    return found


def carried_hull(base: Chain, step_id: str, consumer: str) -> tuple[FloatArray, FloatArray]:
    """The smallest and the largest number that a sheet's mixed learners put in for a step where another one needs it."""
    chain = Mixed(base, [0], {}, FEW)
    with np.errstate(all="ignore"):
        return _ends(chain.going_on_to(step_id, consumer))


def _ends(stack: Value) -> tuple[FloatArray, FloatArray]:
    """The smallest and the largest along the first axis; −∞ where all are."""
    lo, hi = hull(stack, np.isfinite(stack))
    return np.where(np.isfinite(stack).any(0), lo, hi), hi


def _inner_ends(stack: Value) -> tuple[FloatArray, FloatArray]:
    """The same without the few that lie farthest out on either side."""
    few = int(len(stack) * _FEW_OUT)
    heard = ~np.isnan(stack)
    low = np.partition(np.where(heard, stack, np.inf), few, axis=0)[few]
    high = -np.partition(np.where(heard, -stack, np.inf), few, axis=0)[few]
    return low, high


def reconsidered(
    step_id: str, line: Line, judged: Judged, full: Chain, kept: Mapping[str, BoolArray], rules: Rules
) -> Judged:
    """The same after asking learners who mix their habits, where a cell is near enough and not right.

    Parameters
    ----------
    full : what they go on from
    kept : by step, which sheets go on with what they wrote
    """
    if line.eps is not None or not rules.by_person:
        return judged
    largest = each(np.abs(np.nan_to_num(line.values, neginf=0.0))).max(1, initial=1.0)
    close = np.maximum(judged.spread * _CLOSE + _NEAR, _NEARLY * 10.0**rules.decimals * largest)
    rows = np.flatnonzero(line.has & (judged.worst < CUT) & ((judged.near <= close) | judged.wild))
    for learners in (FEW, MANY):
        if not rows.size:
            break
        some = line.of(rows)
        # A learner's own T may name a row that is not there.
        mixed = fitting(mixture, full, rows, step_id, kept, learners, some.values if learners > FEW else None)
        if mixed is None or mixed.low.shape[1:] != line.values.shape[1:]:
            break
        of_rows = judge_mixed(judged.of(rows), some, mixed, rules)
        judged = judged.replaced(rows, of_rows)
        behind_softmax = any(step_id in full.lineage[one.weights] for one in full.lineage.softmaxes)
        share = _BESIDE_SHARE if behind_softmax else _WAYS_SHARE
        rows = rows[_may_come_to(of_rows.cells, some.values, mixed, rules, share)]
    return judged


def _may_come_to(cells: Cells, values: Value, mixed: Mixture, rules: Rules, share: float) -> BoolArray:
    """Which sheets hold a number that is not right, and so near those of few learners that one of many may come to it; if
    it is not that near, so are all that are not right."""
    lo, hi = mixed.low, mixed.high
    unit = 10.0**-rules.decimals
    largest = beside(size(values), values)
    not_right = cells < CUT
    with np.errstate(invalid="ignore"):
        apart = hi - lo
        beyond = np.where(apart <= _WILD * unit, np.maximum(lo - values, values - hi), 0.0) - _UNITS_BEYOND * unit
    near = beyond <= apart + _WAYS_SHARE * largest
    about = (beyond <= _TIMES_BEYOND * apart + share * largest) | mixed.wild
    lost = in_some(not_right & ~near & ~about)
    return in_some(not_right & near) | in_some(not_right & about) & ~lost
