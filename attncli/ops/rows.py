"""Every row and its own number: sums, maxima, and what a row is less or divided by."""

from __future__ import annotations

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Op, Step
from attncli.core.matrix import as_matrix
from attncli.core.message import N_
from attncli.core.terms import Index, Term, Values, along, at, number
from attncli.ops.elementwise import IDENTITY, MULTIPLY, SCALE, entrywise, same_cell

# --- a row's sum, and its transpose: a number repeated along a row ----------------------------------------------------


def over_width(graph: Graph, step: Step, op: Op, upstream: str, target: str) -> None:
    """`op` brings a column back to the width of the step's operand."""
    axis = graph.axes(step.inputs[0])[-1]
    graph.apply(op, target, upstream, width=axis.size, axes=(axis.name,))


ROW_SUM = Op(
    name="row_sum",
    compute=lambda xp, a: xp.sum(a, -1),
    axes="i j -> i 1",
    formula=r"\sum_j #1",
    terms=lambda step, index, values: Term("sum", *along(values, step.inputs[0], index, -1)),
    why=N_("Add up each {row}."),
    backward=(lambda graph, step, upstream, target: over_width(graph, step, BROADCAST, upstream, target),),
)


def _broadcast(xp: Arithmetic, a: Value, *, width: int) -> Value:
    """Column a (… i 1) repeated `width` times (… i j)."""
    return xp.repeat(a, width, -1)


BROADCAST: Op = Op(
    name="broadcast",
    compute=_broadcast,
    axes="i 1 -> i =j:width",
    formula=lambda params, columns: r"\mathbf{1} \, #1" if columns else r"#1 \mathbf{1}^{\top}",
    terms=same_cell,
    why=N_("Every entry of a {row} counts once in its sum, so each gets the sum's gradient in full."),
    backward=(lambda graph, step, upstream, target: graph.apply(ROW_SUM, target, upstream),),
)

ROW_MAX = Op(
    name="row_max",
    compute=lambda xp, a: xp.max(a, -1),
    axes="i j -> i 1",
    formula=r"\max_j #1",
    terms=lambda step, index, values: Term("max", *along(values, step.inputs[0], index, -1)),
    why=N_(
        "The largest score in each {row} that is not masked. Subtracting it first keeps e^x "
        "from overflowing and does not change the weights."
    ),
)

#: The gradient of numbers that every row shares (a bias, γ, β).
COLUMN_SUM = Op(
    name="column_sum",
    compute=lambda xp, a: xp.sum(a, -2),
    axes="i j -> 1 j",
    formula=lambda params, columns: r"\sum_j #1" if columns else r"\sum_i #1",
    terms=lambda step, index, values: Term("sum", *along(values, step.inputs[0], index, -2)),
    why=N_("Every {row} used the same numbers, so the gradients of all {rows} are added."),
)


# --- less its own number ----------------------------------------------------------------------------------------------


def _difference(xp: Arithmetic, a: Value, b: Value, *, column: bool = False) -> Value:
    """a − b; a column b is taken from every entry of its row.

    What is hidden (−∞) stays hidden, also where b is −∞ because a whole row is hidden; a term knows that of itself.
    """
    difference = xp.subtract(a, b)
    lost = xp.hidden(b)
    if np.count_nonzero(lost):  # a third of the time that lost.any() takes
        return xp.where(lost & xp.hidden(a), xp.constant(as_matrix(-float("inf"))), difference)
    return difference


def _to_minuend(graph: Graph, step: Step, upstream: str, target: str) -> None:
    why = N_("If what is subtracted from grows by 1, so does the difference: the gradient passes unchanged.")
    graph.apply(IDENTITY, target, upstream, why=why)


def _to_subtrahend(graph: Graph, step: Step, upstream: str, target: str) -> None:
    """Minus one for every entry it was taken from."""
    total = upstream
    if step.params.get("column"):
        added = N_("The same number was taken from every entry of the {row}, so what they send back is added up.")
        total = graph.apply(ROW_SUM, f"{target}_total", upstream, symbol="t", why=added)
    why = N_("It was subtracted: if it grows by 1, the difference falls by 1. Hence the minus.")
    graph.apply(SCALE, target, total, factor=as_matrix(-1.0), why=why)


SUBTRACT = Op(
    name="subtract",
    compute=_difference,
    axes=lambda params: "i j, i 1 -> i j" if params.get("column") else "i j, i j -> i j",
    formula="#1 - #2",
    terms=entrywise("difference"),
    why=N_("Subtract, entry by entry."),
    backward=(_to_minuend, _to_subtrahend),
)


# --- divided by its own number ----------------------------------------------------------------------------------------


def _share(xp: Arithmetic, a: Value, b: Value, scores: Value | None = None) -> Value:
    """a / b for each row; with `scores` (… i j), rows in which all of them are hidden become 0."""
    share = xp.divide(a, b)
    if scores is None:
        return share
    return xp.where(np.all(xp.hidden(scores), -1, keepdims=True), xp.constant(as_matrix(0.0)), share)


def _share_terms(step: Step, index: Index, values: Values) -> Term:
    """a / b; where nothing is visible, the 0 that stands in for 0/0."""
    a, b, *hiding = step.inputs
    if hiding and all(float(score) == -np.inf for score in values[hiding[0]][tuple(index[:-1])]):
        return number(0.0)
    return Term("quotient", at(values, a, index), at(values, b, index))


def to_dividend(graph: Graph, step: Step, upstream: str, target: str) -> None:
    """Divided as well."""
    why = N_(
        "Forward, the {row} was divided by this number, so a change in it counts that much less: divide the gradient too."
    )
    graph.apply(DIVIDE, target, upstream, *step.inputs[1:], why=why)


def _to_divisor(graph: Graph, step: Step, upstream: str, target: str) -> None:
    """∂(a/b)/∂b = −(a/b)/b, added up along the row; 0 for a row that is marked empty."""
    product = graph.apply(MULTIPLY, f"{target}_product", upstream, step.id)
    total = graph.apply(ROW_SUM, f"{target}_total", product)
    share = graph.apply(DIVIDE, f"{target}_share", total, *step.inputs[1:])
    graph.apply(SCALE, target, share, factor=as_matrix(-1.0))


DIVIDE = Op(
    name="divide",
    compute=_share,
    axes="i j, i 1, i k ? -> i j",
    formula=r"\frac{#1}{#2}",
    terms=_share_terms,
    why=N_("Each entry as a share of its {row}, so before rounding every {row} adds up to exactly 1."),
    backward=(to_dividend, _to_divisor, None),
)

#: Of a column: ∂ ln a/∂a = 1/a.
LOGARITHM = Op(
    name="logarithm",
    compute=lambda xp, a: xp.log(a),
    axes="i 1 -> i 1",
    formula=r"\ln #1",
    terms=entrywise("ln"),
    why=N_("The natural logarithm, to the base e: it undoes e^x."),
    backward=(lambda graph, step, upstream, target: graph.apply(DIVIDE, target, upstream, step.inputs[0]),),
)
