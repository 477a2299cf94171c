"""What marking comes to: for every step of a sheet a verdict, points, and what there is to say; and how that is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from attncli.core.axes import show_shape
from attncli.core.graph import Graph
from attncli.core.matrix import BoolArray
from attncli.core.message import ENGLISH, N_, Cell, Language, Listed, Message
from attncli.core.record import Record
from attncli.marking.chain import Chain, fitting
from attncli.marking.explain import Found, Named
from attncli.marking.judge import CUT, IMPRECISE, RIGHT, WRONG
from attncli.marking.papers import Paper, PaperEntry, line_of, precisions
from attncli.marking.prepared import Prepared
from attncli.marking.right_pass import Verdict, Verdicts
from attncli.marking.slips import parts_wrong
from attncli.mistakes import did, rank, without_vaguer
from attncli.problems.problem import Problem

#: The share of a step's points that each verdict is worth, where the problem does not say otherwise.
_SHARES = {"correct": 1, "route": 1, "wrong": 0, "blank": 0, "malformed": 0}
#: Verdicts of a step that is right.
RIGHT_VERDICTS = frozenset({"correct", "route", "imprecise"})

#: Said before two mistakes that only together give what was written.
TWO_THINGS = N_("Two things came together here:")

#: Said where infinite lines come to 0/0 or ∞ − ∞, so that the right numbers are shown instead.
_UNDEFINED = N_("Your lines above lead to 0/0 or ∞ − ∞ here, so nothing follows from them. Mend them first.")

#: Said of a step that is right only from what went before on the sheet.
FOLLOWED = N_("Right from your own earlier values.")

_CUT_OFF = N_("Right; digits seem to have been cut off instead of rounded. Next time, round the last decimal.")
_NEARLY_RIGHT = N_(
    "Nearly: rounding on the way can move a result about this far, but no usual way of rounding gives this number. Carry one more decimal."
)
_REFUSED = N_(
    "This does follow from your own line above, but that line leaves nothing to work out, so there are no points for it."
)

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

    def data(self, language: Language) -> Mapping[str, Any]:
        """By the field names others rely on (FORMATS)."""
        if not self.said:
            return self._without_words
        return {**self._without_words, "message": " ".join([message.text(language) for message in self.said])}

    @cached_property
    def _without_words(self) -> Mapping[str, Any]:
        return {
            "id": self.id,
            "verdict": self.verdict,
            "how": self.how,
            "points": float(self.points),
            "max_points": float(self.max_points),
            "mistakes": named(self.mistakes),
            "cells": [list(cell) for cell in self.cells],
            "off": None if self.off is None else round(self.off, _PLACES_OFF),
            "message": "",
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
        steps = [step.data(language) for step in self.steps]
        out: dict[str, Any] = {
            "schema": 1,
            "problem": self.problem.id,
            "student": self.student,
            "score": _sum([step.points for step in self.steps], [step["points"] for step in steps]),
            "max_score": _sum([step.max_points for step in self.steps], [step["max_points"] for step in steps]),
            "first_wrong": self.first_wrong,
            "steps": steps if right is None else [{**step, "right": right.get(step["id"])} for step in steps],
        }
        if self.notes:
            out["notes"] = [note.text(language) for note in self.notes]
        return out

    def __str__(self) -> str:
        """The sheet in words, as a page of feedback."""
        from attncli.render.markdown import feedback

        return feedback(self, ENGLISH)

    _repr_markdown_ = __str__


def _sum(exact: Sequence[Fraction], floats: Sequence[float]) -> float:
    """The exact sum; whole points, which are the most, are added as such: it is many times as fast."""
    broken = [points for points, near in zip(exact, floats, strict=True) if not near.is_integer()]
    whole = sum([near for near in floats if near.is_integer()])
    return float(sum(broken, Fraction(whole)))


def named(mistakes: Iterable[Named]) -> list[dict[str, str]]:
    """Mistakes by the step they were made at, and by name."""
    return [{"step": one.step, "id": one.id} for one in mistakes]


class Feedback:
    """Writes the marks of one problem's sheets."""

    def __init__(self, marker: Prepared) -> None:
        self.marker = marker
        self.graph = marker.graph
        self.problem = marker.problem
        marking = self.problem.marking
        shares = {**_SHARES, "imprecise": marking.imprecise, "follow_through": marking.follow_through}
        #: The share of a step's points that a verdict is worth.
        self.credits = {verdict: Fraction(str(share)) for verdict, share in shares.items()}
        self._plain: dict[tuple[PaperEntry, str | None, float | None], StepMark] = {}
        self._worth: dict[tuple[str, str], StepMark] = {}

    def marked(self, paper: Paper, verdicts: Verdicts) -> Marked:
        """A sheet's marks, every step that was asked for or written in the order of the calculation."""
        points, answers = self.marker.points, paper.answers
        steps = [
            self._step(paper, step_id, verdicts)
            for step_id in self.marker.ids
            if step_id in points or step_id in answers
        ]
        unknown = [self._unknown(name) for name in paper.unknown]
        notes = (*paper.notes, *precisions(paper))
        return Marked(self.problem, paper.sheet.student, (*steps, *unknown), notes, paper.layout)

    def _worth_of(self, step_id: str, verdict: str) -> StepMark:
        """A step's mark with the points of a verdict, and nothing said yet."""
        found = self._worth.get((step_id, verdict))
        if found is None:
            most = self.marker.points.get(step_id, Fraction(0))
            found = self._worth[step_id, verdict] = StepMark(step_id, verdict, most * self.credits[verdict], most)
        return found

    def _step(self, paper: Paper, step_id: str, verdicts: Verdicts) -> StepMark:
        entry = paper.entries.get(step_id)
        if entry is None:
            why = paper.unreadable.get(step_id)
            return (
                self._worth_of(step_id, "blank")
                if why is None
                else self._worth_of(step_id, "malformed").changed(said=(why,))
            )
        found = verdicts[step_id]
        said = entry.said
        if entry.odd and not found.follows and not found.found:
            shape = Message(
                "The shape is {given}; this step is {expected}.",
                given=show_shape(entry.values.shape),
                expected=show_shape(self.graph.shape(step_id)),
            )
            return self._mark(step_id, "malformed", entry, found, (*said, shape), off=None)
        if found.refused:
            return self._mark(step_id, "wrong", entry, found, (*said, Message(_REFUSED)))
        if found.worst == WRONG:
            return self._wrong(step_id, entry, found, said)
        return self._right(step_id, entry, found, said)

    def _mark(
        self, step_id: str, verdict: str, entry: PaperEntry, found: Verdict, said: tuple[Message, ...], **more: Any
    ) -> StepMark:
        fields = {"said": said, "written": entry.values, "typed": entry.matrix, "off": found.off, **more}
        return self._worth_of(step_id, verdict).changed(**fields)

    def _right(self, step_id: str, entry: PaperEntry, found: Verdict, said: tuple[Message, ...]) -> StepMark:
        """The mark of a step that is right in some sense, with a word on cells cut off, short or blank."""
        verdict = _verdict(found)
        if not said and verdict == "correct" and found.worst == RIGHT and entry.blank is None:
            return self._plainly_right(step_id, entry, found)
        credit = self.credits[verdict]
        if found.follows:
            said = (*said, Message(FOLLOWED).of("followed"))
        if found.route is not None:
            said = (*said, found.route.said)
        if found.worst == CUT:
            said = (*said, Message(_CUT_OFF))
        if found.worst == IMPRECISE:
            said = (*said, self._imprecise(step_id, entry))
            credit = min(credit, self.credits["imprecise"])
        if entry.blank is not None:
            credit *= Fraction(int((~entry.blank).sum()), entry.blank.size)
            said = (*said, Message("Some cells are still blank."))
        worth = self._worth_of(step_id, verdict)
        points = worth.points if credit == self.credits[verdict] else worth.max_points * credit
        return self._mark(step_id, verdict, entry, found, said, points=points, how=found.how)

    def _plainly_right(self, step_id: str, entry: PaperEntry, found: Verdict) -> StepMark:
        """The mark of a right step with nothing to say; kept, since a class writes the same right lines over and over."""
        key = entry, found.how, found.off
        mark = self._plain.get(key)
        if mark is None:
            if len(self._plain) >= _MOST_KEPT:
                self._plain.clear()
            mark = self._plain[key] = self._mark(step_id, "correct", entry, found, (), how=found.how)
        return mark

    def _imprecise(self, step_id: str, entry: PaperEntry) -> Message:
        if entry.places is None:
            return Message(_NEARLY_RIGHT)
        places = self.marker.lineage.places[step_id]
        return Message("Right as far as it goes; {places} decimals were asked for.", places=places)

    def _wrong(self, step_id: str, entry: PaperEntry, found: Verdict, said: tuple[Message, ...]) -> StepMark:
        if step_id in self.graph.inputs:
            given = Message(
                "This was given, so copy it unchanged: {symbol} does not have to be calculated.", symbol=step_id
            )
            cells = _cells(found.cells < CUT)
            return self._mark(
                step_id, "wrong", entry, found, (*said, given), cells=cells, own=self.marker.full[step_id]
            )
        mistakes = _named(found.found, step_id)
        if mistakes:
            # What a mistake explains is no right number either where it is near one.
            cells, operands = _cells(found.cells < CUT), _NOTHING
            words = _told(found.found, step_id, self.graph)
        else:
            cells = _cells(found.cells == WRONG)
            words, operands = self._unexplained(step_id, entry, found, cells)
        own = found.expected
        if own is not None and np.isnan(own).any():
            own, operands = self.marker.full[step_id], _NOTHING
            words = (*(words if mistakes else ()), Message(_UNDEFINED).of("undefined"))
        more = {"mistakes": tuple(mistakes), "cells": cells, "own": own, "operands": operands}
        return self._mark(step_id, "wrong", entry, found, (*said, *words), **more)

    def _unexplained(
        self, step_id: str, entry: PaperEntry, found: Verdict, cells: Sequence[tuple[int, ...]]
    ) -> tuple[tuple[Message, ...], Mapping[str, Any]]:
        """What can still be said: a product that is missing, doubled or has the wrong sign; else where it is off."""
        assert found.chain is not None
        parts = parts_wrong(
            found.chain, step_id, line_of({0: entry}, (1, *entry.values.shape)), self.marker.rules[step_id]
        )
        if parts:
            return parts[:_TOLD], _NOTHING
        if not cells:
            return (Message("This does not follow from your lines above."),), _NOTHING
        shown = Listed.first((Message("[{cell}]", cell=Cell(cell)) for cell in cells), _MOST_CELLS)
        own = found.expected
        is_whole = own is not None and np.array_equal(own, np.round(own))  # nothing was rounded: ids, for one
        if found.off is None or found.off > _NEARLY or entry.eps is not None or is_whole:
            text = N_("No known mistake gives these numbers. Work out {cells} once more.")
        elif len(cells) == 1:
            text = N_("Nearly: {cells} is one unit off in the last place. Look at the rounding.")
        else:
            text = N_("Nearly: {cells} are one unit off in the last place. Look at the rounding.")
        return (Message(text, cells=shown),), fitting(self._operands, step_id, found.chain) or _NOTHING

    def _operands(self, step_id: str, chain: Chain) -> Mapping[str, Any]:
        sources = [name for name in self.marker.ids if step_id in self.marker.lineage[name]]
        return {name: chain.carried(name)[0] for name in sources}

    def _unknown(self, name: str) -> StepMark:
        if self.marker.names.find(name) is not None:
            text = Message("“{name}” is answered twice, under two names. Keep one.", name=name)
        else:
            text = self.marker.names.complaint(name).message
        return StepMark(name, "malformed", Fraction(0), Fraction(0), said=(text,))


def _verdict(found: Verdict) -> str:
    if found.follows:
        return "follow_through"
    if found.worst == IMPRECISE:
        return "imprecise"
    return "route" if found.route is not None else "correct"


def _told(found: Sequence[Found], step_id: str, graph: Graph) -> tuple[Message, ...]:
    """What was done; where several mistakes give the same numbers, that is said before the likelier ones."""
    first = _named(found, step_id)[:_TOLD]
    worth = {at: without_vaguer([one.id for one in first if one.step == at]) for at in {one.step for one in first}}
    sentences = tuple(dict.fromkeys(did(one.id, graph, one.step) for one in first if one.id in worth[one.step]))
    if len(sentences) < 2:
        return sentences
    if len(found[0].named) > 1:
        return (Message(TWO_THINGS).of("two"), *sentences)
    return (Message("More than one mistake gives these numbers. The likelier first:"), *sentences)


def _named(found: Sequence[Found], step_id: str) -> list[Named]:
    """The mistakes by name, each once, the likelier first."""
    if found and len(found[0].named) > 1:
        return list(found[0].named)
    unique = {(one.step, one.id): one for each in found for one in each.named}
    return sorted(unique.values(), key=lambda one: (rank(one.id), one.step != step_id))


def _cells(wrong: BoolArray) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(i) + 1 for i in index) for index in np.argwhere(wrong))
