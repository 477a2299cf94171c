"""The position code: sine and cosine of every angle (Vaswani et al., arXiv 1706.03762, section 3.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at

if TYPE_CHECKING:
    from attncli.core.graph import Step


def compute(xp: Arithmetic, a: Value, *, width: int, arrangement: str) -> Value:
    """sin and cos of a (n pairs), as (n width): in turn, or all sines first; of a (n width), each column of its own."""
    both = xp.concatenate([xp.sin(a), xp.cos(a)], -1)
    return _columns(xp, both, _order(width, a.shape[-1], arrangement))


def _columns(xp: Arithmetic, a: Value, order: Any) -> Value:
    return xp.swapaxes(xp.take(xp.swapaxes(a, -1, -2), order), -1, -2)


def _order(width: int, pairs: int, arrangement: str) -> Any:
    """For every column, its place in the sines followed by the cosines."""
    column = np.arange(width)
    if arrangement == "concatenated":
        return column
    return (column if pairs == width else column // 2) + (column % 2) * pairs


def formula(params: Params, columns: bool) -> str:
    if params["arrangement"] == "concatenated":
        between = r"\\" if columns else "&"
        return rf"\begin{{{{bmatrix}}}}\sin({{0}}){between} \cos({{0}})\end{{{{bmatrix}}}}"
    return r"\sin({0}), \cos({0}), \ldots"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    source = step.inputs[0]
    pairs = values[source].shape[-1]
    place = int(_order(step.params["width"], pairs, step.params["arrangement"])[index[-1]])
    return Term("cos" if place >= pairs else "sin", at(values, source, (*index[:-1], place % pairs)))


OP = Op(
    name="sinusoid",
    compute=compute,
    axes="n p -> n =d_model:width",
    formula=formula,
    terms=terms,
    why=N_(
        "Each angle gives two numbers, its sine and its cosine, like the hands of a clock: together they say where a hand"
        " stands, and moving on by k positions turns each hand by its own fixed angle, wherever one starts."
    ),
)
