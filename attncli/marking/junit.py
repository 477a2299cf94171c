"""JUnit XML (the Jenkins schema): a suite a student, a case a step. Wrong is a failure, malformed an error, blank skipped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from xml.sax.saxutils import escape, quoteattr


def document(results: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The document in pieces, a student each."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n'
    for result in results:
        yield from _suite(result)
    yield "</testsuites>\n"


def _suite(result: dict[str, Any]) -> Iterator[str]:
    steps = result["steps"] or [
        {
            "id": "sheet",
            "verdict": "malformed",
            "points": 0.0,
            "max_points": result["max_score"],
            "mistakes": [],
            "message": result.get("malformed", ""),
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
    yield f'  <testsuite name={_attribute(result["student"] or "")} {numbers} time="0">\n    <properties>\n'
    yield _property("score", result["score"]) + _property("max_score", result["max_score"])
    for step in steps:
        yield _property(f"points.{step['id']}", step["points"]) + _property(
            f"max_points.{step['id']}", step["max_points"]
        )
    yield "    </properties>\n"
    for step in steps:
        yield from _case(step, result)
    yield "  </testsuite>\n"


def _property(name: str, value: float) -> str:
    return f'      <property name={_attribute(name)} value="{value:g}"/>\n'


def _case(step: dict[str, Any], result: dict[str, Any]) -> Iterator[str]:
    name = f'name={_attribute(step["id"])} classname={_attribute(result["problem"])} time="0"'
    inside = _inside(step)
    yield f"    <testcase {name}/>\n" if not inside else f"    <testcase {name}>\n      {inside}\n    </testcase>\n"


def _inside(step: dict[str, Any]) -> str:
    message = step["message"] or step["verdict"]
    kinds = " ".join(mistake["id"] for mistake in step["mistakes"]) or step["verdict"]
    if step["verdict"] == "wrong":
        return f"<failure message={_attribute(message)} type={_attribute(kinds)}>{escape(_legal(message))}</failure>"
    if step["verdict"] == "malformed":
        return f'<error message={_attribute(message)} type="malformed">{escape(_legal(message))}</error>'
    return "<skipped/>" if step["verdict"] == "blank" else ""


def _attribute(text: str) -> str:
    return quoteattr(_legal(text))


def _legal(text: str) -> str:
    """Only characters that XML 1.0 allows."""
    return "".join(
        c
        if c in "\t\n\r" or " " <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c > "\uffff"
        else "\N{REPLACEMENT CHARACTER}"
        for c in text
    )
