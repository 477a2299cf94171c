"""The columns of every row shared out among heads: the first d to head 1, the next d to head 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params, fixed
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at
from attncli.ops import merge_heads

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


OP = Op(
    name="split_heads",
    compute=compute,
    axes=axes,
    formula=fixed(r"\operatorname{{split}}({0})"),
    terms=terms,
    why=N_("Every {row} is cut into equal pieces, one for each head."),
    backward=(gradient,),
)
