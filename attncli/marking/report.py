"""A marked sheet as plain data, by the field names others rely on (FORMATS)."""

from __future__ import annotations

from typing import Any

from attncli.marking.mark import Marked, StepMark
from attncli.message import Language


def data(marked: Marked, language: Language) -> dict[str, Any]:
    """What `attncli check --format json` prints, and a line of `attncli grade --format jsonl`."""
    out: dict[str, Any] = {
        "schema": 1,
        "problem": marked.problem.id,
        "student": marked.student,
        "score": float(marked.score),
        "max_score": float(marked.max_score),
        "first_wrong": marked.first_wrong,
        "steps": [_step(step, language) for step in marked.steps],
    }
    if marked.notes:
        out["notes"] = [note.text(language) for note in marked.notes]
    return out


def _step(step: StepMark, language: Language) -> dict[str, Any]:
    return {
        "id": step.id,
        "verdict": step.verdict,
        "points": float(step.points),
        "max_points": float(step.max_points),
        "mistakes": [{"step": named.step, "id": named.id} for named in step.mistakes],
        "cells": [list(cell) for cell in step.cells],
        "message": " ".join(message.text(language) for message in step.said),
    }
