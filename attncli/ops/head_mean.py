"""The mean over the heads, entry by entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, fixed
from attncli.core.matrix import as_matrix
from attncli.core.message import N_
from attncli.core.terms import Index, Term, cell, number
from attncli.ops import to_heads

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value) -> Value:
    """(head i j) → (i j)."""
    heads = a.shape[-3]
    total = xp.sum(a, -3)
    return xp.divide(xp.reshape(total, (*total.shape[:-3], *total.shape[-2:])), xp.enter(as_matrix(float(heads))))


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    source = step.inputs[0]
    heads = values[source].shape[-3]
    return Term("quotient", Term("sum", *(cell(source, (h, *index)) for h in range(heads))), number(float(heads)))


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    graph.apply(to_heads.OP, id, upstream, heads=graph.shape(step.inputs[0])[-3])


OP = Op(
    name="head_mean",
    compute=compute,
    axes="h i j -> i j",
    formula=fixed(r"\frac{{1}}{{H}} \sum_h {0}"),
    terms=terms,
    why=N_(
        "The heads' weights averaged, as many libraries hand them out. A picture to look at: the output is not made of it."
    ),
    backward=(gradient,),
)
