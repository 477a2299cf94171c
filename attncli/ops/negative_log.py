"""Minus the natural logarithm of every entry: how surprising a probability is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, fixed
from attncli.core.matrix import as_matrix
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at

if TYPE_CHECKING:
    from attncli.core.graph import Step


def compute(xp: Arithmetic, a: Value) -> Value:
    """−ln a, entry by entry; of 0 it is +∞."""
    # 0 − ln 1 is 0; −1 · 0 would be −0.
    return xp.subtract(xp.enter(as_matrix(0.0)), xp.log(a))


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    return Term("negative", Term("ln", at(values, step.inputs[0], index)))


OP = Op(
    name="negative_log",
    compute=compute,
    axes="i j -> i j",
    formula=fixed(r"-\ln {0}"),
    terms=terms,
    why=N_("Minus the logarithm of the target's probability: 0 where it is certain, and large where it was ruled out."),
)
