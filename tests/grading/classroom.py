"""Sheets of a small class, and their grading."""

from __future__ import annotations

import json
from typing import Any

from harness import Ran, run

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


def grade(*argv: object, exercise: str = EXERCISE, **how: Any) -> Ran:
    """`attncli grade` on the first exercise; JSON Lines if nothing else is said."""
    asked = any(str(word) in ("--format", "-o") for word in argv)
    return run("grade", exercise, *argv, *(() if asked else ("--format", "jsonl")), **how)
