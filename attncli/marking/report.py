"""A marked sheet as plain data, by the field names others rely on (FORMATS)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from attncli.core.message import Language
from attncli.marking.explain import Named
from attncli.marking.marked import Marked, StepMark

#: What JSON allows as it is and a terminal or a log should not get: C1 controls, line separators, marks that turn the
#: direction of writing, and halves of surrogate pairs, which no UTF-8 has.
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


#: Digits after the point that a distance is given with.
_PLACES_OFF = 3


def data(marked: Marked, language: Language, right: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What `attncli check --format json` prints, and a line of `attncli grade --format jsonl`.

    Parameters
    ----------
    right : by step what it should have come to, as nested lists, where that is to be told
    """
    out: dict[str, Any] = {
        "schema": 1,
        "problem": marked.problem.id,
        "student": marked.student,
        "score": _sum([step.points for step in marked.steps]),
        "max_score": _sum([step.max_points for step in marked.steps]),
        "first_wrong": marked.first_wrong,
        "steps": [_step(step, language, right) for step in marked.steps],
    }
    if marked.notes:
        out["notes"] = [note.text(language) for note in marked.notes]
    return out


def _sum(points: list[Fraction]) -> float:
    """The exact sum; whole points, which are the most, are added as such."""
    whole = sum(one.numerator for one in points if one.denominator == 1)
    return float(sum((one for one in points if one.denominator != 1), Fraction(whole)))


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON that people can read (它 stays 它) and that does no harm where it is shown."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    if text.isascii() and "\x7f" not in text:
        return text
    return _UNSAFE.sub(lambda sign: f"\\u{ord(sign.group()):04x}", text)


def _step(step: StepMark, language: Language, right: Mapping[str, Any] | None) -> dict[str, Any]:
    out: dict[str, Any] = {
        "id": step.id,
        "verdict": step.verdict,
        "how": step.how,
        "points": step.points.numerator / step.points.denominator,
        "max_points": step.max_points.numerator / step.max_points.denominator,
        "mistakes": named(step.mistakes) if step.mistakes else [],
        "cells": list(map(list, step.cells)) if step.cells else [],
        "off": round(step.off, _PLACES_OFF) if step.off else step.off,
        "message": " ".join([message.text(language) for message in step.said]) if step.said else "",
    }
    if right is not None:
        out["right"] = right.get(step.id)
    return out


def named(mistakes: Iterable[Named]) -> list[dict[str, str]]:
    """Mistakes by the step they were made at, and by name."""
    return [{"step": one.step, "id": one.id} for one in mistakes]
