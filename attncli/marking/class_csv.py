"""A class as CSV: a row a student, a column a step, and the mistakes."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

#: Signs at which a spreadsheet begins a formula, also the wide ones of a Chinese input method.
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")


def header(steps: Sequence[str]) -> str:
    """The first line."""
    return _line(["student", "score", "max_score", "first_wrong", *steps, "mistakes", "remarks"])


def lines(results: Iterable[dict[str, Any]], steps: Sequence[str]) -> Iterator[str]:
    """The lines after it; verdicts in the step columns, mistakes as step:id with spaces between them."""
    for result in results:
        verdicts = {step["id"]: step["verdict"] for step in result["steps"]}
        mistakes = " ".join(f"{m['step']}:{m['id']}" for step in result["steps"] for m in step["mistakes"][:1])
        remarks = result.get("malformed", "") or " ".join(result.get("notes", ()))
        yield _line(
            [
                spelled(result["student"] or ""),
                f"{result['score']:g}",
                f"{result['max_score']:g}",
                spelled(result["first_wrong"] or ""),
                *(verdicts.get(step, "") for step in steps),
                spelled(mistakes),
                spelled(remarks),
            ]
        )


def _line(cells: Sequence[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


def spelled(text: str) -> str:
    """Text from a sheet: no control characters, and nothing that a spreadsheet would run as a formula."""
    clean = "".join(c if c.isprintable() else " " for c in text).strip()
    return f"'{clean}" if clean.startswith(_FORMULA) else clean
