"""The square root of a column: from a variance to a standard deviation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, fixed
from attncli.core.matrix import as_matrix
from attncli.core.message import N_, Message
from attncli.core.terms import Index, Term, at
from attncli.ops import divide, scale

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value) -> Value:
    """√a of a column (… i 1)."""
    return xp.sqrt(a)


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    return Term("root", at(values, step.inputs[0], index))


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    """∂√a/∂a = 1/(2√a)."""
    half = graph.apply(scale.OP, f"{id}_half", upstream, factor=as_matrix(0.5))
    graph.apply(divide.OP, id, half, step.id, why=Message(N_("The slope of √x is 1/(2√x).")))


OP = Op(
    name="root",
    compute=compute,
    axes="i 1 -> i 1",
    formula=fixed(r"\sqrt{{{0}}}"),
    terms=terms,
    why=N_("The square root brings a variance back to the unit of the numbers themselves: the standard deviation."),
    backward=(gradient,),
)
