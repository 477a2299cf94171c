"""A whole class: sheets in, results out, one by one and in order, on one core or many.

A result depends on its sheet and the problem alone, so any engine may map `Grader.results` over sheets
and gets the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from attncli.marking.mark import Marked, Marker
from attncli.marking.report import data
from attncli.marking.submissions import Submission
from attncli.message import N_, AttnError, Language, Message, unknown
from attncli.problems.answers import Sheet, in_shape_of, renamed
from attncli.problems.problem import Problem

#: Sheets that travel to a worker together.
CHUNK = 64


class Grader:
    """Turns submissions into results.

    Parameters
    ----------
    layout : which way tokens run on the sheets, where not as in the problem
    feedback : also write each student's feedback, by this function of a marked sheet
    names : names on the sheets that mean steps, where they say it otherwise than anybody would guess
    """

    def __init__(
        self,
        problem: Problem,
        language: Language,
        layout: str | None = None,
        feedback: Callable[[Marked, Language], str] | None = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        self.marker = Marker(problem)
        self.language = language
        self.layout = layout or problem.layout
        self.feedback = feedback
        self.names = names or {}
        self.max_score = float(sum(self.marker.points.values()))

    def knows(self, name: str) -> bool:
        """Whether this names a step or an input."""
        return name in self.names or self.marker.names.find(name) is not None

    def result(self, submission: Submission) -> dict[str, Any]:
        """One result (FORMATS)."""
        return self.results([submission])[0]

    def results(self, chunk: Iterable[Submission]) -> list[dict[str, Any]]:
        """The results of some sheets, in their order. A sheet that cannot be read or marked is one malformed result."""
        found: list[dict[str, Any] | None] = []
        readable: list[tuple[Submission, Sheet]] = []
        for submission in chunk:
            sheet = self._tried(submission, lambda: self._sheet(submission))  # noqa: B023
            found.append(sheet if isinstance(sheet, dict) else None)
            if isinstance(sheet, Sheet):
                readable.append((submission, sheet))
        marked = iter(self._marked(readable))
        return [next(marked) if result is None else result for result in found]

    def _sheet(self, submission: Submission) -> Sheet:
        return oriented(in_shape(renamed(submission.read(), self.names), self.marker, self.layout), self.layout)

    def _marked(self, readable: list[tuple[Submission, Sheet]]) -> list[dict[str, Any]]:
        try:
            return [self._finished(marked) for marked in self.marker.mark_many([sheet for _, sheet in readable])]
        except Exception:  # one of them does; which one, and why, comes out where each is marked by itself
            return [
                self._tried(submission, lambda: self._finished(self.marker.mark(sheet)))  # noqa: B023
                for submission, sheet in readable
            ]

    def _tried(self, submission: Submission, work: Callable[[], Any]) -> Any:
        """What the work comes to, or a malformed result."""
        try:
            return work()
        except AttnError as error:
            return self._malformed(submission, error.message)
        except (MemoryError, RecursionError, OSError):
            return self._malformed(submission, Message(N_("This sheet cannot be read.")))
        except Exception as error:  # a fault of ours must not cost a teacher the whole class
            what = f"{type(error).__name__}: {error}"[:200]
            return self._malformed(
                submission, Message(N_("This sheet could not be marked ({what}). Please mark it by hand."), what=what)
            )

    def _finished(self, marked: Marked) -> dict[str, Any]:
        out = data(marked, self.language)
        if self.feedback is not None:
            out["feedback"] = self.feedback(shown_as(marked, self.layout), self.language)
        return out

    def _malformed(self, submission: Submission, why: Message) -> dict[str, Any]:
        return {
            "schema": 1,
            "problem": self.marker.problem.id,
            "student": submission.student(),
            "score": 0.0,
            "max_score": self.max_score,
            "first_wrong": None,
            "steps": [],
            "malformed": why.text(self.language),
        }


def sheet_layout(layout: str | None) -> str | None:
    """Which way tokens run on the sheets, if it was said; the exercise keeps its own.

    Raises
    ------
    InputError
        It is no layout.
    """
    if layout not in (None, "rows", "columns"):
        raise unknown(Message(N_("The layout")), layout, ["rows", "columns"])
    return layout


def in_shape(given: Sheet, marker: Marker, layout: str) -> Sheet:
    """The sheet with every answer in the shape of its step, as far as it is only written otherwise."""

    def shape_of(name: str) -> tuple[int, ...] | None:
        shape = marker.shapes.get(name)
        if shape is None:
            id = marker.names.find(name)
            if id is None:
                return None
            shape = marker.shapes[id]
        return (*shape[:-2], *reversed(shape[-2:])) if layout == "columns" else shape

    return in_shape_of(given, shape_of)


def oriented(given: Sheet, layout: str) -> Sheet:
    """Tokens as rows, whichever way the sheet was asked for."""
    if layout != "columns":
        return given
    return given.changed(answers={id: one.transposed() for id, one in given.answers.items()})


def shown_as(marked: Marked, layout: str) -> Marked:
    """The marks of an oriented sheet, to be shown the way its sheet was written."""
    if layout != "columns":
        return marked
    return marked.changed(layout="rows" if marked.layout == "columns" else "columns")


def chunks(items: Iterable[Submission | None], size: int = CHUNK) -> Iterator[list[Submission]]:
    """The items in lists of up to `size`, read as they are needed; an empty list where the next has to be waited for."""
    found: list[Submission] = []
    for item in items:
        if item is not None:
            found.append(item)
        elif found:
            yield found
            found = []
        if item is None:
            yield []
        elif len(found) == size:
            yield found
            found = []
    if found:
        yield found


class Picture:
    """The class as a whole, counted while results go by; its size does not grow with the class.

    Attributes
    ----------
    students, malformed : how many
    scores : how often each score was reached
    verdicts : by step, in the order of the calculation, how often each verdict
    mistakes : how often each mistake at each step: (step, id) → count
    first_wrong : how often each step was the first wrong one
    """

    def __init__(self, steps: Sequence[str]) -> None:
        self.students = 0
        self.malformed = 0
        self.max_score = 0.0
        self.total = 0.0
        self.scores: Counter[float] = Counter()
        self.verdicts: dict[str, Counter[str]] = {step: Counter() for step in steps}
        self.mistakes: Counter[tuple[str, str]] = Counter()
        self.first_wrong: Counter[str] = Counter()

    def add(self, result: dict[str, Any]) -> None:
        """Count one result."""
        self.students += 1
        self.max_score = max(self.max_score, result["max_score"])
        self.total += result["score"]
        self.scores[round(result["score"], 2)] += 1
        self.malformed += "malformed" in result
        if result["first_wrong"] in self.verdicts:
            self.first_wrong[result["first_wrong"]] += 1
        for step in result["steps"]:
            if step["id"] in self.verdicts:
                self.verdicts[step["id"]][step["verdict"]] += 1
            # Several entries that give the same numbers are one mistake; the likelier first stands for them.
            for mistake in step["mistakes"][:1]:
                self.mistakes[mistake["step"], mistake["id"]] += 1

    @property
    def mean(self) -> float:
        return self.total / self.students if self.students else 0.0
