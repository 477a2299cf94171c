"""Every column times its own factor γ, plus its own shift β."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params, Rule
from attncli.core.message import N_, Message
from attncli.core.terms import Index, Term, at
from attncli.ops import column_sum, multiply, pass_on

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value, *vectors: Value, gamma: bool, beta: bool) -> Value:
    """γ ⊙ a + β: a (… i j), the vectors that there are (1 j)."""
    if gamma:
        a = xp.multiply(vectors[0], a)
    return xp.add(a, vectors[-1]) if beta else a


def axes(params: Params) -> str:
    return f"i j{', 1 j' * (params['gamma'] + params['beta'])} -> i j"


def formula(params: Params, columns: bool) -> str:
    scaled = r"{1} \odot {0}" if params["gamma"] else "{0}"
    return f"{scaled} + {{{1 + params['gamma']}}}" if params["beta"] else scaled


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    term = at(values, step.inputs[0], index)
    place = (0, index[-1])
    if step.params["gamma"]:
        term = Term("product", at(values, step.inputs[1], place), term)
    return Term("sum", term, at(values, step.inputs[-1], place)) if step.params["beta"] else term


def gradient_a(graph: Graph, step: Step, upstream: str, id: str) -> None:
    if not step.params["gamma"]:
        graph.apply(pass_on.OP, id, upstream)
        return
    why = Message(N_("A factor on the way forward is the same factor on the way back."))
    graph.apply(OP, id, upstream, step.inputs[1], gamma=True, beta=False, why=why)


def gradient_vector(position: int) -> Rule:
    """γ receives each row's gradient times what it multiplied, β the gradient itself, both added over the rows."""

    def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
        arriving = upstream
        if position == 1 and step.params["gamma"]:
            why = Message(
                N_(
                    "How each {row} wants the factor to change: its gradient times the "
                    "number that the factor was multiplied by."
                )
            )
            arriving = graph.apply(multiply.OP, f"{id}_product", upstream, step.inputs[0], symbol=r"P_\gamma", why=why)
        graph.apply(column_sum.OP, id, arriving)

    return gradient


OP = Op(
    name="scale_shift",
    compute=compute,
    axes=axes,
    formula=formula,
    terms=terms,
    why=N_("Each {column} gets its own factor and its own shift, which are learned and the same for every {row}."),
    backward=(gradient_a, gradient_vector(1), gradient_vector(2)),
)
