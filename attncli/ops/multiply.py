"""Entry by entry product (⊙)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op
from attncli.matrix import as_matrix
from attncli.message import N_
from attncli.ops import Mistake, at, fixed, instead, values_for_gradients, with_operands
from attncli.terms import Index, Term

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value, b: Value) -> Value:
    """a ⊙ b."""
    return xp.multiply(a, b)


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    a, b = step.inputs
    return Term("product", at(values, a, index), at(values, b, index))


def gradient_a(graph: Graph, step: Step, upstream: str, id: str) -> None:
    graph.apply(OP, id, upstream, step.inputs[1])


def gradient_b(graph: Graph, step: Step, upstream: str, id: str) -> None:
    graph.apply(OP, id, upstream, step.inputs[0])


def mistakes(graph: Graph, step: Step) -> Iterator[Mistake]:
    """The shortcuts people take through softmax's gradient."""
    if step.phase != "backward":
        return
    for wrong in values_for_gradients(graph, step):
        yield with_operands("value-for-gradient", step, OP, wrong, {})
    deviation = graph.steps.get(step.inputs[1])
    if deviation is None or deviation.op.name != "subtract":
        return
    weights = step.inputs[0]
    upstream, dot = deviation.inputs
    yield instead("softmax-passed-through", step, lambda xp, g: g, upstream)
    yield instead("softmax-diagonal-only", step, _diagonal, weights, upstream)
    yield instead("softmax-sign", step, lambda xp, a, g, r: xp.multiply(a, xp.subtract(r, g)), weights, upstream, dot)
    for once_more in (upstream, weights):
        yield instead(
            "upstream-twice", step, lambda xp, a, d, m: xp.multiply(xp.multiply(a, d), m), *step.inputs, once_more
        )


def _diagonal(xp: Arithmetic, weights: Value, upstream: Value) -> Value:
    """Only the diagonal of the Jacobian: a (1 − a) g."""
    return xp.multiply(xp.multiply(weights, xp.subtract(xp.enter(as_matrix(1.0)), weights)), upstream)


OP = Op(
    name="multiply",
    compute=compute,
    axes="i j, i j -> i j",
    formula=fixed(r"{0} \odot {1}"),
    terms=terms,
    why=N_("Multiply entry by entry, not row by column."),
    backward=(gradient_a, gradient_b),
    mistakes=mistakes,
)
