"""The columns of every row shared out among heads: the first d to head 1, the next d to head 2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.message import N_
from attncli.names import part_of
from attncli.ops import Mistake, at, fixed, instead, merge_heads
from attncli.terms import Index, Term

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value, *, heads: int, width: int, names: tuple[str, str] = ("head", "d")) -> Value:
    """Row i of head h: columns h·width … (h+1)·width−1 of row i of a (n heads·width), as (head n width)."""
    return xp.swapaxes(xp.reshape(a, (*a.shape[:-1], heads, width)), -3, -2)


def axes(params: Params) -> str:
    head, width = params.get("names", ("head", "d"))
    return f"n w -> ={head}:heads n ={width}:width"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    h, i, j = index
    return at(values, step.inputs[0], (i, h * step.params["width"] + j))


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    axis = graph.axes(step.inputs[0])[-1]
    heads, width = step.params["heads"], step.params["width"]
    graph.apply(merge_heads.OP, id, upstream, heads=heads, width=width, joined=axis.size, axis=axis.name)


def mistakes(graph: Graph, step: Step) -> Iterator[Mistake]:
    """Heads cut out in memory order: here, or in queries, keys and values alike."""
    if step.params["heads"] == 1 or graph.shape(step.inputs[0])[-2] == 1:
        return
    here = _cut(step)
    yield here
    if step.phase != "forward":
        return
    prefix = part_of(step.id)
    ids = [f"{prefix}{name}_heads" for name in "QKV"]
    # A key or value with a single head is cut the same way either way.
    others = [graph.steps[id] for id in ids if id in graph.steps and graph.steps[id].params.get("heads", 1) > 1]
    swaps = [_cut(other).swap for other in others]
    if step.id in ids and len(swaps) > 1:
        yield Mistake(here.id, {id: swap for one in swaps for id, swap in one.items()})


def _cut(step: Step) -> Mistake:
    heads, width = step.params["heads"], step.params["width"]

    def in_memory_order(xp: Arithmetic, a: Value) -> Value:
        return xp.reshape(a, (*a.shape[:-2], heads, a.shape[-2], width))

    return instead("split-without-transpose", step, in_memory_order, step.inputs[0])


OP = Op(
    name="split_heads",
    compute=compute,
    axes=axes,
    formula=fixed(r"\operatorname{{split}}({0})"),
    terms=terms,
    why=N_("Every {row} is cut into equal pieces, one for each head."),
    backward=(gradient,),
    mistakes=mistakes,
)
