"""The rule of a verdict: one written step of many sheets against the witnesses of right calculations (FORMATS).

A cell is right if it is a witness's number rounded at the places asked, or lies where witnesses differ; it is imprecise
if it has too few places for that. Nothing else is right: no tolerance, and no bounds in which a number might lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from attncli.arithmetic import Value
from attncli.arithmetic.hand import truncate_decimal
from attncli.core.matrix import EXACT, BoolArray, FloatArray
from attncli.core.record import Record

#: What a cell is, the better the higher.
WRONG, IMPRECISE, CUT, RIGHT = range(4)

#: Relative distance that is put down to the computer, in units of a float's precision and of a unit of the last place.
_SLACK = 8 * float(np.finfo(np.float64).eps)
_TIE = 1e-7
#: What a counted number may be off by.
_COUNTED = 0.05
#: Units from the full value, and its share, within which a witness says something about its neighbours.
_NEARBY = 60.0
_SHARE = 0.5
#: Shares of the distance between mixed learners by which a right number may lie beyond them, and an imprecise one.
_WIDENED = 0.05
_BEYOND = 1.0
#: Units that mixed learners may lie apart, or as much as their number is large, and still tell a right number from others.
_TELLING = 10.0
#: Distances between a program's witnesses, and units of an array's own last place, that a program may be off.
_DISTANCES = 3.0
_ULPS = 2.0


class Line(Record):
    """What many sheets wrote for one step, side by side.

    Parameters
    ----------
    values : (sheets, …) as written; NaN where blank or not written
    places : (sheets, …) decimals each cell was written with, or `EXACT`; None: the places asked for, all of them
    blank : (sheets, …) cells left open; None: none
    has : (sheets,) which of them wrote the step down
    eps : relative precision of the program that wrote it, or None for a person
    cutter : (sheets,) which of them have been seen to cut off
    """

    values: FloatArray
    places: Any
    blank: Any
    has: BoolArray
    eps: float | None = None
    cutter: Any = np.False_

    def of(self, rows: Any) -> Line:
        """The same step of some of the sheets."""
        return Line(
            self.values[rows],
            None if self.places is None else self.places[rows],
            None if self.blank is None else self.blank[rows],
            self.has[rows],
            self.eps,
            self.cutter[rows] if np.ndim(self.cutter) else self.cutter,
        )

    def at(self, rearranged: Any) -> Line:
        """The same cells in another arrangement (transposed, reshaped)."""
        return Line(
            rearranged(self.values),
            None if self.places is None else rearranged(self.places),
            None if self.blank is None else rearranged(self.blank),
            self.has,
            self.eps,
            self.cutter,
        )

    def shown(self, cells: BoolArray) -> BoolArray:
        """`cells` without those that are blank."""
        return cells if self.blank is None else cells & ~self.blank


class Judged(Record):
    """How a line stands to the witnesses it was held against.

    Parameters
    ----------
    cells : (sheets, …) WRONG, IMPRECISE, CUT or RIGHT
    witness : (sheets,) the first witness that shows every cell; −1 where none does alone
    near : (sheets,) the distance of the farthest cell from the nearest witness, in units of the last place asked
    spread : (sheets,) how far the witnesses lie apart, in the same units; not more than those near the full value
    exact : (sheets, …) where all of them are one and the same number
    cuts : (sheets, …) which cells are a witness's number cut off
    wild : (sheets,) whether some witness lies far off the full value
    """

    cells: Any
    witness: Any
    near: FloatArray
    spread: FloatArray
    exact: Any = True
    cuts: Any = False
    wild: Any = False

    @cached_property
    def worst(self) -> Any:
        """(sheets,) what the least of a sheet's cells is."""
        return self.cells.reshape(len(self.cells), -1).min(1, initial=RIGHT)

    def replaced(self, rows: Any, other: Judged) -> Judged:
        """The same with what was found about some sheets otherwise."""
        found = []
        for name in self._fields:
            own, new = self.__dict__[name], other.__dict__[name]
            whole = np.array(np.broadcast_to(own, self.cells.shape) if np.ndim(own) == 0 else own)
            whole[rows] = new
            found.append(whole)
        return Judged(*found)


class Rules(Record):
    """How a written number is read.

    Parameters
    ----------
    decimals : places asked for
    by_person : numbers may be cut off
    widened : a number may lie between witnesses, and beyond them by their distance
    short : numbers with fewer places than asked may be imprecise
    as_written : each number is read at the places it was written with; one without a point at those asked for
    """

    decimals: int
    by_person: bool = True
    widened: bool = True
    short: bool = True
    as_written: bool = False

    def places(self, line: Line) -> Any:
        """Places at which the cells of a line are read: one number, or one for each cell."""
        if not self.as_written or line.places is None:
            return self.decimals
        return np.where(line.places > 0, line.places, self.decimals)


def judge(line: Line, witnesses: Sequence[Value], rules: Rules, by_another_plan: Sequence[Value] = ()) -> Judged:
    """A line against the numbers of witnesses, each of shape (sheets or 1, …); the first one is the full calculation.

    Parameters
    ----------
    by_another_plan : further witnesses; what lies between the two plans is neither
    """
    count = len(line.values)
    plans = [[one for one in plan if one.shape[1:] == line.values.shape[1:]] for plan in (witnesses, by_another_plan)]
    fitting = [one for plan in plans for one in plan]
    if not fitting:
        nothing = np.full(line.values.shape, WRONG, dtype=np.int8)
        return Judged(
            nothing, np.full(count, -1), np.full(count, np.inf), np.zeros(count), wild=np.zeros(count, np.bool_)
        )
    with np.errstate(all="ignore"):
        stack = np.empty((len(fitting), *line.values.shape))
        for at, one in enumerate(fitting):
            stack[at] = one
        if line.eps is not None:
            return _judged_program(line, stack, rules)
        return _judged_person(line, stack, rules, len(plans[0]))


def _judged_person(line: Line, stack: Any, rules: Rules, other_from: int) -> Judged:
    places = rules.places(line)
    unit = 10.0 ** -np.asarray(places, dtype=np.float64)
    off = np.abs(line.values - stack)
    same = line.values == stack
    slack = (np.abs(stack) + unit) * _SLACK + unit * _TIE
    # Beside −∞ the slack is infinite: what is infinitely far off is never near.
    fine = (off <= _half(stack, unit, rules) + slack) & (off < np.inf) | same
    right = fine.any(0)
    near = np.where(same, 0.0, off).min(0)
    if line.blank is not None:
        right |= line.blank
        fine |= line.blank
        near = np.where(line.blank, 0.0, near)
    cells = np.where(right, RIGHT, WRONG).astype(np.int8)
    flat = fine.reshape(len(stack), len(line.values), -1).all(-1)
    witness = np.where(flat.any(0), flat.argmax(0), -1)
    far = _largest(near / unit)
    far = np.where(np.isnan(far), np.inf, far)
    count = len(line.values)
    spread, wild = np.zeros(count), np.zeros(count, dtype=np.bool_)
    exact, cuts = np.ones(cells.shape, dtype=np.bool_), np.zeros(cells.shape, dtype=np.bool_)
    rows = np.flatnonzero(line.has & (cells == WRONG).reshape(count, -1).any(1))
    if rows.size:
        of_rows = _between_witnesses(line.of(rows), stack[:, rows], cells[rows], rules, other_from)
        cells[rows], spread[rows], exact[rows], cuts[rows], wild[rows] = of_rows
    return Judged(cells, witness, far, spread, exact, cuts, wild)


def _between_witnesses(line: Line, stack: Any, cells: Any, rules: Rules, other_from: int) -> tuple[Any, ...]:
    """The cells of lines in which some number is no witness's rounded, and how the witnesses stand to one another:
    `Judged.spread`, `exact`, `cuts` and `wild`."""
    places = rules.places(line)
    unit = 10.0 ** -np.asarray(places, dtype=np.float64)
    lo, hi, near_all = _ends(stack, unit)
    open_ = cells == WRONG
    plans = [stack[:other_from], stack[other_from:]] if 0 < other_from < len(stack) else [stack]
    if rules.widened and len(stack) > 1:
        for least, most in [(lo, hi)] if len(plans) == 1 else [_ends(plan, unit)[:2] for plan in plans]:
            cells[open_ & _between(line.values, least, most, unit)] = RIGHT
    open_ &= cells == WRONG
    cuts = np.zeros(cells.shape, dtype=np.bool_)
    if rules.by_person and open_.any():
        cuts = _cut_off(line, stack, places)
        cells[open_ & cuts] = CUT
        open_ &= ~cuts
    if rules.short and line.places is not None and open_.any():
        cells[open_ & _short(line, stack, rules)] = IMPRECISE
    return cells, _apart(lo, hi, unit), hi - lo <= unit * _TIE, cuts, ~near_all.reshape(len(near_all), -1).all(1)


def _apart(lo: Any, hi: Any, unit: Any) -> Any:
    """By sheet, how far the ends lie apart, in units."""
    return _largest(np.where(hi > lo, hi - lo, 0.0) / unit)


def spread_of(witnesses: Sequence[Value], unit: float) -> Any:
    """By sheet, how far witnesses of one shape lie apart, in units; not more than those near the full value."""
    stack = np.stack(np.broadcast_arrays(*witnesses))
    with np.errstate(all="ignore"):
        return _apart(*_ends(stack, unit)[:2], unit)


def _half(stack: Any, unit: Any, rules: Rules) -> Any:
    """Half a unit of the last place asked; where whole numbers are counted out (ids), none lies between two of them."""
    half = 0.5 * unit
    if rules.decimals:
        return half
    return np.where((stack == stack[0]).all(0) & (np.rint(stack[0]) == stack[0]), _COUNTED, half)


def _ends(stack: Any, unit: Any) -> tuple[Any, Any, Any]:
    """The smallest and the largest witness of each cell, and whether these are all of them; one that is far off everything
    (by a divisor that was rounded to nearly nothing) shows its own number only."""
    full = stack[0]
    near = np.isfinite(stack) & (np.abs(stack - full) <= np.maximum(_NEARBY * unit, _SHARE * np.abs(full)))
    return np.where(near, stack, np.inf).min(0), np.where(near, stack, -np.inf).max(0), (near | (stack == full)).all(0)


def _between(values: Any, lo: Any, hi: Any, unit: Any) -> Any:
    """Where a number lies between the smallest and the largest witness, or beyond them by the distance between these.

    Where all witnesses round to the same, nothing lies between them; and no widening reaches a 0.
    """
    distance = hi - lo
    agree = np.floor(lo / unit + 0.5) == np.floor(hi / unit + 0.5)
    inside = (values >= lo - distance) & (values <= hi + distance) & ~agree
    zero = np.abs(values) < 0.5 * unit
    reaches_zero = (lo <= 0.5 * unit) & (hi >= -0.5 * unit)
    return inside & (~zero | reaches_zero)


def _largest(cells: Any) -> Any:
    """By sheet, the largest of its cells."""
    return cells.reshape(len(cells), -1).max(1, initial=0.0)


def _cut_off(line: Line, stack: Any, places: Any) -> Any:
    """Where a number of enough places is a witness's number cut off; a line of nothing but zeros shows no cutting."""
    cut = (truncate_decimal(stack, places) == line.values).any(0)
    if line.places is not None:
        cut &= (line.places >= places) | (line.places == EXACT)
    return cut & _not_nothing(line)


def _whole_line(cells: Any, line: Line) -> Any:
    """Where all of a sheet's cells are so, or blank: one habit a line."""
    cells = cells if line.blank is None else cells | line.blank
    return cells.reshape(len(cells), -1).all(1).reshape(-1, *(1,) * (cells.ndim - 1))


def _not_nothing(line: Line) -> Any:
    """Where a number is not 0, or stands in a line that is not all 0, or on the sheet of somebody who cuts off."""
    some = (np.nan_to_num(line.values) != 0).reshape(len(line.values), -1).any(1) | line.cutter
    return (line.values != 0) | some.reshape(-1, *(1,) * (line.values.ndim - 1))


def _short(line: Line, stack: Any, rules: Rules) -> Any:
    """Where a number has fewer places than asked, a witness's number rounds or is cut to it there, and it keeps a digit
    of it that counts."""
    places = np.where(line.places == EXACT, rules.decimals, line.places)
    fewer = (places < rules.decimals) & (line.values != 0)
    if not fewer.any():
        return fewer
    unit = 10.0 ** -places.astype(np.float64)
    off = np.abs(line.values - stack)
    slack = (np.abs(stack) + unit) * _SLACK
    first = 10.0 ** np.floor(np.log10(np.where(stack == 0, 1.0, np.abs(stack))))
    rounded = (off <= 0.5 * unit + slack) & (off <= 0.5 * first + slack) & (off < np.inf)
    inward = np.abs(stack) - np.abs(line.values)
    cut = (np.sign(stack) == np.sign(line.values)) & (inward >= -slack) & (inward < unit - slack)
    return fewer & (rounded | (cut if rules.by_person else False)).any(0)


class Mixture(Record):
    """What learners who mix their habits come to, for some sheets.

    Parameters
    ----------
    low, high : (sheets, …) the smallest and the largest number
    inner_low, inner_high : (sheets, …) the same without the few that lie farthest out
    among : (sheets, …) whether some come near to what was written from either side, however far from all others
    wild : (sheets, …) whether some are so far off the full value that they say nothing about the others
    """

    low: FloatArray
    high: FloatArray
    inner_low: FloatArray
    inner_high: FloatArray
    among: Any = np.False_
    wild: Any = np.False_

    def of(self, rows: Any) -> Mixture:
        """The same for some of the sheets."""
        return Mixture(*(one[rows] if np.ndim(one) else one for one in (self.__dict__[name] for name in self._fields)))


def judge_mixed(judged: Judged, line: Line, rows: Any, mixed: Mixture, rules: Rules) -> Judged:
    """The same after learners who mix their habits from line to line and from cell to cell, for some of the sheets.

    Between the smallest and the largest number that they come to, and a little beyond, a number is right where it is
    rounded; where the whole line may have been cut off it is right as that, with nothing beyond. Where all plain habits
    agree on a number it has one right value, unless mixing them often leads to another; where it seldom does, that one is
    imprecise. So is what lies beyond them by no more than they lie apart, and what some come near to from either side who
    divide by next to nothing: of the guaranteed bounds of the contract this is the part that tells one number from others.
    Where learners lie so far apart that it does not, another right way has no witness but the plain habits.

    Parameters
    ----------
    mixed : what these learners come to, for `rows`
    """
    lo, hi = mixed.low, mixed.high
    unit = 10.0**-rules.decimals
    values = line.values[rows]
    half = _half(np.stack([lo, hi]), unit, rules) * (1 + _TIE)
    exact = np.broadcast_to(judged.exact, judged.cells.shape)[rows]
    with np.errstate(all="ignore"):
        distance = np.where(hi > lo, hi - lo, 0.0)
        around = np.where(exact | (not rules.widened), -half * _TIE, distance * _WIDENED)
        telling = distance <= np.maximum(_TELLING * unit, np.abs(lo + hi) / 2)
        inside = (values >= lo - half - around) & (values <= hi + half + around) & (telling | rules.widened)
        farther = distance * _BEYOND
        beyond = (
            (values >= lo - half - farther)
            & (values <= hi + half + farther)
            & (telling if rules.widened else distance <= unit)
        )
        cut = judged.cuts[rows] | _may_be_cut(values, lo, hi, unit) & (telling | rules.widened)
    cut &= _whole_line(cut, line.of(rows)) & _not_nothing(line.of(rows))
    zero = np.abs(values) < 0.5 * unit
    fine = ~zero | (lo <= half) & (hi >= -half)
    part = judged.cells[rows]
    open_ = part < CUT
    if line.places is not None:
        open_ &= (line.places[rows] < 0) | (line.places[rows] >= rules.decimals)
    usual = ~exact | (values >= mixed.inner_low - half) & (values <= mixed.inner_high + half)
    # Where all come to one number, it is that number: nobody is near to it.
    among = mixed.among & (distance > _TIE * unit) & (rules.widened | telling)
    part[open_ & (beyond | among) & fine & (part == WRONG)] = IMPRECISE
    part[open_ & (cut | inside & fine)] = IMPRECISE
    part[open_ & cut & ~exact] = CUT
    part[open_ & inside & fine & usual] = RIGHT
    cells = judged.cells.copy()
    cells[rows] = part
    return judged.changed(cells=cells)


def _may_be_cut(values: Any, lo: Any, hi: Any, unit: float) -> Any:
    """Where a number between these, cut off at the places asked, is what was written."""
    whole = np.abs(values / unit - np.rint(values / unit)) < _TIE
    least = np.where(values > 0, values, values - unit)
    most = np.where(values < 0, values, values + unit)
    return (
        whole
        & (np.where(values > 0, hi >= least - _TIE * unit, hi > least + _TIE * unit))
        & (np.where(values < 0, lo <= most + _TIE * unit, lo < most - _TIE * unit))
    )


def _judged_program(line: Line, stack: Any, rules: Rules) -> Judged:
    """Arrays of a program: around its witnesses by three times their distance, and by two units of the last place."""
    assert line.eps is not None
    finite = np.isfinite(stack)
    lo, hi = np.where(finite, stack, np.inf).min(0), np.where(finite, stack, -np.inf).max(0)
    distance = np.where(hi >= lo, hi - lo, 0.0)
    # One cell's witnesses may meet by chance; its neighbours show what the calculation loses.
    distance = np.maximum(distance, distance.mean(-1, keepdims=True)) if distance.ndim > 1 else distance
    size = np.maximum(np.where(np.isfinite(line.values), np.abs(line.values), 0.0), np.abs(np.where(hi >= lo, hi, 0.0)))
    reach = _DISTANCES * distance + _ULPS * line.eps * size
    fine = (line.values >= lo - reach) & (line.values <= hi + reach) | (line.values == stack).any(0)
    if line.blank is not None:
        fine |= line.blank
    off = np.where((line.values == stack).any(0), 0.0, np.abs(line.values - stack).min(0))
    if line.blank is not None:
        off = np.where(line.blank, 0.0, off)
    far = _largest(off) * 10.0**rules.decimals
    cells = np.where(fine, RIGHT, WRONG).astype(np.int8)
    all_fine = fine.reshape(len(fine), -1).all(1)
    return Judged(
        cells,
        np.where(all_fine, 0, -1),
        np.where(np.isnan(far), np.inf, far),
        _largest(distance) * 10.0**rules.decimals,
        wild=np.zeros(len(fine), dtype=np.bool_),
    )
