"""One part of a sum wrong in a cell: a product left out, counted twice, or with the wrong sign."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from attncli.core.graph import Graph
from attncli.core.message import N_, Cell, Listed, Message
from attncli.core.terms import Index, Term
from attncli.marking.chain import MISFITS, Chain
from attncli.marking.judge import WRONG, Line, Rules, judge

#: What happened to a part, and how often it then counts.
_SLIPS = (
    (0.0, N_("Cell [{cell}]: the part {part} is missing from the sum.")),
    (2.0, N_("Cell [{cell}]: the part {part} is counted twice.")),
    (-1.0, N_("Cell [{cell}]: the part {part} has the wrong sign.")),
)

#: Parts a sum may have to be looked into.
_MOST = 64


def parts_wrong(graph: Graph, chain: Chain, step_id: str, line: Line, rules: Rules) -> tuple[Message, ...]:
    """One message a wrong cell of one sheet's line, if each of them comes from one wrong part; else none."""
    step = graph.steps[step_id]
    try:
        raw = chain.raw(step_id)
    except MISFITS:
        return ()
    if raw.shape[1:] != line.values.shape[1:] or not np.nan_to_num(line.values).any():
        return ()
    wrong = judge(line, [raw], rules).cells[0] == WRONG
    # One cell, or two at most: more is no slip.
    if not 0 < np.count_nonzero(wrong) <= 2 or step_id in chain.swap:
        return ()
    values = {name: chain.carried(name)[0] for name in step.inputs}
    half = 0.5 * 10.0**-rules.decimals * (1 + 1e-7)
    said = []
    for index in np.argwhere(wrong):
        place = tuple(int(i) for i in index)
        term = step.terms(values)[place]
        if term.kind != "sum" or not 1 < len(term.parts) <= _MOST:
            return ()
        found = next(_slips(term, values, place, float(line.values[0][place]), half), None)
        if found is None:
            return ()
        said.append(found)
    return tuple(said)


def _slips(term: Term, values: dict[str, Any], place: tuple[int, ...], here: float, half: float) -> Iterator[Message]:
    parts = term.terms
    numbers = [_number(part, values) for part in parts]
    if not np.isfinite(numbers).all():
        return
    for factor, text in _SLIPS:
        fitting = [
            _name(part)
            for i, part in enumerate(parts)
            if numbers[i] and abs(sum(n * factor if j == i else n for j, n in enumerate(numbers)) - here) <= half
        ]
        # Two that fit are named together, more say nothing.
        if 0 < len(fitting) <= 2:
            which = fitting[0] if len(fitting) == 1 else Message("{one} or {other}", one=fitting[0], other=fitting[1])
            yield Message(text, cell=Cell(i + 1 for i in place), part=which)


def _number(term: Term, values: dict[str, Any]) -> float:
    """A part: a cell, a number, or a product of those."""
    return term.fold(
        lambda step_id, index: float(values[step_id][index]),
        float,
        lambda term, factors: math.prod(factors) if term.kind == "product" else math.nan,
        lambda word: math.nan,
    )


def _name(term: Term) -> Message | str:
    """Q[1,2]·K[3,2]: which cells the part is made of."""

    def cell(step_id: str, index: Index) -> Message | str:
        return Message("{id}[{cell}]", id=step_id, cell=Cell(i + 1 for i in index))

    return term.fold(cell, "{:g}".format, lambda term, factors: Listed(factors, "{one}·{another}"), str)
