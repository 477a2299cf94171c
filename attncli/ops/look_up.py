"""Rows of a table by their ids: X = E[T]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at
from attncli.ops import scatter_add
from attncli.ops._ids import looked_up, named_in, rows_named

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, table: Value, ids: Value) -> Value:
    """Row ids[i] of the table (vocabulary d) for every token i (token d)."""
    return looked_up(xp, table, rows_named(xp, ids, table.shape[-2]))


def formula(params: Params, columns: bool) -> str:
    return "{0}[:, {1}]" if columns else "{0}[{1}]"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    table, ids = step.inputs
    *head, i, j = index
    return at(values, table, (*head, named_in(values, ids)[i], j))


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    table, ids = step.inputs
    axis = graph.axes(table)[-2]
    graph.apply(scatter_add.OP, id, upstream, ids, count=axis.size, axis=axis.name)


OP = Op(
    name="look_up",
    compute=compute,
    axes="v d, n -> n d",
    formula=formula,
    terms=terms,
    why=N_("Each id names a {row} of the table; that {row} becomes the token's vector."),
    backward=(gradient, None),
)
