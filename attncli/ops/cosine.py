"""The cosine of every entry."""

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
    """cos a, entry by entry."""
    return xp.cos(a)


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    return Term("cos", at(values, step.inputs[0], index))


OP = Op(
    name="cosine",
    compute=compute,
    axes="i j -> i j",
    formula=fixed(r"\cos {0}"),
    terms=terms,
    why=N_("The cosine of every angle."),
)
