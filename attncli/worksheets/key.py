"""Beside the questions: on a sheet the table of e^−x, in place of a calculator; on its key what stands on a right sheet, how far
right numbers may lie apart, and what each mistake would have given."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from attncli.arithmetic import Arithmetic
from attncli.arithmetic.hand import Hand, round_decimal
from attncli.core.matrix import FloatArray
from attncli.core.message import Message
from attncli.core.record import Record
from attncli.marking.chain import MISFITS, Chain
from attncli.marking.habits import Habit
from attncli.marking.mark import Marker
from attncli.marking.seeds import mixture
from attncli.mistakes import did
from attncli.problems.problem import Problem
from attncli.worksheets.certificate import Wrong, wrong_sheets


class Instead(Record):
    """What a mistake gives at the first line that shows it.

    Parameters
    ----------
    ids : all mistakes that come to these numbers
    said : what was done
    values : what is then written
    """

    ids: tuple[str, ...]
    said: tuple[Message, ...]
    values: FloatArray


class KeyLine(Record):
    """One line of the key.

    Parameters
    ----------
    values : carried on by hand: what a learner writes who rounds every line
    least, most : between these lie the numbers of those who round elsewhere, all of them right
    wrong : what mistakes would have given
    """

    step: str
    values: FloatArray
    least: FloatArray
    most: FloatArray
    wrong: tuple[Instead, ...]

    @property
    def is_sharp(self) -> bool:
        """Whether there is only one right number in every cell."""
        return bool((self.least == self.most).all())


class _Written(Habit):
    """Every line is rounded as it is written; √d_k comes from the calculator: 3/√2 is 2.121, not 3/1.414 = 2.122."""

    def arithmetic(self, decimals: int) -> Arithmetic:
        return Hand(decimals)


_WRITTEN = _Written("carried", 0)


def key_of(marker: Marker, asked: Sequence[str]) -> dict[str, KeyLine]:
    """The key of everything that is asked for."""
    chain = Chain(marker.lineage, _WRITTEN)
    with np.errstate(all="ignore"):
        right = {line: chain.carried(line)[0] for line in asked}
        spans = {line: _span(marker, line, right[line]) for line in asked}
    wrong: dict[str, list[Instead]] = {line: [] for line in asked}
    for made in wrong_sheets(marker, chain):
        lines = made.lines or {}
        at = next((step for step, value in lines.items() if not np.array_equal(value, right[step])), None)
        if at is not None and np.isfinite(lines[at]).any():
            unit = 10.0 ** -marker.lineage.places[at]
            _note(wrong[at], made, lines[at], did(made.id, marker.graph, made.step), _NEAR * unit)
    return {line: KeyLine(line, right[line], *spans[line], tuple(wrong[line])) for line in asked}


#: Share of the distance between mixed learners by which others may lie beyond them.
_WIDENED = 0.5
#: Units of the last place within which two ways of one mistake are not told apart in the key.
_NEAR = 2.5


def _note(known: list[Instead], one: Wrong, values: FloatArray, said: Message, near: float) -> None:
    for at, before in enumerate(known):
        is_alike = before.values.shape == values.shape and np.allclose(before.values, values, 0, near)
        if is_alike and before.ids == (one.id,):
            return
        if np.array_equal(before.values, values):
            if one.id not in before.ids:
                known[at] = Instead((*before.ids, one.id), (*before.said, said), values)
            return
    known.append(Instead((one.id,), (said,), values))


def _span(marker: Marker, line: str, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The smallest and the largest number that a person comes to who makes no mistake, rounded.

    Of the habits that marking knows, and of learners who mix them from line to line; where these do not agree, also what
    lies beyond by their distance, as in marking.
    """
    places = marker.lineage.places[line]
    head = marker.head(None)
    try:
        raws = [np.broadcast_to(one[0], right.shape) for one in head.raws(line)]
        by_mixed = mixture(head.chains[0], np.array([0]), line, {}) if line in marker.graph.steps else None
        mixed = [] if by_mixed is None else [by_mixed.low[0], by_mixed.high[0]]
    except MISFITS:
        raws, mixed = [], []
    rounded = np.stack([right, *(round_decimal(one, places) for one in (*raws, *mixed))])
    # Hidden is hidden: no rounding leads away from −∞.
    least, most = (np.where(np.isfinite(right), ends, right) for ends in (rounded.min(0), rounded.max(0)))
    apart = least != most
    unit = 10.0**-places
    for numbers, share in ((raws, 1.0), (mixed, _WIDENED)):
        if not numbers:
            continue
        stack = np.stack(numbers)
        low, high = stack.min(0), stack.max(0)
        beyond = share * np.where(np.isfinite(high - low), high - low, 0.0)
        least = np.where(apart, np.minimum(least, np.ceil((low - beyond) / unit) * unit), least)
        most = np.where(apart, np.maximum(most, np.floor((high + beyond) / unit) * unit), most)
    return round_decimal(least, places), round_decimal(most, places)


# The table of e^−x: the same for all variants, so that it gives nothing away.

#: Between which the exponents of hand-friendly numbers lie, as multiples: halves, and halves over a root of d_k.
_HALF = 0.5
_ROOTS = (1, 2, 3, 5, 6, 7)
#: Entries beside one another.
_BESIDE = 8
#: Scores within ±4 differ by 8 at most.
_MOST = 8.0


class Powers(Record):
    """A line of the table.

    Parameters
    ----------
    x, power : x and e^−x, entry by entry
    """

    x: tuple[float, ...]
    power: tuple[float, ...]


def powers_of(problem: Problem, asked: Sequence[str]) -> tuple[Powers, ...]:
    """The table for an exercise; empty where it takes no exponentials, or those of numbers that no short table holds.

    Parameters
    ----------
    asked : the steps that are handed in; what comes after the last of them nobody works out
    """
    graph = problem.graph()
    places = {step: place for place, step in enumerate(graph.steps)}
    last = max((places[step] for step in asked if step in places), default=-1)
    exponents = [step.inputs[0] for step in graph.steps.values() if step.op.name == "exp" and places[step.id] <= last]
    if not exponents:
        return ()
    values = graph.evaluate(until=exponents)
    seen = np.concatenate([np.ravel(values[exponent]) for exponent in exponents])
    seen = -seen[np.isfinite(seen)]
    for root in _ROOTS:
        units = (_HALF, math.sqrt(1 / root)) if root > 1 else (_HALF,)
        near = [np.abs(seen / unit - np.rint(seen / unit)) < 1e-9 for unit in units]
        if np.any(near, axis=0).all() and (seen <= _MOST + 1e-9).all() and (seen >= 0).all():
            return _table(units)
    return ()


def _table(units: Sequence[float]) -> tuple[Powers, ...]:
    """Two lines, from small to large: halves up to 8, or halves up to 4 and multiples of the other unit."""
    halves = _BESIDE if len(units) > 1 else 2 * _BESIDE
    x = sorted({i * _HALF for i in range(1, halves + 1)} | {i * units[-1] for i in range(1, _BESIDE + 1)})
    lines = (x[:_BESIDE], x[_BESIDE:])
    return tuple(Powers(tuple(line), tuple(math.exp(-one) for one in line)) for line in lines)
