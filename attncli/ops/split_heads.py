"""The columns of every row shared out among heads: the first d to head 1, the next d to head 2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.message import N_
from attncli.ops import Mistake, Op, Params, at, fixed, instead, merge_heads
from attncli.terms import Index, Term

if TYPE_CHECKING:
    from attncli.graph import Graph, Step


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
    prefix = step.id.removesuffix(step.id.rpartition(".")[2])
    others = [graph.steps[id] for name in "QKV" if (id := f"{prefix}{name}_heads") in graph.steps and id != step.id]
    if step.phase == "forward" and step.id == f"{prefix}Q_heads":
        # A key or value with a single head is cut the same way either way.
        swaps = [_cut(other).swap for other in others if other.params["heads"] > 1]
        if swaps:
            yield Mistake(here.id, {id: swap for swaps_ in (here.swap, *swaps) for id, swap in swaps_.items()})


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
