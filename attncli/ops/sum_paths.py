"""The sum of several arrays of one shape: where paths meet, their gradients are added."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params, Rule
from attncli.core.message import N_
from attncli.ops import at, pass_on
from attncli.terms import Index, Term

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, *parts: Value, count: int) -> Value:
    """The sum of all parts, entry by entry, from the first to the last."""
    return reduce(xp.add, parts)


def axes(params: Params) -> str:
    return ", ".join(["i j"] * params["count"]) + " -> i j"


def formula(params: Params, columns: bool) -> str:
    return " + ".join(f"{{{i}}}" for i in range(params["count"]))


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    return Term("sum", *(at(values, part, index) for part in step.inputs))


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    graph.apply(pass_on.OP, id, upstream)


#: More than anybody asks for: paths are summed where gradients meet, and nothing here takes gradients of gradients.
_RULES: tuple[Rule, ...] = (gradient,) * 64


OP = Op(
    name="sum_paths",
    compute=compute,
    axes=axes,
    formula=formula,
    terms=terms,
    why=N_(
        "Several paths lead from here to the loss. A small change travels along all of them, so their gradients add."
    ),
    backward=_RULES,
)
