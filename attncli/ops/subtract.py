"""One array minus another; a column is taken from every entry of its row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params, fixed
from attncli.core.matrix import as_matrix
from attncli.core.message import N_, Message
from attncli.core.terms import Index, Term, at
from attncli.ops import pass_on, row_sum, scale

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value, b: Value, *, column: bool = False) -> Value:
    """a − b. What is hidden (−∞) stays hidden, also where b is −∞ because a whole row is hidden."""
    difference = xp.subtract(a, b)
    lost = xp.hidden(b)
    if np.count_nonzero(lost):  # a third of the time that lost.any() takes
        return xp.where(lost & xp.hidden(a), xp.enter(as_matrix(-float("inf"))), difference)
    return difference


def axes(params: Params) -> str:
    return "i j, i 1 -> i j" if params.get("column") else "i j, i j -> i j"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    """a − b, of which a term knows that a hidden a stays hidden (−∞ − −∞ = −∞)."""
    return Term("difference", *(at(values, id, index) for id in step.inputs))


def gradient_a(graph: Graph, step: Step, upstream: str, id: str) -> None:
    why = Message(N_("If what is subtracted from grows by 1, so does the difference: the gradient passes unchanged."))
    graph.apply(pass_on.OP, id, upstream, why=why)


def gradient_b(graph: Graph, step: Step, upstream: str, id: str) -> None:
    """Minus one for every entry it was taken from."""
    total = upstream
    if step.params.get("column"):
        added = Message(
            N_("The same number was taken from every entry of the {row}, so what they send back is added up.")
        )
        total = graph.apply(row_sum.OP, f"{id}_total", upstream, symbol="t", why=added)
    why = Message(N_("It was subtracted: if it grows by 1, the difference falls by 1. Hence the minus."))
    graph.apply(scale.OP, id, total, factor=as_matrix(-1.0), why=why)


OP = Op(
    name="subtract",
    compute=compute,
    axes=axes,
    formula=fixed("{0} - {1}"),
    terms=terms,
    why=N_("Subtract, entry by entry."),
    backward=(gradient_a, gradient_b),
)
