"""Rows added into a table by their ids: the gradient of a look-up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op
from attncli.matrix import as_matrix
from attncli.message import N_
from attncli.ops import Mistake, at, fixed, instead, values_for_gradients, with_operands
from attncli.ops._ids import named_in, rows_named
from attncli.terms import Index, Term, number

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, rows_of: Value, ids: Value, *, count: int, axis: str = "") -> Value:
    """A table of `count` rows (vocabulary d): row i (token d) is added at row ids[i]; the rest is 0."""
    return xp.scatter_add(rows_of, rows_named(xp, ids, count), count)


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    *head, v, j = index
    found = [i for i, row in enumerate(named_in(values, step.inputs[1])) if row == v]
    if not found:
        return number(0.0)
    return Term("sum", *(at(values, step.inputs[0], (*head, i, j)) for i in found))


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    from attncli.ops import look_up

    graph.apply(look_up.OP, id, upstream, step.inputs[1])


def mistakes(graph: Graph, step: Step) -> Iterator[Mistake]:
    """A repeated id that keeps only the gradient of its last token."""
    count = step.params["count"]
    yield instead("gradient-overwritten", step, partial(_only_the_last, count=count), *step.inputs)
    for wrong in values_for_gradients(graph, step):
        yield with_operands("value-for-gradient", step, OP, wrong, step.params)


def _only_the_last(xp: Arithmetic, rows_of: Value, ids: Value, *, count: int) -> Value:
    """Of every id only the row of its last token."""
    rows = rows_named(xp, ids, count)
    again = np.triu(rows[..., :, None] == rows[..., None, :], 1).any(-1)
    return xp.scatter_add(xp.where(again[..., None], xp.enter(as_matrix(0.0)), rows_of), rows, count)


OP = Op(
    name="scatter_add",
    compute=compute,
    axes="n d, n -> =vocabulary:count d",
    formula=fixed(r"\sum_{{i:\, {1}_i = v}} ({0})_i"),
    terms=terms,
    why=N_(
        "Each token sends its gradient back to the {row} it was looked up from. A repeated token adds, it never overwrites;"
        " a {row} nobody looked up gets 0."
    ),
    backward=(gradient, None),
    mistakes=mistakes,
)
