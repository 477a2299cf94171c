"""Blocks on a screen: lines of a width, with the signs of an encoding, and what stands out in them.

What is laid out here needs no terminal, so a file gets the same lines. Rich only paints them: it knows which colours a terminal
has. Where a plain text is asked for, it is not even imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise, zip_longest
from typing import TYPE_CHECKING

from attncli.core.message import N_, Message
from attncli.core.record import Record
from attncli.core.report import Maps, Plot, Spans
from attncli.locale.fit import NO_BREAK, columns, fitted, padded, wrap
from attncli.render.document import (
    Bars,
    Block,
    Branch,
    Code,
    Columns,
    Counts,
    Fields,
    Gap,
    Grid,
    Grids,
    Heading,
    Listing,
    Marks,
    Page,
    Paragraph,
    Said,
    Say,
    Sentences,
    ShownStep,
    Steps,
    StepVerdict,
    Symbol,
    Tabular,
    Verdicts,
    say_in,
)
from attncli.render.formula import as_text
from attncli.render.text import aligned, cell_name, number_text
from attncli.render.view import Panel, View

if TYPE_CHECKING:
    from rich.console import Console

#: A line: texts, and how each of them looks, in Rich's words.
Line = list[tuple[str, str]]

#: Characters a line has where nothing says otherwise, and one of a worksheet in a file.
WIDTH, SHEET_WIDTH = 80, 78
_HEADINGS = {1: "bold", 2: "bold underline", 3: "bold"}
_TONES = {
    "strong": "bold", "aside": "dim", "right": "green", "wrong": "bold red", "false": "red", "remark": "yellow", "followed": "cyan",
    "advice": "italic", "reason": "italic dim", "part": "bold cyan",
}  # fmt: skip
#: Colours for attention weights, from faint to strong. Each names both its background and its foreground, so that it can
#: be read on light and on dark terminals alike (a test measures the contrast).
SHADES = ("", "grey100 on grey15", "grey100 on dark_blue", "grey100 on blue3", "bold grey100 on dodger_blue2")
#: A matrix with more lines than this shows only its first ones, unless all were asked for.
MOST_LINES = 24
_FIRST_LINES = 8
#: Left end, line, crossing and right end of the rules of a frame, and what stands between its columns.
_FRAME = "╭─┬╮", "├─┼┤", "╰─┴╯", "│"
_ASCII_FRAME = "+--+", "|-+|", "+--+", "|"
#: What stands before the parts of a tree: a line going on, one that branches off, the last one.
_GUIDES = "│   ", "├── ", "└── "
_ASCII_GUIDES = "|   ", "+-- ", "`-- "
#: Between two columns, and between two matrices side by side.
_GAP, _BETWEEN = "  ", "   "
#: Columns that the label of a line keeps, however narrow the screen is.
_LEAST_LABEL = 6
#: Columns that a text in a table may take, and that a Chinese header has at least: four signs.
_LONGEST_CELL, _LEAST_OF_CHINESE = 24, 8
#: Characters of a cell beyond which a marked matrix is written cell by cell.
_LEAST_ROOM = 8


def plain_text(blocks: Iterable[Block], say: Say, *, width: int, encoding: str = "utf-8") -> str:
    """Blocks as plain text."""
    lines = Screen(say, width=width, encoding=encoding).lines(blocks)
    return "".join("".join(text for text, _ in line).rstrip(" ") + "\n" for line in lines)


def coloured_text(blocks: Iterable[Block], say: Say, console: Console) -> None:
    """Print blocks to a Rich console, in what it has of colours."""
    from rich.segment import Segment, Segments

    colour = console.color_system is not None and not console.no_color
    screen = Screen(say, width=console.width, encoding=console.encoding, colour=colour)
    segments = []
    for line in screen.lines(blocks):
        while line and not line[-1][0].strip(" "):
            line.pop()
        last = len(line) - 1
        for i, (text, style) in enumerate(line):
            shown = text.rstrip(" ") if i == last else text
            segments.append(Segment(shown, console.get_style(style) if style else None))
        segments.append(Segment.line())
    console.print(Segments(segments), end="", crop=False)


def sheets(pages: Sequence[Page], width: int = SHEET_WIDTH) -> str:
    """Worksheets for a screen or a plain printer."""
    return f"\n{'═' * width}\n\n".join(plain_text(page.blocks, str, width=width) for page in pages)


def table_text(view: View) -> str:
    """The run as plain text."""
    from attncli.render.run import screen

    return plain_text(screen(view), say_in(view.language), width=view.width or WIDTH)


def _wide(line: Line) -> int:
    return sum(columns(text) for text, _ in line)


def _folded(line: Line, width: int) -> Iterator[Line]:
    """A line as several, broken as its words allow, each word looking as before."""
    if _wide(line) <= width:
        yield line
        return
    signs = [(sign, style) for text, style in line for sign in text]
    at = 0
    for broken in wrap("".join(sign for sign, _ in signs), width).split("\n"):
        found = []
        for sign in broken:
            while signs[at][0] != sign:  # a space where the line was broken
                at += 1
            found.append(signs[at])
            at += 1
        yield [("".join(sign for sign, _ in same), style) for style, same in groupby(found, key=lambda one: one[1])]


class Screen:
    """Prints blocks for one width and one encoding; `colour`: attention weights may be shaded."""

    def __init__(self, say: Say, *, width: int, encoding: str, colour: bool = False) -> None:
        self.say = say
        self.width = width
        self.encoding = encoding
        self.colour = colour

    def fit(self, words: Said) -> str:
        """Words in signs that the encoding has; a space that keeps a line together stays one until the line is broken."""
        return NO_BREAK.join(fitted(part, self.encoding) for part in self.say(words).split(NO_BREAK))

    def wrapped(self, words: Said, style: str = "", first: str = "", rest: str = "") -> Iterator[Line]:
        """Words broken into lines as their language allows; lines that are there already stay."""
        for line in self.fit(words).split("\n"):
            for broken in wrap(line, self.width, first, rest).split("\n"):
                yield [(broken, style)]

    def lines(self, blocks: Iterable[Block]) -> Iterator[Line]:
        for block in blocks:
            yield from self.block(block)

    def block(self, block: Block) -> Iterator[Line]:
        match block:
            case Gap():
                yield []
            case Heading():
                if block.level > 1:
                    yield []
                yield from self.wrapped(block.text, _HEADINGS[block.level])
            case Paragraph():
                yield from self.paragraph(block)
            case Sentences():
                for line in block.lines:
                    yield from self.paragraph(line)
            case Code():
                yield from ([(line, _TONES.get(block.tone, ""))] for line in self.fit(block.text).split("\n"))
            case Listing():
                yield from self.listing(block)
            case Columns():
                yield from self.columns(block)
            case Tabular():
                yield from self.bands(block) if block.labelled else self.table(block)
            case Counts():
                yield from self.counts(block)
            case Steps():
                yield from self.side_by_side(block.steps) if block.aside else self.steps(block.steps)
            case Verdicts():
                for verdict in block.verdicts:
                    yield from self.verdict(verdict)
            case Branch():
                yield from self.tree(block)
            case Fields():
                yield [("  ".join(f"{field} ____________________" for field in block.names), "")]
            case Grids():
                for grid in block.grids:
                    yield []
                    yield from self.grid(grid)
            case Bars():
                yield from self.bars(block)
            case Plot() | Spans() | Maps():
                from attncli.render.chart import drawn

                yield from ([(line, "")] for line in drawn(block, self.say, self.width, self.encoding))

    def paragraph(self, block: Paragraph, indent: int = 0) -> Iterator[Line]:
        first = " " * (indent + block.indent)
        yield from self.wrapped(block.text, _TONES.get(block.tone, ""), first, first + " " * block.hanging)

    def listing(self, listing: Listing) -> Iterator[Line]:
        """Names in a column, with formulas beside them that go on under their own beginning."""
        wide = max(columns(self.fit(entry.name)) for entry in listing.entries)
        for entry in listing.entries:
            style = _TONES.get(entry.tone, "")
            if not (entry.name or entry.sign):
                yield from self.wrapped(entry.text, style)
                continue
            name, mark = self.fit(entry.name), f"{self.fit(entry.sign)} " if entry.sign else ""
            indent = " " * listing.indent
            first = f"{indent}{mark}{padded(name, wide)}  " if wide else f"{indent}{mark}"
            rest = " " * (columns(first) if columns(first) <= self.width // 2 else listing.indent + 2)
            yield from self.wrapped(entry.text, style, first, rest)

    def bars(self, block: Bars) -> Iterator[Line]:
        from attncli.render.chart import Bar, bars

        rows = [Bar(self.fit(name), length, text) for name, length, text in block.rows]
        lines = bars(rows, self.width, encoding=self.encoding, is_framed=block.is_framed)
        yield from ([(line, "cyan" if block.is_framed else "")] for line in lines)
        if block.is_framed:
            yield []

    def columns(self, block: Columns) -> Iterator[Line]:
        """Under one another; where that is wider than the screen, one after the other in each line."""
        rows = [[self.fit(cell) for cell in row] for row in block.rows]
        widths = [max(map(columns, cells)) for cells in zip(*rows, strict=True)]
        is_table = sum(widths) + len(_GAP) * (len(widths) - 1) <= self.width
        for row in rows:
            cells = map(padded, row, widths) if is_table else filter(None, row)
            yield from _folded([(_GAP.join(cells).rstrip(" "), "")], self.width)

    # Steps.

    def steps(self, steps: Sequence[ShownStep]) -> Iterator[Line]:
        """One below the other: what each means, and its arithmetic where that was asked for."""
        for step in steps:
            yield []
            yield from self.step(step, self.width)
            if step.why is not None:
                yield from self.wrapped(step.why, "italic")
            if step.view.expand:
                yield from self.arithmetic(step)

    def step(self, step: ShownStep, width: int) -> Iterator[Line]:
        """A step: its formula, and below it its numbers."""
        yield from _folded(self.step_heading(step), width)
        for matrix in self.matrices(step):
            yield from matrix.lines(width)

    def step_heading(self, step: ShownStep) -> Line:
        item = step.item
        line = [(f"{step.number}. ", "bold")] if step.number else []
        line.append((item.id, "bold magenta" if item.phase == "backward" else "bold cyan"))
        formula = item.formula_text if item.step is not None else ""
        if formula or item.name != item.id:
            line.append((f"   {item.name} = {formula}" if formula else f"   {item.name}", ""))
        return [(fitted(text, self.encoding), style) for text, style in [*line, (f"   {item.shape}", "dim")]]

    def arithmetic(self, step: ShownStep) -> Iterator[Line]:
        """The arithmetic of every cell, whose lines go on under their own beginning."""
        for name, text in step.view.arithmetic(step.item):
            label = fitted(f"{name} = ", self.encoding)
            if columns(label) > self.width // 2:
                yield from self.wrapped(f"{label}{text}")
                continue
            for i, line in enumerate(wrap(fitted(text, self.encoding), self.width - columns(label)).split("\n")):
                yield [(" " * columns(label) if i else label, "dim"), (line, "")]

    def matrices(self, step: ShownStep) -> Iterator[ShownMatrix]:
        return (ShownMatrix(self, step, panel) for panel in step.item.panels)

    def side_by_side(self, steps: Sequence[ShownStep]) -> Iterator[Line]:
        """Steps next to each other as long as they fit."""
        row: list[tuple[int, ShownStep]] = []
        for step in steps:
            widths = (matrix.natural_width for matrix in self.matrices(step))
            width = min(self.width, max(_wide(self.step_heading(step)), *widths))
            if row and sum(wide + len(_BETWEEN) for wide, _ in row) + width > self.width:
                yield from self.row(row)
                row = []
            row.append((width, step))
        if row:
            yield from self.row(row)

    def row(self, row: list[tuple[int, ShownStep]]) -> Iterator[Line]:
        if len(row) == 1:
            yield from self.step(row[0][1], self.width)
            return
        for lines in zip_longest(*(self.step(step, width) for width, step in row), fillvalue=Line()):
            together = Line()
            for (width, _), line in zip(row, lines, strict=True):
                together += [*line, (" " * (width - _wide(line)) + _BETWEEN, "")]
            yield together

    # A marked sheet, and the tree of a number.

    def verdict(self, verdict: StepVerdict) -> Iterator[Line]:
        """The verdict on a step, and below it, indented, what there is to say."""
        style = _TONES[verdict.tone]
        heading = [(f"{verdict.sign} ", style), (verdict.name, "bold"), (f"  {verdict.words}", style)]
        yield from _folded([(self.fit(text), own) for text, own in heading], self.width)
        for part in verdict.body:
            for line in marked_lines(part, self.width) if isinstance(part, Marks) else (part,):
                if isinstance(line, Paragraph):
                    yield from self.paragraph(line, 2)
                    continue
                cells = zip(line.texts, line.wrong, strict=True)
                yield [("   ", ""), *((self.fit(text), "bold red" if wrong else "") for text, wrong in cells)]

    def tree(self, branch: Branch, first: str = "", rest: str = "") -> Iterator[Line]:
        """A name, what it comes to, and below it what that was made from."""
        line = [(self.fit(branch.name), "bold"), (self.fit(branch.text), "")]
        for i, folded in enumerate(_folded(line, self.width - len(first))):
            yield [(rest if i else first, "dim"), *folded]
        down, beside, last = _GUIDES if self.encoding.startswith("utf") else _ASCII_GUIDES
        for below in branch.branches[:-1]:
            yield from self.tree(below, rest + beside, rest + down)
        for below in branch.branches[-1:]:
            yield from self.tree(below, rest + last, rest + " " * len(down))

    # Tables.

    def cell(self, cell: Said | Symbol) -> str:
        return self.fit(as_text(cell.latex) if isinstance(cell, Symbol) else cell)

    def bands(self, table: Tabular) -> Iterator[Line]:
        """As many columns side by side as fit, the others below with the labels again."""
        rows = [[self.cell(cell) for cell in row] for row in table.rows]
        heads = [[self.fit(line) for line in column.head] for column in table.columns]
        wide = [max(columns(text) for text in (*head, *(row[j] for row in rows))) for j, head in enumerate(heads)]
        label = max(_LEAST_LABEL, min(wide[0], self.width - max(wide[1:]) - len(_GAP)))
        for group in _groups(wide[1:], self.width - label):
            yield []
            shown = [j + 1 for j in group]
            for texts in zip(*(heads[j] for j in shown), strict=True):
                cells = ((_GAP + _right(text, wide[j]), "bold cyan") for text, j in zip(texts, shown, strict=True))
                yield [(" " * label, ""), *cells]
            for row in rows:
                if any(row[j] != "–" for j in shown):
                    yield from self.band(row, label, [(j, wide[j], table.columns[j].strong) for j in shown])

    def band(self, row: list[str], label: int, shown: list[tuple[int, int, bool]]) -> Iterator[Line]:
        """A line of a band; a label that is too long goes on below it."""
        indent = " " * (len(row[0]) - len(row[0].lstrip()))
        style = "dim" if indent else ""
        numbers = [(_GAP + _right(row[j], wide), f"{style} bold" if strong else style) for j, wide, strong in shown]
        first, *rest = wrap(row[0].lstrip(), label, indent).split("\n")
        yield [(padded(first, label), style), *numbers]
        yield from ([(line, style)] for line in rest)

    def counts(self, block: Counts) -> Iterator[Line]:
        """How often something was counted: a table, or where that is wider than the screen a line a name."""
        heads = [self.fit(words) for words, _ in block.kinds]
        styles = [_TONES.get(tone, "") for _, tone in block.kinds]
        names = [self.fit(name) for name, _ in block.rows]
        first = max(map(columns, names))
        most = len(str(max(max(counts) for _, counts in block.rows)))
        widths = [max(columns(head), most) for head in heads]
        is_table = first + sum(len(_GAP) + wide for wide in widths) <= self.width
        if is_table:
            above = "".join(_GAP + _right(head, wide) for head, wide in zip(heads, widths, strict=True))
            yield [(" " * first + above, "dim")]
        for name, (_, counts) in zip(names, block.rows, strict=True):
            if is_table:
                cells = [_GAP + _right(str(count or ""), wide) for count, wide in zip(counts, widths, strict=True)]
                yield [(padded(name, first), ""), *zip(cells, styles, strict=True)]
            else:
                words = " · ".join(f"{head} {count}" for head, count in zip(heads, counts, strict=True) if count)
                yield from self.wrapped(words, "", f"{name}  ", "  ")

    def table(self, table: Tabular) -> Iterator[Line]:
        """As many columns side by side as fit, numbers with their points under one another; the first column begins each band."""
        sides = [self.column(table, j) for j in range(len(table.columns))]
        least = [side.least for side in sides]
        starts = [j for j, column in enumerate(table.columns) if j and not column.joined]
        parts = [range(start, stop) for start, stop in pairwise([*starts, len(sides)])]
        room = [sum(least[j] + len(_GAP) for j in part) - len(_GAP) for part in parts]
        for number, group in enumerate(_groups(room, self.width - least[0])):
            if number:
                yield []
            yield from self.beside([sides[0], *(sides[j] for i in group for j in parts[i])])

    def column(self, table: Tabular, j: int) -> TextColumn:
        texts = [self.short(row[j]) for row in table.rows]
        is_number = table.columns[j].is_number
        texts = aligned(texts) if is_number else texts
        wide = max(map(columns, texts), default=0)
        cells = [_right(text, wide) if is_number else padded(text, wide) for text in texts]
        return TextColumn(" ".join(map(self.fit, table.columns[j].head)), cells, is_number)

    def short(self, cell: Said | Symbol) -> str:
        if not isinstance(cell, str):
            return self.cell(cell)
        from attncli.render.chart import shortened

        return shortened(cell, _LONGEST_CELL, self.encoding)

    def beside(self, group: list[TextColumn]) -> Iterator[Line]:
        """These columns: what stands above them, a rule, and their cells."""
        widths = _widths(group, self.width - len(_GAP) * (len(group) - 1))
        heads = [wrap(side.name, wide).split("\n") for side, wide in zip(group, widths, strict=True)]
        high = max(map(len, heads))
        above = zip(*([""] * (high - len(head)) + head for head in heads), strict=True)
        rule = "─" if self.encoding.startswith("utf") else "-"
        for texts in (*above, [rule * wide for wide in widths], *zip(*(side.cells for side in group), strict=True)):
            cells = (
                _right(text, wide) if side.is_number else padded(text, wide)
                for text, wide, side in zip(texts, widths, group, strict=True)
            )
            yield [(_GAP.join(cells), "")]

    def grid(self, grid: Grid) -> Iterator[Line]:
        """A matrix of a worksheet, with what is to be filled in as lines to write on."""
        symbol = as_text(grid.symbol)
        yield from self.wrapped(f"{grid.name}{'' if symbol == grid.name else f'  {symbol}'}   {grid.note}")
        named = any(grid.rows)
        rows = [
            [*([name] if named else []), *("_______" if cell is None else cell for cell in row)]
            for name, row in zip(grid.rows, grid.cells, strict=True)
        ]
        if any(grid.columns):
            rows.insert(0, [*([""] if named else []), *grid.columns])
        widths = [max(map(columns, cells)) for cells in zip(*rows, strict=True)]
        for row in rows:
            yield [("  " + _GAP.join(_right(cell, wide) for cell, wide in zip(row, widths, strict=True)), "")]
        for line in grid.below:
            yield from self.wrapped(line, "", "  - ", "    ")


class TextColumn(Record):
    """A column of a table, ready: what stands above it, its cells as text of one width, and whether they are numbers."""

    name: str
    cells: list[str]
    is_number: bool

    @property
    def least(self) -> int:
        """Columns that it needs: for its cells, and for the longest word above them."""
        return max(1, *map(_columns_of_word, self.name.split()), *map(columns, self.cells))


def _columns_of_word(word: str) -> int:
    """A Latin word stays whole; Chinese has places to break, but not after each sign."""
    wide = columns(word)
    return wide if wide == len(word) else min(wide, _LEAST_OF_CHINESE)


def _widths(group: list[TextColumn], room: int) -> list[int]:
    """Room for every column: what it needs, and what is left over goes where the most lines stand above it."""
    widths = [side.least for side in group]
    for _ in range(room - sum(widths)):
        heights = [wrap(side.name, wide).count("\n") for side, wide in zip(group, widths, strict=True)]
        if not any(heights):
            break
        widths[heights.index(max(heights))] += 1
    return widths


def _groups(widths: Sequence[int], room: int) -> Iterator[list[int]]:
    """Which of these stand side by side, a gap before each of them, in so many columns; at least one."""
    group: list[int] = []
    for i, width in enumerate(widths):
        if group and sum(widths[j] + len(_GAP) for j in group) + len(_GAP) + width > room:
            yield group
            group = []
        group.append(i)
    yield group


def _right(text: str, width: int) -> str:
    return " " * (width - columns(text)) + text


# A matrix in a frame.


class MatrixColumn(Record):
    """A column of numbers as text: its name, its cells, and the width that holds both."""

    name: str
    cells: list[str]
    width: int


class ShownMatrix:
    """A matrix of a step on a screen, in a frame with the names of its rows and columns."""

    def __init__(self, screen: Screen, step: ShownStep, panel: Panel) -> None:
        self.screen = screen
        self.step = step
        self.panel = panel
        rows, across = panel.values.shape
        self.rows = self._shown(rows)
        self.names = [self._name(name) for name in panel.rows[: self.rows]]
        self.columns = [self._column(j) for j in range(self._shown(across))]
        self.name_width = max(map(columns, self.names), default=0)
        #: Characters of the frame: "│ " + names + " │ " + numbers + " │".
        self.frame = self.name_width + 7 if self.name_width else 4

    def _shown(self, lines: int) -> int:
        return lines if self.step.view.full or lines <= MOST_LINES else _FIRST_LINES

    def _name(self, name: str) -> str:
        """A row's or column's name; a very long one is cut, so that the numbers keep their room."""
        text, most = fitted(name, self.screen.encoding), max(8, self.screen.width // 4)
        if columns(text) <= most:
            return text
        while columns(text) > most - 3:
            text = text[:-1]
        return text.rstrip() + "..."

    def _column(self, j: int) -> MatrixColumn:
        texts = [number_text(value, self.step.item.decimals) for value in self.panel.values[: self.rows, j]]
        cells = aligned([fitted(text, self.screen.encoding) for text in texts])
        name = self._name(self.panel.columns[j])
        return MatrixColumn(name, cells, max(map(columns, [name, *cells])))

    @property
    def natural_width(self) -> int:
        """Characters the matrix takes side by side with others."""
        return self.frame + sum(column.width + len(_GAP) for column in self.columns) - len(_GAP)

    def lines(self, width: int) -> Iterator[Line]:
        """As many columns a frame as fit the screen; one number a line where even one does not fit."""
        if self.panel.head is not None:
            yield from _folded([(self.screen.fit(Message(N_("head {number}"), number=self.panel.head)), "dim")], width)
        room = self.screen.width - self.frame
        if self.columns and max(column.width for column in self.columns) > room:
            yield from self._one_a_line(width)
        elif self.columns:
            for group in _groups([column.width for column in self.columns], room + len(_GAP)):
                yield from self._framed(group)
        if (self.rows, len(self.columns)) != self.panel.values.shape:
            yield from _folded([(self.screen.fit(self._cut()), "yellow")], width)

    def _framed(self, group: list[int]) -> Iterator[Line]:
        top, middle, bottom, side = _FRAME if self.screen.encoding.startswith("utf") else _ASCII_FRAME
        shown = [self.columns[j] for j in group]
        widths = [self.name_width] * bool(self.name_width) + [sum(one.width + len(_GAP) for one in shown) - len(_GAP)]

        def rule(signs: str) -> Line:
            left, line, between, right = tuple(signs)
            return [(left + between.join(line * (wide + 2) for wide in widths) + right, "")]

        def row(name: str, numbers: Line, style: str = "") -> Line:
            lead = [(side, ""), (f" {padded(name, self.name_width)} ", "dim")] if self.name_width else []
            return [*lead, (f"{side} ", ""), *numbers, (f" {side}", "")]

        yield rule(top)
        if any(one.name for one in shown):
            yield row("", [(_GAP.join(_right(one.name, one.width) for one in shown), "dim")])
            yield rule(middle)
        for i, name in enumerate(self.names):
            yield row(name, self._numbers(i, group))
        yield rule(bottom)

    def _numbers(self, i: int, group: list[int]) -> Line:
        """A line of numbers; attention weights have a background where there is colour."""
        cells = [_right(self.columns[j].cells[i], self.columns[j].width) for j in group]
        if not (self.screen.colour and self.step.item.weights):
            return [(_GAP.join(cells), "")]
        line = Line()
        for cell, j in zip(cells, group, strict=True):
            share = float(self.panel.values[i, j])
            shade = SHADES[min(len(SHADES) - 1, 1 + int(share * (len(SHADES) - 1)))] if share > 0 else ""
            line += [*([(_GAP, "")] if line else []), (cell, shade)]
        return line

    def _one_a_line(self, width: int) -> Iterator[Line]:
        for i in range(self.rows):
            for j, column in enumerate(self.columns):
                name = cell_name(self.step.item.name, self.panel.index(i, j), self.step.view.layout)
                text = fitted(f"{name} = ", self.screen.encoding) + column.cells[i].strip()
                yield from _folded([(text, "")], width)

    def _cut(self) -> Message:
        rows, across = self.panel.values.shape
        return Message(
            N_(
                "Shown: {shown_rows} of {all_rows} rows and {shown_columns} of {all_columns} columns. All of it: --full."
            ),
            shown_rows=self.rows,
            all_rows=rows,
            shown_columns=len(self.columns),
            all_columns=across,
        )


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
