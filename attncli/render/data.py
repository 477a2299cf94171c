"""For other programs (FORMATS), every number in full: JSON on one line, CSV in long form, NumPy's .npz; results of a class also as
JUnit XML for a CI, and as results.json for Gradescope.

A result is what `Marked.data` gives.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from attncli.arithmetic import Value
from attncli.core.matrix import FloatArray
from attncli.core.message import Language, Localized, Message
from attncli.core.outputs import npz_bytes, spreadsheet_text
from attncli.core.report import Maps, Report
from attncli.render.document import Speaker, say_in
from attncli.render.run import compared, notice, prompt
from attncli.render.summary import remarks
from attncli.render.text import finite, plain
from attncli.render.view import Item, View

if TYPE_CHECKING:
    from attncli.cost.claims import Claim
    from attncli.cost.comparison import Comparison, VariantCount
    from attncli.cost.published import ComparedModel
    from attncli.marking.explain import Named
    from attncli.marking.feedback import Marked

#: What JSON allows as it is and a terminal or a log should not get: C1 controls, line separators, marks that turn the
#: direction of writing, and halves of surrogate pairs, which no UTF-8 has.
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def one_line(value: object, say: Speaker = str, indent: int | None = None) -> str:
    """JSON that people can read (它 stays 它) and that does no harm where it is shown.

    Parameters
    ----------
    say : says the messages in it; a fraction is a whole number where it is one, else a float
    """

    def told(value: Message | Fraction) -> object:
        return say(value) if isinstance(value, Message) else _whole(value)

    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, default=told)
    if text.isascii() and "\x7f" not in text:
        return text
    return _UNSAFE.sub(lambda sign: f"\\u{ord(sign.group()):04x}", text)


def _whole(value: object) -> object:
    """A fraction as a whole number where it is one, else as a float; anything else as it is."""
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    return value


def _csv(rows: Iterable[Iterable[object]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


# A run.


def json_text(view: View) -> str:
    """The run as one JSON object."""
    data = {
        "schema": 1,
        "model": view.run.problem.model,
        "arithmetic": view.run.trace.arithmetic,
        "layout": view.layout,
        "inputs": [_step(item) for item in view.inputs],
        "steps": [_step(item) for item in view.steps],
        "notes": list(remarks(view.run)),
        **_verification(view),
        **_lesson(view),
    }
    return one_line(data, say_in(view.language)) + "\n"


def _lesson(view: View) -> dict[str, object]:
    """The fields of a lesson; nothing where there is none."""
    if view.lesson is None:
        return {}
    source, items = view.lesson.problem.source, compared(view)
    said = {"prompt": prompt(view), "notice": notice(view), "source": Localized(source) if source else None}
    checks = [
        {name: getattr(check, name) for name in ("step", "how", "ok", "printed", "computed", "message")}
        for check in view.lesson.checks
    ]
    data = {**{name: message for name, message in said.items() if message is not None}, "compared": checks}
    if items is not None:
        data["contrast"] = {"changes": view.lesson.changes, "steps": [_step(item) for item in items]}
    return data


def _step(item: Item) -> dict[str, object]:
    array = item.array
    entry = {
        "id": item.id,
        "symbol": item.symbol,
        "phase": item.phase,
        "formula": item.formula,
        "inputs": list(item.inputs),
        "shape": list(array.shape),
        "value": plain(array),
    }
    if array.dtype == object:
        texts = np.array([item.text(number) for number in array.flat], dtype=object)
        entry["exact"] = texts.reshape(array.shape).tolist()
    return entry


def _verification(view: View) -> dict[str, object]:
    found = view.run.verification
    if found is None:
        return {}
    inputs = [
        {
            "id": entry.id,
            "ok": entry.ok,
            "worst": _errors(np.asarray(entry.worst)),
            "relative_error": _errors(entry.error),
        }
        for entry in found.checked
    ]
    return {"verify": {"ok": found.ok, "inputs": inputs, "warnings": found.warnings}}


def _errors(errors: FloatArray) -> object:
    """Nested lists; null where an entry was not compared (it is −∞, or at a bend), "inf" where there is no number."""
    if errors.ndim:
        return [_errors(part) for part in errors]
    error = float(errors)
    return None if math.isnan(error) else error if math.isfinite(error) else str(error)


_COLUMNS = ("step", "phase", "head", "row", "column", "row_name", "column_name", "value")


def csv_text(view: View) -> str:
    """Every number in full precision: step, phase, head, row, column (counted from 1), their names, value."""
    return _csv([_COLUMNS, *(row for item in (*view.inputs, *view.steps) for row in _cells(item))])


def _cells(item: Item) -> Iterator[tuple[object, ...]]:
    for block in item.panels:
        head = "" if block.head is None else block.head
        values = block.values.astype(np.float64)
        for (i, j), value in np.ndenumerate(values):
            names = (spreadsheet_text(block.rows[i]), spreadsheet_text(block.columns[j]))
            # repr is the shortest text that reads back as the same float64; inf, -inf and nan are themselves.
            yield spreadsheet_text(item.id), item.phase, head, i + 1, j + 1, *names, repr(float(value))


def npz_file(view: View) -> bytes:
    """A file that numpy.load(…, allow_pickle=False) reads; exact results are in it as float64."""
    items = (*view.inputs, *view.steps)
    return npz_bytes({item.id: np.array(item.array, dtype="<f8", order="C") for item in items})


# A comparison.

#: Parts of a count, and what they are called here.
_PARTS = {
    "weights": "parameters",
    "prefill": "prefill_multiply_adds",
    "decode": "decode_multiply_adds",
    "absorbed": "decode_absorbed_multiply_adds",
}


def comparison_json(comparison: Comparison, language: Language) -> str:
    """One object on one line."""
    from attncli.render.comparison import counted

    same = comparison.same
    data = {
        "schema": 1,
        "models": [_model(model) for model in comparison.models],
        "entries": [{**_entry(entry), "products": _products(entry)} for entry in comparison.entries],
        "mla_as_gqa": [
            {
                "model": entry.model.preset.name,
                "head_widths": entry.count.widths.value,
                "groups": entry.count.groups.value,
            }
            for entry in comparison.of_variant("mla")
        ],
        "claims": [_claim(claim) for claim in comparison.claims],
        "same_weights": {
            "seed": same.seed,
            "rows": [
                {"variant": variant, "kv_heads": kv_heads, "largest_difference": difference}
                for variant, kv_heads, difference in same.rows
            ],
            "mla_plain_and_absorbed": same.absorbed,
            "mqa_and_mha_apart": same.apart,
        },
        "counted": list(counted(comparison)),
    }
    return one_line(data, say_in(language)) + "\n"


def comparison_csv(comparison: Comparison) -> str:
    """A row for every model and variant."""
    rows = [_entry(entry) for entry in comparison.entries]
    return _csv([rows[0], *(map(_whole, row.values()) for row in rows)])


def _model(model: ComparedModel) -> dict[str, object]:
    preset = model.preset
    return {
        "name": preset.name,
        "title": preset.title,
        "source": preset.source,
        "config": dict(preset.config),
        "variant": preset.variant,
        "sizes": {name: getattr(model.sizes, name) for name in model.sizes._fields},
        "given": list(model.given),
        "assumed": list(model.assumed),
    }


def _entry(entry: VariantCount) -> dict[str, object]:
    count = entry.count
    found: dict[str, object] = {
        "model": entry.model.preset.name,
        "variant": count.variant,
        "cache_formula": count.cache.symbols,
        "cache_elements_per_token": count.cache.value,
        "cache_bytes_per_token": count.cache_bytes,
        "cache_share_of_mha": entry.cache_share,
        "cached_tokens": count.sizes.cached,
        "cache_bytes": count.full_cache_bytes,
    }
    for part, name in _PARTS.items():
        found[name] = count.total(part) if part in count.parts else None
        found[f"{name}_share_of_mha"] = entry.share(part)
    return found


def _products(entry: VariantCount) -> dict[str, object]:
    return {
        name: [
            {"name": line, "formula": count.symbols, "numbers": count.numbers, "per_layer": count.value}
            for line, count in entry.count.parts.get(part, {}).items()
        ]
        for part, name in _PARTS.items()
    }


def _claim(claim: Claim) -> dict[str, object]:
    return {
        "id": claim.id,
        "claim": claim.text,
        "findings": [
            {
                "model": finding.model.preset.name,
                "reading": finding.reading,
                "formula": [finding.ratio.above.symbols, finding.ratio.below.symbols],
                "numbers": [finding.ratio.above.value, finding.ratio.below.value],
                "ratio": finding.ratio.value,
                "holds": finding.holds,
                "where": finding.where,
            }
            for finding in claim.findings
        ],
        "verdict": claim.verdict,
    }


# A report.


def report_json(report: Report, language: Language) -> str:
    """The report as one JSON object on one line, its numbers in full."""
    data = {
        "schema": 1,
        "experiment": report.experiment,
        "title": report.title,
        "seed": report.seed,
        "settings": {name: finite(value) for name, value in report.settings.items()},
        "tables": [
            {
                "id": table.id,
                "title": table.title,
                "columns": [column.id for column in table.columns],
                "rows": finite(table.rows),
            }
            for table in report.tables
        ],
        "maps": [{"name": name, "values": plain(values)} for name, values in _maps(report)],
        "said": report.said,
    }
    return one_line(data, say_in(language)) + "\n"


def report_csv(report: Report, language: Language) -> str:
    """The tables and maps in long form, a row a cell: table, row (from 1), column, value in full."""
    say = say_in(language)

    def rows() -> Iterator[tuple[object, ...]]:
        yield "table", "row", "column", "value"
        for table in report.tables:
            for i, row in enumerate(table.rows, start=1):
                for column, cell in zip(table.columns, row, strict=True):
                    text = spreadsheet_text(say(cell)) if isinstance(cell, (str, Message)) else repr(cell)
                    yield table.id, i, column.id, text
        for name, values in _maps(report):
            for (i, j), value in np.ndenumerate(values):
                yield spreadsheet_text(say(name)), i + 1, j + 1, repr(float(value))

    return _csv(rows())


def _maps(report: Report) -> Iterator[tuple[Message, FloatArray]]:
    for part in report.parts:
        if isinstance(part, Maps):
            yield from part.maps


# Marks, and the results of a class.

JsonObject = Mapping[str, Any]


def writer(format: str, steps: Sequence[str], language: Language) -> tuple[str, Callable[[JsonObject], str], str]:
    """How results are written in one of the formats of `grade`: what a file begins with, a result, what a file ends with.

    Parameters
    ----------
    steps : those that the exercise asks for
    """
    if format == "csv":
        head = _csv([["student", "score", "max_score", "first_wrong", *steps, "mistakes", "remarks"]])
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
    from attncli.marking.feedback import named

    lists = None if right is None else {step_id: plain(values) for step_id, values in right.items()}
    return one_line({**marked.data(language, lists), "undetectable": named(undetectable)})


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
    mistakes = " ".join(
        f"{mistake['step']}:{mistake['id']}" for step in result["steps"] for mistake in step["mistakes"][:1]
    )
    remarks = [*(result[name] for name in ("malformed", "fault") if name in result), *result.get("notes", ())]
    cells = [
        _cell(result["student"] or ""),
        # Where there are no points yet, a spreadsheet must not find a 0.
        "" if result["score"] is None else f"{result['score']:g}",
        f"{result['max_score']:g}",
        _cell(result["first_wrong"] or ""),
        *(verdicts.get(step, "") for step in steps),
        _cell(mistakes),
        _cell(" ".join(remarks)),
    ]
    return _csv([cells])


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
    from attncli.marking.feedback import RIGHT_VERDICTS

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
