"""The gradient of −Σ Y ⊙ ln A at A: −Y/A, and 0 where nothing counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, fixed
from attncli.core.matrix import as_matrix
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at, number

if TYPE_CHECKING:
    from attncli.core.graph import Step


def compute(xp: Arithmetic, a: Value, y: Value) -> Value:
    """−y/a where y is not 0, else 0."""
    counted = np.asarray(xp.plain(y)) != 0
    zero = xp.enter(as_matrix(0.0))
    one = xp.enter(as_matrix(1.0))
    return xp.where(counted, xp.subtract(zero, xp.divide(y, xp.where(counted, a, one))), zero)


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    a, y = step.inputs
    if not values[y][tuple(index)]:
        return number(0.0)
    return Term("negative", Term("quotient", at(values, y, index), at(values, a, index)))


OP = Op(
    name="log_slope",
    compute=compute,
    axes="i j, i j -> i j",
    formula=fixed(r"-\frac{{{1}}}{{{0}}}"),
    terms=terms,
    why=N_(
        "The slope of −ln a is −1/a: the smaller the probability, the harder it is pulled up. Entries that the loss does not"
        " ask for get gradient 0."
    ),
)
