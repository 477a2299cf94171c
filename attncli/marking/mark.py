"""Sheets of one problem, marked one by one or many at once, by the same rules: a sheet is a batch of one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from attncli.core.graph import Swap
from attncli.core.matrix import BoolArray, FloatArray
from attncli.core.message import N_, Message
from attncli.marking.chain import MISFITS, Chain
from attncli.marking.explain import Named
from attncli.marking.feedback import Feedback
from attncli.marking.habits import FULL
from attncli.marking.judge import CUT, Line, judge
from attncli.marking.marked import RIGHT, Marked, StepMark
from attncli.marking.own_pass import OwnPass
from attncli.marking.papers import Paper
from attncli.marking.prepared import Prepared
from attncli.marking.right_pass import RightPass
from attncli.marking.verdict import Verdicts
from attncli.mistakes.routes import Route
from attncli.problems.answers import Answer, Sheet
from attncli.problems.problem import Problem

#: Sheets that `Marker.mark_many` takes up at once.
CHUNK = 256

#: Verdicts of lines that are right.
_WITH_CREDIT = frozenset({"correct", "route", "imprecise"})

#: Matrices that must be written with tokens as columns before the whole sheet is taken to be.
_TURNED = 2

_TABLE = N_("A table of names is not a matrix. Write its rows one below the other.")
_COLUMNS = N_("The whole sheet is written with tokens as columns. That is right too; it was read that way.")


class Marker(Prepared):
    """Marks sheets of one problem. Made once, used for a whole class; of a sheet it keeps nothing."""

    def __init__(self, problem: Problem, *, settled: bool = False) -> None:
        super().__init__(problem, settled=settled)
        self.feedback = Feedback(self)

    def mark(self, sheet: Sheet) -> Marked:
        """The sheet, marked; also where it is written with tokens as columns throughout."""
        return self.mark_many([sheet])[0]

    def mark_many(self, sheets: Sequence[Sheet]) -> list[Marked]:
        """Every sheet, marked; those of a kind side by side."""
        if not self.settled:
            return [self._as_written(sheet) for sheet in sheets]
        done: list[Marked] = []
        with np.errstate(all="ignore"):
            for start in range(0, len(sheets), CHUNK):
                done += self._chunk(sheets[start : start + CHUNK])
        return done

    def _as_written(self, sheet: Sheet) -> Marked:
        """A sheet marked at the places that stand on it: of a step the most that one of its cells has; of steps in between
        the most of all."""
        found = {id: _most_places(answer) for id, answer in self.named(sheet)[0].items()}
        most = max((places for places in found.values() if places), default=self.problem.decimals)
        by_step = {id: found.get(id) or most for id in self.ids if self.problem.is_as_written(id)}
        settled = self.problem.changed(
            step_decimals={**self.problem.step_decimals, **by_step}, as_written=frozenset(by_step)
        )
        return Marker(settled, settled=True).mark_many([sheet])[0]

    def _chunk(self, sheets: Sequence[Sheet]) -> list[Marked]:
        papers = [self._paper(sheet) for sheet in sheets]
        marked: dict[int, Marked] = {}
        for group in _together(papers):
            marked.update(zip(group, self._marked([papers[i] for i in group]), strict=True))
        done = [marked[i] for i in range(len(papers))]
        for i, other in self._turned(sheets, done):
            done[i] = other
        return done

    def _paper(self, sheet: Sheet, turned: bool = False) -> Paper:
        return self.reader.paper(sheet, *self.named(sheet), turned)

    def _turned(self, sheets: Sequence[Sheet], marked: Sequence[Marked]) -> Iterator[tuple[int, Marked]]:
        """The marks of the sheets that were written with tokens as columns, where reading them so earns more."""
        right = [sum(step.verdict in _WITH_CREDIT for step in one.steps) for one in marked]
        likely = [i for i, one in enumerate(marked) if not one.ok and 2 * right[i] <= len(sheets[i].answers)]
        rows = [i for i in likely if sum(_has_rows(answer) for answer in sheets[i].answers.values()) >= _TURNED]
        papers = {i: self._paper(sheets[i], turned=True) for i in rows}
        rows = [i for i in rows if sum(not entry.odd for entry in papers[i].entries.values()) > right[i]]
        for group in _together([papers[i] for i in rows]):
            first = RightPass(self, [papers[rows[at]] for at in group])
            first.run()
            for place, i in enumerate(rows[at] for at in group):
                if first.lines_right(place) <= right[i]:
                    continue
                turned = self._marked([papers[i]])[0]
                if turned.score > marked[i].score and (turned.ok or _lines_turned(marked[i]) >= _TURNED):
                    yield i, turned.changed(notes=(*turned.notes, Message(_COLUMNS)), layout="columns")

    def _marked(self, papers: Sequence[Paper]) -> list[Marked]:
        verdicts: list[Verdicts] = [{} for _ in papers]
        if papers:
            self._go_over(papers, list(range(len(papers))), (), verdicts)
        return [self.feedback.marked(paper, found) for paper, found in zip(papers, verdicts, strict=True)]

    def _go_over(
        self,
        papers: Sequence[Paper],
        rows: list[int],
        gone: tuple[tuple[str, Route], ...],
        verdicts: list[Verdicts],
    ) -> None:
        """Both passes over some sheets; those that went another right way once more along that."""
        first = RightPass(self, [papers[row] for row in rows], gone)
        first.run()
        left = set(range(len(rows)))
        for id, route, members in first.taken():
            self._go_over(papers, [rows[at] for at in members], (*gone, (id, route)), verdicts)
            left -= set(members)
        fine = self._fine(first)
        wrong = [at for at in sorted(left) if not fine[at]]
        first.tell([(at, verdicts[rows[at]]) for at in left.difference(wrong)])
        plain = [at for at in wrong if not first.papers[at].has_odd]
        for group in (plain, *([at] for at in wrong if first.papers[at].has_odd)):
            for at, found in zip(group, OwnPass(first, group).run() if group else (), strict=True):
                verdicts[rows[at]] = found

    def _fine(self, first: RightPass) -> BoolArray:
        """Which sheets are right in every line."""
        fine = np.array([not paper.has_odd for paper in first.papers], dtype=np.bool_)
        for id, line in first.lines.items():
            fine &= ~line.has | (first.judged[id].worst >= CUT)
        return fine

    def named(self, sheet: Sheet) -> tuple[dict[str, Answer], dict[str, Answer]]:
        """Answers by step id, under whatever name they stand, where it is unambiguous."""
        known: dict[str, Answer] = {}
        unknown: dict[str, Answer] = {}
        for name, answer in sheet.answers.items():
            id = self.names.find(name)
            if id is None or id in known or (id != name and id in sheet.answers):
                unknown[name] = answer
            else:
                known[id] = answer if id == name else answer.changed(read_as=name)
        for name in [name for name in unknown if "." in name]:
            # A table under the name of a step: nothing in it is a step of its own.
            id = self.names.find(name.rpartition(".")[0])
            if id is not None and self.names.find(name) is None:
                known.setdefault(id, Answer(None, Message(_TABLE)))
                del unknown[name]
        return known, unknown

    def expected(self, marked: Marked) -> dict[str, FloatArray]:
        """What every step should have come to: from the learner's own lines where these are wrong, else with all digits."""
        own = Chain(self.setting, FULL)
        found: dict[str, FloatArray] = {}
        with np.errstate(all="ignore"):
            for step in marked.steps:
                if step.id not in self.shapes:
                    continue
                found[step.id] = self.full[step.id]
                if step.own is not None:
                    found[step.id] = step.own
                elif step.verdict == "follow_through":
                    with contextlib.suppress(*MISFITS):
                        found[step.id] = own.raw(step.id)[0]
                if step.written is not None and step.written.shape == self.shapes[step.id]:
                    own.give(step.id, step.written[None], ~np.isnan(step.written[None]))
        return found

    def undetectable(self) -> list[Named]:
        """Mistakes, made at any step, that this exercise cannot tell from the right answer: a remark for its author."""
        found = []
        asked = [id for id in self.points if id in self.graph.steps]
        with np.errstate(all="ignore"):
            for step in self.graph.steps:
                reached = [id for id in asked if id == step or id in self.setting[step]]
                for mistake in self.explainer.mistakes(step) if reached else ():
                    if self._is_hidden(mistake.swap, reached):
                        found.append(Named(step, mistake.id))
        return list({(named.step, named.id): named for named in found}.values())

    def _is_hidden(self, swap: Mapping[str, Swap], asked: Sequence[str]) -> bool:
        """Whether a wrong calculation, with all digits, is right at every step asked."""
        wrong = self.head(None).chains[0].fork(swap)
        for id in asked:
            try:
                value = wrong.raw(id)
            except MISFITS:
                return False
            if value.shape[1:] != self.shapes[id]:
                return False
            line = Line(value, None, None, np.ones(1, dtype=np.bool_))
            if judge(line, self.head(None).raws(id), self.rules[id]).worst[0] < CUT:
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


def _lines_turned(marked: Marked) -> int:
    """Steps that are right, but transposed."""
    return sum(any(named.id == "layout-transposed" for named in step.mistakes) for step in marked.steps)


def marks(problem: Problem, sheets: Iterable[Sheet]) -> Iterator[Marked]:
    """Sheets of one problem, marked one by one."""
    marker = Marker(problem)
    for sheet in sheets:
        yield marker.mark(sheet)


__all__ = ["RIGHT", "Marked", "Marker", "StepMark", "marks"]
