"""A gradient shared among the tokens whose mean is the loss: every entry divided by their number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params, fixed
from attncli.core.matrix import as_matrix
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at, number

if TYPE_CHECKING:
    from attncli.core.graph import Step


def compute(xp: Arithmetic, a: Value, *, count: int) -> Value:
    """a / count, entry by entry."""
    return xp.divide(a, xp.enter(as_matrix(float(count))))


def numbers(params: Params) -> str:
    return rf"\frac{{{{{{0}}}}}}{{{{{params['count']}}}}}"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    return Term("quotient", at(values, step.inputs[0], index), number(float(step.params["count"])))


OP = Op(
    name="batch_share",
    compute=compute,
    axes="i j -> i j",
    formula=fixed(r"\frac{{{0}}}{{N}}"),
    numbers=numbers,
    terms=terms,
    why=N_("The loss is a mean over the tokens that count, so each of them only has its share in it."),
)
