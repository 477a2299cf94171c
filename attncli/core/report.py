"""Reports: what an experiment or a training found, as sentences, pictures and tables in reading order.

A report holds numbers and messages. How they look (a chart, a table, JSON) is the renderers' business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attncli.core.matrix import FloatArray
from attncli.core.message import Message
from attncli.core.record import Record

#: What stands in a cell of a table; a text that is no message is the same in every language.
TableCell = float | str | Message


class Column(Record):
    """A column of a table.

    Parameters
    ----------
    id : its name in files
    text : what stands above it; a symbol (d_k) is the same in every language, and no message
    values : its cells, from top to bottom
    digits : significant digits that its numbers are shown with
    joined : it belongs to the column before it and makes no sense without
    """

    id: str
    text: Message | str
    values: Sequence[TableCell] = ()
    digits: int = 4
    joined: bool = False


class Table(Record):
    """Columns side by side."""

    id: str
    title: Message
    columns: tuple[Column, ...]

    @classmethod
    def of(cls, table_id: str, title: Message, rows: Sequence[Mapping[str, TableCell]], *columns: Column) -> Table:
        """Columns that take their cells from rows, by their ids."""
        return cls(
            table_id, title, tuple(column.changed(values=[row[column.id] for row in rows]) for column in columns)
        )

    @property
    def rows(self) -> tuple[tuple[TableCell, ...], ...]:
        return tuple(zip(*(column.values for column in self.columns), strict=True))


class Trend(Record):
    """One line of a plot."""

    name: Message | str
    values: Sequence[float]


class Plot(Record):
    """Several lines over the same rising numbers x; `low` and `high` are the ends of the y axis where they are fixed."""

    title: Message
    x_name: Message | str
    x: Sequence[float]
    trends: tuple[Trend, ...]
    log_x: bool = False
    log_y: bool = False
    low: float | None = None
    high: float | None = None


class Span(Record):
    """From where to where something reaches."""

    name: str
    start: float
    stop: float


class Spans(Record):
    """Ranges one below the other, on one scale."""

    title: Message
    spans: tuple[Span, ...]


class Maps(Record):
    """Matrices of shares (0 to 1) side by side; all have the same names of rows."""

    title: Message
    names: tuple[str, ...]
    maps: tuple[tuple[Message, FloatArray], ...]


#: What is drawn, from the report's own numbers.
Chart = Plot | Spans | Maps
#: A report is made of these.
ReportPart = Message | Chart | Table


class Report(Record):
    """What an experiment or a training found: sentences, pictures and tables, in reading order."""

    experiment: str
    title: Message
    seed: int
    settings: Mapping[str, Any]
    parts: tuple[ReportPart, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(part for part in self.parts if isinstance(part, Table))

    @property
    def said(self) -> tuple[Message, ...]:
        return tuple(part for part in self.parts if isinstance(part, Message))
