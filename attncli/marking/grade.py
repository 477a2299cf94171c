"""A whole class: sheets in, results out, one by one and in order, on one core or many.

A result depends on its sheet and the problem alone, so any engine may map `Grader.result` over sheets
and gets the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from attncli.marking.mark import Marked, Marker
from attncli.marking.report import data
from attncli.marking.submissions import Submission
from attncli.message import N_, AttnError, Language, Message
from attncli.problems.problem import Problem

#: Sheets that travel to a worker together.
CHUNK = 64


class Grader:
    """Turns submissions into results.

    Parameters
    ----------
    feedback : also write each student's feedback, by this function of a marked sheet
    """

    def __init__(self, problem: Problem, language: Language, feedback: Any = None) -> None:
        self.marker = Marker(problem)
        self.language = language
        self.feedback = feedback
        self.max_score = float(sum(self.marker.points.values()))

    def result(self, submission: Submission) -> dict[str, Any]:
        """One result (FORMATS). A sheet that cannot be read is one malformed result."""
        try:
            marked = self.marker.mark(submission.read())
        except AttnError as error:
            return self._malformed(submission, error.message)
        except (MemoryError, RecursionError, OSError):
            return self._malformed(submission, Message(N_("This sheet cannot be read.")))
        return self._finished(marked)

    def results(self, chunk: Iterable[Submission]) -> list[dict[str, Any]]:
        return [self.result(submission) for submission in chunk]

    def _finished(self, marked: Marked) -> dict[str, Any]:
        out = data(marked, self.language)
        if self.feedback is not None:
            out["feedback"] = self.feedback(marked, self.language)
        return out

    def _malformed(self, submission: Submission, why: Message) -> dict[str, Any]:
        text = why.text(self.language)
        return {
            "schema": 1,
            "problem": self.marker.problem.id,
            "student": submission.name,
            "score": 0.0,
            "max_score": self.max_score,
            "first_wrong": None,
            "steps": [],
            "malformed": text,
            **({"feedback": f"# {submission.name}\n\n{text}\n"} if self.feedback is not None else {}),
        }


def chunks(items: Iterable[Submission], size: int = CHUNK) -> Iterator[list[Submission]]:
    """The items in lists of `size`, read as they are needed."""
    waiting = iter(items)
    while chunk := list(islice(waiting, size)):
        yield chunk


class Picture:
    """The class as a whole, counted while results go by; its size does not grow with the class.

    Attributes
    ----------
    students, malformed : how many
    scores : how often each score was reached
    verdicts : by step, how often each verdict
    mistakes : how often each mistake at each step: (step, id) → count
    first_wrong : how often each step was the first wrong one
    """

    def __init__(self) -> None:
        self.students = 0
        self.malformed = 0
        self.max_score = 0.0
        self.total = 0.0
        self.scores: Counter[float] = Counter()
        self.verdicts: dict[str, Counter[str]] = {}
        self.mistakes: Counter[tuple[str, str]] = Counter()
        self.first_wrong: Counter[str] = Counter()

    def add(self, result: dict[str, Any]) -> None:
        """Count one result."""
        self.students += 1
        self.max_score = max(self.max_score, result["max_score"])
        self.total += result["score"]
        self.scores[result["score"]] += 1
        self.malformed += "malformed" in result
        if result["first_wrong"] is not None:
            self.first_wrong[result["first_wrong"]] += 1
        for step in result["steps"]:
            if step["max_points"] or step["verdict"] != "malformed":
                self.verdicts.setdefault(step["id"], Counter())[step["verdict"]] += 1
            # Several entries that give the same numbers are one mistake; the likelier first stands for them.
            for mistake in step["mistakes"][:1]:
                self.mistakes[mistake["step"], mistake["id"]] += 1

    @property
    def mean(self) -> float:
        return self.total / self.students if self.students else 0.0
