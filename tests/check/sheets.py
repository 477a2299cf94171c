"""`attncli check` in this process, on sheets in a folder of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import harness
from harness import Ran

EXERCISE = "a1-pronoun"
RIGHT = {"scores": "1 2", "scaled": "0.707 1.414", "A": "0.330 0.670", "O": "0.660 2.680"}
#: The division by √d_k forgotten, and the wrong weight carried on; then a slip of its own.
WRONG = {"scores": "1 2", "scaled": "1.000 2.000", "A": "0.269 0.731", "O": "0.538 2.294"}


def run(*argv: object, **how: Any) -> Ran:
    """Run `attncli check argv…` in this process."""
    return harness.run("check", *argv, **how)


def sheet(answers: dict[str, Any], student: str | None = "ann") -> bytes:
    return json.dumps({"student": student, "answers": answers}).encode()


def check(answers: dict[str, Any], *argv: object, exercise: object = EXERCISE, **how: Any) -> Ran:
    """`attncli check` of these answers, given on standard input."""
    return run(exercise, "-", *argv, stdin=sheet(answers), **how)


def as_json(answers: dict[str, Any], *argv: object, **how: Any) -> Ran:
    return check(answers, "--format", "json", *argv, **how)


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
