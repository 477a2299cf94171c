"""Heads put side by side: every row gets its piece from head 1, then its piece from head 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, fixed
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value, *, heads: int, width: int, joined: int, axis: str = "") -> Value:
    """Columns h·width … (h+1)·width−1 of row i: row i of head h of a (head n width), as (n heads·width)."""
    turned = xp.swapaxes(a, -3, -2)
    return xp.reshape(turned, (*turned.shape[:-2], joined))


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    i, j = index
    width = step.params["width"]
    return at(values, step.inputs[0], (j // width, i, j % width))


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    from attncli.ops import split_heads

    head, _, width = graph.axes(step.inputs[0])
    graph.apply(split_heads.OP, id, upstream, heads=head.size, width=width.size, names=(head.name, width.name))


OP = Op(
    name="merge_heads",
    compute=compute,
    axes="h n d -> n =d:joined",
    formula=fixed(r"\operatorname{{concat}}({0})"),
    terms=terms,
    why=N_("The pieces of a {row} are put side by side again, head 1 first."),
    backward=(gradient,),
)
