"""`attncli check` in this process, on sheets in a folder of their own."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from attncli.cli.main import main

EXERCISE = "a1-pronoun"
RIGHT = {"scores": "1 2", "scaled": "0.707 1.414", "A": "0.330 0.670", "O": "0.660 2.680"}
#: The division by √d_k forgotten, and the wrong weight carried on; then a slip of its own.
WRONG = {"scores": "1 2", "scaled": "1.000 2.000", "A": "0.269 0.731", "O": "0.538 2.294"}


class Ran(NamedTuple):
    """Exit status and what was written."""

    status: int
    out: str
    err: str

    @property
    def data(self) -> dict[str, Any]:
        return dict(json.loads(self.out))

    @property
    def verdicts(self) -> dict[str, str]:
        return {step["id"]: step["verdict"] for step in self.data["steps"]}


class _Keeping(io.BytesIO):
    """Bytes that survive the closing of the text stream around them."""

    def close(self) -> None:
        pass


def run(*argv: object, stdin: bytes = b"", lang: str = "en", columns: int = 80, encoding: str = "utf-8") -> Ran:
    """Run `attncli check argv…` in this process."""
    out, err = _Keeping(), _Keeping()
    with (
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8")),
        mock.patch.object(sys, "stdout", io.TextIOWrapper(out, encoding, write_through=True)),
        mock.patch.object(sys, "stderr", io.TextIOWrapper(err, "utf-8", write_through=True)),
        mock.patch.dict("os.environ", {"ATTNCLI_LANG": lang, "COLUMNS": str(columns)}),
    ):
        status = main(["check", *[str(word) for word in argv]])
    return Ran(status, out.getvalue().decode(encoding), err.getvalue().decode())


def sheet(answers: dict[str, Any], student: str | None = "ann") -> bytes:
    return json.dumps({"student": student, "answers": answers}).encode()


def check(answers: dict[str, Any], *argv: object, exercise: object = EXERCISE, **how: Any) -> Ran:
    """`attncli check` of these answers, given on standard input."""
    return run(exercise, "-", *argv, stdin=sheet(answers), **how)


def as_json(answers: dict[str, Any], *argv: object, **how: Any) -> Ran:
    return check(answers, "--format", "json", *argv, **how)


def refused(ran: Ran, *words: str) -> None:
    """Assert exit status 2, nothing on standard output, and one message with these words."""
    assert ran.status == 2, ran
    assert ran.out == ""
    assert ran.err.startswith("attncli: ")
    assert ran.err.count("\n") == 1
    assert ran.err[:-1].isprintable()
    for word in words:
        assert word in ran.err, (word, ran.err)


def exercise_file(folder: Path, text: str = "") -> Path:
    """An exercise of one's own: two tokens, numbers that tell mistakes apart."""
    path = folder / "exercise.toml"
    path.write_text(
        'schema = 1\nid = "own"\nmodel = "attention"\n'
        + text
        + '[inputs]\nQ = "1 2; 0.5 -1"\nK = "1 0.5; 0 1"\nV = "2 0; 1 4"\n',
        "utf-8",
    )
    return path
