"""A class as CSV: a row a student, a column a step, and the mistakes."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any


def lines(results: Iterable[dict[str, Any]], steps: Sequence[str], *, header: bool = True) -> Iterator[str]:
    """The lines; verdicts in the step columns, mistakes as step:id with spaces between them."""
    if header:
        yield _line(["student", "score", "max_score", "first_wrong", *steps, "mistakes", "remarks"])
    for result in results:
        verdicts = {step["id"]: step["verdict"] for step in result["steps"]}
        mistakes = " ".join(f"{m['step']}:{m['id']}" for step in result["steps"] for m in step["mistakes"][:1])
        remarks = result.get("malformed", "") or " ".join(result.get("notes", ()))
        yield _line(
            [
                _text(result["student"] or ""),
                f"{result['score']:g}",
                f"{result['max_score']:g}",
                result["first_wrong"] or "",
                *(verdicts.get(step, "") for step in steps),
                mistakes,
                _text(remarks),
            ]
        )


def _line(cells: Sequence[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


def _text(text: str) -> str:
    """Text from a sheet: no control characters, and nothing that a spreadsheet would run as a formula."""
    clean = "".join(c if c.isprintable() else " " for c in text)
    return f"'{clean}" if clean[:1] in ("=", "+", "-", "@") else clean
