"""Whole commands as people type them, for all tests: in this process, several times, on a terminal, or in a process of its own.

A process of its own costs as much as thirty commands in this one; it is for what only it shows: signals, closed pipes,
what is imported, another seed of hashes.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO
from unittest import mock

from rich.cells import cell_len

from attncli.cli.main import main

#: What a caller's screen and language would change.
_OF_THE_CALLER = ("ATTNCLI_LANG", "COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES")  # fmt: skip
#: These are read before the first line of ours: only a process of its own can have them.
_READ_AT_THE_START = frozenset({"PYTHONHASHSEED", "PYTHONIOENCODING", "PYTHONUTF8", "PATH"})


@dataclass(frozen=True)
class Ran:
    """What a command left behind: its exit status, and what it wrote, as bytes and as text."""

    status: int
    stdout: bytes
    stderr: bytes = b""
    encoding: str = "utf-8"

    @property
    def out(self) -> str:
        return self.stdout.decode(self.encoding)

    @property
    def err(self) -> str:
        return self.stderr.decode(self.encoding)

    def __iter__(self) -> Iterator[Any]:
        """Status, output, message: `status, out, err = run(…)`."""
        return iter((self.status, self.out, self.err))

    def __str__(self) -> str:
        """All of it in one text, for a snapshot."""
        message = f"\n--- standard error\n{self.err}" if self.err else ""
        return f"exit status {self.status}\n--- standard output\n{self.out}{message}"

    @property
    def data(self) -> dict[str, Any]:
        """What was written as JSON."""
        return dict(json.loads(self.out))

    @property
    def verdicts(self) -> dict[str, str]:
        """Of every step that was checked."""
        return {step["id"]: step["verdict"] for step in self.data["steps"]}

    def results(self) -> list[dict[str, Any]]:
        """What was written as JSON Lines by a command that worked."""
        assert self.status == 0, self
        return [json.loads(line) for line in self.out.splitlines()]


def environment(**changes: object) -> dict[str, str]:
    """Nothing of the caller's screen or language; None takes a variable away."""
    own = {name: value for name, value in os.environ.items() if name not in _OF_THE_CALLER}
    plain = {**own, "LANG": "en_US.UTF-8", "TERM": "xterm-256color", "PYTHONUTF8": "1"}
    return {name: str(value) for name, value in {**plain, **changes}.items() if value is not None}


class _Kept(io.BytesIO):
    """Bytes that outlive the text stream around them."""

    def close(self) -> None:
        pass


def run(
    *words: object,
    stdin: bytes | None = b"",
    folder: Path | None = None,
    encoding: str = "utf-8",
    **variables: object,
) -> Ran:
    """`attncli words…` in this process, its output in pipes; stdin None: closed."""
    out, err = _Kept(), _Kept()
    read = None if stdin is None else io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
    written = (io.TextIOWrapper(kept, encoding, write_through=True) for kept in (out, err))
    status = _main(words, read, *written, folder, variables)
    return Ran(status, out.getvalue(), err.getvalue(), encoding)


@functools.cache
def _once(words: tuple[object, ...], how: tuple[tuple[str, Any], ...]) -> Ran:
    return run(*words, **dict(how))


def once(*words: object, **how: Any) -> Ran:
    """As `run`; but what the same words left behind before is not asked for again."""
    return _once(words, tuple(sorted(how.items())))


def _main(
    words: Sequence[object],
    stdin: TextIO | None,
    stdout: TextIO,
    stderr: TextIO,
    folder: Path | None,
    variables: dict[str, object],
) -> int:
    assert _READ_AT_THE_START.isdisjoint(variables), "such a command needs a process of its own"
    with (
        mock.patch.object(sys, "stdin", stdin),
        mock.patch.object(sys, "stdout", stdout),
        mock.patch.object(sys, "stderr", stderr),
        mock.patch.dict(os.environ, environment(**variables), clear=True),
        contextlib.chdir(folder or "."),
    ):
        try:
            status = main([str(word) for word in words])
        except SystemExit as stop:  # completion ends so
            status = int(stop.code or 0)
        sys.stdout.flush()
        sys.stderr.flush()
    return status


def on_terminal(*words: object, columns: int = 80, piped: bool = False, **variables: object) -> Ran:
    """The command in this process, on a real terminal that is `columns` wide, and what that was sent.

    Piped: standard output goes into a pipe, and what the terminal was sent is what went to standard error.
    """
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    sent, out = list[bytes](), _Kept()
    reader = threading.Thread(target=lambda: sent.extend(pieces(ours)))
    reader.start()
    try:
        with (
            open(theirs, encoding="utf-8", closefd=False) as stdin,
            open(theirs, "w", encoding="utf-8", closefd=False) as stdout,
            open(theirs, "w", encoding="utf-8", closefd=False) as stderr,
        ):
            pipe = io.TextIOWrapper(out, "utf-8", write_through=True)
            status = _main(words, stdin, pipe if piped else stdout, stderr, None, variables)
    finally:
        os.close(theirs)
        reader.join()
        os.close(ours)
    screen = b"".join(sent).replace(b"\r\n", b"\n")
    return Ran(status, out.getvalue(), screen) if piped else Ran(status, screen)


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


def command(*words: object) -> list[str]:
    """What starts `attncli words…` in a process of its own."""
    return [sys.executable, "-m", "attncli", *map(str, words)]


def process(*words: object, stdin: bytes = b"", **variables: object) -> Ran:
    """The command in a process of its own, its output in pipes."""
    return _ended(command(*words), stdin, variables, str(variables.get("PYTHONIOENCODING", "utf-8")))


def elsewhere(*commands: Sequence[object], **variables: object) -> list[Ran]:
    """What these commands leave behind, run in turn in one other process; sets and hashes have another order there."""
    code = (
        "import json, sys; from harness import run;"
        "found = [run(*words) for words in json.load(sys.stdin)];"
        "print(json.dumps([[ran.status, ran.stdout.hex(), ran.stderr.hex()] for ran in found]))"
    )
    typed = json.dumps([[str(word) for word in words] for words in commands]).encode()
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    done = _ended([sys.executable, "-c", code], typed, {"PYTHONHASHSEED": 7, "PYTHONPATH": path, **variables}, "utf-8")
    assert done.status == 0, done.err
    return [Ran(status, bytes.fromhex(out), bytes.fromhex(err)) for status, out, err in json.loads(done.out)]


def _ended(argv: Sequence[str], stdin: bytes, variables: dict[str, object], encoding: str) -> Ran:
    done = subprocess.run(argv, env=environment(**variables), input=stdin, capture_output=True, timeout=60, check=False)
    return Ran(done.returncode, done.stdout, done.stderr, encoding)


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """A bound against what never ends: so much time of the processor, whatever else this machine does."""

    def over(number: int, frame: object) -> None:
        raise AssertionError(f"{seconds} s of work, and no end")

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def refused(typed: Ran | Sequence[object], *words: str, stdin: bytes | None = b"") -> str:
    """Assert that what was typed, or has run, is bad input: nothing but one message, with these words; the message."""
    status, out, err = typed if isinstance(typed, Ran) else run(*typed, stdin=stdin)
    assert status == 2, (status, out, err)
    assert out == ""
    one_message(err)
    for word in words:
        assert word in err, (word, err)
    return str(err)


def assert_fits(ran: Ran, width: int) -> None:
    """Assert that a pipe was written lines that fit a screen, without spaces at their ends or escape sequences."""
    assert (ran.status, ran.err) == (0, "")
    for line in ran.out.splitlines():
        assert cell_len(line) <= width, line
        assert line == line.rstrip(), repr(line)
    assert "\x1b" not in ran.out


def one_message(err: str) -> None:
    """Assert that this is one line for a person."""
    assert err.startswith("attncli: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert err.count("attncli: ") == 1
    assert "Traceback" not in err
    assert err[:-1].isprintable()
    assert len(err) < 2500
