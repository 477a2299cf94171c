"""The class as a whole: what a teacher sees of many results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

#: Students that a picture of the class keeps by name.
MOST_LISTED = 60


class Picture:
    """The class as a whole, counted while results go by; its size hardly grows with the class.

    Attributes
    ----------
    sheets, malformed, faults : how many, how many could not be read, and how many we failed at
    students : the first names with their points, None where there are none yet
    unreadable : the first of those that could not be read or marked, each with the reason
    scores : how often each score was reached
    verdicts : by step, in the order of the calculation, how often each verdict
    mistakes : how often each mistake at each step: (step, id) → count
    first_wrong : how often each step was the first wrong one
    several : students with more than one sheet, and how many
    """

    def __init__(self, steps: Sequence[str]) -> None:
        self.sheets = 0
        self.malformed = 0
        self.faults = 0
        self.max_score = 0.0
        self.total = 0.0
        self.students: list[tuple[str, float | None]] = []
        self.unreadable: list[tuple[str, str]] = []
        self.several: dict[str, int] = {}
        self.scores: Counter[float] = Counter()
        self.verdicts: dict[str, Counter[str]] = {step: Counter() for step in steps}
        self.mistakes: Counter[tuple[str, str]] = Counter()
        self.first_wrong: Counter[str] = Counter()

    def add(self, result: dict[str, Any]) -> None:
        """Count one result."""
        self.sheets += 1
        self.max_score = max(self.max_score, result["max_score"])
        if len(self.students) < MOST_LISTED:
            self.students.append((result["student"] or "", result["score"]))
        why = result.get("malformed") or result.get("fault")
        if why and len(self.unreadable) < MOST_LISTED:
            self.unreadable.append((result["student"] or "", why))
        self.malformed += "malformed" in result
        self.faults += "fault" in result
        if result["score"] is not None:
            self.total += result["score"]
            self.scores[round(result["score"], 2)] += 1
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
        marked = self.sheets - self.faults
        return self.total / marked if marked else 0.0
