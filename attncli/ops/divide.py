"""Every row divided by its own number: the last line of softmax."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params, fixed
from attncli.core.matrix import as_matrix
from attncli.core.message import N_, Message
from attncli.core.terms import Index, Term, at, number
from attncli.ops import multiply, row_sum, scale

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value, b: Value, scores: Value | None = None, *, empty: bool = False) -> Value:
    """a / b for each row; with `scores` (… i j), rows in which all of them are hidden become 0."""
    share = xp.divide(a, b)
    if scores is None:
        return share
    return xp.where(np.all(xp.hidden(scores), -1, keepdims=True), xp.enter(as_matrix(0.0)), share)


def axes(params: Params) -> str:
    return "i j, i 1, i k -> i j" if params.get("empty") else "i j, i 1 -> i j"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    """a / b; where nothing is visible, the 0 that stands in for 0/0."""
    a, b, *hiding = step.inputs
    if hiding and all(float(score) == -np.inf for score in values[hiding[0]][tuple(index[:-1])]):
        return number(0.0)
    return Term("quotient", at(values, a, index), at(values, b, index))


def gradient_a(graph: Graph, step: Step, upstream: str, id: str) -> None:
    why = Message(
        N_(
            "Forward, the {row} was divided by this number, so a change in it counts that much less: divide the gradient too."
        )
    )
    graph.apply(OP, id, upstream, *step.inputs[1:], why=why, **step.params)


def gradient_b(graph: Graph, step: Step, upstream: str, id: str) -> None:
    """∂(a/b)/∂b = −(a/b)/b, added up along the row; 0 for a row that is marked empty."""
    product = graph.apply(multiply.OP, f"{id}_product", upstream, step.id)
    total = graph.apply(row_sum.OP, f"{id}_total", product)
    share = graph.apply(OP, f"{id}_share", total, *step.inputs[1:], **step.params)
    graph.apply(scale.OP, id, share, factor=as_matrix(-1.0))


OP = Op(
    name="divide",
    compute=compute,
    axes=axes,
    formula=fixed(r"\frac{{{0}}}{{{1}}}"),
    terms=terms,
    why=N_("Each entry as a share of its {row}, so every {row} adds up to exactly 1."),
    backward=(gradient_a, gradient_b, None),
)
