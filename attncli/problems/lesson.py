"""A worked example beside its calculation: what its source printed, a second run for comparison, what to notice.

What to notice is text whose numbers come from the calculation, never from a keyboard.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from string import Formatter

import numpy as np

from attncli import models
from attncli.arithmetic.hand import Hand, round_decimal
from attncli.core.axes import show_shape
from attncli.core.graph import Trace
from attncli.core.matrix import FloatArray, Matrix
from attncli.core.message import InputError, Message, placed, unknown
from attncli.core.record import Record
from attncli.locale import CODES
from attncli.problems.problem import Contrast, Problem, Run, run
from attncli.problems.published import PrintedCheck, check
from attncli.problems.question import as_in_a_file
from attncli.problems.source import matrix_of


class Lesson(Record):
    """What a worked example says beside its steps.

    Parameters
    ----------
    checks : the printed numbers, compared with the calculation
    contrast : the second run, or None; `changes`: what differs in it, as a problem file writes it; `steps`: those to show
    observations : what to notice, by language, its numbers filled in
    """

    problem: Problem
    checks: tuple[PrintedCheck, ...]
    contrast: Run | None
    changes: str
    steps: tuple[str, ...]
    observations: Mapping[str, str]

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
    described = problem.contrast or Contrast()
    changes = ", ".join(
        f"{name} = {as_in_a_file(value)}" for name, value in (*described.settings.items(), *described.inputs.items())
    )
    noticed = {code: observations(problem, code) for code in CODES if problem.notice}
    return Lesson(
        problem,
        tuple(checked for checked in checks if not only or not checked.ok or checked.step in only),
        None if other is None else run(other),
        changes,
        described.steps,
        noticed,
    )


def arithmetic_of_source(problem: Problem) -> str:
    """As the source of an exercise did: by hand, where it carried rounded numbers on."""
    return "hand" if "carried" in problem.how.values() else "floating"


def check_layout(problem: Problem, layout: str | None) -> None:
    """Refuse a layout that the published numbers of an exercise do not have."""
    if layout is not None and layout != problem.layout:
        raise InputError(
            "{id} is written with tokens as {layout}, and so are its published numbers. Leave out --layout.",
            id=problem.id,
            layout=Message(problem.layout),
        )


# --- The second run ---------------------------------------------------------------------------------------------------


def contrast(problem: Problem) -> Problem | None:
    """The problem with the settings and inputs of its contrast; None where it has none.

    Raises
    ------
    InputError
        An input of the contrast cannot be read.
    """
    if problem.contrast is None:
        return None
    model = models.get(problem.model)
    given = problem.contrast.inputs
    texts = {name: str(value) for name, value in given.items() if model.kind_of(name) == "text"}
    matrices = {name: _matrix_of_contrast(name, value) for name, value in given.items() if name not in texts}
    return problem.changed(
        inputs={**problem.inputs, **matrices},
        texts={**problem.texts, **texts},
        settings={**problem.settings, **problem.contrast.settings},
        contrast=None,
    )


def _matrix_of_contrast(name: str, value: object) -> Matrix:
    with placed(f"contrast.inputs.{name}"):
        return matrix_of(value)


# --- What to notice ---------------------------------------------------------------------------------------------------

_PLACE = re.compile(
    r"(?:(?P<run>full|carried|contrast|shape)\.)?(?P<step>[A-Za-z_][\w.]*)(?:\[(?P<index>[\d,\s]+)\])?\Z"
)


def observations(problem: Problem, language_code: str) -> str:
    """The notice of a problem in a language, its places filled with numbers of the calculation.

    A place names a cell counted from 1 (rows are tokens), the run it comes from, and the decimals to show (without
    them, the step's own): {A[1,2]}, {O[1,2]:4}, {carried.O[1,2]} (every line rounded by hand), {contrast.A[1,2]};
    and {shape.X} is a shape. Braces that are meant as such are doubled.

    Returns
    -------
    str
        The English text where there is none in `language_code`; empty where there is none at all.

    Raises
    ------
    InputError
        A place that cannot be filled, with the reason.
    """
    text = problem.notice.get(language_code) or problem.notice.get("en", "")
    return fill(problem, text)


def fill(problem: Problem, text: str) -> str:
    """Any text with such places, filled."""
    runs = _Runs(problem)
    try:
        pieces = list(Formatter().parse(text))
    except ValueError:
        raise InputError(
            "The notice has a brace that is not closed or not opened. Write {{{{ and }}}} for braces that are meant as such."
        ) from None
    return "".join(
        literal + (runs.text(name, places or "", conversion) if name is not None else "")
        for literal, name, places, conversion in pieces
    )


class _Runs:
    """The evaluations that a notice may quote from, made when first asked for."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    @cached_property
    def full(self) -> Trace:
        return self.problem.graph().evaluate()

    @cached_property
    def carried(self) -> Trace:
        return self.problem.graph().evaluate(Hand(self.problem.decimals))

    @cached_property
    def contrast(self) -> Trace:
        other = contrast(self.problem)
        if other is None:
            raise InputError("The notice quotes the contrast, but this problem has none. Add a table [contrast].")
        return other.graph().evaluate()

    def text(self, name: str, places: str, conversion: str | None) -> str:
        """What stands in for one place."""
        found = _PLACE.match(name)
        if found is None or conversion or (places and not places.isdecimal()):
            raise _unreadable(name, places, conversion)
        trace = self._trace(found["run"])
        step = found["step"]
        if step not in trace:
            raise unknown(Message("The notice quotes the step"), step, list(trace))
        if found["run"] == "shape":
            return show_shape(trace[step].shape)
        if found["index"] is None:
            raise _unreadable(name, places, conversion)
        value = _cell(trace[step], step, found["index"])
        return show(value, int(places) if places else self.problem.decimals_of(step))

    def _trace(self, run: str | None) -> Trace:
        if run == "carried":
            return self.carried
        return self.contrast if run == "contrast" else self.full


def _cell(array: FloatArray, step: str, index: str) -> float:
    place = tuple(int(part) - 1 for part in index.split(",") if part.strip())
    if len(place) != array.ndim or not all(0 <= i < size for i, size in zip(place, array.shape, strict=True)):
        raise InputError(
            "The notice quotes {step}[{index}], but {step} is {shape}: rows and columns are counted from 1.",
            step=step,
            index=index,
            shape=show_shape(array.shape),
        )
    return float(array[place])


def _unreadable(name: str, places: str, conversion: str | None) -> InputError:
    written = name + (f"!{conversion}" if conversion else "") + (f":{places}" if places else "")
    return InputError(
        "The notice has a place that cannot be read: “{written}”. Name a cell, like A[1,2], O[1,2]:4, carried.O[1,2] or"
        " contrast.A[1,2], and double the braces that are meant as such.",
        written=written,
    )


def show(value: float, places: int) -> str:
    """A number in a sentence: rounded, with a real minus sign."""
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "−∞" if value < 0 else "∞"
    text = f"{float(round_decimal(value, places)) + 0.0:.{places}f}"
    return text.replace("-", "−")
