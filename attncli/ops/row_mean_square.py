"""The mean of the squares of every row: a variance, where the row's mean is 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at, number
from attncli.ops import share_square
from attncli.ops._norm import mean_of_squares

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value) -> Value:
    """Σ a² / d along the last axis, which is kept with length 1."""
    return mean_of_squares(xp, a, -1)


def formula(params: Params, columns: bool) -> str:
    return r"\frac{{1}}{{d}} \sum_i {0}^2" if columns else r"\frac{{1}}{{d}} \sum_j {0}^2"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    source = step.inputs[0]
    width = values[source].shape[-1]
    cells = [at(values, source, (*index[:-1], j)) for j in range(width)]
    return Term("quotient", Term("sum", *(Term("product", one, one) for one in cells)), number(float(width)))


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    graph.apply(share_square.OP, id, step.inputs[0], upstream)


OP = Op(
    name="row_mean_square",
    compute=compute,
    axes="i j -> i 1",
    formula=formula,
    terms=terms,
    why=N_("Square every entry, so that signs do not cancel, and take the mean of each {row}."),
    backward=(gradient,),
)
