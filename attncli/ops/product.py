"""Matrix product, either operand transposed: A B, A Bᵀ, Aᵀ B, Aᵀ Bᵀ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.core.message import N_, Message
from attncli.core.terms import Index, Term, at

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value, b: Value, *, transpose_a: bool = False, transpose_b: bool = False) -> Value:
    """Rows of op(a) times columns of op(b), over the last two axes; a head axis goes through."""
    if transpose_a:
        a = xp.swapaxes(a, -1, -2)
    if transpose_b:
        b = xp.swapaxes(b, -1, -2)
    return xp.matmul(a, b)


def axes(params: Params) -> str:
    first = "k i" if params.get("transpose_a") else "i k"
    second = "j k" if params.get("transpose_b") else "k j"
    return f"{first}, {second} -> i j"


def formula(params: Params, columns: bool) -> str:
    first = r"{0}^{{\top}}" if params.get("transpose_a") else "{0}"
    second = r"{1}^{{\top}}" if params.get("transpose_b") else "{1}"
    # With tokens as columns every matrix is transposed, and (A B)ᵀ = Bᵀ Aᵀ: the order turns, the marks stay.
    return f"{second} {first}" if columns else f"{first} {second}"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    a, b = step.inputs
    *head, i, j = index
    turned_a, turned_b = step.params.get("transpose_a"), step.params.get("transpose_b")
    width = values[a].shape[-2 if turned_a else -1]
    return Term(
        "sum",
        *(
            Term(
                "product",
                at(values, a, (*head, k, i) if turned_a else (*head, i, k)),
                at(values, b, (*head, j, k) if turned_b else (*head, k, j)),
            )
            for k in range(width)
        ),
    )


def gradient_a(graph: Graph, step: Step, upstream: str, id: str) -> None:
    """op(A) receives G op(B)ᵀ; where A entered transposed, so does its gradient."""
    a, b = step.inputs
    turned_b = bool(step.params.get("transpose_b"))
    if step.params.get("transpose_a"):
        graph.apply(OP, id, b, upstream, transpose_a=turned_b, transpose_b=True, why=_why(a, b, turned=True))
    else:
        graph.apply(
            OP, id, upstream, b, transpose_a=False, transpose_b=not turned_b, why=_why(a, b, turned=not turned_b)
        )


def gradient_b(graph: Graph, step: Step, upstream: str, id: str) -> None:
    """op(B) receives op(A)ᵀ G; where B entered transposed, so does its gradient."""
    a, b = step.inputs
    turned_a = bool(step.params.get("transpose_a"))
    if step.params.get("transpose_b"):
        graph.apply(OP, id, upstream, a, transpose_a=True, transpose_b=turned_a, why=_why(b, a, turned=True))
    else:
        graph.apply(
            OP, id, a, upstream, transpose_a=not turned_a, transpose_b=False, why=_why(b, a, turned=not turned_a)
        )


def _why(operand: str, other: str, *, turned: bool) -> Message:
    """Why a factor's gradient is the arriving gradient times the other factor."""
    if turned:
        return Message(
            N_(
                "{operand} was multiplied by {other}, so a change in it reaches the loss "
                "through every result it helped to make. This product adds up all those "
                "effects. The transpose is there so that each entry is paired with the numbers "
                "it was multiplied by on the way forward."
            ),
            operand=operand,
            other=other,
        )
    return Message(
        N_(
            "{operand} was multiplied by {other}, so a change in it reaches the loss through every result it had a"
            " part in. This product adds up all those ways."
        ),
        operand=operand,
        other=other,
    )


OP = Op(
    name="product",
    compute=compute,
    axes=axes,
    formula=formula,
    terms=terms,
    why=N_("Row times column: multiply entry by entry and add up."),
    backward=(gradient_a, gradient_b),
)
