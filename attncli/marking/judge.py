"""One written step against one chain: which cells are right, and in which sense."""

from __future__ import annotations

import numpy as np

from attncli.arithmetic.interval import Interval
from attncli.marking.chain import Chain
from attncli.matrix import BoolArray
from attncli.problems.written import Written, meets
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


def judge(written: Written, chain: Chain, id: str, decimals: int, cut: bool = False) -> Judgement:
    """A written step against what a chain comes to there: by overlap of intervals, never by a tolerance.

    Parameters
    ----------
    chain : what right calculations come to, the shape of what was written
    decimals : places that were asked for
    cut : the learner cuts off instead of rounding, so every number may be more than what is written
    """
    reached = chain.raw(id)
    if chain.memory is None:
        return _judged(written, reached, chain, id, decimals, cut)
    key = (builtin_id(reached), id, decimals, cut, *written.key())
    return chain.memory.get(key, reached, lambda: _judged(written, reached, chain, id, decimals, cut))  # type: ignore[no-any-return]


builtin_id = id


def _judged(written: Written, reached: Interval, chain: Chain, id: str, decimals: int, cut: bool) -> Judgement:
    asked = written.rounded_to(decimals)
    fine = meets(asked, reached)
    fine |= written.blank
    # A number with too few digits stands for all that round to it, also where it might be exact.
    short = written.is_short(decimals)
    loose = written.as_written(decimals) if short else asked
    if cut and written.eps is None:
        more = written.cut_off(decimals)
        loose = Interval(np.minimum(loose.lo, more.lo), np.maximum(loose.hi, more.hi))
    if fine.all():
        stands = _carried(written, chain.settled(id, reached) if short or cut else reached, loose)
        return Judgement("correct", False, ~fine, _filled(stands, written, reached, chain, id))
    imprecise = ~fine & meets(written.as_written(decimals), reached) if short else np.zeros_like(fine)
    beginning = asked if written.eps is not None else written.cut_off(decimals)
    truncated = ~fine & ~imprecise & meets(beginning, reached)
    wrong = ~(fine | imprecise | truncated)
    if wrong.any():
        return Judgement("wrong", False, wrong, _filled(asked, written, reached, chain, id))
    stands = Interval(
        np.where(truncated, np.minimum(beginning.lo, asked.lo), loose.lo),
        np.where(truncated, np.maximum(beginning.hi, asked.hi), loose.hi),
    )
    verdict = "imprecise" if imprecise.any() else "correct"
    # Short or cut off on the page, a number may have been carried on rounded to the places asked for.
    carried = _carried(written, chain.settled(id, reached), stands)
    return Judgement(verdict, bool(truncated.any()), wrong, _filled(carried, written, reached, chain, id))


def _carried(written: Written, reached: Interval, stands: Interval) -> Interval:
    """What a right cell is carried on as: the written number, or any right one that it stands for."""
    lo = np.minimum(np.maximum(stands.lo, reached.lo), written.values)
    hi = np.maximum(np.minimum(stands.hi, reached.hi), written.values)
    return Interval(lo, hi)


def _filled(stands: Interval, written: Written, reached: Interval, chain: Chain, id: str) -> Interval:
    """Cells left blank may be anything that is right, rounded or not."""
    if not written.blank.any():
        return stands
    open_ = chain.settled(id, reached)
    return Interval(np.where(written.blank, open_.lo, stands.lo), np.where(written.blank, open_.hi, stands.hi))
