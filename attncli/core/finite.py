"""Where the numbers of an evaluation stop being finite."""

from __future__ import annotations

import numpy as np

from attncli.arithmetic import Value
from attncli.core.graph import Step, Trace
from attncli.core.record import Record


class Lost(Record):
    """The first cell that is NaN, or infinite without being hidden; `overflow`: everything it came from was finite."""

    step: Step
    index: tuple[int, ...]
    value: float
    overflow: bool


def first_not_finite(trace: Trace) -> Lost | None:
    """The first step with such a cell; None where all numbers are what they should be, and for exact ones.

    A score that a mask hides is −∞, and so is what follows from it; −∞ that comes from nothing hidden is too large a
    number.
    """
    for step in trace.steps:
        values = trace[step.id]
        if values.dtype != np.float64 or np.isfinite(values).all():
            continue
        operands = [trace[step_id] for step_id in step.inputs]
        hidden = any(np.isneginf(operand).any() for operand in operands)
        wrong = np.isnan(values) | (np.isinf(values) if not hidden else np.isposinf(values))
        if wrong.any():
            index: tuple[int, ...] = tuple(map(int, np.argwhere(wrong)[0]))
            return Lost(step, index, float(values[index]), bool(np.isinf(values[index])) and _finite(operands))
    return None


def _finite(operands: list[Value]) -> bool:
    return all(bool((np.isfinite(operand) | np.isneginf(operand)).all()) for operand in operands)
