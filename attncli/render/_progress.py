"""A progress line on standard error while a class is marked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, TextIO

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TimeElapsedColumn


def counting(results: Iterator[dict[str, Any]], file: TextIO, stack: ExitStack, done: int) -> Iterator[dict[str, Any]]:
    """The same results, counted on the screen as they go by; how many come is not known beforehand."""
    console = Console(file=file)
    progress = stack.enter_context(
        Progress(SpinnerColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console, transient=True)
    )
    task = progress.add_task("", total=None, completed=done)
    for result in results:
        progress.advance(task)
        yield result
