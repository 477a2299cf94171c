"""Rows times a weight matrix, plus a bias that every row gets: X W + b."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at
from attncli.ops import column_sum, product

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value, w: Value, b: Value, **turned: bool) -> Value:
    """a w + b: a (n k), w (k m), b (1 m)."""
    return xp.add(product.compute(xp, a, w, **turned), b)


def axes(params: Params) -> str:
    return "i k, j k, 1 j -> i j" if params.get("transpose_b") else "i k, k j, 1 j -> i j"


def formula(params: Params, columns: bool) -> str:
    return f"{product.formula(params, columns)} + {{2}}"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    multiplied = product.terms(_without_bias(step), index, values)
    return Term("sum", *multiplied.parts, at(values, step.inputs[2], index))


def _without_bias(step: Step) -> Step:
    return step.changed(op=product.OP, inputs=step.inputs[:2])


def gradient_a(graph: Graph, step: Step, upstream: str, id: str) -> None:
    product.gradient_a(graph, _without_bias(step), upstream, id)


def gradient_w(graph: Graph, step: Step, upstream: str, id: str) -> None:
    product.gradient_b(graph, _without_bias(step), upstream, id)


def gradient_b(graph: Graph, step: Step, upstream: str, id: str) -> None:
    graph.apply(column_sum.OP, id, upstream)


OP = Op(
    name="affine",
    compute=compute,
    axes=axes,
    formula=formula,
    terms=terms,
    why=N_("Row times column, and the bias is added to every {row}."),
    backward=(gradient_a, gradient_w, gradient_b),
)
