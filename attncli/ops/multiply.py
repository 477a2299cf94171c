"""Entry by entry product (⊙)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, fixed
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at

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


OP = Op(
    name="multiply",
    compute=compute,
    axes="i j, i j -> i j",
    formula=fixed(r"{0} \odot {1}"),
    terms=terms,
    why=N_("Multiply entry by entry, not row by column."),
    backward=(gradient_a, gradient_b),
)
