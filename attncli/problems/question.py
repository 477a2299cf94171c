"""What an exercise asks: what is given, what to hand in for how many points, how to write it. Never a number of its answer.

Data only: the terminal, worksheets and pages show the same question.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from attncli.core.graph import Graph, Step
from attncli.core.matrix import Matrix
from attncli.core.message import AttnError
from attncli.core.record import Record
from attncli.problems import library
from attncli.problems.matrix_text import write_matrix
from attncli.problems.problem import Problem, Run
from attncli.problems.reading import toml_key

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

#: Cells up to which a blank is drawn for each; of a larger matrix one blank stands for all.
_MOST_BLANKS = 24
#: Characters that a command with all its blanks may have; a longer one has one blank a step.
_MOST_COMMAND = 400


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
        return "".join(f'{toml_key(one.step)} = "{one.blanks()}"\n' for one in self.asked)

    def command(self, name: str) -> str:
        """The command that marks the answers once they stand in the place of the blanks."""
        words = [f'{one.step}="{one.blanks()}"' for one in self.asked]
        if sum(map(len, words)) > _MOST_COMMAND:
            words = [f'{one.step}="?"' for one in self.asked]
        return " ".join(["attncli check", shlex.quote(name), *words])


def question_of(problem: Problem) -> Question:
    """What a problem asks."""
    graph = problem.graph()
    points = problem.points()
    written = {*problem.inputs, *problem.extras, _upstream(problem, graph)}
    derived = [step_id for step_id in graph.inputs if step_id not in written]
    wanted = {
        **{step_id: Fraction(0) for step_id in problem.published if step_id in derived},
        **points,
    }
    asked = tuple(
        Asked(
            step_id,
            graph.symbol(step_id),
            as_shown(problem, graph.shape(step_id)),
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
        {name: as_in_a_file(value) for name, value in problem.settings.items()},
        problem.loss,
    )


def _upstream(problem: Problem, graph: Graph) -> str | None:
    """The gradient that the author gave; the one of a loss has to be found."""
    inputs = graph.inputs.values() if problem.upstream is not None else ()
    return next((node.id for node in inputs if node.phase == "upstream"), None)


def as_shown(problem: Problem, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape as the exercise is written: with tokens as columns, the last two sizes exchanged."""
    return (*shape[:-2], *reversed(shape[-2:])) if problem.layout == "columns" else shape


def as_in_a_file(value: object) -> str:
    """A setting as a problem file writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(as_in_a_file, value))}]"
    if hasattr(value, "values"):
        return write_matrix(value.values)
    return str(getattr(value, "text", value))


class CommandLine(Record):
    """A command line in three pieces.

    Parameters
    ----------
    before, after : words in front of the inputs and behind them, quoted for a shell
    inputs : by id, of each input that can be changed: its option, and its numbers as text, or None where the
        command knows them already (a worked example)
    """

    before: str
    inputs: Mapping[str, tuple[str, str | None]]
    after: str


def command_line(run: Run) -> CommandLine:
    """The command that gives this run."""
    problem, example = run.problem, _is_example(run.problem)
    name = "backward" if any(step.phase != "forward" for step in run.graph.steps.values()) else "forward"
    words = ["attncli", name, *([problem.id] if example else _model(problem))]
    fixed: list[str] = []
    inputs: dict[str, tuple[str, str | None]] = {}
    can_change, upstream = changeable(run), _upstream(problem, run.graph)
    given = {**problem.inputs, **problem.extras, **({} if upstream is None else {upstream: problem.upstream})}
    for input_id, matrix in given.items():
        option = f"-{input_id} " if input_id in ("Q", "K", "V") else f"--set {input_id}="
        option = "--upstream " if input_id == upstream else option
        text = None if example or matrix is None else write_matrix(matrix.values)
        if input_id in can_change:
            inputs[input_id] = option, text
        elif text is not None:
            fixed.append(f'{option}"{text}"')
    after = [] if run.decimals is None else ["--decimals", str(run.decimals)]
    if problem.loss is not None and not example and name == "backward":
        after += ["--loss", problem.loss]
    return CommandLine(" ".join([*map(shlex.quote, words), *fixed]), inputs, " ".join(map(shlex.quote, after)))


def changeable(run: Run) -> set[str]:
    """The inputs that are given as numbers and calculated with as such, so that a change of one can be followed."""
    given = (*run.problem.inputs, *run.problem.extras, _upstream(run.problem, run.graph))
    return {input_id for input_id in given if input_id in run.trace.numbers and _is_calculated_with(run, str(input_id))}


def _is_example(problem: Problem) -> bool:
    """Whether it is a worked example as it came: its name then says it all."""
    try:
        return bool(problem.id) and problem.id in library.ids() and _told(library.load(problem.id)) == _told(problem)
    except AttnError:
        return False


def _told(problem: Problem) -> tuple[object, ...]:
    """What a problem calculates, as something that can be compared."""
    arrays = {**problem.inputs, **problem.extras, "upstream ": problem.upstream}
    numbers = {name: matrix.values.tolist() for name, matrix in arrays.items() if matrix is not None}
    return problem.model, numbers, dict(problem.texts), str(dict(problem.settings)), problem.loss, problem.layout


def _model(problem: Problem) -> list[str]:
    words = ["--model", problem.model]
    if problem.layout != "rows":
        words += ["--layout", problem.layout]
    for name, text in problem.texts.items():
        words += ["--set", f"{name}={text}"]
    for name, value in problem.settings.items():
        if value is not None:
            words += ["--set", f"{name}={_setting_word(value)}"]
    return words


def _setting_word(value: ArrayLike | Matrix) -> str:
    """A setting as it would be written on the command line."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, Matrix):
        return write_matrix(value.values)
    if isinstance(value, (list, tuple, np.ndarray)):
        apart = "; " if any(isinstance(part, (list, tuple, np.ndarray)) for part in value) else " "
        return apart.join(map(_setting_word, value))
    return value if isinstance(value, str) else write_matrix(value)


def _is_calculated_with(run: Run, input_id: str) -> bool:
    """Whether every step that takes this input names its cells, so that a change is followed.

    Ids of tokens only choose rows: which numbers are added up is then another calculation.
    """
    takes = [step for step in run.trace.steps if input_id in step.inputs]
    if not takes:
        return input_id in run.graph.inputs and run.graph.inputs[input_id].phase == "upstream"
    return all(_names(run, step, input_id) for step in takes)


def _names(run: Run, step: Step, input_id: str) -> bool:
    terms = step.terms(run.trace.numbers)
    cells = (name for index in np.ndindex(*terms.shape) for name, _ in terms[index].cells())
    return input_id in cells
