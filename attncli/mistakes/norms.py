"""Other statistics than those of a row, another divisor, and the norm in another place of a sublayer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Step, Swap, gradient_id
from attncli.core.matrix import Matrix
from attncli.core.message import N_
from attncli.core.record import Record
from attncli.mistakes.gradients import straight_through, sum_of
from attncli.mistakes.mistake import (
    LINES,
    Made,
    MistakeKind,
    Swaps,
    Wording,
    backward_of,
    instead,
    passing,
    steps_of,
    together,
    value_of,
)
from attncli.ops.elementwise import numeral
from attncli.ops.rows import DIVIDE, ROW_MEAN_SQUARE

_NORM = N_("Look again at the norm: minus the mean, over the root of the variance plus ε.")
_ROOT_MEAN_SQUARE = N_(
    "Look again at the norm: each {row} over the root of its mean square plus ε; no mean is taken away."
)

Axes = tuple[int, ...]
RootOf = Callable[[Arithmetic, Value, Matrix], Value]
_DOWN: Axes = (-2,)
_ALL: Axes = (-2, -1)


def source_of(graph: Graph, step_id: str) -> tuple[str, bool]:
    """What is normalised, and whether its mean was taken away: (X, true) for the centred step, (X, false) for X."""
    step: Step | None = graph.steps.get(step_id)
    return (step.inputs[0], True) if step is not None and step.op.name == "centre" else (step_id, False)


def _root_of(graph: Graph, step: Step) -> Step | None:
    """The step of σ, at a step that divides by it on the way forward."""
    root = graph.steps.get(step.inputs[1])
    return root if root is not None and root.op.name == "root_eps" else None


def _eps(step: Step) -> Matrix:
    eps: Matrix = step.params["eps"]
    return eps


# --- statistics of other lines: each line of theirs a line ------------------------------------------------------------


def _mean(xp: Arithmetic, a: Value, axes: Axes) -> Value:
    """The mean along some axes, which are kept with length 1."""
    count = 1
    for axis in axes:
        count *= a.shape[axis]
    return xp.divide(xp.sum(a, axes), numeral(xp, count))


def _mean_of_squares(xp: Arithmetic, a: Value, axes: Axes) -> Value:
    return _mean(xp, xp.multiply(a, a), axes)


def _centred(xp: Arithmetic, a: Value, axes: Axes) -> Value:
    return xp.round_step(xp.subtract(a, xp.round_step(_mean(xp, a, axes))))


def _normalised(xp: Arithmetic, a: Value, axes: Axes, centred: bool, eps: Matrix) -> Value:
    """The whole norm, along other axes or without the mean taken away."""
    moved = _centred(xp, a, axes) if centred else a
    variance = xp.round_step(_mean_of_squares(xp, moved, axes))
    return xp.divide(moved, xp.round_step(xp.sqrt(xp.add(variance, xp.constant(eps)))))


def _once_a_row(xp: Arithmetic, value: Value, rows: int) -> Value:
    """One number of the whole matrix, once a row."""
    return xp.repeat(value, rows, -2)


def _statistic(step: Step, source: str, axes: Axes, squares: bool) -> dict[str, Swap]:
    """At this step, the mean (of the squares) along other axes."""
    mean = _mean_of_squares if squares else _mean

    def of_lines(xp: Arithmetic, a: Value) -> Value:
        value = mean(xp, a, axes)
        return value if axes == _DOWN else _once_a_row(xp, value, a.shape[-2])

    return instead(step, of_lines, source)


def _over(axes: Axes, graph: Graph, step: Step) -> Iterator[Swaps]:
    """Mean and variance of other lines, told at any step of the norm; who has the mean of them has the variance too."""
    if step.op.name == "row_mean":
        here = _statistic(step, step.inputs[0], axes, squares=False)
        for centred in steps_of(graph, "centre", using=step.id):
            yield from _with_variance(graph, here, centred.id, axes)
        yield here
    elif step.op.name == "centre":
        here = instead(step, lambda xp, a: xp.subtract(a, xp.round_step(_mean(xp, a, axes))), step.inputs[0])
        yield from _with_variance(graph, here, step.id, axes)
        yield here
    elif step.op.name == "row_mean_square":
        source, centred_too = source_of(graph, step.inputs[0])
        if centred_too:

            def of_source(xp: Arithmetic, a: Value) -> Value:
                value = _mean_of_squares(xp, _centred(xp, a, axes), axes)
                return value if axes == _DOWN else _once_a_row(xp, value, a.shape[-2])

            yield instead(step, of_source, source)
        yield _statistic(step, step.inputs[0], axes, squares=True)
    else:
        root = _root_of(graph, step)
        if root is not None:
            source, centred_too = source_of(graph, step.inputs[0])
            yield instead(step, partial(_normalised, axes=axes, centred=centred_too, eps=_eps(root)), source)


def _with_variance(graph: Graph, swap: Swaps, centred: str, axes: Axes) -> Iterator[Swaps]:
    """The mistake, and the mean square of the same lines of the centred step."""
    for step in steps_of(graph, "row_mean_square", using=centred):
        yield together(swap, _statistic(step, centred, axes, squares=True))


# --- another divisor --------------------------------------------------------------------------------------------------


def _of_sample(graph: Graph, step: Step) -> Iterator[Swaps]:
    width = graph.shape(step.inputs[0])[-1]
    if width > 1:
        yield instead(
            step, lambda xp, a: xp.divide(xp.sum(xp.multiply(a, a), -1), numeral(xp, width - 1)), step.inputs[0]
        )


def _of_sample_back(graph: Graph, step: Step, swap: Swaps) -> Swaps:
    """2/(n − 1) on the way back too."""
    back = backward_of(graph, step.inputs[0], step)
    if back is None or back.op.name != "share_square":
        return {}
    width = graph.shape(step.inputs[0])[-1]

    def share(xp: Arithmetic, a: Value, g: Value) -> Value:
        return xp.multiply(xp.multiply(xp.divide(numeral(xp, 2.0), numeral(xp, width - 1)), a), g)

    return instead(back, share, *back.inputs)


class Divisor(Record):
    """What somebody divides by in the place of σ.

    Parameters
    ----------
    value : of the variance, or of σ, and ε
    slope : (graph, σ, the last step of its gradient) -> the way back through it, to the variance
    is_by_eps : whether it differs from σ by the place of ε alone
    is_of_root : whether it is made of the σ that stands on the page
    """

    value: Callable[[Arithmetic, Value, Matrix], Value]
    slope: Callable[[Graph, Step, Step], dict[str, Swap]]
    is_by_eps: bool = False
    is_of_root: bool = False

    def divided(self, step: Step, root: Step) -> dict[str, Swap]:
        """At a step that divides by σ, divided by this instead."""
        source = root.id if self.is_of_root else root.inputs[0]
        return instead(step, _divided, step.inputs[0], source, divisor=self, eps=_eps(root))

    def alike(self, graph: Graph, step: Step) -> Swaps:
        """The gradient divided by the same number; and its slope, where the root is another one or none."""
        root = step if step.op.name == "root_eps" else _root_of(graph, step)
        if root is None:
            return {}
        found = dict[str, Swap]()
        slope = backward_of(graph, root.inputs[0], root)
        if slope is not None and slope.op.name == "divide":
            found |= self.slope(graph, root, slope)
        if root is not step:  # σ itself was right, so that each division by it has to be told
            for back in steps_of(graph, "divide", using=root.id):
                if back.phase == "backward" and back.inputs[1] == root.id and back.id not in found:
                    found |= self.divided(back, root)
        return found


def _divided(xp: Arithmetic, a: Value, source: Value, *, divisor: Divisor, eps: Matrix) -> Value:
    return xp.divide(a, xp.round_step(divisor.value(xp, source, eps)))


def _for_root(xp: Arithmetic, variance: Value, *, divisor: Divisor, eps: Matrix) -> Value:
    """What stands in the place of σ itself."""
    return divisor.value(xp, xp.round_step(_root(xp, variance, eps)) if divisor.is_of_root else variance, eps)


def _divided_by(*divisors: Divisor) -> Made:
    """σ itself, or what is divided by it, with one of these divisors."""

    def made(graph: Graph, step: Step) -> Iterator[Swaps]:
        root = step if step.op.name == "root_eps" else _root_of(graph, step)
        if root is None:
            return
        for divisor in divisors:
            if divisor.is_by_eps and not float(_eps(root).values):
                continue
            if root is step:
                yield instead(step, _for_root, root.inputs[0], divisor=divisor, eps=_eps(root))
            else:
                yield divisor.divided(step, root)

    return made


def _divided_alike(graph: Graph, step: Step, swap: Swaps) -> Swaps:
    divisor: Divisor = swap[step.id].params["divisor"]
    return divisor.alike(graph, step)


def _without_half(graph: Graph, slope: Step) -> dict[str, Swap]:
    """Where σ is no root, the half of a root's slope does not come back either."""
    half = graph.steps.get(slope.inputs[0])
    return {} if half is None or half.op.name != "scale" else passing(half)


def _not_rooted(xp: Arithmetic, variance: Value, eps: Matrix) -> Value:
    return xp.add(variance, xp.constant(eps))


def _slope_without_root(graph: Graph, root: Step, slope: Step) -> dict[str, Swap]:
    """Without a root, σ grows as the variance does."""
    return together(_without_half(graph, slope), passing(slope))


def _eps_outside(xp: Arithmetic, variance: Value, eps: Matrix) -> Value:
    return xp.add(xp.round_step(xp.sqrt(variance)), xp.constant(eps))


def _slope_beside_eps(graph: Graph, root: Step, slope: Step) -> dict[str, Swap]:
    """The slope of √v + ε is 1/(2√v)."""
    return instead(slope, lambda xp, g, v: xp.divide(g, xp.round_step(xp.sqrt(v))), slope.inputs[0], root.inputs[0])


def _rooted_twice(xp: Arithmetic, variance: Value, eps: Matrix) -> Value:
    return xp.sqrt(xp.add(xp.round_step(xp.sqrt(variance)), xp.constant(eps)))


def _slope_of_two_roots(graph: Graph, root: Step, slope: Step) -> dict[str, Swap]:
    """The slope of √(√v + ε) is 1/(2√(√v + ε)), times 1/(2√v)."""
    return _two_slopes(root, slope, lambda xp, v, eps: xp.sqrt(v), _root)


def _root(xp: Arithmetic, value: Value, eps: Matrix) -> Value:
    """√(v + ε), as σ is the root of the variance."""
    return xp.sqrt(xp.add(value, xp.constant(eps)))


def _bare_root(xp: Arithmetic, value: Value, eps: Matrix) -> Value:
    return xp.sqrt(value)


def _slope_of_root_again(again: RootOf) -> Callable[[Graph, Step, Step], dict[str, Swap]]:
    """The slope of another root of σ is one over it and 2, times 1/(2σ)."""
    return lambda graph, root, slope: _two_slopes(root, slope, _root, again)


def _two_slopes(root: Step, slope: Step, first: RootOf, second: RootOf) -> dict[str, Swap]:
    """The gradient through a root of a root, from what is halved already."""
    eps = _eps(root)

    def two(xp: Arithmetic, g: Value, v: Value) -> Value:
        once = xp.round_step(first(xp, v, eps))
        twice = xp.round_step(xp.divide(g, xp.round_step(second(xp, once, eps))))
        return xp.divide(twice, xp.multiply(numeral(xp, 2.0), once))

    return instead(slope, two, slope.inputs[0], root.inputs[0])


def _squared(xp: Arithmetic, variance: Value, eps: Matrix) -> Value:
    moved = xp.round_step(xp.add(variance, xp.constant(eps)))
    return xp.multiply(moved, moved)


def _slope_of_square(graph: Graph, root: Step, slope: Step) -> dict[str, Swap]:
    """The slope of (v + ε)² is 2(v + ε)."""
    eps = _eps(root)

    def doubled(xp: Arithmetic, g: Value, v: Value) -> Value:
        return xp.multiply(g, xp.multiply(numeral(xp, 2.0), xp.round_step(_not_rooted(xp, v, eps))))

    return together(_without_half(graph, slope), instead(slope, doubled, slope.inputs[0], root.inputs[0]))


_NOT_ROOTED = Divisor(_not_rooted, _slope_without_root)
_EPS_OUTSIDE = Divisor(_eps_outside, _slope_beside_eps, True)
#: With ε under the second root alone; under both; under the first alone.
_ROOTED_TWICE = (
    Divisor(_rooted_twice, _slope_of_two_roots),
    Divisor(_root, _slope_of_root_again(_root), is_of_root=True),
    Divisor(_bare_root, _slope_of_root_again(_bare_root), is_of_root=True),
)
_SQUARED = Divisor(_squared, _slope_of_square)


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
        return
    root = _root_of(graph, step)
    if root is not None:
        yield instead(step, partial(_normalised, axes=(-1,), centred=False, eps=_eps(root)), source)
        yield instead(step, DIVIDE.compute, source, step.inputs[1])


def _no_mean_back(graph: Graph, step: Step, swap: Swaps) -> Swaps:
    """No path through the mean on the way back."""
    joined = backward_of(graph, step.inputs[0]) if step.op.name == "centre" else None
    if joined is None or joined.op.name != "sum_paths":
        return {}
    kept = tuple(path for path in joined.inputs if path not in graph.steps or graph.steps[path].op.name != "share_mean")
    return sum_of(joined, kept) if 0 < len(kept) < len(joined.inputs) else {}


# --- the way back through a norm --------------------------------------------------------------------------------------

#: What the statistics of a norm send back.
_STATISTICS = ("share_mean", "share_square")


def _paths_missing(graph: Graph, step: Step) -> Iterator[Swaps]:
    """Mean and variance taken for constants: only G/σ comes back through the norm."""
    paths = [path for path in step.inputs if path not in graph.steps or graph.steps[path].op.name not in _STATISTICS]
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
        yield instead(step, straight_through, gradient_id(norm.id), norm.inputs[1], *others)


MISTAKES = (
    MistakeKind("sample-variance", 5, N_("You divided by n − 1. LayerNorm uses the population variance: divide by n."), _NORM, ("row_mean_square",), _of_sample, _of_sample_back, {"rms": Wording(N_("You divided by n − 1. RMS normalisation takes the mean of the squares: divide by n."), _ROOT_MEAN_SQUARE)}),
    MistakeKind("eps-outside-root", 5, N_("You added ε after the root. It stands under the root, beside the variance."), _NORM, ("root_eps", "standardise"), _divided_by(_EPS_OUTSIDE), _divided_alike, {"rms": Wording(N_("You added ε after the root. It stands under the root, beside the mean square."), _ROOT_MEAN_SQUARE)}),
    MistakeKind("normalised-over-tokens", 4, N_("You normalised down each {column}. A norm works along each {row}: a token by itself."), LINES, ("row_mean", "centre", "row_mean_square", "standardise"), partial(_over, _DOWN)),
    MistakeKind("normalised-over-all", 1, N_("You took one mean and one variance of the whole matrix. A norm works along each {row}: a token by itself."), N_("Look again at which numbers share a mean: those of one token."), ("row_mean", "centre", "row_mean_square", "standardise"), partial(_over, _ALL)),
    MistakeKind("not-square-rooted", 1, N_("You divided by the variance. The norm divides by its square root."), _NORM, ("root_eps", "standardise"), _divided_by(_NOT_ROOTED), _divided_alike, {"std": Wording(N_("You took the variance itself. σ is its square root."), _NORM), "rms": Wording(N_("You took the mean square itself. RMS normalisation divides by its root."), _ROOT_MEAN_SQUARE)}),
    MistakeKind("rooted-twice", 1, N_("You took the root twice: σ is a root already."), _NORM, ("root_eps", "standardise"), _divided_by(*_ROOTED_TWICE), _divided_alike, {"rms": Wording(N_("You took the root twice: the root mean square is a root already."), _ROOT_MEAN_SQUARE)}),
    MistakeKind("variance-squared", 1, N_("You squared the variance. It is a mean of squares already, and the norm divides by its root."), _NORM, ("root_eps", "standardise"), _divided_by(_SQUARED), _divided_alike),
    MistakeKind("not-centred", 1, N_("You did not take the mean away; that is the rule of RMS normalisation."), _NORM, ("centre", "row_mean_square", "standardise"), _not_centred, _no_mean_back),
    MistakeKind("norm-paths-missing", 2, N_("You treated the mean and the variance as constants. They move with every entry of their {row}, so they send gradients back too."), N_("Look again at every place where X is used in the norm: directly, in the mean, and in the variance."), ("sum_paths",), _paths_missing),
)  # fmt: skip
