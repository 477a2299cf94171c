"""JSON with full float64 precision (FORMATS), on one line."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from attncli.core.matrix import FloatArray
from attncli.render._example import compared, json_data
from attncli.render._numbers import number_text, plain
from attncli.render._view import Item, View


def render(view: View) -> str:
    """The run as one JSON object."""
    data = {
        "schema": 1,
        "model": view.run.problem.model,
        "arithmetic": view.run.trace.arithmetic,
        "layout": view.layout,
        "inputs": [_entry(item) for item in view.inputs],
        "steps": [_entry(item) for item in view.steps],
        "notes": [view.say(note) for note in (*view.notes, *view.summary)],
        **_verification(view),
        **_lesson(view),
    }
    return json.dumps(data, ensure_ascii=False, allow_nan=False) + "\n"


def _lesson(view: View) -> dict[str, Any]:
    """What a worked example says beside its steps."""
    data = json_data(view)
    compared_with = compared(view)
    if compared_with is not None and view.lesson is not None:
        data["contrast"] = {"changes": view.lesson.changes, "steps": [_entry(item) for item in compared_with[1]]}
    return data


def _entry(item: Item) -> dict[str, Any]:
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


def _verification(view: View) -> dict[str, Any]:
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


def _errors(errors: FloatArray) -> Any:
    """Nested lists; null where an entry was not compared (it is −∞, or at a bend), "inf" where there is no number."""
    if errors.ndim:
        return [_errors(part) for part in errors]
    error = float(errors)
    return None if math.isnan(error) else error if math.isfinite(error) else str(error)
