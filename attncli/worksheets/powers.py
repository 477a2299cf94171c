"""A table of e^−x for a sheet, in place of a calculator: the same for all variants, so that it gives nothing away."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from attncli.core.record import Record
from attncli.problems.problem import Problem

#: Between which the exponents of hand-friendly numbers lie, as multiples: halves, and halves over a root of d_k.
_HALF = 0.5
_ROOTS = (1, 2, 3, 5, 6, 7)
#: Scores within ±4 differ by 8 at most.
_MOST = 8.0
#: Entries beside one another.
_BESIDE = 8


class Powers(Record):
    """A line of the table.

    Parameters
    ----------
    x, power : x and e^−x, entry by entry
    """

    x: tuple[float, ...]
    power: tuple[float, ...]


def powers_of(problem: Problem, asked: Sequence[str]) -> tuple[Powers, ...]:
    """The table for an exercise; empty where it takes no exponentials, or those of numbers that no short table holds.

    Parameters
    ----------
    asked : the steps that are handed in; what comes after the last of them nobody works out
    """
    graph = problem.graph()
    places = {id: place for place, id in enumerate(graph.steps)}
    last = max((places[id] for id in asked if id in places), default=-1)
    exponents = [step.inputs[0] for step in graph.steps.values() if step.op.name == "exp" and places[step.id] <= last]
    if not exponents:
        return ()
    values = graph.evaluate(until=exponents)
    seen = np.concatenate([np.ravel(values[id]) for id in exponents])
    seen = -seen[np.isfinite(seen)]
    for root in _ROOTS:
        units = (_HALF, math.sqrt(1 / root)) if root > 1 else (_HALF,)
        near = [np.abs(seen / unit - np.rint(seen / unit)) < 1e-9 for unit in units]
        if np.any(near, axis=0).all() and (seen <= _MOST + 1e-9).all() and (seen >= 0).all():
            return tuple(line for unit in units for line in _lines(unit))
    return ()


def _lines(unit: float) -> list[Powers]:
    count = (
        round(_MOST / _HALF) if unit == _HALF else round(_MOST)
    )  # scores are whole numbers where a root divides them
    entries = [i * unit for i in range(1, count + 1)]
    lines = [tuple(entries[start : start + _BESIDE]) for start in range(0, count, _BESIDE)]
    return [Powers(line, tuple(math.exp(-x) for x in line)) for line in lines]
