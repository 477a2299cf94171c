"""The mean, or the sum, of a column: one number for the whole sequence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.core.matrix import as_matrix
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at, number

if TYPE_CHECKING:
    from attncli.core.graph import Step


def compute(xp: Arithmetic, a: Value, *, mean: bool) -> Value:
    """Σ a, or Σ a / N, of a column of N entries (N 1), as a 1×1 array."""
    total = xp.sum(a, -2)
    return xp.divide(total, xp.enter(as_matrix(float(a.shape[-2])))) if mean else total


def formula(params: Params, columns: bool) -> str:
    return r"\frac{{1}}{{N}} \sum {0}" if params["mean"] else r"\sum {0}"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    source = step.inputs[0]
    count = values[source].shape[-2]
    total = Term("sum", *(at(values, source, (i, 0)) for i in range(count)))
    return Term("quotient", total, number(float(count))) if step.params["mean"] else total


OP = Op(
    name="average",
    compute=compute,
    axes="i 1 -> 1 1",
    formula=formula,
    terms=terms,
    why=N_("One number for the whole sequence: the loss."),
)
