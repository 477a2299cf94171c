"""Data formats (FORMATS): JSON on one line, CSV in long form, NumPy's .npz; of runs, comparisons and reports, every number in full."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from attncli.core.matrix import FloatArray
from attncli.core.message import Language, Localized, Message
from attncli.core.outputs import npz_bytes, spreadsheet_text
from attncli.core.report import Maps, Report
from attncli.cost.claims import Claim
from attncli.cost.comparison import ComparedModel, Comparison, VariantCount
from attncli.cost.count import CountLine
from attncli.render.comparison import counted, numbers, symbols
from attncli.render.document import Speaker, say_in
from attncli.render.run import compared, notice, prompt
from attncli.render.summary import summary
from attncli.render.text import filled, number_text, plain
from attncli.render.view import Item, View


def json_text(view: View) -> str:
    """The run as one JSON object."""
    data = {
        "schema": 1,
        "model": view.run.problem.model,
        "arithmetic": view.run.trace.arithmetic,
        "layout": view.layout,
        "inputs": [_step(item) for item in view.inputs],
        "steps": [_step(item) for item in view.steps],
        "notes": [view.say(note) for note in (*view.notes, *summary(view.run))],
        **_verification(view),
        **_lesson(view),
    }
    return json.dumps(data, ensure_ascii=False, allow_nan=False) + "\n"


def _lesson(view: View) -> dict[str, object]:
    """The fields of a lesson; nothing where there is none."""
    if view.lesson is None:
        return {}
    data: dict[str, object] = {}
    for key, message in (("prompt", prompt(view)), ("notice", notice(view))):
        if message is not None:
            data[key] = view.say(message)
    if view.lesson.problem.source:
        data["source"] = view.say(Localized(view.lesson.problem.source))
    data["compared"] = [
        {
            "step": one.step,
            "how": one.how,
            "ok": one.ok,
            "printed": one.printed,
            "computed": one.computed,
            "message": None if one.message is None else view.say(one.message),
        }
        for one in view.lesson.checks
    ]
    items = compared(view)
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
        entry["exact"] = np.vectorize(lambda number: number_text(number, item.decimals), otypes=[object])(
            array
        ).tolist()
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
    return {"verify": {"ok": found.ok, "inputs": inputs, "warnings": [view.say(warning) for warning in found.warnings]}}


def _errors(errors: FloatArray) -> object:
    """Nested lists; null where an entry was not compared (it is −∞, or at a bend), "inf" where there is no number."""
    if errors.ndim:
        return [_errors(part) for part in errors]
    error = float(errors)
    return None if math.isnan(error) else error if math.isfinite(error) else str(error)


_COLUMNS = ("step", "phase", "head", "row", "column", "row_name", "column_name", "value")


def csv_text(view: View) -> str:
    """Every number in full precision: step, phase, head, row, column (counted from 1), their names, value."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for item in (*view.inputs, *view.steps):
        writer.writerows(_cells(item))
    return out.getvalue()


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


_PARTS = (
    ("weights", "parameters"),
    ("prefill", "prefill_multiply_adds"),
    ("decode", "decode_multiply_adds"),
    ("absorbed", "decode_absorbed_multiply_adds"),
)


def comparison_json(comparison: Comparison, language: Language) -> str:
    """One object on one line."""
    same = comparison.same
    data = {
        "schema": 1,
        "models": [_model(model) for model in comparison.models],
        "entries": [{**_entry(entry), "products": _products(entry)} for entry in comparison.entries],
        "mla_as_gqa": [
            {"model": one.model, "head_widths": _whole(one.widths.value), "groups": _whole(one.groups.value)}
            for one in comparison.latent
        ],
        "claims": [_claim(claim, language) for claim in comparison.claims],
        "same_weights": {
            "seed": same.seed,
            "rows": [
                {"variant": row.variant, "kv_heads": row.kv_heads, "largest_difference": row.difference}
                for row in same.rows
            ],
            "mla_plain_and_absorbed": same.absorbed,
            "mqa_and_mha_apart": same.apart,
        },
        "counted": [message.text(language) for message in counted(comparison)],
    }
    return json.dumps(data, ensure_ascii=False, allow_nan=False) + "\n"


def comparison_csv(comparison: Comparison) -> str:
    """A row for every model and variant."""
    rows = [_entry(entry) for entry in comparison.entries]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _model(model: ComparedModel) -> dict[str, object]:
    sizes = {name: _whole(getattr(model.sizes, name)) for name in model.sizes._fields}
    return {
        "name": model.name,
        "title": model.title,
        "source": model.source,
        "config": dict(model.config),
        "variant": model.variant,
        "sizes": sizes,
        "given": list(model.given),
        "assumed": [one.name for one in model.assumed],
    }


def _entry(entry: VariantCount) -> dict[str, object]:
    count = entry.count
    found: dict[str, object] = {
        "model": entry.model.name,
        "variant": count.variant,
        "cache_formula": symbols(count.cache),
        "cache_elements_per_token": count.cache.value,
        "cache_bytes_per_token": _whole(count.cache_bytes),
        "cache_share_of_mha": _whole(entry.cache_share),
        "cached_tokens": count.sizes.cached,
        "cache_bytes": _whole(count.full_cache_bytes),
    }
    for part, name in _PARTS:
        share = entry.share(part)
        found[name] = None if share is None else count.total(part)
        found[f"{name}_share_of_mha"] = _whole(share)
    return found


def _products(entry: VariantCount) -> dict[str, object]:
    return {name: [_line(line) for line in getattr(entry.count, part)] for part, name in _PARTS}


def _line(line: CountLine) -> dict[str, object]:
    return {
        "name": line.name,
        "formula": symbols(line.count),
        "numbers": numbers(line.count),
        "per_layer": line.count.value,
    }


def _claim(claim: Claim, language: Language) -> dict[str, object]:
    def text(message: Message | None) -> str | None:
        return None if message is None else filled(message).text(language)

    return {
        "id": claim.id,
        "claim": text(claim.text),
        "findings": [
            {
                "model": finding.model,
                "reading": text(finding.reading),
                "formula": [symbols(finding.ratio.above), symbols(finding.ratio.below)],
                "numbers": [finding.ratio.above.value, finding.ratio.below.value],
                "ratio": _whole(finding.ratio.value),
                "holds": finding.holds,
                "where": text(finding.where),
            }
            for finding in claim.findings
        ],
        "verdict": text(claim.verdict),
    }


def _whole(value: object) -> object:
    """A fraction as a whole number where it is one, else as a float; anything else as it is."""
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    return value


# Reports.


def report_json(report: Report, language: Language) -> str:
    """The report as one JSON object on one line, its numbers in full."""
    say = _say_filled(language)
    data = {
        "schema": 1,
        "experiment": report.experiment,
        "title": say(report.title),
        "seed": report.seed,
        "settings": {name: _said(value, say) for name, value in report.settings.items()},
        "tables": [
            {
                "id": table.id,
                "title": say(table.title),
                "columns": [column.id for column in table.columns],
                "rows": [[_said(cell, say) for cell in row] for row in table.rows],
            }
            for table in report.tables
        ],
        "maps": [
            {"name": say(name), "values": _said(np.asarray(values).tolist(), say)}
            for part in report.parts
            if isinstance(part, Maps)
            for name, values in part.maps
        ],
        "said": [say(message) for message in report.said],
    }
    return json.dumps(data, ensure_ascii=False, allow_nan=False) + "\n"


def report_csv(report: Report, language: Language) -> str:
    """The tables and maps in long form, a row a cell: table, row (from 1), column, value in full."""
    say = _say_filled(language)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("table", "row", "column", "value"))
    for table in report.tables:
        for i, row in enumerate(table.rows, start=1):
            for column, cell in zip(table.columns, row, strict=True):
                text = spreadsheet_text(say(cell)) if isinstance(cell, (str, Message)) else repr(cell)
                writer.writerow((table.id, i, column.id, text))
    for part in report.parts:
        if isinstance(part, Maps):
            for name, values in part.maps:
                for (i, j), value in np.ndenumerate(np.asarray(values)):
                    writer.writerow((spreadsheet_text(say(name)), i + 1, j + 1, repr(float(value))))
    return out.getvalue()


def _say_filled(language: Language) -> Speaker:
    say = say_in(language)
    return lambda words: say(filled(words) if isinstance(words, Message) else words)


def _said(value: object, say: Speaker) -> object:
    """A value for JSON; infinities are "inf" and "-inf", NaN is "nan", as in every output of attncli."""
    if isinstance(value, Message):
        return say(value)
    if isinstance(value, (list, tuple)):
        return [_said(part, say) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
