"""Some consecutive rows of an array."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at

if TYPE_CHECKING:
    from attncli.core.graph import Step


def compute(xp: Arithmetic, a: Value, *, start: int, length: int, axis: str = "") -> Value:
    """Rows start … start+length−1 of a (… n d)."""
    return xp.slice(a, -2, start, start + length)


def formula(params: Params, columns: bool) -> str:
    rows = f"{params['start'] + 1}:{params['start'] + params['length']}"
    return f"{{0}}[:, {rows}]" if columns else f"{{0}}[{rows}]"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    *head, i, j = index
    return at(values, step.inputs[0], (*head, i + step.params["start"], j))


OP = Op(
    name="slice_rows",
    compute=compute,
    axes="n d -> =row:length d",
    formula=formula,
    terms=terms,
    why=N_("The {rows} that belong to this part."),
)
