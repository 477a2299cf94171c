"""Heads of keys or values repeated for the query heads that share them: a, a, b, b."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, fixed
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at
from attncli.ops import sum_groups

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value, *, group: int, heads: int) -> Value:
    """Every head of a (kv_head n d) `group` times in a row (head n d)."""
    return xp.repeat(a, group, -3)


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    h, i, j = index
    return at(values, step.inputs[0], (h // step.params["group"], i, j))


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    axis = graph.axes(step.inputs[0])[0]
    graph.apply(sum_groups.OP, id, upstream, group=step.params["group"], heads=axis.size, axis=axis.name)


OP = Op(
    name="share_heads",
    compute=compute,
    axes="g n d -> =head:heads n d",
    formula=fixed(r"\operatorname{{repeat}}({0})"),
    terms=terms,
    why=N_("Neighbouring query heads share one head of keys and values, so it is repeated for each of them."),
    backward=(gradient,),
)
