"""The factor of the scores left out, taken twice, turned over, or taken of another width."""

from __future__ import annotations

from collections.abc import Iterator

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Step, Swap
from attncli.core.matrix import Matrix, as_matrix
from attncli.core.message import N_
from attncli.mistakes.entry import Entry, Swaps, Words, backward_of, instead, passing, with_operands
from attncli.ops.layout import HEADS_WIDTH

_FACTOR = N_("Look again at the formula of this step: one number multiplies every entry.")


def _root(step: Step) -> Matrix | None:
    """What the root is taken of, at a forward step that divides by one."""
    root: Matrix | None = step.params.get("root")
    return root if step.phase == "forward" else None


def _alike(graph: Graph, step: Step, swap: Swaps) -> Swaps:
    """The same factor on the way back."""
    back = backward_of(graph, step.inputs[0], step)
    if step.phase != "forward" or back is None or back.op is not step.op:
        return {}
    wrong = swap[step.id]
    return {back.id: Swap(wrong.op, back.inputs, wrong.params)}


def _left_out(graph: Graph, step: Step) -> Iterator[Swaps]:
    if step.phase == "forward":
        yield passing(step, step.inputs[0])


def _by_d(graph: Graph, step: Step) -> Iterator[Swaps]:
    root = _root(step)
    if root is None:
        return

    def twice(xp: Arithmetic, a: Value) -> Value:
        by = xp.round_intermediate(xp.sqrt(xp.constant(root)))
        return xp.divide(xp.round_step(xp.divide(a, by)), by)

    yield instead(step, lambda xp, a: xp.divide(a, xp.constant(root)), *step.inputs)
    yield instead(step, twice, *step.inputs)


def _inverted(graph: Graph, step: Step) -> Iterator[Swaps]:
    root = _root(step)
    if root is not None:
        yield instead(
            step, lambda xp, a: xp.multiply(a, xp.round_intermediate(xp.sqrt(xp.constant(root)))), *step.inputs
        )


def _model_widths(graph: Graph, step: Step) -> set[float]:
    """With several heads, √d_model is taken of all of them together."""
    bound = (graph.binding(step.id, name) for name in ("d_model", HEADS_WIDTH))
    return {float(axis.size) for axis in bound if axis is not None}


def _of_widths(step: Step, widths: set[float]) -> Iterator[Swaps]:
    for width in sorted(widths):
        yield with_operands(step, step.op, step.inputs, {"root": as_matrix(width)})


def _by_model_width(graph: Graph, step: Step) -> Iterator[Swaps]:
    root = _root(step)
    if root is not None:
        yield from _of_widths(step, _model_widths(graph, step) - {float(root.values)})


def _by_part(graph: Graph, step: Step) -> Iterator[Swaps]:
    root = _root(step)
    if root is not None:
        yield from _of_widths(
            step, _parts_of_query(graph, step) - _model_widths(graph, step) - {float(root.values), 1.0}
        )


def _parts_of_query(graph: Graph, step: Step) -> set[float]:
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


def _lost_on_the_way_back(graph: Graph, step: Step) -> Iterator[Swaps]:
    if step.phase == "backward" and not _only_turns_the_sign(step):
        yield passing(step, step.inputs[0])


def _only_turns_the_sign(step: Step) -> bool:
    """Whether the factor is −1, which a subtraction leaves behind; losing that is a slip of the sign."""
    factor = step.params.get("factor")
    return factor is not None and float(factor.values) == -1.0


ENTRIES = (
    Entry("no-scale", 4, N_("You left out the division by √d_k."), N_("Look again at the scale: divide every score by √d_k."), ("scale",), _left_out, _alike, {"factor": Words(N_("You left out the factor that every score is multiplied by."), _FACTOR)}),
    Entry("scale-by-d", 2, N_("You divided by d_k itself, or twice by its root."), N_("Look again at the scale: it is the square root of d_k, once."), ("scale",), _by_d, _alike),
    Entry("scale-by-model-width", 8, N_("You divided by the root of the model's width, not of d_k."), N_("Look again at which width d_k is: the number of columns of Q and K."), ("scale",), _by_model_width, _alike),
    Entry("scale-by-part", 0, N_("You divided by the root of another width. d_k counts every {column} that a query has, the part that is turned included."), N_("Look again at which width d_k is: the part with the content and the part that is turned, together."), ("scale",), _by_part, _alike),
    Entry("scale-inverted", 1, N_("You multiplied by √d_k where one divides."), N_("Look again at the scale: it makes scores smaller."), ("scale",), _inverted, _alike),
    Entry("gradient-scale-lost", 2, N_("You forgot the factor 1/√d_k on the way back."), N_("Look again at the scale: a factor on the way forward is the same factor on the way back."), ("scale",), _lost_on_the_way_back, None, {"factor": Words(N_("You left out the factor: every entry is multiplied by the same number here."), _FACTOR)}, vaguer_than=frozenset({"loss-factor-missing"})),
)  # fmt: skip
