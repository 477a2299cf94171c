"""The slope of a soft cap, from its result: 1 − (y/c)²."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, fixed
from attncli.core.matrix import Matrix, as_matrix
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at, number

if TYPE_CHECKING:
    from attncli.core.graph import Step


def compute(xp: Arithmetic, a: Value, *, cap: Matrix) -> Value:
    """1 − (a / cap)², entry by entry."""
    share = xp.divide(a, xp.enter(cap))
    return xp.subtract(xp.enter(as_matrix(1.0)), xp.multiply(share, share))


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    share = Term("quotient", at(values, step.inputs[0], index), number(float(step.params["cap"].values)))
    return Term("difference", number(1.0), Term("product", share, share))


OP = Op(
    name="cap_slope",
    compute=compute,
    axes="i j -> i j",
    formula=fixed(r"1 - ({0} / c)^2"),
    terms=terms,
    why=N_("The slope of the soft cap at every entry: 1 for small scores, near 0 at the cap."),
)
