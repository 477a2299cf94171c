"""Heads of keys or values repeated for the query heads that share them: a, a, b, b."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op
from attncli.message import N_
from attncli.names import part_of
from attncli.ops import Mistake, at, fixed, instead, sum_groups
from attncli.terms import Index, Term

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


def mistakes(graph: Graph, step: Step) -> Iterator[Mistake]:
    """The heads dealt out in turn, a, b, a, b: here, or in the keys and the values alike."""
    group, prefix = step.params["group"], part_of(step.id)
    if group == 1 or graph.shape(step.inputs[0])[0] == 1:
        return
    here = instead("kv-heads-tiled", step, _tiled(group), step.inputs[0])
    yield here
    both = [graph.steps[id] for id in (f"{prefix}K_shared", f"{prefix}V_shared") if id in graph.steps]
    if step.id in {one.id for one in both} and len(both) > 1:
        swaps = [instead("kv-heads-tiled", one, _tiled(group), one.inputs[0]).swap for one in both]
        yield Mistake("kv-heads-tiled", {id: swap for one in swaps for id, swap in one.items()})


def _tiled(group: int) -> Any:
    return lambda xp, a: xp.concatenate([a] * group, -3)


OP = Op(
    name="share_heads",
    compute=compute,
    axes="g n d -> =head:heads n d",
    formula=fixed(r"\operatorname{{repeat}}({0})"),
    terms=terms,
    why=N_("Neighbouring query heads share one head of keys and values, so it is repeated for each of them."),
    backward=(gradient,),
    mistakes=mistakes,
)
