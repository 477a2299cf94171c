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
#: Entries beside one another.
_BESIDE = 8
#: Scores within ±4 differ by 8 at most.
_MOST = 8.0


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
            return _table(units)
    return ()


def _table(units: Sequence[float]) -> tuple[Powers, ...]:
    """Two lines, from small to large: halves up to 8, or halves up to 4 and multiples of the other unit."""
    halves = _BESIDE if len(units) > 1 else 2 * _BESIDE
    x = sorted({i * _HALF for i in range(1, halves + 1)} | {i * units[-1] for i in range(1, _BESIDE + 1)})
    lines = (x[:_BESIDE], x[_BESIDE:])
    return tuple(Powers(tuple(line), tuple(math.exp(-one) for one in line)) for line in lines)
