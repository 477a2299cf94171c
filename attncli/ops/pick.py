"""The probability that every row gives to its target: Σ P ⊙ Y, where each row of Y holds a single 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, fixed
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at

if TYPE_CHECKING:
    from attncli.core.graph import Step


def compute(xp: Arithmetic, p: Value, y: Value, *, count: int, axis: str = "") -> Value:
    """Of the `count` rows of P and Y (token class) that have a target, the entry of P where Y is 1 (counted 1)."""
    picked = xp.sum(xp.multiply(p, y), -1)
    return picked if count == y.shape[-2] else xp.take(picked, _with_target(xp.plain(y), count))


def _with_target(y: Any, count: int) -> Any:
    """The rows that hold a target: (counted), or (sheet counted)."""
    without = ~np.asarray(y).any(-1)
    return np.argsort(without, axis=-1, kind="stable")[..., :count]


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    p, y = step.inputs
    row = int(_with_target(values[y], step.params["count"])[index[0]])
    width = values[p].shape[-1]
    parts = [Term("product", at(values, p, (row, j)), at(values, y, (row, j))) for j in range(width)]
    return Term("sum", *parts)


OP = Op(
    name="pick",
    compute=compute,
    axes="i j, i j -> =counted:count 1",
    formula=fixed(r"\sum_j {0} \odot {1}"),
    terms=terms,
    why=N_("Each {row} of Y holds a single 1, at the target: only the probability of the target is left."),
)
