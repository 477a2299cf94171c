"""A column repeated to a width: what a row sum gives back to every entry of its row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at
from attncli.ops import row_sum

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value, *, width: int, axis: str = "") -> Value:
    """Column a (… i 1) repeated `width` times (… i j)."""
    return xp.repeat(a, width, -1)


def formula(params: Params, columns: bool) -> str:
    return r"\mathbf{{1}} \, {0}" if columns else r"{0} \mathbf{{1}}^{{\top}}"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    return at(values, step.inputs[0], index)


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    graph.apply(row_sum.OP, id, upstream)


OP = Op(
    name="spread",
    compute=compute,
    axes="i 1 -> i =j:width",
    formula=formula,
    terms=terms,
    why=N_("Every entry of a {row} counts once in its sum, so each gets the sum's gradient in full."),
    backward=(gradient,),
)
