"""The comparison in the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from attncli.locale.wrap import columns, wrap
from attncli.render._chart import Bar, bars
from attncli.render._compare import Block, Chart, Document, Grid, Heading, Listing, Paragraph
from attncli.render._glyphs import fitted
from attncli.render._lines import Lines

#: Spaces between two columns.
_GAP = 2
#: Columns that the label of a line keeps, however narrow the screen is.
_LEAST_LABEL = 6


class Page:
    """One comparison laid out for one console."""

    def __init__(self, document: Document, *, width: int, encoding: str) -> None:
        self.document = document
        self.width = width
        self.encoding = encoding

    def parts(self) -> Iterator[RenderableType]:
        """From top to bottom."""
        for block in self.document.blocks():
            yield from self._block(block)

    def _fit(self, text: str) -> str:
        return fitted(text, self.encoding)

    def _block(self, block: Block) -> Iterator[RenderableType]:
        if isinstance(block, Heading):
            yield from self._heading(block)
        elif isinstance(block, Paragraph):
            yield self._lines(block.text, "dim" if block.aside else "")
        elif isinstance(block, Grid):
            yield from self._grid(block)
        elif isinstance(block, Chart):
            rows = [Bar(self._fit(name), length, text) for name, length, text in block.rows]
            yield Lines(bars(rows, min(self.width, 80), encoding=self.encoding), "cyan")
            yield Text()
        else:
            yield from self._listing(block)

    def _lines(self, text: str, style: str = "", first: str = "", rest: str = "") -> Lines:
        return Lines(wrap(self._fit(text), self.width, first, rest).split("\n"), style)

    def _heading(self, heading: Heading) -> Iterator[RenderableType]:
        if heading.level > 1:
            yield Text()
        yield self._lines(heading.text, {1: "bold", 2: "bold underline", 3: "bold"}[heading.level])

    def _grid(self, grid: Grid) -> Iterator[RenderableType]:
        """As many columns side by side as fit, the others below with the labels again."""
        wide = [
            max([*map(columns, head), *(columns(self._fit(cells[i])) for _, cells in grid.rows)])
            for i, head in enumerate(grid.heads)
        ]
        label = max(columns(text) for text, _ in grid.rows)
        label = max(_LEAST_LABEL, min(label, self.width - max(wide) - _GAP))
        start = 0
        while start < len(wide):
            stop, used = start, label
            while stop < len(wide) and (stop == start or used + _GAP + wide[stop] <= self.width):
                used += _GAP + wide[stop]
                stop += 1
            yield Text()
            yield self._band(grid, label, range(start, stop))
            start = stop

    def _band(self, grid: Grid, label: int, shown: range) -> RenderableType:
        table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, show_header=False)
        table.add_column(width=label, overflow="fold")
        for i in shown:
            table.add_column(justify="right", no_wrap=True, style="bold" if grid.own[i] else "")
        for line in range(len(grid.heads[0])):
            table.add_row("", *(Text(self._fit(grid.heads[i][line]), "bold cyan") for i in shown))
        for text, cells in grid.rows:
            if all(cells[i] == "–" for i in shown):
                continue
            style = "dim" if text.startswith(" ") else ""
            table.add_row(Text(self._fit(text), style), *(Text(self._fit(cells[i]), style) for i in shown))
        return table

    def _listing(self, listing: Listing) -> Iterator[RenderableType]:
        """Names in a column, with formulas beside them that go on under their own beginning."""
        wide = max(columns(self._fit(name)) for _, name, _ in listing.rows)
        for sign, name, text in listing.rows:
            mark = f"{self._fit(sign)} " if sign else ""
            first = f"  {mark}{self._fit(name)}{' ' * (wide - columns(self._fit(name)) + 2)}" if wide else f"  {mark}"
            rest = " " * columns(first)
            if columns(first) > self.width // 2:
                rest = " " * 4
            yield self._lines(text, {"✓": "green", "✗": "red"}.get(sign, ""), first, rest)
