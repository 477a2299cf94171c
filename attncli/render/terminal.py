"""Blocks on a screen: lines of a width, with the signs of an encoding, and what stands out in them.

What is laid out here needs no terminal, so a file gets the same lines. Rich only paints them: it knows which colours a terminal
has. Where a plain text is asked for, it is not even imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING

from attncli.core.report import Maps, Plot, Span, Spans
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
    Sentences,
    ShownStep,
    Speaker,
    Steps,
    StepVerdict,
    StepVerdicts,
    Symbol,
    Tabular,
    say_in,
)
from attncli.render.formula import as_text
from attncli.render.tables import (
    GAP,
    Room,
    ShownMatrix,
    StyledLine,
    TextColumn,
    beside,
    folded,
    groups,
    marked_lines,
    right,
    wide_of,
)
from attncli.render.text import aligned, shortened
from attncli.render.view import View

if TYPE_CHECKING:
    from rich.console import Console

#: Characters a line has where nothing says otherwise, and one of a worksheet in a file.
WIDTH, SHEET_WIDTH = 80, 78
_HEADINGS = {1: "bold", 2: "bold underline", 3: "bold"}
_TONES = {
    "strong": "bold", "aside": "dim", "right": "green", "wrong": "bold red", "false": "red", "remark": "yellow", "followed": "cyan",
    "advice": "italic", "reason": "italic dim", "part": "bold cyan",
}  # fmt: skip
#: What stands before the parts of a tree: a line going on, one that branches off, the last one.
_GUIDES = "│   ", "├── ", "└── "
_ASCII_GUIDES = "|   ", "+-- ", "`-- "
#: Between two matrices side by side.
_BETWEEN = "   "
#: Columns that the label of a line keeps, however narrow the screen is.
_LEAST_LABEL = 6
#: Columns that a text in a table may take.
_LONGEST_CELL = 24


def plain_text(blocks: Iterable[Block], say: Speaker, *, width: int, encoding: str = "utf-8") -> str:
    """Blocks as plain text."""
    lines = Screen(say, width=width, encoding=encoding).lines(blocks)
    return "".join("".join(text for text, _ in line).rstrip(" ") + "\n" for line in lines)


def coloured_text(blocks: Iterable[Block], say: Speaker, console: Console) -> None:
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


def sheets(pages: Sequence[Page]) -> str:
    """Worksheets for a plain printer."""
    between = f"\n{'═' * SHEET_WIDTH}\n\n"
    return between.join(plain_text(page.blocks, str, width=SHEET_WIDTH) for page in pages)


def table_text(view: View) -> str:
    """The run as plain text."""
    from attncli.render.run import screen

    return plain_text(screen(view), say_in(view.language), width=view.width or WIDTH)


class Screen(Room):
    """Prints blocks; where there is colour, attention weights are shaded."""

    def wrapped(self, words: Said, style: str = "", first: str = "", rest: str = "") -> Iterator[StyledLine]:
        """Words broken into lines as their language allows; lines that are there already stay."""
        for line in self.fit(words).split("\n"):
            for broken in wrap(line, self.width, first, rest).split("\n"):
                yield [(broken, style)]

    def lines(self, blocks: Iterable[Block]) -> Iterator[StyledLine]:
        for block in blocks:
            yield from self.block(block)

    def block(self, block: Block) -> Iterator[StyledLine]:
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
            case StepVerdicts():
                for verdict in block.verdicts:
                    yield from self.verdict(verdict)
            case Branch():
                yield from self.tree(block)
            case Fields():
                lines = (NO_BREAK.join((*field.split(), "_" * 20)) for field in block.names)
                yield from self.wrapped(GAP.join(lines))
            case Grids():
                for grid in block.grids:
                    yield []
                    yield from self.grid(grid)
            case Bars():
                yield from self.bars(block)
            case Plot() | Spans() | Maps():
                from attncli.render.chart import drawn

                yield from ([(line, "")] for line in drawn(block, self.say, self.width, self.encoding))

    def paragraph(self, block: Paragraph, indent: int = 0) -> Iterator[StyledLine]:
        first = " " * (indent + block.indent)
        yield from self.wrapped(block.text, _TONES.get(block.tone, ""), first, first + " " * block.hanging)

    def listing(self, listing: Listing) -> Iterator[StyledLine]:
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

    def bars(self, block: Bars) -> Iterator[StyledLine]:
        from attncli.render.chart import bars

        rows = [(Span(self.fit(name), 0.0, length), text) for name, length, text in block.rows]
        lines = bars(rows, self.width, self.encoding, is_framed=block.is_framed)
        yield from ([(line, "cyan" if block.is_framed else "")] for line in lines)
        if block.is_framed:
            yield []

    def columns(self, block: Columns) -> Iterator[StyledLine]:
        """Under one another; where that is wider than the screen, one after the other in each line."""
        rows = [[self.fit(cell) for cell in row] for row in block.rows]
        widths = [max(map(columns, cells)) for cells in zip(*rows, strict=True)]
        is_table = sum(widths) + len(GAP) * (len(widths) - 1) <= self.width
        for row in rows:
            cells = map(padded, row, widths) if is_table else filter(None, row)
            yield from folded([(GAP.join(cells).rstrip(" "), "")], self.width)

    # Steps.

    def steps(self, steps: Sequence[ShownStep]) -> Iterator[StyledLine]:
        """One below the other: what each means, and its arithmetic where that was asked for."""
        for step in steps:
            yield []
            yield from self.step(step, self.width)
            if step.why is not None:
                yield from self.wrapped(step.why, "italic")
            if step.view.expand:
                yield from self.arithmetic(step)

    def step(self, step: ShownStep, width: int) -> Iterator[StyledLine]:
        """A step: its formula, and below it its numbers."""
        yield from folded(self.step_heading(step), width)
        for matrix in self.matrices(step):
            yield from matrix.lines(width)

    def step_heading(self, step: ShownStep) -> StyledLine:
        item = step.item
        line = [(f"{step.number}. ", "bold")] if step.number else []
        line.append((item.id, "bold magenta" if item.phase == "backward" else "bold cyan"))
        formula = item.formula_text if item.step is not None else ""
        if formula or item.name != item.id:
            line.append((f"   {item.name} = {formula}" if formula else f"   {item.name}", ""))
        return [(fitted(text, self.encoding), style) for text, style in [*line, (f"   {item.shape}", "dim")]]

    def arithmetic(self, step: ShownStep) -> Iterator[StyledLine]:
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

    def side_by_side(self, steps: Sequence[ShownStep]) -> Iterator[StyledLine]:
        """Steps next to each other as long as they fit."""
        widths = []
        for step in steps:
            wide = (wide_of(self.step_heading(step)), *(matrix.natural_width for matrix in self.matrices(step)))
            widths.append(min(self.width, max(wide)))
        for group in groups(widths, self.width + len(_BETWEEN), len(_BETWEEN)):
            if len(group) == 1:
                yield from self.step(steps[group[0]], self.width)
                continue
            for lines in zip_longest(*(self.step(steps[j], widths[j]) for j in group), fillvalue=StyledLine()):
                together = StyledLine()
                for j, line in zip(group, lines, strict=True):
                    together += [*line, (" " * (widths[j] - wide_of(line)) + _BETWEEN, "")]
                yield together

    # A marked sheet, and the tree of a number.

    def verdict(self, verdict: StepVerdict) -> Iterator[StyledLine]:
        """The verdict on a step, and below it, indented, what there is to say."""
        style = _TONES[verdict.tone]
        heading = [(f"{verdict.sign} ", style), (verdict.name, "bold"), (f"  {verdict.words}", style)]
        yield from folded([(self.fit(text), own) for text, own in heading], self.width)
        for part in verdict.body:
            for line in marked_lines(part, self.width) if isinstance(part, Marks) else (part,):
                if isinstance(line, Paragraph):
                    yield from self.paragraph(line, 2)
                    continue
                cells = zip(line.texts, line.wrong, strict=True)
                yield [("   ", ""), *((self.fit(text), "bold red" if wrong else "") for text, wrong in cells)]

    def tree(self, branch: Branch, first: str = "", rest: str = "") -> Iterator[StyledLine]:
        """A name, what it comes to, and below it what that was made from."""
        line = [(self.fit(branch.name), "bold"), (self.fit(branch.text), "")]
        for i, part in enumerate(folded(line, self.width - len(first))):
            yield [(rest if i else first, "dim"), *part]
        down, fork, last = _GUIDES if self.encoding.startswith("utf") else _ASCII_GUIDES
        for below in branch.branches[:-1]:
            yield from self.tree(below, rest + fork, rest + down)
        for below in branch.branches[-1:]:
            yield from self.tree(below, rest + last, rest + " " * len(down))

    # Tables.

    def cell(self, cell: Said | Symbol) -> str:
        return self.fit(as_text(cell.latex) if isinstance(cell, Symbol) else cell)

    def bands(self, table: Tabular) -> Iterator[StyledLine]:
        """As many columns side by side as fit, the others below with the labels again."""
        rows = [[self.cell(cell) for cell in row] for row in table.rows]
        heads = [[self.fit(line) for line in column.head] for column in table.columns]
        wide = [max(columns(text) for text in (*head, *(row[j] for row in rows))) for j, head in enumerate(heads)]
        label = max(_LEAST_LABEL, min(wide[0], self.width - max(wide[1:]) - len(GAP)))
        for group in groups(wide[1:], self.width - label):
            yield []
            shown = [j + 1 for j in group]
            for texts in zip(*(heads[j] for j in shown), strict=True):
                cells = ((GAP + right(text, wide[j]), "bold cyan") for text, j in zip(texts, shown, strict=True))
                yield [(" " * label, ""), *cells]
            for row in rows:
                if any(row[j] != "–" for j in shown):
                    yield from self.band(row, label, [(j, wide[j], table.columns[j].strong) for j in shown])

    def band(self, row: list[str], label: int, shown: list[tuple[int, int, bool]]) -> Iterator[StyledLine]:
        """A line of a band; a label that is too long goes on below it."""
        indent = " " * (len(row[0]) - len(row[0].lstrip()))
        style = "dim" if indent else ""
        numbers = [(GAP + right(row[j], wide), f"{style} bold" if strong else style) for j, wide, strong in shown]
        first, *rest = wrap(row[0].lstrip(), label, indent).split("\n")
        yield [(padded(first, label), style), *numbers]
        yield from ([(line, style)] for line in rest)

    def counts(self, block: Counts) -> Iterator[StyledLine]:
        """How often something was counted: a table, or where that is wider than the screen a line a name."""
        heads = [self.fit(words) for words, _ in block.kinds]
        styles = [_TONES.get(tone, "") for _, tone in block.kinds]
        names = [self.fit(name) for name, _ in block.rows]
        first = max(map(columns, names))
        most = len(str(max(max(counts) for _, counts in block.rows)))
        widths = [max(columns(head), most) for head in heads]
        is_table = first + sum(len(GAP) + wide for wide in widths) <= self.width
        if is_table:
            above = "".join(GAP + right(head, wide) for head, wide in zip(heads, widths, strict=True))
            yield [(" " * first + above, "dim")]
        for name, (_, counts) in zip(names, block.rows, strict=True):
            if is_table:
                cells = [GAP + right(str(count or ""), wide) for count, wide in zip(counts, widths, strict=True)]
                yield [(padded(name, first), ""), *zip(cells, styles, strict=True)]
            else:
                words = " · ".join(f"{head} {count}" for head, count in zip(heads, counts, strict=True) if count)
                yield from self.wrapped(words, "", f"{name}  ", "  ")

    def table(self, table: Tabular) -> Iterator[StyledLine]:
        """As many columns side by side as fit, numbers with their points under one another; the first column begins each band."""
        sides = [self.column(table, j) for j in range(len(table.columns))]
        least = [side.least for side in sides]
        starts = [j for j, column in enumerate(table.columns) if j and not column.joined]
        parts = [range(start, stop) for start, stop in pairwise([*starts, len(sides)])]
        room = [sum(least[j] + len(GAP) for j in part) - len(GAP) for part in parts]
        for number, group in enumerate(groups(room, self.width - least[0])):
            if number:
                yield []
            yield from beside([sides[0], *(sides[j] for i in group for j in parts[i])], self)

    def column(self, table: Tabular, j: int) -> TextColumn:
        texts = [self.short(row[j]) for row in table.rows]
        column = table.columns[j]
        return TextColumn(
            " ".join(map(self.fit, column.head)), aligned(texts) if column.is_number else texts, column.is_number
        )

    def short(self, cell: Said | Symbol) -> str:
        return shortened(cell, _LONGEST_CELL, self.encoding) if isinstance(cell, str) else self.cell(cell)

    def grid(self, grid: Grid) -> Iterator[StyledLine]:
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
        lead = widths[0] + len(GAP) if named else 0
        for number, group in enumerate(groups(widths[named:], self.width - lead)):
            if number:
                yield []
            shown = [*([0] if named else []), *(j + named for j in group)]
            yield from ([("".join(GAP + right(row[j], widths[j]) for j in shown), "")] for row in rows)
        for line in grid.below:
            yield from self.wrapped(line, "", "  - ", "    ")
