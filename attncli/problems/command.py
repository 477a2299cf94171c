r"""A run as the command that calculates it again, with its inputs where changed ones can be put in."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import numpy as np

from attncli.core.matrix import Matrix
from attncli.core.message import AttnError
from attncli.core.record import Record
from attncli.problems import library
from attncli.problems.matrix_text import write_entry, write_matrix
from attncli.problems.problem import Problem
from attncli.problems.run import Run


class Command(Record):
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


def command(run: Run) -> Command:
    """The command that gives this run."""
    problem = run.problem
    example = _is_example(problem)
    name = "backward" if any(step.phase != "forward" for step in run.graph.steps.values()) else "forward"
    before = ["attncli", name, *([problem.id] if example else _model(problem))]
    arrays = {**problem.inputs, **problem.extras}
    known = {id: matrix for id, matrix in arrays.items() if id in run.trace.numbers}
    inputs = {id: (_option(id), None if example else write_matrix(matrix.values)) for id, matrix in known.items()}
    if not example:
        fixed = {id: matrix for id, matrix in arrays.items() if id not in known}
        before += [word for id, matrix in fixed.items() for word in ("--set", f"{id}={write_matrix(matrix.values)}")]
    upstream = _upstream(run)
    if problem.upstream is not None and upstream is not None:
        inputs[upstream] = ("--upstream ", None if example else write_matrix(problem.upstream.values))
    after = [] if run.decimals is None else ["--decimals", str(run.decimals)]
    if problem.loss is not None and not example and name == "backward":
        after += ["--loss", problem.loss]
    can_change = changeable(run)
    moved = {id: given for id, given in inputs.items() if id in can_change}
    rest = [f'{option}"{text}"' for id, (option, text) in inputs.items() if id not in moved and text is not None]
    return Command(" ".join([*map(_quoted, before), *rest]), moved, " ".join(map(_quoted, after)))


def changeable(run: Run) -> set[str]:
    """The inputs that are given as numbers and calculated with as such, so that a change of one can be followed."""
    problem = run.problem
    given = {id for id in (*problem.inputs, *problem.extras) if id in run.trace.numbers}
    upstream = _upstream(run) if problem.upstream is not None else None
    return {id for id in (*given, upstream) if id is not None and _is_calculated_with(run, id)}


def _upstream(run: Run) -> str | None:
    """The gradient that arrives at the output, where the backward steps are there."""
    return next(
        (node.id for node in run.graph.inputs.values() if node.phase == "upstream" and node.id in run.trace.numbers),
        None,
    )


def _is_example(problem: Problem) -> bool:
    """Whether it is a worked example as it came: its name then says it all."""
    try:
        return bool(problem.id) and problem.id in library.ids() and _told(library.load(problem.id)) == _told(problem)
    except AttnError:
        return False


def _told(problem: Problem) -> Any:
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
            words += ["--set", f"{name}={_setting(value)}"]
    return words


def _option(id: str) -> str:
    return f"-{id} " if id in ("Q", "K", "V") else f"--set {id}="


def _setting(value: Any) -> str:
    """A setting as it would be written on the command line."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, Matrix):
        return write_matrix(value.values)
    if isinstance(value, (list, tuple, np.ndarray)):
        rows = [[_setting(part) for part in row] if _is_row(row) else _setting(row) for row in value]
        return "; ".join(" ".join(row) for row in rows) if rows and _is_row(rows[0]) else " ".join(map(str, rows))
    return value if isinstance(value, str) else write_entry(float(value))


def _is_row(value: Any) -> bool:
    return isinstance(value, (list, tuple, np.ndarray))


def _is_calculated_with(run: Run, id: str) -> bool:
    """Whether every step that takes this input names its cells, so that a change is followed.

    Ids of tokens only choose rows: which numbers are added up is then another calculation.
    """
    takes = [step for step in run.trace.steps if id in step.inputs]
    if not takes:
        return id in run.graph.inputs and run.graph.inputs[id].phase == "upstream"
    return all(_names(run, step, id) for step in takes)


def _names(run: Run, step: Any, id: str) -> bool:
    values = run.trace.numbers
    shape = values[step.id].shape
    cells = (name for index in np.ndindex(*shape) for name, _ in step.op.terms(step, index, values).cells())
    return id in cells


def _quoted(word: str) -> str:
    return shlex.quote(word)
