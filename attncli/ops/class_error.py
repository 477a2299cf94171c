"""Probabilities minus targets: the gradient of cross-entropy before it is averaged."""

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


def compute(xp: Arithmetic, p: Value, y: Value, *, some: bool = False) -> Value:
    """P − Y (token class); where only `some` rows count, 0 in those whose target is nowhere."""
    error = xp.subtract(p, y)
    if not some:
        return error
    counted = np.any(xp.plain(y), -1, keepdims=True)
    return xp.where(counted, error, xp.enter(as_matrix(0.0)))


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    if step.params.get("some") and not np.any(values[step.inputs[1]][index[0]]):
        return number(0.0)
    return Term("difference", *(at(values, id, index) for id in step.inputs))


OP = Op(
    name="class_error",
    compute=compute,
    axes="i j, i j -> i j",
    formula=fixed("{0} - {1}"),
    terms=terms,
    why=N_(
        "Softmax and the logarithm after it together have a simple slope: the probability, "
        "minus 1 at the target. So a step downhill lowers every wrong class and raises the "
        "target."
    ),
)
