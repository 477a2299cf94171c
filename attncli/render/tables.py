"""Tables and matrices as lines of a screen, and how a line is broken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from attncli.core.message import Message
from attncli.core.record import Record
from attncli.locale.fit import NO_BREAK, columns, fitted, padded, wrap
from attncli.render.document import Marks, Paragraph, Said, ShownStep, Speaker
from attncli.render.text import aligned, cell_name, number_text, shortened
from attncli.render.view import Panel

#: A line: texts, and how each of them looks, in Rich's words.
StyledLine = list[tuple[str, str]]

#: Between two columns.
GAP = "  "
#: Colours for attention weights, from faint to strong. Each names both its background and its foreground, so that it can
#: be read on light and on dark terminals alike (a test measures the contrast).
SHADES = ("", "grey100 on grey15", "grey100 on dark_blue", "grey100 on blue3", "bold grey100 on dodger_blue2")
#: A matrix with more lines than this shows only its first ones, unless all were asked for.
MOST_LINES = 24
_FIRST_LINES = 8
#: Left end, line, crossing and right end of the rules of a frame, and what stands between its columns.
_FRAME = "╭─┬╮", "├─┼┤", "╰─┴╯", "│"
_ASCII_FRAME = "+--+", "|-+|", "+--+", "|"
#: Columns that a Chinese header has at least: four signs.
_LEAST_OF_CHINESE = 8
#: Characters of a cell beyond which a marked matrix is written cell by cell.
_LEAST_ROOM = 8


def wide_of(line: StyledLine) -> int:
    return sum(columns(text) for text, _ in line)


def folded(line: StyledLine, width: int) -> Iterator[StyledLine]:
    """A line as several, broken as its words allow, each word looking as before."""
    if wide_of(line) <= width:
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


class Room:
    """What a screen has: a width, the signs of an encoding, perhaps colours; and a language to say things in."""

    def __init__(self, say: Speaker, *, width: int, encoding: str, colour: bool = False) -> None:
        self.say = say
        self.width = width
        self.encoding = encoding
        self.colour = colour

    def fit(self, words: Said) -> str:
        """Words in signs that the encoding has; a space that keeps a line together stays one until the line is broken."""
        return NO_BREAK.join(fitted(part, self.encoding) for part in self.say(words).split(NO_BREAK))


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


def beside(group: list[TextColumn], room: Room) -> Iterator[StyledLine]:
    """These columns: what stands above them, a rule, and their cells."""
    widths = _widths(group, room.width - len(GAP) * (len(group) - 1))
    heads = [wrap(side.name, wide).split("\n") for side, wide in zip(group, widths, strict=True)]
    high = max(map(len, heads))
    above = zip(*([""] * (high - len(head)) + head for head in heads), strict=True)
    rule = "─" if room.encoding.startswith("utf") else "-"
    for texts in (*above, [rule * wide for wide in widths], *zip(*(side.cells for side in group), strict=True)):
        cells = (
            right(text, wide) if side.is_number else padded(text, wide)
            for text, wide, side in zip(texts, widths, group, strict=True)
        )
        yield [(GAP.join(cells), "")]


def _widths(group: list[TextColumn], room: int) -> list[int]:
    """Room for every column: what it needs, and what is left over goes where the most lines stand above it."""
    widths = [side.least for side in group]
    for _ in range(room - sum(widths)):
        heights = [wrap(side.name, wide).count("\n") for side, wide in zip(group, widths, strict=True)]
        if not any(heights):
            break
        widths[heights.index(max(heights))] += 1
    return widths


def groups(widths: Sequence[int], room: int, gap: int = len(GAP)) -> Iterator[list[int]]:
    """Which of these stand side by side, a gap before each of them, in so many columns; at least one."""
    group: list[int] = []
    taken = 0
    for i, width in enumerate(widths):
        if group and taken + gap + width > room:
            yield group
            group, taken = [], 0
        group.append(i)
        taken += gap + width
    yield group


def right(text: str, width: int) -> str:
    return " " * (width - columns(text)) + text


# A matrix in a frame.


class ShownMatrix:
    """A matrix of a step on a screen, in a frame with the names of its rows and columns."""

    def __init__(self, room: Room, step: ShownStep, panel: Panel) -> None:
        self.room = room
        self.step = step
        self.panel = panel
        rows, across = map(self._shown, panel.values.shape)
        self.names = [self._name(name) for name in panel.rows[:rows]]
        self.columns = [self._column(j, rows) for j in range(across)]
        self.widths = [columns(column[0]) for column in self.columns]
        self.name_width = max(map(columns, self.names), default=0)
        #: Characters of the frame: "│ " + names + " │ " + numbers + " │".
        self.frame = self.name_width + 7 if self.name_width else 4

    def _shown(self, lines: int) -> int:
        return lines if self.step.view.full or lines <= MOST_LINES else _FIRST_LINES

    def _name(self, name: str) -> str:
        """A row's or column's name; a very long one is cut, so that the numbers keep their room."""
        text, most = fitted(name, self.room.encoding), max(8, self.room.width // 4)
        return text if columns(text) <= most else shortened(name, most - 3, self.room.encoding).rstrip() + "..."

    def _column(self, j: int, rows: int) -> list[str]:
        """The name of a column and its numbers, all of one width."""
        texts = [number_text(value, self.step.item.decimals) for value in self.panel.values[:rows, j]]
        cells = [self._name(self.panel.columns[j]), *aligned([fitted(text, self.room.encoding) for text in texts])]
        width = max(map(columns, cells))
        return [right(cell, width) for cell in cells]

    @property
    def natural_width(self) -> int:
        """Characters the matrix takes side by side with others."""
        return self.frame + sum(self.widths) + len(GAP) * (len(self.widths) - 1)

    def lines(self, width: int) -> Iterator[StyledLine]:
        """As many columns a frame as fit the screen; one number a line where even one does not fit."""
        if self.panel.head is not None:
            yield from folded([(self.room.fit(Message("head {number}", number=self.panel.head)), "dim")], width)
        room = self.room.width - self.frame
        if self.columns and max(self.widths) > room:
            yield from self._one_a_line(width)
        elif self.columns:
            for group in groups(self.widths, room + len(GAP)):
                yield from self._framed(group)
        if (len(self.names), len(self.columns)) != self.panel.values.shape:
            yield from folded([(self.room.fit(self._cut()), "yellow")], width)

    def _framed(self, group: list[int]) -> Iterator[StyledLine]:
        top, middle, bottom, side = _FRAME if self.room.encoding.startswith("utf") else _ASCII_FRAME
        shown = [self.columns[j] for j in group]
        numbers_width = sum(self.widths[j] + len(GAP) for j in group) - len(GAP)
        widths = [self.name_width, numbers_width] if self.name_width else [numbers_width]

        def rule(signs: str) -> StyledLine:
            left, line, between, right = tuple(signs)
            return [(left + between.join(line * (wide + 2) for wide in widths) + right, "")]

        def row(name: str, numbers: StyledLine) -> StyledLine:
            lead = [(side, ""), (f" {padded(name, self.name_width)} ", "dim")] if self.name_width else []
            return [*lead, (f"{side} ", ""), *numbers, (f" {side}", "")]

        yield rule(top)
        if any(self.panel.columns[j] for j in group):
            yield row("", [(GAP.join(column[0] for column in shown), "dim")])
            yield rule(middle)
        for i, name in enumerate(self.names):
            yield row(name, self._numbers(i, group))
        yield rule(bottom)

    def _numbers(self, i: int, group: list[int]) -> StyledLine:
        """A line of numbers; attention weights have a background where there is colour."""
        cells = [self.columns[j][i + 1] for j in group]
        if not (self.room.colour and self.step.item.weights):
            return [(GAP.join(cells), "")]
        shades = (_shade(float(self.panel.values[i, j])) for j in group)
        return [part for shaded in zip(cells, shades, strict=True) for part in ((GAP, ""), shaded)][1:]

    def _one_a_line(self, width: int) -> Iterator[StyledLine]:
        for i in range(len(self.names)):
            for j, column in enumerate(self.columns):
                name = cell_name(self.step.item.name, self.panel.index(i, j), self.step.view.layout)
                text = fitted(f"{name} = ", self.room.encoding) + column[i + 1].strip()
                yield from folded([(text, "")], width)

    def _cut(self) -> Message:
        rows, across = self.panel.values.shape
        return Message(
            "Shown: {shown_rows} of {all_rows} rows and {shown_columns} of {all_columns} columns. All of it: --full.",
            shown_rows=len(self.names),
            all_rows=rows,
            shown_columns=len(self.columns),
            all_columns=across,
        )


def _shade(share: float) -> str:
    return SHADES[min(len(SHADES) - 1, 1 + int(share * (len(SHADES) - 1)))] if share > 0 else ""


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
    for group in groups([len(column[0]) for column in columns], width - 3, gap=1):
        if len(group) < len(columns):
            yield Paragraph(Message("{Columns} {first} to {last}:", first=group[0] + 1, last=group[-1] + 1), "aside")
        for i, wrong in enumerate(marks.wrong):
            yield MarkedRow(tuple(f" {columns[j][i]}" for j in group), tuple(wrong[j] for j in group))


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
