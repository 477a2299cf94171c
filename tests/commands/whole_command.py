"""Whole commands as a user types them: in a pipe, or on a terminal of a given width."""

from __future__ import annotations

import functools
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from attncli.cli.main import main

#: The command as it is installed; completion looks at its name.
ATTNCLI = str(Path(sys.executable).with_name("attncli"))
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    status: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        return self.out.decode()

    def __str__(self) -> str:
        """All of it in one text, for a snapshot."""
        message = f"\n--- standard error\n{self.err.decode()}" if self.err else ""
        return f"exit status {self.status}\n--- standard output\n{self.text}{message}"


def environment(**changes: Any) -> dict[str, str]:
    """Nothing of the caller's screen or language; None takes a variable away."""
    plain = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "en_US.UTF-8",
        "TERM": "xterm-256color",
        "PYTHONUTF8": "1",
    }
    return {name: str(value) for name, value in {**plain, **changes}.items() if value is not None}


#: Variables that are read at every call, so that one process can try them all.
_READ_AT_EVERY_CALL = frozenset({"ATTNCLI_LANG", "COLUMNS", "FORCE_COLOR", "LANG", "NO_COLOR", "TERM"})


class _Kept(io.BytesIO):
    """Bytes that outlive the text stream around them."""

    def close(self) -> None:
        pass


def _in_this_process(words: tuple[str, ...], variables: dict[str, Any], stdin: bytes) -> Done:
    """The command run here: what it writes is what a process of its own would write, without the time to start one."""
    out, err = _Kept(), _Kept()
    with (
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8")),
        mock.patch.object(sys, "stdout", io.TextIOWrapper(out, "utf-8")),
        mock.patch.object(sys, "stderr", io.TextIOWrapper(err, "utf-8")),
        mock.patch.dict(os.environ, environment(**variables), clear=True),
    ):
        status = main(words)
        sys.stdout.flush()
        sys.stderr.flush()
    return Done(status, out.getvalue(), err.getvalue())


def _of_its_own(words: tuple[str, ...], variables: dict[str, Any], stdin: bytes, folder: Path | None) -> Done:
    """The command in a process of its own."""
    done = subprocess.run(
        [ATTNCLI, *words],
        env=environment(**variables),
        input=stdin,
        cwd=folder,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@functools.cache
def _run(words: tuple[str, ...], variables: tuple[tuple[str, Any], ...], stdin: bytes, folder: Path | None) -> Done:
    if folder is None and _READ_AT_EVERY_CALL.issuperset(dict(variables)):
        return _in_this_process(words, dict(variables), stdin)
    return _of_its_own(words, dict(variables), stdin, folder)


def run(*words: str, stdin: bytes = b"", folder: Path | None = None, **variables: Any) -> Done:
    """The command with its output in a pipe. The same call is made only once."""
    return _run(words, tuple(sorted(variables.items())), stdin, folder)


def run_again(*words: str, **variables: Any) -> Done:
    """The command in a pipe, in a process of its own, run in any case."""
    return _of_its_own(words, variables, b"", None)


def on_terminal(*words: str, columns: int = 80, **variables: Any) -> Done:
    """The command on a terminal that is `columns` wide."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [ATTNCLI, *words], env=environment(**variables), stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True
    )
    os.close(theirs)
    written = b"".join(pieces(ours))
    os.close(ours)
    return Done(process.wait(timeout=60), written.replace(b"\r\n", b"\n"), b"")


def pieces(terminal: int) -> Iterator[bytes]:
    """What a terminal is sent, as it comes, until its other end is closed."""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # Linux says so when the other end is closed
            return
        if not piece:
            return
        yield piece
