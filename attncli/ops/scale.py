"""Every entry divided by the square root of a width, or multiplied by a number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.core.matrix import Matrix
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at, number

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


#: The axis of the queries of all heads side by side, whose width is often taken for d_k.
HEADS_WIDTH = "heads·d_k"


def compute(
    xp: Arithmetic,
    a: Value,
    *,
    root: Matrix | None = None,
    factor: Matrix | None = None,
    divisor: Matrix | None = None,
    label: str = "",
) -> Value:
    """a / √root, a / divisor, or a · factor."""
    if divisor is not None:
        return xp.divide(a, xp.enter(divisor))
    if root is not None:
        return xp.divide(a, xp.aside(xp.sqrt(xp.enter(root))))
    assert factor is not None
    return xp.multiply(a, xp.enter(factor))


def formula(params: Params, columns: bool) -> str:
    label = (params.get("label") or "c").replace("{", "{{").replace("}", "}}")
    if params.get("root") is not None:
        return rf"\frac{{{{{{0}}}}}}{{{{\sqrt{{{{{label}}}}}}}}}"
    if params.get("divisor") is not None:
        return rf"\frac{{{{{{0}}}}}}{{{{{label}}}}}"
    return rf"{label} \cdot {{0}}" if params.get("label") else numbers(params)


def numbers(params: Params) -> str:
    if params.get("root") is not None:
        return rf"\frac{{{{{{0}}}}}}{{{{\sqrt{{{{{_plain(params['root'])}}}}}}}}}"
    if params.get("divisor") is not None:
        return rf"\frac{{{{{{0}}}}}}{{{{{_plain(params['divisor'])}}}}}"
    return rf"{_plain(params['factor'])} \cdot {{0}}"


def _plain(matrix: Matrix) -> str:
    value = float(matrix.values)
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    entry = at(values, step.inputs[0], index)
    root = step.params.get("root")
    if root is not None:
        return Term("quotient", entry, Term("root", number(float(root.values))))
    if step.params.get("divisor") is not None:
        return Term("quotient", entry, number(float(step.params["divisor"].values)))
    return Term("product", number(float(step.params["factor"].values)), entry)


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    """A factor on the way there is the same factor on the way back."""
    graph.apply(OP, id, upstream, **step.params)


OP = Op(
    name="scale",
    compute=compute,
    axes="i j -> i j",
    formula=formula,
    numbers=numbers,
    terms=terms,
    why=N_("Every entry gets the same factor. A factor on the way forward is the same factor on the way back."),
    backward=(gradient,),
)
