"""Soft capping: c·tanh(x/c) keeps every score between −c and c (Gemma 2, arXiv 2408.00118, section 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params, part_of
from attncli.core.matrix import Matrix
from attncli.core.message import N_, Message
from attncli.core.terms import Index, Term, at, number
from attncli.ops import cap_slope, multiply

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value, *, cap: Matrix) -> Value:
    """cap · tanh(a / cap), entry by entry."""
    c = xp.enter(cap)
    return xp.multiply(c, xp.tanh(xp.divide(a, c)))


def formula(params: Params, columns: bool) -> str:
    return r"c \tanh({0} / c)"


def numbers(params: Params) -> str:
    c = f"{float(params['cap'].values):g}"
    return rf"{c} \tanh({{0}} / {c})"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    c = number(float(step.params["cap"].values))
    return Term("product", c, Term("tanh", Term("quotient", at(values, step.inputs[0], index), c)))


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    """tanh' = 1 − tanh², so the slope at each entry is 1 − (capped/c)²."""
    slope = graph.apply(
        cap_slope.OP,
        part_of(step.id) + "slope",
        step.id,
        symbol=r"\sigma",
        cap=step.params["cap"],
    )
    graph.apply(
        multiply.OP,
        id,
        upstream,
        slope,
        why=Message(N_("Where the cap bends the curve flat, little of the gradient gets through.")),
    )


OP = Op(
    name="softcap",
    compute=compute,
    axes="i j -> i j",
    formula=formula,
    numbers=numbers,
    terms=terms,
    why=N_("Large scores are bent softly towards the cap; small ones hardly change."),
    backward=(gradient,),
)
