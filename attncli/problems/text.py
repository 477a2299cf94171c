"""Matrices as text, in the ways people write them, and back.

Rows by ";" or a new line, entries by spaces and/or commas; brackets, nested or not; LaTeX; a third
axis by "|" or nested brackets; full-width signs as Chinese input methods type them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from attncli.matrix import EXACT, Entry, Matrix
from attncli.message import N_, InputError, Message
from attncli.problems.entry import EntryError, parse_entry, shown

MOST_CHARACTERS = 16_000_000
MOST_CELLS = 1_000_000
#: Nested brackets: heads, rows, entries.
DEEPEST = 3

_WIDE = {ord("，"): ",", ord("、"): ",", ord("；"): ";", ord("：") : ":", ord("　"): " ", ord("−"): "-", ord("–"): "-",
         ord("—"): "-", ord("＿"): "_", ord("？"): "?", ord("×"): "*", ord("·"): "*", ord("÷"): "/", ord("【"): "[", ord("】"): "]",
         ord("\ufeff"): " ", ord("\u00a0"): " "}  # fmt: skip
_WIDE.update({code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F) if code not in _WIDE})

_LATEX = (
    (r"\\begin\s*\{array\}\s*\{[^{}]*\}|\\(?:begin|end)\s*\{[bpBvV]?matrix\*?\}|\\end\s*\{array\}", " "),
    (r"\\left\s*[\[(|.]|\\right\s*[\])|.]|\\[\[\]]|\$+", " "),
    (r"\\d?t?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}", r"((\1)/(\2))"),
    (r"\\sqrt\s*\{([^{}]*)\}", r"sqrt(\1)"),
    (r"\\sqrt\s*(\d)", r"sqrt(\1)"),
    (r"\\exp\b", "exp"),
    (r"\\infty", "inf"),
    (r"\\(?:cdot|times)", "*"),
    (r"\\(?:hline|displaystyle)|\\[,;:! ]|~", " "),
    (r"\\\\(?:\[[^\]]*\])?", ";"),
    (r"&", ","),
    (r"\\[lr]brace|\\[{}]", " "),
    (r"\{", "("),
    (r"\}", ")"),
)
#: A sign after a space and before none starts a new entry ("1 -2"), with spaces around it it does not ("1 - 2").
_PIECE = re.compile(r"[\[\];|\n,]|[^\[\];|\n,]+")

Cell = tuple[float, int, Entry]
BLANK: Cell = (float("nan"), EXACT, ("num", "?"))


def parse_matrix(text: str, *, blanks: bool = False) -> Matrix:
    """The matrix a text stands for: rows × columns, or heads × rows × columns.

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
    plain = text.translate(_WIDE)
    if "\\" in plain or "$" in plain:
        plain = _without_latex(plain)
    nested = _Reader(plain.strip(), blanks).read()
    return _matrix(nested)


def _without_latex(text: str) -> str:
    for pattern, plain in _LATEX:
        before = None
        rounds = 0
        while before != text and rounds < 20:  # fractions inside fractions, from the inside out
            before, rounds = text, rounds + 1
            text = re.sub(pattern, plain, text)
    if "\\" in text:
        word = re.search(r"\\[A-Za-z]*", text)
        raise InputError(
            "The LaTeX command “{command}” is not known here. Use bmatrix, pmatrix or array with numbers, \\frac, \\sqrt, \\infty.",
            command=shown(word.group()) if word else "\\",
        )
    return text


class _Reader:
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
        blocks: list[list[Any]] = [[]]
        # One list of rows per block; a row is a list of cells, an element in brackets is a list of its own.
        stack: list[list[list[Any]]] = [[[]]]
        self.bracketed = "[" in self.text
        for piece in self.pieces:
            if piece == "[":
                stack.append([[]])
            elif piece == "]":
                closed = _collapse(stack.pop())
                stack[-1][-1].append(closed)
            elif piece == ";" or (piece == "\n" and len(stack) <= 2):
                stack[-1].append([])
            elif piece == "|":
                if len(stack) > 2:
                    raise InputError("“|” separates heads; it does not belong inside a row.")
                if len(stack) == 2:
                    stack[-1].append([_BAR])
                    stack[-1].append([])
                else:
                    blocks[-1] = _collapse(stack[0])
                    blocks.append([])
                    stack = [[[]]]
            elif piece not in (",", "\n"):
                self._entries(piece, stack[-1])
        blocks[-1] = _collapse(stack[0])
        if len(blocks) > 1:
            return [_as_rows(block) for block in blocks]
        found = blocks[0]
        while len(found) == 1 and isinstance(found[0], list) and _depth(found) > DEEPEST:
            found = found[0]
        # A single bracketed matrix arrives as a list with one element.
        if self.bracketed and len(found) == 1 and isinstance(found[0], list) and self._single():
            found = found[0]
        return found

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
        if "(" not in self.text:
            return _PIECE.findall(self.text.replace("\r\n", "\n").replace("\r", "\n"))
        pieces: list[str] = []
        depth = 0
        for piece in _PIECE.findall(self.text.replace("\r\n", "\n").replace("\r", "\n")):
            if depth > 0 and piece in (",", "\n"):
                pieces[-1] += " " if piece == "\n" else piece
                continue
            if depth > 0:
                pieces[-1] += piece
            else:
                pieces.append(piece)
            depth += piece.count("(") - piece.count(")")
        return pieces

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

    def _entries(self, piece: str, rows: list[list[Any]]) -> None:
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
                        where=_where(rows),
                        word=word,
                    )
                rows[-1].append(BLANK)
                continue
            try:
                rows[-1].append(parse_entry(word))
            except EntryError as error:
                raise error.at(_where(rows)) from None


_BAR = "|"


def _where(rows: list[list[Any]]) -> Message:
    row = sum(1 for cells in rows[:-1] if cells) + 1
    return Message(N_("row {row}, column {column}"), row=row, column=len(rows[-1]) + 1)


def _words(piece: str) -> list[str]:
    """The entries in a run of text without commas: cut at spaces, but not inside brackets or around an operator."""
    if not any(sign in piece for sign in "+-*/^()√"):
        return piece.split()
    words: list[str] = []
    word, depth = "", 0
    for position, sign in enumerate(piece):
        if sign.isspace():
            if depth == 0 and word and not _goes_on(word, piece[position:]):
                words.append(word)
                word = ""
            continue
        depth += (sign == "(") - (sign == ")")
        word += sign
    return [*words, word] if word else words


def _goes_on(word: str, rest: str) -> bool:
    """Whether an entry continues after a space: 1 / 3 and 1 - 2 do, 1 -2 does not."""
    if word[-1] in "+-*/^√":
        return len(word) > 1 or word in "-+√"
    following = rest.lstrip()
    if not following:
        return False
    if following[0] in "*/^":
        return True
    return following[0] in "+-" and following[1:2].isspace()


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


def _as_rows(nested: list[Any]) -> list[Any]:
    """A matrix as a list of rows: a single row of cells is wrapped."""
    while _depth(nested) > 2 and len(nested) == 1:
        nested = nested[0]
    return [nested] if _depth(nested) == 1 else nested


def _matrix(nested: list[Any]) -> Matrix:
    if not nested:
        raise InputError("The matrix is empty. Write rows separated by “;”, like “1 2; 3 4”.")
    rows = _as_rows(nested) if _depth(nested) < 3 else nested
    heads = rows if _depth(rows) == 3 else [rows]
    width: int | None = None
    cells: list[Cell] = []
    for number, head in enumerate(heads, start=1):
        head = head if isinstance(head, list) else [head]
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
            if width is None:
                width = len(row)
            if len(row) != width or width == 0:
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
    if array.ndim == 3:
        return " | ".join(write_matrix(block) for block in array)
    rows = np.atleast_2d(array)
    return "; ".join(" ".join(write_entry(value) for value in row) for row in rows)
