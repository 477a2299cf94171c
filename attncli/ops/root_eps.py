"""The square root of a column plus ε: from a variance to a standard deviation that is never 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.core.matrix import Matrix, as_matrix
from attncli.core.message import N_, Message
from attncli.core.terms import Index, Term, at, number
from attncli.ops import divide, scale
from attncli.ops._written import in_formula

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value, *, eps: Matrix) -> Value:
    """√(a + eps) of a column (… i 1)."""
    return xp.sqrt(xp.add(a, xp.enter(eps)))


def formula(params: Params, columns: bool) -> str:
    return r"\sqrt{{{0} + \varepsilon}}" if float(params["eps"].values) else r"\sqrt{{{0}}}"


def numbers(params: Params) -> str:
    eps = float(params["eps"].values)
    return rf"\sqrt{{{{{{0}} + {in_formula(eps)}}}}}" if eps else r"\sqrt{{{0}}}"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    entry = at(values, step.inputs[0], index)
    eps = float(step.params["eps"].values)
    return Term("root", Term("sum", entry, number(eps)) if eps else entry)


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    """∂√(a + ε)/∂a = 1/(2√(a + ε))."""
    half = graph.apply(scale.OP, f"{id}_half", upstream, symbol="h", factor=as_matrix(0.5), why=Message(_HALF))
    graph.apply(divide.OP, id, half, step.id, why=Message(_BY_ROOT))


_HALF = N_("The slope of √x is 1/(2√x): first the half …")
_BY_ROOT = N_("… then divided by the root itself, which the way forward has worked out already.")


OP = Op(
    name="root_eps",
    compute=compute,
    axes="i 1 -> i 1",
    formula=formula,
    numbers=numbers,
    terms=terms,
    why=N_("The square root brings a variance back to the unit of the numbers themselves; ε keeps it away from 0."),
    backward=(gradient,),
)
