r"""Progress on standard error: a bar while sheets are marked or made, a curve of the loss while a model is trained."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from attncli.core.message import Language, Message
from attncli.render.chart import curve
from attncli.render.text import figure


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


#: Seconds between two pictures, and lines of the curve.
_EVERY, _HEIGHT = 0.1, 10
_WIDEST = 80


def telling(file: TextIO, stack: ExitStack, total: int, language: Language) -> Callable[[int, float], None]:
    """A function that is told the number of each step and its loss; the picture is gone when `stack` closes."""
    console = Console(file=file)
    progress = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
    )
    task = progress.add_task(Message("steps").text(language), total=total)
    live = stack.enter_context(Live(progress, console=console, transient=True, auto_refresh=False))
    losses: list[float] = []
    shown = [0.0]

    def tell(step: int, loss: float) -> None:
        losses.append(loss)
        now = time.monotonic()
        if now - shown[0] < _EVERY:
            return
        shown[0] = now
        progress.update(task, completed=step)
        said = Message("loss {loss}", loss=figure(loss)).text(language)
        first = str(step - len(losses) + 1)
        lines = curve(
            losses, min(console.width, _WIDEST), _HEIGHT, encoding=console.encoding, ends=(first, f"{step}: {said}")
        )
        live.update(Group(*(Text(line, no_wrap=True) for line in lines), progress), refresh=True)

    return tell
