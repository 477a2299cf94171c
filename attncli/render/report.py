"""The report of an experiment or a training as blocks."""

from __future__ import annotations

from collections.abc import Iterator

from attncli.core.message import Message
from attncli.core.report import Report, Table, TableCell
from attncli.render.document import Block, Gap, Heading, Paragraph, Said, Tabular, TabularColumn
from attncli.render.text import figure, filled


def page(report: Report) -> Iterator[Block]:
    """Its sentences, pictures and tables in reading order."""
    yield Heading(filled(report.title), 1)
    for part in report.parts:
        if isinstance(part, Message):
            yield Gap()
            yield Paragraph(filled(part))
            continue
        yield Heading(filled(part.title))
        yield _table(part) if isinstance(part, Table) else part


def _table(part: Table) -> Tabular:
    columns = tuple(
        TabularColumn((_text(column.text),), not any(map(_is_text, column.values)), column.joined)
        for column in part.columns
    )
    cells = ([_cell(value, column.digits) for value in column.values] for column in part.columns)
    return Tabular(columns, tuple(zip(*cells, strict=True)))


def _is_text(value: TableCell) -> bool:
    return isinstance(value, (str, Message))


def _cell(value: TableCell, digits: int) -> Said:
    return figure(value, digits) if isinstance(value, (int, float)) else _text(value)


def _text(words: Said) -> Said:
    return filled(words) if isinstance(words, Message) else words
