"""Norms: other statistics than those of a row, another divisor, and the norm in another place of its sublayer.

Post-norm is LN(x + f(x)), pre-norm x + f(LN(x)). Each is a mistake where the other is asked for; so are
x + LN(f(x)) and LN(x) + f(LN(x)) for both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import TypeAlias

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Step, Swap, gradient_id, part_of
from attncli.core.matrix import Matrix
from attncli.core.message import N_
from attncli.core.record import Record
from attncli.mistakes.gradients import sum_of, without
from attncli.mistakes.mistake import (
    LINES,
    Made,
    MistakeKind,
    Swaps,
    Wording,
    and_back,
    backward_of,
    instead,
    passing,
    step_of,
    steps_of,
    together,
    value_of,
    with_operands,
)
from attncli.ops.elementwise import numeral
from attncli.ops.rows import DIVIDE, ROW_MEAN_SQUARE

_NORM = N_("Look again at the norm: minus the mean, over the root of the variance plus ε.")
_ROOT_MEAN_SQUARE = N_(
    "Look again at the norm: each {row} over the root of its mean square plus ε; no mean is taken away."
)

Axes: TypeAlias = tuple[int, ...]
_DOWN: Axes = (-2,)
_ALL: Axes = (-2, -1)


def source_of(graph: Graph, step_id: str) -> tuple[str, bool]:
    """What is normalised, and whether its mean was taken away: (X, true) for the centred step, (X, false) for X."""
    centred = step_of(graph, step_id, "centre")
    return (step_id, False) if centred is None else (centred.inputs[0], True)


def _sigma(graph: Graph, step: Step) -> Step | None:
    """The step of σ: itself, or what is divided by on the way forward."""
    return step if step.op.name == "root_eps" else step_of(graph, step.inputs[1], "root_eps")


# --- statistics of other lines: each line of theirs a line ------------------------------------------------------------


def _mean(xp: Arithmetic, a: Value, axes: Axes) -> Value:
    """The mean along some axes, which are kept with length 1."""
    return xp.divide(xp.sum(a, axes), numeral(xp, math.prod(a.shape[axis] for axis in axes)))


def _less_mean(xp: Arithmetic, a: Value, axes: Axes) -> Value:
    return xp.subtract(a, xp.round_step(_mean(xp, a, axes)))


def _statistic(xp: Arithmetic, a: Value, axes: Axes, squares: bool = False, centred: bool = False) -> Value:
    """The mean (of the squares) along other axes; one of the whole matrix stands once a row."""
    if centred:
        a = xp.round_step(_less_mean(xp, a, axes))
    value = _mean(xp, xp.multiply(a, a) if squares else a, axes)
    return value if axes == _DOWN else xp.repeat(value, a.shape[-2], -2)


def _normalised(xp: Arithmetic, a: Value, axes: Axes, centred: bool, eps: Matrix) -> Value:
    """The whole norm, along other axes or without the mean taken away."""
    moved = xp.round_step(_less_mean(xp, a, axes)) if centred else a
    variance = xp.round_step(_mean(xp, xp.multiply(moved, moved), axes))
    return xp.divide(moved, xp.round_step(_root(xp, variance, eps)))


def _over(axes: Axes, graph: Graph, step: Step) -> Iterator[Swaps]:
    """Mean and variance of other lines, told at any step of the norm."""
    line = step.inputs[0]
    source, centred = source_of(graph, line)
    if step.op.name in ("row_mean", "centre"):
        is_mean = step.op.name == "row_mean"
        here = instead(step, _statistic if is_mean else _less_mean, line, axes=axes)
        # Who has the mean of other lines has their variance too.
        for moved in list(steps_of(graph, "centre", using=step.id)) if is_mean else [step]:
            for variance in steps_of(graph, "row_mean_square", using=moved.id):
                yield together(here, instead(variance, _statistic, moved.id, axes=axes, squares=True))
        yield here
    elif step.op.name == "row_mean_square":
        if centred:
            yield instead(step, _statistic, source, axes=axes, squares=True, centred=True)
        yield instead(step, _statistic, line, axes=axes, squares=True)
    elif (root := _sigma(graph, step)) is not None:
        yield instead(step, _normalised, source, axes=axes, centred=centred, eps=root.params["eps"])


# --- another divisor --------------------------------------------------------------------------------------------------


def _of_sample(graph: Graph, step: Step) -> Iterator[Swaps]:
    if graph.shape(step.inputs[0])[-1] > 1:
        yield instead(step, _sample_variance, step.inputs[0])


def _sample_variance(xp: Arithmetic, a: Value) -> Value:
    return xp.divide(xp.sum(xp.multiply(a, a), -1), numeral(xp, a.shape[-1] - 1))


def _sample_share(xp: Arithmetic, a: Value, g: Value) -> Value:
    """2/(n − 1) on the way back too."""
    return xp.multiply(xp.multiply(xp.divide(numeral(xp, 2.0), numeral(xp, a.shape[-1] - 1)), a), g)


class Divisor(Record):
    """What somebody divides by in the place of σ.

    Parameters
    ----------
    value : (xp, variance or σ, ε) -> it
    slope : (xp, half of what arrives, variance, ε) -> the gradient through it; where σ is no root, of all that arrives
    is_by_eps : whether it differs from σ by the place of ε alone
    is_of_root : whether it is made of the σ that stands on the page
    is_root : whether half of what arrives comes back, as through a root
    """

    value: Callable[[Arithmetic, Value, Matrix], Value]
    slope: Callable[[Arithmetic, Value, Value, Matrix], Value]
    is_by_eps: bool = False
    is_of_root: bool = False
    is_root: bool = True


def _root(xp: Arithmetic, variance: Value, eps: Matrix) -> Value:
    """√(v + ε), as σ is the root of the variance."""
    return xp.sqrt(_plus_eps(xp, variance, eps))


def _plus_eps(xp: Arithmetic, variance: Value, eps: Matrix) -> Value:
    return xp.add(variance, xp.constant(eps))


def _bare_root(xp: Arithmetic, variance: Value, eps: Matrix) -> Value:
    return xp.sqrt(variance)


def _through_both(
    first: Callable[..., Value], second: Callable[..., Value]
) -> Callable[[Arithmetic, Value, Value, Matrix], Value]:
    """The slope of a root of a root r(s(v)) is 1/(2 r), times 1/(2 s)."""

    def slope(xp: Arithmetic, g: Value, variance: Value, eps: Matrix) -> Value:
        once = xp.round_step(first(xp, variance, eps))
        twice = xp.round_step(xp.divide(g, xp.round_step(second(xp, once, eps))))
        return xp.divide(twice, xp.multiply(numeral(xp, 2.0), once))

    return slope


def _squared(xp: Arithmetic, variance: Value, eps: Matrix) -> Value:
    moved = xp.round_step(_plus_eps(xp, variance, eps))
    return xp.multiply(moved, moved)


def _slope_of_square(xp: Arithmetic, g: Value, variance: Value, eps: Matrix) -> Value:
    return xp.multiply(g, xp.multiply(numeral(xp, 2.0), xp.round_step(_plus_eps(xp, variance, eps))))


_NOT_ROOTED = Divisor(_plus_eps, lambda xp, g, v, eps: g, is_root=False)
#: The slope of √v + ε is 1/(2√v).
_EPS_OUTSIDE = Divisor(
    lambda xp, v, eps: _plus_eps(xp, xp.round_step(xp.sqrt(v)), eps),
    lambda xp, g, v, eps: xp.divide(g, xp.round_step(xp.sqrt(v))),
    is_by_eps=True,
)
#: With ε under the second root alone; under both; under the first alone.
_ROOTED_TWICE = (
    Divisor(lambda xp, v, eps: _root(xp, xp.round_step(xp.sqrt(v)), eps), _through_both(_bare_root, _root)),
    Divisor(_root, _through_both(_root, _root), is_of_root=True),
    Divisor(_bare_root, _through_both(_root, _bare_root), is_of_root=True),
)
_SQUARED = Divisor(_squared, _slope_of_square, is_root=False)


def _for_sigma(xp: Arithmetic, variance: Value, *, divisor: Divisor, eps: Matrix) -> Value:
    return divisor.value(xp, xp.round_step(_root(xp, variance, eps)) if divisor.is_of_root else variance, eps)


def _divided(step: Step, root: Step, divisor: Divisor) -> dict[str, Swap]:
    """At a step that divides by σ, divided by something else."""

    def divided(xp: Arithmetic, a: Value, source: Value, *, divisor: Divisor, eps: Matrix) -> Value:
        return xp.divide(a, xp.round_step(divisor.value(xp, source, eps)))

    source = root.id if divisor.is_of_root else root.inputs[0]
    return instead(step, divided, step.inputs[0], source, divisor=divisor, eps=root.params["eps"])


def _divided_by(*divisors: Divisor) -> Made:
    """σ itself, or what is divided by it, with one of these divisors."""

    def made(graph: Graph, step: Step) -> Iterator[Swaps]:
        root = _sigma(graph, step)
        if root is None:
            return
        eps = root.params["eps"]
        for divisor in divisors:
            if divisor.is_by_eps and not float(eps.values):
                continue
            if root is step:
                yield instead(step, _for_sigma, root.inputs[0], divisor=divisor, eps=eps)
            else:
                yield _divided(step, root, divisor)

    return made


def _divided_alike(graph: Graph, step: Step, swap: Swaps) -> Swaps:
    """The gradient divided by the same number; and its slope, where the root is another one or none."""
    divisor, root = swap[step.id].params["divisor"], _sigma(graph, step)
    if root is None:
        return {}
    found = dict[str, Swap]()
    slope = backward_of(graph, root.inputs[0], root)
    if slope is not None and slope.op.name == "divide":
        through = partial(divisor.slope, eps=root.params["eps"])
        found |= instead(slope, through, slope.inputs[0], root.inputs[0])
        half = step_of(graph, slope.inputs[0], "scale")
        if not divisor.is_root and half is not None:
            found |= passing(half)
    if root is not step:  # σ itself was right, so that each division by it has to be told
        for back in steps_of(graph, "divide", using=root.id):
            if back.phase == "backward" and back.inputs[1] == root.id and back.id not in found:
                found |= _divided(back, root, divisor)
    return found


# --- the mean left in -------------------------------------------------------------------------------------------------


def _not_centred(graph: Graph, step: Step) -> Iterator[Swaps]:
    if step.op.name == "centre":
        yield passing(step)
        return
    source, centred = source_of(graph, step.inputs[0])
    if not centred:
        return
    if step.op.name == "row_mean_square":
        yield instead(step, ROW_MEAN_SQUARE.compute, source)
    elif (root := _sigma(graph, step)) is not None:
        yield instead(step, _normalised, source, axes=(-1,), centred=False, eps=root.params["eps"])
        yield instead(step, DIVIDE.compute, source, step.inputs[1])


def _no_mean_back(graph: Graph, step: Step, swap: Swaps) -> Swaps:
    """No path through the mean on the way back."""
    joined = backward_of(graph, step.inputs[0]) if step.op.name == "centre" else None
    return without(joined, [path.id for path in steps_of(graph, "share_mean")])


# --- the way back through a norm --------------------------------------------------------------------------------------


def _paths_missing(graph: Graph, step: Step) -> Iterator[Swaps]:
    """Mean and variance taken for constants: only G/σ comes back through the norm."""
    statistics = {path.id for path in steps_of(graph, "share_mean", "share_square")}
    paths = [path for path in step.inputs if path not in statistics]
    if len(paths) == len(step.inputs):
        return
    value = value_of(graph, step.id)
    for norm in steps_of(graph, "standardise"):
        through = norm.inputs[0]
        centred = graph.steps.get(through)
        if through != value and (centred is None or value not in centred.inputs):
            continue
        via = norm.id if through == value else through
        straight = f"{step.id}_{via.rpartition('.')[2]}"
        others = [path for path in paths if path != straight]
        if straight in paths and via == norm.id:  # from what was written of it
            yield sum_of(step, (straight, *others))
        yield instead(step, _straight_through, gradient_id(norm.id), norm.inputs[1], *others)


def _straight_through(xp: Arithmetic, arriving: Value, divisor: Value, *others: Value) -> Value:
    straight = xp.divide(arriving, divisor)
    return reduce(xp.add, others, xp.round_step(straight) if others else straight)


# --- the norm in another place of its sublayer ------------------------------------------------------------------------


def _placed(graph: Graph, step: Step) -> Iterator[Swaps]:
    """Told at the residual, and at the steps that its sublayer begins with: their rows are normalised, or not."""
    if step.op.name == "residual":
        residuals = [step]
    elif step.phase == "forward" and step.inputs[1].startswith(f"{part_of(step.inputs[1])}W_"):
        residuals = [other for other in steps_of(graph, "residual") if part_of(other.id) == part_of(step.id)]
    else:
        return
    for residual in residuals:
        yield from (swap for swap in _misplaced(graph, residual) if step.id in swap)


class Norm:
    """The steps of one norm, which can be worked out for other rows."""

    def __init__(self, steps: Sequence[Step], source: str) -> None:
        self.steps, self.source, self.last = steps, source, steps[-1]
        own = {source, *(step.id for step in steps)}
        self.others = tuple(dict.fromkeys(operand for step in steps for operand in step.inputs if operand not in own))

    def of(self, xp: Arithmetic, rows: Value, others: Sequence[Value]) -> Value:
        """The norm of `rows`, line by line, with γ and β in `others`."""
        values: dict[str, Value] = {self.source: rows, **dict(zip(self.others, others, strict=True))}
        for step in self.steps:
            operands = (values[operand] for operand in step.inputs)
            values[step.id] = xp.round_step(step.op.compute(xp, *operands, **step.params))
        return values[self.last.id]


def _norm_of(graph: Graph, source: str) -> Norm | None:
    """The norm that is taken of `source`."""
    # It begins with the mean of LayerNorm, or with the mean square of RMSNorm.
    for first in steps_of(graph, "row_mean", "row_mean_square", using=source):
        part = part_of(first.id)
        return Norm(_forward_in(graph, part), source) if part else None
    return None


def _forward_in(graph: Graph, part: str) -> list[Step]:
    return [step for step in graph.steps.values() if step.phase == "forward" and part_of(step.id) == part]


def _misplaced(graph: Graph, step: Step) -> Iterator[Swaps]:
    """The other placements of the norm around the residual `step` = x + f."""
    x, f = step.inputs
    beside = [other for other in _forward_in(graph, part_of(step.id)) if other is not step]
    behind, before = _norm_of(graph, step.id), _norm_of(graph, x)
    if before is not None:  # pre-norm: that a norm follows too belongs to the next sublayer
        norm, normed = before, before.last.id
        bare = together(*(_with(other, normed, x) for other in beside if normed in other.inputs))
        yield {**bare, **instead(step, partial(_norm_of_sum, norm), x, f, *norm.others)}  # LN(x + f(x))
        yield {**bare, **instead(step, partial(_plus_norm, norm), x, f, *norm.others)}  # x + LN(f(x))
        yield with_operands(step, step.op, (normed, f), step.params)  # LN(x) + f(LN(x))
    elif behind is not None:
        norm, last = behind, behind.last
        through_norm = together(*(_with_norm(other, x, norm) for other in beside if x in other.inputs))
        yield {**through_norm, **passing(last, step.id)}  # x + f(LN(x))
        yield {**passing(step, f), **instead(last, partial(_plus_norm, norm), x, f, *norm.others)}  # x + LN(f(x))
        added = instead(step, partial(_norm_plus, norm), x, f, *norm.others)
        yield {**through_norm, **added, **passing(last, step.id)}  # LN(x) + f(LN(x))


def _norm_of_sum(norm: Norm, xp: Arithmetic, x: Value, f: Value, *others: Value) -> Value:
    return norm.of(xp, xp.round_step(xp.add(x, f)), others)


def _plus_norm(norm: Norm, xp: Arithmetic, x: Value, f: Value, *others: Value) -> Value:
    return xp.add(x, norm.of(xp, f, others))


def _norm_plus(norm: Norm, xp: Arithmetic, x: Value, f: Value, *others: Value) -> Value:
    return xp.add(norm.of(xp, x, others), f)


def _with(step: Step, right: str, wrong: str) -> dict[str, Swap]:
    """The step with another operand in the place of one."""
    operands = [wrong if source == right else source for source in step.inputs]
    return with_operands(step, step.op, operands, step.params)


def _with_norm(step: Step, x: str, norm: Norm) -> dict[str, Swap]:
    """The step with the norm of x where x belongs."""
    count = len(step.inputs)

    def normed(xp: Arithmetic, *values: Value) -> Value:
        own, others = values[:count], values[count:]
        operands = [
            norm.of(xp, value, others) if source == x else value for source, value in zip(step.inputs, own, strict=True)
        ]
        return step.op.compute(xp, *operands, **step.params)

    return instead(step, normed, *step.inputs, *norm.others)


MISTAKES = (
    MistakeKind("sample-variance", 5, N_("You divided by n − 1. LayerNorm uses the population variance: divide by n."), _NORM, ("row_mean_square",), _of_sample, and_back(lambda back: instead(back, _sample_share, *back.inputs), "share_square"), {"rms": Wording(N_("You divided by n − 1. RMS normalisation takes the mean of the squares: divide by n."), _ROOT_MEAN_SQUARE)}),
    MistakeKind("eps-outside-root", 5, N_("You added ε after the root. It stands under the root, beside the variance."), _NORM, ("root_eps", "standardise"), _divided_by(_EPS_OUTSIDE), _divided_alike, {"rms": Wording(N_("You added ε after the root. It stands under the root, beside the mean square."), _ROOT_MEAN_SQUARE)}),
    MistakeKind("normalised-over-tokens", 4, N_("You normalised down each {column}. A norm works along each {row}: a token by itself."), LINES, ("row_mean", "centre", "row_mean_square", "standardise"), partial(_over, _DOWN)),
    MistakeKind("normalised-over-all", 1, N_("You took one mean and one variance of the whole matrix. A norm works along each {row}: a token by itself."), N_("Look again at which numbers share a mean: those of one token."), ("row_mean", "centre", "row_mean_square", "standardise"), partial(_over, _ALL)),
    MistakeKind("not-square-rooted", 1, N_("You divided by the variance. The norm divides by its square root."), _NORM, ("root_eps", "standardise"), _divided_by(_NOT_ROOTED), _divided_alike, {"std": Wording(N_("You took the variance itself. σ is its square root."), _NORM), "rms": Wording(N_("You took the mean square itself. RMS normalisation divides by its root."), _ROOT_MEAN_SQUARE)}),
    MistakeKind("rooted-twice", 1, N_("You took the root twice: σ is a root already."), _NORM, ("root_eps", "standardise"), _divided_by(*_ROOTED_TWICE), _divided_alike, {"rms": Wording(N_("You took the root twice: the root mean square is a root already."), _ROOT_MEAN_SQUARE)}),
    MistakeKind("variance-squared", 1, N_("You squared the variance. It is a mean of squares already, and the norm divides by its root."), _NORM, ("root_eps", "standardise"), _divided_by(_SQUARED), _divided_alike),
    MistakeKind("not-centred", 1, N_("You did not take the mean away; that is the rule of RMS normalisation."), _NORM, ("centre", "row_mean_square", "standardise"), _not_centred, _no_mean_back),
    MistakeKind("norm-paths-missing", 2, N_("You treated the mean and the variance as constants. They move with every entry of their {row}, so they send gradients back too."), N_("Look again at every place where X is used in the norm: directly, in the mean, and in the variance."), ("sum_paths",), _paths_missing),
    MistakeKind("norm-placement", 3, N_("You put the norm in a different place in the sublayer."), N_("Look again at where the norm stands: behind the sum, LN(x + f(x)), or before the sublayer, x + f(LN(x))?"), ("residual", "product", "affine"), _placed, rank=1),
)  # fmt: skip
