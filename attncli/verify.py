"""Finite differences: the gradients checked by moving every input a little both ways."""

from __future__ import annotations

from typing import Any

import numpy as np

from attncli.core.graph import Graph
from attncli.gradient import gradient_id
from attncli.matrix import FloatArray
from attncli.message import N_, LimitError, Message
from attncli.record import Record

#: Numbers that may be moved; each costs two evaluations.
MOST_ENTRIES = 5000
#: Relative error up to which a gradient counts as confirmed; central differences in float64 reach about 1e-10.
TOLERANCE = 1e-6
_EPS = float(np.finfo(np.float64).eps)


class Checked(Record):
    """One input's gradient against finite differences.

    Parameters
    ----------
    id : the input
    gradient, difference, error : arrays of the input's shape; error is relative, entry by entry, NaN where not moved
    """

    id: str
    gradient: FloatArray
    difference: FloatArray
    error: FloatArray

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

    checked: tuple[Checked, ...]
    warnings: tuple[Message, ...]

    @property
    def ok(self) -> bool:
        return all(checked.ok for checked in self.checked)


def verify(graph: Graph) -> Verification:
    """Check the gradient of every differentiable input of a graph that has its backward steps.

    The slope is (L(x+h) − L(x−h)) / 2h with h = ∛ε·max(1, |x|), the step that balances the error of the
    formula, h², against that of rounding, ε/h (Press et al., Numerical Recipes, 3rd ed., section 5.7).

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
    loss = _Loss(graph, arriving)
    size = abs(loss(None, None)) + float(np.abs(arriving * np.nan_to_num(trace[graph.output])).sum())
    checked = tuple(_check(loss, input.id, input.matrix.values, trace[gradient_id(input.id)], size) for input in inputs)
    return Verification(checked, tuple(_warnings(checked, arriving)))


class _Loss:
    """The loss as a function of one moved input."""

    def __init__(self, graph: Graph, arriving: FloatArray) -> None:
        self.graph = graph
        self.arriving = arriving

    def __call__(self, id: str | None, values: FloatArray | None) -> float:
        given: dict[str, Any] = {} if id is None else {id: values}
        target = self.graph.loss or self.graph.output
        result = self.graph.evaluate(given=given, until=target)[target]
        return float(result.sum() if self.graph.loss else (self.arriving * result).sum())


def _check(loss: _Loss, id: str, values: FloatArray, gradient: FloatArray, size: float) -> Checked:
    difference = np.full(values.shape, np.nan)
    error = np.full(values.shape, np.nan)
    for index in np.ndindex(values.shape):
        x = float(values[index])
        if not np.isfinite(x):
            continue  # a hidden score stays hidden
        h = _EPS ** (1 / 3) * max(1.0, abs(x))
        ends = []
        for moved_to in (x + h, x - h):
            moved = values.copy()
            moved[index] = moved_to
            ends.append((moved_to, loss(id, moved)))
        difference[index] = (ends[0][1] - ends[1][1]) / (ends[0][0] - ends[1][0])
        # Rounding alone moves the difference this far; a gradient too small to be told apart from it is held against it.
        noise = 50 * _EPS * size / h
        scale = max(abs(difference[index]), abs(float(gradient[index])), noise / TOLERANCE)
        error[index] = abs(difference[index] - gradient[index]) / scale if scale else 0.0
    return Checked(id, gradient, difference, error)


def _warnings(checked: tuple[Checked, ...], arriving: FloatArray) -> list[Message]:
    """Inputs whose gradient is zero throughout although something arrives: the check proves little there."""
    if not np.any(arriving):
        return [
            Message(N_("The upstream gradient is 0 everywhere, so every gradient is 0 and the check proves nothing."))
        ]
    biggest = max((float(np.abs(entry.gradient).max(initial=0.0)) for entry in checked), default=0.0)
    biggest = max(biggest, float(np.abs(arriving).max()))
    zero = [entry.id for entry in checked if float(np.abs(entry.gradient).max(initial=0.0)) <= 1e-12 * biggest]
    if not zero:
        return []
    return [
        Message(
            N_(
                "The gradient of {inputs} is 0 throughout. With this upstream gradient nothing else can come out (weights"
                " that always add up to 1 cannot change their sum), so the check proves little there."
                " Try an upstream gradient that differs along a {row}."
            ),
            inputs=", ".join(zero),
        )
    ]
