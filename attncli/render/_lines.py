"""Lines that are laid out already, for Rich to put in their place as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.segment import Segment


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
