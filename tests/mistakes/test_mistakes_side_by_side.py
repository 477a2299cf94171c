"""Many sheets at once: a mistake or a route with one more axis in front gives the stack of what it gives for each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from mistake_graphs import graphs

from attncli.arithmetic.floating import FLOATING
from attncli.core.graph import Graph, Swap
from attncli.marking.chain import side_by_side
from attncli.mistakes import mistakes_at
from attncli.mistakes.routes import routes

#: What goes wrong where operands do not fit the other way round.
MISFITS = (ValueError, IndexError)


def swaps_in(graph: Graph) -> Iterator[tuple[str, Swap]]:
    """Every step done otherwise, in every mistake and every route, with its name."""
    for step in graph.steps:
        for mistake in mistakes_at(graph, step):
            for at, swap in {**mistake.swap, **mistake.alike}.items():
                yield f"{mistake.id} at {at}", swap
    for route in routes(graph):
        for at, swap in route.swap.items():
            yield f"{route.id} at {at}", swap


def moved(value: np.ndarray, sheet: int) -> np.ndarray:
    """The operand of another sheet: scaled, so that 0 and −∞ stay; ids of one table are turned round."""
    return np.roll(value, sheet, -1) if value.ndim == 1 else value * (1 + sheet / 8)


@pytest.mark.parametrize("name", graphs())
def test_side_by_side_equals_alone(name: str) -> None:
    graph = graphs()[name]
    numbers = graph.evaluate().numbers
    with FLOATING.context():
        for said, swap in swaps_in(graph):
            single = [numbers[id] for id in swap.inputs]
            own = [value.ndim for value in single]
            # One operand is shared by all sheets; then none is.
            for shared in {len(single), len(single) - 1}:
                each = [[v if i == shared else moved(v, s) for i, v in enumerate(single)] for s in range(2)]
                stacks = [
                    np.stack([each[0][i]] if i == shared else [row[i] for row in each]) for i in range(len(single))
                ]
                try:
                    alone = np.stack([swap.op.compute(FLOATING, *row, **swap.params) for row in each])
                except MISFITS:
                    continue
                together = side_by_side(swap.op.compute, FLOATING, stacks, own, swap.params)
                together = np.broadcast_to(together, (2, *together.shape[1:]))
                np.testing.assert_allclose(together, alone, rtol=1e-9, atol=1e-12, err_msg=said)
