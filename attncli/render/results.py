"""Marks and the results of a class for other programs: JSON, CSV, JUnit XML for a CI, results.json for Gradescope.

A result is what `Marked.data` gives, by the field names of FORMATS.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from attncli.arithmetic import Value
from attncli.core.message import Language, Message
from attncli.core.outputs import spreadsheet_text
from attncli.marking.explain import Named
from attncli.marking.feedback import RIGHT_VERDICTS, Marked, named
from attncli.render.text import plain

JsonObject = Mapping[str, Any]


def writer(format: str, steps: Sequence[str], language: Language) -> tuple[str, Callable[[JsonObject], str], str]:
    """How results are written in one of the formats of `grade`: what a file begins with, a result, what a file ends with.

    Parameters
    ----------
    steps : those that the exercise asks for
    """
    if format == "csv":
        head = _line(["student", "score", "max_score", "first_wrong", *steps, "mistakes", "remarks"])
        return head, lambda result: _row(result, steps), ""
    if format == "junit":
        head = '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n'
        return head, lambda result: "".join(_suite(result)), "</testsuites>\n"
    if format == "gradescope":
        return "", lambda result: one_line(_gradescope(result, language), indent=1) + "\n", ""
    return "", lambda result: one_line(result) + "\n", ""


def marks_json(
    marked: Marked, language: Language, *, right: Mapping[str, Value] | None = None, undetectable: Sequence[Named] = ()
) -> str:
    """One sheet's marks on one line (FORMATS), and what this exercise cannot tell.

    Parameters
    ----------
    right : by step, what it should have come to, where that was asked for
    """
    lists = None if right is None else {step_id: plain(values) for step_id, values in right.items()}
    return one_line({**marked.data(language, lists), "undetectable": named(undetectable)})


#: What JSON allows as it is and a terminal or a log should not get: C1 controls, line separators, marks that turn the
#: direction of writing, and halves of surrogate pairs, which no UTF-8 has.
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def one_line(value: object, indent: int | None = None) -> str:
    """JSON that people can read (它 stays 它) and that does no harm where it is shown."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    if text.isascii() and "\x7f" not in text:
        return text
    return _UNSAFE.sub(lambda sign: f"\\u{ord(sign.group()):04x}", text)


def _steps(result: JsonObject) -> Sequence[JsonObject]:
    """The steps; a sheet that has none, since it cannot be read, is one itself."""
    message = result.get("malformed") or result.get("fault", "")
    whole = {"id": "sheet", "verdict": "malformed", "points": 0.0, "max_points": result["max_score"], "mistakes": []}
    steps: Sequence[JsonObject] = result["steps"]
    return steps or [{**whole, "message": message}]


# CSV: a row a student, a column a step, and the mistakes.


def _row(result: JsonObject, steps: Sequence[str]) -> str:
    """Verdicts in the step columns, mistakes as step:id with spaces between them."""
    verdicts = {step["id"]: step["verdict"] for step in result["steps"]}
    mistakes = " ".join(f"{one['step']}:{one['id']}" for step in result["steps"] for one in step["mistakes"][:1])
    remarks = [*(result[name] for name in ("malformed", "fault") if name in result), *result.get("notes", ())]
    return _line(
        [
            _cell(result["student"] or ""),
            # Where there are no points yet, a spreadsheet must not find a 0.
            "" if result["score"] is None else f"{result['score']:g}",
            f"{result['max_score']:g}",
            _cell(result["first_wrong"] or ""),
            *(verdicts.get(step, "") for step in steps),
            _cell(mistakes),
            _cell(" ".join(remarks)),
        ]
    )


def _line(cells: Sequence[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


def _cell(text: str) -> str:
    """Text from a sheet: no control characters, and nothing that a spreadsheet would run as a formula."""
    return spreadsheet_text("".join(c if c.isprintable() else " " for c in text).strip())


# JUnit XML (the Jenkins schema): a suite a student, a case a step. Wrong is a failure, malformed an error, blank skipped.


def _suite(result: JsonObject) -> Iterator[str]:
    steps, student = _steps(result), result["student"] or ""
    verdicts = [step["verdict"] for step in steps]
    counts = {
        "tests": len(steps),
        "failures": verdicts.count("wrong"),
        "errors": verdicts.count("malformed"),
        "skipped": verdicts.count("blank"),
    }
    numbers = " ".join(f'{name}="{count}"' for name, count in counts.items())
    yield f'  <testsuite name={_attribute(student)} {numbers} time="0">\n    <properties>\n'
    if result["score"] is not None:
        yield _property("score", result["score"])
    yield _property("max_score", result["max_score"])
    for step in steps:
        yield _property(f"points.{step['id']}", step["points"])
        yield _property(f"max_points.{step['id']}", step["max_points"])
    yield "    </properties>\n"
    # A package an exercise, a class a student, a test a step: so Jenkins and others keep students apart.
    class_name = _attribute(f"{result['problem']}.{student.replace('.', '_')}")
    for step in steps:
        inside = _outcome(step)
        case = f'    <testcase name={_attribute(step["id"])} classname={class_name} time="0"'
        yield f"{case}>\n      {inside}\n    </testcase>\n" if inside else f"{case}/>\n"
    if result.get("notes"):
        yield f"    <system-out>{escape(_legal(' '.join(result['notes'])))}</system-out>\n"
    yield "  </testsuite>\n"


def _property(name: str, value: float) -> str:
    return f'      <property name={_attribute(name)} value="{value:g}"/>\n'


def _outcome(step: JsonObject) -> str:
    message = step["message"] or step["verdict"]
    kinds = " ".join(mistake["id"] for mistake in step["mistakes"]) or step["verdict"]
    if step["verdict"] == "wrong":
        return f"<failure message={_attribute(message)} type={_attribute(kinds)}>{escape(_legal(message))}</failure>"
    if step["verdict"] == "malformed":
        return f'<error message={_attribute(message)} type="malformed">{escape(_legal(message))}</error>'
    return "<skipped/>" if step["verdict"] == "blank" else ""


def _attribute(text: str) -> str:
    """Text as an attribute, with its quotes."""
    return quoteattr(_legal(text))


def _legal(text: str) -> str:
    """Only what XML 1.0 allows, and nothing that drives a terminal."""
    return "".join(c if c.isprintable() else " " if c in "\t\n\r" else "\N{REPLACEMENT CHARACTER}" for c in text)


# results.json as Gradescope's autograders hand it back (gradescope-autograders.readthedocs.io, specifications).


def _gradescope(result: JsonObject, language: Language) -> JsonObject:
    """One student's results: a test a step, and a visible total."""
    extra = {name: result[name] for name in ("problem", "student", "max_score", "first_wrong")}
    if "fault" in result:
        # Without any score Gradescope says that the autograder failed, as it did, and asks the teacher.
        return {"output": result["fault"], "visibility": "visible", "extra_data": extra}
    score, most = f"{result['score']:g}", f"{result['max_score']:g}"
    output = [Message("Points: {score} of {most}", score=score, most=most).text(language)]
    output += [result["malformed"]] if "malformed" in result else []
    output += result.get("notes", ())
    return {
        "score": result["score"],
        "output": "\n".join(output),
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "extra_data": extra,
        "tests": [_test(step, number) for number, step in enumerate(_steps(result), start=1)],
    }


def _test(step: JsonObject, number: int) -> JsonObject:
    """A step as a test. One left blank has neither score nor status, from which Gradescope would make it red."""
    passed = step["verdict"] in RIGHT_VERDICTS or step["verdict"] == "follow_through"
    judged = {"score": step["points"], "max_score": step["max_points"], "status": "passed" if passed else "failed"}
    return {
        "name": step["id"],
        "number": str(number),
        **({} if step["verdict"] == "blank" else judged),
        "output": step["message"] or step["verdict"],
        "tags": [step["verdict"], *(mistake["id"] for mistake in step["mistakes"])],
        "visibility": "visible",
    }
