"""Slips of writing: right numbers with a sign, a decimal point or two places wrong, or the whole line transposed; and one
part of a sum left out, counted twice or with the wrong sign.

A line is right but for a slip where it is right once that is mended; by whatever habit its numbers were carried on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial

import numpy as np

from attncli.arithmetic import Indices, Value
from attncli.core.graph import Step, Swap
from attncli.core.matrix import EXACT, BoolArray, FloatArray
from attncli.core.message import N_, Cell, Listed, Message
from attncli.core.record import Record
from attncli.core.terms import Index, Term
from attncli.marking.chain import Chain, Family, fitting, of_sheets
from attncli.marking.judge import (
    WRONG,
    Judged,
    Line,
    Mixture,
    Rows,
    Rules,
    beside,
    each,
    in_all,
    judge,
    judge_mixed,
    off,
    reach,
)
from attncli.marking.seeds import MANY, mixture
from attncli.mistakes.mistake import instead

#: How well something explains a line: to the last digit by some habit; cut off or with too few places; between habits; by
#: habits that are mixed; not; far from it.
CLOSELY, SHORT, BETWEEN, MIXED, NOT, FAR = range(6)

#: Powers of ten, as exponents, that a decimal point slips by.
_POWERS = (-3, -2, -1, 1, 2, 3)

#: What happened to a part of a sum, and how often it then counts.
_PARTS = (
    (0.0, N_("Cell [{cell}]: the part {part} is missing from the sum.")),
    (2.0, N_("Cell [{cell}]: the part {part} is counted twice.")),
    (-1.0, N_("Cell [{cell}]: the part {part} has the wrong sign.")),
)
#: Parts a sum may have to be looked into.
_MOST_PARTS = 64


class WrongLine(Record):
    """A wrong line of some sheets, and what they may have worked it out from.

    Parameters
    ----------
    families : each learner's own lines; then, where that is something else, the right ones in the place of wrong ones
    spread : (sheets,) how far right calculations of this step lie apart
    open_steps : unwritten steps before this one that reach it without passing a written one
    kept : by step, which sheets go on from a wrong line that they wrote
    """

    step_id: str
    line: Line
    families: Sequence[Family]
    spread: FloatArray
    rules: Rules
    open_steps: Sequence[str]
    kept: Mapping[str, BoolArray]

    def of(self, rows: Rows) -> WrongLine:
        """The same of some of the sheets."""
        return self.changed(
            line=self.line.of(rows),
            families=[family.of(rows) for family in self.families],
            spread=self.spread[rows],
            kept={step_id: which[rows] for step_id, which in self.kept.items()},
        )

    @property
    def own(self) -> Chain:
        """The learners' own numbers, with all digits."""
        return self.families[0].full

    @property
    def by_person(self) -> bool:
        return self.line.eps is None and self.rules.by_person

    @cached_property
    def reach(self) -> FloatArray:
        """By sheet, how far off a wrong calculation may be and still be looked into."""
        return reach(self.line, self.spread, self.rules)


class Slip(Record):
    """A slip by name, and what it makes of right numbers, (sheets, …)."""

    id: str
    of: Callable[[Value], Value]

    def made_at(self, step: Step) -> dict[str, Swap]:
        """The slip made with all digits, for those who go on from it with more of them than they wrote."""
        return instead(step, lambda xp, *operands: self.of(step.op.compute(xp, *operands, **step.params)), *step.inputs)


class Against(Record):
    """Right numbers that the line of some sheets is held against.

    Parameters
    ----------
    witnesses : by the plain habits
    mixed : what mixed learners come to; None: not asked
    """

    witnesses: Sequence[Value]
    mixed: Mixture | None = None

    def of(self, rows: Rows) -> Against:
        """The same for some of the sheets."""
        return Against(of_sheets(self.witnesses, rows), None if self.mixed is None else self.mixed.of(rows))

    def judged(self, line: Line, rules: Rules) -> Judged:
        found = judge(line, self.witnesses, rules)
        if self.mixed is None or not self.mixed.low.shape[1:] == self.witnesses[0].shape[1:] == line.values.shape[1:]:
            return found
        return judge_mixed(found, line, self.mixed, rules)


class Slipped(Record):
    """Slips that explain one sheet's line as well as one another.

    Parameters
    ----------
    values : what each comes to with all digits, (1, …)
    """

    tier: int
    slips: list[Slip]
    values: list[Value]


def slips_of(wrong: WrongLine, family: Family) -> dict[int, Slipped]:
    """By sheet, the slips of writing that explain its line best, from the numbers of a family; of others nothing."""
    line, step_id = wrong.line, wrong.step_id
    witnesses = family.raws(step_id)
    count = len(line.values)
    if count > 1 and len(witnesses) < len(family.chains):  # whose numbers do not fit is one sheet's own affair
        alone = [slips_of(wrong.of([at]), family.of([at])) for at in range(count)]
        return {at: found[0] for at, found in enumerate(alone) if found}
    tiers = (SHORT, BETWEEN, MIXED) if wrong.by_person else (SHORT, BETWEEN)
    kept: dict[int, Slipped] = {}
    for tier in tiers if witnesses else ():
        left = [at for at in range(count) if at not in kept]
        for rows in [[at] for at in left] if tier == MIXED else [left]:
            mixed = fitting(mixture, family.full, rows, step_id, {}, MANY) if tier == MIXED else None
            against = Against(of_sheets(witnesses, rows), mixed)
            found = slips(line.of(rows), against, wrong.rules.changed(widened=tier > SHORT)) if rows else []
            for at, some in zip(rows, found, strict=True):
                if some:
                    (full,) = of_sheets(witnesses[:1], [at])
                    kept[at] = Slipped(tier, some, [slip.of(full) for slip in some])
    return kept


def slips(line: Line, against: Against, rules: Rules) -> list[list[Slip]]:
    """By sheet, slips that turn right numbers into its wrong line."""
    found: list[list[Slip]] = [[] for _ in line.values]
    exactly = rules.changed(short=False)
    if line.values.ndim > 2:
        transposed = against.judged(line.at(_transposed), exactly)
        for row in np.flatnonzero(transposed.worst > WRONG).tolist():
            found[row].append(Slip("layout-transposed", _transposed))
    if line.values.shape[1:] != against.witnesses[0].shape[1:]:
        return found
    cells = against.judged(line, rules).cells == WRONG
    rows = np.flatnonzero(~in_all(~cells))
    if rows.size:
        for row, more in zip(
            rows.tolist(), cell_slips(line.of(rows), against.of(rows), cells[rows], exactly), strict=True
        ):
            found[row] += more
    return found


def cell_slips(line: Line, against: Against, wrong: BoolArray, rules: Rules) -> list[list[Slip]]:
    """By sheet, slips in single cells; in sign or point never where the right number is 0, or nothing is left of it."""
    found: list[list[Slip]] = [[] for _ in line.values]
    stack = np.stack([np.broadcast_to(one, line.values.shape) for one in against.witnesses])
    nothing = (np.abs(stack) <= 0.5 * 10.0**-rules.decimals).any(0) | (line.values == 0)
    some = in_all(~(nothing & wrong))
    mended = [("sign", -1.0, line.places, rules)]
    for power in _POWERS:
        # A number whose point has slipped keeps the digits it was written with.
        asked = max(0, rules.decimals - max(power, 0))
        mended.append(
            ("decimal-point", 10.0**power, EXACT, rules.changed(decimals=asked, by_person=False, widened=False))
        )
    for name, factor, places, read in mended:
        moved = line.changed(values=line.values * factor, places=places)
        close = _may_be(moved, stack, wrong, 6 * 10.0**-rules.decimals * max(1.0, factor))
        for row in np.flatnonzero(_are_mended(moved, against, wrong, read, some & close)).tolist():
            found[row].append(Slip(name, partial(np.multiply, np.where(wrong[row], 1.0 / factor, 1.0))))
            some[row] = False
    for row, order in _exchanged(line, against, wrong, rules).items():
        found[row].append(Slip("cells-exchanged", partial(_in_order, order)))
    return found


def _transposed(cells: Value) -> Value:
    return cells.swapaxes(-1, -2)


def _in_order(order: Indices, cells: Value) -> Value:
    return cells.reshape(-1, len(order))[:, order].reshape(cells.shape)


def _exchanged(line: Line, against: Against, wrong: BoolArray, rules: Rules) -> dict[int, Indices]:
    """By sheet, the first order of its cells in which the line is right, if there is any."""
    tried = [(row, order) for row, cells in enumerate(wrong) for order in _orders(cells)]
    if not tried:
        return {}
    rows, orders = np.array([row for row, _ in tried]), np.stack([order for _, order in tried])
    moved = line.of(rows).at(lambda cells: np.take_along_axis(each(cells), orders, axis=1).reshape(cells.shape))
    right = against.of(rows).judged(moved, rules).worst > WRONG
    return {row: order for (row, order), fits in reversed([*zip(tried, right, strict=True)]) if fits}


def _orders(wrong: BoolArray) -> Iterator[Indices]:
    """The orders of cells in which the two wrong cells, rows or columns stand in each other's place."""
    order: Indices = np.reshape(np.arange(wrong.size), wrong.shape)
    transposed = order.swapaxes(-1, -2) if order.ndim > 1 else order
    for lines in (
        order.reshape(-1, 1),
        order.reshape(-1, order.shape[-1]),
        transposed.reshape(-1, transposed.shape[-1]),
    ):
        apart = np.flatnonzero(wrong.ravel()[lines].any(1))
        if len(apart) == 2:
            swapped = order.ravel().copy()
            swapped[lines[apart]] = lines[apart[::-1]]
            yield swapped


def _are_mended(line: Line, against: Against, wrong: BoolArray, rules: Rules, among: BoolArray) -> BoolArray:
    """Which of some sheets are right in every cell that was wrong."""
    found = np.zeros(len(among), dtype=np.bool_)
    rows = np.flatnonzero(among)
    if rows.size:
        found[rows] = in_all((against.of(rows).judged(line.of(rows), rules).cells > WRONG) | ~wrong[rows])
    return found


def _may_be(line: Line, stack: FloatArray, wrong: BoolArray, far: float) -> BoolArray:
    """By sheet, whether every wrong cell of the mended line lies close to the witnesses."""
    lo, hi = stack.min(0), stack.max(0)
    with np.errstate(invalid="ignore"):
        near = (line.values >= 2 * lo - hi - far) & (line.values <= 2 * hi - lo + far) | (line.values == lo)
    return in_all(near | ~wrong)


def may_hold_slips(wrong: WrongLine) -> BoolArray:
    """Which sheets may hold a slip of writing, by numbers in full: the others need not be looked into."""
    found = np.zeros(len(wrong.line.values), dtype=np.bool_)
    for family in wrong.families:
        right = fitting(family.full.raw, wrong.step_id)
        if right is not None:
            found |= _may_be_slips(wrong.line, right, wrong.reach / 2)
    return found


def _may_be_slips(line: Line, right: Value, close: FloatArray) -> BoolArray:
    """The same by the numbers of one family: a sign, a point, a place."""
    transposed = _transposed(right) if right.ndim > 2 else right
    found: BoolArray = off(line, transposed) <= close
    if right.shape[1:] != line.values.shape[1:]:
        return found
    wide = beside(close, line.values)
    written = np.where(np.isfinite(line.values), line.values, 0.0)
    with np.errstate(invalid="ignore"):
        same = (np.abs(line.values - right) <= wide) | (line.values == right) | line.blank
    slipped = line.values == -right
    for factor in (-1.0, *(10.0**power for power in _POWERS)):
        slipped |= np.abs(written * factor - right) <= wide * max(1.0, factor)
    numbers = np.broadcast_to(np.where(np.isfinite(right), right, 0.0), written.shape)
    moved = np.abs(np.sort(each(written)) - np.sort(each(numbers)))
    found |= in_all(same | slipped) | (moved <= close[:, None]).all(1)
    return found


# --- one part of a sum ------------------------------------------------------------------------------------------------


def parts_wrong(chain: Chain, step_id: str, line: Line, rules: Rules) -> tuple[Message, ...]:
    """One message a wrong cell of one sheet's line, if each of them comes from one wrong part of a sum; else none."""
    raw = fitting(chain.raw, step_id)
    if raw is None or raw.shape[1:] != line.values.shape[1:] or not np.nan_to_num(line.values).any():
        return ()
    wrong = np.argwhere(judge(line, [raw], rules).cells[0] == WRONG)
    # One cell, or two at most: more is no slip.
    if not 0 < len(wrong) <= 2 or step_id in chain.swap:
        return ()
    step = chain.graph.steps[step_id]
    values = {name: chain.carried(name)[0] for name in step.inputs}
    half = 0.5 * 10.0**-rules.decimals * (1 + 1e-7)
    said = []
    for index in wrong:
        place = tuple(int(i) for i in index)
        term = step.terms(values)[place]
        if term.kind != "sum" or not 1 < len(term.parts) <= _MOST_PARTS:
            return ()
        found = next(_part_wrong(term, values, place, float(line.values[0][place]), half), None)
        if found is None:
            return ()
        said.append(found)
    return tuple(said)


def _part_wrong(
    term: Term, values: dict[str, FloatArray], place: tuple[int, ...], here: float, half: float
) -> Iterator[Message]:
    parts = term.terms
    numbers = [_number(part, values) for part in parts]
    if not np.isfinite(numbers).all():
        return
    for factor, text in _PARTS:
        fits = [
            _name(part)
            for i, part in enumerate(parts)
            if numbers[i] and abs(sum(n * factor if j == i else n for j, n in enumerate(numbers)) - here) <= half
        ]
        # Two that fit are named together, more say nothing.
        if 0 < len(fits) <= 2:
            which = fits[0] if len(fits) == 1 else Message("{one} or {other}", one=fits[0], other=fits[1])
            yield Message(text, cell=Cell(i + 1 for i in place), part=which)


def _number(term: Term, values: dict[str, FloatArray]) -> float:
    """A part: a cell, a number, or a product of those."""
    return term.fold(
        lambda step_id, index: float(values[step_id][index]),
        float,
        lambda term, factors: math.prod(factors) if term.kind == "product" else math.nan,
        lambda word: math.nan,
    )


def _name(term: Term) -> Message | str:
    """Q[1,2]·K[3,2]: which cells the part is made of."""

    def cell(step_id: str, index: Index) -> Message | str:
        return Message("{id}[{cell}]", id=step_id, cell=Cell(i + 1 for i in index))

    return term.fold(cell, "{:g}".format, lambda term, factors: Listed(factors, "{one}·{another}"), str)
