"""Operands of a product the wrong way round, or others in their place; and the factor that scores are divided by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Step, Swap, gradient_id, part_of
from attncli.core.matrix import Matrix, as_matrix
from attncli.core.message import N_
from attncli.mistakes.mistake import (
    Made,
    MistakeKind,
    Swaps,
    Wording,
    and_back,
    anywhere,
    backward_of,
    by_habit,
    instead,
    passing,
    source_of_softmax,
    step_of,
    ways,
    where,
    with_operands,
)
from attncli.ops.layout import HEADS_WIDTH
from attncli.ops.product import factor_gradients

_TRANSPOSE = N_(
    "Look again at which operand is transposed: the inner sizes must match, and each entry must "
    "be multiplied by its counterpart."
)

_FACTOR = N_("Look again at the formula of this step: one number multiplies every entry.")

#: A product, and one to which a bias is added: what goes wrong in the product, the bias is added all the same.
_PRODUCTS = ("product", "affine")


def _other(step: Step, a: str, b: str, **params: Any) -> dict[str, Swap]:
    """The product of other operands, or with other transposes; a bias stays."""
    return with_operands(step, step.op, (a, b, *step.inputs[2:]), params)


def _same(step: Step, a: str, b: str) -> dict[str, Swap]:
    return _other(step, a, b, **step.params)


def _slopes(graph: Graph, step: Step, swap: Swaps) -> Swaps:
    """The gradients of a product that was done otherwise, as automatic differentiation gives them."""
    wrong, arriving = swap[step.id], gradient_id(step.id)
    if step.phase != "forward" or arriving not in graph:
        return {}
    a, b = wrong.inputs[:2]
    transposed = (bool(wrong.params.get("transpose_a")), bool(wrong.params.get("transpose_b")))
    found = dict[str, Swap]()
    for source, gradient in zip((a, b), factor_gradients(a, b, arriving, *transposed), strict=True):
        left, right, turned_left, turned_right = gradient
        back = backward_of(graph, source, step)
        if back is not None and back.op.name == "product":
            params = {"transpose_a": turned_left, "transpose_b": turned_right}
            found |= with_operands(back, back.op, (left, right), params)
    return found


def _name(step_id: str) -> str:
    return step_id.removeprefix(part_of(step_id))


def _kind(step: Step) -> str:
    """What a product on the way forward is: of scores, a projection, with a table used again (tied), or of values."""
    if step.phase != "forward":
        return ""
    if _name(step.id) == "scores":
        return "scores"
    if _name(step.inputs[1]).startswith("W_"):
        return "projection"
    return "tied" if step.params.get("transpose_b") else "values"


def _transposed(**params: bool) -> Callable[[Step], dict[str, Swap]]:
    """The product of the same two operands, transposed so."""
    return lambda step: with_operands(step, step.op, step.inputs, params)


def _is(kind: str) -> Callable[[Graph, Step], tuple[()] | None]:
    return where(lambda step: _kind(step) == kind)


def _weight_transposed(step: Step) -> dict[str, Swap]:
    return _transposed(transpose_b=not step.params.get("transpose_b"))(step)


def _exchanged(step: Step) -> dict[str, Swap]:
    return _same(step, step.inputs[1], step.inputs[0])


def _wrong_weight(graph: Graph, step: Step) -> Iterator[Swaps]:
    """The other weight matrices of the same part of a model: W_K and W_V for W_Q, self.W_K for self.W_Q."""
    own = step.inputs[1]
    part = part_of(own)
    for other in graph.inputs if _kind(step) == "projection" else ():
        beside = other != own and other.startswith(f"{part}W_") and part_of(other) == part
        if beside and graph.shape(other) == graph.shape(own):
            yield _same(step, step.inputs[0], other)


def _of_other_sequence(graph: Graph, step: Step) -> Iterator[Swaps]:
    """Across two sequences, queries, keys or values of the wrong one; keys and values together by habit."""
    beside = [graph.steps.get(part_of(step.id) + name) for name in "QKV"]
    steps = [other for other in beside if other is not None and other.op.name in _PRODUCTS]
    if len(steps) < 3 or step not in steps:
        return
    query, key, value = steps
    asking, asked = query.inputs[0], key.inputs[0]
    if asking == asked or value.inputs[0] != asked or graph.axes(asking)[-1].size != graph.axes(asked)[-1].size:
        return
    if step is query:
        yield _same(query, asked, query.inputs[1])
    else:
        yield from by_habit(lambda one: _same(one, asking, one.inputs[1]), step, (key, value))


def _scores_for_weights(graph: Graph, step: Step) -> Iterator[Swaps]:
    """What softmax was taken of in place of its result: masked, scaled, the scores themselves."""
    source = source_of_softmax(graph, step.inputs[0]) if _kind(step) == "values" else None
    while source is not None:
        yield _other(step, source, step.inputs[1])
        before = graph.steps.get(source)
        source = before.inputs[0] if before is not None and before.op.name != "product" else None


def _gradient_not_transposed(graph: Graph, step: Step) -> Iterator[Swaps]:
    """A transpose left out; where none belongs, one too many is the same confusion."""
    if step.phase != "backward":
        return
    if step.params.get("transpose_a") or step.params.get("transpose_b"):
        yield _transposed()(step)
    else:
        yield from (_transposed(transpose_a=True)(step), _transposed(transpose_b=True)(step))


# --- the factor of the scores left out, taken twice, turned over, or taken of another width ---------------------------


def _roots(step: Step) -> Iterator[Matrix]:
    """What the root is taken of, at a forward step that divides by one."""
    if step.phase == "forward" and "root" in step.params:
        yield step.params["root"]


def _by(*wrong: Callable[..., Value]) -> Made:
    """Each of these in the place of a division by a root."""
    return lambda graph, step: [instead(step, one, *step.inputs, root=root) for root in _roots(step) for one in wrong]


def _over_width(xp: Arithmetic, a: Value, root: Matrix) -> Value:
    return xp.divide(a, xp.constant(root))


def _over_root_twice(xp: Arithmetic, a: Value, root: Matrix) -> Value:
    by = xp.round_intermediate(xp.sqrt(xp.constant(root)))
    return xp.divide(xp.round_step(xp.divide(a, by)), by)


def _times_root(xp: Arithmetic, a: Value, root: Matrix) -> Value:
    return xp.multiply(a, xp.round_intermediate(xp.sqrt(xp.constant(root))))


def _scaled_alike(graph: Graph, step: Step, swap: Swaps) -> Swaps:
    """The same factor on the way back."""
    wrong = swap[step.id]
    return and_back(lambda back: with_operands(back, wrong.op, back.inputs, wrong.params), "scale")(graph, step, swap)


def _of_model_width(graph: Graph, step: Step) -> Iterator[Swaps]:
    return _of_widths(step, _model_widths(graph, step))


def _of_part(graph: Graph, step: Step) -> Iterator[Swaps]:
    return _of_widths(step, _parts_of_query(graph, step) - _model_widths(graph, step) - {1.0})


def _of_widths(step: Step, widths: set[float]) -> Iterator[Swaps]:
    """Divided by the roots of other widths."""
    for root in _roots(step):
        for width in sorted(widths - {float(root.values)}):
            yield with_operands(step, step.op, step.inputs, {"root": as_matrix(width)})


def _model_widths(graph: Graph, step: Step) -> set[float]:
    """With several heads, √d_model is taken of all of them together."""
    bound = (graph.binding(step.id, name) for name in ("d_model", HEADS_WIDTH))
    return {float(axis.size) for axis in bound if axis is not None}


def _parts_of_query(graph: Graph, step: Step) -> set[float]:
    """Widths around a query that is made of parts: its own, and each part's, also before it was multiplied."""
    scores = step_of(graph, step.inputs[0], "product")
    query = None if scores is None else step_of(graph, scores.inputs[0], "join_columns", "product")
    if query is None or query.phase != "forward":
        return set()
    parts = query.inputs if query.op.name == "join_columns" else (query.id,)
    steps = [graph.steps[part] for part in parts if part in graph.steps]
    before = [one.inputs[0] for one in steps if one.op.name == "product" and one.params.get("transpose_b")]
    return {float(graph.shape(source)[-1]) for source in (query.id, *parts, *before)}


def _loses_scale(step: Step) -> bool:
    """On the way back, and more than the −1 that a subtraction leaves behind: losing that is a slip of the sign."""
    factor = step.params.get("factor")
    return step.phase == "backward" and (factor is None or float(factor.values) != -1.0)


MISTAKES = (
    MistakeKind("weight-transposed", 4, N_("You multiplied by the transposed weight matrix."), _TRANSPOSE, _PRODUCTS, ways(_is("projection"), _weight_transposed), _slopes),
    MistakeKind("wrong-weight", 2, N_("You multiplied by another projection's weight matrix."), N_("Look again at which of W_Q, W_K and W_V belongs here."), _PRODUCTS, _wrong_weight),
    MistakeKind("other-sequence", 0, N_("You worked from the other sequence. Across two sequences, queries come from the tokens that look, keys and values from those that are looked at."), N_("Look again at which sequence this is made of: the one that looks, or the one that is looked at?"), _PRODUCTS, _of_other_sequence),
    MistakeKind("key-not-transposed", 1, N_("You multiplied Q by K, without transposing K."), _TRANSPOSE, _PRODUCTS, ways(_is("scores"), _transposed()), _slopes),
    MistakeKind("operands-swapped", 2, N_("You multiplied the two matrices the other way round."), N_("Look again at the order of the product: it matters for matrices."), _PRODUCTS, ways(anywhere, _exchanged), _slopes),
    MistakeKind("table-not-transposed", 0, N_("You multiplied by E itself. A logit compares a token's vector with one {row} of E, so it takes Eᵀ."), N_("Look again at how the logits use E: which way round must it be to give one score for each token of the vocabulary?"), _PRODUCTS, ways(_is("tied"), _transposed()), _slopes),
    MistakeKind("weights-transposed", 1, N_("You multiplied the transposed weights by V."), _TRANSPOSE, _PRODUCTS, ways(_is("values"), _transposed(transpose_a=True)), _slopes),
    MistakeKind("value-transposed", 0, N_("You transposed V. Weight j belongs to {row} j of V, so V stays as it is."), _TRANSPOSE, _PRODUCTS, ways(_is("values"), _transposed(transpose_b=True)), _slopes),
    MistakeKind("scores-for-weights", 1, N_("You multiplied scores by V; softmax was forgotten."), N_("Look again at what weighs the values: A, after softmax."), _PRODUCTS, _scores_for_weights),
    MistakeKind("no-output-projection", 5, N_("You stopped at the joined heads; W_O still mixes them."), N_("Look again at the last line: the joined heads times W_O."), _PRODUCTS, ways(where(lambda step: step.phase == "forward" and _name(step.inputs[1]) == "W_O"), passing)),
    MistakeKind("gradient-not-transposed", 3, N_("A transpose is missing in this gradient (or there is one too many)."), _TRANSPOSE, _PRODUCTS, _gradient_not_transposed),
    MistakeKind("no-scale", 4, N_("You left out the division by √d_k."), N_("Look again at the scale: divide every score by √d_k."), ("scale",), ways(where(lambda step: step.phase == "forward"), passing), _scaled_alike, {"factor": Wording(N_("You left out the factor that every score is multiplied by."), _FACTOR)}),
    MistakeKind("scale-by-d", 2, N_("You divided by d_k itself, or by its root twice."), N_("Look again at the scale: it is the square root of d_k, once."), ("scale",), _by(_over_width, _over_root_twice), _scaled_alike),
    MistakeKind("scale-by-model-width", 8, N_("You divided by the root of the model's width, not of d_k."), N_("Look again at which width d_k is: the number of columns of Q and K."), ("scale",), _of_model_width, _scaled_alike),
    MistakeKind("scale-by-part", 0, N_("You divided by the root of another width. d_k counts every {column} that a query has, the part that is turned included."), N_("Look again at which width d_k is: the part with the content and the part that is turned, together."), ("scale",), _of_part, _scaled_alike),
    MistakeKind("scale-inverted", 1, N_("You multiplied by √d_k instead of dividing by it."), N_("Look again at the scale: it makes scores smaller."), ("scale",), _by(_times_root), _scaled_alike),
    MistakeKind("gradient-scale-lost", 2, N_("You forgot the factor 1/√d_k on the way back."), N_("Look again at the scale: a factor on the way forward is the same factor on the way back."), ("scale",), ways(where(_loses_scale), passing), elsewhere={"factor": Wording(N_("You left out the factor: every entry is multiplied by the same number here."), _FACTOR)}, vaguer_than=frozenset({"loss-factor-missing"})),
)  # fmt: skip
