"""Sheets made ready to be marked: every answer in its step's shape, and all answers to a step side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from attncli.core.matrix import EXACT, BoolArray, FloatArray, Matrix
from attncli.core.message import N_, Listed, Message
from attncli.core.record import Record
from attncli.marking.judge import Line
from attncli.problems.answers import Answer, Sheet

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

_AS_HIDDEN = N_("{number} stands for −∞ here: its e^x is 0 as well.")
_READ_AS = N_("(written as {name})")


class Entry(Record):
    """An answer to one step.

    Parameters
    ----------
    values, places, blank : as in `Line`, without the axis of the sheets; places None: all that were asked for
    odd : the shape is not the step's
    said : what there is to say before anything is judged
    matrix : the answer as it was typed, where it is a person's
    """

    values: FloatArray
    places: Any
    blank: Any
    eps: float | None
    matrix: Matrix
    odd: bool = False
    said: tuple[Message, ...] = ()


class Paper:
    """One sheet: its readable answers by step, those that are empty, and those that cannot be read."""

    def __init__(self, sheet: Sheet, unknown: Mapping[str, Answer]) -> None:
        self.sheet = sheet
        self.unknown = unknown
        self.entries: dict[str, Entry] = {}
        self.empty: set[str] = set()
        self.unreadable: dict[str, Message] = {}
        self.answers: Mapping[str, Answer] = {}
        #: Whether no readable line holds a program's array, and whether some has not its step's shape.
        self.is_by_person = True
        self.has_odd = False

    def add(self, id: str, entry: Entry) -> None:
        self.entries[id] = entry
        self.is_by_person &= entry.eps is None
        self.has_odd |= entry.odd


class Reader:
    """Makes sheets of one problem ready.

    Parameters
    ----------
    shapes : of every step and input
    full : their right numbers
    places : decimals asked for, by step
    as_written : whether a step's cells are judged at the places they were written with
    rounding : what the problem says its numbers come from; by hand an array's own precision counts
    """

    def __init__(
        self,
        shapes: Mapping[str, tuple[int, ...]],
        full: Mapping[str, Any],
        places: Mapping[str, int],
        as_written: Callable[[str], bool],
        rounding: str,
    ) -> None:
        self.shapes = shapes
        self.places = places
        self.as_written = as_written
        self.coarsest = _COARSEST.get(rounding, _HALF)
        self._entries: dict[tuple[str, Answer, bool], Entry] = {}
        self.hidden = {id: np.isneginf(values) for id, values in full.items() if np.isneginf(values).any()}

    def paper(self, sheet: Sheet, known: Mapping[str, Answer], unknown: Mapping[str, Answer], turned: bool) -> Paper:
        """A sheet made ready; `turned`: every answer is read transposed."""
        paper = Paper(sheet, unknown)
        paper.answers = known
        for id, answer in known.items():
            if answer.error is not None:
                paper.unreadable[id] = answer.error
            elif answer.matrix is None or (answer.matrix.blank is not None and answer.matrix.blank.all()):
                paper.empty.add(id)
            else:
                paper.add(id, self._known_entry(id, answer, turned))
        return paper

    def _known_entry(self, id: str, answer: Answer, turned: bool) -> Entry:
        """An answer made ready; a class writes the same right lines over and over."""
        found = self._entries.get((id, answer, turned))
        if found is None:
            if len(self._entries) >= _MOST_KEPT:
                self._entries.clear()
            found = self._entries[id, answer, turned] = self._entry(id, answer.transposed() if turned else answer)
        return found

    def _entry(self, id: str, answer: Answer) -> Entry:
        matrix = answer.matrix
        assert matrix is not None
        values, places, blank, eps = matrix.values, matrix.decimals, matrix.blank, answer.eps
        expected = self.shapes[id]
        if len(values.shape) == len(expected) - 1 and expected[0] == 1:  # a single head without its axis
            values = values[None]
            places = None if places is None else places[None]
            blank = None if blank is None else blank[None]
        odd = values.shape != expected
        if odd and _may_be(values.shape, expected):
            odd = False
            values = values.reshape(expected)
            places = None if places is None else places.reshape(expected)
            blank = None if blank is None else blank.reshape(expected)
        said: tuple[Message, ...] = () if answer.read_as is None else (Message(_READ_AS, name=answer.read_as),)
        if eps is not None:
            rounded = _rounded_to(values)
            if rounded is not None:
                eps, places = None, np.full(values.shape, rounded)
            else:
                eps = min(eps, self.coarsest)
        asked = self.places[id]
        if places is not None and places.min() >= asked and not self.as_written(id):
            places = None  # nothing is short
        hidden = None if odd else self.hidden.get(id)
        if hidden is not None:
            large = hidden & (values <= _HUGE) & np.isfinite(values)
            if large.any():
                said = (*said, Message(_AS_HIDDEN, number=f"{float(values[large][0]):g}".replace("-", "−")))
                values = np.where(large, -np.inf, values)
        return Entry(values, places, blank, eps, matrix, odd, said)


def precisions(paper: Paper) -> tuple[Message, ...]:
    """Said once: that a program's arrays hold fewer digits than float64, and which ones where it is not all of them."""
    kinds = {id: paper.answers[id].eps for id, entry in paper.entries.items() if entry.eps is not None}
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
        ids = [id for id, kind in kinds.items() if kind == eps]
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
    for id in ids:
        entries = [paper.entries.get(id) for paper in papers]
        rows = [row for row, entry in enumerate(entries) if entry is not None and not entry.odd]
        if rows:
            found[id] = _line(entries, rows, shapes[id])
    return found


def _line(entries: Sequence[Entry | None], rows: Sequence[int], shape: tuple[int, ...]) -> Line:
    count = len(entries)
    values = np.full((count, *shape), np.nan)
    has = np.zeros(count, dtype=np.bool_)
    places, blank = None, None
    eps = None
    for row in rows:
        entry = entries[row]
        assert entry is not None
        values[row] = entry.values
        has[row] = True
        eps = entry.eps
        if entry.places is not None:
            if places is None:
                places = np.full((count, *shape), EXACT)
            places[row] = entry.places
        if entry.blank is not None and entry.blank.any():
            if blank is None:
                blank = np.zeros((count, *shape), dtype=np.bool_)
            blank[row] = entry.blank
    return Line(values, places, blank, has, eps)


def trivial_rows(true: FloatArray, own: FloatArray) -> tuple[BoolArray, BoolArray]:
    """Which sheets' lines make what follows trivial where the true one does not: in some row, in all of them.

    Trivial is a row of zeros, of one number again and again or a single one that is visible, with a single 1 among zeros
    (one-hot); zeros are so beside every true row that is not 0. An infinity where there is none is trivial in some row;
    all of a matrix may be hidden so by a mistake.

    Parameters
    ----------
    true : (…, i, j) the true numbers
    own : (sheets, …, i, j) the learners'
    """
    if own.shape[1:] != true.shape or not own.size:
        none = np.zeros(len(own), dtype=np.bool_)
        return none, none
    if true.ndim < 2:
        true, own = true.reshape(1, -1), own.reshape(len(own), 1, -1)
    found = _is_trivial(own) & ~_is_trivial(true) | _is_zero(own) & ~_is_zero(true)
    some = found | (~np.isfinite(own) & np.isfinite(true)).any(-1)
    # One number for every row may be the same for all of them, and rightly so after a mistake.
    whole = found if own.shape[-1] > 1 else found & (own[..., 0] == 0)
    return some.reshape(len(own), -1).any(1), whole.reshape(len(own), -1).all(1)


def _is_zero(matrix: FloatArray) -> Any:
    """Row by row; a column stands for one row."""
    zero = (matrix == 0) | ~np.isfinite(matrix)
    whole = zero.all((-2, -1))[..., None] if matrix.shape[-1] == 1 else zero.all(-1)
    return np.broadcast_to(whole, matrix.shape[:-1])


def _is_trivial(matrix: FloatArray) -> Any:
    """Row by row; a column stands for one row."""
    lines = matrix.swapaxes(-1, -2) if matrix.shape[-1] == 1 else matrix
    finite = np.isfinite(lines)
    zero = ((lines == 0) | ~finite).all(-1)
    if lines.shape[-1] > 1:
        low = np.where(finite, lines, np.inf).min(-1)
        high = np.where(finite, lines, -np.inf).max(-1)
        zero |= low == high
        zero |= ((lines == 1).sum(-1) == 1) & ((lines == 0).sum(-1) == lines.shape[-1] - 1)
    return np.broadcast_to(zero, matrix.shape[:-1]) if matrix.shape[-1] == 1 else zero
