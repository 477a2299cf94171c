"""What a row's mean gives back to each of its d entries: 1/d of its gradient."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.core.matrix import as_matrix
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at, number

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value, *, width: int, axis: str = "") -> Value:
    """Column a / width (… i 1), repeated `width` times (… i width)."""
    return xp.repeat(xp.divide(a, xp.enter(as_matrix(float(width)))), width, -1)


def formula(params: Params, columns: bool) -> str:
    return r"\frac{{1}}{{d}} \mathbf{{1}} \, {0}" if columns else r"\frac{{1}}{{d}} {0} \mathbf{{1}}^{{\top}}"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    return Term("quotient", at(values, step.inputs[0], index), number(float(step.params["width"])))


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    from attncli.ops import row_mean

    graph.apply(row_mean.OP, id, upstream)


OP = Op(
    name="share_mean",
    compute=compute,
    axes="i 1 -> i =j:width",
    formula=formula,
    terms=terms,
    why=N_("Every entry of a {row} moves the mean by 1/d of its own change, so each gets 1/d of the mean's gradient."),
    backward=(gradient,),
)
