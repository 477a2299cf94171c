"""Matrices as text, in the ways people write them, and back.

Rows by ";" or a new line, entries by spaces and/or commas; brackets, nested or not; LaTeX; a third
axis by "|" or nested brackets; full-width signs as Chinese input methods type them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from attncli.arithmetic.expression import KEYBOARD, EntryError, parse_entry, shown
from attncli.core.matrix import EXACT, Expression, Matrix
from attncli.core.message import N_, InputError, Message

MOST_CHARACTERS = 16_000_000
MOST_CELLS = 1_000_000
#: Nested brackets: heads, rows, entries.
DEEPEST = 3

#: Taken once, in this order: the row separator first, since its second backslash may stand before a space or a bracket.
_LATEX = (
    (r"\\\\(?:\s*\[-?[0-9.]{1,9}\s?[a-z]{2}\])?", ";"),
    (r"\\begin\s*\{array\}\s*\{[^{}]*\}|\\(?:begin|end)\s*\{(?:[bpBvV]|small)?matrix\*?\}|\\end\s*\{array\}", " "),
    (r"\\left\s*[\[(|.]|\\right\s*[\])|.]|\\[\[\]()]|\$+", " "),
    (r"(?<=\d)\{,\}(?=\d)", "."),
    (r"\\sqrt\s*(\d)", r"sqrt(\1)"),
    (r"\\exp\b", "exp"),
    (r"\\infty", "inf"),
    (r"\\(?:cdot|times)", "*"),
    (r"\\(?:displaystyle|q?quad)\b|\\[,;:! ]|~", " "),
    (r"&", ","),
)
#: Taken from the inside out, until nothing changes.
_LATEX_NESTED = (
    (r"\\[dt]?frac\s*(\d)", r"\\frac{\1}"),
    (r"\\[dt]?frac\s*\{([^{}]*)\}\s*(\d)", r"((\1)/(\2))"),
    (r"\\d?t?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}", r"((\1)/(\2))"),
    (r"\\sqrt\s*\{([^{}]*)\}", r"sqrt(\1)"),
    (r"\^\s*\{([^{}]*)\}", r"^(\1)"),
)
_LATEX_BRACES = str.maketrans({"{": "(", "}": ")"})
#: A sign after a space and before none starts a new entry ("1 -2"), with spaces around it it does not ("1 - 2").
_PIECE = re.compile(r"[\[\];|\n,]|[^\[\];|\n,]+")

Cell = tuple[float, int, Expression]
BLANK: Cell = (float("nan"), EXACT, ("num", "?"))


def parse_matrix(text: str, *, blanks: bool = False) -> Matrix:
    """The matrix a text stands for: rows × columns, or heads × rows × columns.

    A comma separates entries: "1,2" are two, and so are the four of "0,330 0,670". Whether it is a decimal comma is seen
    only where the shape is known, in answers (`marking/papers.py`); LaTeX's {,} is one wherever it stands.

    Parameters
    ----------
    blanks : accept “?” and “_” as cells that were left open

    Raises
    ------
    InputError
        Says which row and column, what stands there, and what to write.
    """
    if len(text) > MOST_CHARACTERS:
        raise InputError(
            "This text has {count} characters; the limit is {limit}.", count=len(text), limit=MOST_CHARACTERS
        )
    plain = text.translate(KEYBOARD)
    if any(sign in plain for sign in ("\\", "$", "^{", "{,}", "&")):
        plain = _without_latex(plain)
    nested = _MatrixReader(plain.strip(), blanks).read()
    return _matrix(with_blank_rows(nested) if blanks else nested)


class Literal(float):
    """A number of a file with its text: 0.50 keeps its two decimals, 1e400 is not taken for infinity."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Literal:
        number = super().__new__(cls, text)
        number.text = text.replace("_", "")
        return number


def parse_number(text: str) -> Cell:
    """One number.

    Raises
    ------
    InputError
        It is none, or there are several.
    """
    words = _words(text.translate(KEYBOARD))
    if len(words) != 1:
        raise EntryError("“{value}” is not one number. Write a number, like 0.5.", value=shown(text))
    return parse_entry(words[0])


def parse_lists(value: Sequence[Any], *, blanks: bool = False) -> Matrix:
    """The matrix in nested lists of numbers and entry texts, as TOML, JSON and Python have them.

    Raises
    ------
    InputError
        Says which row and column, what stands there, and what to write.
    """
    nested = _cells(value, (), blanks)
    nested = nested if isinstance(nested, list) else [nested]
    return _matrix(with_blank_rows(nested) if blanks else nested)


def number_of(value: object) -> Cell:
    """One number from a number or its text.

    Raises
    ------
    InputError
        It is none.
    """
    return _cell(value)


def _cells(value: object, at: tuple[int, ...], blanks: bool) -> Any:
    if isinstance(value, (list, tuple)):
        if len(at) >= DEEPEST:
            raise InputError(
                "Brackets are nested more than {deepest} deep. Write [[1,2],[3,4]], or one block per head: [[[1,2],[3,4]],[[5,6],[7,8]]].",
                deepest=DEEPEST,
            )
        cells = [_cells(part, (*at, number), blanks) for number, part in enumerate(value, start=1)]
        if any(isinstance(cell, list) for cell in cells):
            cells = [[BLANK] if cell is BLANK else cell for cell in cells]
        if len({isinstance(cell, list) for cell in cells}) > 1:
            raise InputError(
                "Numbers and bracketed rows are mixed. Put every row in brackets, [[1,2],[3,4]], or none: “1 2; 3 4”."
            )
        return cells
    try:
        return BLANK if blanks and value in ("?", "_") else _cell(value)
    except EntryError as error:
        raise error.at(_place(at)) from None


def _cell(value: object) -> Cell:
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


def _place(at: tuple[int, ...]) -> Message:
    row, column = (1, *at)[-2:] if at else (1, 1)
    if len(at) == 3:
        return Message(N_("block {block}, row {row}, column {column}"), block=at[0], row=row, column=column)
    return Message(N_("row {row}, column {column}"), row=row, column=column)


def _without_latex(text: str) -> str:
    for pattern, plain in _LATEX:
        text = re.sub(pattern, plain, text)
    before, rounds = "", 0
    while before != text and rounds < 20:
        before, rounds = text, rounds + 1
        for pattern, plain in _LATEX_NESTED:
            text = re.sub(pattern, plain, text)
    text = re.sub(r"\\[lr]brace|\\[{}]", " ", text).translate(_LATEX_BRACES)
    if re.search(r"\\[hc]line\b", text):
        raise InputError(
            "\\hline draws a line, and a matrix of numbers has none: which side of it is meant is not said. Take it away,"
            " and the rows that are no numbers with it."
        )
    if "\\" in text:
        word = re.search(r"\\[A-Za-z]*", text)
        raise InputError(
            "The LaTeX command “{command}” is not known here. Use bmatrix, pmatrix or array with numbers, \\frac, \\sqrt, \\infty.",
            command=shown(word.group()) if word else "\\",
        )
    return text


class _MatrixReader:
    """Turns text into nested lists of cells: rows of entries, or blocks of rows."""

    def __init__(self, text: str, blanks: bool) -> None:
        self.text = text
        self.blanks = blanks
        self.count = 0

    def read(self) -> list[Any]:
        if not self.text:
            raise InputError("The matrix is empty. Write rows separated by “;”, like “1 2; 3 4”.")
        self.pieces = self._pieces()
        self._check_brackets()
        self.blocks: list[list[Any]] = [[]]
        # One list of rows per block; a row is a list of cells, an element in brackets is a list of its own.
        self.stack: list[list[list[Any]]] = [[[]]]
        self.last = _START
        for piece in self.pieces:
            self._take(piece)
        if self.last == _COMMA:
            raise self._missing()
        self.blocks[-1] = _collapse(self.stack[0])
        if len(self.blocks) > 1:
            return [_as_rows(block) for block in self.blocks]
        found = self.blocks[0]
        # What one pair of brackets encloses arrives as a list with one element.
        if len(found) == 1 and isinstance(found[0], list) and (_depth(found) > DEEPEST or self._single()):
            found = found[0]
        return found

    def _take(self, piece: str) -> None:
        """One structure sign, or a run of entries."""
        stack = self.stack
        if piece == "[":
            stack.append([[]])
            self.last = _START
        elif piece == "]":
            stack[-2][-1].append(_collapse(stack.pop()))
            self.last = _CLOSED
        elif piece == ";":
            self._end_row()
        elif piece == "\n":
            if len(stack) <= 2 and self.last != _START:
                self._end_line()
        elif piece == "|":
            self._end_block()
        elif piece == ",":
            if self.last not in (_ENTRY, _CLOSED):
                raise self._missing()
            self.last = _COMMA if self.last == _ENTRY else _AFTER
        elif piece.strip():
            self._entries(piece)
            self.last = _ENTRY

    def _end_row(self) -> None:
        if self.last == _COMMA:
            raise self._missing()
        if self.last not in (_ENTRY, _CLOSED, _AFTER, _LINE):
            raise InputError(
                "{where}: there is a “;” but no row before it. Write the row, or take the “;” away.",
                where=self._where(),
            )
        self.stack[-1].append([])
        self.last = _START

    def _end_line(self) -> None:
        if self.last == _COMMA:
            raise self._missing()
        self.stack[-1].append([])
        self.last = _LINE

    def _end_block(self) -> None:
        stack = self.stack
        if len(stack) > 2:
            raise InputError("“|” separates heads; it does not belong inside a row.")
        if self.last == _COMMA:
            raise self._missing()
        if len(stack) == 2:
            stack[-1].append([_BAR])
            stack[-1].append([])
        else:
            self.blocks[-1] = _collapse(stack[0])
            self.blocks.append([])
            self.stack = [[[]]]
        self.last = _START

    def _missing(self) -> InputError:
        return InputError(
            "{where}: there is a comma but no number. Write the number, or take the comma away.", where=self._where()
        )

    def _where(self) -> Message:
        """The place of the next cell: its row and column, and its block where there are blocks."""
        stack = self.stack
        rows = stack[-1]
        row = sum(1 for cells in rows[:-1] if cells) + 1
        column = len(rows[-1]) + 1
        if len(stack) > 1:
            row += sum(map(len, stack[-2]))
        block = len(self.blocks)
        if len(stack) > 3:
            block += sum(map(len, stack[-3]))
        if block > 1 or len(stack) > 3:
            return Message(N_("block {block}, row {row}, column {column}"), block=block, row=row, column=column)
        return Message(N_("row {row}, column {column}"), row=row, column=column)

    def _single(self) -> bool:
        """Whether one pair of brackets encloses everything."""
        depth = 0
        for position, piece in enumerate(self.pieces):
            depth += (piece == "[") - (piece == "]")
            if depth == 0 and piece.strip():
                return not any(rest.strip() for rest in self.pieces[position + 1 :])
        return False

    def _pieces(self) -> list[str]:
        """Structure signs and the runs of entries between them; round brackets keep commas and lines together."""
        text = self.text.replace("\r\n", "\n").replace("\r", "\n")
        if "(" not in text:
            return _PIECE.findall(text)
        pieces: list[str] = []
        together: list[str] = []
        depth = 0
        for piece in _PIECE.findall(_with_square_brackets(text)):
            together.append(" " if piece == "\n" and depth else piece)
            depth = max(depth + piece.count("(") - piece.count(")"), 0)
            if depth == 0:
                pieces.append("".join(together))
                together = []
        return [*pieces, "".join(together)] if together else pieces

    def _check_brackets(self) -> None:
        depth = 0
        for piece in self.pieces:
            depth += (piece == "[") - (piece == "]")
            if depth > DEEPEST:
                raise InputError(
                    "Brackets are nested more than {deepest} deep. Write [[1,2],[3,4]], or one block per head: [[[1,2],[3,4]],[[5,6],[7,8]]].",
                    deepest=DEEPEST,
                )
            if depth < 0:
                raise InputError("There is a “]” without a “[” before it. Write [[1,2],[3,4]] or simply “1 2; 3 4”.")
        if depth:
            raise InputError("A bracket “[” is not closed. Write [[1,2],[3,4]] or simply “1 2; 3 4”.")

    def _entries(self, piece: str) -> None:
        cells = self.stack[-1][-1]
        for word in _words(piece):
            self.count += 1
            if self.count > MOST_CELLS:
                raise InputError(
                    "This matrix has more than {limit} cells. Give large ones as a .npy or .npz file.", limit=MOST_CELLS
                )
            if word in ("?", "_"):
                if not self.blanks:
                    raise InputError(
                        "{where}: “{word}” marks a cell left open, which only an answer may have. Write a number.",
                        where=self._where(),
                        word=word,
                    )
                cells.append(BLANK)
                continue
            try:
                cells.append(parse_entry(word))
            except EntryError as error:
                raise error.at(self._where()) from None


_BAR = "|"
# What stood last: nothing of this row yet, an entry, a closed bracket, a comma after either, the end of a line.
_START, _ENTRY, _CLOSED, _COMMA, _AFTER, _LINE = range(6)


def _with_square_brackets(text: str) -> str:
    """The text with [ ] for the round brackets that enclose a list, (1, 2) or (1 2; 3 4), not a number, like (1 + 2)/3."""
    signs = list(text)
    opened: list[int] = []
    for end, sign in enumerate(text):
        if sign == "(":
            opened.append(end)
        elif sign == ")" and opened:
            start = opened.pop()
            if len(opened) < DEEPEST and _stands_alone(signs, start, end) and _is_list(signs[start + 1 : end]):
                signs[start], signs[end] = "[", "]"
    return "".join(signs)


def _stands_alone(signs: Sequence[str], start: int, end: int) -> bool:
    """Whether nothing that belongs to a number stands before an opening bracket or after its closing one."""
    before, after = start - 1, end + 1
    while before >= 0 and signs[before] == " ":
        before -= 1
    while after < len(signs) and signs[after] == " ":
        after += 1
    return (before < 0 or signs[before] in "[](;|,\n") and (after == len(signs) or signs[after] in "[]();|,\n")


def _is_list(inside: Sequence[str]) -> bool:
    """Whether more than one entry stands in a pair of brackets; what is in brackets of its own is one."""
    depth = 0
    around: list[str] = []
    for sign in inside:
        if sign in "([" and depth == 0:
            around.append("1")
        depth += (sign in "([") - (sign in ")]")
        if depth == 0 and sign not in ")]":
            around.append(sign)
    found = "".join(around)
    return "," in found or ";" in found or len(_words(found)) > 1


def _words(piece: str) -> list[str]:
    """The entries in a run of text without commas: cut at spaces, but not inside brackets or around an operator."""
    parts = piece.split()
    if not any(sign in piece for sign in "+-*/^()√"):
        return parts
    words: list[str] = []
    together: list[str] = []
    depth = 0
    for part in parts:
        if together and depth == 0 and not _goes_on(together, part):
            words.append("".join(together))
            together = []
        if together and _is_part_of_number(together[-1][-1], ".)∞") and _is_part_of_number(part[0], ".(∞√"):
            together.append(" ")  # (1 2) is not (12)
        together.append(part)
        depth = max(depth + part.count("(") - part.count(")"), 0)
    return [*words, "".join(together)] if together else words


def _is_part_of_number(sign: str, others: str) -> bool:
    return sign in others or (sign.isascii() and sign.isalnum())


def _goes_on(together: list[str], part: str) -> bool:
    """Whether an entry continues after a space: 1 / 3 and 1 - 2 do, 1 -2 does not."""
    before = together[-1]
    if before[-1] in "+-*/^√":
        return len(together) > 1 or len(before) > 1 or before in "-+√"
    return part[0] in "*/^" or part in ("+", "-")


def _collapse(rows: list[list[Any]]) -> list[Any]:
    """The content of one pair of brackets: a row of cells, a list of rows, or a list of lists."""
    filled = [row for row in rows if row]
    if not filled:
        return []
    lists = [isinstance(element, list) for row in filled for element in row]
    if [_BAR] in filled:
        blocks: list[list[Any]] = [[]]
        for row in filled:
            if row == [_BAR]:
                blocks.append([])
            else:
                blocks[-1].append(row)
        return [_as_rows(_collapse(block)) for block in blocks]
    if all(lists):
        return [element for row in filled for element in row]
    if any(lists):
        raise InputError(
            "Numbers and bracketed rows are mixed. Put every row in brackets, [[1,2],[3,4]], or none: “1 2; 3 4”."
        )
    return filled[0] if len(filled) == 1 else filled


def _depth(nested: Any) -> int:
    depth = 0
    while isinstance(nested, list):
        depth += 1
        nested = nested[0] if nested else None
    return depth


def with_blank_rows(nested: list[Any]) -> list[Any]:
    """The same with every row or head that is only left blank (“?” alone in its place) as wide as the others."""
    if not any(isinstance(part, list) for part in nested):
        return nested
    if not any(isinstance(row, list) for part in nested if isinstance(part, list) for row in part):
        return _filled_up(nested, 0, _widest(nested))
    heads = [head if isinstance(head, list) else [head] for head in nested]
    count = max(len(head) for head in heads)
    wide = max(_widest(head) for head in heads)
    return [_filled_up(head, count, wide) for head in heads]


def _widest(rows: list[Any]) -> int:
    return max((len(row) if isinstance(row, list) else 1 for row in rows), default=1)


def _filled_up(rows: list[Any], count: int, wide: int) -> list[Any]:
    """Rows of which those that are one blank are `wide`; a head that is one blank has `count` of them."""
    if count and _is_blank(rows):
        return [[BLANK] * wide] * count
    return [[BLANK] * wide if _is_blank(row) else row for row in rows]


def _is_blank(part: Any) -> bool:
    """Whether this is one blank and nothing else, in however many brackets."""
    while isinstance(part, list) and len(part) == 1:
        part = part[0]
    return part is BLANK


def _as_rows(nested: list[Any]) -> list[Any]:
    """A matrix as a list of rows: a single row of cells is wrapped."""
    while _depth(nested) > 2 and len(nested) == 1:
        nested = nested[0]
    return [nested] if _depth(nested) == 1 else nested


def _matrix(nested: list[Any]) -> Matrix:
    if not nested or nested == [[]]:
        raise InputError("The matrix is empty. Write rows separated by “;”, like “1 2; 3 4”.")
    rows = _as_rows(nested) if _depth(nested) < 3 else nested
    heads = rows if _depth(rows) == 3 else [rows]
    width: int | None = None
    cells: list[Cell] = []
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
                raise InputError(
                    "{where} has {count}, but row 1 has {expected}. Every row needs the same number of entries.",
                    where=_row_name(r, number, len(heads)),
                    count=_entries_count(len(row)),
                    expected=width,
                )
            cells.extend(row)
    assert width is not None
    shape: tuple[int, ...] = (len(heads), len(heads[0]), width) if _depth(rows) == 3 else (len(rows), width)
    return from_cells(cells, shape)


def _row_name(row: int, block: int, blocks: int) -> Message:
    if blocks > 1:
        return Message(N_("Block {block}, row {row}"), block=block, row=row)
    return Message(N_("Row {row}"), row=row)


def _entries_count(count: int) -> Message:
    return Message(N_("1 entry")) if count == 1 else Message(N_("{count} entries"), count=count)


def from_cells(cells: Sequence[Cell], shape: tuple[int, ...]) -> Matrix:
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


def write_matrix(values: Any) -> str:
    """A matrix as text that reads back as the same float64 numbers: "1 2; 3 4", heads separated by "|"."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 3 and len(array) == 1:  # without a “|” only brackets say that there is a head axis
        return f"[{_bracketed(array[0])}]"
    if array.ndim == 3:
        return " | ".join(write_matrix(block) for block in array)
    rows = np.atleast_2d(array)
    return "; ".join(" ".join(write_entry(value) for value in row) for row in rows)


def _bracketed(rows: Any) -> str:
    return "[" + ", ".join("[" + ", ".join(map(write_entry, row)) + "]" for row in rows) + "]"
