"""The report of an experiment or a training as blocks."""

from __future__ import annotations

from collections.abc import Iterator

from attncli.core.message import Message, figure
from attncli.core.report import Report, Table, TableCell
from attncli.render.document import Block, Gap, Heading, Paragraph, Said, Tabular, TabularColumn


def page(report: Report) -> Iterator[Block]:
    """Its sentences, pictures and tables in reading order."""
    yield Heading(report.title, 1)
    for part in report.parts:
        if isinstance(part, Message):
            yield Gap()
            yield Paragraph(part)
            continue
        yield Heading(part.title)
        yield _table(part) if isinstance(part, Table) else part


def _table(part: Table) -> Tabular:
    columns = tuple(
        TabularColumn(
            (column.text,), not any(isinstance(value, (str, Message)) for value in column.values), column.joined
        )
        for column in part.columns
    )
    cells = ([_cell(value, column.digits) for value in column.values] for column in part.columns)
    return Tabular(columns, tuple(zip(*cells, strict=True)))


def _cell(value: TableCell, digits: int) -> Said:
    return figure(value, digits) if isinstance(value, (int, float)) else value
