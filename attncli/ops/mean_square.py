"""The mean of the squares of all entries."""

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


def compute(xp: Arithmetic, a: Value, *, ndim: int = 2) -> Value:
    """Σ a² / (number of entries), as a 1×1 array; a has `ndim` axes."""
    total = xp.sum(xp.multiply(a, a), tuple(range(-ndim, 0)))
    mean = xp.divide(total, xp.enter(as_matrix(float(np.prod(a.shape[-ndim:])))))
    return xp.reshape(mean, (*a.shape[:-ndim], 1, 1))


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    source = step.inputs[0]
    squares = [Term("product", at(values, source, i), at(values, source, i)) for i in np.ndindex(values[source].shape)]
    return Term("quotient", Term("sum", *squares), number(float(len(squares))))


OP = Op(
    name="mean_square",
    compute=compute,
    axes=lambda params: "i j -> 1 1" if params.get("ndim", 2) == 2 else "h i j -> 1 1",
    formula=fixed(r"\frac{{1}}{{N}} \sum {0}^2"),
    terms=terms,
    why=N_("Square every entry, so that signs do not cancel, and take the mean."),
)
