"""Sheets made ready to be marked: every answer under its step's name and in its shape, and all answers to a step side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.core.axes import show_shape
from attncli.core.limits import MOST_UNKNOWN_NAMES
from attncli.core.matrix import EXACT, BoolArray, FloatArray, Matrix
from attncli.core.message import N_, InputError, Listed, Message
from attncli.core.record import Record
from attncli.marking.judge import Line
from attncli.problems.answers import Answer, Sheet, with_decimal_points
from attncli.problems.names import Names
from attncli.problems.problem import Problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: A number so far below every visible one is −∞ written as a number (−1e9 and its like).
_HUGE = -1e3
#: Places that a program's array may have been rounded to on purpose.
_MOST_ROUNDED = 6
#: Answers that are kept made ready.
_MOST_KEPT = 4096
_HALF = float(np.finfo(np.float16).eps)
_SINGLE = float(np.finfo(np.float32).eps)

#: The coarsest precision an array may have where a problem says what its numbers come from.
_COARSEST = {"printed": _SINGLE, "float32": _SINGLE, "float16": _HALF}

_AS_HIDDEN = N_("{number} is taken as −∞ here: its e^x is 0 too.")
_READ_AS = N_("(written as {name})")
_TABLE = N_("This is a table of names, not a matrix. Write the rows of the matrix one below the other.")


class PaperEntry(Record):
    """An answer to one step.

    Parameters
    ----------
    values, places, blank, eps : as in `Line`, without the axis of the sheets
    odd : the shape is not the step's
    said : what there is to say before anything is judged
    matrix : the answer as it was typed, where it is a person's
    """

    values: FloatArray
    places: NDArray[np.int_] | None
    blank: BoolArray | None
    eps: float | None
    matrix: Matrix
    odd: bool
    said: tuple[Message, ...]


class Paper:
    """One sheet, read with tokens as rows or as columns.

    Parameters
    ----------
    entries : the answers that can be read, by step; empty ones are left out
    unreadable : by step, why an answer cannot be read
    answers : what was written, by step
    unknown : names that mean no step, or one that is answered already
    """

    def __init__(self, sheet: Sheet, layout: str) -> None:
        self.sheet = sheet
        self.layout = layout
        self.entries: dict[str, PaperEntry] = {}
        self.unreadable: dict[str, Message] = {}
        self.answers: dict[str, Answer] = {}
        self.unknown: list[str] = []
        self.notes = [*sheet.notes]

    @property
    def is_by_person(self) -> bool:
        """Whether no readable line holds a program's array."""
        return all(entry.eps is None for entry in self.entries.values())

    @property
    def has_odd(self) -> bool:
        """Whether some line has not its step's shape."""
        return any(entry.odd for entry in self.entries.values())


class Reader:
    """Makes sheets of one problem ready.

    Parameters
    ----------
    full : the right numbers of every step and input
    """

    def __init__(self, problem: Problem, names: Names, full: Mapping[str, FloatArray]) -> None:
        self.problem = problem
        self.names = names
        self.shapes = {step_id: values.shape for step_id, values in full.items()}
        self.coarsest = _COARSEST.get(problem.marking.rounding, _HALF)
        self.hidden = {step_id: np.isneginf(values) for step_id, values in full.items() if np.isneginf(values).any()}
        self._read: dict[tuple[str, str, Answer, str], tuple[PaperEntry | Message | None, Message | None]] = {}

    def paper(self, sheet: Sheet, layout: str = "rows") -> Paper:
        """A sheet made ready.

        Parameters
        ----------
        layout : "rows" or "columns": which way tokens run on the sheet
        """
        paper = Paper(sheet, layout)
        for name, answer in sheet.answers.items():
            step_id = self.names.find(name)
            if step_id is None or step_id in paper.answers or (step_id != name and step_id in sheet.answers):
                paper.unknown.append(name)
            else:
                self._take(paper, step_id, name, answer)
        if paper.unknown:
            self._check(paper.unknown)
            self._take_tables(paper)
        return paper

    def _check(self, unknown: Sequence[str]) -> None:
        strange = [name for name in unknown if self.names.find(name) is None]
        if len(strange) > MOST_UNKNOWN_NAMES:
            raise InputError(
                "This sheet has {count} names that are no steps of the exercise, like “{name}”; the limit is {limit}. Leave them out.",
                count=f"{len(strange):,}",
                name=strange[0][:40],
                limit=MOST_UNKNOWN_NAMES,
            )

    def _take_tables(self, paper: Paper) -> None:
        """A table under the name of a step: nothing in it is a step of its own."""
        for name in [name for name in paper.unknown if "." in name]:
            step_id = self.names.find(name.rpartition(".")[0])
            if step_id is not None and self.names.find(name) is None:
                if step_id not in paper.answers:
                    self._take(paper, step_id, step_id, Answer(None, Message(_TABLE)))
                paper.unknown.remove(name)

    def _take(self, paper: Paper, step_id: str, name: str, answer: Answer) -> None:
        paper.answers[step_id] = answer
        key = step_id, name, answer, paper.layout
        if key not in self._read:  # a class writes the same right lines over and over
            if len(self._read) >= _MOST_KEPT:
                self._read.clear()
            fitting, note = in_rows(answer, name, self.shapes[step_id], paper.layout)
            self._read[key] = self._entry(step_id, name, fitting), note
        entry, note = self._read[key]
        if isinstance(entry, PaperEntry):
            paper.entries[step_id] = entry
        elif entry is not None:
            paper.unreadable[step_id] = entry
        if note is not None:
            paper.notes.append(note)

    def _entry(self, step_id: str, name: str, answer: Answer) -> PaperEntry | Message | None:
        """An answer made ready, or why it cannot be read; None where it is empty."""
        matrix = answer.matrix
        if answer.error is not None:
            return answer.error
        if matrix is None or (matrix.blank is not None and matrix.blank.all()):
            return None
        expected, asked = self.shapes[step_id], self.problem.decimals_of(step_id)
        shape = (1, *matrix.shape) if _is_single_head(matrix.shape, expected) else matrix.shape
        odd = shape != expected and not _may_be(shape, expected)
        fitting = matrix.reshaped(shape if odd else expected)
        values, places, eps = fitting.values, fitting.decimals, answer.eps
        said: tuple[Message, ...] = () if name == step_id else (Message(_READ_AS, name=name).of("name"),)
        if eps is not None:
            rounded = _rounded_to(values)
            if rounded is not None:
                eps, places = None, np.full(values.shape, rounded)
            else:
                eps = min(eps, self.coarsest)
        if places is not None and places.min() >= asked and not self.problem.is_as_written(step_id):
            places = None  # nothing is short
        hidden = None if odd else self.hidden.get(step_id)
        if hidden is not None:
            large = hidden & (values <= _HUGE) & np.isfinite(values)
            if large.any():
                said = (*said, Message(_AS_HIDDEN, number=f"{float(values[large][0]):g}".replace("-", "−")))
                values = np.where(large, -np.inf, values)
        blank = None if fitting.blank is None or not fitting.blank.any() else fitting.blank
        return PaperEntry(values, places, blank, eps, matrix, odd, said)


def in_rows(answer: Answer, name: str, shape: tuple[int, ...], layout: str) -> tuple[Answer, Message | None]:
    """An answer with tokens as rows, in the shape of its step as far as it is only written otherwise; and a word on that.

    Leading or trailing axes of length 1 that a step does not have (a batch of one) are left out. Commas between digits are
    decimal commas where the answer has the shape of its step in that way only.

    Parameters
    ----------
    name : the name that it stands under
    shape : of its step
    layout : which way tokens run on the sheet
    """
    has_columns = layout == "columns"
    found, note = _in_shape(answer, name, (*shape[:-2], *reversed(shape[-2:])) if has_columns else shape)
    return found.transposed() if has_columns else found, note


def _in_shape(answer: Answer, name: str, shape: tuple[int, ...]) -> tuple[Answer, Message | None]:
    matrix = answer.matrix
    if answer.text is None and (matrix is None or matrix.values.ndim <= _PAGE):
        return answer, None  # a row for a list is how one writes a list
    if matrix is not None and matrix.shape == shape:
        return answer, None
    if answer.text is not None:
        with_points = with_decimal_points(answer.text)
        if with_points is not None and with_points.shape in (shape, (1, *shape)):
            note = Message("{name}: its commas are read as decimal commas.", name=name)
            return answer.changed(matrix=with_points.reshaped(shape), error=None), note
    if matrix is None or not _has_more_axes(matrix.shape, shape):
        return answer, None
    note = Message(
        "{name}: {written} read as {shape}; the axis of length 1 is left out.",
        name=name,
        written=show_shape(matrix.shape),
        shape=show_shape(shape),
    )
    return answer.changed(matrix=matrix.reshaped(shape)), note


#: Axes that a page has: a matrix of so few is written as it is meant.
_PAGE = 2


def _has_more_axes(written: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether the written shape is this one with axes of length 1 before or after it."""
    more = len(written) - len(shape)
    return more > 0 and any(
        written[before : before + len(shape)] == shape
        and set(written[:before]) | set(written[before + len(shape) :]) == {1}
        for before in range(more + 1)
    )


def _is_single_head(written: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether this is a single head without its axis."""
    return len(written) == len(shape) - 1 and shape[0] == 1


def precisions(paper: Paper) -> tuple[Message, ...]:
    """Said once: that a program's arrays hold fewer digits than float64, and which ones where it is not all of them."""
    if paper.is_by_person:
        return ()
    kinds = {step_id: paper.answers[step_id].eps for step_id, entry in paper.entries.items() if entry.eps is not None}
    said = []
    for eps, all_of_them, some in (
        (
            _HALF,
            N_("These numbers are float16: about three digits."),
            N_("Float16, which holds about three digits: {steps}."),
        ),
        (
            _SINGLE,
            N_("These numbers are float32: about seven digits."),
            N_("Float32, which holds about seven digits: {steps}."),
        ),
    ):
        ids = [step_id for step_id, kind in kinds.items() if kind == eps]
        if ids:
            said.append(Message(all_of_them) if len(ids) == len(kinds) else Message(some, steps=Listed(ids)))
    return tuple(said)


def _may_be(shape: Sequence[int], expected: Sequence[int]) -> bool:
    """Whether a matrix of this shape may stand for the expected one: a vector either way, a batch or a head of one."""
    flat = [size for size in expected if size != 1], [size for size in shape if size != 1]
    if len(flat[0]) <= 1:
        return flat[0] == flat[1]
    return flat[0] == flat[1] and math.prod(shape) == math.prod(expected) and abs(len(shape) - len(expected)) == 1


def _rounded_to(values: FloatArray) -> int | None:
    """The places that an array was rounded to before it was saved; None where it holds all its digits."""
    finite = values[np.isfinite(values)]
    for places in range(_MOST_ROUNDED + 1):
        if np.allclose(finite, np.round(finite, places), rtol=1e-15, atol=1e-15 if places else 0.0):
            return places
    return None


def stacked(papers: Sequence[Paper], ids: Sequence[str], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Line]:
    """The answers of all papers by step, side by side, in the order of `ids`; those of an odd shape are left out."""
    found: dict[str, Line] = {}
    for step_id in ids:
        entries = {row: paper.entries[step_id] for row, paper in enumerate(papers) if step_id in paper.entries}
        entries = {row: entry for row, entry in entries.items() if not entry.odd}
        if entries:
            found[step_id] = line_of(entries, (len(papers), *shapes[step_id]))
    return found


def line_of(entries: Mapping[int, PaperEntry], shape: tuple[int, ...]) -> Line:
    """What some sheets, by their number, have written for one step; `shape` has the axis of all sheets first."""
    has = np.zeros(shape[0], dtype=np.bool_)
    has[list(entries)] = True
    values = _filled(shape, np.nan, {row: entry.values for row, entry in entries.items()})
    places = _filled(shape, EXACT, {row: entry.places for row, entry in entries.items() if entry.places is not None})
    blank = _filled(shape, np.False_, {row: entry.blank for row, entry in entries.items() if entry.blank is not None})
    return Line(values, has, places, blank, list(entries.values())[-1].eps)


def _filled(shape: tuple[int, ...], empty: float | np.bool_, parts: Mapping[int, NDArray[Any]]) -> Any:
    """An array that is empty but for these rows; one number for all where there is none."""
    if not parts:
        return empty
    found = np.full(shape, empty)
    for row, part in parts.items():
        found[row] = part
    return found
