r"""Lines that are laid out already, for Rich to put in their place as they are."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from attncli.core.matrix import FloatArray
from attncli.core.message import N_, Message
from attncli.core.record import Record
from attncli.locale.fit import NO_BREAK, columns, fitted, wrap
from attncli.render import document
from attncli.render.document import (
    Bars,
    Block,
    Gap,
    Heading,
    Listing,
    Marks,
    Paragraph,
    Said,
    Say,
    Steps,
    Symbol,
    Verdict,
    Verdicts,
    say_in,
)
from attncli.render.formula import as_text
from attncli.render.names import cell_name
from attncli.render.numbers import number_text, padded
from attncli.render.run import lesson, opened_parts, prompt, source
from attncli.render.view import Item, Panel, View

_HEADINGS = {1: "bold", 2: "bold underline", 3: "bold"}
_TONES = {
    "strong": "bold", "aside": "dim", "right": "green", "wrong": "bold red", "false": "red", "remark": "yellow", "followed": "cyan",
    "advice": "italic", "reason": "italic dim",
}  # fmt: skip
#: Columns that the label of a line keeps, however narrow the screen is.
_LEAST_LABEL = 6


class Lines:
    """Lines in one style. Rich's Text would look for places to break each of them, at a quarter of a whole run's time."""

    def __init__(self, lines: Sequence[str], style: str = "") -> None:
        self.lines = lines
        self.style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        style = console.get_style(self.style) if self.style else None
        for line in self.lines:
            yield Segment(line, style)
            yield Segment.line()

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        width = max(map(cell_len, self.lines), default=0)
        return Measurement(width, width)


#: A matrix with more lines than this shows only its first ones, unless all were asked for.
MOST_LINES = 24
_FIRST_LINES = 8
#: Colours for attention weights, from faint to strong. Each names both its background and its foreground, so that it can
#: be read on light and on dark terminals alike (a test measures the contrast).
SHADES = ("", "grey100 on grey15", "grey100 on dark_blue", "grey100 on blue3", "bold grey100 on dodger_blue2")
#: Characters between two columns of numbers, and of the frame: "│ " + names + " │ " + numbers + " │".
_GAP = 2
_FRAME, _FRAME_WITH_NAMES = 4, 7


class MatrixColumn(Record):
    """A column of numbers as text: its name, its cells, and the width that holds both."""

    name: str
    cells: list[str]
    width: int


class MatrixTables:
    """The tables of one block of a step, for one console."""

    def __init__(self, view: View, item: Item, block: Panel, *, width: int, encoding: str, colour: bool) -> None:
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

    def _column(self, j: int) -> MatrixColumn:
        texts = [number_text(value, self.item.decimals) for value in self.block.values[: self.rows, j]]
        cells = padded([fitted(text, self.encoding) for text in texts])
        name = self._name(self.block.columns[j])
        return MatrixColumn(name, cells, max(map(cell_len, [name, *cells])))

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

    def _numbers(self, start: int, columns: list[MatrixColumn]) -> RenderableType:
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


#: Characters a line has where nothing says otherwise.
WIDTH = 80
#: Characters from which a reason is long enough not to be given twice.
_LONG = 120
#: Characters between two inputs side by side.
_BETWEEN = 3


def table_text(view: View) -> str:
    """The run as plain text."""
    console = Console(file=io.StringIO(), width=view.width or WIDTH, color_system=None, force_terminal=False)
    print_view(view, console)
    file = console.file
    assert isinstance(file, io.StringIO)
    return trimmed(file.getvalue())


def trimmed(text: str) -> str:
    """Lines without the spaces Rich pads them with."""
    return "\n".join(line.rstrip(" ") for line in text.split("\n"))


def print_view(view: View, console: Console, *, titled: bool = True) -> None:
    """Print a run to a Rich console: its title, inputs, a line of shapes, the steps, a summary last."""
    page = RunScreen(view, console)
    print_parts(page.parts(titled=titled), console)


def print_parts(parts: Iterable[RenderableType], console: Console) -> None:
    """Print renderables one below the other, reading nothing in them as markup."""
    console.print(Group(*parts), markup=False, highlight=False, emoji=False)


class Screen:
    """Prints blocks for one console."""

    def __init__(self, say: Say, *, width: int, encoding: str) -> None:
        self.said = say
        self.width = width
        self.encoding = encoding

    def fit(self, words: Said) -> str:
        return fitted(self.said(words), self.encoding)

    def cell(self, cell: Said | Symbol) -> str:
        return self.fit(as_text(cell.latex) if isinstance(cell, Symbol) else cell)

    def lines(self, words: Said, style: str = "", first: str = "", rest: str = "") -> Lines:
        """Words broken into lines as their language allows; lines that are there already stay."""
        broken = "\n".join(self._broken(line, first, rest) for line in self.fit(words).split("\n"))
        return Lines(broken.split("\n"), style)

    def _broken(self, line: str, first: str, rest: str) -> str:
        return wrap(line, self.width, first, rest)

    def printed(self, blocks: Iterable[Block]) -> Iterator[RenderableType]:
        for block in blocks:
            yield from self.block(block)

    def block(self, block: Block) -> Iterator[RenderableType]:
        match block:
            case Gap():
                yield Text()
            case Heading():
                if block.level > 1:
                    yield Text()
                yield self.lines(block.text, _HEADINGS[block.level])
            case Paragraph():
                yield self.lines(block.text, _TONES.get(block.tone, ""))
            case Listing():
                yield from self.listing(block)
            case document.Tabular():
                yield from self.table(block)
            case document.Sentences():
                yield from (self.lines(line.text, _TONES.get(line.tone, "")) for line in block.lines)
            case Verdicts():
                for verdict in block.verdicts:
                    yield from self.verdict(verdict)
            case Bars():
                from attncli.render.chart import WIDEST, Bar, bars

                rows = [Bar(self.fit(name), length, text) for name, length, text in block.rows]
                yield Lines(bars(rows, min(self.width, WIDEST), encoding=self.encoding), "cyan")
                yield Text()

    def listing(self, listing: Listing) -> Iterator[RenderableType]:
        """Names in a column, with formulas beside them that go on under their own beginning."""
        wide = max(columns(self.fit(entry.name)) for entry in listing.entries)
        for entry in listing.entries:
            style = _TONES.get(entry.tone, "")
            if not (entry.name or entry.sign):
                yield self.lines(entry.text, style)
                continue
            name, mark = self.fit(entry.name), f"{self.fit(entry.sign)} " if entry.sign else ""
            first = f"  {mark}{name}{' ' * (wide - columns(name) + 2)}" if wide else f"  {mark}"
            rest = " " * (columns(first) if columns(first) <= self.width // 2 else 4)
            yield self.lines(entry.text, style, first, rest)

    def verdict(self, verdict: Verdict) -> Iterator[RenderableType]:
        """The verdict on a step, and below it, indented, what there is to say."""
        from attncli.render.text import marked_lines

        style = _TONES[verdict.tone]
        heading = Text(overflow="fold")
        heading.append(self.fit(f"{verdict.sign} "), style=style)
        heading.append(self.fit(verdict.name), style="bold")
        yield heading.append(self.fit(f"  {verdict.words}"), style=style)
        for part in verdict.body:
            for line in marked_lines(part, self.width) if isinstance(part, Marks) else (part,):
                if isinstance(line, Paragraph):
                    yield self.lines(line.text, _TONES.get(line.tone, ""), "  ", "  ")
                    continue
                shown = Text("   ", overflow="fold")
                for text, wrong in zip(line.texts, line.wrong, strict=True):
                    shown.append(self.fit(text), style="bold red" if wrong else "")
                yield shown

    def table(self, table: document.Tabular) -> Iterator[RenderableType]:
        """As many columns side by side as fit, the others below with the labels again."""
        labels = [self.cell(row[0]) for row in table.rows]
        cells = [[self.cell(cell) for cell in row[1:]] for row in table.rows]
        heads = [[self.fit(line) for line in column.head] for column in table.columns[1:]]
        wide = [max(map(columns, [*head, *(row[i] for row in cells)])) for i, head in enumerate(heads)]
        label = max(_LEAST_LABEL, min(max(map(columns, labels)), self.width - max(wide) - _GAP))
        start = 0
        while start < len(wide):
            stop, used = start, label
            while stop < len(wide) and (stop == start or used + _GAP + wide[stop] <= self.width):
                used += _GAP + wide[stop]
                stop += 1
            yield Text()
            band = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, show_header=False)
            band.add_column(width=label, overflow="fold")
            for column in table.columns[1 + start : 1 + stop]:
                band.add_column(justify="right", no_wrap=True, style="bold" if column.strong else "")
            for line in range(len(heads[0])):
                band.add_row("", *(Text(head[line], "bold cyan") for head in heads[start:stop]))
            for text, row in zip(labels, cells, strict=True):
                if any(cell != "–" for cell in row[start:stop]):
                    style = "dim" if text.startswith(" ") else ""
                    band.add_row(Text(text, style), *(Text(cell, style) for cell in row[start:stop]))
            yield band
            start = stop


class RunScreen(Screen):
    """One run laid out for one console."""

    def __init__(self, view: View, console: Console) -> None:
        super().__init__(say_in(view.language), width=console.width, encoding=console.encoding)
        self.view = view
        self.console = console
        self.given: dict[str, str] = {}
        self.colour = console.color_system is not None and not console.no_color

    def text(self, text: str, style: str = "") -> Text:
        """Text that the console can show; never read as markup."""
        return Text(_broken(fitted(text, self.encoding), self.width), style=style, no_wrap=False, overflow="fold")

    def say(self, message: Message | str, style: str = "") -> Text:
        return self.text(self.view.say(message), style)

    def parts(self, *, titled: bool = True) -> Iterator[RenderableType]:
        """What to print, from top to bottom; without the title where something else has said it."""
        for screen in self.screens(titled=titled):
            yield from screen

    def screens(self, *, titled: bool = True) -> Iterator[Iterator[RenderableType]]:
        """The same in pieces that can be shown one after another: the beginning, every step, the ending."""
        yield self._beginning(titled=titled)
        phase = ""
        number = 0
        beginning = opened_parts(self.view.steps) if len(self.view.run.shown) == len(self.view.run.graph.steps) else {}
        for item in self.view.steps:
            title = _PHASES.get(item.phase, phase)
            number += item.step is not None
            yield self._step(
                item,
                number if item.step is not None else None,
                (title if title != phase else "", beginning.get(item.id)),
            )
            phase = title
        yield self._closing()

    def _beginning(self, *, titled: bool) -> Iterator[RenderableType]:
        view = self.view
        if titled:
            yield self.text(view.title(), "bold")
        asked = prompt(view)
        if asked is not None:
            yield self.say(asked)
        if view.inputs and len(view.run.shown) == len(view.run.graph.steps):
            yield Text()
            yield from self.inputs()
            yield self._shapes()
        if view.expand and any(view.is_about(item) for item in view.steps):
            yield self.lines(view.why_about(), "italic dim")
        if view.expand:
            cells = sum(item.values.size for item in view.steps if item.step is not None)
            if cells > _MANY_CELLS:
                yield self.say(
                    Message(
                        N_("The arithmetic of {count} cells follows. Of one step only: --step ID."), count=f"{cells:,}"
                    ),
                    "dim",
                )

    def _step(
        self, item: Item, number: int | None, headings: tuple[str, Message | str | None]
    ) -> Iterator[RenderableType]:
        yield Text()
        for heading, style in zip(headings, ("bold underline", "bold cyan"), strict=True):
            if heading:
                yield self.say(heading, style)
                yield Text()
        yield from self.item(item, number)

    def _closing(self) -> Iterator[RenderableType]:
        yield from self._ending()
        yield from self.parts_of_lesson()

    def _broken(self, line: str, first: str, rest: str) -> str:
        """Broken at spaces, which stay as they are, where nothing is wider than a letter."""
        if first or columns(line) > len(line):
            return wrap(line, self.width, first, rest)
        return "\n".join(textwrap.wrap(line, self.width, break_on_hyphens=False))

    def block(self, block: Block) -> Iterator[RenderableType]:
        if not isinstance(block, Steps):
            yield from super().block(block)
            return
        for step in block.steps:
            yield Text()
            yield from RunScreen(step.view, self.console).item(step.item, None)

    def parts_of_lesson(self) -> Iterator[RenderableType]:
        """What a worked example says after its steps, and where its numbers come from."""
        for block in lesson(self.view):
            yield from self.block(block)
        where = source(self.view)
        if where is not None:
            yield Text()
            yield self.say(where, "dim")

    def inputs(self) -> Iterator[RenderableType]:
        """What is given, side by side as far as it fits."""
        yield from self.side_by_side(self.view.inputs)

    def _shapes(self) -> Text:
        steps = [item for item in self.view.steps if item.phase == "forward"]
        results = " → ".join(_with_parts(steps if len(steps) <= _MOST_SHAPES else _last_of_parts(steps)))
        inputs = ", ".join(_with_parts(self.view.inputs))
        shapes = self.view.say(Message(N_("Shapes: {inputs} → {results}"), inputs=inputs, results=results))
        return self.text(wrap(shapes, self.width), "dim")

    def item(self, item: Item, number: int | None) -> Iterator[RenderableType]:
        """One step: heading with formula, matrix, meaning, arithmetic."""
        yield self._heading(item, number)
        yield from self._blocks(self._matrices(item))
        if item.why is not None:
            yield self.lines(self._reason(item, item.why), "italic")
        if self.view.expand:
            for name, arithmetic in self.view.arithmetic(item):
                yield self._hanging(f"{name} = ", arithmetic)

    def _reason(self, item: Item, why: Message) -> Message:
        """Why a step is there: the first time in full; a long reason that comes again points to where it was given."""
        first = self.given.setdefault(why.template, item.id)
        if first == item.id or len(why.template) < _LONG:
            return why
        return Message(N_("For the same reason as at {step}."), step=first)

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

    def _hanging(self, name: str, arithmetic: str) -> RenderableType:
        """A line of arithmetic whose continuation lines start under its own beginning."""
        grid = Table.grid(padding=0)
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        label = fitted(name, self.encoding)
        if cell_len(label) > self.width // 2:
            return self.text(f"{name}{arithmetic}")
        grid.add_row(Text(label, style="dim"), self.text(arithmetic))
        return grid

    def _matrices(self, item: Item) -> list[MatrixTables]:
        return [
            MatrixTables(self.view, item, block, width=self.width, encoding=self.encoding, colour=self.colour)
            for block in item.panels
        ]

    def side_by_side(self, items: tuple[Item, ...]) -> Iterator[RenderableType]:
        """Inputs next to each other as long as they fit."""
        row: list[tuple[int, RenderableType]] = []
        for item in items:
            heading, matrices = self._heading(item, None), self._matrices(item)
            width = min(self.width, max([cell_len(heading.plain), *(matrix.natural_width for matrix in matrices)]))
            if row and sum(w + _BETWEEN for w, _ in row) + width > self.width:
                yield _grid(row)
                row = []
            row.append((width, Group(heading, *self._blocks(matrices))))
        if row:
            yield _grid(row)

    def _blocks(self, matrices: list[MatrixTables]) -> Iterator[RenderableType]:
        for matrix in matrices:
            if matrix.block.head is not None:
                yield self.say(Message(N_("head {number}"), number=matrix.block.head), "dim")
            yield from matrix.parts()

    def _ending(self) -> Iterator[RenderableType]:
        view = self.view
        lines = [*view.notes, *view.summary]
        if lines or view.run.verification is not None:
            yield Text()
        for line in lines:
            yield self.say(line, "bold" if line.kind in ("result", "loss") else "")
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
            yield (
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

    def _errors(self, id: str, errors: FloatArray) -> Iterator[RenderableType]:
        for index, error in [(index, errors[index]) for index in _indices(errors.shape)]:
            cell = ",".join(str(i + 1) for i in index)
            yield (self.text(f"  G_{id}[{cell}]  {error:.1e}"))


_PHASES = {
    "forward": N_("Forward: from the inputs to the result"),
    "upstream": N_("Backward: from the loss back to every input"),
    "backward": N_("Backward: from the loss back to every input"),
    "update": N_("Update: one step of learning"),
}


#: The first character that takes two columns of a terminal.
_FIRST_WIDE = "\u1100"


#: Cells from which on it is said how many lines of arithmetic there will be.
_MANY_CELLS = 100

#: Steps whose shapes are listed; of a longer calculation the last one of each part.
_MOST_SHAPES = 40


def _with_parts(items: Sequence[Item]) -> Iterator[str]:
    """Names and shapes; where a part of the model begins (self., norm1.) it is named."""
    part = ""
    for item in items:
        own = item.id.rpartition(".")[0]
        name = f"{own}: {item.name}" if own and own != part else item.name
        part = own
        yield f"{name}{NO_BREAK}{item.shape}"


def _last_of_parts(items: Sequence[Item]) -> list[Item]:
    parts = [item.id.rpartition(".")[0] for item in items]
    return [item for item, part, following in zip(items, parts, [*parts[1:], None], strict=True) if part != following]


def _broken(text: str, width: int) -> str:
    """Text whose Chinese lines are broken: they have few spaces, the only places where Rich would break them."""
    if not text or max(text) < _FIRST_WIDE:
        return text
    lines = text.split("\n")
    return "\n".join(wrap(line, width) if cell_len(line) > max(width, len(line)) else line for line in lines)


def _indices(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    import numpy as np

    return list(np.ndindex(*shape))


def _grid(row: list[tuple[int, RenderableType]]) -> RenderableType:
    if len(row) == 1:
        return row[0][1]
    grid = Table.grid()
    for i, (width, _) in enumerate(row):
        grid.add_column(width=width + (_BETWEEN if i < len(row) - 1 else 0))
    grid.add_row(*[part for _, part in row])
    return grid
