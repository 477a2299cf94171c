"""e to the power of every entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, fixed
from attncli.core.message import N_, Message
from attncli.core.terms import Index, Term, at
from attncli.ops import multiply

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value) -> Value:
    """e^a, entry by entry; e^−∞ = 0."""
    return xp.exp(a)


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    return Term("exp", at(values, step.inputs[0], index))


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    graph.apply(multiply.OP, id, upstream, step.id, why=Message(N_("The slope of e^x is e^x itself.")))


OP = Op(
    name="exp",
    compute=compute,
    axes="i j -> i j",
    formula=fixed("e^{{{0}}}"),
    terms=terms,
    why=N_("e^x makes every entry positive and keeps their order. e^0 = 1, and e^−∞ = 0 for what is hidden."),
    backward=(gradient,),
)
