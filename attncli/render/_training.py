"""A training as it runs, on standard error: how far it is, and the loss so far as a curve."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from attncli.core.message import N_, Language, Message
from attncli.render._chart import curve, figure

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
    task = progress.add_task(Message(N_("steps")).text(language), total=total)
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
        said = Message(N_("loss {loss}"), loss=figure(loss)).text(language)
        first = str(step - len(losses) + 1)
        lines = curve(
            losses, min(console.width, _WIDEST), _HEIGHT, encoding=console.encoding, ends=(first, f"{step}: {said}")
        )
        live.update(Group(*(Text(line, no_wrap=True) for line in lines), progress), refresh=True)

    return tell
