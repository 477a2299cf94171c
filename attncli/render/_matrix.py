"""One matrix as Rich tables: named rows and columns, numbers aligned at the point, never a digit lost.

A table has one cell for the names and one for all the numbers, which Rich lays out several times
faster than a cell a number, and which can be copied from the screen and read back.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from attncli.core.message import N_, Message
from attncli.core.record import Record
from attncli.render._glyphs import fitted
from attncli.render._lines import Lines
from attncli.render._names import cell_name
from attncli.render._numbers import number_text, padded
from attncli.render._view import Block, Item, View

#: A matrix with more lines than this shows only its first ones, unless all were asked for.
MOST_LINES = 24
_FIRST_LINES = 8
#: Colours for attention weights, from faint to strong. Each names both its background and its foreground, so that it can
#: be read on light and on dark terminals alike (a test measures the contrast).
SHADES = ("", "grey100 on grey15", "grey100 on dark_blue", "grey100 on blue3", "bold grey100 on dodger_blue2")
#: Characters between two columns of numbers, and of the frame: "│ " + names + " │ " + numbers + " │".
_GAP = 2
_FRAME, _FRAME_WITH_NAMES = 4, 7


class Column(Record):
    """A column of numbers as text: its name, its cells, and the width that holds both."""

    name: str
    cells: list[str]
    width: int


class MatrixTables:
    """The tables of one block of a step, for one console."""

    def __init__(self, view: View, item: Item, block: Block, *, width: int, encoding: str, colour: bool) -> None:
        self.view = view
        self.item = item
        self.block = block
        self.width = width
        self.encoding = encoding
        self.colour = colour and item.weights
        rows, columns = block.values.shape
        self.rows = self._shown(rows)
        self.names = [self._name(name) for name in block.rows[: self.rows]]
        self.columns = [self._column(j) for j in range(self._shown(columns))]
        self.name_width = max(map(cell_len, self.names), default=0)

    def _shown(self, lines: int) -> int:
        return lines if self.view.full or lines <= MOST_LINES else _FIRST_LINES

    def _name(self, name: str) -> str:
        """A row's or column's name; a very long one is cut, so that the numbers keep their room."""
        text, most = fitted(name, self.encoding), max(8, self.width // 4)
        return text if cell_len(text) <= most else set_cell_size(text, most - 3).rstrip() + "..."

    def _column(self, j: int) -> Column:
        texts = [number_text(value, self.item.decimals) for value in self.block.values[: self.rows, j]]
        cells = padded([fitted(text, self.encoding) for text in texts])
        name = self._name(self.block.columns[j])
        return Column(name, cells, max(map(cell_len, [name, *cells])))

    @property
    def _room(self) -> int:
        """Characters that a line of numbers may take."""
        return self.width - (_FRAME_WITH_NAMES + self.name_width if self.name_width else _FRAME)

    @property
    def natural_width(self) -> int:
        """Characters the matrix takes side by side with others."""
        return self.width - self._room + sum(column.width + _GAP for column in self.columns) - _GAP

    def parts(self) -> Iterator[RenderableType]:
        """As many columns a table as fit the width; one number a line where even one does not fit."""
        if self.columns and max(column.width for column in self.columns) > self._room:
            yield from self._one_a_line()
        else:
            for start, stop in self._chunks():
                yield self._table(start, stop)
        if (self.rows, len(self.columns)) != self.block.values.shape:
            yield self._cut()

    def _chunks(self) -> Iterator[tuple[int, int]]:
        start, used = 0, 0
        for j, column in enumerate(self.columns):
            if j > start and used + column.width > self._room:
                yield start, j
                start, used = j, 0
            used += column.width + _GAP
        if self.columns:
            yield start, len(self.columns)

    def _table(self, start: int, stop: int) -> Table:
        columns = self.columns[start:stop]
        wide = sum(column.width + _GAP for column in columns) - _GAP + 2
        frame = box.ROUNDED if self.encoding.startswith("utf") else box.ASCII
        # Known widths, and spaces written out, spare Rich from measuring and padding.
        table = Table(box=frame, show_header=any(column.name for column in columns), header_style="dim", padding=0)
        if self.name_width:
            table.add_column(Lines([]), style="dim", no_wrap=True, width=self.name_width + 2)
        header = (" " * _GAP).join(_right(column.name, column.width) for column in columns)
        table.add_column(Lines([f" {header}"]), no_wrap=True, width=wide)
        names = [Lines([f" {name}" for name in self.names])] if self.name_width else []
        table.add_row(*names, self._numbers(start, columns))
        return table

    def _numbers(self, start: int, columns: list[Column]) -> RenderableType:
        """All lines of numbers; attention weights have a background where there is colour."""
        lines = [[_right(column.cells[i], column.width) for column in columns] for i in range(self.rows)]
        if not self.colour:
            return Lines([" " + (" " * _GAP).join(line) for line in lines])
        numbers = Text(no_wrap=True)
        for i, line in enumerate(lines):
            numbers.append("\n " if i else " ")
            for j, cell in enumerate(line):
                numbers.append(" " * _GAP if j else "")
                numbers.append(cell, style=self._shade(i, start + j))
        return numbers

    def _shade(self, i: int, j: int) -> str:
        share = float(self.block.values[i, j])
        return SHADES[0 if not share > 0 else min(len(SHADES) - 1, 1 + int(share * (len(SHADES) - 1)))]

    def _one_a_line(self) -> Iterator[RenderableType]:
        for i in range(self.rows):
            for j, column in enumerate(self.columns):
                name = cell_name(self.item.name, self.block.index(i, j), self.view.layout)
                text = fitted(f"{name} = ", self.encoding) + column.cells[i].strip()
                yield Text(text, overflow="fold")

    def _cut(self) -> Text:
        rows, columns = self.block.values.shape
        said = Message(
            N_(
                "Shown: {shown_rows} of {all_rows} rows and {shown_columns} of {all_columns} columns. All of it: --full."
            ),
            shown_rows=self.rows,
            all_rows=rows,
            shown_columns=len(self.columns),
            all_columns=columns,
        )
        return Text(fitted(self.view.say(said), self.encoding), style="yellow", overflow="fold")


def _right(text: str, width: int) -> str:
    return " " * (width - cell_len(text)) + text
