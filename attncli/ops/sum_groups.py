"""The sum over each group of neighbouring heads: the gradient of a shared head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, fixed
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value, *, group: int, heads: int, axis: str = "") -> Value:
    """Heads of a (head n d) added up in groups of `group` neighbours (kv_head n d)."""
    *more, _, rows, width = a.shape
    grouped = xp.reshape(a, (*more, heads, group, rows * width))
    return xp.reshape(xp.sum(grouped, -2), (*more, heads, rows, width))


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    h, i, j = index
    group = step.params["group"]
    return Term("sum", *(at(values, step.inputs[0], (h * group + g, i, j)) for g in range(group)))


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    from attncli.ops import share_heads

    graph.apply(share_heads.OP, id, upstream, group=step.params["group"], heads=graph.shape(step.inputs[0])[0])


OP = Op(
    name="sum_groups",
    compute=compute,
    axes="h n d -> =kv_head:heads n d",
    formula=fixed(r"\sum_{{\text{{group}}}} {0}"),
    terms=terms,
    why=N_("A shared head worked for several query heads, so it receives the sum of their gradients."),
    backward=(gradient,),
)
