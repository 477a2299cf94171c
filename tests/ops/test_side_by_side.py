"""Many sheets at once: a step with one more axis in front gives the stack of what it gives for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from cases import CASES, IDS, Case
from cases import EACH as EACH_CASE
from samples import OPS, SAMPLES, Sample

from attncli.arithmetic import Arithmetic, Value
from attncli.arithmetic.exact import Exact
from attncli.arithmetic.floating import FLOATING
from attncli.arithmetic.hand import Hand
from attncli.arithmetic.interval import Interval, IntervalArithmetic
from attncli.core.graph import Graph
from attncli.core.matrix import as_matrix
from attncli.core.message import InputError, NoSuchRow
from attncli.marking.chain import side_by_side
from attncli.ops.embedding import rows_named

SYSTEMS: dict[str, Callable[[], Arithmetic]] = {
    "floating": lambda: FLOATING,
    "hand": lambda: Hand(6),
    "interval": lambda: IntervalArithmetic(6),
}


def stacked(values: Sequence[Value]) -> Value:
    if isinstance(values[0], Interval):
        lo = np.stack([value.lo for value in values])
        points = all(value.lo is value.hi for value in values)
        return Interval(lo, lo if points else np.stack([value.hi for value in values]))
    return np.stack(values)


def ends(value: Value) -> tuple[Any, ...]:
    return (value.lo, value.hi) if isinstance(value, Interval) else (value,)


def moved(value: Value, sheet: int) -> Value:
    """The operand of another sheet: the numbers scaled, so that 0 and −∞ stay; ids of one table are turned round."""
    if isinstance(value, Interval):
        lo = moved(value.lo, sheet)
        return Interval(lo, lo if value.lo is value.hi else moved(value.hi, sheet))
    factor = 1 + sheet / 8
    return np.roll(value, sheet, -1) if np.asarray(value).ndim == 1 else value * factor


def assert_stacks(graph: Graph, xp: Arithmetic, sheets: int) -> None:
    """Every step of the graph, with its operands as they are and moved; each operand shared in turn, too."""
    trace = graph.evaluate(xp)
    with xp.context():
        for step in graph.steps.values():
            single = [trace[id] for id in step.inputs]
            own = [len(value.shape) for value in single]
            for shared in (None, *range(len(single))):
                each = [
                    [value if place == shared else moved(value, sheet) for place, value in enumerate(single)]
                    for sheet in range(sheets)
                ]
                wanted = [xp.round_step(step.op.compute(xp, *operands, **step.params)) for operands in each]
                operands = [
                    stacked([value]) if place == shared else stacked([row[place] for row in each])
                    for place, value in enumerate(single)
                ]
                found = xp.round_step(side_by_side(step.op.compute, xp, operands, own, step.params))
                # What no sheet has of its own may come once for all.
                count = 1 if not single or (len(single) == 1 and shared == 0) else sheets
                assert found.shape == (count, *graph.shape(step.id)), step.id
                for a, b in zip(ends(found), ends(stacked(wanted[:count])), strict=True):
                    np.testing.assert_allclose(
                        a.astype(float), b.astype(float), rtol=1e-9, atol=1e-9, err_msg=f"{step.id}, shared: {shared}"
                    )


EACH = [(name, sample) for name, samples in SAMPLES.items() for sample in samples]
SAMPLE_IDS = [f"{name}-{number}" for name, samples in SAMPLES.items() for number in range(len(samples))]


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(("name", "sample"), EACH, ids=SAMPLE_IDS)
def test_an_op_of_many_sheets_is_the_stack_of_single_ones(name: str, sample: Sample, system: str) -> None:
    graph = sample.graph(name)
    # 2, 3 and 4 are the numbers of heads, tokens and columns in the samples.
    for sheets in (1, 2, 3, 4):
        assert_stacks(graph, SYSTEMS[system](), sheets)


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(("model", "case"), EACH_CASE, ids=IDS)
def test_every_step_of_every_model_of_many_sheets(model: str, case: Case, system: str) -> None:
    try:
        graph = case.with_upstream(model).graph(backward=True)
    except InputError:  # nothing in it has a gradient
        graph = case.problem(model).graph()
    for sheets in (2, 3):
        assert_stacks(graph, SYSTEMS[system](), sheets)


@pytest.mark.parametrize(("model", "number"), [("embedded_attention", 1), ("attention", 8), ("attention", 16)])
def test_exact_numbers_of_many_sheets(model: str, number: int) -> None:
    graph = CASES[model][number].problem(model).graph()
    whole = {
        id: np.vectorize(
            lambda v: Exact().sympy.Integer(round(float(v))) if np.isfinite(v) else -Exact().sympy.oo, otypes=[object]
        )(value)
        for id, value in graph.evaluate().numbers.items()
    }
    xp = Exact()
    for step in graph.steps.values():
        single = [whole[id] for id in step.inputs]
        if step.op.name in ("exp", "divide"):
            continue
        found = side_by_side(
            step.op.compute, xp, [np.stack([v, v]) for v in single], [v.ndim for v in single], step.params
        )
        wanted = step.op.compute(xp, *single, **step.params)
        assert (found == np.stack([wanted, wanted])).all(), step.id


def test_an_id_that_names_no_row_is_refused() -> None:
    ids = np.array([0.0, 2.0, 0.5, -1.0, 3.0])
    with pytest.raises(NoSuchRow) as refused:
        rows_named(FLOATING, ids, 3)
    assert refused.value.positions == ((2,), (3,), (4,))
    assert refused.value.at("X").positions == refused.value.positions
    assert "whole numbers from 0 to 2" in str(refused.value)
    with pytest.raises(NoSuchRow, match="nan"):
        rows_named(FLOATING, np.array([np.nan]), 3)
    np.testing.assert_array_equal(rows_named(FLOATING, np.array([0.001, 1.999]), 3), [0, 2])


@pytest.mark.parametrize("system", SYSTEMS)
def test_an_id_that_names_no_row_stops_no_other_sheet(system: str) -> None:
    """Its own vector is no number and its gradient goes nowhere; the other sheets are what they are alone."""
    xp = SYSTEMS[system]()
    look, scatter = OPS["look_up"], OPS["scatter_add"]
    table, ids = np.arange(6.0).reshape(1, 3, 2), np.array([[0.0, 2.0], [1.0, 9.0], [np.nan, 0.5]])
    with xp.context():
        entered = [xp.constant(as_matrix(values)) for values in (table, ids)]
        found = ends(side_by_side(look.compute, xp, entered, (2, 1), {}))[0]
        np.testing.assert_array_equal(found[0], [[0, 1], [4, 5]])
        np.testing.assert_array_equal(found[1], [[2, 3], [np.nan, np.nan]])
        assert np.isnan(found[2]).all()
        rows = xp.constant(as_matrix(np.ones((3, 2, 2))))
        added = ends(side_by_side(scatter.compute, xp, [rows, entered[1]], (2, 1), {"count": 3}))[0]
        np.testing.assert_array_equal(added[..., 0], [[1, 0, 1], [0, 1, 0], [0, 0, 0]])
