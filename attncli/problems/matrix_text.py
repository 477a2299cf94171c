"""Matrices from text and from what files hold, every number with what was written of it, and back to text.

Rows by ";" or a new line, entries by spaces and/or commas; brackets, nested or not; LaTeX; a third
axis by "|" or nested brackets; full-width signs as Chinese input methods type them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from attncli.arithmetic.expression import KEYBOARD, EntryError, entries_in, parse_entry, shown
from attncli.core.limits import MOST_TEXT_BYTES
from attncli.core.matrix import EXACT, Expression, FloatArray, Matrix
from attncli.core.message import N_, AttnError, InputError, Message, ShapeError, counted
from attncli.problems.reading import Literal, brief

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

#: An entry: its value, the decimals it was written with, and the expression.
Entry: TypeAlias = tuple[float, int, Expression]
BLANK: Entry = (float("nan"), EXACT, ("num", "?"))
#: Words, what a file holds, or entries, as brackets nest them: heads, rows, entries.
Nested: TypeAlias = Sequence[Any]

#: Numbers of a matrix as text.
MOST_CELLS = 1_000_000
#: Nested brackets: heads, rows, entries.
DEEPEST = 3

TOO_DEEP = N_(
    "Brackets are nested more than {deepest} deep. Write [[1,2],[3,4]], or one block per head: [[[1,2],[3,4]],[[5,6],[7,8]]]."
)
EMPTY = N_("The matrix is empty. Write rows separated by “;”, like “1 2; 3 4”.")


def parse_matrix(text: str, *, blanks: bool = False) -> Matrix:
    """The matrix a text stands for: rows × columns, or heads × rows × columns.

    A comma separates entries: "1,2" are two, and so are the four of "0,330 0,670". Whether it is a decimal comma is seen
    only where the shape is known, in answers (`marking/papers.py`), and said where other shapes would fit; LaTeX's {,} is one wherever it stands.

    Parameters
    ----------
    blanks : accept “?” and “_” as cells that were left open
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
    return _matrix(_cells(_nested_words(text), (), parse_entry, blanks))


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


def parse_number(text: str) -> Entry:
    """One number."""
    words = entries_in(text.translate(KEYBOARD))
    if len(words) != 1:
        raise EntryError("“{value}” is not one number. Write a number, like 0.5.", value=shown(text))
    return parse_entry(words[0])


def parse_lists(value: Nested, *, blanks: bool = False) -> Matrix:
    """The matrix in nested lists of numbers and entry texts, as TOML, JSON and Python have them."""
    return _matrix(_cells(value, (), number_of, blanks))


# --- From a text to nested words ---------------------------------------------------------------------------------------

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


def _nested_words(text: str) -> Nested:
    """The entries of a text, not yet read: rows of words, or blocks of rows; one row alone may be a list of words."""
    plain = text.translate(KEYBOARD)
    if any(sign in plain for sign in ("\\", "$", "^{", "{,}", "&")):
        plain = _without_latex(plain)
    plain = plain.strip()
    if not plain:
        raise InputError(EMPTY)
    found = _Reader(plain).content()
    # What one pair of brackets encloses arrives as a list with one element.
    return found[0] if len(found) == 1 and isinstance(found[0], list) else found


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


class _Reader:
    """Reads entries and the signs that part them, once from the beginning to the end."""

    def __init__(self, text: str) -> None:
        self.pieces = iter(_pieces(text))
        self.block = 1
        self.count = 0

    def content(self, before: tuple[int, ...] = ()) -> Nested:
        """What stands in a pair of brackets, or outside them all: a row of cells, a list of rows, or a list of blocks.

        Parameters
        ----------
        before : for each bracket around, the elements that stand before it there
        """
        blocks: list[list[list[Any]]] = [[[]]]
        last = ""  # what stood last in this row: nothing, an entry, "]", a comma after either, or the end of a line
        for piece in self.pieces:
            rows = blocks[-1]
            if piece == "\n" and (not last or len(before) > 1):
                continue
            self._check(piece, last, before, rows)
            if piece == "[":
                rows[-1].append(self.content((*before, sum(map(len, rows)))))
                last = "]"
            elif piece == "]":
                break
            elif piece == ",":
                last = "," if last == "entry" else "],"
            elif piece == "|":
                blocks.append([[]])
                self.block += 1
                last = ""
            elif piece in (";", "\n"):
                rows.append([])
                last = piece.strip(";")
            elif piece.strip():
                rows[-1].extend(self._entries(piece))
                last = "entry"
        else:
            self._check("", last, before, blocks[-1])
        return _collapsed(blocks[0]) if len(blocks) == 1 else [_as_rows(_collapsed(block)) for block in blocks]

    def _check(self, piece: str, last: str, before: tuple[int, ...], rows: list[list[Any]]) -> None:
        """Refuse a sign, or the end of the text, that cannot stand here."""
        if piece == "[" and len(before) == DEEPEST:
            raise InputError(TOO_DEEP, deepest=DEEPEST)
        if piece == "]" and not before:
            raise InputError("There is a “]” without a “[” before it. Write [[1,2],[3,4]] or simply “1 2; 3 4”.")
        if not piece and before:
            raise InputError("A bracket “[” is not closed. Write [[1,2],[3,4]] or simply “1 2; 3 4”.")
        if piece == "|" and len(before) > 1:
            raise InputError("“|” separates heads; it does not belong inside a row.")
        if (piece == "," and last not in ("entry", "]")) or (piece in ("", ";", "\n", "|") and last == ","):
            raise InputError(
                "{where}: there is a comma but no number. Write the number, or take the comma away.",
                where=self._place(before, rows),
            )
        if piece == ";" and not last:
            raise InputError(
                "{where}: there is a “;” but no row before it. Write the row, or take the “;” away.",
                where=self._place(before, rows),
            )

    def _entries(self, piece: str) -> list[str]:
        words = entries_in(piece)
        self.count += len(words)
        if self.count > MOST_CELLS:
            raise InputError(
                "This matrix has more than {limit} cells. Give large ones as a .npy or .npz file.", limit=MOST_CELLS
            )
        return words

    def _place(self, before: tuple[int, ...], rows: list[list[Any]]) -> Message:
        """The place of the next cell: its row and column, and its block where there are blocks."""
        row = 1 + sum(map(bool, rows[:-1])) + sum(before[-1:])
        column = len(rows[-1]) + 1
        block = self.block + (before[-2] if len(before) == DEEPEST else 0)
        return place_of((block, row, column) if block > 1 or len(before) == DEEPEST else (row, column))


#: A structure sign, or a run of entries: these are parted by spaces, and by signs as `entries_in` has it.
_PIECE = re.compile(r"[\[\];|\n,]|[^\[\];|\n,]+")


def _pieces(text: str) -> list[str]:
    """Structure signs and the runs of entries between them; round brackets keep commas and lines together."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
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


def _collapsed(rows: list[list[Any]]) -> Nested:
    """A row of cells, a list of rows, or what stands in brackets of its own, one after another."""
    filled = [row for row in rows if row]
    if any(isinstance(element, list) for row in filled for element in row):
        return [element for row in filled for element in row]
    return filled[0] if len(filled) == 1 else filled


def _as_rows(block: Nested) -> Nested:
    """A block as a list of rows: out of brackets that hold nothing else, and a single row in some of its own."""
    while len(block) == 1 and isinstance(block[0], list) and block[0] and isinstance(block[0][0], list):
        block = block[0]
    return block if block and isinstance(block[0], list) else [block]


def place_of(at: tuple[int, ...]) -> Message:
    row, column = (1, *at)[-2:] if at else (1, 1)
    if len(at) == 3:
        return Message("block {block}, row {row}, column {column}", block=at[0], row=row, column=column)
    return Message("row {row}, column {column}", row=row, column=column)


# --- From nested words or numbers to a matrix -------------------------------------------------------------------------


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
    """One number from a number or its text."""
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


def _matrix(nested: Nested) -> Matrix:
    """The matrix of nested entries; a row or head that is only left blank (“?” alone in its place) is as large as the others."""
    if nested in ([], [[]]):
        raise InputError(EMPTY)
    has_heads = any(isinstance(row, list) for part in nested if isinstance(part, list) for row in part)
    heads = nested if has_heads else [nested if isinstance(nested[0], list) else [nested]]
    count = max(map(len, heads))
    wide = max((len(row) for head in heads for row in head if isinstance(row, list)), default=1)
    heads = [[[BLANK]] * count if head in ([BLANK], [[BLANK]]) else head for head in heads]
    heads = [[[BLANK] * wide if row == [BLANK] else row for row in head] for head in heads]
    for block, head in enumerate(heads, start=1):
        if len(heads) > 1 and head in ([], [[]]):
            raise InputError("Block {block} is empty. Write its rows, or take the “|” away.", block=block)
        if len(head) != len(heads[0]):
            raise InputError(
                "Block {block} has {count}, but block 1 has {expected}. Give every head the same number of rows.",
                block=block,
                count=counted(len(head), N_("1 row"), N_("{count} rows")),
                expected=len(heads[0]),
            )
        for number, row in enumerate(head, start=1):
            if not isinstance(row, list) or any(isinstance(cell, list) for cell in row):
                raise InputError("The brackets do not form rows. Write [[1,2],[3,4]] or simply “1 2; 3 4”.")
            if not row:
                raise InputError(
                    "{where} is empty. Every row needs the same number of entries, at least one.",
                    where=_row_name(number, block, len(heads)),
                )
            if len(row) != len(heads[0][0]):
                raise ShapeError(
                    "{where} has {count}, but row 1 has {expected}. Every row needs the same number of entries.",
                    where=_row_name(number, block, len(heads)),
                    count=counted(len(row), N_("1 entry"), N_("{count} entries")),
                    expected=len(heads[0][0]),
                )
    shape = (len(heads), len(heads[0]), len(heads[0][0]))
    return from_cells([cell for head in heads for row in head for cell in row], shape if has_heads else shape[1:])


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
