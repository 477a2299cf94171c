"""Softmax over the wrong lines, without its parts, twice, or before the mask."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Step
from attncli.core.message import N_
from attncli.mistakes.entry import LINES, Entry, Swaps, instead, number
from attncli.ops.rows import SUBTRACT


def _source(step: Step) -> str | None:
    """What softmax is taken of, where a step is the last line of one."""
    return None if step.composite is None else step.composite.source


# --- its calculations, each line of theirs a line ---------------------------------------------------------------------


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
    return xp.where(hidden, number(xp, 0.0), share) if hidden.any() else share


def _softmax(xp: Arithmetic, scores: Value, axes: tuple[int, ...], shifted: bool) -> Value:
    return _shares(xp, _power(xp, scores, axes if shifted else ()), scores, axes)


def _over(axes: tuple[int, ...], graph: Graph, step: Step) -> Iterator[Swaps]:
    """Softmax over other lines: of the exponentials that stand there, or of the scores, their maximum subtracted or not."""
    source = _source(step)
    if source is None:
        return
    yield instead(step, lambda xp, e, s: _shares(xp, e, s, axes), step.inputs[0], source)
    for shifted in (False, True):
        yield instead(step, partial(_softmax, axes=axes, shifted=shifted), source)


# --- what people do ---------------------------------------------------------------------------------------------------


def _column_sums(graph: Graph, step: Step) -> Iterator[Swaps]:
    if _source(step) is not None:
        yield instead(step, lambda xp, e, z: xp.divide(e, xp.swapaxes(z, -1, -2)), *step.inputs[:2])


def _mask_after(graph: Graph, step: Step) -> Iterator[Swaps]:
    masked = graph.steps.get(_source(step) or "")
    if masked is None or masked.op.name != "mask":
        return
    for shifted in (False, True):

        def erased(xp: Arithmetic, scores: Value, mask: Value, shifted: bool = shifted) -> Value:
            weights = xp.round_step(_softmax(xp, scores, (-1,), shifted))
            return xp.where(xp.hidden(mask), number(xp, 0.0), weights)

        yield instead(step, erased, *masked.inputs)


def _not_normalised(graph: Graph, step: Step) -> Iterator[Swaps]:
    source = _source(step)
    if source is not None:
        yield instead(step, lambda xp, e: e, step.inputs[0])
        yield instead(step, lambda xp, s: xp.exp(s), source)


def _without_exponential(graph: Graph, step: Step) -> Iterator[Swaps]:
    source = _source(step)
    if source is not None:
        yield instead(step, _plain_shares, source)


def _plain_shares(xp: Arithmetic, scores: Value) -> Value:
    visible = xp.where(xp.hidden(scores), number(xp, 0.0), scores)
    return xp.divide(visible, xp.round_step(xp.sum(visible, -1)))


def _twice(graph: Graph, step: Step) -> Iterator[Swaps]:
    source = _source(step)
    if source is None:
        return
    for shifted in (False, True):

        def again(xp: Arithmetic, e: Value, z: Value, shifted: bool = shifted) -> Value:
            return _softmax(xp, xp.round_step(xp.divide(e, z)), (-1,), shifted)

        yield instead(step, again, *step.inputs[:2])
    yield instead(step, lambda xp, s: _softmax(xp, xp.round_step(_softmax(xp, s, (-1,), False)), (-1,), False), source)


def _heads_averaged(graph: Graph, step: Step) -> Iterator[Swaps]:
    if _source(step) is None or len(graph.shape(step.id)) < 3:
        return
    heads = graph.shape(step.id)[-3]
    if heads > 1:

        def averaged(xp: Arithmetic, e: Value, z: Value) -> Value:
            return xp.divide(xp.sum(xp.round_step(xp.divide(e, z)), -3), number(xp, heads))

        # Written for every head, or as the one matrix that it is.
        yield instead(step, lambda xp, e, z: xp.repeat(averaged(xp, e, z), heads, -3), *step.inputs[:2])
        yield instead(step, lambda xp, e, z: _one_matrix(xp, averaged(xp, e, z)), *step.inputs[:2])


def _one_matrix(xp: Arithmetic, a: Value) -> Value:
    """Without the head axis, whose length is 1."""
    return xp.reshape(a, (*a.shape[:-3], *a.shape[-2:]))


def _negated(graph: Graph, step: Step) -> Iterator[Swaps]:
    shifted = graph.steps.get(step.inputs[0])
    if step.phase == "backward":
        return
    yield instead(step, _power_of_minus, step.inputs[0])
    if shifted is not None and shifted.op.name == "subtract":
        yield instead(step, _power_of_minus, shifted.inputs[0])


def _power_of_minus(xp: Arithmetic, scores: Value) -> Value:
    """e^−x; what is hidden stays 0."""
    hidden = xp.hidden(scores)
    power = xp.exp(xp.subtract(number(xp, 0.0), scores))
    return xp.where(hidden, number(xp, 0.0), power) if hidden.any() else power


def _logits_summed(graph: Graph, step: Step) -> Iterator[Swaps]:
    power = graph.steps.get(step.inputs[0])
    if power is None or power.op.name != "exp":
        return
    yield instead(step, _sum_of_visible, power.inputs[0])
    shifted = graph.steps.get(power.inputs[0])
    if shifted is not None and shifted.op.name == "subtract":
        yield instead(step, _sum_of_visible, shifted.inputs[0])


def _sum_of_visible(xp: Arithmetic, logits: Value) -> Value:
    return xp.sum(xp.where(xp.hidden(logits), number(xp, 0.0), logits), -1)


ENTRIES = (
    Entry("softmax-over-columns", 12, N_("You normalised down each {column}. Softmax runs along each {row}: a query shares its attention among the keys."), LINES, ("divide",), partial(_over, (-2,))),
    Entry("softmax-over-all", 2, N_("You normalised over the whole matrix. Softmax runs along each {row} by itself."), LINES, ("divide",), partial(_over, (-2, -1))),
    Entry("column-sums-broadcast", 1, N_("You divided {columns} by the sums of {rows} (in NumPy: keepdims was missing)."), LINES, ("divide",), _column_sums),
    Entry("mask-after-softmax", 3, N_("You took the softmax first and set hidden weights to 0 afterwards, so the {rows} no longer add up to 1."), N_("Look again at the order: mask first, then softmax."), ("divide",), _mask_after),
    Entry("no-normalisation", 0, N_("You stopped at e^x and did not divide by the sum of the {row}."), N_("Look again at the last line of softmax."), ("divide",), _not_normalised),
    Entry("no-exponential", 0, N_("You divided the scores by their sum, without e^x."), N_("Look again at the middle of softmax: e^x first, then divide."), ("divide",), _without_exponential),
    Entry("softmax-twice", 1, N_("You applied softmax to weights that had been through softmax already."), N_("Look again at how often softmax is applied: once."), ("divide",), _twice),
    Entry("heads-averaged", 1, N_("You took the mean of the heads' weights. Each head keeps weights of its own and applies them to its own values."), N_("Look again at how many weight matrices there are: one for each head."), ("divide",), _heads_averaged),
    Entry("exponent-negated", 1, N_("You took e^−x. The larger the score, the larger e^x must be."), N_("Look again at the sign of the exponent: what fits best gets the most weight."), ("exp",), _negated),
    Entry("sum-of-logits", 0, N_("You added up the scores, not their exponentials."), N_("Look again at what is added up: e^x, after the maximum was subtracted."), ("row_sum",), _logits_summed),
)  # fmt: skip
