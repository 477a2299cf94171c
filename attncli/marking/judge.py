"""The rule of a verdict: one written step of many sheets against the witnesses of right calculations (FORMATS).

A cell is right if it is a witness's number rounded at the places asked, or lies where witnesses differ; it is imprecise
if it has too few places for that. Nothing else is right: no tolerance, and no bounds in which a number might lie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from attncli.arithmetic import Indices, Value
from attncli.arithmetic.hand import truncate_decimal
from attncli.core.matrix import EXACT, BoolArray, FloatArray
from attncli.core.record import Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Some of the sheets: their places, or a yes or no for each.
Rows: TypeAlias = "NDArray[np.intp] | BoolArray | Sequence[int]"
#: (sheets, …) what each cell is.
Cells: TypeAlias = "NDArray[np.int8]"
#: One number for all, or one for each cell.
Number: TypeAlias = "float | FloatArray"

#: What a cell is, the better the higher.
WRONG, IMPRECISE, CUT, RIGHT = range(4)

#: Relative distance that is put down to the computer, in units of a float's precision and of a unit of the last place.
_SLACK = 8 * float(np.finfo(np.float64).eps)
_TIE = 1e-7
#: What a counted number may be off by.
_COUNTED = 0.05
#: Units from the full value, and its share, within which a witness says something about its neighbours.
NEARBY = 60.0
NEARBY_SHARE = 0.5
#: Shares of the distance between mixed learners by which a right number may lie beyond them, and an imprecise one.
_WIDENED = 0.05
_BEYOND = 1.0
#: Units that mixed learners may lie apart, or as much as their number is large, and still tell a right number from others.
_TELLING = 10.0
#: Distances between a program's witnesses, and units of an array's own last place, that a program may be off.
_DISTANCES = 3.0
_ULPS = 2.0
#: Distances between right witnesses, and units in the last place, beyond which a wrong calculation is not looked into.
_FAR = 12.0
#: Relative distance of numbers that are the same but for what the computer has lost.
_SAME = 1e-9


# --- sheets side by side ----------------------------------------------------------------------------------------------


class SideBySide(Record):
    """Arrays whose first axis is the sheets; what is no array is the same for all of them."""

    def of(self, rows: Rows) -> Self:
        """The same of some of the sheets."""
        values = [self.__dict__[name] for name in self._fields]
        return type(self)(*[value[rows] if isinstance(value, np.ndarray) else value for value in values])


def each(cells: NDArray[Any]) -> NDArray[Any]:
    """(sheets, cells) the cells of every sheet in one row."""
    return cells.reshape(len(cells), -1)


def in_all(cells: BoolArray) -> BoolArray:
    """By sheet, whether all of its cells are so."""
    return np.asarray(each(cells).all(1))


def in_some(cells: BoolArray) -> BoolArray:
    """By sheet, whether some of its cells are so."""
    return np.asarray(each(cells).any(1))


def largest(cells: FloatArray) -> FloatArray:
    """By sheet, the largest of its cells; what is no number is infinitely large."""
    found = each(cells).max(1, initial=0.0)
    return np.where(np.isnan(found), np.inf, found)


def size(values: FloatArray) -> FloatArray:
    """By sheet, its largest finite number."""
    return largest(np.abs(np.where(np.isfinite(values), values, 0.0)))


def beside(by_sheet: NDArray[Any], cells: NDArray[Any]) -> NDArray[Any]:
    """What is one for each sheet, so that it meets all cells of the sheet."""
    return by_sheet.reshape(-1, *(1,) * (cells.ndim - 1))


# --- the rule ---------------------------------------------------------------------------------------------------------


class Line(SideBySide):
    """What many sheets wrote for one step, side by side.

    Parameters
    ----------
    values : (sheets, …) as written; NaN where blank or not written
    has : (sheets,) which of them wrote the step down
    places : (sheets, …) decimals each cell was written with, or `EXACT`
    blank : (sheets, …) cells left open
    eps : relative precision of the program that wrote it, or None for a person
    cutter : (sheets,) which of them have been seen to cut off
    """

    values: FloatArray
    has: BoolArray
    places: NDArray[np.int_] | int = EXACT
    blank: BoolArray | np.bool_ = np.False_
    eps: float | None = None
    cutter: BoolArray | np.bool_ = np.False_

    def at(self, rearranged: Callable[[NDArray[Any]], NDArray[Any]]) -> Line:
        """The same cells in another arrangement (transposed, reshaped)."""
        arrays = {name: self.__dict__[name] for name in ("values", "places", "blank")}
        return self.changed(**{name: rearranged(one) for name, one in arrays.items() if isinstance(one, np.ndarray)})

    def fewer(self, asked: int | Indices) -> BoolArray:
        """Where a number has fewer places than asked."""
        if not isinstance(self.places, np.ndarray):
            return np.zeros(self.values.shape, dtype=np.bool_)
        return (self.places >= 0) & (self.places < asked)


class Judged(SideBySide):
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

    cells: Cells
    witness: Indices
    near: FloatArray
    spread: FloatArray
    exact: BoolArray | np.bool_ = np.True_
    cuts: BoolArray | np.bool_ = np.False_
    wild: BoolArray | np.bool_ = np.False_

    @cached_property
    def worst(self) -> Cells:
        """(sheets,) what the least of a sheet's cells is."""
        found: Cells = each(self.cells).min(1, initial=RIGHT)
        return found

    def replaced(self, rows: Rows, other: Judged) -> Judged:
        """The same with what was found about some sheets, in their order, otherwise."""
        if len(rows) == len(self.cells):
            return other
        found = {name: self.__dict__[name] for name in self._fields}
        for name, own in found.items():
            new = other.__dict__[name]
            like = own if isinstance(own, np.ndarray) else new
            if isinstance(like, np.ndarray):
                found[name] = np.empty((len(self.cells), *like.shape[1:]), like.dtype)
                found[name][...] = own
                found[name][rows] = new
        return Judged(**found)


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

    def places(self, line: Line) -> int | Indices:
        """Places at which the cells of a line are read: one number, or one for each cell."""
        return np.where(np.greater(line.places, 0), line.places, self.decimals) if self.as_written else self.decimals


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
        return Judged(nothing, np.full(count, -1), np.full(count, np.inf), np.zeros(count))
    with np.errstate(all="ignore"):
        stack = np.empty((len(fitting), *line.values.shape))
        for at, one in enumerate(fitting):
            stack[at] = one
        if line.eps is not None:
            return _judged_program(line, stack, rules, line.eps)
        return _judged_person(line, stack, rules, len(plans[0]))


def _judged_person(line: Line, stack: FloatArray, rules: Rules, other_from: int) -> Judged:
    unit = 10.0 ** -np.asarray(rules.places(line), dtype=np.float64)
    off = np.abs(line.values - stack)
    same = line.values == stack
    if isinstance(line.blank, np.ndarray):
        same |= line.blank
    slack = (np.abs(stack) + unit) * _SLACK + unit * _TIE
    # Beside −∞ the slack is infinite: what is infinitely far off is never near.
    fine = (off <= _half(stack, unit, rules) + slack) & (off < np.inf) | same
    cells = np.where(fine.any(0), RIGHT, WRONG).astype(np.int8)
    shown = fine.reshape(*fine.shape[:2], -1).all(-1)
    judged = Judged(
        cells,
        witness=np.where(shown.any(0), shown.argmax(0), -1),
        near=largest(np.where(same, 0.0, off).min(0) / unit),
        spread=np.zeros(len(cells)),
    )
    rows = np.flatnonzero(line.has & in_some(cells == WRONG))
    if not rows.size:
        return judged
    return judged.replaced(rows, _between_witnesses(judged.of(rows), line.of(rows), stack[:, rows], rules, other_from))


def _between_witnesses(judged: Judged, line: Line, stack: FloatArray, rules: Rules, other_from: int) -> Judged:
    """The same of lines in which some number is no witness's rounded."""
    places = rules.places(line)
    unit = 10.0 ** -np.asarray(places, dtype=np.float64)
    lo, hi, near_all = _ends(stack, unit)
    cells = judged.cells
    if rules.widened and len(stack) > 1:
        two = 0 < other_from < len(stack)
        plans = (stack[:other_from], stack[other_from:])
        for least, most in [_ends(plan, unit)[:2] for plan in plans] if two else [(lo, hi)]:
            cells[(cells == WRONG) & _between(line.values, least, most, unit)] = RIGHT
    open_ = cells == WRONG
    cuts = np.zeros(cells.shape, dtype=np.bool_)
    if rules.by_person and open_.any():
        cuts = _cut_off(line, stack, places)
        cells[open_ & cuts] = CUT
        open_ &= ~cuts
    if rules.short and open_.any():
        cells[open_ & _short(line, stack, rules)] = IMPRECISE
    exact = hi - lo <= unit * _TIE
    return judged.changed(cells=cells, spread=_apart(lo, hi, unit), exact=exact, cuts=cuts, wild=~in_all(near_all))


def _apart(lo: FloatArray, hi: FloatArray, unit: Number) -> FloatArray:
    """By sheet, how far the ends lie apart, in units."""
    return largest(np.where(hi > lo, hi - lo, 0.0) / unit)


def spread_of(witnesses: Sequence[Value], unit: float) -> FloatArray:
    """By sheet, how far witnesses of one shape lie apart, in units; not more than those near the full value."""
    stack = np.stack(np.broadcast_arrays(*witnesses))
    with np.errstate(all="ignore"):
        return _apart(*_ends(stack, unit)[:2], unit)


def _half(stack: FloatArray, unit: Number, rules: Rules) -> Number:
    """Half a unit of the last place asked; where whole numbers are counted out (ids), none lies between two of them."""
    half = 0.5 * unit
    if rules.decimals:
        return half
    return np.where((stack == stack[0]).all(0) & (np.rint(stack[0]) == stack[0]), _COUNTED, half)


def _ends(stack: FloatArray, unit: Number) -> tuple[FloatArray, FloatArray, BoolArray]:
    """The smallest and the largest witness of each cell, and whether these are all of them; one that is far off everything
    (by a divisor that was rounded to nearly nothing) shows its own number only."""
    full = stack[0]
    near = np.isfinite(stack) & (np.abs(stack - full) <= np.maximum(NEARBY * unit, NEARBY_SHARE * np.abs(full)))
    return *hull(stack, near), (near | (stack == full)).all(0)


def hull(stack: FloatArray, heard: BoolArray) -> tuple[FloatArray, FloatArray]:
    """The smallest and the largest along the first axis of those that are heard; ∞ and −∞ where there is none."""
    return np.where(heard, stack, np.inf).min(0), np.where(heard, stack, -np.inf).max(0)


def _between(values: FloatArray, lo: FloatArray, hi: FloatArray, unit: Number) -> BoolArray:
    """Where a number lies between the smallest and the largest witness, or beyond them by the distance between these.

    Where all witnesses round to the same, nothing lies between them; and no widening reaches a 0.
    """
    distance = hi - lo
    agree = np.floor(lo / unit + 0.5) == np.floor(hi / unit + 0.5)
    inside: BoolArray = (values >= lo - distance) & (values <= hi + distance) & ~agree
    reaches_zero = (lo <= 0.5 * unit) & (hi >= -0.5 * unit)
    inside &= ~(np.abs(values) < 0.5 * unit) | reaches_zero
    return inside


def _cut_off(line: Line, stack: FloatArray, places: int | Indices) -> BoolArray:
    """Where a number of enough places is a witness's number cut off; a line of nothing but zeros shows no cutting."""
    cut: BoolArray = (truncate_decimal(stack, places) == line.values).any(0)
    cut &= ~line.fewer(places) & _not_nothing(line)
    return cut


def _not_nothing(line: Line) -> BoolArray:
    """Where a number is not 0, or stands in a line that is not all 0, or on the sheet of somebody who cuts off."""
    some = in_some(np.nan_to_num(line.values) != 0) | line.cutter
    found: BoolArray = (line.values != 0) | beside(some, line.values)
    return found


def _short(line: Line, stack: FloatArray, rules: Rules) -> BoolArray:
    """Where a number has fewer places than asked, a witness's number rounds or is cut to it there, and it keeps a digit
    of it that counts."""
    fewer: BoolArray = line.fewer(rules.decimals) & (line.values != 0)
    if not fewer.any():
        return fewer
    unit = 10.0 ** -np.where(line.places == EXACT, rules.decimals, line.places).astype(np.float64)
    off = np.abs(line.values - stack)
    slack = (np.abs(stack) + unit) * _SLACK
    first = 10.0 ** np.floor(np.log10(np.where(stack == 0, 1.0, np.abs(stack))))
    rounded = (off <= 0.5 * unit + slack) & (off <= 0.5 * first + slack) & (off < np.inf)
    inward = np.abs(stack) - np.abs(line.values)
    cut = (np.sign(stack) == np.sign(line.values)) & (inward >= -slack) & (inward < unit - slack)
    fewer &= (rounded | (cut if rules.by_person else False)).any(0)
    return fewer


class Mixture(SideBySide):
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
    among: BoolArray
    wild: BoolArray


def judge_mixed(judged: Judged, line: Line, mixed: Mixture, rules: Rules) -> Judged:
    """The same after learners who mix their habits from line to line and from cell to cell.

    Between the smallest and the largest number that they come to, and a little beyond, a number is right where it is
    rounded; where the whole line may have been cut off it is right as that, with nothing beyond. Where all plain habits
    agree on a number it has one right value, unless mixing them often leads to another; where it seldom does, that one is
    imprecise. So is what lies beyond them by no more than they lie apart, and what some come near to from either side who
    divide by next to nothing: of the guaranteed bounds of the contract this is the part that tells one number from others.
    Where learners lie so far apart that it does not, another right way has no witness but the plain habits.
    """
    lo, hi, values, exact = mixed.low, mixed.high, line.values, judged.exact
    unit = 10.0**-rules.decimals
    half = _half(np.stack([lo, hi]), unit, rules) * (1 + _TIE)
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
        cut = judged.cuts | _may_be_cut(values, lo, hi, unit) & (telling | rules.widened)
    # One habit a line.
    cut &= beside(in_all(cut | line.blank), cut) & _not_nothing(line)
    fine = ~(np.abs(values) < 0.5 * unit) | (lo <= half) & (hi >= -half)
    cells = judged.cells.copy()
    open_ = (cells < CUT) & ~line.fewer(rules.decimals)
    usual = ~exact | (values >= mixed.inner_low - half) & (values <= mixed.inner_high + half)
    # Where all come to one number, it is that number: nobody is near to it.
    among = mixed.among & (distance > _TIE * unit) & (rules.widened | telling)
    cells[open_ & (beyond | among) & fine & (cells == WRONG)] = IMPRECISE
    cells[open_ & (cut | inside & fine)] = IMPRECISE
    cells[open_ & cut & ~exact] = CUT
    cells[open_ & inside & fine & usual] = RIGHT
    return judged.changed(cells=cells)


def _may_be_cut(values: FloatArray, lo: FloatArray, hi: FloatArray, unit: float) -> BoolArray:
    """Where a number between these, cut off at the places asked, is what was written."""
    whole = np.abs(values / unit - np.rint(values / unit)) < _TIE
    least = np.where(values > 0, values, values - unit)
    most = np.where(values < 0, values, values + unit)
    return (
        whole
        & (np.where(values > 0, hi >= least - _TIE * unit, hi > least + _TIE * unit))
        & (np.where(values < 0, lo <= most + _TIE * unit, lo < most - _TIE * unit))
    )


def _judged_program(line: Line, stack: FloatArray, rules: Rules, eps: float) -> Judged:
    """Arrays of a program: around its witnesses by three times their distance, and by two units of the last place."""
    lo, hi = hull(stack, np.isfinite(stack))
    distance = np.where(hi >= lo, hi - lo, 0.0)
    # One cell's witnesses may meet by chance; its neighbours show what the calculation loses.
    distance = np.maximum(distance, distance.mean(-1, keepdims=True)) if distance.ndim > 1 else distance
    size = np.maximum(np.where(np.isfinite(line.values), np.abs(line.values), 0.0), np.abs(np.where(hi >= lo, hi, 0.0)))
    around = _DISTANCES * distance + _ULPS * eps * size
    same = (line.values == stack).any(0) | line.blank
    fine = (line.values >= lo - around) & (line.values <= hi + around) | same
    return Judged(
        np.where(fine, RIGHT, WRONG).astype(np.int8),
        witness=np.where(in_all(fine), 0, -1),
        near=largest(np.where(same, 0.0, np.abs(line.values - stack).min(0))) * 10.0**rules.decimals,
        spread=largest(distance) * 10.0**rules.decimals,
    )


# --- how far a line is from numbers that it might be: what lies far off need not be looked into ------------------------


def either_way(value: Value, shape: Sequence[int]) -> Value:
    """A vector the way round it was written: one number for every column may stand in a column."""
    own, wanted = value.shape[1:], tuple(shape[1:])
    if own == wanted or len(own) != len(wanted) or sorted(own) != sorted(wanted) or 1 not in wanted:
        return value
    return value.reshape(len(value), *wanted)


def reach(line: Line, spread: FloatArray, rules: Rules) -> FloatArray:
    """By sheet, how far off a wrong calculation may be and still be looked into."""
    far: FloatArray
    if line.eps is not None:
        far = _FAR * (spread + line.eps * size(line.values)) + 1e-12
        return far
    unit = np.full(len(line.values), 10.0**-rules.decimals)
    if isinstance(line.places, np.ndarray):
        shortest = each(np.where(line.places < 0, rules.decimals, line.places)).min(1)
        unit = np.maximum(unit, 10.0 ** -shortest.astype(np.float64))
    far = _FAR * (spread + unit)
    return far


def off(line: Line, value: Value, share: float = 0.0) -> FloatArray:
    """By sheet, how far the farthest cell is from what was written, but for a share of it; of another shape: infinitely."""
    value = either_way(value, line.values.shape)
    if value.shape[1:] != line.values.shape[1:]:
        return np.full(len(line.values), np.inf)
    with np.errstate(invalid="ignore"):
        far = np.where(value == line.values, 0.0, np.abs(value - line.values))
        if share:
            far = np.where(np.isfinite(value), np.maximum(far - share * np.abs(value), 0.0), far)
    return largest(np.where(line.blank, 0.0, far))


def are_same(one: Value, other: Value) -> bool:
    """Whether two calculations come to the very same numbers, which nobody can tell apart."""
    return one.shape == other.shape and bool(are_close(one, other).all())


def are_close(one: Value, other: Value) -> BoolArray:
    """Which cells are the same but for what the computer has lost."""
    with np.errstate(invalid="ignore"):
        near: BoolArray = np.abs(one - other) <= _SAME * (np.abs(one) + np.abs(other)) + 1e-12
    near |= one == other
    return near
