"""Rows added into a table by their ids: the gradient of a look-up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, fixed
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at, number
from attncli.ops._ids import added_up, named_in, rows_named

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, rows_of: Value, ids: Value, *, count: int, axis: str = "") -> Value:
    """A table of `count` rows (vocabulary d): row i (token d) is added at row ids[i]; the rest is 0."""
    return added_up(xp, rows_of, rows_named(xp, ids, count), count)


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    *head, v, j = index
    found = [i for i, row in enumerate(named_in(values, step.inputs[1])) if row == v]
    if not found:
        return number(0.0)
    return Term("sum", *(at(values, step.inputs[0], (*head, i, j)) for i in found))


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    from attncli.ops import look_up

    graph.apply(look_up.OP, id, upstream, step.inputs[1])


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
)
