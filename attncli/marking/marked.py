"""What marking comes to: a verdict, points and words for every step of a sheet."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from attncli.core.graph import Graph
from attncli.core.message import ENGLISH, N_, Message
from attncli.core.record import Record
from attncli.marking.explain import Named
from attncli.problems.problem import Problem

#: Verdicts of a step that is right.
RIGHT = frozenset({"correct", "route", "imprecise"})

#: Said before two mistakes that only together give what was written.
TWO_THINGS = N_("Two things came together here:")

#: Said of a step that is right only from what went before on the sheet.
FOLLOWED = N_("Right from your own earlier values.")

_NOTHING: Mapping[str, Any] = {}


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
        return all(step.verdict in RIGHT or step.verdict == "blank" for step in self.steps)

    def __str__(self) -> str:
        """The sheet in words, as a page of feedback."""
        from attncli.render.markdown import feedback

        return feedback(self, ENGLISH)

    _repr_markdown_ = __str__
