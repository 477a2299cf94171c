"""One array put before another: a cache of earlier keys or values before the new ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at
from attncli.ops import slice_rows

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, first: Value, second: Value, *, axis: str = "") -> Value:
    """Rows of `first` (… a d), then rows of `second` (… b d)."""
    return joined(xp, first, second, -2)


def joined(xp: Arithmetic, first: Value, second: Value, axis: int) -> Value:
    """One array put before another along `axis`; what all sheets share stands before or after that of each."""
    sheets = max(first.shape[0], second.shape[0])
    if first.ndim > 2 and first.shape[0] != second.shape[0]:
        first, second = (a if a.shape[0] == sheets else xp.repeat(a, sheets, 0) for a in (first, second))
    return xp.concatenate([first, second], axis)


def formula(params: Params, columns: bool) -> str:
    between = "&" if columns else r"\\"
    return rf"\begin{{{{bmatrix}}}}{{0}}{between} {{1}}\end{{{{bmatrix}}}}"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    first, second = step.inputs
    *head, i, j = index
    before = values[first].shape[-2]
    return at(values, first, (*head, i, j)) if i < before else at(values, second, (*head, i - before, j))


def gradient_first(graph: Graph, step: Step, upstream: str, id: str) -> None:
    axis = graph.axes(step.inputs[0])[-2]
    graph.apply(slice_rows.OP, id, upstream, start=0, length=axis.size, axis=axis.name)


def gradient_second(graph: Graph, step: Step, upstream: str, id: str) -> None:
    before, axis = graph.axes(step.inputs[0])[-2].size, graph.axes(step.inputs[1])[-2]
    graph.apply(slice_rows.OP, id, upstream, start=before, length=axis.size, axis=axis.name)


OP = Op(
    name="join_rows",
    compute=compute,
    axes="a d, b d -> a+b d",
    formula=formula,
    terms=terms,
    why=N_("The cached {rows} come first, the new ones after them."),
    backward=(gradient_first, gradient_second),
)
