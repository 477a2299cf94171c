"""How much work an exercise is by hand, counted from the arithmetic of its cells."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

from attncli.core.graph import Graph
from attncli.core.terms import Term

#: What a person does nothing for.
_FREE = (0.0, 1.0, -1.0)
#: Each of these is a calculation of its own.
_CALCULATED = frozenset({"exp", "ln", "power", "root", "tanh", "erf", "sin", "cos"})


def effort(graph: Graph, values: Mapping[str, Any]) -> int:
    """Multiplications, divisions and powers of a whole calculation; those with 0 and ±1 cost nothing."""
    return sum(
        _work(step.op.terms(step, index, values), values)
        for step in graph.steps.values()
        for index in itertools.product(*map(range, graph.shape(step.id)))
    )


def _work(term: Term, values: Mapping[str, Any]) -> int:
    parts = [part for part in term.parts if isinstance(part, Term)]
    inside = sum(_work(part, values) for part in parts)
    if term.kind == "product":
        plain = [_plain(part, values) for part in parts]
        return 0 if 0.0 in plain else inside + max(0, sum(one not in _FREE for one in plain) - 1)
    if term.kind == "quotient":
        over, under = (_plain(part, values) for part in parts)
        return inside + (over != 0.0 and under not in _FREE)
    if term.kind in _CALCULATED:
        plain = [_plain(part, values) for part in parts]
        return inside + all(one is None or (one != 0.0 and math.isfinite(one)) for one in plain)
    return inside


def _plain(term: Term, values: Mapping[str, Any]) -> float | None:
    """A number that stands on the page, or None for something that is worked out first."""
    if term.kind == "cell":
        step, index = term.parts
        return float(values[str(step)][index])
    if term.kind == "number":
        return float(term.parts[0])  # type: ignore[arg-type]
    return None
