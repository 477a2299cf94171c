"""A running mean that began at 0, corrected for that: divided by 1 − βᵗ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, fixed
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at

if TYPE_CHECKING:
    from attncli.core.graph import Step


def compute(xp: Arithmetic, a: Value, correction: Value) -> Value:
    """a / correction: a (i j), correction (1 1)."""
    return xp.divide(a, correction)


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    a, correction = step.inputs
    return Term("quotient", at(values, a, index), at(values, correction, (0, 0)))


OP = Op(
    name="unbiased",
    compute=compute,
    axes="i j, 1 1 -> i j",
    formula=fixed(r"\frac{{{0}}}{{{1}}}"),
    terms=terms,
    why=N_("The running mean began at 0 and is too small at first; this makes up for it."),
)
