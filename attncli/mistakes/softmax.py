"""Softmax over the wrong lines, without its parts, twice, or before the mask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Step
from attncli.core.message import N_
from attncli.mistakes.mistake import LINES, Made, MistakeKind, Swaps, instead, passing, ways
from attncli.ops.elementwise import numeral
from attncli.ops.rows import SUBTRACT


def _source(graph: Graph, step: Step) -> tuple[str] | None:
    """What softmax is taken of, where a step is the last line of one."""
    return None if step.composite is None else (step.composite.source,)


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
    return xp.where(hidden, numeral(xp, 0.0), share) if hidden.any() else share


def _softmax(xp: Arithmetic, scores: Value, axes: tuple[int, ...], shifted: bool) -> Value:
    return _shares(xp, _power(xp, scores, axes if shifted else ()), scores, axes)


def _over(*axes: int) -> Made:
    """Softmax over other lines: of the exponentials that stand there, or of the scores, their maximum subtracted or not."""

    def of_powers(step: Step, scores: str) -> Swaps:
        return instead(step, lambda xp, e, s: _shares(xp, e, s, axes), step.inputs[0], scores)

    def of_scores(shifted: bool) -> Callable[[Step, str], Swaps]:
        return lambda step, scores: instead(step, partial(_softmax, axes=axes, shifted=shifted), scores)

    return ways(_source, of_powers, of_scores(False), of_scores(True))


# --- what people do ---------------------------------------------------------------------------------------------------


def _column_sums(step: Step, scores: str) -> Swaps:
    return instead(step, lambda xp, e, z: xp.divide(e, xp.swapaxes(z, -1, -2)), *step.inputs[:2])


def _mask_after(graph: Graph, step: Step) -> Iterator[Swaps]:
    masked = graph.steps.get(step.composite.source) if step.composite is not None else None
    if masked is None or masked.op.name != "mask":
        return
    for shifted in (False, True):

        def erased(xp: Arithmetic, scores: Value, mask: Value, shifted: bool = shifted) -> Value:
            weights = xp.round_step(_softmax(xp, scores, (-1,), shifted))
            return xp.where(xp.hidden(mask), numeral(xp, 0.0), weights)

        yield instead(step, erased, *masked.inputs)


def _powers(step: Step, scores: str) -> Swaps:
    return instead(step, lambda xp, s: xp.exp(s), scores)


def _without_exponential(step: Step, scores: str) -> Swaps:
    def shares(xp: Arithmetic, scores: Value) -> Value:
        visible = _visible(xp, scores)
        return xp.divide(visible, xp.round_step(xp.sum(visible, -1)))

    return instead(step, shares, scores)


def _visible(xp: Arithmetic, scores: Value) -> Value:
    """The scores, 0 where they are hidden."""
    return xp.where(xp.hidden(scores), numeral(xp, 0.0), scores)


def _twice(shifted: bool) -> Callable[[Step, str], Swaps]:
    """Softmax of the quotients that stand there."""

    def again(xp: Arithmetic, e: Value, z: Value) -> Value:
        return _softmax(xp, xp.round_step(xp.divide(e, z)), (-1,), shifted)

    return lambda step, scores: instead(step, again, *step.inputs[:2])


def _twice_of_scores(step: Step, scores: str) -> Swaps:
    def twice(xp: Arithmetic, s: Value) -> Value:
        return _softmax(xp, xp.round_step(_softmax(xp, s, (-1,), False)), (-1,), False)

    return instead(step, twice, scores)


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
    step = graph.steps.get(step_id)
    return [step_id, step.inputs[0]] if step is not None and step.op.name == "subtract" else [step_id]


def _negated(graph: Graph, step: Step) -> Iterator[Swaps]:
    if step.phase == "forward":
        yield from (instead(step, _power_of_minus, scores) for scores in _shifted_by(graph, step.inputs[0]))


def _power_of_minus(xp: Arithmetic, scores: Value) -> Value:
    """e^−x; what is hidden stays 0."""
    hidden = xp.hidden(scores)
    power = xp.exp(xp.subtract(numeral(xp, 0.0), scores))
    return xp.where(hidden, numeral(xp, 0.0), power) if hidden.any() else power


def _logits_summed(graph: Graph, step: Step) -> Iterator[Swaps]:
    power = graph.steps.get(step.inputs[0])
    if power is not None and power.op.name == "exp":
        yield instead(step, lambda xp, logits: xp.sum(_visible(xp, logits), -1), power.inputs[0])


MISTAKES = (
    MistakeKind("softmax-over-columns", 12, N_("You normalised down each {column}. Softmax runs along each {row}: a query shares its attention among the keys."), LINES, ("divide",), _over(-2)),
    MistakeKind("softmax-over-all", 2, N_("You normalised over the whole matrix. Softmax runs along each {row} by itself."), LINES, ("divide",), _over(-2, -1)),
    MistakeKind("column-sums-broadcast", 1, N_("You divided {columns} by the sums of {rows} (in NumPy: keepdims was missing)."), LINES, ("divide",), ways(_source, _column_sums)),
    MistakeKind("mask-after-softmax", 3, N_("You took the softmax first and set hidden weights to 0 afterwards, so the {rows} no longer add up to 1."), N_("Look again at the order: mask first, then softmax."), ("divide",), _mask_after),
    MistakeKind("no-normalisation", 0, N_("You stopped at e^x and did not divide by the sum of the {row}."), N_("Look again at the last line of softmax."), ("divide",), ways(_source, lambda step, scores: passing(step), _powers)),
    MistakeKind("no-exponential", 0, N_("You divided the scores by their sum, without e^x."), N_("Look again at the middle of softmax: e^x first, then divide."), ("divide",), ways(_source, _without_exponential)),
    MistakeKind("softmax-twice", 1, N_("You applied softmax to weights that had been through softmax already."), N_("Look again at how often softmax is applied: once."), ("divide",), ways(_source, _twice(False), _twice(True), _twice_of_scores)),
    MistakeKind("heads-averaged", 1, N_("You took the mean of the heads' weights. Each head keeps weights of its own and applies them to its own values."), N_("Look again at how many weight matrices there are: one for each head."), ("divide",), _heads_averaged),
    MistakeKind("exponent-negated", 1, N_("You took e^−x. The larger the score, the larger e^x must be."), N_("Look again at the sign of the exponent: what fits best gets the most weight."), ("exp",), _negated),
    MistakeKind("sum-of-logits", 0, N_("You added up the scores, not their exponentials."), N_("Look again at what is added up: e^x, after the maximum was subtracted."), ("row_sum",), _logits_summed),
)  # fmt: skip
