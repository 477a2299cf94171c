"""Lines as they are typed: edited on a terminal, read as they come from a pipe and shown there, too."""

from __future__ import annotations

import contextlib
import sys

from attncli.cli._say import Say
from attncli.core.message import InputError

#: Bytes of a line that are read, and characters of it that are shown.
_LONGEST, _SHOWN = 200_000, 500


class Lines:
    """What somebody types, line by line.

    Raises
    ------
    InputError
        Standard input is closed.
    """

    def __init__(self, say: Say) -> None:
        if sys.stdin is None:
            raise InputError("Your answers are read from standard input, which is closed.")
        self.say = say
        self.is_terminal = sys.stdin.isatty() and sys.stdout is not None and sys.stdout.isatty()
        if self.is_terminal:
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401 - input() then edits the line and remembers the ones before

    def __call__(self, prompt: str) -> str | None:
        """One line; None at the end of the input."""
        if self.is_terminal:
            return self._typed(prompt)
        data = sys.stdin.buffer.readline(_LONGEST)
        line = data.decode("utf-8", "replace").rstrip("\r\n")
        shown = "".join(sign if sign.isprintable() else " " for sign in line[:_SHOWN])
        self.say.out(f"{prompt}{shown}\n")
        return line if data else None

    def _typed(self, prompt: str) -> str | None:
        try:
            return input(self.say.fitted(prompt))
        except EOFError:
            self.say.out("\n")
            return None
        except UnicodeDecodeError:
            return "\N{REPLACEMENT CHARACTER}"
