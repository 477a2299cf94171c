"""Backward steps, appended to a graph with the ops' own rules, and their check by finite differences.

Gradients are ordinary steps: a product's gradient is a product. Where an array is used more than
once, each use gives a path with a step of its own (G_X_Q, G_X_K, G_X_V), and their sum is a step (G_X).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TypeAlias

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Op, Step, default_symbol, gradient_id, gradient_symbol, part_of
from attncli.core.matrix import FloatArray, Matrix
from attncli.core.message import N_, LimitError, Listed, Message
from attncli.core.record import Record


class Seed(Record):
    """What a loss sends back to an array it looks at: `write(id, symbol)` adds it as a step; `label` tells it from others."""

    label: str
    write: Callable[[str, str], object]


#: By array; none where its gradient is given.
Seeds: TypeAlias = Mapping[str, Sequence[Seed]]


def _sum(xp: Arithmetic, *parts: Value, count: int) -> Value:
    """The sum of all parts, entry by entry, from the first to the last."""
    return reduce(xp.add, parts)


SUM_PATHS = Op(
    name="sum_paths",
    compute=_sum,
    axes=lambda params: ", ".join(["i j"] * params["count"]) + " -> i j",
    formula=lambda params, columns: " + ".join(f"#{i}" for i in range(1, params["count"] + 1)),
    why=N_(
        "Several paths lead from here to the loss. A small change travels along all of them, so their gradients add."
    ),
)


def upstream(graph: Graph, matrix: Matrix, why: Message | None = None) -> str:
    """Give the gradient that arrives at the graph's output, from outside; return its id."""
    output = graph.output
    axes = [axis.name for axis in graph.axes(output)]
    # The output's axes are bound by the forward steps; a gradient has the shape of what it belongs to.
    for axis in graph.axes(output):
        graph.bound.setdefault(axis.name, axis)
    return graph.input(
        gradient_id(output),
        matrix,
        axes,
        symbol=gradient_symbol(graph.symbol(output)),
        differentiable=False,
        phase="upstream",
        why=why
        or Message("Given: how much the loss changes when one entry of {output} grows a little.", output=output),
    )


def append(graph: Graph, seeds: Seeds | None = None) -> None:
    """Append the backward steps from the output's gradient, or from what a loss sends back, to every differentiable input."""
    Backward(graph, {graph.output: ()} if seeds is None else seeds).run()


class Backward:
    """One pass from what the loss looks at back to the inputs."""

    def __init__(self, graph: Graph, seeds: Seeds) -> None:
        self.graph = graph
        self.seeds = seeds
        self.order = {step_id: place for place, step_id in enumerate(graph.steps)}
        self.depth = self._depths()
        self.uses = self._uses()
        self.paths: dict[str, list[str]] = defaultdict(list)

    def _pulls(self, step: Step) -> Iterator[tuple[int, str]]:
        """The operands of a step that its gradient flows to: (position, id)."""
        if step.composite is not None:
            if self.depth.get(step.composite.source) is not None:
                yield 0, step.composite.source
            return
        for position, (step_id, rule) in enumerate(zip(step.inputs, step.op.backward, strict=False)):
            if rule is not None and self.depth.get(step_id) is not None:
                yield position, step_id

    def _depths(self) -> dict[str, int | None]:
        """Steps between an id and the farthest differentiable input it depends on; None: depends on none."""
        depth: dict[str, int | None] = {
            input.id: 0 if input.differentiable else None for input in self.graph.inputs.values()
        }
        for step in self.graph.steps.values():
            sources = step.inputs if step.composite is None else (*step.inputs, step.composite.source)
            known = [d for d in (depth[step_id] for step_id in sources) if d is not None]
            depth[step.id] = max(known) + 1 if known else None
        return depth

    def _uses(self) -> dict[str, list[Step]]:
        """The steps that use every id on a way to the output; one that uses it twice stands there twice."""
        uses: dict[str, list[Step]] = defaultdict(list)
        waiting, seen = list(self.seeds), set[str]()
        while waiting:
            step_id = waiting.pop()
            if step_id in seen or step_id not in self.graph.steps:
                continue
            seen.add(step_id)
            step = self.graph.steps[step_id]
            for _, source in self._pulls(step):
                uses[source].append(step)
                waiting.append(source)
        return uses

    def run(self) -> None:
        graph = self.graph
        graph.phase = "backward"
        self.done: dict[str, str] = {}
        ready = [step_id for step_id, seeds in self.seeds.items() if self._start(step_id, seeds)]
        while ready:
            steps = [graph.steps[step_id] for step_id in ready if step_id in graph.steps]
            if not steps:
                break
            # One part of a model after another, the last first; within it the steps as deep as one another together.
            part = part_of(max(steps, key=lambda step: self.order[step.id]).id)
            steps = [step for step in steps if part_of(step.id) == part]
            deepest = max(self.depth[step.id] or 0 for step in steps)
            group = [step for step in steps if (self.depth[step.id] or 0) == deepest]
            ready = [step_id for step_id in ready if step_id not in {step.id for step in group}]
            ready.extend(self._process(group))
        graph.phase = "forward"

    def _start(self, step_id: str, seeds: Sequence[Seed]) -> bool:
        """Write what the loss sends back to an array; whether its gradient is complete with that."""
        for seed in seeds:
            seed.write(*self._path(step_id, seed.label))
        if not seeds:
            self.paths[step_id].append(gradient_id(step_id))
        if self.uses[step_id]:
            return False
        self._join(step_id)
        return True

    def _ways(self, step_id: str) -> int:
        """How many gradients arrive at an id."""
        return len(self.uses[step_id]) + len(self.seeds.get(step_id, ()))

    def _path(self, step_id: str, mark: str) -> tuple[str, str]:
        """The id and the symbol of the next of these gradients; `mark` tells it from the others."""
        path, symbol = gradient_id(step_id), gradient_symbol(self.graph.symbol(step_id))
        if self._ways(step_id) > 1:
            path = f"{path}_{mark}"
            way = mark.replace("_", ".") if mark.count("_") > 1 else default_symbol(mark)
            symbol = f"{symbol}^{{({way})}}"
        if path in self.graph:
            path = f"{path}_{len(self.paths[step_id]) + 1}"
        self.paths[step_id].append(path)
        return path, symbol

    def _process(self, group: list[Step]) -> list[str]:
        """Write the gradients that these steps send back; return the ids that are complete now."""
        group = sorted(group, key=lambda step: self.order[step.id])
        pulls = [(step, position, step_id) for step in group for position, step_id in self._pulls(step)]
        complete: list[str] = []
        for step, position, step_id in sorted(pulls, key=lambda pull: self._turn(pull[0], pull[1])):
            self._write(step, position, step_id)
            if len(self.paths[step_id]) == self._ways(step_id):
                self._join(step_id)
                complete.append(step_id)
        return complete

    @staticmethod
    def _turn(step: Step, position: int) -> int:
        """The later operand first (weights before data), unless the step says otherwise."""
        order = step.gradient_order or tuple(reversed(range(len(step.inputs))))
        return order.index(position) if position in order else 0

    def _write(self, step: Step, position: int, step_id: str) -> None:
        graph = self.graph
        target, symbol = self._path(step_id, _use_name(step, position, self.uses[step_id]))
        rule = step.composite.rule if step.composite is not None else step.op.backward[position]
        assert rule is not None
        rule(graph, step, self.done[step.id], target)
        if graph.shape(target) != graph.shape(step_id):
            raise ValueError(f"the rule of {step.op.name!r} writes {target!r} in another shape than {step_id!r}")
        # The steps of a rule before its last one have symbols of their own.
        graph.steps[target] = graph.steps[target].changed(symbol=symbol)

    def _join(self, step_id: str) -> None:
        paths, target = self.paths[step_id], gradient_id(step_id)
        if len(paths) > 1:
            symbol = gradient_symbol(self.graph.symbol(step_id))
            self.graph.apply(SUM_PATHS, target, *paths, symbol=symbol, count=len(paths))
        self.done[step_id] = target


def _use_name(step: Step, position: int, uses: list[Step]) -> str:
    """What tells one use of an array from the others: Q, or layer2_cross_K where several parts have a K, or error_2."""
    name = step.id.rpartition(".")[2]
    if len({use.id for use in uses if use.id.rpartition(".")[2] == name}) > 1:
        name = step.id.replace(".", "_")
    again = sum(use.id == step.id for use in uses) > 1
    return f"{name}_{position + 1}" if again else name


# --- The check: every input moved a little both ways ------------------------------------------------------------------

#: Numbers that may be moved; each costs two evaluations.
MOST_ENTRIES = 5000
#: Relative error up to which a gradient counts as confirmed; central differences in float64 reach about 1e-10.
TOLERANCE = 1e-6
_EPS = float(np.finfo(np.float64).eps)

#: From the inputs that are moved, by id.
Loss: TypeAlias = Callable[[Mapping[str, FloatArray]], float]


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
    unrounded = Message(
        "The gradients were checked before rounding: rounded ones would differ from the measured slopes by the rounding alone."
    )
    return Verification(checked, (*([unrounded] if rounded else []), *_warnings(checked, arriving)))


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


def _warnings(checked: Sequence[GradientCheck], arriving: FloatArray) -> Iterator[Message]:
    """Where the check proves little: at a bend, and of inputs whose gradient is 0 throughout though something arrives."""
    bends = [f"{entry.id}[{','.join(str(i + 1) for i in index)}]" for entry in checked for index in entry.bends]
    if bends:
        yield Message(
            "A bend at {cells}: the slope on the left differs from the slope on the right (ReLU at 0, say), so a finite difference says nothing about the gradient there, and it was not compared.",
            cells=Listed.first(bends, 6),
        )
    largest = [float(np.abs(entry.gradient).max(initial=0.0)) for entry in checked]
    biggest = max([float(np.abs(arriving).max()), *largest])
    zero = [entry.id for entry, size in zip(checked, largest, strict=True) if size <= 1e-12 * biggest]
    if not np.any(arriving):
        yield Message("The upstream gradient is 0 everywhere, so every gradient is 0 and the check proves nothing.")
    elif zero:
        yield Message(
            "The gradient of {inputs} is 0 throughout. With this upstream gradient nothing else can come out (weights"
            " that always add up to 1 cannot change their sum), so the check proves little there."
            " Try an upstream gradient that differs along a {row}.",
            inputs=", ".join(zero),
        )
