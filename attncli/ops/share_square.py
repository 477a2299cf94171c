"""What a row's mean square gives back to its entries: 2/d times the entry, times its gradient."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, fixed
from attncli.core.matrix import Matrix
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at, number

if TYPE_CHECKING:
    from attncli.core.graph import Step


def compute(xp: Arithmetic, a: Value, gradient: Value) -> Value:
    """(2/d) · a · gradient: a (… i d), gradient (… i 1)."""
    return xp.multiply(xp.multiply(xp.enter(_factor(a.shape[-1])), a), gradient)


def _factor(width: int) -> Matrix:
    """2/d, exactly."""
    return Matrix(np.asarray(2.0 / width), np.asarray(-1), (("/", ("num", "2"), ("num", str(width))),))


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    a, gradient = step.inputs
    share = Term("quotient", number(2.0), number(float(values[a].shape[-1])))
    return Term("product", share, at(values, a, index), at(values, gradient, index))


OP = Op(
    name="share_square",
    compute=compute,
    axes="i j, i 1 -> i j",
    formula=fixed(r"\frac{{2}}{{d}} {0} \odot {1}"),
    terms=terms,
    why=N_("The slope of x² is 2x, and the mean takes 1/d of it."),
)
