"""Sheets in, results out. A result depends on its sheet and the problem alone, so any engine may map `Grader.results` over sheets
and gets the same bytes.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from attncli.core.limits import MOST_MARKED_CELLS, MOST_SECONDS
from attncli.core.message import N_, AttnError, Language, Message, of_system, where_it_failed
from attncli.marking.mark import Marked, Marker
from attncli.marking.report import data
from attncli.marking.sheets import check_names, in_shape, knows, oriented, shown_as
from attncli.marking.submission import Submission
from attncli.problems.answers import Sheet, renamed
from attncli.problems.problem import Problem, check_cells


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
        self.marker = marker_of(problem)
        self.names = names or {}
        self.language = language
        self.layout = layout or problem.layout
        self.feedback = feedback
        self.max_score = float(sum(self.marker.points.values()))

    def knows(self, name: str) -> bool:
        """Whether this names a step or an input."""
        return name in self.names or knows(self.marker, name)

    def whose(self, submission: Submission | None) -> Submission | None:
        """The sheet with the student it belongs to, where that follows from more than its place."""
        return submission

    def result(self, submission: Submission) -> dict[str, Any]:
        """One result (FORMATS)."""
        return self.results([submission])[0]

    def results(self, chunk: Iterable[Submission]) -> list[dict[str, Any]]:
        """The results of some sheets, in their order. A sheet that cannot be read or marked is one result without steps."""
        found: list[dict[str, Any] | None] = []
        readable: list[tuple[Submission, Sheet]] = []
        for submission in chunk:
            sheet = self._tried(submission, lambda: self._read(submission))  # noqa: B023
            found.append(sheet if isinstance(sheet, dict) else None)
            if isinstance(sheet, Sheet):
                readable.append((submission, sheet))
        marked = iter(self._marked(readable))
        return [next(marked) if result is None else result for result in found]

    def _read(self, submission: Submission) -> Sheet:
        sheet = renamed(submission.read(), self.names)
        check_names(self.marker, sheet)
        return oriented(in_shape(sheet, self.marker, self.layout), self.layout)

    def _marked(self, readable: list[tuple[Submission, Sheet]]) -> list[dict[str, Any]]:
        if len(readable) > 1:
            try:
                with within(MOST_SECONDS):
                    return [
                        self._finished(marked) for marked in self.marker.mark_many([sheet for _, sheet in readable])
                    ]
            except (
                Exception,
                TooSlow,
            ):  # one of them does; which one, and why, comes out where each is marked by itself
                pass
        return [
            self._tried(submission, lambda: self._finished(self.marker.mark_many([sheet])[0]))  # noqa: B023
            for submission, sheet in readable
        ]

    def _tried(self, submission: Submission, work: Callable[[], Any]) -> Any:
        """What the work comes to, or a result that says why there is none."""
        try:
            with within(MOST_SECONDS):
                return work()
        except AttnError as error:
            return self._without_steps(submission, malformed=error.message)
        except OSError as error:
            return self._without_steps(
                submission, malformed=Message(N_("This sheet cannot be read ({reason})."), reason=of_system(error))
            )
        except (TooSlow, MemoryError, RecursionError) as error:
            return self._without_steps(submission, fault=_too_much(error))
        except Exception as error:  # a fault of ours must not cost a teacher the whole class
            return self._without_steps(submission, fault=Message(_FAULT, what=where_it_failed(error)))

    def _finished(self, marked: Marked) -> dict[str, Any]:
        out = data(marked, self.language)
        if self.feedback is not None:
            out["feedback"] = self.feedback(shown_as(marked, self.layout), self.language)
        return out

    def _without_steps(self, submission: Submission, **why: Message) -> dict[str, Any]:
        """A sheet that cannot be read has no points; one that we failed at has none yet."""
        return {
            "schema": 1,
            "problem": self.marker.problem.id,
            "student": submission.student(),
            "score": None if "fault" in why else 0.0,
            "max_score": self.max_score,
            "first_wrong": None,
            "steps": [],
            **{name: message.text(self.language) for name, message in why.items()},
        }


class SetGrader(Grader):
    """The same for sheets of several problems that ask for the same steps: each is marked by its own.

    Parameters
    ----------
    problems : by id
    owners : the id of each student's problem, where the sheet itself does not name it
    """

    def __init__(self, problems: Mapping[str, Problem], owners: Mapping[str, str], *args: Any) -> None:
        super().__init__(next(iter(problems.values())), *args)
        self.problems = problems
        self.owners = owners
        self._others = args
        self._graders: dict[str, Grader] = {}

    def knows(self, name: str) -> bool:
        return name == "problem" or super().knows(name)

    def results(self, chunk: Iterable[Submission]) -> list[dict[str, Any]]:
        sheets = list(chunk)
        found: dict[int, dict[str, Any]] = {}
        groups: dict[str, list[int]] = {}
        for at, sheet in enumerate(sheets):
            id = self._id(sheet)
            if id is None:
                student = sheet.student()
                found[at] = self._without_steps(
                    sheet, malformed=Message(_WHOSE, student=student[:60], problem=(sheet.problem() or "")[:60])
                )
            else:
                groups.setdefault(id, []).append(at)
        for id, places in groups.items():
            if id not in self._graders:
                self._graders[id] = Grader(self.problems[id], *self._others)
            found.update(zip(places, self._graders[id].results([sheets[at] for at in places]), strict=True))
        return [found[at] for at in range(len(sheets))]

    def whose(self, submission: Submission | None) -> Submission | None:
        """A file that is called like a sheet of the set is that student's; where nobody has it, whoever it names."""
        if submission is None or submission.kind != "file" or submission.name not in self.problems:
            return submission
        owner = next((student for student, id in self.owners.items() if id == submission.name), None)
        return submission.changed(placed=False) if owner is None else submission.changed(name=owner, placed=True)

    def _id(self, sheet: Submission) -> str | None:
        """Which problem a sheet answers: the one it names, or its student's."""
        named = sheet.problem()
        if named is not None:
            return named if named in self.problems else None
        return sheet.name if sheet.name in self.problems else self.owners.get(sheet.student())


_WHOSE = N_(
    'Which sheet of the set this answers is not known: it names the problem “{problem}”, and students.csv has none for {student}. Write problem = "…", as on the empty sheet.'
)

_FAULT = N_(
    "attncli itself failed at this sheet ({what}). It has no points yet: mark it by hand, and please report it."
)


def _too_much(error: BaseException) -> Message:
    if isinstance(error, TooSlow):
        return Message(
            N_("This sheet took more than {limit} seconds, the limit. It has no points yet: mark it by hand."),
            limit=MOST_SECONDS,
        )
    return Message(N_("This sheet needs more memory than there is. It has no points yet: mark it by hand."))


def marker_of(problem: Problem) -> Marker:
    """What marks sheets of a problem that is small enough to be marked.

    Raises
    ------
    LimitError
        It has too many numbers: each would be worked out in several ways.
    """
    check_cells(problem.graph(), MOST_MARKED_CELLS)
    return Marker(problem)


class TooSlow(BaseException):
    """The time is over. No `except Exception` on the way may swallow it."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise TooSlow after so many seconds, where the system can: in the first thread, and not on Windows."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def over(number: int, frame: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
