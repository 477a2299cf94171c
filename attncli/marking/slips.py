"""Slips of writing: right numbers with a sign, a decimal point or two places wrong, or the whole line transposed.

A line is right but for a slip where it is right once that is mended; by whatever habit its numbers were carried on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from attncli.arithmetic import Indices, Value
from attncli.core.graph import Step, Swap
from attncli.core.matrix import BoolArray, FloatArray
from attncli.core.record import Record
from attncli.marking.chain import MISFITS, Family, of_sheets
from attncli.marking.distance import off, reach
from attncli.marking.judge import WRONG, Judged, Line, Mixture, Rules, judge, judge_mixed
from attncli.marking.seeds import MANY, mixture
from attncli.mistakes.mistake import instead

#: How well something explains a line: to the last digit by some habit; cut off or with too few places; between habits; by
#: habits that are mixed; not; far from it.
CLOSELY, SHORT, BETWEEN, MIXED, NOT, FAR = range(6)

#: Powers of ten, as exponents, that a decimal point slips by.
_POWERS = (-3, -2, -1, 1, 2, 3)


class Slip(Record):
    """A slip by name, and what it does to a line.

    Parameters
    ----------
    factor : (…) what the cells are multiplied by; None: nothing
    order : (cells,) which cell stands in the place of each; None: every one in its own
    turned : whether the matrix is transposed
    """

    id: str
    factor: FloatArray | None = None
    order: Any = None
    turned: bool = False

    def of(self, value: Value) -> Value:
        """What it makes of right numbers, (sheets, …)."""
        if self.turned:
            return value.swapaxes(-1, -2)
        if self.factor is not None:
            return value * self.factor
        return value.reshape(-1, len(self.order))[:, self.order].reshape(value.shape)

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

    def of(self, rows: Any) -> Against:
        """The same for some of the sheets."""
        return Against(of_sheets(self.witnesses, rows), None if self.mixed is None else self.mixed.of(rows))

    def judged(self, line: Line, rules: Rules) -> Judged:
        found = judge(line, self.witnesses, rules)
        shape = line.values.shape[1:]
        if self.mixed is None or not self.mixed.low.shape[1:] == self.witnesses[0].shape[1:] == shape:
            return found
        return judge_mixed(found, line, np.arange(len(line.values)), self.mixed, rules)


class Slipped(Record):
    """Slips that explain one sheet's line as well as one another.

    Parameters
    ----------
    values : what each comes to with all digits, (1, …)
    """

    tier: int
    slips: list[Slip]
    values: list[Value]


def slips_of(step_id: str, line: Line, family: Family, rules: Rules) -> dict[int, Slipped]:
    """By sheet, the slips of writing that explain its line best, from the numbers of a family; of others nothing."""
    witnesses = family.raws(step_id)
    count = len(line.values)
    if count > 1 and len(witnesses) < len(family.chains):  # whose numbers do not fit is one sheet's own affair
        alone = [slips_of(step_id, line.of([at]), family.fork(rows=np.array([at])), rules) for at in range(count)]
        return {at: found[0] for at, found in enumerate(alone) if found}
    tiers = (SHORT, BETWEEN, MIXED) if line.eps is None and rules.by_person else (SHORT, BETWEEN)
    kept: dict[int, Slipped] = {}
    for tier in tiers if witnesses else ():
        left = np.array([at for at in range(count) if at not in kept], dtype=np.intp)
        for rows in left[:, None] if tier == MIXED else [left]:
            mixed = _mixture(step_id, family, rows) if tier == MIXED else None
            against = Against(of_sheets(witnesses, rows), mixed)
            found = slips(line.of(rows), against, rules.changed(widened=tier > SHORT)) if rows.size else []
            for at, some in zip(rows.tolist(), found, strict=True):
                if some:
                    full = of_sheets(witnesses[:1], [at])[0]
                    kept[at] = Slipped(tier, some, [slip.of(full) for slip in some])
    return kept


def _mixture(step_id: str, family: Family, rows: Any) -> Mixture | None:
    """What mixed learners come to from some sheets' own numbers; None where their operands do not fit."""
    try:
        return mixture(family.chains[0], rows, step_id, {}, MANY)
    except MISFITS:
        return None


def slips(line: Line, against: Against, rules: Rules) -> list[list[Slip]]:
    """By sheet, slips that turn right numbers into its wrong line."""
    found: list[list[Slip]] = [[] for _ in line.values]
    exactly = rules.changed(short=False)
    if line.values.ndim > 2:
        turned = against.judged(line.at(lambda cells: cells.swapaxes(-1, -2)), exactly)
        for row in np.flatnonzero(turned.worst > WRONG).tolist():
            found[row].append(Slip("layout-transposed", turned=True))
    if line.values.shape[1:] != against.witnesses[0].shape[1:]:
        return found
    wrong = against.judged(line, rules).cells == WRONG
    rows = np.flatnonzero(~_all(~wrong))
    if rows.size:
        in_cells = cell_slips(line.of(rows), against.of(rows), wrong[rows], exactly)
        for row, more in zip(rows.tolist(), in_cells, strict=True):
            found[row] += more
    return found


def cell_slips(line: Line, against: Against, wrong: BoolArray, rules: Rules) -> list[list[Slip]]:
    """By sheet, slips in single cells; in sign or point never where the right number is 0, or nothing is left of it."""
    found: list[list[Slip]] = [[] for _ in line.values]
    stack = np.stack([np.broadcast_to(one, line.values.shape) for one in against.witnesses])
    some = _all(~((np.abs(stack) <= 0.5 * 10.0**-rules.decimals).any(0) & wrong))
    some &= _all(~((line.values == 0) & wrong))
    negative = _signs(line, against, wrong, rules, stack, some)
    powers = _powers(line, against, wrong, rules, stack, some & ~negative)
    for row in np.flatnonzero(negative).tolist():
        found[row].append(Slip("sign", factor=np.where(wrong[row], -1.0, 1.0)))
    for row in np.flatnonzero(powers).tolist():
        found[row].append(Slip("decimal-point", factor=np.where(wrong[row], 10.0 ** -int(powers[row]), 1.0)))
    for row, order in _exchanged(line, against, wrong, rules).items():
        found[row].append(Slip("cells-exchanged", order=order))
    return found


def _signs(line: Line, against: Against, wrong: BoolArray, rules: Rules, stack: Any, among: BoolArray) -> BoolArray:
    """Which sheets are mended by the other sign in every wrong cell."""
    moved = line.changed(values=-line.values)
    return _are_mended(moved, against, wrong, rules, among & _may_be(moved, stack, wrong, 6 * 10.0**-rules.decimals))


def _powers(line: Line, against: Against, wrong: BoolArray, rules: Rules, stack: Any, among: BoolArray) -> Any:
    """By sheet, the power of ten, as its exponent, that mends every wrong cell; 0: none."""
    found = np.zeros(len(line.values), dtype=np.intp)
    for power in _POWERS:
        moved = line.changed(values=line.values * 10.0**power, places=None)
        # A number whose point has slipped keeps the digits it was written with.
        as_written = rules.changed(decimals=max(0, rules.decimals - max(power, 0)), by_person=False, widened=False)
        close = _may_be(moved, stack, wrong, 6 * 10.0**-rules.decimals * max(1.0, 10.0**power))
        found[_are_mended(moved, against, wrong, as_written, among & (found == 0) & close)] = power
    return found


def _exchanged(line: Line, against: Against, wrong: BoolArray, rules: Rules) -> dict[int, Any]:
    """By sheet, the first order of its cells in which the line is right, if there is any."""
    tried = [(row, order) for row, cells in enumerate(wrong) for order in _orders(cells)]
    if not tried:
        return {}
    rows, orders = np.array([row for row, _ in tried]), np.stack([order for _, order in tried])
    moved = line.of(rows).at(
        lambda cells: np.take_along_axis(cells.reshape(len(cells), -1), orders, axis=1).reshape(cells.shape)
    )
    right = against.of(rows).judged(moved, rules).worst > WRONG
    return {row: order for (row, order), fits in reversed([*zip(tried, right, strict=True)]) if fits}


def _orders(wrong: BoolArray) -> Iterator[Indices]:
    """The orders of cells in which the two wrong cells, rows or columns stand in each other's place."""
    order: Indices = np.reshape(np.arange(wrong.size), wrong.shape)
    turned = order.swapaxes(-1, -2) if order.ndim > 1 else order
    for lines in (order.reshape(-1, 1), order.reshape(-1, order.shape[-1]), turned.reshape(-1, turned.shape[-1])):
        off = np.flatnonzero(wrong.ravel()[lines].any(1))
        if len(off) == 2:
            swapped = order.ravel().copy()
            swapped[lines[off]] = lines[off[::-1]]
            yield swapped


def _are_mended(line: Line, against: Against, wrong: BoolArray, rules: Rules, among: BoolArray) -> BoolArray:
    """Which of some sheets are right in every cell that was wrong."""
    found = np.zeros(len(among), dtype=np.bool_)
    rows = np.flatnonzero(among)
    if rows.size:
        found[rows] = _all((against.of(rows).judged(line.of(rows), rules).cells > WRONG) | ~wrong[rows])
    return found


def _may_be(line: Line, stack: Any, wrong: BoolArray, far: float) -> BoolArray:
    """By sheet, whether every wrong cell of the mended line lies close to the witnesses."""
    lo, hi = stack.min(0), stack.max(0)
    with np.errstate(invalid="ignore"):
        near = (line.values >= 2 * lo - hi - far) & (line.values <= 2 * hi - lo + far) | (line.values == lo)
    return _all(near | ~wrong)


def _all(cells: BoolArray) -> BoolArray:
    """By sheet, whether all of its cells are so."""
    return np.array(cells.reshape(len(cells), -1).all(1), dtype=np.bool_)


def may_hold_slips(step_id: str, line: Line, families: Sequence[Family], spread: Any, rules: Rules) -> BoolArray:
    """Which sheets may hold a slip of writing, by the full numbers of these families: the others need not be looked into."""
    found = np.zeros(len(line.values), dtype=np.bool_)
    for family in families:
        with contextlib.suppress(*MISFITS):
            found |= _may_be_slips(line, family.chains[0].raw(step_id), spread, rules)
    return found


def _may_be_slips(line: Line, right: Value, spread: Any, rules: Rules) -> BoolArray:
    """The same by the numbers in full: a sign, a point, a place."""
    turned = right.swapaxes(-1, -2) if right.ndim > 2 else right
    close = reach(line, spread, rules) / 2
    found: BoolArray = off(line, turned) <= close
    if right.shape[1:] != line.values.shape[1:]:
        return found
    wide = close.reshape(-1, *(1,) * (line.values.ndim - 1))
    written = np.where(np.isfinite(line.values), line.values, 0.0)
    with np.errstate(invalid="ignore"):
        same = (np.abs(line.values - right) <= wide) | (line.values == right)
    if line.blank is not None:
        same |= line.blank
    slipped = (np.abs(written + right) <= wide) | (line.values == -right)
    for power in _POWERS:
        slipped |= np.abs(written * 10.0**power - right) <= wide * max(1.0, 10.0**power)
    count = len(written)
    found |= (same | slipped).reshape(count, -1).all(1)
    moved = np.sort(written.reshape(count, -1)) - np.sort(
        np.broadcast_to(np.where(np.isfinite(right), right, 0.0), written.shape).reshape(count, -1)
    )
    found |= (np.abs(moved) <= close[:, None]).all(1)
    return found
