"""Two arrays side by side: the columns of the first, then those of the second."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at
from attncli.ops import slice_columns
from attncli.ops.join_rows import joined

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, first: Value, second: Value, *, axis: str = "") -> Value:
    """Columns of `first` (… n a), then columns of `second` (… n b)."""
    return joined(xp, first, second, -1)


def formula(params: Params, columns: bool) -> str:
    return r"\begin{{bmatrix}}{0}\\ {1}\end{{bmatrix}}" if columns else r"[{0},\ {1}]"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    first, second = step.inputs
    *head, i, j = index
    before = values[first].shape[-1]
    return at(values, first, (*head, i, j)) if j < before else at(values, second, (*head, i, j - before))


def gradient_first(graph: Graph, step: Step, upstream: str, id: str) -> None:
    axis = graph.axes(step.inputs[0])[-1]
    graph.apply(slice_columns.OP, id, upstream, start=0, length=axis.size, axis=axis.name)


def gradient_second(graph: Graph, step: Step, upstream: str, id: str) -> None:
    before, axis = graph.axes(step.inputs[0])[-1].size, graph.axes(step.inputs[1])[-1]
    graph.apply(slice_columns.OP, id, upstream, start=before, length=axis.size, axis=axis.name)


OP = Op(
    name="join_columns",
    compute=compute,
    axes="n a, n b -> n a+b",
    formula=formula,
    terms=terms,
    why=N_("The {columns} of the first come first, those of the second after them."),
    backward=(gradient_first, gradient_second),
)
