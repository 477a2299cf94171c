"""The sum of several arrays of one shape: where paths meet, their gradients are added."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import combinations
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params, Rule
from attncli.message import N_
from attncli.names import part_of
from attncli.ops import Mistake, at, instead, pass_on, with_operands
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


def mistakes(graph: Graph, step: Step) -> Iterator[Mistake]:
    """A path or two left out, or all but one; or one counted twice."""
    paths = step.inputs
    for missing in sorted({1, 2, len(paths) - 1}):
        for kept in combinations(paths, len(paths) - missing):
            if len(kept) == 1:
                yield with_operands("path-missing", step, pass_on.OP, kept, {})
            elif kept:
                yield with_operands("path-missing", step, OP, kept, {"count": len(kept)})
    for path in paths:
        yield with_operands("path-twice", step, OP, (*paths, path), {"count": len(paths) + 1})
    for path in paths:
        kept = tuple(other for other in paths if other != path)
        if kept and _goes_past(graph, path):
            yield with_operands("residual-path-missing", step, OP, kept, {"count": len(kept)})
        if graph.steps[path].op.name == "scatter_add":
            yield with_operands("output-head-missing", step, pass_on.OP, (path,), {})
    yield from _mistakes_of_norm(graph, step)


def _goes_past(graph: Graph, path: str) -> bool:
    """Whether a path is the one past a sublayer: a residual's gradient, handed on as it is."""
    step = graph.steps[path]
    if step.op.name != "pass_on":
        return False
    prefix, dot, name = step.inputs[0].rpartition(".")
    past = graph.steps.get(f"{prefix}{dot}{name.removeprefix('G_')}")
    return past is not None and past.op.name == "residual"


#: What the statistics of a norm send back.
_STATISTICS = ("share_mean", "share_square")


def _mistakes_of_norm(graph: Graph, step: Step) -> Iterator[Mistake]:
    """Mean and variance taken for constants: only G/σ comes back through the norm."""
    paths = [path for path in step.inputs if path not in graph.steps or graph.steps[path].op.name not in _STATISTICS]
    if len(paths) == len(step.inputs):
        return
    prefix = part_of(step.id)
    value = prefix + step.id.removeprefix(prefix).removeprefix("G_")
    for norm in graph.steps.values():
        through = norm.inputs[0] if norm.op.name == "standardise" else value
        centred = graph.steps.get(through)
        if through == value and norm.op.name != "standardise":
            continue
        if through != value and (centred is None or value not in centred.inputs):
            continue
        via = norm.id if through == value else through
        straight = f"{step.id}_{via.rpartition('.')[2]}"
        others = [path for path in paths if path != straight]
        norm_prefix = part_of(norm.id)
        arriving = f"{norm_prefix}G_{norm.id.rpartition('.')[2]}"
        if straight in paths and via == norm.id:  # from what was written of it
            kept = [straight, *others]
            if others:
                yield with_operands("norm-paths-missing", step, OP, kept, {"count": len(kept)})
            else:
                yield with_operands("norm-paths-missing", step, pass_on.OP, kept, {})
        yield instead("norm-paths-missing", step, _straight_through, arriving, norm.inputs[1], *others)


def _straight_through(xp: Arithmetic, arriving: Value, divisor: Value, *others: Value) -> Value:
    return reduce(xp.add, others, xp.divide(arriving, divisor))


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
    mistakes=mistakes,
)
