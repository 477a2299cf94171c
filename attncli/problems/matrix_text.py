"""Matrices from text and from what files hold, every number with what was written of it, and back to text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from attncli.arithmetic.expression import KEYBOARD, EntryError, entries_in, parse_entry, shown
from attncli.core.limits import MOST_TEXT_BYTES
from attncli.core.matrix import EXACT, Expression, FloatArray, Matrix
from attncli.core.message import N_, AttnError, InputError, Message, ShapeError, counted
from attncli.problems.notation import DEEPEST, EMPTY, TOO_DEEP, Nested, as_rows, depth_of, nested_words, place_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

#: An entry: its value, the decimals it was written with, and the expression.
Entry: TypeAlias = tuple[float, int, Expression]
BLANK: Entry = (float("nan"), EXACT, ("num", "?"))


def parse_matrix(text: str, *, blanks: bool = False) -> Matrix:
    """The matrix a text stands for: rows × columns, or heads × rows × columns.

    A comma separates entries: "1,2" are two, and so are the four of "0,330 0,670". Whether it is a decimal comma is seen
    only where the shape is known, in answers (`marking/papers.py`), and said where other shapes would fit; LaTeX's {,} is one wherever it stands.

    Parameters
    ----------
    blanks : accept “?” and “_” as cells that were left open

    Raises
    ------
    InputError
        Says which row and column, what stands there, and what to write.
    """
    plain = _plain(text) if len(text) <= _LONG else None
    if plain is not None:
        return plain
    try:
        matrix = by_grammar(text, blanks=blanks)
    except ShapeError as error:
        if not has_decimal_comma(text):
            raise
        try:
            by_grammar(with_points(text), blanks=blanks)
        except InputError:
            raise error from None
        raise comma_said(error, text) from None
    return matrix.changed(text=text) if len(text) <= _SHORT and has_decimal_comma(text) else matrix


def by_grammar(text: str, *, blanks: bool) -> Matrix:
    """The same, by the whole grammar; without a word on commas."""
    if len(text) > MOST_TEXT_BYTES:
        raise InputError(
            "This text has {count} characters; the limit is {limit}.", count=len(text), limit=MOST_TEXT_BYTES
        )
    return _matrix_of(nested_words(text), parse_entry, blanks)


#: Characters of a text that is kept for what its commas may mean, and of one that is read by the short way.
_SHORT, _LONG = 400, 1_000_000
#: Plain numbers, as most sheets are written. So short that none is infinite.
_PLAIN = re.compile(r" *(?:-?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|inf)(?: *; *| +| *$))++")


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


_INFINITE: dict[str, Expression] = {"inf": ("inf",), "-inf": ("neg", ("inf",))}


def _places(word: str) -> int:
    if word[-1] == "f":
        return EXACT
    point = word.find(".")
    return 0 if point < 0 else len(word) - point - 1


# --- Decimal commas ---------------------------------------------------------------------------------------------------

#: A comma with a digit on both sides, which may be a decimal comma.
_DECIMAL_COMMA = re.compile(r"(?<=[0-9０-９])[,，](?=[0-9０-９])")
_TWO_NUMBERS = re.compile(r"([0-9.]+),([0-9]+)")


def has_decimal_comma(text: str) -> bool:
    """Whether one of its commas may be a decimal comma."""
    return ("," in text or "，" in text) and _DECIMAL_COMMA.search(text) is not None


def with_points(text: str) -> str:
    """The text with points for what may be decimal commas."""
    return _DECIMAL_COMMA.sub(".", text)


def comma_said(error: AttnError, text: str) -> ShapeError:
    """An error of shapes that decimal commas would not have led to: it says how commas are read. They are never guessed at."""
    found = _TWO_NUMBERS.search(text.translate(KEYBOARD))
    assert found is not None
    return ShapeError(
        "{what} A comma separates entries, so “{written}” was read as {first} and {second}. If it was meant as one number, write {number}.",
        what=error.message,
        written=found[0],
        first=found[1],
        second=found[2],
        number=f"{found[1]}.{found[2]}",
    )


class Literal(float):
    """A number of a file with its text: 0.50 keeps its two decimals, 1e400 is not taken for infinity."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Literal:
        number = super().__new__(cls, text)
        number.text = text.replace("_", "")
        return number


def parse_number(text: str) -> Entry:
    """One number.

    Raises
    ------
    InputError
        It is none, or there are several.
    """
    words = entries_in(text.translate(KEYBOARD))
    if len(words) != 1:
        raise EntryError("“{value}” is not one number. Write a number, like 0.5.", value=shown(text))
    return parse_entry(words[0])


def parse_lists(value: Nested, *, blanks: bool = False) -> Matrix:
    """The matrix in nested lists of numbers and entry texts, as TOML, JSON and Python have them.

    Raises
    ------
    InputError
        Says which row and column, what stands there, and what to write.
    """
    return _matrix_of(value, number_of, blanks)


def _matrix_of(nested: Nested, read: Callable[[Any], Entry], blanks: bool) -> Matrix:
    """The matrix in nested lists of entries, each read by `read`."""
    cells = _cells(nested, (), read, blanks)
    return _matrix(with_blank_rows(cells) if blanks else cells)


def _cells(value: object, at: tuple[int, ...], read: Callable[[Any], Entry], blanks: bool) -> Any:
    if isinstance(value, (list, tuple)):
        if len(at) >= DEEPEST:
            raise InputError(TOO_DEEP, deepest=DEEPEST)
        cells = [_cells(part, (*at, number), read, blanks) for number, part in enumerate(value, start=1)]
        if any(isinstance(cell, list) for cell in cells):
            cells = [[BLANK] if cell is BLANK else cell for cell in cells]
        if len({isinstance(cell, list) for cell in cells}) > 1:
            raise InputError(
                "Numbers and bracketed rows are mixed. Put every row in brackets, [[1,2],[3,4]], or none: “1 2; 3 4”."
            )
        return cells
    try:
        if not isinstance(value, str) or value not in ("?", "_"):
            return read(value)
        if blanks:
            return BLANK
        raise EntryError("“{word}” marks a cell left open, which only an answer may have. Write a number.", word=value)
    except EntryError as error:
        raise error.at(place_of(at)) from None


def number_of(value: object) -> Entry:
    """One number from a number or its text.

    Raises
    ------
    EntryError
        It is none.
    """
    if isinstance(value, (bool, np.bool_)) or value is None:
        raise EntryError(
            "“{value}” was given where a number is expected. Write a number.",
            value="null" if value is None else str(value).lower(),
        )
    if isinstance(value, str):
        return parse_number(value)
    if isinstance(value, Literal):
        return parse_entry(value.text)
    if isinstance(value, (int, np.integer)):
        if abs(int(value)) >= 10**400:  # Python does not write the longest ones out
            raise EntryError(
                "a whole number of more than 400 digits is too large: numbers here go up to about 1.8e308. Write inf or -inf if you mean infinity."
            )
        return parse_entry(str(value))
    if isinstance(value, (float, np.floating)):
        return parse_entry(repr(float(value)))
    raise EntryError("“{value}” is not a number. Write a number, like 0.5.", value=brief(value))


def brief(value: object) -> str:
    """A value for a message, as a file writes it: short, whatever it is. Only who calls from Python can give other objects."""
    try:
        if value is None or isinstance(value, (bool, list, dict)):
            return shown(json.dumps(value, ensure_ascii=False, default=str))
        return shown(re.sub(r" at 0x[0-9a-f]+", "", str(value)))
    except (ValueError, RecursionError):  # an integer of more digits than Python writes out, or lists without end
        return "…"


def with_blank_rows(nested: Nested) -> Nested:
    """The same with every row or head that is only left blank (“?” alone in its place) as wide as the others."""
    if not any(isinstance(part, list) for part in nested):
        return nested
    if not any(isinstance(row, list) for part in nested if isinstance(part, list) for row in part):
        return _filled_up(nested, 0, _widest(nested))
    heads = [head if isinstance(head, list) else [head] for head in nested]
    count = max(len(head) for head in heads)
    wide = max(_widest(head) for head in heads)
    return [_filled_up(head, count, wide) for head in heads]


def _widest(rows: Nested) -> int:
    return max((len(row) if isinstance(row, list) else 1 for row in rows), default=1)


def _filled_up(rows: Nested, count: int, wide: int) -> Nested:
    """Rows of which those that are one blank are `wide`; a head that is one blank has `count` of them."""
    if count and _is_blank(rows):
        return [[BLANK] * wide] * count
    return [[BLANK] * wide if _is_blank(row) else row for row in rows]


def _is_blank(part: object) -> bool:
    """Whether this is one blank and nothing else, in however many brackets."""
    while isinstance(part, list) and len(part) == 1:
        part = part[0]
    return part is BLANK


def _matrix(nested: Nested) -> Matrix:
    if not nested or nested == [[]]:
        raise InputError(EMPTY)
    rows = as_rows(nested) if depth_of(nested) < 3 else nested
    heads = rows if depth_of(rows) == 3 else [rows]
    width: int | None = None
    cells: list[Entry] = []
    for number, head in enumerate(heads, start=1):
        head = head if isinstance(head, list) else [head]
        if not head or (len(heads) > 1 and head == [[]]):
            raise InputError("Block {block} is empty. Write its rows, or take the “|” away.", block=number)
        if len(head) != len(heads[0]):
            raise InputError(
                "Block {block} has {count} rows, but block 1 has {expected}. Give every head the same number of rows.",
                block=number,
                count=len(head),
                expected=len(heads[0]),
            )
        for r, row in enumerate(head, start=1):
            if not isinstance(row, list) or any(isinstance(cell, list) for cell in row):
                raise InputError("The brackets do not form rows. Write [[1,2],[3,4]] or simply “1 2; 3 4”.")
            if not row:
                raise InputError(
                    "{where} is empty. Every row needs the same number of entries, at least one.",
                    where=_row_name(r, number, len(heads)),
                )
            if width is None:
                width = len(row)
            if len(row) != width:
                raise ShapeError(
                    "{where} has {count}, but row 1 has {expected}. Every row needs the same number of entries.",
                    where=_row_name(r, number, len(heads)),
                    count=counted(len(row), N_("1 entry"), N_("{count} entries")),
                    expected=width,
                )
            cells.extend(row)
    assert width is not None
    shape: tuple[int, ...] = (len(heads), len(heads[0]), width) if depth_of(rows) == 3 else (len(rows), width)
    return from_cells(cells, shape)


def _row_name(row: int, block: int, blocks: int) -> Message:
    if blocks > 1:
        return Message("Block {block}, row {row}", block=block, row=row)
    return Message("Row {row}", row=row)


def from_cells(cells: Sequence[Entry], shape: tuple[int, ...]) -> Matrix:
    """A matrix from its cells in row-major order."""
    values = np.array([cell[0] for cell in cells], dtype=np.float64).reshape(shape)
    decimals = np.array([cell[1] for cell in cells], dtype=np.int_).reshape(shape)
    blank = np.array([cell is BLANK for cell in cells], dtype=np.bool_).reshape(shape)
    return Matrix(values, decimals, tuple(cell[2] for cell in cells), blank if blank.any() else None)


def write_entry(value: float) -> str:
    """A number as text that reads back as the same float64."""
    if np.isinf(value):
        return "-inf" if value < 0 else "inf"
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def write_matrix(values: ArrayLike) -> str:
    """A matrix as text that reads back as the same float64 numbers: "1 2; 3 4", heads separated by "|"."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 3 and len(array) == 1:  # without a “|” only brackets say that there is a head axis
        return f"[{_bracketed(array[0])}]"
    if array.ndim == 3:
        return " | ".join(write_matrix(block) for block in array)
    rows = np.atleast_2d(array)
    return "; ".join(" ".join(write_entry(value) for value in row) for row in rows)


def _bracketed(rows: FloatArray) -> str:
    return "[" + ", ".join("[" + ", ".join(map(write_entry, row)) + "]" for row in rows) + "]"
