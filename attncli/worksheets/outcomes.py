"""What a sheet without a mistake and each mistake come to, in numbers: the certificate that no mistake hides behind another, the key
of a sheet, and the table of e^−x that stands on it in place of a calculator."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from attncli.arithmetic import Arithmetic
from attncli.arithmetic.hand import Hand, round_decimal
from attncli.core.matrix import FloatArray
from attncli.core.message import Message
from attncli.core.record import Record
from attncli.marking.chain import MISFITS, ROUNDED, Chain, Habit
from attncli.marking.feedback import Marked
from attncli.marking.mark import Marker
from attncli.marking.seeds import mixture
from attncli.mistakes import did
from attncli.problems.answers import Sheet, in_digits
from attncli.problems.question import Question

#: Mistakes that come to the same numbers always, or whenever some matrix is square: nobody can tell them apart.
ALWAYS_SAME = frozenset(
    frozenset(pair)
    for pair in (
        ("operands-swapped", "layout-transposed"),
        ("operands-swapped", "cells-exchanged"),
        ("layout-transposed", "cells-exchanged"),
        ("softmax-sign", "sign"),
        ("mask-as-zero", "mask-tiny"),
        ("mask-plus-infinity", "sign"),
        ("norm-paths-missing", "path-missing"),
        ("scale-by-d", "scale-by-model-width"),
        ("split-without-transpose", "cells-exchanged"),
    )
)


def is_told_apart(mistake: str, other: str) -> bool:
    """Whether two mistakes are two, and do not always come to the same numbers."""
    return mistake != other and frozenset((mistake, other)) not in ALWAYS_SAME


#: A mistake that comes to the right numbers.
RIGHT = "right"
#: Marked wrong, but not by its name.
UNNAMED = "unnamed"


class Wrong(Record):
    """A sheet with one mistake, everything else carried on from it by hand.

    Parameters
    ----------
    step, id : the mistake, and where it is made
    lines : what is written, by step, as far as it can be worked out; None where its operands do not fit, or it comes to no number
    """

    step: str
    id: str
    lines: Mapping[str, FloatArray] | None


class Proof(Record):
    """What marking says of one mistake.

    Parameters
    ----------
    first_wrong : the line that is marked wrong first, or None
    shared : the other mistakes (step, id) that come to the same; ("", "right") where it comes to the right numbers, and
        ("", "unnamed") where it is marked wrong without its name
    is_possible : whether operands of these shapes fit
    """

    step: str
    id: str
    first_wrong: str | None = None
    shared: tuple[tuple[str, str], ...] = ()
    is_possible: bool = True

    @property
    def verdict(self) -> str:
        """ "alone", "shared" or "impossible"."""
        return "impossible" if not self.is_possible else "shared" if self.shared else "alone"

    @property
    def is_alone(self) -> bool:
        """Whether nothing but what is always the same comes to the same."""
        return not any(is_told_apart(other, self.id) for _, other in self.shared)


def by_hand(marker: Marker) -> Chain:
    """The right calculation with every line rounded at the places asked and carried on."""
    return Chain(marker.lineage, ROUNDED)


def right_lines(chain: Chain, steps: Iterable[str]) -> dict[str, FloatArray]:
    """What stands on a right sheet."""
    with np.errstate(all="ignore"):
        return {step: chain.carried(step)[0] for step in steps}


def wrong_sheets(marker: Marker, chain: Chain | None = None) -> Iterator[Wrong]:
    """Every mistake of the catalogue, made anywhere.

    Parameters
    ----------
    chain : the right calculation that they are made in; `by_hand`, where nothing is said
    """
    chain = chain or by_hand(marker)
    steps = marker.graph.steps
    with np.errstate(all="ignore"):
        for step in steps:
            for mistake in marker.explainer.mistakes(step):
                fork = chain.fork(mistake.swap)
                lines: dict[str, FloatArray] = {}
                for line in steps:
                    try:
                        lines[line] = fork.carried(line)[0]
                    except MISFITS:
                        continue
                if step not in lines or np.isnan(lines[step]).any():  # 0·∞ is nothing that anybody writes
                    yield Wrong(step if step in mistake.swap else next(iter(mistake.swap)), mistake.id, None)
                else:
                    yield Wrong(step, mistake.id, {line: lines[line] for line in marker.points if line in lines})


def certificate(marker: Marker) -> list[Proof]:
    """The proof of every mistake, in the order of the calculation."""
    made = list(wrong_sheets(marker))
    marked = iter(marker.mark_many([sheet_of(marker, wrong.lines) for wrong in made if wrong.lines is not None]))
    found: dict[tuple[str, str], Proof] = {}
    for wrong in made:
        key = wrong.step, wrong.id
        proof = Proof(*key, is_possible=False) if wrong.lines is None else _proof(wrong, next(marked))
        found[key] = proof if key not in found else _both(found[key], proof)
    return list(found.values())


def sheet_of(marker: Marker, lines: Mapping[str, FloatArray]) -> Sheet:
    """A sheet of numbers, written with the places asked for."""
    return Sheet(None, {step: in_digits(values, marker.lineage.places[step]) for step, values in lines.items()})


def _proof(wrong: Wrong, marked: Marked) -> Proof:
    first = marked.first_wrong
    if first is None:
        return Proof(wrong.step, wrong.id, None, (("", RIGHT),))
    named = next(step for step in marked.steps if step.id == first).mistakes
    own = wrong.step, wrong.id
    others = tuple((one.step, one.id) for one in named if (one.step, one.id) != own)
    if wrong.id not in {one.id for one in named}:  # made alike at several steps, it is named where it begins
        # K Qᵀ for Q Kᵀ, carried on, looks like a sheet that is written with tokens as columns.
        is_other_layout = marked.layout != marked.problem.layout
        others = ((wrong.step, "layout-transposed"),) if is_other_layout else (*others, ("", UNNAMED))
    return Proof(wrong.step, wrong.id, first, others)


def _both(one: Proof, other: Proof) -> Proof:
    """Of a mistake that is made in several ways: shared where one of them is; impossible where all are."""
    if not (one.is_possible and other.is_possible):
        return other if other.is_possible else one
    shared = tuple(dict.fromkeys((*one.shared, *other.shared)))
    return one.changed(shared=shared, first_wrong=one.first_wrong or other.first_wrong)


def collisions(marker: Marker) -> int:
    """How many wrong sheets come to the right numbers, or to those of another mistake that is not always the same: a first,
    quick look at what marking will say."""
    seen: dict[SheetNumbers, list[str]] = {}
    count = 0
    right = _numbers(right_lines(by_hand(marker), marker.points))
    for wrong in wrong_sheets(marker):
        if wrong.lines is not None:
            numbers = _numbers(wrong.lines)
            others = seen.setdefault(numbers, [])
            count += (numbers == right) + any(is_told_apart(other, wrong.id) for other in others)
            others.append(wrong.id)
    return count


#: All numbers of a sheet, as something that can be looked up.
SheetNumbers = tuple[tuple[str, tuple[int, ...], bytes], ...]


def _numbers(lines: Mapping[str, FloatArray]) -> SheetNumbers:
    return tuple((step, value.shape, (value + 0.0).tobytes()) for step, value in lines.items())


def told_apart(proofs: Sequence[Proof]) -> dict[str, list[str]]:
    """Every mistake, written with its step, by whether its numbers are its own ("alone"), those of another one as well ("shared"), or
    cannot come about ("impossible")."""
    groups: dict[str, list[str]] = {"alone": [], "shared": [], "impossible": []}
    for proof in proofs:
        others = ", ".join(dict.fromkeys(mistake for _, mistake in proof.shared if mistake != proof.id))
        group = "alone" if proof.verdict == "shared" and not others else proof.verdict
        groups[group].append(f"{proof.step}: {proof.id}" + (f" (= {others})" if others else ""))
    return groups


# The key.


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


_WRITTEN = _Written(0)


def key_of(marker: Marker, question: Question) -> dict[str, KeyLine]:
    """The key of everything that is asked for."""
    asked = [one.step for one in question.asked]
    chain = Chain(marker.lineage, _WRITTEN)
    right = right_lines(chain, asked)
    with np.errstate(all="ignore"):
        spans = {line: _span(marker, line, right[line]) for line in asked}
    wrong: dict[str, list[Instead]] = {line: [] for line in asked}
    for made in wrong_sheets(marker, chain):
        lines = made.lines or {}
        at = next((step for step, value in lines.items() if not np.array_equal(value, right[step])), None)
        if at is not None and np.isfinite(lines[at]).any():
            unit = 10.0 ** -marker.lineage.places[at]
            _note(wrong[at], made, lines[at], did(made.id, marker.graph, made.step), _NEAR * unit)
    return {line: KeyLine(right[line], *spans[line], tuple(wrong[line])) for line in asked}


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
    raws = [np.broadcast_to(one[0], right.shape) for one in head.raws(line)]
    by_mixed = mixture(head.chains[0], np.array([0]), line, {}) if line in marker.graph.steps else None
    mixed = [] if by_mixed is None else [by_mixed.low[0], by_mixed.high[0]]
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


def powers_of(question: Question) -> tuple[Powers, ...]:
    """The table for an exercise; empty where it takes no exponentials, or those of numbers that no short table holds."""
    graph = question.graph
    places = {step: place for place, step in enumerate(graph.steps)}
    # What comes after the last step that is handed in nobody works out.
    last = max((places[one.step] for one in question.asked if one.step in places), default=-1)
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
