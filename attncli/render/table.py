"""The terminal view: every step a Rich table, with its formula, its meaning and, if asked for, its arithmetic."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from attncli.message import N_, Message
from attncli.render._glyphs import fitted
from attncli.render._numbers import number_text, padded
from attncli.render._view import MOST_LINES, Block, Item, View

#: Characters a line has where nothing says otherwise.
WIDTH = 80
_INDENT = 2
#: Backgrounds for attention weights, from faint to strong, each with a readable foreground.
_SHADES = ("", "on grey23", "white on dark_blue", "white on blue3", "bold white on dodger_blue2")


def render(view: View) -> str:
    """The run as plain text."""
    console = Console(file=io.StringIO(), width=view.width or WIDTH, color_system=None, force_terminal=False)
    print_view(view, console)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def print_view(view: View, console: Console) -> None:
    """Print a run to a Rich console: inputs first, a line of shapes, the steps, a summary last."""
    page = Page(view, console)
    for part in page.parts():
        console.print(part, markup=False, highlight=False, emoji=False, soft_wrap=False)


class Page:
    """One run laid out for one console."""

    def __init__(self, view: View, console: Console) -> None:
        self.view = view
        self.width = console.width
        self.encoding = console.encoding
        self.colour = console.color_system is not None and not console.no_color

    def text(self, text: str, style: str = "") -> Text:
        """Text that the console can show; never read as markup."""
        return Text(fitted(text, self.encoding), style=style, no_wrap=False, overflow="fold")

    def say(self, message: Message | str, style: str = "") -> Text:
        return self.text(self.view.say(message), style)

    def parts(self) -> Iterator[RenderableType]:
        """What to print, from top to bottom."""
        view = self.view
        yield self.text(view.title(), "bold")
        if view.inputs and len(view.run.shown) == len(view.run.graph.steps):
            yield Text()
            yield from self.inputs()
            yield self._shapes()
        if view.expand and view.run.trace.arithmetic == "floating":
            yield self.say(
                N_("Numbers are shown rounded but carried in full; with --carry the rounded ones are carried on."),
                "italic dim",
            )
        phase = ""
        number = 0
        for item in view.steps:
            yield Text()
            title = _PHASES.get(item.phase, phase)
            if title != phase:
                phase = title
                yield self.say(title, "bold underline")
                yield Text()
            number += item.step is not None
            yield from self.item(item, number if item.step is not None else None)
        yield from self._ending()

    def inputs(self) -> Iterator[RenderableType]:
        """What is given, side by side as far as it fits."""
        yield from self._side_by_side(self.view.inputs)

    def _shapes(self) -> Text:
        shapes = [f"{item.name} {item.shape}" for item in self.view.inputs]
        results = [f"{item.name} {item.shape}" for item in self.view.steps if item.phase == "forward"]
        arrow = " → ".join(results)
        return self.say(Message(N_("Shapes: {inputs} → {results}"), inputs=", ".join(shapes), results=arrow), "dim")

    def item(self, item: Item, number: int | None) -> Iterator[RenderableType]:
        """One step: heading with formula, matrix, meaning, arithmetic."""
        yield self._heading(item, number)
        for block in item.blocks:
            if block.head is not None:
                yield self._indented(self.say(Message(N_("head {number}"), number=block.head), "dim"))
            for table in self.tables(item, block):
                yield self._indented(table)
        if item.why is not None:
            yield self._indented(self.say(item.why, "italic"))
        if self.view.expand:
            for name, arithmetic in self.view.arithmetic(item):
                yield self._hanging(f"{name} = ", arithmetic)

    def _heading(self, item: Item, number: int | None) -> Text:
        heading = Text(overflow="fold")
        if number is not None:
            heading.append(f"{number}. ", style="bold")
        heading.append(item.id, style="bold cyan" if item.phase != "backward" else "bold magenta")
        formula = item.formula_text if item.step is not None else ""
        if formula or item.name != item.id:
            heading.append("   ")
            heading.append(fitted(f"{item.name} = {formula}" if formula else item.name, self.encoding))
        heading.append(f"   {item.shape}", style="dim")
        return heading

    def _indented(self, part: RenderableType) -> RenderableType:
        return Padding(part, (0, 0, 0, _INDENT), expand=False) if self.width >= 30 else part

    def _hanging(self, name: str, arithmetic: str) -> RenderableType:
        """A line of arithmetic whose continuation lines start under its own beginning."""
        grid = Table.grid(padding=0)
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        label = fitted(name, self.encoding)
        if cell_len(label) > self.width // 2:
            return self._indented(self.text(f"{name}{arithmetic}"))
        grid.add_row(Text(label, style="dim"), self.text(arithmetic))
        return self._indented(grid)

    def tables(self, item: Item, block: Block) -> Iterator[Table]:
        """The matrix as tables: as many columns a table as fit the width, so that no digit is lost."""
        rows, columns = block.values.shape
        last_row = rows if self.view.full else min(rows, MOST_LINES)
        last_column = columns if self.view.full else min(columns, MOST_LINES)
        texts = [self._column(item, block, j, last_row) for j in range(last_column)]
        names = [fitted(name, self.encoding) for name in block.rows[:last_row]]
        heads = [fitted(name, self.encoding) for name in block.columns[:last_column]]
        room = self.width - _INDENT - 4 - max(map(cell_len, names), default=0)
        for start, stop in _chunks(
            [max(map(cell_len, [head, *text])) for head, text in zip(heads, texts, strict=True)], room
        ):
            yield self._table(item, block, names, heads[start:stop], texts[start:stop], start)
        if (last_row, last_column) != (rows, columns):
            yield self._cut(rows, columns, last_row, last_column)

    def _cut(self, rows: int, columns: int, shown_rows: int, shown_columns: int) -> Table:
        note = Table.grid()
        note.add_row(
            self.say(
                Message(
                    N_(
                        "Shown: the first {shown_rows} of {rows} {row_word} and {shown_columns} of {columns} {column_word}. All of it: --full"
                    ),
                    shown_rows=shown_rows,
                    rows=rows,
                    row_word=Message(N_("lines")),
                    shown_columns=shown_columns,
                    columns=columns,
                    column_word=Message(N_("columns of numbers")),
                ),
                "yellow",
            )
        )
        return note

    def _column(self, item: Item, block: Block, j: int, last_row: int) -> list[str]:
        return padded(
            [fitted(number_text(value, item.decimals), self.encoding) for value in block.values[:last_row, j]]
        )

    def _table(
        self, item: Item, block: Block, names: list[str], heads: list[str], texts: list[list[str]], start: int
    ) -> Table:
        named = any(names)
        table = Table(box=self._box(), show_header=any(heads), pad_edge=True, header_style="dim")
        if named:
            table.add_column("", style="dim", no_wrap=True)
        for head in heads:
            table.add_column(Text(head), justify="right", no_wrap=True)
        for i, name in enumerate(names):
            cells = [self._cell(item, block, i, start + j, text[i]) for j, text in enumerate(texts)]
            table.add_row(*([Text(name), *cells] if named else cells))
        return table

    def _box(self) -> Any:
        from rich import box

        return box.ROUNDED if self.encoding.startswith("utf") else box.ASCII

    def _cell(self, item: Item, block: Block, i: int, j: int, text: str) -> Text:
        if not (item.weights and self.colour):
            return Text(text)
        share = float(block.values[i, j])
        level = 0 if not share > 0 else min(len(_SHADES) - 1, 1 + int(share * (len(_SHADES) - 1)))
        return Text(text, style=_SHADES[level])

    def _side_by_side(self, items: tuple[Item, ...]) -> Iterator[RenderableType]:
        """Inputs next to each other as long as they fit."""
        row: list[tuple[int, RenderableType]] = []
        for item in items:
            parts = list(self.item(item, None)) if item.why is None or len(item.blocks) > 1 else self._without_why(item)
            width = self._natural_width(item)
            if row and sum(w for w, _ in row) + width + 3 * len(row) > self.width:
                yield _grid(row)
                row = []
            row.append((width, Group(*parts)))
        if row:
            yield _grid(row)

    def _without_why(self, item: Item) -> list[RenderableType]:
        return [part for part in self.item(item, None)][
            : 1 + sum(1 for block in item.blocks for _ in self.tables(item, block))
        ]

    def _natural_width(self, item: Item) -> int:
        """Columns an input takes: its matrix, or its heading where that is wider."""
        widest = cell_len(self._heading(item, None).plain)
        for block in item.blocks:
            columns = [
                max(
                    cell_len(text)
                    for text in [block.columns[j], *self._column(item, block, j, min(len(block.rows), MOST_LINES))]
                )
                for j in range(min(len(block.columns), MOST_LINES))
            ]
            names = max(map(cell_len, block.rows), default=0)
            widest = max(widest, sum(width + 3 for width in columns) + (names + 3 if names else 0) + 1 + _INDENT)
        return min(widest, self.width)

    def _ending(self) -> Iterator[RenderableType]:
        view = self.view
        lines = [*view.notes, *view.summary]
        if lines or view.run.verification is not None:
            yield Text()
        for line in lines:
            yield self.say(line, "bold" if line.template.startswith("Result") else "")
        if view.run.verification is not None:
            yield from self._verification()

    def _verification(self) -> Iterator[RenderableType]:
        """Every gradient beside its finite difference: the worst relative error by input, and entry by entry."""
        found = self.view.run.verification
        assert found is not None
        yield self.say(N_("Checked against finite differences (every input moved a little both ways):"), "bold")
        for entry in found.checked:
            mark = "✓" if entry.ok else "✗"
            style = "green" if entry.ok else "bold red"
            yield self._indented(
                self.say(
                    Message(
                        N_("{mark} {id}: largest relative error {worst}"),
                        mark=mark,
                        id=f"G_{entry.id}",
                        worst=f"{entry.worst:.1e}",
                    ),
                    style,
                )
            )
            if self.view.expand or not entry.ok:
                yield from self._errors(entry.id, entry.error)
        for warning in found.warnings:
            yield self.say(warning, "yellow")

    def _errors(self, id: str, errors: Any) -> Iterator[RenderableType]:
        for index, error in [(index, errors[index]) for index in _indices(errors.shape)]:
            cell = ",".join(str(i + 1) for i in index)
            yield self._indented(self.text(f"  G_{id}[{cell}]  {error:.1e}"))


_PHASES = {
    "forward": N_("Forward: from the inputs to the result"),
    "upstream": N_("Backward: from the loss back to every input"),
    "backward": N_("Backward: from the loss back to every input"),
    "update": N_("Update: one step of learning"),
}


def _indices(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    import numpy as np

    return list(np.ndindex(*shape))


def _grid(row: list[tuple[int, RenderableType]]) -> RenderableType:
    if len(row) == 1:
        return row[0][1]
    grid = Table.grid(padding=(0, 3, 0, 0), pad_edge=False)
    for width, _ in row:
        grid.add_column(min_width=width)
    grid.add_row(*[part for _, part in row])
    return grid


def _chunks(widths: list[int], room: int) -> Iterator[tuple[int, int]]:
    """Ranges of columns that fit into `room`, each column with its padding and line."""
    start, used = 0, 0
    for i, width in enumerate(widths):
        if i > start and used + width + 3 > room:
            yield start, i
            start, used = i, 0
        used += width + 3
    if widths:
        yield start, len(widths)
