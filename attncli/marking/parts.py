"""One part of a sum wrong in a cell: a product left out, counted twice, or with the wrong sign."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from attncli.arithmetic.interval import Interval
from attncli.core.graph import Graph
from attncli.marking.chain import Chain
from attncli.marking.judge import judge
from attncli.message import N_, Message
from attncli.problems.written import Written, meets
from attncli.terms import Term

#: What happened to a part, and how often it then counts.
_SLIPS = (
    (0.0, N_("Cell [{cell}]: the part {part} is missing from the sum.")),
    (2.0, N_("Cell [{cell}]: the part {part} is counted twice.")),
    (-1.0, N_("Cell [{cell}]: the part {part} has the wrong sign.")),
)

#: Relative widening that covers the rounding errors of adding up a few parts.
_SLACK = 1e-12

#: Parts a sum may have to be looked into.
_MOST = 64


def parts_wrong(graph: Graph, chain: Chain, id: str, written: Written, decimals: int) -> tuple[Message, ...]:
    """One message a wrong cell, if each of them comes from one wrong part; else none."""
    step = graph.steps[id]
    wrong = judge(written, chain, id, decimals).wrong
    # One cell, or two at most: more is no slip.
    if not 0 < np.count_nonzero(wrong) <= 2 or id in chain.swap:
        return ()
    values = _Carried(chain)
    stands = written.rounded_to(decimals)
    said = []
    for index in np.argwhere(wrong):
        place = tuple(int(i) for i in index)
        term = step.op.terms(step, place, values)
        if term.kind != "sum" or not 1 < len(term.parts) <= _MOST:
            return ()
        here = Interval(stands.lo[place], stands.hi[place])
        found = next(_slips(term, chain, place, here), None)
        if found is None:
            return ()
        said.append(found)
    return tuple(said)


class _Carried(dict[str, Any]):
    """Numbers as the terms ask for them: their shapes, and what is hidden."""

    def __init__(self, chain: Chain) -> None:
        super().__init__()
        self.chain = chain

    def __missing__(self, id: str) -> Any:
        return self.chain.carried(id).hi


def _slips(term: Term, chain: Chain, place: tuple[int, ...], here: Interval) -> Iterator[Message]:
    parts = [part for part in term.parts if isinstance(part, Term)]
    bounds = [_bounds(part, chain) for part in parts]
    if not all(np.isfinite(b).all() for b in bounds):
        return
    for factor, text in _SLIPS:
        fitting = []
        for i, part in enumerate(parts):
            changed = [_times(b, factor) if j == i else b for j, b in enumerate(bounds)]
            size = sum(max(abs(lo), abs(hi)) for lo, hi in changed) * _SLACK
            reached = Interval(
                np.asarray(sum(lo for lo, _ in changed) - size), np.asarray(sum(hi for _, hi in changed) + size)
            )
            if bool(meets(here, reached)):
                fitting.append(_name(part))
        # Two that fit are named together, more say nothing.
        if 0 < len(fitting) <= 2:
            which = (
                fitting[0] if len(fitting) == 1 else Message(N_("{one} or {other}"), one=fitting[0], other=fitting[1])
            )
            yield Message(text, cell=",".join(str(i + 1) for i in place), part=which)


def _times(bounds: tuple[float, float], factor: float) -> tuple[float, float]:
    lo, hi = bounds[0] * factor, bounds[1] * factor
    return min(lo, hi), max(lo, hi)


def _bounds(term: Term, chain: Chain) -> tuple[float, float]:
    """Bounds of a part: a cell, a number, or a product of those."""
    if term.kind == "cell":
        id, index = term.parts
        value = chain.carried(str(id))
        return float(value.lo[index]), float(value.hi[index])
    if term.kind == "number":
        number = float(str(term.parts[0]))
        return number, number
    if term.kind == "product":
        lo, hi = 1.0, 1.0
        for part in term.parts:
            assert isinstance(part, Term)
            a, b = _bounds(part, chain)
            corners = (lo * a, lo * b, hi * a, hi * b)
            lo, hi = min(corners), max(corners)
        return lo, hi
    return float("nan"), float("nan")


def _name(term: Term) -> str:
    """Q[1,2]·K[3,2]: which cells the part is made of."""
    if term.kind == "cell":
        id, index = term.parts
        assert isinstance(index, tuple)
        return f"{id}[{','.join(str(i + 1) for i in index)}]"
    if term.kind == "number":
        return f"{float(str(term.parts[0])):g}"
    return "·".join(_name(part) for part in term.parts if isinstance(part, Term))
