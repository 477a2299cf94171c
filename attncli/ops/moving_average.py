"""A running mean: a little of what is new, the rest of what was remembered (Adam's m and v)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.core.matrix import Matrix
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at, number

if TYPE_CHECKING:
    from attncli.core.graph import Step


def compute(xp: Arithmetic, old: Value, new: Value, *, keep: Matrix, rest: Matrix, square: bool, label: str) -> Value:
    """keep · old + rest · new, or of new², with rest = 1 − keep (Kingma and Ba, arXiv 1412.6980, algorithm 1)."""
    fresh = xp.multiply(new, new) if square else new
    return xp.add(xp.multiply(xp.enter(keep), old), xp.multiply(xp.enter(rest), fresh))


def formula(params: Params, columns: bool) -> str:
    label = params["label"]
    return rf"{label} \, {{0}} + (1 - {label}) \, {{1}}{'^2' if params['square'] else ''}"


def numbers(params: Params) -> str:
    keep = float(params["keep"].values)
    return rf"{keep:g} \cdot {{0}} + {1 - keep:g} \cdot {{1}}{'^2' if params['square'] else ''}"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    old, new = (at(values, id, index) for id in step.inputs)
    keep = float(step.params["keep"].values)
    fresh = (new, new) if step.params["square"] else (new,)
    return Term("sum", Term("product", number(keep), old), Term("product", number(1 - keep), *fresh))


OP = Op(
    name="moving_average",
    compute=compute,
    axes="i j, i j -> i j",
    formula=formula,
    numbers=numbers,
    terms=terms,
    why=N_("Adam remembers: most of the old mean stays, a little of this step's gradient comes in."),
)
