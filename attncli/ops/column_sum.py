"""The sum over all rows: the gradient of numbers that every row shares (a bias, γ, β)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at

if TYPE_CHECKING:
    from attncli.core.graph import Step


def compute(xp: Arithmetic, a: Value) -> Value:
    """The sum along the axis before the last, which is kept with length 1."""
    return xp.sum(a, -2)


def formula(params: Params, columns: bool) -> str:
    return r"\sum_j {0}" if columns else r"\sum_i {0}"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    source = step.inputs[0]
    *head, _, j = index
    return Term("sum", *(at(values, source, (*head, i, j)) for i in range(values[source].shape[-2])))


OP = Op(
    name="column_sum",
    compute=compute,
    axes="i j -> 1 j",
    formula=formula,
    terms=terms,
    why=N_("Every {row} used the same numbers, so the gradients of all {rows} are added."),
)
