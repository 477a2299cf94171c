"""A gradient shared among the heads whose mean was taken: the same H-th part to each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, fixed
from attncli.core.matrix import as_matrix
from attncli.core.message import N_
from attncli.core.terms import Index, Term, cell, number

if TYPE_CHECKING:
    from attncli.core.graph import Step


def compute(xp: Arithmetic, a: Value, *, heads: int) -> Value:
    """(i j) → (head i j), each a / heads."""
    shared = xp.divide(a, xp.enter(as_matrix(float(heads))))
    return xp.repeat(xp.reshape(shared, (*shared.shape[:-2], 1, *shared.shape[-2:])), heads, -3)


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    return Term("quotient", cell(step.inputs[0], tuple(index[1:])), number(float(step.params["heads"])))


OP = Op(
    name="to_heads",
    compute=compute,
    axes="i j -> =head:heads i j",
    formula=fixed(r"\frac{{1}}{{H}} {0}"),
    terms=terms,
    why=N_("Each head has 1/H of the mean, and of its gradient."),
)
