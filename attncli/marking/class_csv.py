"""A class as CSV: a row a student, a column a step, and the mistakes."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from attncli.core.outputs import spreadsheet_text


def header(steps: Sequence[str]) -> str:
    """The first line."""
    return _line(["student", "score", "max_score", "first_wrong", *steps, "mistakes", "remarks"])


def line(result: dict[str, Any], steps: Sequence[str]) -> str:
    """A line after it; verdicts in the step columns, mistakes as step:id with spaces between them."""
    verdicts = {step["id"]: step["verdict"] for step in result["steps"]}
    mistakes = " ".join(f"{m['step']}:{m['id']}" for step in result["steps"] for m in step["mistakes"][:1])
    remarks = [result[name] for name in ("malformed", "fault") if name in result] + result.get("notes", [])
    return _line(
        [
            spelled(result["student"] or ""),
            # Where there are no points yet, a spreadsheet must not find a 0.
            "" if result["score"] is None else f"{result['score']:g}",
            f"{result['max_score']:g}",
            spelled(result["first_wrong"] or ""),
            *(verdicts.get(step, "") for step in steps),
            spelled(mistakes),
            spelled(" ".join(remarks)),
        ]
    )


def _line(cells: Sequence[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


def spelled(text: str) -> str:
    """Text from a sheet: no control characters, and nothing that a spreadsheet would run as a formula."""
    clean = "".join(c if c.isprintable() else " " for c in text).strip()
    return spreadsheet_text(clean)
