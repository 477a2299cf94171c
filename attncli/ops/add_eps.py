"""A small number added to every entry of a column, so that it can be divided by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params, fixed
from attncli.core.matrix import Matrix
from attncli.core.message import N_, Message
from attncli.core.terms import Index, Term, at, number
from attncli.ops import pass_on
from attncli.ops._written import in_formula

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value, *, eps: Matrix) -> Value:
    """a + eps of a column (… i 1)."""
    return xp.add(a, xp.enter(eps))


def numbers(params: Params) -> str:
    return f"{{0}} + {in_formula(float(params['eps'].values))}"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    return Term("sum", at(values, step.inputs[0], index), number(float(step.params["eps"].values)))


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    graph.apply(pass_on.OP, id, upstream, why=Message(N_("ε is a constant: the gradient passes unchanged.")))


OP = Op(
    name="add_eps",
    compute=compute,
    axes="i 1 -> i 1",
    formula=fixed(r"{0} + \varepsilon"),
    numbers=numbers,
    terms=terms,
    why=N_("ε is added after the root here, not under it: another convention, and other digits."),
    backward=(gradient,),
)
