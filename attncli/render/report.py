"""The report of an experiment or a training as blocks."""

from __future__ import annotations

from collections.abc import Iterator

from attncli.core.message import Listed, Message
from attncli.core.report import Report, Table
from attncli.render.chart import figure
from attncli.render.document import Block, Gap, Heading, Paragraph, Said, Tabular, TabularColumn


def page(report: Report) -> Iterator[Block]:
    """Its sentences, pictures and tables in reading order."""
    yield Heading(filled(report.title), 1)
    for part in report.parts:
        yield Gap()
        if isinstance(part, Message):
            yield Paragraph(filled(part))
            continue
        yield Heading(filled(part.title))
        yield _table(part) if isinstance(part, Table) else part


def _table(part: Table) -> Tabular:
    columns, cells = [], []
    for j, column in enumerate(part.columns):
        entries = [row[j] for row in part.rows]
        is_number = not any(isinstance(entry, (str, Message)) for entry in entries)
        head = filled(column.text) if isinstance(column.text, Message) else column.text
        columns.append(TabularColumn((head,), is_number, column.joined))
        cells.append([_cell(entry, column.digits) for entry in entries])
    return Tabular(tuple(columns), tuple(zip(*cells, strict=True)))


def _cell(entry: object, digits: int) -> Said:
    if isinstance(entry, Message):
        return filled(entry)
    return entry if isinstance(entry, str) else figure(entry, digits)  # type: ignore[arg-type]


def filled(message: Message) -> Message:
    """The message with its numbers written as the reader sees them elsewhere."""
    return Message(message.template, **{name: _as_field(value) for name, value in message.fields.items()})


def _as_field(value: object) -> object:
    if isinstance(value, Listed):
        return value
    if isinstance(value, Message):
        return filled(value)
    return figure(value) if isinstance(value, float) else value
