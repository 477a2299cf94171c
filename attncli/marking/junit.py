"""JUnit XML (the Jenkins schema): a suite a student, a case a step. Wrong is a failure, malformed an error, blank skipped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.sax.saxutils import escape, quoteattr

START = '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n'
END = "</testsuites>\n"
SUITE_START = "  <testsuite name="
SUITE_END = "  </testsuite>\n"


def suite(result: dict[str, Any]) -> str:
    """One student's suite."""
    return "".join(_suite(result))


def _suite(result: dict[str, Any]) -> Iterator[str]:
    steps = result["steps"] or [
        {
            "id": "sheet",
            "verdict": "malformed",
            "points": 0.0,
            "max_points": result["max_score"],
            "mistakes": [],
            "message": result.get("malformed") or result.get("fault", ""),
        }
    ]
    verdicts = [step["verdict"] for step in steps]
    counts = {
        "tests": len(steps),
        "failures": verdicts.count("wrong"),
        "errors": verdicts.count("malformed"),
        "skipped": verdicts.count("blank"),
    }
    numbers = " ".join(f'{name}="{count}"' for name, count in counts.items())
    yield f'{SUITE_START}{spelled(result["student"] or "")} {numbers} time="0">\n    <properties>\n'
    if result["score"] is not None:
        yield _property("score", result["score"])
    yield _property("max_score", result["max_score"])
    for step in steps:
        yield _property(f"points.{step['id']}", step["points"])
        yield _property(f"max_points.{step['id']}", step["max_points"])
    yield "    </properties>\n"
    # A package an exercise, a class a student, a test a step: so Jenkins and others keep students apart.
    classname = spelled(f"{result['problem']}.{(result['student'] or '').replace('.', '_')}")
    for step in steps:
        yield from _case(step, classname)
    if result.get("notes"):
        yield f"    <system-out>{escape(_legal(' '.join(result['notes'])))}</system-out>\n"
    yield SUITE_END


def _property(name: str, value: float) -> str:
    return f'      <property name={spelled(name)} value="{value:g}"/>\n'


def _case(step: dict[str, Any], classname: str) -> Iterator[str]:
    name = f'name={spelled(step["id"])} classname={classname} time="0"'
    inside = _inside(step)
    yield f"    <testcase {name}/>\n" if not inside else f"    <testcase {name}>\n      {inside}\n    </testcase>\n"


def _inside(step: dict[str, Any]) -> str:
    message = step["message"] or step["verdict"]
    kinds = " ".join(mistake["id"] for mistake in step["mistakes"]) or step["verdict"]
    if step["verdict"] == "wrong":
        return f"<failure message={spelled(message)} type={spelled(kinds)}>{escape(_legal(message))}</failure>"
    if step["verdict"] == "malformed":
        return f'<error message={spelled(message)} type="malformed">{escape(_legal(message))}</error>'
    return "<skipped/>" if step["verdict"] == "blank" else ""


def spelled(text: str) -> str:
    """Text as an attribute, with its quotes."""
    return quoteattr(_legal(text))


def _legal(text: str) -> str:
    """Only what XML 1.0 allows, and nothing that drives a terminal."""
    return "".join(c if c.isprintable() else " " if c in "\t\n\r" else "\N{REPLACEMENT CHARACTER}" for c in text)
