"""What a learner handed in: TOML, JSON, .npz, CSV, JSON Lines, or words on the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.arithmetic import Value
from attncli.core.limits import MOST_ANSWER_CHARACTERS, MOST_TEXT_BYTES
from attncli.core.matrix import EXACT, Matrix
from attncli.core.message import N_, AttnError, InputError, Listed, Message, placed
from attncli.core.record import Record
from attncli.problems.matrix_text import (
    DEEPEST,
    EMPTY,
    has_decimal_comma,
    parse_lists,
    parse_matrix,
    with_points,
)
from attncli.problems.names import Names
from attncli.problems.problem import Problem
from attncli.problems.reading import brief, decoded, flat, parse_csv, parse_json, parse_toml, read_bounded
from attncli.problems.source import Stdin, array_in, arrays_from_npz, beside, matrix_from_file, matrix_of, real_array

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Answer(Record):
    """What was written for one step: a matrix, or why it cannot be read.

    Parameters
    ----------
    eps : relative precision of the program that wrote it, or None for a person
    read_as : the name it was written under, where that is a symbol and not the step's id
    text : what was typed, where its commas may be decimal commas
    """

    matrix: Matrix | None
    error: Message | None = None
    eps: float | None = None
    read_as: str | None = None
    text: str | None = None

    def transposed(self) -> Answer:
        return self if self.matrix is None else self.changed(matrix=self.matrix.transposed())


def in_digits(values: Value, places: int) -> Answer:
    """Numbers as somebody writes them with so many decimals; an infinite one is written in full."""
    return Answer(Matrix(values, np.where(np.isfinite(values), places, EXACT)))


class Sheet(Record):
    """One learner's answers by step."""

    student: str | None
    answers: Mapping[str, Answer]
    notes: tuple[Message, ...] = ()


def answer(value: object, place: Callable[[str], str] | None = None) -> Answer:
    """One answer, from text, nested lists or a program's array; an unreadable one says why.

    Parameters
    ----------
    place : the path of a file that is named with @, where one may be
    """
    if type(value) is str and len(value) <= _SHORT and "@" not in value:
        return _short(value)
    return _answer(value, place)


#: Characters of an answer that is remembered: a class writes the same lines over and over.
_SHORT = 400


@lru_cache(maxsize=4096)
def _short(text: str) -> Answer:
    found = _answer(text, None)
    if found.matrix is not None:
        for array in (found.matrix.values, found.matrix.decimals, found.matrix.blank):
            if array is not None:
                array.flags.writeable = False  # it is shared
    return found


def _answer(value: object, place: Callable[[str], str] | None) -> Answer:
    text = value if isinstance(value, str) and has_decimal_comma(value[:MOST_ANSWER_CHARACTERS]) else None
    try:
        return _read(value, place).changed(text=text)
    except AttnError as error:
        return Answer(None, error.message, text=text)
    except (RecursionError, ValueError, OverflowError):
        return Answer(None, Message("This cannot be read as a matrix."), text=text)


def _read(value: object, place: Callable[[str], str] | None) -> Answer:
    if value is None or (isinstance(value, str) and not value.strip()):
        return Answer(Matrix(np.full((1, 1), np.nan), blank=np.ones((1, 1), dtype=np.bool_)))
    if isinstance(value, str) and value.lstrip()[:1] == "@":
        return _from_file(value.strip()[1:], place)
    if isinstance(value, str):
        if len(value) > MOST_ANSWER_CHARACTERS:
            raise InputError(
                "The answer has {count} characters; the limit is {limit}.",
                count=len(value),
                limit=MOST_ANSWER_CHARACTERS,
            )
        return Answer(parse_matrix(value, blanks=True))
    if isinstance(value, np.ndarray):
        return _from_array(value)
    if isinstance(value, (list, tuple)):
        return Answer(parse_lists(_unpacked(value), blanks=True))
    return Answer(matrix_of(value))


def _unpacked(value: Sequence[Any]) -> Sequence[Any]:
    """Lists without outer ones that hold a single other: a batch of one has an axis too many."""
    inside, depth = value, 0
    while isinstance(inside, (list, tuple)) and inside and depth < _MOST_AXES:
        inside, depth = inside[0], depth + 1
    for _ in range(depth - DEEPEST):
        if len(value) == 1:
            value = value[0]
    return value


#: Axes of nested lists that are looked into.
_MOST_AXES = 8


def _from_file(name: str, place: Callable[[str], str] | None) -> Answer:
    """The answer in a file: an array is a program's, judged at its own precision."""
    if place is None:
        raise InputError(
            "“@{name}”: when a class is marked, a sheet cannot point to a file. Write the numbers.", name=name[:60]
        )
    path, array = array_in(place(name))
    if array is None:
        return Answer(matrix_from_file(place(name), blanks=True))
    with placed(path):
        real_array(array)
    return _from_array(array)


#: Keys of a sheet that are no steps.
RESERVED = ("schema", "student", "problem", "answers")
_EXAMPLE = '{"student": "s1", "A": "0.330 0.670"}'


def sheet(data: object, place: Callable[[str], str] | None = None) -> Sheet:
    """A sheet from {"student": …, step: matrix, …}; the steps may also stand in a table of their own, answers.

    Nothing at all is a sheet with every step left blank.
    """
    if not isinstance(data, dict):
        raise InputError(
            "A sheet names its steps, but this is “{value}”. Write {example}.", value=brief(data), example=_EXAMPLE
        )
    student = data.get("student")
    given = data.get("answers")
    if "answers" not in data:
        given = {name: value for name, value in data.items() if name not in RESERVED}
    elif not isinstance(given, dict):
        raise InputError(
            "answers: this is “{value}”, but the steps belong here. Write {example}.",
            value=brief(given),
            example=_EXAMPLE,
        )
    return Sheet(
        None if student is None else str(student),
        {name: answer(value, place) for name, value in flat(given)},
        _outside(data) if "answers" in data else (),
    )


#: Names of keys that a remark lists.
_MOST_OUTSIDE = 5


def _outside(data: Mapping[object, object]) -> tuple[Message, ...]:
    """A remark on what stands beside the table of answers: it may have been meant as one."""
    names = [str(name)[:40] for name in data if name not in RESERVED]
    if not names:
        return ()
    text = N_("Outside the table answers, and not read as an answer: {names}.")
    return (Message(text, names=Listed.first(names, _MOST_OUTSIDE)),)


def sheet_data(text: str, *, json: bool) -> Any:
    """What stands in the text of a sheet, TOML or JSON, numbers with their text; nothing is an empty table."""
    if not text.strip():
        return {}
    if json or text.lstrip()[:1] == "{":
        return parse_json(text)
    return parse_toml(text)


def sheet_from_arrays(arrays: Mapping[str, NDArray[Any] | Message], student: str | None = None) -> Sheet:
    """A sheet from a program's arrays: judged at their own precision, not at decimals."""
    return Sheet(student, {name: _from_array(array) for name, array in arrays.items()})


def _from_array(array: NDArray[Any] | Message) -> Answer:
    if isinstance(array, Message):
        return Answer(None, array)
    values = np.asarray(array, dtype=np.float64)
    if not values.size:
        return Answer(None, Message(EMPTY))
    eps = float(np.finfo(array.dtype if array.dtype.kind == "f" else np.float64).eps)
    return Answer(Matrix(values if values.ndim else values.reshape(1, 1)), eps=eps)


def renamed(given: Sheet, names: Mapping[str, str]) -> Sheet:
    """The sheet with other names for some of its answers, as far as it has them."""
    if not names:
        return given
    return given.changed(answers={names.get(name, name): value for name, value in given.answers.items()})


def with_decimal_points(text: str) -> Matrix | None:
    """What was typed with points for its decimal commas, if that can be read."""
    return _answer(with_points(text), None).matrix


# A sheet as `check` is given one: in a file, and in words.


def file_and_answers(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """The file of answers among these words, and the answers written out: STEP=MATRIX."""
    files = [word for word in words if "=" not in word or Path(word).suffix.lower() in _FILES]
    if len(files) > 1:
        raise InputError(
            "“{first}” and “{second}” are two files of answers. Mark one sheet here, and a class with: attncli grade",
            first=files[0][:60],
            second=files[1][:60],
        )
    return (files[0] if files else None), [word for word in words if word not in files]


_FILES = frozenset({".toml", ".json", ".npz", ".csv", ".jsonl"})


def sheet_of(name: str | None, words: Sequence[str], stdin: Stdin) -> Sheet:
    """The sheet in a file, with the answers that are written out put over it."""
    given = Sheet(None, {}) if name is None else _sheet_in(name, stdin)
    own: dict[str, Answer] = {}
    for text in words:
        step_id, equals, value = text.partition("=")
        if not equals or not step_id.strip():
            raise InputError(
                "“{text}” has no name. Write STEP=MATRIX, like {example}.", text=text[:40], example='A="0.330 0.670"'
            )
        if step_id.strip() in own:
            raise InputError("{id} is answered twice. Keep one.", id=step_id.strip()[:40])
        own[step_id.strip()] = answer(value, str)
    if name is None and not own:
        raise InputError(
            "There is nothing to mark. Write answers, like {example}, or give a file of them.",
            example='A="0.330 0.670"',
        )
    return given.changed(answers={**given.answers, **own})


def _sheet_in(name: str, stdin: Stdin) -> Sheet:
    where: Message | str = Message("standard input") if name == "-" else name
    ending = Path(name).suffix.lower()

    def place(path: str) -> str:
        return beside(path, None if name == "-" else Path(name).parent)

    with placed(where):
        if ending == ".npz":
            return sheet_from_arrays(arrays_from_npz(name))
        text = decoded(stdin() if name == "-" else read_bounded(name, MOST_TEXT_BYTES))
        if ending == ".csv":
            return _only(name, list(_rows(text, place)))
        if ending == ".jsonl":
            return _only(name, [sheet(parse_json(line), place) for line in text.split("\n") if line.strip()])
        return sheet(sheet_data(text, json=ending == ".json"), place)


def _only(name: str, sheets: Sequence[Sheet]) -> Sheet:
    if len(sheets) > 1:
        raise InputError(
            "holds {count} sheets. Mark a class with: attncli grade PROBLEM {file}", count=len(sheets), file=name
        )
    return sheets[0] if sheets else Sheet(None, {})


def _rows(text: str, place: Callable[[str], str]) -> Iterator[Sheet]:
    """The rows of a CSV: the column student, and one column a step."""
    header, *rows = parse_csv(text) or [[]]
    for row in rows:
        notes = () if len(row) <= len(header) else (Message("This row has more cells than there are columns."),)
        yield sheet(row_data(column_names(header), row), place).changed(notes=notes)


def column_names(header: Sequence[str]) -> tuple[str, ...]:
    """The names of a CSV's columns: student in whatever case, and steps."""
    return tuple("student" if name.strip().casefold() == "student" else name.strip() for name in header)


def row_data(header: Sequence[str], row: Sequence[str]) -> dict[str, Any]:
    """What stands in a row of a CSV, by the names of JSON and TOML."""
    cells = dict(zip(header, row, strict=False))
    claims = {key: cells.pop(key, None) for key in ("student", "problem")}
    return {**claims, "answers": {name: text for name, text in cells.items() if name and text.strip()}}


# Names.


def mapping(words: Sequence[str], problem: Problem) -> dict[str, str]:
    """What --map says: from the names of a dump to step ids."""
    found: dict[str, str] = {}
    names = Names(problem.graph(), problem.points())
    for text in [part for word in words for part in word.replace("，", ",").split(",") if part.strip()]:
        name, equals, to = (part.strip() for part in text.partition("="))
        if not equals or not name or not to:
            raise InputError(
                "--map: “{text}” is not FROM=STEP. Write --map {example}.",
                text=text[:40],
                example='"attn_probs=A,ctx=O"',
            )
        step_id = names.resolve(to, Message("--map: the step"))
        if name in found or step_id in found.values():
            raise InputError(
                "--map: “{name}” is named twice. Keep one.", name=(name if name in found else step_id)[:40]
            )
        found[name] = step_id
    return found


def mapped(given: Sheet, names: Mapping[str, str]) -> Sheet:
    """The sheet under the names of the steps; a name that it lacks, or a step that it has under both, is refused."""
    has = list(given.answers)
    for name, step_id in names.items():
        if name not in given.answers:
            raise InputError(
                "--map: there is no “{name}” on this sheet. It has: {names}.",
                name=name[:40],
                names=Listed.first((one[:40] for one in has), _MOST_NAMES) if has else "–",
            )
        if step_id in given.answers and step_id != name and step_id not in names:
            raise InputError(
                "--map: “{name}” is mapped to {id}, but the sheet has {id} as well. Keep one.",
                name=name[:40],
                id=step_id,
            )
    return renamed(given, names)


#: Names of arrays that an error lists.
_MOST_NAMES = 40
