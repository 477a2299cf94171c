"""Some consecutive columns of an array."""

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
    """Columns start … start+length−1 of a (… n d)."""
    return xp.slice(a, -1, start, start + length)


def formula(params: Params, columns: bool) -> str:
    first, last = params["start"] + 1, params["start"] + params["length"]
    part = f"{first}:{last}" if first < last else f"{first}"
    return f"{{0}}[{part}]" if columns else f"{{0}}[:, {part}]"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    *head, i, j = index
    return at(values, step.inputs[0], (*head, i, j + step.params["start"]))


OP = Op(
    name="slice_columns",
    compute=compute,
    axes="n d -> n =column:length",
    formula=formula,
    terms=terms,
    why=N_("Forward, both parts were put side by side; on the way back each takes its own {columns} again."),
)
