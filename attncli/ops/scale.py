"""Every entry divided by the square root of a width, or multiplied by a number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.matrix import Matrix
from attncli.message import N_
from attncli.ops import Mistake, at, instead, values_for_gradients, with_operands
from attncli.terms import Index, Term, number

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


#: The axis of the queries of all heads side by side, whose width is often taken for d_k.
HEADS_WIDTH = "heads·d_k"


def compute(
    xp: Arithmetic, a: Value, *, root: Matrix | None = None, factor: Matrix | None = None, label: str = ""
) -> Value:
    """a / √root, or a · factor."""
    if root is not None:
        return xp.divide(a, xp.aside(xp.sqrt(xp.enter(root))))
    assert factor is not None
    return xp.multiply(a, xp.enter(factor))


def formula(params: Params, columns: bool) -> str:
    label = (params.get("label") or "c").replace("{", "{{").replace("}", "}}")
    if params.get("root") is not None:
        return rf"\frac{{{{{{0}}}}}}{{{{\sqrt{{{{{label}}}}}}}}}"
    return rf"{label} \cdot {{0}}" if params.get("label") else numbers(params)


def numbers(params: Params) -> str:
    if params.get("root") is not None:
        return rf"\frac{{{{{{0}}}}}}{{{{\sqrt{{{{{_plain(params['root'])}}}}}}}}}"
    return rf"{_plain(params['factor'])} \cdot {{0}}"


def _plain(matrix: Matrix) -> str:
    value = float(matrix.values)
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    entry = at(values, step.inputs[0], index)
    root = step.params.get("root")
    if root is not None:
        return Term("quotient", entry, Term("root", number(float(root.values))))
    return Term("product", number(float(step.params["factor"].values)), entry)


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    """A factor on the way there is the same factor on the way back."""
    graph.apply(OP, id, upstream, **step.params)


def mistakes(graph: Graph, step: Step) -> Iterator[Mistake]:
    """The factor left out, taken twice, turned over, or taken of another width."""
    from attncli.matrix import as_matrix
    from attncli.ops import pass_on

    if step.phase == "backward":
        if not _only_turns_the_sign(step):
            yield with_operands("gradient-scale-lost", step, pass_on.OP, step.inputs, {})
        for wrong in values_for_gradients(graph, step):
            yield with_operands("value-for-gradient", step, OP, wrong, step.params)
        return
    yield with_operands("no-scale", step, pass_on.OP, step.inputs, {})
    root = step.params.get("root")
    if root is None:
        return
    width = float(root.values)

    def rooted(xp: Arithmetic) -> Value:
        return xp.aside(xp.sqrt(xp.enter(root)))

    yield instead("scale-by-d", step, lambda xp, a: xp.divide(xp.divide(a, rooted(xp)), rooted(xp)), *step.inputs)
    yield instead("scale-inverted", step, lambda xp, a: xp.multiply(a, rooted(xp)), *step.inputs)
    # With several heads, √d_model is taken of all of them together.
    bound = (graph.binding(step.id, name) for name in ("d_model", HEADS_WIDTH))
    models = {axis.size for axis in bound if axis is not None}
    for size in sorted(models - {width}):
        yield with_operands("scale-by-model-width", step, OP, step.inputs, {"root": as_matrix(float(size))})
    for other in sorted(_other_widths(graph, step) - models - {width, 1.0}):
        yield with_operands("scale-by-part", step, OP, step.inputs, {"root": as_matrix(other)})


def _other_widths(graph: Graph, step: Step) -> set[float]:
    """Widths around a query that is made of parts: its own, and each part's, also before it was multiplied."""
    scores = graph.steps.get(step.inputs[0])
    if scores is None or scores.op.name != "product":
        return set()
    query = graph.steps.get(scores.inputs[0])
    if query is None or query.op.name not in ("join_columns", "product") or query.phase != "forward":
        return set()
    parts = query.inputs if query.op.name == "join_columns" else (query.id,)
    steps = [graph.steps[id] for id in parts if id in graph.steps]
    before = [one.inputs[0] for one in steps if one.op.name == "product" and one.params.get("transpose_b")]
    return {float(graph.shape(id)[-1]) for id in (query.id, *parts, *before)}


def _only_turns_the_sign(step: Step) -> bool:
    """Whether the factor is −1, which a subtraction leaves behind; losing that is a slip of the sign."""
    factor = step.params.get("factor")
    return factor is not None and float(factor.values) == -1.0


OP = Op(
    name="scale",
    compute=compute,
    axes="i j -> i j",
    formula=formula,
    numbers=numbers,
    terms=terms,
    why=N_("Every entry gets the same factor. A factor on the way forward is the same factor on the way back."),
    backward=(gradient,),
    mistakes=mistakes,
)
