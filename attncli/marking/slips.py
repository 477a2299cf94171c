"""Slips of writing: right numbers with a sign, a decimal point or two places wrong, or the whole line transposed.

A line is right but for a slip where it is right once that is mended; by whatever habit its numbers were carried on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from attncli.arithmetic import Value
from attncli.core.graph import Step, Swap
from attncli.core.matrix import BoolArray, FloatArray
from attncli.core.record import Record
from attncli.marking.distance import off, reach
from attncli.marking.judge import IMPRECISE, WRONG, Judged, Line, Rules, judge, judge_mixed
from attncli.mistakes.entry import instead
from attncli.mistakes.slips import POWERS, orders_exchanged


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
    """Right numbers that one sheet's line is held against.

    Parameters
    ----------
    witnesses : by the plain habits
    bounds : between which mixed learners come, as in `judge_mixed`; None: not asked
    """

    witnesses: Sequence[Value]
    bounds: tuple[FloatArray, ...] | None = None

    def judged(self, line: Line, rules: Rules) -> Judged:
        found = judge(line, self.witnesses, rules)
        if self.bounds is None or not self.bounds[0].shape == self.witnesses[0].shape == line.values.shape:
            return found
        return judge_mixed(found, line, np.zeros(1, dtype=np.intp), self.bounds, rules)


def slips(line: Line, against: Against, rules: Rules) -> list[Slip]:
    """Slips that turn right numbers into one sheet's wrong line."""
    found = []
    exactly = rules.changed(short=False)
    turned = line.at(lambda cells: cells.swapaxes(-1, -2)) if line.values.ndim > 2 else None
    if turned is not None and (against.judged(turned, exactly).worst > IMPRECISE).all():
        found.append(Slip("layout-transposed", turned=True))
    if line.values.shape[1:] != against.witnesses[0].shape[1:]:
        return found
    wrong = against.judged(line, rules).cells == WRONG
    return found + list(cell_slips(line, against, wrong, exactly)) if wrong.any() else found


def cell_slips(line: Line, against: Against, wrong: Any, rules: Rules) -> Iterator[Slip]:
    """Slips in single cells; in sign or point never where the right number is 0."""
    stack = np.stack([np.broadcast_to(one, line.values.shape) for one in against.witnesses])
    half = 0.5 * 10.0**-rules.decimals
    if not ((np.abs(stack) <= half).any(0) & wrong).any():
        power = _power(line, against, wrong, rules, stack)
        negative = line.changed(values=-line.values)
        if _may_be(negative, stack, wrong, 12 * half) and _is_mended(negative, against, wrong, rules):
            yield Slip("sign", factor=np.where(wrong[0], -1.0, 1.0))
        elif power is not None:
            yield Slip("decimal-point", factor=np.where(wrong[0], 10.0**-power, 1.0))
    for order in orders_exchanged(line.values.shape[1:], wrong[0]):
        moved = line.at(lambda cells, order=order: cells.reshape(len(cells), -1)[:, order].reshape(cells.shape))
        if (against.judged(moved, rules).worst > IMPRECISE).all():
            yield Slip("cells-exchanged", order=order)
            return


def _power(line: Line, against: Against, wrong: Any, rules: Rules, stack: Any) -> int | None:
    """The power of ten, as its exponent, that mends every wrong cell."""
    half = 0.5 * 10.0**-rules.decimals
    for power in POWERS:
        moved = line.changed(values=line.values * 10.0**power, places=None)
        # A number whose point has slipped keeps the digits it was written with.
        as_written = rules.changed(decimals=max(0, rules.decimals - max(power, 0)), by_person=False, widened=False)
        if _may_be(moved, stack, wrong, 12 * half * max(1.0, 10.0**power)) and _is_mended(
            moved, against, wrong, as_written
        ):
            return power
    return None


def _is_mended(line: Line, against: Against, wrong: Any, rules: Rules) -> bool:
    return bool(((against.judged(line, rules).cells > IMPRECISE) | ~wrong).all())


def _may_be(line: Line, stack: Any, wrong: Any, far: float) -> bool:
    """Whether every wrong cell of the mended line lies close to the witnesses."""
    lo, hi = stack.min(0), stack.max(0)
    with np.errstate(invalid="ignore"):
        near = (line.values >= 2 * lo - hi - far) & (line.values <= 2 * hi - lo + far) | (line.values == lo)
    return bool((near | ~wrong).all())


def may_be_slips(line: Line, right: Value, spread: Any, rules: Rules) -> BoolArray:
    """Which sheets may hold a slip of writing, by the right numbers in full: a sign, a point, a place."""
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
    for power in POWERS:
        slipped |= np.abs(written * 10.0**power - right) <= wide * max(1.0, 10.0**power)
    count = len(written)
    found |= (same | slipped).reshape(count, -1).all(1)
    moved = np.sort(written.reshape(count, -1)) - np.sort(
        np.broadcast_to(np.where(np.isfinite(right), right, 0.0), written.shape).reshape(count, -1)
    )
    found |= (np.abs(moved) <= close[:, None]).all(1)
    return found
