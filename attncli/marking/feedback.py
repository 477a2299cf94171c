"""What marking comes to: for every step of a sheet a verdict, points, and what there is to say; and how that is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.core.graph import Graph, show_shape
from attncli.core.message import ENGLISH, N_, Cell, Language, Listed, Message
from attncli.core.record import Record
from attncli.marking.chain import MISFITS
from attncli.marking.explain import Found, Named, order
from attncli.marking.judge import CUT, IMPRECISE, RIGHT, WRONG, Line
from attncli.marking.papers import Entry, Paper, precisions
from attncli.marking.verdict import Verdict, Verdicts
from attncli.mistakes.catalogue import did, without_vaguer
from attncli.problems.problem import Problem

if TYPE_CHECKING:
    from attncli.marking.prepared import Prepared

#: Verdicts of a step that is right.
RIGHT_VERDICTS = frozenset({"correct", "route", "imprecise"})

#: Said before two mistakes that only together give what was written.
TWO_THINGS = N_("Two things came together here:")

#: Said of a step that is right only from what went before on the sheet.
FOLLOWED = N_("Right from your own earlier values.")

_NOTHING: Mapping[str, Any] = {}
#: Marks that are kept.
_MOST_KEPT = 4096
#: Mistakes of a step that are said in words.
_TOLD = 3
#: Wrong cells of a step that are named in a message.
_MOST_CELLS = 6
#: Units of the last place that are no more than a slip in rounding.
_NEARLY = 1.5
#: Digits after the point that a distance is given with.
_PLACES_OFF = 3


class StepMark(Record):
    """One step of a marked sheet (FORMATS).

    Parameters
    ----------
    cells : wrong cells, counted from 1, tokens as rows
    said : what there is to say, in order
    own : what follows from the learner's own earlier values, where that was worked out
    how : which calculation shows a step that is right: "full", "carried", "cut off", or another way's name
    off : units of the last place asked between the farthest cell and the nearest right number
    typed : the matrix as it was written
    operands : the learner's own numbers that the step is worked out from, where nothing explains what was written
    """

    id: str
    verdict: str
    points: Fraction
    max_points: Fraction
    mistakes: tuple[Named, ...] = ()
    cells: tuple[tuple[int, ...], ...] = ()
    said: tuple[Message, ...] = ()
    written: Any = None
    own: Any = None
    how: str | None = None
    off: float | None = None
    typed: Any = None
    operands: Mapping[str, Any] = _NOTHING

    def with_words(self, **changes: Any) -> StepMark:
        """The same as `changed`, without its checks: a class has a hundred thousand of these."""
        other = object.__new__(StepMark)
        other.__dict__.update(self.__dict__)
        other.__dict__.update(changes)
        return other

    def data(self, language: Language) -> dict[str, Any]:
        """By the field names others rely on (FORMATS)."""
        return {
            "id": self.id,
            "verdict": self.verdict,
            "how": self.how,
            "points": self.points.numerator / self.points.denominator,
            "max_points": self.max_points.numerator / self.max_points.denominator,
            "mistakes": named(self.mistakes) if self.mistakes else [],
            "cells": list(map(list, self.cells)) if self.cells else [],
            "off": round(self.off, _PLACES_OFF) if self.off else self.off,
            "message": " ".join([message.text(language) for message in self.said]) if self.said else "",
        }


class Marked(Record):
    """A marked sheet.

    Parameters
    ----------
    steps : every step that was asked for or written, in the order of the calculation
    notes : remarks on the sheet as a whole
    layout : "rows", or "columns" where the sheet turned out to be written with tokens as columns
    """

    problem: Problem
    student: str | None
    steps: tuple[StepMark, ...]
    notes: tuple[Message, ...] = ()
    layout: str = "rows"

    @property
    def graph(self) -> Graph:
        """The calculation that it was marked by."""
        return self.problem.graph()

    @property
    def score(self) -> Fraction:
        return sum((step.points for step in self.steps), Fraction(0))

    @property
    def max_score(self) -> Fraction:
        return sum((step.max_points for step in self.steps), Fraction(0))

    @property
    def first_wrong(self) -> str | None:
        """The first step whose verdict is wrong or malformed."""
        return next((step.id for step in self.steps if step.verdict in ("wrong", "malformed")), None)

    @property
    def ok(self) -> bool:
        return all(step.verdict in RIGHT_VERDICTS or step.verdict == "blank" for step in self.steps)

    def data(self, language: Language, right: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """By the field names others rely on (FORMATS): what `check --format json` prints, and a line of `grade --format jsonl`.

        Parameters
        ----------
        right : by step what it should have come to, as nested lists, where that is to be told
        """
        out: dict[str, Any] = {
            "schema": 1,
            "problem": self.problem.id,
            "student": self.student,
            "score": _sum([step.points for step in self.steps]),
            "max_score": _sum([step.max_points for step in self.steps]),
            "first_wrong": self.first_wrong,
            "steps": [step.data(language) for step in self.steps],
        }
        if right is not None:
            for step in out["steps"]:
                step["right"] = right.get(step["id"])
        if self.notes:
            out["notes"] = [note.text(language) for note in self.notes]
        return out

    def __str__(self) -> str:
        """The sheet in words, as a page of feedback."""
        from attncli.render.markdown import feedback

        return feedback(self, ENGLISH)

    _repr_markdown_ = __str__


def _sum(points: list[Fraction]) -> float:
    """The exact sum; whole points, which are the most, are added as such."""
    whole = sum(one.numerator for one in points if one.denominator == 1)
    return float(sum((one for one in points if one.denominator != 1), Fraction(whole)))


def named(mistakes: Iterable[Named]) -> list[dict[str, str]]:
    """Mistakes by the step they were made at, and by name."""
    return [{"step": one.step, "id": one.id} for one in mistakes]


class Feedback:
    """Writes the marks of one problem's sheets."""

    def __init__(self, marker: Prepared) -> None:
        self.marker = marker
        self.graph = marker.graph
        self.problem = marker.problem
        self._plain: dict[tuple[Entry, str | None, float | None], StepMark] = {}
        self._worth: dict[tuple[str, str], StepMark] = {}

    def marked(self, paper: Paper, verdicts: Verdicts) -> Marked:
        """A sheet's marks, every step that was asked for or written in the order of the calculation."""
        steps = [self._step(paper, id, verdicts) for id in self.marker.ids if self._is_shown(paper, id)]
        unknown = [self._unknown(name) for name in paper.unknown]
        notes = (*paper.notes, *precisions(paper))
        return Marked(self.problem, paper.sheet.student, (*steps, *unknown), notes, paper.layout)

    def _is_shown(self, paper: Paper, id: str) -> bool:
        return id in self.marker.points or id in paper.answers

    def worth(self, id: str, verdict: str) -> StepMark:
        """A step's mark with the points of a verdict, and nothing said yet."""
        found = self._worth.get((id, verdict))
        if found is None:
            most = self.marker.points.get(id, Fraction(0))
            found = self._worth[id, verdict] = StepMark(id, verdict, most * credit_of(self.problem, verdict), most)
        return found

    def _step(self, paper: Paper, id: str, verdicts: Verdicts) -> StepMark:
        if id in paper.unreadable:
            return self.worth(id, "malformed").with_words(said=(paper.unreadable[id],))
        entry = paper.entries.get(id)
        if entry is None:
            return self.worth(id, "blank")
        if entry.blank is not None and entry.blank.all():
            return self.worth(id, "blank")
        found = verdicts[id]
        said = tuple([message.of("about") for message in entry.said]) if entry.said else ()
        if entry.odd and not found.follows and not found.found:
            return self._malformed(id, entry, said)
        if found.refused:
            return self._refused(id, entry, found, said)
        if found.worst == WRONG:
            return self._wrong(paper, id, entry, found, said)
        return self._right(id, entry, found, said)

    def _right(self, id: str, entry: Entry, found: Verdict, said: tuple[Message, ...]) -> StepMark:
        """The mark of a step that is right in some sense, with a word on cells cut off, short or blank."""
        verdict = _verdict(found)
        worth = self.worth(id, verdict)
        if not said and verdict == "correct" and found.worst == RIGHT and entry.blank is None:
            return self._plainly_right(worth, entry, found)
        credit = credit_of(self.problem, verdict)
        if found.follows:
            said = (*said, Message(FOLLOWED).of("followed"))
        if found.route is not None:
            said = (*said, found.route.said)
        if found.worst == CUT:
            said = (
                *said,
                Message(
                    N_("Right; digits seem to have been cut off instead of rounded. Next time, round the last decimal.")
                ),
            )
        if found.worst == IMPRECISE:
            said = (*said, self._imprecise(id, entry))
            credit = min(credit, credit_of(self.problem, "imprecise"))
        if entry.blank is not None and entry.blank.any():
            credit *= Fraction(int((~entry.blank).sum()), entry.blank.size)
            said = (*said, Message(N_("Some cells are still blank.")))
        points = worth.max_points * credit
        return worth.with_words(
            points=points, said=said, written=entry.values, typed=entry.matrix, how=found.how, off=found.off
        )

    def _plainly_right(self, worth: StepMark, entry: Entry, found: Verdict) -> StepMark:
        """The mark of a right step with nothing to say; kept, since a class writes the same right lines over and over."""
        key = entry, found.how, found.off
        mark = self._plain.get(key)
        if mark is None:
            if len(self._plain) >= _MOST_KEPT:
                self._plain.clear()
            mark = worth.with_words(written=entry.values, typed=entry.matrix, how=found.how, off=found.off)
            self._plain[key] = mark
        return mark

    def _imprecise(self, id: str, entry: Entry) -> Message:
        places = self.marker.setting.places[id]
        if entry.places is not None:
            return Message(N_("Right as far as it goes; {places} decimals were asked for."), places=places)
        return Message(
            N_(
                "Nearly: rounding on the way can lead about this far, but no usual way of rounding leads here. Carry one more decimal."
            )
        )

    def _refused(self, id: str, entry: Entry, found: Verdict, said: tuple[Message, ...]) -> StepMark:
        refused = Message(
            N_("This follows from your own line above, but that line makes everything after it trivial: no credit.")
        )
        return self.worth(id, "wrong").with_words(
            said=(*said, refused), written=entry.values, typed=entry.matrix, off=found.off
        )

    def _wrong(self, paper: Paper, id: str, entry: Entry, found: Verdict, said: tuple[Message, ...]) -> StepMark:
        if id in self.graph.inputs:
            words = Message(
                N_("This was given, so copy it unchanged: {symbol} does not have to be calculated."), symbol=id
            )
            return self.worth(id, "wrong").with_words(
                cells=_cells(found.cells < CUT),
                said=(*said, words),
                written=entry.values,
                typed=entry.matrix,
                off=found.off,
                own=self.marker.full[id],
            )
        mistakes = _named(found.found, id)
        # What a mistake explains is no right number either where it is near one.
        cells = _cells(found.cells < CUT if mistakes else found.cells == WRONG)
        operands: Mapping[str, Any] = {}
        if mistakes:
            said = (*said, *_told(found.found, id, self.graph))
        else:
            words_, operands = self._unexplained(id, entry, found, cells)
            said = (*said, *words_)
        return self.worth(id, "wrong").with_words(
            mistakes=tuple(mistakes),
            cells=cells,
            said=said,
            written=entry.values,
            typed=entry.matrix,
            own=found.expected,
            operands=operands,
            off=found.off,
        )

    def _unexplained(
        self, id: str, entry: Entry, found: Verdict, cells: Sequence[tuple[int, ...]]
    ) -> tuple[tuple[Message, ...], Mapping[str, Any]]:
        """What can still be said: a product that is missing, doubled or has the wrong sign; else where it is off."""
        chain = found.chain
        line = Line(
            entry.values[None],
            None if entry.places is None else entry.places[None],
            None if entry.blank is None else entry.blank[None],
            np.ones(1, dtype=np.bool_),
            entry.eps,
        )
        parts = self.marker.parts_wrong(id, line, chain)
        if parts:
            return parts[:3], {}
        if not cells:
            return (Message(N_("This does not follow from your lines above.")),), {}
        names = [Message("[{cell}]", cell=Cell(cell)) for cell in cells[:_MOST_CELLS]]
        shown = Listed([*names, *(["…"] if len(cells) > _MOST_CELLS else [])])
        operands = _operands(chain, [name for name in self.marker.ids if id in self.marker.setting[name]])
        if found.off is not None and found.off <= _NEARLY and entry.eps is None:
            return (
                Message(N_("Nearly: {cells} is one unit off in the last place. Look at the rounding."), cells=shown)
                if len(cells) == 1
                else Message(
                    N_("Nearly: {cells} are one unit off in the last place. Look at the rounding."), cells=shown
                ),
            ), operands
        text = Message(N_("No known mistake gives these numbers. Work out {cells} once more."), cells=shown)
        return (text,), operands

    def _malformed(self, id: str, entry: Entry, said: tuple[Message, ...]) -> StepMark:
        shape = Message(
            N_("The shape is {given}; this step is {expected}."),
            given=show_shape(entry.values.shape),
            expected=show_shape(self.graph.shape(id)),
        )
        return self.worth(id, "malformed").with_words(said=(*said, shape), written=entry.values, typed=entry.matrix)

    def _unknown(self, name: str) -> StepMark:
        if self.marker.names.find(name) is not None:
            text = Message(N_("“{name}” is answered twice, under two names. Keep one."), name=name)
        else:
            text = self.marker.names.complaint(name, Message(N_("The step")))
        return StepMark(name, "malformed", Fraction(0), Fraction(0), said=(text,))


def _operands(chain: Any, names: Sequence[str]) -> Mapping[str, Any]:
    """The numbers that a step is worked out from; none where they do not fit one another."""
    try:
        return {name: chain.carried(name)[0] for name in names}
    except MISFITS:
        return {}


def _verdict(found: Verdict) -> str:
    if found.follows:
        return "follow_through"
    if found.worst == IMPRECISE:
        return "imprecise"
    return "route" if found.route is not None else "correct"


def credit_of(problem: Problem, verdict: str) -> Fraction:
    """The share of a step's points that a verdict is worth."""
    if verdict in ("correct", "route"):
        return Fraction(1)
    if verdict in ("follow_through", "imprecise"):
        default = {"follow_through": 1.0, "imprecise": 0.5}[verdict]
        return Fraction(str(problem.marking.get(verdict, default)))
    return Fraction(0)


def _told(found: Sequence[Found], id: str, graph: Any) -> tuple[Message, ...]:
    """What was done; where several mistakes give the same numbers, that is said before the likelier ones."""
    first = _named(found, id)[:_TOLD]
    worth = {at: without_vaguer([one.id for one in first if one.step == at]) for at in {one.step for one in first}}
    sentences = tuple(dict.fromkeys(did(one.id, graph, one.step) for one in first if one.id in worth[one.step]))
    if len(sentences) < 2:
        return sentences
    if len(found[0].named) > 1:
        return (Message(TWO_THINGS).of("two"), *sentences)
    return (Message(N_("More than one mistake gives these numbers. The likelier first:")), *sentences)


def _named(found: Sequence[Found], id: str) -> list[Named]:
    """The mistakes by name, each once, the likelier first."""
    if found and len(found[0].named) > 1:
        return list(found[0].named)
    unique = {(one.step, one.id): one for each in found for one in each.named}
    return sorted(unique.values(), key=lambda one: order(one, id))


def _cells(wrong: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(i) + 1 for i in index) for index in np.argwhere(wrong))
