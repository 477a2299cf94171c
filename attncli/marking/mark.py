"""Sheets of one problem, marked one by one or many at once, by the same rules: a sheet is a batch of one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from attncli.core.graph import Swap
from attncli.core.limits import MOST_MARKED_CELLS
from attncli.core.matrix import FloatArray
from attncli.core.message import N_, Message
from attncli.marking.chain import FULL, Chain, fitting
from attncli.marking.explain import Named
from attncli.marking.feedback import RIGHT_VERDICTS, Feedback, Marked
from attncli.marking.judge import CUT, Line, judge
from attncli.marking.own_pass import OwnPass
from attncli.marking.papers import Paper
from attncli.marking.prepared import Prepared
from attncli.marking.right_pass import RightPass, Verdicts
from attncli.mistakes.routes import Route
from attncli.problems.answers import Answer, Sheet
from attncli.problems.problem import Problem, check_cells

#: Sheets that are marked together, as many as hold so many numbers: every step is worked out once for all of them.
_LEAST_TOGETHER, _MOST_TOGETHER = 256, 1024
_NUMBERS = 400_000

#: Matrices that must be written the other way before the whole sheet is taken to be.
_TURNED = 2

_OTHER_WAY = {
    "columns": N_("The whole sheet is written with tokens as columns. That is right too; it was read that way."),
    "rows": N_("The whole sheet is written with tokens as rows. That is right too; it was read that way."),
}


def marker_of(problem: Problem) -> Marker:
    """What marks sheets of a problem that is small enough to be marked.

    Raises
    ------
    LimitError
        It has too many numbers: each would be worked out in several ways.
    """
    check_cells(problem.graph(), MOST_MARKED_CELLS)
    return Marker(problem)


class Marker(Prepared):
    """Marks sheets of one problem. Made once, used for a whole class; of a sheet it keeps nothing."""

    def __init__(self, problem: Problem, *, settled: bool = False) -> None:
        super().__init__(problem, settled=settled)
        self.feedback = Feedback(self)
        numbers = sum(map(math.prod, self.lineage.shapes.values()))
        #: How many sheets are marked together, and travel to another process together.
        self.together = min(_MOST_TOGETHER, max(_LEAST_TOGETHER, _NUMBERS // max(1, numbers)))

    def mark(self, sheet: Sheet, layout: str = "rows") -> Marked:
        """The sheet, marked; also where it is written the other way than its layout says, throughout.

        Parameters
        ----------
        layout : "rows" or "columns": which way tokens run on the sheet
        """
        return self.mark_many([sheet], layout)[0]

    def mark_many(self, sheets: Sequence[Sheet], layout: str = "rows") -> list[Marked]:
        """Every sheet, marked; those of a kind side by side.

        Raises
        ------
        InputError
            A sheet has too many names that are no steps.
        """
        papers = [self.reader.paper(sheet, layout) for sheet in sheets]
        if not self.settled:
            return [self._as_written(paper) for paper in papers]
        with np.errstate(all="ignore"):
            return [
                marked
                for start in range(0, len(papers), self.together)
                for marked in self._chunk(papers[start : start + self.together])
            ]

    def _as_written(self, paper: Paper) -> Marked:
        """A sheet marked at the places that stand on it: of a step the most that one of its cells has; of steps in between
        the most of all."""
        found = {step_id: _most_places(answer) for step_id, answer in paper.answers.items()}
        most = max((places for places in found.values() if places), default=self.problem.decimals)
        by_step = {step_id: found.get(step_id) or most for step_id in self.ids if self.problem.is_as_written(step_id)}
        settled = self.problem.changed(
            step_decimals={**self.problem.step_decimals, **by_step}, as_written=frozenset(by_step)
        )
        return Marker(settled, settled=True).mark(paper.sheet, paper.layout)

    def _chunk(self, papers: list[Paper]) -> list[Marked]:
        marked: dict[int, Marked] = {}
        for group in _together(papers):
            marked.update(zip(group, self._marked([papers[at] for at in group]), strict=True))
        marked.update(self._transposed(papers, [marked[at] for at in range(len(papers))]))
        return [marked[at] for at in range(len(papers))]

    def _transposed(self, papers: Sequence[Paper], marked: Sequence[Marked]) -> Iterator[tuple[int, Marked]]:
        """The marks of the sheets that were written the other way, where reading them so earns more."""
        transposed: list[tuple[int, Paper, int]] = []
        for at, (paper, one) in enumerate(zip(papers, marked, strict=True)):
            answers = paper.sheet.answers
            lines = sum(step.verdict in RIGHT_VERDICTS for step in one.steps)
            if 2 * lines > len(answers) or one.ok or sum(map(_has_rows, answers.values())) < _TURNED:
                continue
            other = self.reader.paper(paper.sheet, "rows" if paper.layout == "columns" else "columns")
            if sum(not entry.odd for entry in other.entries.values()) > lines:
                transposed.append((at, other, lines))
        for group in _together([paper for _, paper, _ in transposed]):
            first = RightPass(self, [transposed[place][1] for place in group])
            for row, (at, paper, lines) in enumerate(transposed[place] for place in group):
                if first.lines_right(row) <= lines:
                    continue
                other_way = self._marked([paper])[0]
                if other_way.score > marked[at].score and (other_way.ok or _lines_transposed(marked[at]) >= _TURNED):
                    yield at, other_way.changed(notes=(*other_way.notes, Message(_OTHER_WAY[other_way.layout])))

    def _marked(self, papers: Sequence[Paper]) -> list[Marked]:
        verdicts = self._verdicts(papers)
        return [self.feedback.marked(paper, found) for paper, found in zip(papers, verdicts, strict=True)]

    def _verdicts(self, papers: Sequence[Paper], gone: tuple[tuple[str, Route], ...] = ()) -> list[Verdicts]:
        """Both passes over some sheets; those that went another right way once more along that.

        Parameters
        ----------
        gone : other right ways that all of them went, and the steps at which these were seen
        """
        first = RightPass(self, papers, gone)
        found: dict[int, Verdicts] = {}
        for step_id, route, members in first.taken():
            along = self._verdicts([papers[at] for at in members], (*gone, (step_id, route)))
            found.update(zip(members, along, strict=True))
        left = [at for at in range(len(papers)) if at not in found]
        odd = [at for at in left if papers[at].has_odd]
        wrong = [at for at in left if first.first_not_right[at] is not None and at not in odd]
        fine = [at for at in left if first.first_not_right[at] is None and at not in odd]
        found.update(zip(fine, first.verdicts(fine), strict=True))
        for group in ([wrong] if wrong else []) + [[at] for at in odd]:
            found.update(zip(group, OwnPass(first, group).run(), strict=True))
        return [found[at] for at in range(len(papers))]

    def expected(self, marked: Marked) -> dict[str, FloatArray]:
        """What every step should have come to: from the learner's own lines where these are wrong, else with all digits."""
        own = Chain(self.lineage, FULL)
        found: dict[str, FloatArray] = {}
        with np.errstate(all="ignore"):
            for step in marked.steps:
                if step.id not in self.full:
                    continue
                found[step.id] = self.full[step.id]
                if step.own is not None:
                    found[step.id] = step.own
                elif step.verdict == "follow_through":
                    value = fitting(own.raw, step.id)
                    found[step.id] = self.full[step.id] if value is None else value[0]
                if step.written is not None and step.written.shape == self.full[step.id].shape:
                    own.give(step.id, step.written[None], ~np.isnan(step.written[None]))
        return found

    def undetectable(self) -> list[Named]:
        """Mistakes, made at any step, that this exercise cannot tell from the right answer: a remark for its author."""
        found = []
        asked = [step_id for step_id in self.points if step_id in self.graph.steps]
        with np.errstate(all="ignore"):
            for step in self.graph.steps:
                reached = [step_id for step_id in asked if step_id == step or step_id in self.lineage[step]]
                for mistake in self.explainer.mistakes(step) if reached else ():
                    if self._is_hidden(mistake.swap, reached):
                        found.append(Named(step, mistake.id))
        return list({(named.step, named.id): named for named in found}.values())

    def _is_hidden(self, swap: Mapping[str, Swap], asked: Sequence[str]) -> bool:
        """Whether a wrong calculation, with all digits, is right at every step asked."""
        wrong = self.head(None).full.fork(swap)
        for step_id in asked:
            value = fitting(wrong.raw, step_id)
            if value is None or value.shape[1:] != self.lineage.shapes[step_id]:
                return False
            line = Line(value, np.ones(1, dtype=np.bool_))
            if judge(line, self.head(None).raws(step_id), self.rules[step_id]).worst[0] < CUT:
                return False
        return bool(asked)


def _together(papers: Sequence[Paper]) -> Iterator[list[int]]:
    """Which papers are judged side by side: all that people wrote; a program's arrays each by itself."""
    by_people = [at for at, paper in enumerate(papers) if paper.is_by_person]
    if by_people:
        yield by_people
    yield from ([at] for at, paper in enumerate(papers) if not paper.is_by_person)


def _most_places(answer: Answer) -> int:
    """The most places that a cell of an answer has; 0 where none has a point."""
    if answer.matrix is None or answer.matrix.decimals is None:
        return 0
    return int(answer.matrix.decimals.max(initial=0))


def _has_rows(answer: Answer) -> bool:
    """Whether rows and columns can be told apart: a matrix, no vector."""
    return answer.matrix is not None and min(answer.matrix.values.shape[-2:], default=1) > 1


def _lines_transposed(marked: Marked) -> int:
    """Steps that are right, but transposed."""
    return sum(any(named.id == "layout-transposed" for named in step.mistakes) for step in marked.steps)
