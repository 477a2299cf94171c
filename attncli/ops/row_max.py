"""The largest entry of every row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, fixed
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at

if TYPE_CHECKING:
    from attncli.core.graph import Step


def compute(xp: Arithmetic, a: Value) -> Value:
    """The maximum along the last axis, which is kept with length 1."""
    return xp.max(a, -1)


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    source = step.inputs[0]
    return Term("max", *(at(values, source, (*index[:-1], j)) for j in range(values[source].shape[-1])))


OP = Op(
    name="row_max",
    compute=compute,
    axes="i j -> i 1",
    formula=fixed(r"\max_j {0}"),
    terms=terms,
    why=N_(
        "The largest score in each {row} that is not masked. Subtracting it first keeps e^x "
        "from overflowing and does not change the weights."
    ),
)
