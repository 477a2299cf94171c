"""Several measures, each times its factor, added up to one loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.core.matrix import Matrix
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at, number

if TYPE_CHECKING:
    from attncli.core.graph import Step


def compute(xp: Arithmetic, *parts: Value, factors: Sequence[Matrix], written: Sequence[str] = ()) -> Value:
    """Σ factor · part, of 1×1 arrays; `written` are the factors as LaTeX."""
    return reduce(xp.add, (_times(xp, part, factor) for part, factor in zip(parts, factors, strict=True)))


def _times(xp: Arithmetic, part: Value, factor: Matrix) -> Value:
    return part if float(factor.values) == 1.0 else xp.multiply(part, xp.enter(factor))


def formula(params: Params, columns: bool) -> str:
    text = ""
    for place, factor in enumerate(params["written"]):
        minus = factor.startswith("-")
        plain = factor.removeprefix("-").replace("{", "{{").replace("}", "}}")
        sign = (" - " if minus else " + ") if text else "-" if minus else ""
        text += sign + (f"{{{place}}}" if plain == "1" else rf"{plain} \cdot {{{place}}}")
    return text


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    parts = []
    for part, factor in zip(step.inputs, step.params["factors"], strict=True):
        cell, size = at(values, part, index), float(factor.values)
        parts.append(cell if size == 1.0 else Term("product", number(size), cell))
    return Term("sum", *parts)


OP = Op(
    name="weighted_total",
    compute=compute,
    axes=lambda params: ", ".join(["i j"] * len(params["factors"])) + " -> i j",
    formula=formula,
    terms=terms,
    why=N_("The loss: what was measured, each part with its factor."),
)
