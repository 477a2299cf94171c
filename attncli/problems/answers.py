"""What a learner handed in: TOML, JSON, .npz, CSV, JSON Lines, or words on the command line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from attncli.matrix import EXACT, Entry, Matrix
from attncli.message import N_, AttnError, InputError, Message
from attncli.problems.settings import matrix_of
from attncli.problems.text import parse_matrix
from attncli.problems.written import Written, written
from attncli.record import Record

#: Characters an answer to one step may have; a sheet is a page, not a library.
MOST_CHARACTERS = 200_000


class Answer(Record):
    """What was written for one step: a matrix, or why it cannot be read.

    Parameters
    ----------
    eps : relative precision of the program that wrote it, or None for a person
    read_as : the name it was written under, where that is a symbol and not the step's id
    """

    matrix: Matrix | None
    error: Message | None = None
    eps: float | None = None
    read_as: str | None = None

    def transposed(self) -> Answer:
        return self if self.matrix is None else self.changed(matrix=self.matrix.transposed())

    def written(self) -> Written:
        """The numbers with what they stand for."""
        assert self.matrix is not None
        return written(self.matrix, self.eps)


class Sheet(Record):
    """One learner's answers by step."""

    student: str | None
    answers: Mapping[str, Answer]
    notes: tuple[Message, ...] = ()


def answer(value: Any) -> Answer:
    """One answer, from text or nested lists; an unreadable one says why."""
    try:
        if isinstance(value, str):
            if len(value) > MOST_CHARACTERS:
                raise InputError(
                    "The answer has {count} characters; the limit is {limit}.", count=len(value), limit=MOST_CHARACTERS
                )
            if not value.strip():
                return Answer(_blank())
            if len(value) <= _SHORT:
                return _short(value)
            return Answer(parse_matrix(value, blanks=True))
        if value is None:
            return Answer(_blank())
        return Answer(matrix_of([value] if isinstance(value, (int, float)) and not isinstance(value, bool) else value))
    except AttnError as error:
        return Answer(None, error.message)
    except (RecursionError, ValueError, OverflowError):
        return Answer(None, Message(N_("This cannot be read as a matrix.")))


#: Characters of an answer that is remembered: a class writes the same lines over and over.
_SHORT = 400


@lru_cache(maxsize=4096)
def _short(text: str) -> Answer:
    matrix = _plain(text) or parse_matrix(text, blanks=True)
    for array in (matrix.values, matrix.decimals, matrix.blank):
        if array is not None:
            array.flags.writeable = False  # it is shared
    return Answer(matrix)


#: Plain numbers, as most sheets are written. So short that none is infinite.
_PLAIN = re.compile(r" *(?:-?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|inf)(?: +| *; *| *$))+")


def _plain(text: str) -> Matrix | None:
    """The matrix in a text like 0.330 -inf; 1 -2, read many times as fast as by the whole grammar; else None."""
    if _PLAIN.fullmatch(text) is None:
        return None
    rows = [row.split() for row in text.split(";")]
    wide = len(rows[0])
    if not wide or any(len(row) != wide for row in rows):
        return None
    words = [word for row in rows for word in row]
    values = np.array([float(word) for word in words]).reshape(-1, wide)
    places = np.array([_places(word) for word in words]).reshape(-1, wide)
    return Matrix(values, places, tuple([_INFINITE.get(word) or ("num", word) for word in words]))


_INFINITE: dict[str, Entry] = {"inf": ("inf",), "-inf": ("neg", ("inf",))}


def _places(word: str) -> int:
    if word[-1] == "f":
        return EXACT
    point = word.find(".")
    return 0 if point < 0 else len(word) - point - 1


def _blank() -> Matrix:
    return Matrix(np.full((1, 1), np.nan), blank=np.ones((1, 1), dtype=np.bool_))


def sheet(data: Any) -> Sheet:
    """A sheet from {"student": …, "answers": {step: matrix}}.

    Raises
    ------
    InputError
        It has not that form.
    """
    if not isinstance(data, dict):
        raise InputError("A sheet is a table with the key answers, but this is a {kind}.", kind=type(data).__name__)
    given = data.get("answers")
    if not isinstance(given, dict):
        raise InputError(
            "The key answers is missing. Write {example}.", example='{"student": "s1", "answers": {"A": "0.330 0.670"}}'
        )
    student = data.get("student")
    return Sheet(None if student is None else str(student), {str(id): answer(value) for id, value in given.items()})


def sheet_from_arrays(arrays: Mapping[str, Any], student: str | None = None) -> Sheet:
    """A sheet from a program's arrays: judged at their own precision, not at decimals."""
    answers = {}
    for name, array in arrays.items():
        if isinstance(array, Message):
            answers[name] = Answer(None, array)
            continue
        values = np.asarray(array, dtype=np.float64)
        kind = np.asarray(array).dtype
        eps = float(np.finfo(kind).eps) if kind.kind == "f" else float(np.finfo(np.float64).eps)
        answers[name] = Answer(Matrix(values if values.ndim else values.reshape(1, 1)), eps=eps)
    return Sheet(student, answers)


def sheets_from_csv(lines: Iterable[str]) -> Iterator[Sheet]:
    """A row a student: the column student, and one column a step."""
    reader = csv.reader(lines)
    header = next(reader, None)
    if not header:
        raise InputError("The CSV is empty. Its first line names the columns: student, and a column for every step.")
    names = [name.strip().lstrip("\ufeff") for name in header]
    for row in reader:
        if not row:
            continue
        cells = dict(zip(names, row, strict=False))
        student = cells.pop("student", None)
        answers = {name: answer(text) for name, text in cells.items() if name and text.strip()}
        notes = () if len(row) <= len(names) else (Message(N_("This row has more cells than there are columns.")),)
        yield Sheet(student, answers, notes)


def csv_text(text: str) -> list[Sheet]:
    """All sheets of a CSV text."""
    return list(sheets_from_csv(io.StringIO(text)))
