"""Probabilities minus targets: the gradient of cross-entropy before it is averaged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op
from attncli.matrix import as_matrix
from attncli.message import N_
from attncli.ops import at, fixed
from attncli.terms import Index, Term, number

if TYPE_CHECKING:
    from attncli.core.graph import Step


def compute(xp: Arithmetic, p: Value, y: Value, *, counted: Any = None) -> Value:
    """P − Y (token class); 0 in the rows that are not counted (`counted`: token 1)."""
    error = xp.subtract(p, y)
    return error if counted is None else xp.where(counted, error, xp.enter(as_matrix(0.0)))


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    counted = step.params.get("counted")
    if counted is not None and not counted[index[0], 0]:
        return number(0.0)
    return Term("difference", *(at(values, id, index) for id in step.inputs))


OP = Op(
    name="class_error",
    compute=compute,
    axes="i j, i j -> i j",
    formula=fixed("{0} - {1}"),
    terms=terms,
    why=N_(
        "Softmax and the logarithm after it have one simple slope together: the probability, minus 1 at the target."
        " Every wrong class is pushed down, the target is pulled up."
    ),
)
