"""Between scores and weights: another number in the hidden places, or other places hidden; softmax over the wrong lines,
without its parts, twice, or before the mask.

A mask may stand over another, causal over padding: then each of the two has its own mistakes, with the other one right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Step, Swap
from attncli.core.matrix import BoolArray, FloatArray, as_matrix
from attncli.core.message import N_
from attncli.core.record import Record
from attncli.mistakes.mistake import (
    LINES,
    Made,
    MistakeKind,
    Swaps,
    instead,
    passing,
    source_of_softmax,
    step_of,
    together,
    ways,
)
from attncli.ops.elementwise import EXP, numeral
from attncli.ops.rows import SUBTRACT

_MASK = N_("Look again at the mask: which places are hidden, and what number hides them.")
_BIAS = N_(
    "Look again at the numbers that the mask adds: each head has its own, and the farther away a key is, the more it loses."
)


# --- what a mask does -------------------------------------------------------------------------------------------------


class Mask(Record):
    """What a mask does, in parts.

    Parameters
    ----------
    causal : what one may not see because it comes later
    offset : of the diagonal that the triangle begins behind
    rest : what is hidden for another reason, whole columns where keys are padding
    bias : what is added to the visible scores
    """

    hidden: BoolArray
    causal: BoolArray
    offset: int
    rest: BoolArray
    bias: FloatArray

    def parts(self) -> Iterator[tuple[BoolArray, BoolArray]]:
        """Each part of what is hidden, with what the others hide; the whole first."""
        yield self.hidden, np.zeros_like(self.hidden)
        if self.causal.any() and self.rest.any():
            yield self.causal, self.rest
            yield self.rest, self.causal


#: One way to hide other places: (mask) -> what is hidden instead.
Places: TypeAlias = Callable[[Mask], Iterator[BoolArray]]


def _mask_of(graph: Graph, step: Step) -> Mask:
    added = graph.inputs[step.inputs[1]].matrix.values
    hidden = np.isneginf(added)
    bias = np.where(hidden, 0.0, added)
    corners = {offset: _corner(hidden, offset) for offset in _offsets(hidden)}
    fitting = {offset: corner for offset, corner in corners.items() if (hidden | ~corner).all()}
    offset = max(fitting, key=lambda offset: np.count_nonzero(fitting[offset]), default=0)
    causal = fitting.get(offset, np.zeros_like(hidden))
    rest = hidden & ~causal
    if causal.any() and rest.any():
        # A key that nobody may see is hidden for all, also where it comes later anyway.
        rest = rest | hidden.all(-2, keepdims=True)
    return Mask(hidden, causal, offset, rest, bias)


def _offsets(hidden: BoolArray) -> tuple[int, ...]:
    """Where the diagonal of a causal mask may lie: at the first token, or at the last."""
    rows, columns = hidden.shape[-2:]
    return (0, columns - rows) if rows != columns else (0,)


def _corner(hidden: BoolArray, offset: int) -> BoolArray:
    """What comes later, seen from the diagonal of this offset."""
    return np.broadcast_to(np.triu(np.ones(hidden.shape[-2:], dtype=np.bool_), 1 + offset), hidden.shape)


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
    last = [other for other in graph.steps.values() if source_of_softmax(graph, other.id) == step.id]
    return together(*(instead(one, _shares_or_nothing, *one.inputs[:2], step.id) for one in last))


def _shares_or_nothing(xp: Arithmetic, power: Value, total: Value, scores: Value) -> Value:
    return xp.where(xp.hidden(scores), numeral(xp, 0.0), xp.divide(power, total))


def _inverted(mask: Mask) -> Iterator[BoolArray]:
    for hidden, others in mask.parts():
        yield ~hidden | others


def _diagonal(mask: Mask) -> Iterator[BoolArray]:
    if mask.causal.any():
        rows, columns = mask.hidden.shape[-2:]
        yield mask.hidden | np.eye(rows, columns, mask.offset, dtype=np.bool_)


def _other_triangle(mask: Mask) -> Iterator[BoolArray]:
    if mask.causal.any():
        yield np.tril(np.ones_like(mask.hidden), mask.offset - 1) | mask.rest


def _query_rows(mask: Mask) -> Iterator[BoolArray]:
    """What belongs over key columns laid over the query rows of the same tokens."""
    rows, columns = mask.hidden.shape[-2:]
    # What hides the last key from all hides what comes later, too: it need not be a triangle.
    for keys, others in ((mask.hidden, np.zeros_like(mask.hidden)), (mask.rest, mask.causal)):
        if rows == columns and (keys == keys[..., :1, :]).all():
            yield keys.swapaxes(-1, -2) | others


def _other_corner(mask: Mask) -> Iterator[BoolArray]:
    for offset in _offsets(mask.hidden) if mask.causal.any() else ():
        if offset != mask.offset:
            yield _corner(mask.hidden, offset) | mask.rest


# --- numbers that are added at visible places (ALiBi) -----------------------------------------------------------------


def _bias(change: Callable[[FloatArray], FloatArray], graph: Graph, step: Step) -> Iterator[Swaps]:
    mask = _mask_of(graph, step)
    changed = change(mask.bias)
    if not np.array_equal(changed, mask.bias) and (changed.any() or mask.hidden.any()):
        yield _masked(step, mask.hidden, -math.inf, np.zeros_like(mask.hidden), changed)


def _heads_exchanged(bias: FloatArray) -> FloatArray:
    return bias[::-1] if bias.ndim == 3 else bias


# --- softmax: each line of its calculations a line ----------------------------------------------------------------------


def _lines(graph: Graph, step: Step) -> tuple[str, ...] | None:
    """For `ways`, at the last line of a softmax: the powers e, their sums z, and the scores s that it is taken of."""
    scores = source_of_softmax(graph, step.id)
    return None if scores is None else (*step.inputs[:2], scores)


def _from(operands: str, compute: Callable[..., Value], **params: object) -> Callable[..., Swaps]:
    """For `ways`: calculated so from some of e, z and s."""
    return lambda step, *lines: instead(step, compute, *(lines["ezs".index(one)] for one in operands), **params)


def _power(xp: Arithmetic, scores: Value, axes: tuple[int, ...]) -> Value:
    """e^x after the largest of each line was subtracted; over no axes, e^x of the scores as they are."""
    if axes:
        top = scores
        for axis in axes:
            top = xp.max(top, axis)
        scores = xp.round_step(SUBTRACT.compute(xp, scores, top))
    return xp.round_step(xp.exp(scores))


def _shares(xp: Arithmetic, power: Value, scores: Value, axes: tuple[int, ...]) -> Value:
    """Each entry as a share of its line; a hidden one is 0, also in a line where nothing is visible."""
    share = xp.divide(power, xp.round_step(xp.sum(power, axes)))
    hidden = xp.hidden(scores)
    return xp.where(hidden, numeral(xp, 0.0), share) if hidden.any() else share


def _softmax(xp: Arithmetic, scores: Value, axes: tuple[int, ...], shifted: bool) -> Value:
    return _shares(xp, _power(xp, scores, axes if shifted else ()), scores, axes)


def _over(*axes: int) -> Made:
    """Softmax over other lines: of the exponentials that stand there, or of the scores, their maximum subtracted or not."""
    of_scores = (_from("s", _softmax, axes=axes, shifted=shifted) for shifted in (False, True))
    return ways(_lines, _from("es", _shares, axes=axes), *of_scores)


def _over_column_sums(xp: Arithmetic, e: Value, z: Value) -> Value:
    return xp.divide(e, xp.swapaxes(z, -1, -2))


def _mask_after(graph: Graph, step: Step) -> Iterator[Swaps]:
    masked = step_of(graph, source_of_softmax(graph, step.id), "mask")
    if masked is not None:
        for shifted in (False, True):
            yield instead(step, _erased, *masked.inputs, shifted=shifted)


def _erased(xp: Arithmetic, scores: Value, mask: Value, shifted: bool) -> Value:
    """Softmax first, and then 0 where the mask hides."""
    weights = xp.round_step(_softmax(xp, scores, (-1,), shifted))
    return xp.where(xp.hidden(mask), numeral(xp, 0.0), weights)


def _without_exponential(xp: Arithmetic, scores: Value) -> Value:
    visible = _visible(xp, scores)
    return xp.divide(visible, xp.round_step(xp.sum(visible, -1)))


def _visible(xp: Arithmetic, scores: Value) -> Value:
    """The scores, 0 where they are hidden."""
    return xp.where(xp.hidden(scores), numeral(xp, 0.0), scores)


def _again(xp: Arithmetic, e: Value, z: Value, shifted: bool) -> Value:
    """Softmax of the quotients that stand there."""
    return _softmax(xp, xp.round_step(xp.divide(e, z)), (-1,), shifted)


def _twice(xp: Arithmetic, scores: Value) -> Value:
    return _softmax(xp, xp.round_step(_softmax(xp, scores, (-1,), False)), (-1,), False)


def _heads_averaged(graph: Graph, step: Step) -> Iterator[Swaps]:
    heads = graph.shape(step.id)[0] if len(graph.shape(step.id)) > 2 else 1
    if step.composite is None or heads == 1:
        return

    def averaged(xp: Arithmetic, e: Value, z: Value) -> Value:
        return xp.divide(xp.sum(xp.round_step(xp.divide(e, z)), -3), numeral(xp, heads))

    def one_matrix(xp: Arithmetic, e: Value, z: Value) -> Value:
        mean = averaged(xp, e, z)
        return xp.reshape(mean, (*mean.shape[:-3], *mean.shape[-2:]))

    # Written for every head, or as the one matrix that it is.
    yield instead(step, lambda xp, e, z: xp.repeat(averaged(xp, e, z), heads, -3), *step.inputs[:2])
    yield instead(step, one_matrix, *step.inputs[:2])


def _shifted_by(graph: Graph, step_id: str) -> list[str]:
    """A line, and what its maximum was taken away from where it is such a difference."""
    step = step_of(graph, step_id, "subtract")
    return [step_id] if step is None else [step_id, step.inputs[0]]


def _negated(graph: Graph, step: Step) -> Iterator[Swaps]:
    if step.phase == "forward":
        yield from (instead(step, _power_of_minus, scores) for scores in _shifted_by(graph, step.inputs[0]))


def _power_of_minus(xp: Arithmetic, scores: Value) -> Value:
    """e^−x; what is hidden stays 0."""
    hidden = xp.hidden(scores)
    power = xp.exp(xp.subtract(numeral(xp, 0.0), scores))
    return xp.where(hidden, numeral(xp, 0.0), power) if hidden.any() else power


def _logits_summed(graph: Graph, step: Step) -> Iterator[Swaps]:
    power = step_of(graph, step.inputs[0], "exp")
    if power is not None:
        yield instead(step, lambda xp, logits: xp.sum(_visible(xp, logits), -1), power.inputs[0])


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
    MistakeKind("softmax-over-columns", 12, N_("You normalised down each {column}. Softmax runs along each {row}: a query shares its attention among the keys."), LINES, ("divide",), _over(-2)),
    MistakeKind("softmax-over-all", 2, N_("You normalised over the whole matrix. Softmax runs along each {row} by itself."), LINES, ("divide",), _over(-2, -1)),
    MistakeKind("column-sums-broadcast", 1, N_("You divided {columns} by the sums of {rows} (in NumPy: keepdims was missing)."), LINES, ("divide",), ways(_lines, _from("ez", _over_column_sums))),
    MistakeKind("mask-after-softmax", 3, N_("You took the softmax first and set hidden weights to 0 afterwards, so the {rows} no longer add up to 1."), N_("Look again at the order: mask first, then softmax."), ("divide",), _mask_after),
    MistakeKind("no-normalisation", 0, N_("You stopped at e^x and did not divide by the sum of the {row}."), N_("Look again at the last line of softmax."), ("divide",), ways(_lines, lambda step, *lines: passing(step), _from("s", EXP.compute))),
    MistakeKind("no-exponential", 0, N_("You divided the scores by their sum, without e^x."), N_("Look again at the middle of softmax: e^x first, then divide."), ("divide",), ways(_lines, _from("s", _without_exponential))),
    MistakeKind("softmax-twice", 1, N_("You applied softmax to weights that had been through softmax already."), N_("Look again at how often softmax is applied: once."), ("divide",), ways(_lines, _from("ez", _again, shifted=False), _from("ez", _again, shifted=True), _from("s", _twice))),
    MistakeKind("heads-averaged", 1, N_("You took the mean of the heads' weights. Each head keeps weights of its own and applies them to its own values."), N_("Look again at how many weight matrices there are: one for each head."), ("divide",), _heads_averaged),
    MistakeKind("exponent-negated", 1, N_("You took e^−x. The larger the score, the larger e^x must be."), N_("Look again at the sign of the exponent: what fits best gets the most weight."), ("exp",), _negated),
    MistakeKind("sum-of-logits", 0, N_("You added up the scores, not their exponentials."), N_("Look again at what is added up: e^x, after the maximum was subtracted."), ("row_sum",), _logits_summed),
)  # fmt: skip
