"""Rows times columns: a matrix product, either operand transposed, and with a bias."""

from __future__ import annotations

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Op, Params, Rule, Step
from attncli.core.message import N_, Message
from attncli.ops.rows import COLUMN_SUM


def _product(xp: Arithmetic, a: Value, b: Value, *, transpose_a: bool = False, transpose_b: bool = False) -> Value:
    """Rows of op(a) times columns of op(b), over the last two axes; a head axis goes through."""
    if transpose_a:
        a = xp.swapaxes(a, -1, -2)
    if transpose_b:
        b = xp.swapaxes(b, -1, -2)
    return xp.matmul(a, b)


def _axes(params: Params) -> str:
    first = "k i" if params.get("transpose_a") else "i k"
    second = "j k" if params.get("transpose_b") else "k j"
    return f"{first}, {second} -> i j"


def _formula(params: Params, columns: bool) -> str:
    first = r"#1^{\top}" if params.get("transpose_a") else "#1"
    second = r"#2^{\top}" if params.get("transpose_b") else "#2"
    # With tokens as columns every matrix is transposed, and (A B)ᵀ = Bᵀ Aᵀ: the order turns, the marks stay.
    return f"{second} {first}" if columns else f"{first} {second}"


def factor_gradients(
    a: str, b: str, arriving: str, transpose_a: bool, transpose_b: bool
) -> tuple[tuple[str, str, bool, bool], tuple[str, str, bool, bool]]:
    """Of op(A) op(B), the products that the gradients of A and B are: two operands, and which of them enter transposed.

    op(A) receives G op(B)ᵀ, and op(B) receives op(A)ᵀ G; where a factor entered transposed, so does its gradient.
    """
    return (
        (b, arriving, transpose_b, True) if transpose_a else (arriving, b, False, not transpose_b),
        (arriving, a, True, transpose_a) if transpose_b else (a, arriving, not transpose_a, False),
    )


def _to_factor(position: int) -> Rule:
    def gradient(graph: Graph, step: Step, upstream: str, target: str) -> None:
        a, b = step.inputs[:2]
        transposed = (bool(step.params.get("transpose_a")), bool(step.params.get("transpose_b")))
        left, right, transposed_left, transposed_right = factor_gradients(a, b, upstream, *transposed)[position]
        why = _why(*((b, a) if position else (a, b)), transposed=transposed_left or transposed_right)
        graph.apply(PRODUCT, target, left, right, transpose_a=transposed_left, transpose_b=transposed_right, why=why)

    return gradient


def _why(operand: str, other: str, *, transposed: bool) -> Message:
    """Why a factor's gradient is the arriving gradient times the other factor."""
    if transposed:
        return Message(
            "{operand} was multiplied by {other}, so a change in it reaches the loss "
            "through every result it helped to make. This product adds up all those "
            "effects. The transpose is there so that each entry is paired with the numbers "
            "it was multiplied by on the way forward.",
            operand=operand,
            other=other,
        )
    return Message(
        "{operand} was multiplied by {other}, so a change in it reaches the loss through every result it helped to make. This product adds up all those effects.",
        operand=operand,
        other=other,
    )


PRODUCT: Op = Op(
    name="product",
    compute=_product,
    axes=_axes,
    formula=_formula,
    why=N_("Row times column: multiply entry by entry and add up."),
    backward=(_to_factor(0), _to_factor(1)),
)


def _affine(xp: Arithmetic, a: Value, w: Value, b: Value, **transposed: bool) -> Value:
    """a w + b: a (n k), w (k m), b (1 m)."""
    return xp.add(_product(xp, a, w, **transposed), b)


AFFINE = Op(
    name="affine",
    compute=_affine,
    axes=lambda params: "i k, j k, 1 j -> i j" if params.get("transpose_b") else "i k, k j, 1 j -> i j",
    formula=lambda params, columns: f"{_formula(params, columns)} + #3",
    why=N_("Row times column, and the bias is added to every {row}."),
    backward=(*PRODUCT.backward, lambda graph, step, upstream, target: graph.apply(COLUMN_SUM, target, upstream)),
)
