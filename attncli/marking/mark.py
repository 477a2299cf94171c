"""Sheets of one problem, marked one by one or many at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from attncli.arithmetic.floating import FLOATING
from attncli.arithmetic.hand import Hand
from attncli.arithmetic.interval import Interval, IntervalArithmetic
from attncli.marking.batch import Batch
from attncli.marking.chain import Bounds, Chain, Memory, ProgramBounds, followers
from attncli.marking.company import Seen
from attncli.marking.explain import Explainer, Named, fits
from attncli.marking.marked import RIGHT, Marked, StepMark
from attncli.marking.one import Marking, credit_of
from attncli.message import N_, Message
from attncli.mistakes.routes import routes
from attncli.problems.answers import Answer, Sheet
from attncli.problems.names import Names
from attncli.problems.problem import Problem
from attncli.problems.written import meets

#: Sheets that `Marker.mark_many` takes up at once.
CHUNK = 256

#: Cells of a matrix up to which results are remembered for other sheets, and how many of them.
_SMALL = 256
_MOST_REMEMBERED = 8192

#: Matrices that must be written with tokens as columns before the whole sheet is taken to be.
_TURNED = 2

_COLUMNS = N_("The whole sheet is written with tokens as columns. That is right too; it was read that way.")


class Marker:
    """Marks sheets of one problem. Made once, used for a whole class; of a sheet it keeps nothing but results that others share."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.graph = problem.graph()
        self.followers = followers(self.graph)
        self.explainer = Explainer(self.graph)
        self.routes = list(routes(self.graph))
        self.ids = [*self.graph.inputs, *self.graph.steps]
        self.points = _points(problem, self.graph.steps)
        self.full = self.graph.evaluate(FLOATING).numbers
        self.by_hand = self.graph.evaluate(Hand(problem.decimals)).numbers if not problem.step_decimals else {}
        self.names = Names(self.graph, self.points)
        self._places = {
            places: IntervalArithmetic(places) for places in {problem.decimals_of(id) for id in self.graph.steps}
        }
        self._hand = problem.marking.get("rounding", "hand") == "hand"
        small = max((step.cells for step in self.graph.steps.values()), default=0) <= _SMALL
        self._memory = Memory(_MOST_REMEMBERED) if small else None
        self._programs: dict[float, Chain] = {}
        self._right = self._chain()
        self.before = {id: list(self.graph.steps)[:i] for i, id in enumerate(self.graph.steps)}
        self.shapes = {id: self.graph.shape(id) for id in self.ids}
        self._worth: dict[tuple[str, str], StepMark] = {}
        self._batch = Batch(self)

    def _chain(self) -> Chain:
        if not self._hand:
            return Chain(self.graph, Bounds(None), self.followers, lambda id, value: value, memory=self._memory)
        return Chain(self.graph, Bounds(self.problem.decimals), self.followers, self.settle, memory=self._memory)

    def settle(self, id: str, value: Interval) -> Interval:
        """A step that was not written down, and what rounding it can do."""
        return self._places[self.problem.decimals_of(id)].settle(value) if self._hand else value

    def right(self, eps: float | None) -> Chain:
        """The right calculation, by a person or by a program of this precision."""
        if eps is None:
            return self._right
        if eps not in self._programs:
            self._programs[eps] = Chain(self.graph, ProgramBounds(eps), self.followers, lambda id, value: value)
        return self._programs[eps]

    def same(self, id: str, value: Interval) -> Interval:
        """One and the same object for the same bounds of a step, so that what follows from them is remembered."""
        if self._memory is None:
            return value
        key = ("same", id, value.lo.tobytes(), value.hi.tobytes())
        found: Interval = self._memory.get(key, None, lambda: value)
        return found

    def worth(self, id: str, verdict: str) -> StepMark:
        """A step's mark with the points of a verdict, and nothing said yet."""
        found = self._worth.get((id, verdict))
        if found is None:
            most = self.points.get(id, Fraction(0))
            found = self._worth[id, verdict] = StepMark(id, verdict, most * credit_of(self.problem, verdict), most)
        return found

    def mark(self, sheet: Sheet) -> Marked:
        """The sheet, marked; also where it is written with tokens as columns throughout."""
        with np.errstate(all="ignore"):
            return self._mark(sheet, *self.named(sheet))

    def mark_many(self, sheets: Sequence[Sheet]) -> list[Marked]:
        """The same as `mark` for every sheet, quicker: right sheets are recognised side by side."""
        done: list[Marked] = []
        with np.errstate(all="ignore"):
            for start in range(0, len(sheets), CHUNK):
                part = [(sheet, *self.named(sheet)) for sheet in sheets[start : start + CHUNK]]
                found = self._batch.seen([known if not unknown else {} for _, known, unknown in part])
                for (sheet, known, unknown), seen in zip(part, found, strict=True):
                    if seen is not None and seen.right:
                        done.append(self._all_right(sheet, known))
                    else:
                        done.append(self._mark(sheet, known, unknown, seen))
        return done

    def _all_right(self, sheet: Sheet, known: Mapping[str, Answer]) -> Marked:
        return Marking(self, known, sheet.student, {}, sheet.notes).all_right()

    def _mark(
        self, sheet: Sheet, known: Mapping[str, Answer], unknown: Mapping[str, Answer], seen: Seen | None = None
    ) -> Marked:
        first = Marking(self, known, sheet.student, unknown, sheet.notes, seen=seen)
        marked: Marked = first.run()
        if first.cuts and not marked.ok:
            cut = Marking(self, known, sheet.student, unknown, sheet.notes, cut=True).run(only_right=True)
            marked = cut or marked
        if marked.ok or sum(_has_rows(answer) for answer in known.values()) < _TURNED:
            return marked
        other: Marked | None = None
        for only_right in (True, False):
            if other is None and (only_right or _lines_turned(marked) >= _TURNED):
                turned = Marking(self, known, sheet.student, unknown, sheet.notes, turned=True)
                other = turned.run(only_right=only_right)
        if other is None or other.score <= marked.score:
            return marked
        return other.changed(notes=(*other.notes, Message(_COLUMNS)), layout="columns")

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
        return known, unknown

    def undetectable(self) -> list[Named]:
        """Mistakes that this exercise cannot tell from the right answer: a remark for its author."""
        found = []
        with np.errstate(all="ignore"):
            for id in self.points:
                for mistake in self.explainer.mistakes(id):
                    if self._hidden_by_numbers(id, mistake):
                        found.append(Named(id, mistake.id))
        return list({(named.step, named.id): named for named in found}.values())

    def _hidden_by_numbers(self, id: str, mistake: Any) -> bool:
        right = self._right.raw(id)
        try:
            wrong = self._right.done(mistake.swap[id])
        except (ValueError, IndexError):
            return False
        half = 0.5 * 10.0 ** -self.problem.decimals_of(id)
        if tuple(wrong.shape) != tuple(right.shape):
            return False
        return bool((meets(Interval(wrong.lo - half, wrong.hi + half), right)).all())


def _has_rows(answer: Answer) -> bool:
    """Whether rows and columns can be told apart: a matrix, no vector."""
    return answer.matrix is not None and min(answer.matrix.values.shape[-2:], default=1) > 1


def _lines_turned(marked: Marked) -> int:
    """Steps that are right, but transposed."""
    return sum(any(named.id == "layout-transposed" for named in step.mistakes) for step in marked.steps)


def _points(problem: Problem, steps: Mapping[str, Any]) -> dict[str, Fraction]:
    """Points by step: as the problem says, else 1 for every published step, else 1 for every step."""
    given = problem.marking.get("points") or {}
    if given:
        return {id: Fraction(str(points)) for id, points in given.items()}
    asked = [id for id in problem.published if id in steps] or list(steps)
    return dict.fromkeys(asked, Fraction(1))


def marks(problem: Problem, sheets: Iterable[Sheet]) -> Iterator[Marked]:
    """Sheets of one problem, marked one by one."""
    marker = Marker(problem)
    for sheet in sheets:
        yield marker.mark(sheet)


__all__ = ["RIGHT", "Marked", "Marker", "StepMark", "fits", "marks"]
