"""The proof that an exercise tells mistakes apart: each is made in numbers, and marked by the marker that marks learners."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from attncli.core.matrix import FloatArray
from attncli.core.record import Record
from attncli.marking.chain import MISFITS, Chain
from attncli.marking.feedback import Marked
from attncli.marking.habits import BY_HEAD
from attncli.marking.mark import Marker
from attncli.problems.answers import Sheet, in_digits

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
    verdict : "alone", "shared", or "impossible" where operands of these shapes do not fit
    first_wrong : the line that is marked wrong first, or None
    shared : the other mistakes (step, id) that come to the same; ("", "right") where it comes to the right numbers, and
        ("", "unnamed") where it is marked wrong without its name
    """

    step: str
    id: str
    verdict: str
    first_wrong: str | None
    shared: tuple[tuple[str, str], ...] = ()

    @property
    def is_alone(self) -> bool:
        """Whether nothing but what is always the same comes to the same."""
        return self.verdict != "shared" or not any(is_told_apart(other, self.id) for _, other in self.shared)


def by_hand(marker: Marker) -> Chain:
    """The right calculation with every line rounded at the places asked and carried on."""
    habit = next(one for one in BY_HEAD if one.how == "carried" and one.more == 0 and one.ties == "away")
    return Chain(marker.lineage, habit)


def wrong_sheets(marker: Marker, chain: Chain | None = None) -> Iterator[Wrong]:
    """Every mistake of the catalogue, made anywhere.

    Parameters
    ----------
    chain : the right calculation that they are made in; `by_hand`, where nothing is said
    """
    chain = by_hand(marker) if chain is None else chain
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
        proof = Proof(*key, "impossible", None) if wrong.lines is None else _proof(wrong, next(marked))
        found[key] = proof if key not in found else _both(found[key], proof)
    return list(found.values())


def sheet_of(marker: Marker, lines: Mapping[str, FloatArray]) -> Sheet:
    """A sheet of numbers, written with the places asked for."""
    return Sheet(None, {step: in_digits(values, marker.lineage.places[step]) for step, values in lines.items()})


def _proof(wrong: Wrong, marked: Marked) -> Proof:
    first = marked.first_wrong
    if first is None:
        return Proof(wrong.step, wrong.id, "shared", None, (("", RIGHT),))
    named = next(step for step in marked.steps if step.id == first).mistakes
    own = wrong.step, wrong.id
    others = tuple((one.step, one.id) for one in named if (one.step, one.id) != own)
    if wrong.id not in {one.id for one in named}:  # made alike at several steps, it is named where it begins
        # K Qᵀ for Q Kᵀ, carried on, looks like a sheet that is written with tokens as columns.
        turned = marked.layout != marked.problem.layout
        others = ((wrong.step, "layout-transposed"),) if turned else (*others, ("", UNNAMED))
    return Proof(wrong.step, wrong.id, "shared" if others else "alone", first, others)


def _both(one: Proof, other: Proof) -> Proof:
    """Of a mistake that is made in several ways: shared where one of them is; impossible where all are."""
    if "impossible" in (one.verdict, other.verdict):
        return one if other.verdict == "impossible" else other
    shared = tuple(dict.fromkeys((*one.shared, *other.shared)))
    return one.changed(
        shared=shared, verdict="shared" if shared else "alone", first_wrong=one.first_wrong or other.first_wrong
    )


def collisions(sheets: Iterable[Wrong], right: Mapping[str, FloatArray]) -> int:
    """How many wrong sheets come to the right numbers, or to those of another mistake that is not always the same: a first,
    quick look at what marking will say."""
    seen: dict[SheetNumbers, list[Wrong]] = {}
    count = 0
    target = _numbers(right)
    for wrong in sheets:
        if wrong.lines is not None:
            numbers = _numbers(wrong.lines)
            count += numbers == target
            others = seen.setdefault(numbers, [])
            count += any(is_told_apart(other.id, wrong.id) for other in others)
            others.append(wrong)
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
        others = ", ".join(dict.fromkeys(id for _, id in proof.shared if id != proof.id))
        group = "alone" if proof.verdict == "shared" and not others else proof.verdict
        groups[group].append(f"{proof.step}: {proof.id}" + (f" (= {others})" if others else ""))
    return groups
