"""Long work that ends in good order when it is told to stop: by Ctrl-C, by a system that shuts down, by a terminal that closes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

#: Exit status of a program that a signal has ended, as shells count: 130 for Ctrl-C, 143 for SIGTERM.
BY_SIGNAL = 128


class Stop:
    """Whether the work is to stop, and at which signal."""

    def __init__(self) -> None:
        self.signal: int | None = None

    @property
    def asked(self) -> bool:
        return self.signal is not None

    @property
    def status(self) -> int:
        """The exit status that says so, 0 where nobody asked."""
        return 0 if self.signal is None else BY_SIGNAL + self.signal


@contextmanager
def stopping() -> Iterator[Stop]:
    """While it is open, a signal to end asks for it; whoever works looks, and ends what is half done. A second one ends at once."""
    stop = Stop()

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.asked:
            raise KeyboardInterrupt
        stop.signal = number

    found = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP")]
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in found:
            # What the caller has told us to overlook, like nohup does, stays overlooked.
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, ask)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
