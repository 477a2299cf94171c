"""Sheets of a small class, and the command line in this process or in one of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from typing import Any, NamedTuple
from unittest import mock

from attncli.cli.main import main

EXERCISE = "a1-pronoun"
RIGHT = {"scores": "1 2", "scaled": "0.707 1.414", "A": "0.330 0.670", "O": "0.660 2.680"}
#: The division by √d_k forgotten; the rest follows from it.
NO_SCALE = {"scores": "1 2", "scaled": "1 2", "A": "0.269 0.731", "O": "0.538 2.924"}
#: Softmax down the columns: every weight 1.
OVER_COLUMNS = {"scores": "1 2", "scaled": "0.707 1.414", "A": "1 1", "O": "2 4"}
BLANK = {"scores": "1 2"}
UNREADABLE = {"scores": "1 2", "scaled": "zero point seven", "A": "0.330 0.670"}
ANSWERS = (RIGHT, NO_SCALE, OVER_COLUMNS, BLANK, UNREADABLE)


def a_class(size: int) -> list[dict[str, Any]]:
    """Sheets of s001, s002, … in turn right, wrong, blank, unreadable."""
    return [{"student": f"s{i + 1:03}", "answers": ANSWERS[i % len(ANSWERS)]} for i in range(size)]


def json_lines(sheets: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(sheet) + "\n" for sheet in sheets)


class Ran(NamedTuple):
    """Exit status and what was written."""

    status: int
    out: str
    err: str

    def results(self) -> list[dict[str, Any]]:
        """The results, where they were written as JSON Lines."""
        assert self.status == 0, self
        return [json.loads(line) for line in self.out.splitlines()]


class _Keeping(io.BytesIO):
    """Bytes that survive the closing of the text stream around them."""

    def close(self) -> None:
        pass


def run(*argv: object, stdin: bytes = b"", lang: str = "en", columns: int = 80, encoding: str = "utf-8") -> Ran:
    """Run `attncli argv…` in this process."""
    out, err = _Keeping(), _Keeping()
    with (
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8")),
        mock.patch.object(sys, "stdout", io.TextIOWrapper(out, encoding, write_through=True)),
        mock.patch.object(sys, "stderr", io.TextIOWrapper(err, "utf-8", write_through=True)),
        mock.patch.dict("os.environ", {"ATTNCLI_LANG": lang, "COLUMNS": str(columns)}),
    ):
        status = main([str(word) for word in argv])
    return Ran(status, out.getvalue().decode(encoding), err.getvalue().decode())


def grade(*argv: object, exercise: str = EXERCISE, **how: Any) -> Ran:
    """`attncli grade` on the first exercise; JSON Lines if nothing else is said."""
    asked = any(str(word) in ("--format", "-o") for word in argv)
    return run("grade", exercise, *argv, *(() if asked else ("--format", "jsonl")), **how)


def refused(ran: Ran, *words: str) -> None:
    """Assert exit status 2, nothing on standard output, and one message with these words."""
    assert ran.status == 2, ran
    assert ran.out == ""
    assert ran.err.startswith("attncli: ")
    assert ran.err.count("\n") == 1
    assert ran.err[:-1].isprintable()
    for word in words:
        assert word in ran.err, (word, ran.err)


def command(*argv: object) -> list[str]:
    """The words that start attncli in a process of its own."""
    return [sys.executable, "-m", "attncli", *map(str, argv)]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "ATTNCLI_LANG": "en", "COLUMNS": "80", **more}


def process(*argv: object, stdin: bytes = b"") -> Ran:
    """Run `attncli argv…` in a process of its own."""
    done = subprocess.run(command(*argv), input=stdin, capture_output=True, env=environment(), check=False)
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())
