"""One step of gradient descent: a small step against the gradient."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.core.matrix import Matrix
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at, number
from attncli.ops import pass_on, scale
from attncli.ops._written import in_formula

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value, gradient: Value, *, eta: Matrix) -> Value:
    """a − η · gradient."""
    return xp.subtract(a, xp.multiply(xp.enter(eta), gradient))


def formula(params: Params, columns: bool) -> str:
    return r"{0} - \eta \, {1}"


def numbers(params: Params) -> str:
    return rf"{{0}} - {in_formula(float(params['eta'].values))} \cdot {{1}}"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    a, gradient = step.inputs
    eta = number(float(step.params["eta"].values))
    return Term("difference", at(values, a, index), Term("product", eta, at(values, gradient, index)))


def gradient_a(graph: Graph, step: Step, upstream: str, id: str) -> None:
    graph.apply(pass_on.OP, id, upstream)


def gradient_g(graph: Graph, step: Step, upstream: str, id: str) -> None:
    graph.apply(scale.OP, id, upstream, factor=step.params["eta"].negated())


OP = Op(
    name="update",
    compute=compute,
    axes="i j, i j -> i j",
    formula=formula,
    numbers=numbers,
    terms=terms,
    why=N_("The gradient points uphill, so a small step the other way (η is the step size) makes the loss smaller."),
    backward=(gradient_a, gradient_g),
)
