"""The sum over each group of neighbouring heads: the gradient of a shared head."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op
from attncli.message import N_
from attncli.ops import Mistake, at, fixed, instead
from attncli.terms import Index, Term

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


def mistakes(graph: Graph, step: Step) -> Iterator[Mistake]:
    """Only one query head of each group, or other heads put together."""
    group, heads = step.params["group"], step.params["heads"]
    if group == 1:
        return
    for only in range(group):
        yield instead("group-not-summed", step, _only(only, group, heads), step.inputs[0])
    if heads > 1:
        yield instead("kv-heads-tiled", step, _dealt(group, heads), step.inputs[0])


def _only(head: int, group: int, heads: int) -> Any:
    def one(xp: Arithmetic, a: Value) -> Value:
        *more, _, rows, width = a.shape
        grouped = xp.reshape(a, (*more, heads, group, rows * width))
        return xp.reshape(xp.slice(grouped, -2, head, head + 1), (*more, heads, rows, width))

    return one


def _dealt(group: int, heads: int) -> Any:
    def every_other(xp: Arithmetic, a: Value) -> Value:
        *more, _, rows, width = a.shape
        dealt = xp.reshape(a, (*more, group, heads * rows * width))
        return xp.reshape(xp.sum(dealt, -2), (*more, heads, rows, width))

    return every_other


OP = Op(
    name="sum_groups",
    compute=compute,
    axes="h n d -> =kv_head:heads n d",
    formula=fixed(r"\sum_{{\text{{group}}}} {0}"),
    terms=terms,
    why=N_("A shared head worked for several query heads, so it receives the sum of their gradients."),
    backward=(gradient,),
    mistakes=mistakes,
)
