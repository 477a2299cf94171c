"""Operands of a product the wrong way round, or others in their place: projections, scores, outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attncli.core.graph import Graph, Step, Swap, part_of
from attncli.core.message import N_
from attncli.mistakes.entry import Entry, Swaps, backward_of, passing, together, with_operands

TRANSPOSE = N_(
    "Look again at which operand is transposed: the inner sizes must match, and each entry must "
    "be multiplied by its counterpart."
)

#: A product, and one to which a bias is added: what goes wrong in the product, the bias is added all the same.
_PRODUCTS = ("product", "affine")


def _other(step: Step, a: str, b: str, **params: Any) -> dict[str, Swap]:
    """The product of other operands, or with other transposes; a bias stays."""
    return with_operands(step, step.op, (a, b, *step.inputs[2:]), params)


def _same(step: Step, a: str, b: str) -> dict[str, Swap]:
    return _other(step, a, b, **step.params)


def _slopes(graph: Graph, step: Step, swap: Swaps) -> Swaps:
    """The gradients of a product that was done otherwise, as automatic differentiation gives them."""
    wrong, arriving = swap[step.id], f"{part_of(step.id)}G_{_name(step.id)}"
    if step.phase != "forward" or arriving not in graph:
        return {}
    a, b = wrong.inputs[:2]
    turned_a, turned_b = bool(wrong.params.get("transpose_a")), bool(wrong.params.get("transpose_b"))
    of_a = ((b, arriving), turned_b, True) if turned_a else ((arriving, b), False, not turned_b)
    of_b = ((arriving, a), True, turned_a) if turned_b else ((a, arriving), not turned_a, False)
    found = dict[str, Swap]()
    for id, (inputs, transpose_a, transpose_b) in ((a, of_a), (b, of_b)):
        back = backward_of(graph, id, step)
        if back is not None and back.op.name == "product":
            found |= with_operands(back, back.op, inputs, {"transpose_a": transpose_a, "transpose_b": transpose_b})
    return found


def _name(id: str) -> str:
    return id.removeprefix(part_of(id))


def _is_scores(step: Step) -> bool:
    return step.phase == "forward" and _name(step.id) == "scores"


def _is_projection(step: Step) -> bool:
    return step.phase == "forward" and not _is_scores(step) and _name(step.inputs[1]).startswith("W_")


def _is_output(step: Step) -> bool:
    """Weights times values."""
    return step.phase == "forward" and not (_is_scores(step) or _is_projection(step) or step.params.get("transpose_b"))


def _swapped(graph: Graph, step: Step) -> Iterator[Swaps]:
    yield _same(step, step.inputs[1], step.inputs[0])


# --- projections ------------------------------------------------------------------------------------------------------


def _weight_transposed(graph: Graph, step: Step) -> Iterator[Swaps]:
    if _is_projection(step):
        yield _other(step, *step.inputs[:2], transpose_b=not step.params.get("transpose_b"))


def _wrong_weight(graph: Graph, step: Step) -> Iterator[Swaps]:
    """The other weight matrices of the same part of a model: W_K and W_V for W_Q, self.W_K for self.W_Q."""
    own = step.inputs[1]
    part = part_of(own)
    for other in graph.inputs if _is_projection(step) else ():
        beside = other != own and other.startswith(f"{part}W_") and part_of(other) == part
        if beside and graph.shape(other) == graph.shape(own):
            yield _same(step, step.inputs[0], other)


def _of_other_sequence(graph: Graph, step: Step) -> Iterator[Swaps]:
    """Across two sequences, queries, keys or values of the wrong one; keys and values together by habit."""
    part = part_of(step.id)
    beside = {one: graph.steps.get(f"{part}{one}") for one in "QKV"}
    name = _name(step.id)
    if name not in beside or any(one is None or one.op.name not in _PRODUCTS for one in beside.values()):
        return
    query, key, value = (one for one in beside.values() if one is not None)
    asking, asked = query.inputs[0], key.inputs[0]
    if asking == asked or value.inputs[0] != asked or graph.axes(asking)[-1].size != graph.axes(asked)[-1].size:
        return
    if name == "Q":
        yield _same(query, asked, query.inputs[1])
        return
    key_swap, value_swap = _same(key, asking, key.inputs[1]), _same(value, asking, value.inputs[1])
    yield together(key_swap, value_swap)
    yield key_swap if name == "K" else value_swap


def _no_output_projection(graph: Graph, step: Step) -> Iterator[Swaps]:
    if step.phase == "forward" and _name(step.inputs[1]) == "W_O":
        yield passing(step, step.inputs[0])


# --- scores and outputs -----------------------------------------------------------------------------------------------


def _key_not_transposed(graph: Graph, step: Step) -> Iterator[Swaps]:
    if _is_scores(step):
        yield _other(step, *step.inputs[:2])


def _table_not_transposed(graph: Graph, step: Step) -> Iterator[Swaps]:
    """A table that is used again: the logits of a model that is tied."""
    if step.phase == "forward" and step.params.get("transpose_b") and not (_is_scores(step) or _is_projection(step)):
        yield _other(step, *step.inputs[:2])


def _weights_transposed(graph: Graph, step: Step) -> Iterator[Swaps]:
    if _is_output(step):
        yield _other(step, *step.inputs[:2], transpose_a=True)


def _value_transposed(graph: Graph, step: Step) -> Iterator[Swaps]:
    if _is_output(step):
        yield _other(step, *step.inputs[:2], transpose_b=True)


def _scores_for_weights(graph: Graph, step: Step) -> Iterator[Swaps]:
    """What softmax was taken of in place of its result: masked, scaled, the scores themselves."""
    weights = graph.steps.get(step.inputs[0])
    source = weights.composite.source if weights is not None and weights.composite is not None else None
    while source is not None and _is_output(step):
        yield _other(step, source, step.inputs[1])
        before = graph.steps.get(source)
        source = before.inputs[0] if before is not None and before.op.name != "product" else None


# --- on the way back --------------------------------------------------------------------------------------------------


def _gradient_not_transposed(graph: Graph, step: Step) -> Iterator[Swaps]:
    """A transpose left out; where none belongs, one too many is the same confusion."""
    if step.phase != "backward":
        return
    a, b = step.inputs
    if step.params.get("transpose_a") or step.params.get("transpose_b"):
        yield _other(step, a, b)
    else:
        yield _other(step, a, b, transpose_a=True)
        yield _other(step, a, b, transpose_b=True)


ENTRIES = (
    Entry("weight-transposed", 4, N_("You multiplied by the transposed weight matrix."), TRANSPOSE, _PRODUCTS, _weight_transposed, _slopes),
    Entry("wrong-weight", 2, N_("You multiplied by another projection's weight matrix."), N_("Look again at which of W_Q, W_K and W_V belongs here."), _PRODUCTS, _wrong_weight),
    Entry("other-sequence", 0, N_("You worked from the other sequence. Across two sequences, queries come from the tokens that look, keys and values from those that are looked at."), N_("Look again at which sequence this is made of: the one that looks, or the one that is looked at?"), _PRODUCTS, _of_other_sequence),
    Entry("key-not-transposed", 1, N_("You multiplied Q by K, without transposing K."), TRANSPOSE, _PRODUCTS, _key_not_transposed, _slopes),
    Entry("operands-swapped", 2, N_("You multiplied the two matrices the other way round."), N_("Look again at the order of the product: it matters for matrices."), _PRODUCTS, _swapped, _slopes),
    Entry("table-not-transposed", 0, N_("You multiplied by E itself. A logit compares a token's vector with one {row} of E, so it takes Eᵀ."), N_("Look again at how the logits use E: which way round must it be for one score a token of the vocabulary?"), _PRODUCTS, _table_not_transposed, _slopes),
    Entry("weights-transposed", 1, N_("You multiplied the transposed weights by V."), TRANSPOSE, _PRODUCTS, _weights_transposed, _slopes),
    Entry("value-transposed", 0, N_("You transposed V. Weight j belongs to {row} j of V, so V stays as it is."), TRANSPOSE, _PRODUCTS, _value_transposed, _slopes),
    Entry("scores-for-weights", 1, N_("You multiplied scores by V; softmax was forgotten."), N_("Look again at what weighs the values: A, after softmax."), _PRODUCTS, _scores_for_weights),
    Entry("no-output-projection", 5, N_("You stopped at the joined heads; W_O still mixes them."), N_("Look again at the last line: the joined heads times W_O."), _PRODUCTS, _no_output_projection),
    Entry("gradient-not-transposed", 3, N_("A transpose is missing in this gradient (or there is one too many)."), TRANSPOSE, _PRODUCTS, _gradient_not_transposed),
)  # fmt: skip
