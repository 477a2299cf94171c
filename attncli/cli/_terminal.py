"""The screen: how wide it is, whether it has colours, and what it can spell."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

from attncli.cli._say import Say

WIDTH = 80
NARROWEST = 20


def width(*, to_file: bool = False) -> int:
    """Characters a line has: COLUMNS if it is set, else the terminal's, else 80."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and len(columns) < 10 and int(columns) > 0:
        return max(NARROWEST, min(int(columns), 1000))
    if not to_file and sys.stdout is not None and sys.stdout.isatty():
        try:
            # A terminal that was never told its size says 0.
            return max(NARROWEST, os.get_terminal_size(sys.stdout.fileno()).columns or WIDTH)
        except (OSError, ValueError):
            return WIDTH
    return WIDTH


class _Buffer(io.StringIO):
    """Text kept back until all of it is there, with the encoding of the screen it is for."""

    encoding = "utf-8"


def console(*, to_file: bool = False) -> tuple[Any, io.StringIO]:
    """A Rich console for standard output, or for a file, and the text it writes into."""
    from rich.console import Console

    buffer = _Buffer()
    buffer.encoding = "utf-8" if to_file else (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    tty = not to_file and sys.stdout is not None and sys.stdout.isatty()
    # With a height too, Rich does not look at the environment again.
    return Console(
        file=buffer, width=width(to_file=to_file), height=25, force_terminal=True if tty else None, legacy_windows=False
    ), buffer


def print_table(say: Say, view: Any) -> None:
    """Print the terminal view of a run."""
    from attncli.render.terminal import print_view, trimmed

    screen, buffer = console()
    print_view(view, screen)
    say.out(trimmed(buffer.getvalue()))
