"""The natural logarithm of every entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, fixed
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at
from attncli.ops import divide

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value) -> Value:
    """ln a, entry by entry; of 0 it is −∞."""
    return xp.log(a)


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    return Term("ln", at(values, step.inputs[0], index))


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    """∂ ln a/∂a = 1/a, of a column."""
    graph.apply(divide.OP, id, upstream, step.inputs[0])


OP = Op(
    name="logarithm",
    compute=compute,
    axes="i 1 -> i 1",
    formula=fixed(r"\ln {0}"),
    terms=terms,
    why=N_("The natural logarithm, to the base e: it undoes e^x."),
    backward=(gradient,),
)
