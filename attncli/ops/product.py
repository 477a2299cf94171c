"""Rows times columns: a matrix product, either operand transposed, and with a bias."""

from __future__ import annotations

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Op, Params, Step
from attncli.core.message import N_, Message
from attncli.core.terms import Index, Term, Values, at
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


def _products(step: Step, index: Index, values: Values) -> list[Term]:
    """The products that are added up."""
    a, b = step.inputs[:2]
    *head, i, j = index
    a_transposed, b_transposed = step.params.get("transpose_a"), step.params.get("transpose_b")
    return [
        Term(
            "product",
            at(values, a, (*head, k, i) if a_transposed else (*head, i, k)),
            at(values, b, (*head, j, k) if b_transposed else (*head, k, j)),
        )
        for k in range(values[a].shape[-2 if a_transposed else -1])
    ]


def _to_a(graph: Graph, step: Step, upstream: str, target: str) -> None:
    """op(A) receives G op(B)ᵀ; where A entered transposed, so does its gradient."""
    a, b = step.inputs[:2]
    b_transposed = bool(step.params.get("transpose_b"))
    if step.params.get("transpose_a"):
        why = _why(a, b, transposed=True)
        graph.apply(PRODUCT, target, b, upstream, transpose_a=b_transposed, transpose_b=True, why=why)
    else:
        why = _why(a, b, transposed=not b_transposed)
        graph.apply(PRODUCT, target, upstream, b, transpose_a=False, transpose_b=not b_transposed, why=why)


def _to_b(graph: Graph, step: Step, upstream: str, target: str) -> None:
    """op(B) receives op(A)ᵀ G; where B entered transposed, so does its gradient."""
    a, b = step.inputs[:2]
    a_transposed = bool(step.params.get("transpose_a"))
    if step.params.get("transpose_b"):
        why = _why(b, a, transposed=True)
        graph.apply(PRODUCT, target, upstream, a, transpose_a=True, transpose_b=a_transposed, why=why)
    else:
        why = _why(b, a, transposed=not a_transposed)
        graph.apply(PRODUCT, target, a, upstream, transpose_a=not a_transposed, transpose_b=False, why=why)


def _why(operand: str, other: str, *, transposed: bool) -> Message:
    """Why a factor's gradient is the arriving gradient times the other factor."""
    if transposed:
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
            "{operand} was multiplied by {other}, so a change in it reaches the loss through every result it helped to make. This product adds up all those effects."
        ),
        operand=operand,
        other=other,
    )


PRODUCT = Op(
    name="product",
    compute=_product,
    axes=_axes,
    formula=_formula,
    terms=lambda step, index, values: Term("sum", *_products(step, index, values)),
    why=N_("Row times column: multiply entry by entry and add up."),
    backward=(_to_a, _to_b),
)


def _affine(xp: Arithmetic, a: Value, w: Value, b: Value, **transposed: bool) -> Value:
    """a w + b: a (n k), w (k m), b (1 m)."""
    return xp.add(_product(xp, a, w, **transposed), b)


def _affine_terms(step: Step, index: Index, values: Values) -> Term:
    return Term("sum", *_products(step, index, values), at(values, step.inputs[2], index))


AFFINE = Op(
    name="affine",
    compute=_affine,
    axes=lambda params: "i k, j k, 1 j -> i j" if params.get("transpose_b") else "i k, k j, 1 j -> i j",
    formula=lambda params, columns: f"{_formula(params, columns)} + #3",
    terms=_affine_terms,
    why=N_("Row times column, and the bias is added to every {row}."),
    backward=(_to_a, _to_b, lambda graph, step, upstream, target: graph.apply(COLUMN_SUM, target, upstream)),
)
