"""From what was found about a sheet to its marks: verdicts, points, and what there is to say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.core.message import N_, Cell, Listed, Message
from attncli.marking.chain import MISFITS
from attncli.marking.explain import Found, Named, order
from attncli.marking.judge import CUT, IMPRECISE, RIGHT, WRONG, Line
from attncli.marking.marked import FOLLOWED, TWO_THINGS, Marked, StepMark
from attncli.marking.papers import Entry, Paper, precisions
from attncli.marking.verdict import Verdict, Verdicts
from attncli.mistakes.catalogue import did, without_vaguer
from attncli.problems.problem import Problem

if TYPE_CHECKING:
    from attncli.marking.prepared import Prepared

#: Marks that are kept.
_MOST_KEPT = 4096
#: Mistakes of a step that are said in words.
_TOLD = 3
#: Wrong cells of a step that are named in a message.
_MOST_CELLS = 6
#: Units of the last place that are no more than a slip in rounding.
_NEARLY = 1.5


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
        sheet = paper.sheet
        return Marked(self.problem, sheet.student, (*steps, *unknown), (*sheet.notes, *precisions(paper)))

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
        from attncli.core.graph import show_shape

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
