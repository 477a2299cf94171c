"""What an exercise asks: what is given, what to hand in for how many points, how to write it. Never a number of its answer.

Data only: the terminal, worksheets and pages show the same question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from attncli.core.graph import Graph
from attncli.core.record import Record
from attncli.problems.matrix_text import write_matrix
from attncli.problems.problem import Problem

#: Cells up to which a blank is drawn for each; of a larger matrix one blank stands for all.
_MOST_BLANKS = 24
#: Characters that a command with all its blanks may have; a longer one has one blank a step.
_MOST_COMMAND = 400
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")


class Asked(Record):
    """One thing to hand in.

    Parameters
    ----------
    step : its id
    symbol : LaTeX
    shape : as it is written on the sheet (with tokens as columns, the last two sizes exchanged)
    points : what it is worth; 0 where it is asked for and earns nothing
    decimals : places that are judged; None: those that were written
    """

    step: str
    symbol: str
    shape: tuple[int, ...]
    points: Fraction
    decimals: int | None

    def blanks(self) -> str:
        """The matrix with every cell left blank: “? ?; ? ?”; of a large one a single “?”."""
        *heads, rows, columns = (1, 1, 1, *self.shape)[-3:]
        if rows * columns * heads[0] > _MOST_BLANKS:
            return "?"
        block = "; ".join([" ".join("?" * columns)] * rows)
        return " | ".join([block] * heads[0])


class Question(Record):
    """An exercise without its answer.

    Parameters
    ----------
    given : ids of the matrices that the author wrote down, in the order of the calculation
    asked : what is to be handed in, in the order of the calculation
    texts : inputs that are text, and matrices that only a loss needs, as text
    settings : as a problem file writes them
    loss : as it was written, or None
    """

    problem: Problem
    graph: Graph
    given: tuple[str, ...]
    asked: tuple[Asked, ...]
    texts: Mapping[str, str]
    settings: Mapping[str, str]
    loss: str | None

    @property
    def decimals(self) -> tuple[int | None, ...]:
        """The places that are judged, each once, in rising order; last None: those that were written."""
        return tuple(sorted({one.decimals for one in self.asked}, key=lambda places: (places is None, places or 0)))

    def sheet(self) -> str:
        """An empty sheet, TOML: a line a step."""
        return "".join(f'{_key(one.step)} = "{one.blanks()}"\n' for one in self.asked)

    def command(self, name: str) -> str:
        """The command that marks the answers once they stand in the place of the blanks."""
        words = [f'{one.step}="{one.blanks()}"' for one in self.asked]
        if sum(map(len, words)) > _MOST_COMMAND:
            words = [f'{one.step}="?"' for one in self.asked]
        return " ".join(["attncli check", quoted(name), *words])


def question_of(problem: Problem) -> Question:
    """What a problem asks.

    Raises
    ------
    InputError, ShapeError
        It cannot be calculated.
    """
    graph = problem.graph()
    points = points_of(problem, graph.steps)
    written = {*problem.inputs, *problem.extras}
    derived = [
        step_id for step_id in graph.inputs if step_id not in written and not _is_upstream(problem, graph, step_id)
    ]
    wanted = {
        **points,
        **{step_id: Fraction(0) for step_id in problem.published if step_id in derived and step_id not in points},
    }
    asked = tuple(
        Asked(
            step_id,
            graph.symbol(step_id),
            _as_shown(problem, graph.shape(step_id)),
            wanted[step_id],
            None if problem.is_as_written(step_id) else problem.decimals_of(step_id),
        )
        for step_id in (*graph.inputs, *graph.steps)
        if step_id in wanted
    )
    return Question(
        problem,
        graph,
        tuple(step_id for step_id in graph.inputs if step_id not in derived and step_id not in wanted),
        asked,
        {
            **problem.texts,
            **{step_id: write_matrix(m.values) for step_id, m in problem.extras.items() if step_id not in graph},
        },
        {name: _setting(value) for name, value in problem.settings.items()},
        problem.loss,
    )


def points_of(problem: Problem, steps: Mapping[str, object]) -> dict[str, Fraction]:
    """Points by step: as the problem says, else 1 for every published step, else 1 for every step."""
    given = problem.marking.get("points") or {}
    if given:
        return {step_id: Fraction(str(points)) for step_id, points in given.items()}
    asked = [step_id for step_id in problem.published if step_id in steps] or list(steps)
    return dict.fromkeys(asked, Fraction(1))


def _is_upstream(problem: Problem, graph: Graph, step_id: str) -> bool:
    """Whether this is the gradient that the author gave; the one of a loss has to be found."""
    return problem.upstream is not None and graph.inputs[step_id].phase == "upstream"


def _as_shown(problem: Problem, shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-2], *reversed(shape[-2:])) if problem.layout == "columns" else shape


def _setting(value: object) -> str:
    """A setting as a problem file writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_setting, value))}]"
    if hasattr(value, "values"):
        return write_matrix(value.values)
    return str(getattr(value, "text", value))


def _key(step: str) -> str:
    return step if _PLAIN_KEY.fullmatch(step) else f'"{step}"'


def quoted(name: str) -> str:
    """A word as a shell takes it."""
    import shlex

    return shlex.quote(name)
