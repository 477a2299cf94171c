"""The sum of every row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op
from attncli.matrix import as_matrix
from attncli.message import N_
from attncli.ops import Mistake, at, fixed, instead, spread
from attncli.terms import Index, Term

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value) -> Value:
    """The sum along the last axis, which is kept with length 1."""
    return xp.sum(a, -1)


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    source = step.inputs[0]
    return Term("sum", *(at(values, source, (*index[:-1], j)) for j in range(values[source].shape[-1])))


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    axis = graph.axes(step.inputs[0])[-1]
    graph.apply(spread.OP, id, upstream, width=axis.size, axis=axis.name)


def mistakes(graph: Graph, step: Step) -> Iterator[Mistake]:
    """The logits added up instead of their exponentials; on the way back, columns instead of rows."""
    source = graph.steps.get(step.inputs[0])
    if source is not None and source.op.name == "exp":
        yield instead("sum-of-logits", step, _sum_of_visible, source.inputs[0])
    if step.phase == "backward" or (source is not None and source.phase == "backward"):
        yield instead("row-dot-over-columns", step, lambda xp, a: xp.swapaxes(xp.sum(a, -2), -1, -2), step.inputs[0])


def _sum_of_visible(xp: Arithmetic, logits: Value) -> Value:
    return xp.sum(xp.where(xp.hidden(logits), xp.enter(as_matrix(np.zeros(logits.shape))), logits), -1)


OP = Op(
    name="row_sum",
    compute=compute,
    axes="i j -> i 1",
    formula=fixed(r"\sum_j {0}"),
    terms=terms,
    why=N_("Add up each {row}."),
    backward=(gradient,),
    mistakes=mistakes,
)
