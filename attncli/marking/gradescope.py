"""results.json as Gradescope's autograders hand it back (gradescope-autograders.readthedocs.io, specifications)."""

from __future__ import annotations

from typing import Any

from attncli.core.message import N_, Language, Message
from attncli.marking.mark import RIGHT


def results(result: dict[str, Any], language: Language) -> dict[str, Any]:
    """One student's results: a test a step, and a visible total."""
    if "fault" in result:
        # Without any score Gradescope says that the autograder failed, as it did, and asks the teacher.
        return {"output": result["fault"], "visibility": "visible", "extra_data": _extra(result)}
    score, most = f"{result['score']:g}", f"{result['max_score']:g}"
    output = [Message(N_("Points: {score} of {most}"), score=score, most=most).text(language)]
    output += [result["malformed"]] if "malformed" in result else []
    output += result.get("notes", ())
    return {
        "score": result["score"],
        "output": "\n".join(output),
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "extra_data": _extra(result),
        "tests": [_test(step, number) for number, step in enumerate(_steps(result), start=1)],
    }


def _extra(result: dict[str, Any]) -> dict[str, Any]:
    return {name: result[name] for name in ("problem", "student", "max_score", "first_wrong")}


def _steps(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The steps; a sheet that cannot be read is one."""
    if "malformed" not in result:
        return list(result["steps"])
    whole = {"id": "sheet", "verdict": "malformed", "points": 0.0, "max_points": result["max_score"]}
    return [{**whole, "mistakes": [], "message": result["malformed"]}]


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
