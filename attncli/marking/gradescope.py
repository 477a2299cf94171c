"""results.json as Gradescope's autograders hand it back (gradescope-autograders.readthedocs.io, specifications)."""

from __future__ import annotations

from typing import Any

from attncli.marking.mark import RIGHT
from attncli.message import N_, Language, Message


def results(result: dict[str, Any], language: Language) -> dict[str, Any]:
    """One student's results: a test a step, and a visible total."""
    total = f"{result['score']:g} / {result['max_score']:g}"
    output = Message(N_("Points: {score} of {most}"), score=f"{result['score']:g}", most=f"{result['max_score']:g}")
    return {
        "score": result["score"],
        "output": result.get("malformed") or output.text(language),
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "extra_data": {
            "problem": result["problem"],
            "student": result["student"],
            "first_wrong": result["first_wrong"],
            "total": total,
        },
        "tests": [_test(step, number) for number, step in enumerate(result["steps"], start=1)],
    }


def _test(step: dict[str, Any], number: int) -> dict[str, Any]:
    passed = step["verdict"] in RIGHT or step["verdict"] == "follow_through"
    return {
        "name": step["id"],
        "number": str(number),
        "score": step["points"],
        "max_score": step["max_points"],
        "status": "passed" if passed else "failed",
        "output": step["message"] or step["verdict"],
        "tags": [step["verdict"], *(mistake["id"] for mistake in step["mistakes"])],
        "visibility": "visible",
    }
