"""Finite differences: the gradients checked by moving every input a little both ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from attncli.core.graph import Graph, gradient_id
from attncli.core.matrix import FloatArray
from attncli.core.message import N_, LimitError, Listed, Message
from attncli.core.record import Record

#: Numbers that may be moved; each costs two evaluations.
MOST_ENTRIES = 5000
#: Relative error up to which a gradient counts as confirmed; central differences in float64 reach about 1e-10.
TOLERANCE = 1e-6
_EPS = float(np.finfo(np.float64).eps)

#: From the inputs that are moved, by id.
Loss: TypeAlias = Callable[[Mapping[str, FloatArray]], float]


_UNROUNDED = N_(
    "The gradients were checked before rounding: rounded ones would differ from the measured slopes by the rounding alone."
)


class GradientCheck(Record):
    """One input's gradient against finite differences.

    Parameters
    ----------
    id : the input
    gradient, difference, error : arrays of the input's shape; error is relative, entry by entry, NaN where not compared
    bends : the entries at which the loss has a bend, so that there is no slope to compare with
    """

    id: str
    gradient: FloatArray
    difference: FloatArray
    error: FloatArray
    bends: tuple[tuple[int, ...], ...] = ()

    @property
    def worst(self) -> float:
        """The largest relative error."""
        moved = self.error[~np.isnan(self.error)]
        return float(moved.max()) if moved.size else 0.0

    @property
    def ok(self) -> bool:
        return self.worst <= TOLERANCE


class Verification(Record):
    """All inputs' gradients against finite differences, with warnings where the check says little."""

    checked: tuple[GradientCheck, ...]
    warnings: tuple[Message, ...]

    @property
    def ok(self) -> bool:
        return all(checked.ok for checked in self.checked)


def verify(graph: Graph, *, rounded: bool = False) -> Verification:
    """Check the gradient of every differentiable input of a graph that has its backward steps.

    Parameters
    ----------
    rounded : the gradients are shown as carried on with rounded numbers, and what is checked are others

    The slope is (L(x+h) − L(x−h)) / 2h with h = ∛ε·max(1, |x|), the step that balances the error of the
    formula, h², against that of rounding, ε/h (Press et al., Numerical Recipes, 3rd ed., section 5.7). What that does
    not confirm is looked at with smaller steps, at both sides, and with the noise of the loss measured.

    Raises
    ------
    LimitError
        More numbers than is sensible to move one by one.
    """
    inputs = [input for input in graph.inputs.values() if input.differentiable and gradient_id(input.id) in graph]
    count = sum(input.matrix.values.size for input in inputs)
    if count > MOST_ENTRIES:
        raise LimitError(
            "--verify moves every input number twice: {count} numbers here, the limit is {limit}. Use a smaller example.",
            count=count,
            limit=MOST_ENTRIES,
        )
    trace = graph.evaluate()
    arriving = trace[gradient_id(graph.output)]
    loss = _loss_of(graph, arriving)
    size = abs(loss({})) + float(np.abs(arriving * np.nan_to_num(trace[graph.output])).sum())
    checked = tuple(_check(loss, input.id, input.matrix.values, trace[gradient_id(input.id)], size) for input in inputs)
    return Verification(checked, ((Message(_UNROUNDED),) if rounded else ()) + tuple(_warnings(checked, arriving)))


def _loss_of(graph: Graph, arriving: FloatArray) -> Loss:
    """The loss as a function of the inputs that are moved."""
    target = graph.loss or graph.output

    def loss(given: Mapping[str, FloatArray]) -> float:
        result = graph.evaluate(given=given, until=target)[target]
        with np.errstate(all="ignore"):
            return float(result.sum() if graph.loss else (arriving * result).sum())

    return loss


class _Line:
    """The loss along one entry of an input."""

    def __init__(self, loss: Loss, input_id: str, values: FloatArray, index: tuple[int, ...]) -> None:
        self.loss = loss
        self.id = input_id
        self.values = values
        self.index = index
        self.x = float(values[index])
        self.h: float = _EPS ** (1 / 3) * max(1.0, abs(self.x))

    def at(self, x: float) -> float:
        moved = self.values.copy()
        moved[self.index] = x
        return self.loss({self.id: moved})

    def slope(self, back: float, forth: float) -> float:
        """The slope of the chord from x − back to x + forth."""
        low, high = self.x - back, self.x + forth
        return (self.at(high) - self.at(low)) / (high - low)

    def noise(self, size: float) -> float:
        """What rounding moves the loss by: third differences of points so near that the loss itself hardly changes.

        (Moré and Wild, Estimating computational noise, SIAM J. Sci. Comput. 33, 2011.)
        """
        # No round numbers: with those, rounding may happen to do nothing.
        apart = max(1.0, abs(self.x)) * 2.3e-13
        jitter = 4 * _EPS * size
        for middle in (self.x, self.x + 0.37 * self.h, self.x - 0.71 * self.h):
            near = [self.at(middle + place * apart) for place in range(-4, 5)]
            jitter = max(jitter, float(np.abs(np.diff(near, 3)).max()))
        return jitter

    def closest(self, noise: float) -> tuple[float, float]:
        """The slope, and how far it may be off: from pairs of central differences, the pair that agrees best."""
        steps = [self.h * 4.0**-k for k in range(-1, 8)]
        slopes = [self.slope(h, h) for h in steps]
        pairs = []
        for smaller, wide, narrow in zip(steps[1:], slopes, slopes[1:], strict=False):
            better = narrow + (narrow - wide) / 15  # Richardson: the error of the formula, h², drops out
            pairs.append((abs(better - narrow) + noise / smaller, better))
        doubt, best = min(pairs)
        return best, doubt

    def has_bend(self, noise: float) -> bool:
        """Whether the slopes to the left and to the right differ however near they are taken."""
        (_, far), (h, near) = ((h, self.slope(0.0, h) - self.slope(h, 0.0)) for h in (self.h / 16, self.h / 4096))
        least = max(0.5 * abs(far), 20 * noise / h, TOLERANCE * abs(self.slope(h, h)))
        return abs(near) > least


def _check(loss: Loss, input_id: str, values: FloatArray, gradient: FloatArray, size: float) -> GradientCheck:
    difference = np.full(values.shape, np.nan)
    error = np.full(values.shape, np.nan)
    bends: list[tuple[int, ...]] = []
    for index in np.ndindex(values.shape):
        if not np.isfinite(values[index]):
            continue  # a hidden score stays hidden
        line, claimed = _Line(loss, input_id, values, index), float(gradient[index])
        # Rounding alone moves the difference this far; a gradient too small to be told apart from it is held against it.
        slope, doubt = line.slope(line.h, line.h), 50 * _EPS * size / line.h
        error[index] = _error(slope, claimed, doubt)
        if TOLERANCE < error[index] < np.inf:  # a curve too narrow for the step, a bend, rounding: or a wrong gradient
            noise = line.noise(size)
            if line.has_bend(noise):
                bends.append(index)
                error[index] = np.nan
            else:
                slope, doubt = line.closest(noise)
                error[index] = _error(slope, claimed, 10 * doubt)
        difference[index] = slope
    return GradientCheck(input_id, gradient, difference, error, tuple(bends))


def _error(slope: float, gradient: float, doubt: float) -> float:
    """The relative error; 0 within what is in doubt anyway, ∞ where one of the two is no number."""
    if not np.isfinite(slope) or not np.isfinite(gradient):
        return float("inf")
    scale = max(abs(slope), abs(gradient), doubt / TOLERANCE)
    return abs(slope - gradient) / scale if scale else 0.0


def _warnings(checked: tuple[GradientCheck, ...], arriving: FloatArray) -> list[Message]:
    """Where the check proves little: at a bend, and of inputs whose gradient is 0 throughout though something arrives."""
    bends = [f"{entry.id}[{','.join(str(i + 1) for i in index)}]" for entry in checked for index in entry.bends]
    at_bends = Message(
        "A bend at {cells}: the slope on the left differs from the slope on the right (ReLU at 0, say), so a finite difference says nothing about the gradient there, and it was not compared.",
        cells=Listed.first(bends, 6),
    )
    return [*([at_bends] if bends else []), *_zero_warnings(checked, arriving)]


def _zero_warnings(checked: tuple[GradientCheck, ...], arriving: FloatArray) -> list[Message]:
    if not np.any(arriving):
        return [Message("The upstream gradient is 0 everywhere, so every gradient is 0 and the check proves nothing.")]
    biggest = max((float(np.abs(entry.gradient).max(initial=0.0)) for entry in checked), default=0.0)
    biggest = max(biggest, float(np.abs(arriving).max()))
    zero = [entry.id for entry in checked if float(np.abs(entry.gradient).max(initial=0.0)) <= 1e-12 * biggest]
    if not zero:
        return []
    return [
        Message(
            "The gradient of {inputs} is 0 throughout. With this upstream gradient nothing else can come out (weights"
            " that always add up to 1 cannot change their sum), so the check proves little there."
            " Try an upstream gradient that differs along a {row}.",
            inputs=", ".join(zero),
        )
    ]
