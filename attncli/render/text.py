"""Blocks as plain text of a width, with the signs of an encoding: reports with their pictures, worksheets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from attncli.core.message import N_, Message
from attncli.core.record import Record
from attncli.core.report import Maps, Plot, Spans
from attncli.locale.fit import columns, fitted, padded, wrap
from attncli.render.chart import drawn, shortened
from attncli.render.document import (
    Block,
    Fields,
    Gap,
    Grid,
    Grids,
    Heading,
    Marks,
    Page,
    Paragraph,
    Said,
    Say,
    Symbol,
    Tabular,
)
from attncli.render.formula import as_text
from attncli.render.numbers import padded as aligned

_GAP = "  "
#: Columns that a text in a table may take, and that a Chinese header has at least: four signs.
_LONGEST_CELL, _LEAST_OF_CHINESE = 24, 8
#: Characters of a cell beyond which a marked matrix is written cell by cell.
_LEAST_ROOM = 8
#: Signs of a line of a worksheet.
_WIDTH = 78


def sheets(pages: Sequence[Page]) -> str:
    """Worksheets for a screen or a plain printer."""
    between = "\n" + "═" * _WIDTH + "\n\n"
    return between.join(plain_text(page.blocks, str, width=_WIDTH, encoding="utf-8") for page in pages)


def plain_text(blocks: Iterable[Block], say: Say, *, width: int, encoding: str) -> str:
    """Blocks as lines of text."""
    text = TextPrinter(say, width, encoding)
    return "\n".join(line for block in blocks for line in text.lines(block)) + "\n"


class Side(Record):
    """A column of a table, ready: what stands above it, its cells as text of one width, and whether they are numbers."""

    name: str
    cells: list[str]
    is_number: bool


class TextPrinter:
    """Prints blocks for one width and one encoding."""

    def __init__(self, say: Say, width: int, encoding: str) -> None:
        self.say = say
        self.width = width
        self.encoding = encoding

    def words(self, said: Said) -> str:
        return fitted(self.say(said), self.encoding)

    def lines(self, block: Block) -> Iterator[str]:
        match block:
            case Gap():
                yield ""
            case Heading() | Paragraph():
                yield wrap(self.words(block.text), self.width)
            case Fields():
                yield "  ".join(f"{field} ____________________" for field in block.names)
            case Grids():
                for grid in block.grids:
                    yield ""
                    yield from self.grid(grid)
            case Tabular():
                yield from self.table(block)
            case Plot() | Spans() | Maps():
                yield from drawn(block, self.say, self.width, self.encoding)

    def grid(self, grid: Grid) -> Iterator[str]:
        symbol = as_text(grid.symbol)
        yield f"{grid.name}{'' if symbol == grid.name else f'  {symbol}'}   {grid.note}"
        lead = [[name] for name in grid.rows] if any(grid.rows) else [[] for _ in grid.rows]
        table = [
            [*start, *("_______" if cell is None else cell for cell in row)]
            for start, row in zip(lead, grid.cells, strict=True)
        ]
        if any(grid.columns):
            table.insert(0, [*([""] if any(grid.rows) else []), *grid.columns])
        widths = [max(columns(row[j]) for row in table) for j in range(len(table[0]))]
        for row in table:
            yield (
                "  " + "  ".join(" " * (width - columns(cell)) + cell for cell, width in zip(row, widths, strict=True))
            ).rstrip()
        for line in grid.below:
            yield wrap(line, self.width, "  - ", "    ")

    def table(self, table: Tabular) -> Iterator[str]:
        sides = [self.side(table, j) for j in range(len(table.columns))]
        for number, group in enumerate(self._groups(sides, [column.joined for column in table.columns])):
            if number:
                yield ""
            yield from self._rows(group)

    def side(self, table: Tabular, j: int) -> Side:
        column = table.columns[j]
        texts = [self.cell(row[j]) for row in table.rows]
        texts = aligned(texts) if column.is_number else texts
        wide = max(map(columns, texts), default=0)
        texts = [" " * (wide - columns(text)) + text if column.is_number else padded(text, wide) for text in texts]
        return Side(" ".join(map(self.words, column.head)), texts, column.is_number)

    def cell(self, cell: Said | Symbol) -> str:
        if isinstance(cell, Symbol):
            return fitted(as_text(cell.latex), self.encoding)
        return shortened(cell, _LONGEST_CELL, self.encoding) if isinstance(cell, str) else self.words(cell)

    def _groups(self, sides: list[Side], joined: list[bool]) -> Iterator[list[Side]]:
        """Columns in groups that fit the width; the first column begins each of them."""
        starts = [j for j, together in enumerate(joined) if j and not together]
        parts = [sides[start:stop] for start, stop in pairwise([*starts, len(sides)])]
        group, used = [sides[0]], _narrowest(sides[0])
        for part in parts:
            wide = sum(_narrowest(column) + len(_GAP) for column in part)
            if len(group) > 1 and used + wide > self.width:
                yield group
                group, used = [sides[0]], _narrowest(sides[0])
            group += part
            used += wide
        yield group

    def _rows(self, group: list[Side]) -> Iterator[str]:
        room = self.width - len(_GAP) * (len(group) - 1)
        widths = _widths(group, room)
        headers = [wrap(side.name, wide).split("\n") for side, wide in zip(group, widths, strict=True)]
        high = max(map(len, headers))
        for i in range(high):
            line = [
                _side(lines[i - high + len(lines)] if i >= high - len(lines) else "", wide, side.is_number)
                for lines, wide, side in zip(headers, widths, group, strict=True)
            ]
            yield _GAP.join(line).rstrip()
        rule = "─" if self.encoding.startswith("utf") else "-"
        yield _GAP.join(rule * wide for wide in widths)
        for i in range(len(group[0].cells)):
            cells = [_side(side.cells[i], wide, side.is_number) for side, wide in zip(group, widths, strict=True)]
            yield _GAP.join(cells).rstrip()


def _side(text: str, wide: int, numbers: bool) -> str:
    gap = " " * (wide - columns(text))
    return gap + text if numbers else text + gap


def _narrowest(side: Side) -> int:
    """Columns that it needs: for its cells, and for the longest word above them."""
    return max(1, *map(_columns_of_word, side.name.split()), *map(columns, side.cells))


def _columns_of_word(word: str) -> int:
    """A Latin word stays whole; Chinese has places to break, but not after each sign."""
    wide = columns(word)
    return wide if wide == len(word) else min(wide, _LEAST_OF_CHINESE)


def _widths(group: list[Side], room: int) -> list[int]:
    """Room for every column: what it needs, and what is left over goes where the most lines stand above it."""
    names = [side.name for side in group]
    widths = [_narrowest(side) for side in group]
    for _ in range(room - sum(widths)):
        heights = [_height(name, wide) for name, wide in zip(names, widths, strict=True)]
        if max(heights) == 1:
            break
        widths[heights.index(max(heights))] += 1
    return widths


def _height(name: str, wide: int) -> int:
    return wrap(name, wide).count("\n") + 1


# A marked matrix.


class MarkedRow(Record):
    """A line of a marked matrix, which is never broken: texts, and which of them are wrong."""

    texts: tuple[str, ...]
    wrong: tuple[bool, ...]

    @property
    def text(self) -> str:
        return "".join(self.texts)


def marked_lines(marks: Marks, width: int) -> Iterator[MarkedRow | Paragraph]:
    """As many columns side by side as the width has room for; cell by cell where it has none for a column."""
    columns = []
    for j in range(len(marks.cells[0]) if marks.cells else 0):
        texts = aligned([row[j] for row in marks.cells])
        wide = max(map(len, texts))
        columns.append([_between_signs(text.rjust(wide), row[j]) for text, row in zip(texts, marks.wrong, strict=True)])
    if max((len(column[0]) for column in columns), default=0) > max(width - 4, _LEAST_ROOM):
        yield from _cell_by_cell(marks)
        return
    start = 0
    while start < len(columns):
        stop, room = start, width - 3
        while stop < len(columns) and (stop == start or room >= len(columns[stop][0]) + 1):
            room -= len(columns[stop][0]) + 1
            stop += 1
        if start or stop < len(columns):
            yield Paragraph(Message(N_("{Columns} {first} to {last}:"), first=start + 1, last=stop), "aside")
        for i, wrong in enumerate(marks.wrong):
            yield MarkedRow(tuple(f" {column[i]}" for column in columns[start:stop]), wrong[start:stop])
        start = stop


def _cell_by_cell(marks: Marks) -> Iterator[Paragraph]:
    for i, (row, wrongs) in enumerate(zip(marks.cells, marks.wrong, strict=True), start=1):
        for j, (text, wrong) in enumerate(zip(row, wrongs, strict=True), start=1):
            yield Paragraph(f"[{i},{j}] {f'>{text}<' if wrong else text}", "wrong" if wrong else "")


def _between_signs(text: str, wrong: bool) -> str:
    """A number of a column, with > and < close to it if it is wrong."""
    if not wrong:
        return f" {text} "
    number = text.strip()
    before = len(text) - len(text.lstrip())
    return f"{' ' * before}>{number}<{' ' * (len(text) - before - len(number))}"
