"""One written step against one chain: which cells are right, and in which sense."""

from __future__ import annotations

import numpy as np

from attncli.arithmetic.interval import Interval
from attncli.marking.written import Written, meets
from attncli.matrix import BoolArray
from attncli.record import Record


class Judgement(Record):
    """How a written step stands to the interval that right calculations reach.

    Parameters
    ----------
    verdict : "correct", "imprecise" (right with fewer decimals than asked) or "wrong"
    truncated : some cell is right only as cut off, not as rounded
    wrong : cells that are right in no sense
    stands : the numbers the next step may have been worked out with
    """

    verdict: str
    truncated: bool
    wrong: BoolArray
    stands: Interval


def judge(written: Written, reached: Interval, decimals: int) -> Judgement:
    """Judge by overlap of intervals, never by a tolerance.

    Parameters
    ----------
    reached : bounds of what right calculations come to, the shape of what was written
    decimals : places that were asked for
    """
    asked = written.rounded_to(decimals)
    blank = written.blank.any()
    fine = meets(asked, reached)
    if blank:
        fine |= written.blank
    if fine.all():
        return Judgement("correct", False, ~fine, _carried(written, reached, asked))
    loose = written.as_written(decimals) if written.is_short(decimals) else asked
    imprecise = ~fine & meets(loose, reached)
    beginning = asked if written.eps is not None else written.cut_off(decimals)
    truncated = ~fine & ~imprecise & meets(beginning, reached)
    wrong = ~(fine | imprecise | truncated)
    if wrong.any():
        return Judgement("wrong", False, wrong, _filled(asked, written, reached))
    stands = Interval(
        np.where(fine, asked.lo, np.where(imprecise, loose.lo, np.minimum(beginning.lo, asked.lo))),
        np.where(fine, asked.hi, np.where(imprecise, loose.hi, np.maximum(beginning.hi, asked.hi))),
    )
    verdict = "imprecise" if imprecise.any() else "correct"
    return Judgement(verdict, bool(truncated.any()), wrong, _carried(written, reached, stands))


def _carried(written: Written, reached: Interval, stands: Interval) -> Interval:
    """What a right cell is carried on as: the written number, or any right one that it stands for."""
    lo = np.minimum(np.maximum(stands.lo, reached.lo), written.values)
    hi = np.maximum(np.minimum(stands.hi, reached.hi), written.values)
    return _filled(Interval(lo, hi), written, reached)


def _filled(stands: Interval, written: Written, reached: Interval) -> Interval:
    """Cells left blank may be anything that is right."""
    if not written.blank.any():
        return stands
    return Interval(np.where(written.blank, reached.lo, stands.lo), np.where(written.blank, reached.hi, stands.hi))
