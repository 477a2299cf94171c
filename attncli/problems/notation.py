"""How people write matrices: from a text to nested words, one an entry.

Rows by ";" or a new line, entries by spaces and/or commas; brackets, nested or not; LaTeX; a third
axis by "|" or nested brackets; full-width signs as Chinese input methods type them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

from attncli.arithmetic.expression import KEYBOARD, entries_in, shown
from attncli.core.message import N_, InputError, Message

#: Numbers of a matrix as text.
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

TOO_DEEP = N_(
    "Brackets are nested more than {deepest} deep. Write [[1,2],[3,4]], or one block per head: [[[1,2],[3,4]],[[5,6],[7,8]]]."
)
EMPTY = N_("The matrix is empty. Write rows separated by “;”, like “1 2; 3 4”.")

#: Rows of words, of what a file holds, or of cells, as brackets nest them: heads, rows, entries.
Nested: TypeAlias = Sequence[Any]


def nested_words(text: str) -> Nested:
    """The entries of a text, not yet read: rows of words, or blocks of rows; one row alone may be a list of words.

    Raises
    ------
    InputError
        Its brackets, separators or LaTeX say no matrix.
    """
    plain = text.translate(KEYBOARD)
    if any(sign in plain for sign in ("\\", "$", "^{", "{,}", "&")):
        plain = _without_latex(plain)
    return _MatrixReader(plain.strip()).read()


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
    """Turns text into nested lists of words: rows of entries, or blocks of rows."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.count = 0

    def read(self) -> Nested:
        if not self.text:
            raise InputError(EMPTY)
        self.pieces = self._pieces()
        self._check_brackets()
        self.blocks: list[Nested] = [[]]
        # One list of rows per block; a row is a list of cells, an element in brackets is a list of its own.
        self.stack: list[list[list[Any]]] = [[[]]]
        self.last = _START
        for piece in self.pieces:
            self._take(piece)
        if self.last == _COMMA:
            raise self._missing()
        self.blocks[-1] = _collapse(self.stack[0])
        if len(self.blocks) > 1:
            return [as_rows(block) for block in self.blocks]
        found = self.blocks[0]
        # What one pair of brackets encloses arrives as a list with one element.
        if len(found) == 1 and isinstance(found[0], list) and (depth_of(found) > DEEPEST or self._single()):
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
        return place_of((block, row, column) if block > 1 or len(stack) > 3 else (row, column))

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
                raise InputError(TOO_DEEP, deepest=DEEPEST)
            if depth < 0:
                raise InputError("There is a “]” without a “[” before it. Write [[1,2],[3,4]] or simply “1 2; 3 4”.")
        if depth:
            raise InputError("A bracket “[” is not closed. Write [[1,2],[3,4]] or simply “1 2; 3 4”.")

    def _entries(self, piece: str) -> None:
        words = entries_in(piece)
        self.count += len(words)
        if self.count > MOST_CELLS:
            raise InputError(
                "This matrix has more than {limit} cells. Give large ones as a .npy or .npz file.", limit=MOST_CELLS
            )
        self.stack[-1][-1].extend(words)


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
    return "," in found or ";" in found or len(entries_in(found)) > 1


def _collapse(rows: Sequence[Nested]) -> Nested:
    """The content of one pair of brackets: a row of cells, a list of rows, or a list of lists."""
    filled = [row for row in rows if row]
    if not filled:
        return []
    if [_BAR] in filled:
        blocks: list[list[Nested]] = [[]]
        for row in filled:
            if row == [_BAR]:
                blocks.append([])
            else:
                blocks[-1].append(row)
        return [as_rows(_collapse(block)) for block in blocks]
    if any(isinstance(element, list) for row in filled for element in row):
        return [element for row in filled for element in row]
    return filled[0] if len(filled) == 1 else filled


def depth_of(nested: object) -> int:
    depth = 0
    while isinstance(nested, list):
        depth += 1
        nested = nested[0] if nested else None
    return depth


def as_rows(nested: Nested) -> Nested:
    """A matrix as a list of rows: a single row of cells is wrapped."""
    while depth_of(nested) > 2 and len(nested) == 1:
        nested = nested[0]
    return [nested] if depth_of(nested) == 1 else nested


def place_of(at: tuple[int, ...]) -> Message:
    row, column = (1, *at)[-2:] if at else (1, 1)
    if len(at) == 3:
        return Message("block {block}, row {row}, column {column}", block=at[0], row=row, column=column)
    return Message("row {row}, column {column}", row=row, column=column)
