"""A worked example beside its calculation: what its source printed, a second run for comparison, what to notice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attncli.core.record import Record
from attncli.problems.contrast import contrast
from attncli.problems.notice import fill_notice
from attncli.problems.problem import Problem
from attncli.problems.published import Checked, check
from attncli.problems.run import Run, run

_LANGUAGES = ("en", "zh")


class Lesson(Record):
    """What a worked example says beside its steps.

    Parameters
    ----------
    checks : the printed numbers, compared with the calculation
    contrast : the second run, or None; `changes`: what differs in it, as a problem file writes it; `steps`: those to show
    notice : what to notice, by language, its numbers filled in
    """

    problem: Problem
    checks: tuple[Checked, ...]
    contrast: Run | None
    changes: str
    steps: tuple[str, ...]
    notice: Mapping[str, str]

    @property
    def ok(self) -> bool:
        """Whether every printed number is what it is said to be."""
        return all(checked.ok for checked in self.checks)


def lesson_of(problem: Problem, only: Sequence[str] = ()) -> Lesson:
    """The lesson of a problem; `only`: the steps that are shown, where not all are.

    Raises
    ------
    InputError
        The notice or the contrast cannot be read.
    """
    checks = check(problem)
    other = None if only else contrast(problem)
    described = problem.contrast or {}
    changes = ", ".join(
        f"{name} = {_written(value)}"
        for part in ("settings", "inputs")
        for name, value in described.get(part, {}).items()
    )
    notices = {code: fill_notice(problem, code) for code in _LANGUAGES if problem.notice}
    return Lesson(
        problem,
        tuple(checked for checked in checks if not only or not checked.ok or checked.step in only),
        None if other is None else run(other),
        changes,
        tuple(described.get("steps", ())),
        notices,
    )


def _written(value: Any) -> str:
    """A value as a problem file writes it: true, not True."""
    return str(value).lower() if isinstance(value, bool) else str(value)
