"""Learners that are simulated: one who is right, one who always makes the same mistake."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from attncli.arithmetic.hand import round_decimal
from attncli.practice.log import LogEntry
from attncli.practice.progress import Progress
from attncli.practice.schedule import NextExercise, Recipes, next_exercise
from attncli.practice.session import Exercise, Reply, Sentence, Session

#: Drawn once for all tests.
RECIPES = Recipes()


class Bench:
    """A session with a clock that the test moves, and a log in memory."""

    def __init__(
        self,
        choose: Callable[[Progress, float], NextExercise] | None = None,
        *,
        count: int | None = None,
        student: str = "",
    ) -> None:
        self.now = 1_000_000.0
        self.entries: list[LogEntry] = []
        self.state = Progress(student=student)
        self.session = Session(
            choose or (lambda log, now: next_exercise(log, now, RECIPES)),
            self.state,
            self.entries.append,
            lambda: self.now,
            count,
        )
        self.shown: list[Reply] = list(self.session.start())

    @property
    def exercise(self) -> Exercise:
        assert self.session.exercise is not None
        return self.session.exercise

    def type(self, line: str) -> list[Reply]:
        """What comes back."""
        self.now += 10
        self.shown = list(self.session.take(line))
        return self.shown

    def said(self) -> str:
        """The sentences of what came back, in English."""
        return "\n".join(part.message.text() for part in self.shown if isinstance(part, Sentence))


def only(name: str, stage: int, seed: int = 1) -> Callable[[Progress, float], NextExercise]:
    """Always this exercise."""
    from attncli.core.message import Message

    return lambda log, now: NextExercise(f"{name}#{seed}", RECIPES.draw(name, seed), stage, Message("because"))


def written(values: Any, places: int) -> str:
    """Numbers as a person writes them."""
    heads = np.reshape(values, (-1, *np.shape(values)[-2:])) if np.ndim(values) > 2 else [np.atleast_2d(values)]
    return " | ".join("; ".join(" ".join(_one(v, places) for v in row) for row in head) for head in heads)


def _one(value: float, places: int) -> str:
    if np.isinf(value):
        return "-inf" if value < 0 else "inf"
    return str(int(value)) if float(value).is_integer() else f"{float(round_decimal(value, places)):.{places}f}"


def right(exercise: Exercise) -> str:
    """The right answer to what is asked for."""
    return written(exercise.values()[exercise.step], exercise.problem.decimals_of(exercise.step))


def mistaken(exercise: Exercise, mistake: str) -> str | None:
    """The answer of somebody who makes a mistake wherever it can be made from here on; None where it changes nothing."""
    lines = {id: line.matrix.values for id, line in exercise.lines.items() if line.matrix is not None}
    expected = right(exercise)
    for step in exercise.graph.steps:
        if step in lines:
            continue
        for one in exercise.marker.explainer.mistakes(step):
            if one.id == mistake:
                try:
                    value = exercise.graph.evaluate(given=lines, swap=one.swap, until=exercise.step)[exercise.step]
                except ValueError:  # operands that do not fit the wrong way round
                    continue
                text = written(value, exercise.problem.decimals_of(exercise.step))
                if text != expected and value.shape == exercise.graph.shape(exercise.step):
                    return text
    return None


def exercises(entries: list[LogEntry]) -> Iterator[tuple[str, int]]:
    """The exercises of a log, in order: their recipes and stages."""
    last = None
    for entry in entries:
        if (entry.exercise, entry.stage) != last:
            last = entry.exercise, entry.stage
            yield entry.recipe, entry.stage
