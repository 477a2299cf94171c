"""The mean of every row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at, number
from attncli.ops import share_mean
from attncli.ops._norm import mean

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value) -> Value:
    """The mean along the last axis, which is kept with length 1."""
    return mean(xp, a, -1)


def formula(params: Params, columns: bool) -> str:
    return r"\frac{{1}}{{d}} \sum_i {0}" if columns else r"\frac{{1}}{{d}} \sum_j {0}"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    source = step.inputs[0]
    width = values[source].shape[-1]
    total = Term("sum", *(at(values, source, (*index[:-1], j)) for j in range(width)))
    return Term("quotient", total, number(float(width)))


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    axis = graph.axes(step.inputs[0])[-1]
    graph.apply(share_mean.OP, id, upstream, width=axis.size, axis=axis.name)


OP = Op(
    name="row_mean",
    compute=compute,
    axes="i j -> i 1",
    formula=formula,
    terms=terms,
    why=N_("The mean of each {row}: its entries added up, divided by how many there are."),
    backward=(gradient,),
)
