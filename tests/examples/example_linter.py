"""What every worked example must have. `complaints` says what one is missing; an empty list is a good example."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

from attncli.core.message import AttnError
from attncli.problems import file, lesson
from attncli.problems.lesson import contrast
from attncli.problems.problem import Problem

LANGUAGES = ("en", "zh")
TEXTS = ("title", "prompt", "hint", "notice", "source")

_TYPED = re.compile(r"\d[.．]\d")


def complaints(path: Path) -> list[str]:
    """Everything that is wrong with the worked example in this file."""
    try:
        problem = file.load(path)
        return [
            *_about_texts(problem),
            *_about_identity(problem, path),
            *_about_notice(problem),
            *_about_numbers(problem),
        ]
    except AttnError as error:
        return [str(error)]


def _about_texts(problem: Problem) -> Iterator[str]:
    for name in TEXTS:
        for language in LANGUAGES:
            if not getattr(problem, name).get(language, "").strip():
                yield f"{name} is missing in {language}"


def _about_identity(problem: Problem, path: Path) -> Iterator[str]:
    if problem.id != path.stem:
        yield f"the id is {problem.id}, but the file is {path.name}"


def places(text: str) -> set[str]:
    """The places of a notice that the calculation fills; none where its braces do not match."""
    try:
        return {f"{name}:{spec}" for _, name, spec, _ in Formatter().parse(text) if name is not None}
    except ValueError:
        return set()


def _about_notice(problem: Problem) -> Iterator[str]:
    for language in LANGUAGES:
        text = problem.notice.get(language, "")
        try:
            lesson.observations(problem, language)
            quoted = places(text)
        except AttnError as error:
            yield f"notice.{language}: {error}"
            continue
        literal = " ".join(piece for piece, *_ in Formatter().parse(text))
        if _TYPED.search(literal):
            yield f"notice.{language} has a number that was typed, not calculated: {_TYPED.search(literal)}"
        if not quoted:
            yield f"notice.{language} quotes no number of the calculation"
        elif quoted != places(problem.notice.get("en", "")):
            yield f"notice.{language} quotes other numbers than the English one"


def _about_numbers(problem: Problem) -> Iterator[str]:
    if not problem.published and not problem.shapes:
        yield "no published numbers to verify"
    for checked in lesson.check(problem):
        needless = checked.how in ("carried", "truncated") and checked.message is not None
        if needless or not checked.ok:
            yield f"{checked.step}: {checked.message}"
    other = contrast(problem)
    if other is not None:
        assert problem.contrast is not None
        trace = other.graph().evaluate()
        yield from (f"contrast.steps: there is no step {step}" for step in problem.contrast.steps if step not in trace)
