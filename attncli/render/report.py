r"""The report of an experiment: for the terminal with its pictures, and as JSON, CSV and Markdown."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from attncli.core.message import Language, Listed, Message
from attncli.core.report import Column, Maps, Plot, Report, Spans, Table
from attncli.locale.wrap import columns, padded, wrap
from attncli.render.chart import MARKS, Bar, Line, bars, figure, plot, scale_of_shades, shades
from attncli.render.data import spreadsheet_text
from attncli.render.glyphs import fitted
from attncli.render.markdown import escaped
from attncli.render.names import printable
from attncli.render.numbers import padded as aligned

#: A picture is not wider than this, however wide the screen.
_WIDEST = 80
_HEIGHT = 11
_GAP = "  "
#: Columns that a name beside a map may take.
_LONGEST_NAME = 10
_SHORTEST_NAME = 2
#: Columns that a text in a table may take.
_LONGEST_CELL = 24


class Page:
    """A report laid out for one width and one encoding."""

    def __init__(self, report: Report, language: Language, width: int, encoding: str) -> None:
        self.report = report
        self.language = language
        self.width = width
        self.encoding = encoding

    def say(self, message: Message | str) -> str:
        text = message if isinstance(message, str) else _filled(message, self.language).text(self.language)
        return printable(fitted(text, self.encoding))

    def lines(self) -> Iterator[str]:
        """From top to bottom."""
        yield wrap(self.say(self.report.title), self.width)
        for part in self.report.parts:
            yield ""
            yield from self.part(part)

    def part(self, part: Any) -> Iterator[str]:
        if isinstance(part, Message):
            yield wrap(self.say(part), self.width)
            return
        yield wrap(self.say(part.title), self.width)
        yield from _DRAWN[type(part)](self, part)

    def _plot(self, part: Plot) -> Iterator[str]:
        marked = list(zip(MARKS[: len(part.trends)], part.trends, strict=True))  # one too many has no mark of its own
        lines = [Line(trend.values, mark) for mark, trend in marked]
        yield from wrap(_GAP.join(f"{mark} {self.say(trend.name)}" for mark, trend in marked), self.width).split("\n")
        chart = plot(
            lines,
            min(self.width, _WIDEST),
            _HEIGHT,
            x=part.x,
            log_x=part.log_x,
            log_y=part.log_y,
            low=part.low,
            high=part.high,
            encoding=self.encoding,
            ends=(f"{self.say(part.x_name)} = {figure(part.x[0])}", figure(part.x[-1])),
        )
        yield from chart

    def _spans(self, part: Spans) -> Iterator[str]:
        rows = [
            Bar(
                span.name,
                span.stop,
                fitted(f"{figure(span.start)} … {figure(span.stop)}", self.encoding),
                span.start,
            )
            for span in part.spans
        ]
        yield from bars(rows, min(self.width, _WIDEST), encoding=self.encoding)

    def _maps(self, part: Maps) -> Iterator[str]:
        """As many maps side by side as fit the width, each below its name."""
        most = max(_SHORTEST_NAME, min(_LONGEST_NAME, self.width - 2 * len(part.maps[0][1][0]) - 7))
        names = [f"{number} {self._short(name, most)}" for number, name in enumerate(part.names, start=1)]
        drawn = [[self.say(name), *shades(values, names, encoding=self.encoding)] for name, values in part.maps]
        wide = max(columns(line) for lines in drawn for line in lines)
        across = max(1, (self.width + 3) // (wide + 3))
        for start in range(0, len(drawn), across):
            group = drawn[start : start + across]
            for line in zip(*group, strict=True):
                yield "   ".join(padded(text, wide) for text in line).rstrip()
        steps = [f"{sign * 2} {figure(low)}–{figure(high)}" for sign, low, high in scale_of_shades(self.encoding)[1:]]
        yield wrap(fitted(_GAP.join(steps), self.encoding), self.width)

    def _short(self, name: str, most: int) -> str:
        """A token that keeps its place beside a map or in a table."""
        text = fitted(printable(name[:100]), self.encoding)
        while columns(text) > most:
            text = text[:-1]
        return text

    def _table(self, part: Table) -> Iterator[str]:
        grid = [self._column(column, [row[j] for row in part.rows]) for j, column in enumerate(part.columns)]
        for number, group in enumerate(self._groups(grid, [column.joined for column in part.columns])):
            if number:
                yield ""
            yield from self._rows(group)

    def _column(self, column: Column, cells: Sequence[Any]) -> tuple[str, list[str], bool]:
        """What stands above it, its cells as text of one width, and whether they are numbers."""
        texts = [self.cell(cell, column.digits) for cell in cells]
        numbers = not any(isinstance(cell, (str, Message)) for cell in cells)
        texts = aligned(texts) if numbers else texts
        wide = max(map(columns, texts), default=0)
        texts = [" " * (wide - columns(text)) + text if numbers else padded(text, wide) for text in texts]
        return self.say(column.text), texts, numbers

    def cell(self, cell: Any, digits: int) -> str:
        if isinstance(cell, Message):
            return self.say(cell)
        if isinstance(cell, str):
            return self._short(cell, _LONGEST_CELL)
        return fitted(figure(cell, digits), self.encoding)

    def _groups(self, grid: list[Any], joined: list[bool]) -> Iterator[list[Any]]:
        """Columns in groups that fit the width; the first column begins each of them."""
        starts = [j for j, together in enumerate(joined) if j and not together]
        parts = [grid[start:stop] for start, stop in pairwise([*starts, len(grid)])]
        group, used = [grid[0]], _narrowest(grid[0])
        for part in parts:
            wide = sum(_narrowest(column) + len(_GAP) for column in part)
            if len(group) > 1 and used + wide > self.width:
                yield group
                group, used = [grid[0]], _narrowest(grid[0])
            group += part
            used += wide
        yield group

    def _rows(self, group: list[Any]) -> Iterator[str]:
        room = self.width - len(_GAP) * (len(group) - 1)
        widths = _widths(group, room)
        headers = [wrap(name, wide).split("\n") for (name, _, _), wide in zip(group, widths, strict=True)]
        high = max(map(len, headers))
        for i in range(high):
            line = [
                _side(lines[i - high + len(lines)] if i >= high - len(lines) else "", wide, numbers)
                for lines, wide, (_, _, numbers) in zip(headers, widths, group, strict=True)
            ]
            yield _GAP.join(line).rstrip()
        rule = "─" if self.encoding.startswith("utf") else "-"
        yield _GAP.join(rule * wide for wide in widths)
        for i in range(len(group[0][1])):
            cells = [_side(cells[i], wide, numbers) for (_, cells, numbers), wide in zip(group, widths, strict=True)]
            yield _GAP.join(cells).rstrip()


_DRAWN: dict[type, Callable[[Page, Any], Iterator[str]]] = {
    Plot: Page._plot,
    Spans: Page._spans,
    Maps: Page._maps,
    Table: Page._table,
}


def _side(text: str, wide: int, numbers: bool) -> str:
    gap = " " * (wide - columns(text))
    return gap + text if numbers else text + gap


def _narrowest(column: Any) -> int:
    """Columns that it needs: for its cells, and for the longest word above them."""
    name, cells, _ = column
    return max(1, *map(_columns_of_word, name.split()), *map(columns, cells))


def _columns_of_word(word: str) -> int:
    """A Latin word stays whole; Chinese has places to break, but not after each sign."""
    wide = columns(word)
    return wide if wide == len(word) else min(wide, _LEAST_OF_CHINESE)


#: Columns that a Chinese header has at least: four signs.
_LEAST_OF_CHINESE = 8


def _widths(group: list[Any], room: int) -> list[int]:
    """Room for every column: what it needs, and what is left over goes where the most lines stand above it."""
    names = [name for name, _, _ in group]
    widths = [_narrowest(column) for column in group]
    for _ in range(room - sum(widths)):
        heights = [_height(name, wide) for name, wide in zip(names, widths, strict=True)]
        if max(heights) == 1:
            break
        widths[heights.index(max(heights))] += 1
    return widths


def _height(name: str, wide: int) -> int:
    return wrap(name, wide).count("\n") + 1


def _filled(message: Message, language: Language) -> Message:
    """The message with its numbers written as the reader sees them elsewhere."""
    fields = {name: _as_field(value, language) for name, value in message.fields.items()}
    return Message(message.template, **fields)


def _as_field(value: object, language: Language) -> object:
    if isinstance(value, Listed):
        return value
    if isinstance(value, Message):
        return _filled(value, language)
    return figure(value) if isinstance(value, float) else value


def as_table(report: Report, language: Language, *, width: int, encoding: str) -> str:
    """The report as text with its pictures."""
    return "\n".join(Page(report, language, width, encoding).lines()) + "\n"


def as_markdown(report: Report, language: Language, *, width: int, encoding: str) -> str:
    """The report as Markdown; its pictures are blocks of code."""
    page = Page(report, language, _WIDEST, "utf-8")
    blocks = [f"# {escaped(page.say(report.title))}"]
    for part in report.parts:
        if isinstance(part, Message):
            blocks.append(escaped(page.say(part)))
            continue
        blocks.append(f"## {escaped(page.say(part.title))}")
        if isinstance(part, Table):
            blocks.append("\n".join(_markdown_rows(page, part)))
        else:
            picture = "\n".join(list(page.part(part))[1:])
            blocks.append(f"```text\n{picture}\n```")
    return "\n\n".join(blocks) + "\n"


def _markdown_rows(page: Page, table: Table) -> Iterator[str]:
    yield _markdown_row([escaped(page.say(column.text)) for column in table.columns])
    texts = [any(isinstance(row[j], (str, Message)) for row in table.rows) for j in range(len(table.columns))]
    yield _markdown_row(["---" if text else "---:" for text in texts])
    for row in table.rows:
        cells = [page.cell(cell, column.digits) for cell, column in zip(row, table.columns, strict=True)]
        # A number has nothing in it that Markdown reads.
        yield _markdown_row([escaped(cell) if text else cell for cell, text in zip(cells, texts, strict=True)])


def _markdown_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def as_json(report: Report, language: Language, **_: Any) -> str:
    """The report as one JSON object on one line, its numbers in full."""
    page = Page(report, language, _WIDEST, "utf-8")
    data = {
        "schema": 1,
        "experiment": report.experiment,
        "title": page.say(report.title),
        "seed": report.seed,
        "settings": {name: _plain(value, page) for name, value in report.settings.items()},
        "tables": [_table_data(page, table) for table in report.tables],
        "maps": [
            {"name": page.say(name), "values": _plain(np.asarray(values).tolist(), page)}
            for part in report.parts
            if isinstance(part, Maps)
            for name, values in part.maps
        ],
        "said": [page.say(message) for message in report.said],
    }
    return json.dumps(data, ensure_ascii=False, allow_nan=False) + "\n"


def _table_data(page: Page, table: Table) -> dict[str, Any]:
    return {
        "id": table.id,
        "title": page.say(table.title),
        "columns": [column.id for column in table.columns],
        "rows": [[_plain(cell, page) for cell in row] for row in table.rows],
    }


def _plain(value: Any, page: Page) -> Any:
    """A value for JSON; infinities are "inf" and "-inf", NaN is "nan", as in every output of attncli."""
    if isinstance(value, Message):
        return page.say(value)
    if isinstance(value, (list, tuple)):
        return [_plain(part, page) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def as_csv(report: Report, language: Language, **_: Any) -> str:
    """The tables and maps in long form, a row a cell: table, row (from 1), column, value in full."""
    page = Page(report, language, _WIDEST, "utf-8")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("table", "row", "column", "value"))
    for table in report.tables:
        for i, row in enumerate(table.rows, start=1):
            for column, cell in zip(table.columns, row, strict=True):
                writer.writerow((table.id, i, column.id, _csv_value(cell, page)))
    for part in report.parts:
        if isinstance(part, Maps):
            for name, values in part.maps:
                for (i, j), value in np.ndenumerate(np.asarray(values)):
                    writer.writerow((spreadsheet_text(page.say(name)), i + 1, j + 1, repr(float(value))))
    return out.getvalue()


def _csv_value(cell: Any, page: Page) -> str:
    if isinstance(cell, Message):
        return spreadsheet_text(page.say(cell))
    return spreadsheet_text(printable(cell)) if isinstance(cell, str) else repr(cell)


RENDERERS: dict[str, Callable[..., str]] = {
    "table": as_table,
    "json": as_json,
    "csv": as_csv,
    "markdown": as_markdown,
}
