"""Another number in the hidden places, or other places hidden.

A mask may stand over another, causal over padding: then each of the two has its own mistakes, with the other one right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Step, Swap
from attncli.core.matrix import BoolArray, FloatArray, as_matrix
from attncli.core.message import N_
from attncli.core.record import Record
from attncli.mistakes.mistake import MistakeKind, Swaps, instead, passing, together
from attncli.ops.elementwise import numeral

_MASK = N_("Look again at the mask: which places are hidden, and what number hides them.")
_BIAS = N_(
    "Look again at the numbers that the mask adds: each head has its own, and the farther away a key is, the more it loses."
)


class Mask(Record):
    """What a mask does, in parts.

    Parameters
    ----------
    causal : what one may not see because it comes later; None where nothing is hidden for that
    offset : of the diagonal that the triangle begins behind
    rest : what is hidden for another reason, whole columns where keys are padding; None where there is nothing
    bias : what is added to the visible scores
    """

    hidden: BoolArray
    causal: BoolArray | None
    offset: int
    rest: BoolArray | None
    bias: FloatArray

    def parts(self) -> Iterator[tuple[BoolArray, BoolArray]]:
        """Each part of what is hidden, with what the others hide; the whole first."""
        nothing = np.zeros_like(self.hidden)
        yield self.hidden, nothing
        if self.causal is not None and self.rest is not None:
            yield self.causal, self.rest
            yield self.rest, self.causal


#: One way to hide other places: (mask) -> what is hidden instead.
Places: TypeAlias = Callable[[Mask], Iterator[BoolArray]]


def _mask_of(graph: Graph, step: Step) -> Mask:
    added = graph.inputs[step.inputs[1]].matrix.values
    hidden = np.isneginf(added)
    bias = np.where(hidden, 0.0, added)
    corners = {offset: _corner(hidden, offset) for offset in _offsets(hidden)}
    fitting = {offset: corner for offset, corner in corners.items() if corner.any() and (hidden | ~corner).all()}
    if not fitting:
        return Mask(hidden, None, 0, hidden, bias)
    offset = max(fitting, key=lambda offset: np.count_nonzero(fitting[offset]))
    return Mask(hidden, fitting[offset], offset, _beside(hidden, fitting[offset]), bias)


def _offsets(hidden: BoolArray) -> tuple[int, ...]:
    """Where the diagonal of a causal mask may lie: at the first token, or at the last."""
    rows, columns = hidden.shape[-2:]
    return (0, columns - rows) if rows != columns else (0,)


def _corner(hidden: BoolArray, offset: int) -> BoolArray:
    """What comes later, seen from the diagonal of this offset."""
    return np.broadcast_to(np.triu(np.ones(hidden.shape[-2:], dtype=np.bool_), 1 + offset), hidden.shape)


def _beside(hidden: BoolArray, causal: BoolArray) -> BoolArray | None:
    """What is hidden besides; a key that nobody may see is hidden for all, also where it comes later anyway."""
    rest = hidden & ~causal
    if not rest.any():
        return None
    return rest | hidden.all(-2, keepdims=True) | np.zeros_like(hidden)


# --- another number ---------------------------------------------------------------------------------------------------


def _masked(step: Step, hidden: BoolArray, value: float, never: BoolArray, bias: FloatArray) -> dict[str, Swap]:
    """`value` in the hidden places, −∞ in those that are `never` seen, in the others the score and what the mask adds."""
    has_never, added = bool(never.any()), as_matrix(bias) if bias.any() else None

    def masked(xp: Arithmetic, scores: Value) -> Value:
        others = scores if added is None else xp.add(scores, xp.constant(added))
        found = xp.where(hidden, numeral(xp, value), others)
        return xp.where(never, numeral(xp, -math.inf), found) if has_never else found

    return instead(step, masked, step.inputs[0])


def _left_out(graph: Graph, step: Step) -> Iterator[Swaps]:
    yield passing(step)
    mask = _mask_of(graph, step)
    for _, others in mask.parts():
        if others.any():
            yield _masked(step, others, -math.inf, np.zeros_like(others), mask.bias)


def _set_to(value: float, graph: Graph, step: Step) -> Iterator[Swaps]:
    mask = _mask_of(graph, step)
    for hidden, others in mask.parts():
        if hidden.any():
            yield _masked(step, hidden, value, others, mask.bias)


def _added_as_01(graph: Graph, step: Step) -> Iterator[Swaps]:
    mask = _mask_of(graph, step)
    for ones in (mask.hidden, ~mask.hidden):
        added = as_matrix(ones + mask.bias)
        yield instead(step, lambda xp, scores, added=added: xp.add(scores, xp.constant(added)), step.inputs[0])


# --- other places -----------------------------------------------------------------------------------------------------


def _hiding(places: Places, graph: Graph, step: Step) -> Iterator[Swaps]:
    mask = _mask_of(graph, step)
    known = [mask.hidden]
    for other in places(mask):
        if any(np.array_equal(other, one) for one in known):
            continue
        known.append(other)
        yield _masked(step, other, -math.inf, np.zeros_like(other), mask.bias) | _of_empty_rows(graph, step, other)


def _of_empty_rows(graph: Graph, step: Step, hidden: BoolArray) -> dict[str, Swap]:
    """Weights of 0 in rows where nothing is left to be seen: 0/0 is written down by nobody."""
    if not hidden.all(-1).any():
        return {}
    softmaxes = (other for other in graph.steps.values() if other.composite and other.composite.source == step.id)
    return together(*(instead(last, _shares_or_nothing, *last.inputs[:2], step.id) for last in softmaxes))


def _shares_or_nothing(xp: Arithmetic, power: Value, total: Value, scores: Value) -> Value:
    return xp.where(xp.hidden(scores), numeral(xp, 0.0), xp.divide(power, total))


def _inverted(mask: Mask) -> Iterator[BoolArray]:
    for hidden, others in mask.parts():
        yield ~hidden | others


def _diagonal(mask: Mask) -> Iterator[BoolArray]:
    if mask.causal is not None:
        rows, columns = mask.hidden.shape[-2:]
        yield mask.hidden | np.eye(rows, columns, mask.offset, dtype=np.bool_)


def _other_triangle(mask: Mask) -> Iterator[BoolArray]:
    if mask.causal is not None:
        past = np.tril(np.ones(mask.hidden.shape[-2:], dtype=np.bool_), mask.offset - 1)
        yield past | _or_nothing(mask.rest, mask.hidden)


def _query_rows(mask: Mask) -> Iterator[BoolArray]:
    """What belongs over key columns laid over the query rows of the same tokens."""
    rows, columns = mask.hidden.shape[-2:]
    # What hides the last key from all hides what comes later, too: it need not be a triangle.
    for keys, others in ((mask.hidden, None), (mask.rest, mask.causal)):
        if keys is not None and rows == columns and (keys == keys[..., :1, :]).all():
            yield keys.swapaxes(-1, -2) | _or_nothing(others, mask.hidden)


def _other_corner(mask: Mask) -> Iterator[BoolArray]:
    if mask.causal is not None:
        for offset in _offsets(mask.hidden):
            if offset != mask.offset:
                yield _corner(mask.hidden, offset) | _or_nothing(mask.rest, mask.hidden)


def _or_nothing(part: BoolArray | None, whole: BoolArray) -> BoolArray:
    return np.zeros_like(whole) if part is None else part


# --- numbers that are added at visible places (ALiBi) -----------------------------------------------------------------


def _bias(change: Callable[[Any], Any], graph: Graph, step: Step) -> Iterator[Swaps]:
    mask = _mask_of(graph, step)
    changed = change(mask.bias)
    if not np.array_equal(changed, mask.bias) and (changed.any() or mask.hidden.any()):
        yield _masked(step, mask.hidden, -math.inf, np.zeros_like(mask.hidden), changed)


def _heads_exchanged(bias: FloatArray) -> FloatArray:
    return bias[::-1] if bias.ndim == 3 else bias


MISTAKES = (
    MistakeKind("no-mask", 0, N_("You left the mask out."), _MASK, ("mask",), _left_out),
    MistakeKind("mask-as-zero", 3, N_("You set hidden scores to 0. But e^0 = 1, so hidden keys still get weight."), _MASK, ("mask",), partial(_set_to, 0.0)),
    MistakeKind("mask-tiny", 1, N_("You set hidden scores to a tiny number. It has to be hugely negative: −∞."), _MASK, ("mask",), partial(_set_to, 1e-9)),
    MistakeKind("mask-plus-infinity", 1, N_("You set hidden scores to +∞; that puts all weight on them. It has to be −∞."), _MASK, ("mask",), partial(_set_to, math.inf)),
    MistakeKind("mask-added-as-01", 2, N_("You added a matrix of 0 and 1. A mask that is added holds 0 and −∞."), _MASK, ("mask",), _added_as_01),
    MistakeKind("mask-inverted", 4, N_("You hid the keys that should be visible and showed the ones "
"that should be hidden."), _MASK, ("mask",), partial(_hiding, _inverted)),
    MistakeKind("mask-diagonal", 2, N_("You hid the diagonal too. A token may see itself."), _MASK, ("mask",), partial(_hiding, _diagonal)),
    MistakeKind("mask-other-triangle", 1, N_("You hid the past and left the future visible."), _MASK, ("mask",), partial(_hiding, _other_triangle)),
    MistakeKind("mask-query-rows", 3, N_("You laid the mask over queries; it belongs over keys."), _MASK, ("mask",), partial(_hiding, _query_rows)),
    MistakeKind("mask-other-corner", 5, N_("You started the causal triangle at the other corner."), _MASK, ("mask",), partial(_hiding, _other_corner)),
    MistakeKind("bias-left-out", 0, N_("You hid what has to be hidden, but left out the numbers that the mask adds to the other scores."), _BIAS, ("mask",), partial(_bias, np.zeros_like)),
    MistakeKind("bias-sign", 0, N_("You reversed the sign of the numbers that the mask adds."), _BIAS, ("mask",), partial(_bias, np.negative)),
    MistakeKind("bias-of-another-head", 0, N_("You gave the heads one another's numbers."), _BIAS, ("mask",), partial(_bias, _heads_exchanged)),
)  # fmt: skip
