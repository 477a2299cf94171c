"""A progress bar on standard error while a class is marked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TimeElapsedColumn, TimeRemainingColumn


def counting(
    results: Iterator[dict[str, Any]], file: TextIO, stack: ExitStack, done: int, total: int | None
) -> Iterator[dict[str, Any]]:
    """The same results, counted on the screen as they go by.

    Parameters
    ----------
    done : results that an earlier run left
    total : how many come, these included; None: a stream, nobody knows
    """
    end = (TimeElapsedColumn(),) if total is None else (BarColumn(), TimeRemainingColumn())
    console = Console(file=file)
    progress = stack.enter_context(
        Progress(SpinnerColumn(), MofNCompleteColumn(), *end, console=console, transient=True)
    )
    task = progress.add_task("", total=total, completed=done)
    for result in results:
        progress.advance(task)
        yield result
    progress.stop()  # before anything is written below it
