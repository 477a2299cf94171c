"""The sum of every row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, fixed
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at
from attncli.ops import spread

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value) -> Value:
    """The sum along the last axis, which is kept with length 1."""
    return xp.sum(a, -1)


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    source = step.inputs[0]
    return Term("sum", *(at(values, source, (*index[:-1], j)) for j in range(values[source].shape[-1])))


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    axis = graph.axes(step.inputs[0])[-1]
    graph.apply(spread.OP, id, upstream, width=axis.size, axis=axis.name)


OP = Op(
    name="row_sum",
    compute=compute,
    axes="i j -> i 1",
    formula=fixed(r"\sum_j {0}"),
    terms=terms,
    why=N_("Add up each {row}."),
    backward=(gradient,),
)
