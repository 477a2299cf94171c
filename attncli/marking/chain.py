"""A graph's numbers, each worked out when it is asked for and kept.

Marking asks for the same chain many times with one number replaced: a learner's own value, or a step
done wrongly. A fork shares everything that does not follow from the replaced step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from attncli.arithmetic import Value
from attncli.arithmetic.floating import FLOATING
from attncli.arithmetic.interval import Interval, IntervalArithmetic
from attncli.core.graph import Graph, Step, Swap
from attncli.marking.spread import Sides, Tries, tightened, unit_of
from attncli.matrix import Entry, Matrix

Settle = Callable[[str, Value], Value]


class Bounds(IntervalArithmetic):
    """Bounds that are not widened after a step (the chain does that), only numbers worked out beside one.

    Parameters
    ----------
    beside : places that √d_k, or a query scaled before its product, may have been rounded to; None: never rounded
    """

    def __init__(self, beside: int | None) -> None:
        super().__init__(None)
        self._beside = None if beside is None else IntervalArithmetic(beside)

    def aside(self, value: Interval) -> Interval:
        return value if self._beside is None else self._beside.settle(value)


#: Rounding errors of one operation that a program may make, in units of its precision; four, because its order of
#: operations may be another one (a scale applied earlier, a fused product).
_ERRORS = 4

#: The same for a power such as b^(2i/d), of which programs take logarithms: an error there grows with its size, which
#: is about 13 for the largest of the usual bases.
_ERRORS_OF_POWER = 8

#: Kinds of floats that round what was given, and matrices whose rounded numbers are remembered.
_KINDS = (np.float16, np.float32)
_MOST_HELD = 64


class ProgramBounds(Bounds):
    """Bounds of what a program comes to that calculates in floats of a given precision.

    Every operation is widened by its a-priori error (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed.,
    sections 2.2 and 3.1), which holds for every order of adding.
    """

    def __init__(self, eps: float) -> None:
        super().__init__(None)
        self._unit = _ERRORS * eps
        #: Below this a float of that precision is rounded to multiples of a fixed size, or to zero.
        self._least = 1e-37 if eps > 1e-8 else 1e-300
        if eps > 1e-4:
            self._least = 1e-7
        self._kind = next((kind for kind in _KINDS if np.finfo(kind).eps == eps), np.float64)
        self._held: dict[int, tuple[Matrix, Interval]] = {}

    def _widened(self, value: Interval, size: Any, operations: int = 1) -> Interval:
        error = size * (operations * self._unit) + self._least
        exact = (size == 0) | np.isinf(value.lo) & (value.lo == value.hi)
        error = np.where(exact | ~np.isfinite(error), 0.0, error)
        return Interval(value.lo - error, value.hi + error)

    def matmul(self, a: Interval, b: Interval) -> Interval:
        return self._widened(super().matmul(a, b), np.matmul(_size(a), _size(b)), a.shape[-1] + 1)

    def sum(self, a: Interval, axis: int | tuple[int, ...]) -> Interval:
        axes = (axis,) if isinstance(axis, int) else axis
        size = np.add.reduce(_size(a), axes, keepdims=True)
        return self._widened(super().sum(a, axis), size, math.prod(a.shape[i] for i in axes))

    def scatter_add(self, a: Interval, rows: Any, count: int) -> Interval:
        return self._widened(
            super().scatter_add(a, rows, count), FLOATING.scatter_add(_size(a), rows, count), a.shape[-2]
        )

    def add(self, a: Interval, b: Interval) -> Interval:
        total = super().add(a, b)
        return self._widened(total, _size(total))

    def subtract(self, a: Interval, b: Interval) -> Interval:
        return self.add(a, Interval(-b.hi, -b.lo))

    def multiply(self, a: Interval, b: Interval) -> Interval:
        product = super().multiply(a, b)
        return self._widened(product, _size(product))

    def divide(self, a: Interval, b: Interval) -> Interval:
        share = super().divide(a, b)
        return self._widened(share, _size(share))

    def enter(self, matrix: Matrix) -> Interval:
        """What was given, as a program holds it: the nearest float of its precision, or what it works out an expression to."""
        # The matrix is kept with its bounds, so its id is not reused.
        known = self._held.get(builtin_id(matrix))
        if known is None:
            if len(self._held) >= _MOST_HELD:
                self._held.clear()
            known = self._held[builtin_id(matrix)] = matrix, self._as_held(matrix, super().enter(matrix))
        return known[1]

    def _as_held(self, matrix: Matrix, entered: Interval) -> Interval:
        errors = np.where(matrix.values.astype(self._kind) == matrix.values, 0.0, 1.0)
        if matrix.entries is not None:
            powers = [_has_power(entry) for entry in matrix.entries]
            errors = np.where(np.reshape(powers, matrix.shape), _ERRORS_OF_POWER, errors)
        return self._widened(entered, _size(entered) * errors) if errors.any() else entered

    def exp(self, a: Interval) -> Interval:
        power = super().exp(a)
        return self._widened(power, _size(power))

    def log(self, a: Interval) -> Interval:
        found = super().log(a)
        return self._widened(found, _size(found))

    def sqrt(self, a: Interval) -> Interval:
        root = super().sqrt(a)
        return self._widened(root, _size(root))

    def tanh(self, a: Interval) -> Interval:
        bent = super().tanh(a)
        return self._widened(bent, _size(bent))

    def erf(self, a: Interval) -> Interval:
        share = super().erf(a)
        return self._widened(share, _size(share))

    def sin(self, a: Interval) -> Interval:
        wave = super().sin(a)
        return self._widened(wave, _size(wave))

    def cos(self, a: Interval) -> Interval:
        wave = super().cos(a)
        return self._widened(wave, _size(wave))


def _has_power(entry: Entry) -> bool:
    return entry[0] == "^" or any(_has_power(part) for part in entry[1:] if isinstance(part, tuple))


def _size(a: Interval) -> Any:
    return np.maximum(np.abs(a.lo), np.abs(a.hi))


class Memory:
    """Results by the very numbers they came from: in a class most sheets write the same numbers down.

    Every entry keeps the numbers of its key alive, so that their identity stays theirs.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._known: dict[tuple[Any, ...], tuple[Any, Any]] = {}

    def get(self, key: tuple[Any, ...], kept: Any, make: Callable[[], Any]) -> Any:
        """What is known under `key`, which `kept` keeps alive, or else what `make` makes."""
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= self.most:
                self._known.clear()
            found = self._known[key] = kept, make()
        return found[1]


class Chain:
    """Numbers of one evaluation.

    Parameters
    ----------
    followers : for every id, the steps that are computed from it, directly or not
    settle : what is carried on after a step, by its id
    base : the chain that this one shares all numbers with that do not follow from what is given or swapped in it
    memory : results of other chains, for small matrices
    """

    def __init__(
        self,
        graph: Graph,
        arithmetic: IntervalArithmetic,
        followers: Mapping[str, frozenset[str]],
        settle: Settle,
        base: Chain | None = None,
        memory: Memory | None = None,
    ) -> None:
        self.memory = memory
        self.graph = graph
        self.arithmetic = arithmetic
        self.followers = followers
        self.settle = settle
        self.base = base
        self.given: dict[str, Value] = {}
        self.swap: dict[str, Swap] = {} if base is None else base.swap
        self._own: set[str] = set()
        #: A chain of right numbers, and what may come out differently than in the right one a chain stems from.
        self.is_right = False
        self._apart: set[str] = set() if base is None or base.is_right else set(base._apart)
        self._raw: dict[str, Value] = {}
        self._carried: dict[str, Value] = {}
        self._middle: dict[str, tuple[Value, Any]] = {}
        self._tries: Tries | None = None
        self._units: dict[str, float] = {} if base is None else base._units
        self.sides: Sides = Sides() if base is None else base.sides

    def fork(self, given: Mapping[str, Value] | None = None, swap: Mapping[str, Swap] | None = None) -> Chain:
        """The same chain with some steps given or swapped."""
        fork = Chain(self.graph, self.arithmetic, self.followers, self.settle, self, self.memory)
        if swap:
            fork.swap = {**self.swap, **swap}
            for id in swap:
                fork._own |= self.followers[id]
                fork._own.add(id)
            fork._apart |= fork._own
        for id, value in (given or {}).items():
            fork.give(id, value)
        return fork

    def give(self, id: str, value: Value) -> None:
        """Go on with this number for a step, before anything that follows from it is asked for."""
        self.given[id] = value
        self._tries = None
        self._own |= self.followers[id]
        if not self.is_right:
            self._apart |= self.followers[id]

    def take(self, id: str, carried: Value) -> None:
        """Go on with what an unwritten step was found to be carried on as: it follows from what is given."""
        self._carried[id] = carried

    def take_raw(self, id: str, raw: Value) -> None:
        """Take over what a step was found to come out as from what is given."""
        self._raw[id] = raw

    def is_given_here(self, id: str) -> bool:
        """Whether a number was given for this step in this very chain."""
        return id in self.given

    def is_apart(self, id: str) -> bool:
        """Whether a step may come out differently than in the right calculation this chain stems from."""
        return id in self._apart

    def raw(self, id: str) -> Value:
        """What a step comes out as, before anybody rounds it."""
        found = self._raw.get(id)
        if found is None:
            if self.base is not None and id not in self._own:
                return self.base.raw(id)
            computed = self._computed(id)
            found = self._raw[id] = computed if id in self.graph.inputs else tightened(self, id, computed)
        return found

    def is_own(self, id: str) -> bool:
        """Whether a step follows from something that is given or swapped in this chain itself."""
        return id in self._own

    def given_for(self, id: str) -> Value | None:
        """The number that stands in for a step, here or in a chain below; None where there is none."""
        chain: Chain | None = self
        while chain is not None:
            if id in chain.given:
                return chain.given[id]
            chain = chain.base
        return None

    def tries(self) -> Tries:
        """The calculation of this chain made a few times over, rounded at random."""
        if self._tries is None:
            self._tries = Tries(self)
        return self._tries

    def unit(self, id: str) -> float:
        """The last place that an unwritten number of this step may have been rounded to."""
        found = self._units.get(id)
        if found is None:
            found = self._units[id] = unit_of(self, id)
        return found

    def carried(self, id: str) -> Value:
        """What the next steps work with: the given number, or the result and what rounding can do to it."""
        found = self.given.get(id)
        if found is not None:
            return found
        found = self._carried.get(id)
        if found is None:
            if self.base is not None and (id not in self._own or self._is_given_below(id)):
                return self.base.carried(id)
            found = self.raw(id) if id in self.graph.inputs else self.settled(id, self.raw(id))
            self._carried[id] = found
        return found

    def settled(self, id: str, raw: Value) -> Value:
        """A step that was not written down, and what rounding it can do."""
        if self.memory is None:
            return self.settle(id, raw)
        return self.memory.get(("settled", id, builtin_id(raw)), raw, lambda: self.settle(id, raw))

    def is_given(self, id: str) -> bool:
        """Whether a number stands in for this step."""
        return id in self.given or self._is_given_below(id)

    def middle(self, id: str) -> Any:
        """The middle of what is carried on, as plain numbers."""
        value = self.carried(id)
        if value.lo is value.hi:
            return value.lo
        known = self._middle.get(id)
        if known is None or known[0] is not value:
            same = value.lo == value.hi
            known = self._middle[id] = value, np.where(same, value.lo, (value.lo + value.hi) / 2)
        return known[1]

    def _is_given_below(self, id: str) -> bool:
        """Whether a chain below holds a given number for this step, which stands whatever leads to it."""
        base = self.base
        while base is not None:
            if id in base.given:
                return True
            base = base.base
        return False

    def done(self, doing: Step | Swap) -> Value:
        """What a step, or another op in its place, comes out as from the numbers of this chain."""
        values = [self.carried(i) for i in doing.inputs]
        if self.memory is None:
            return doing.op.compute(self.arithmetic, *values, **doing.params)
        return self.memory.get(
            (builtin_id(doing), *map(builtin_id, values)),
            (doing, values),
            lambda: doing.op.compute(self.arithmetic, *values, **doing.params),
        )

    def _computed(self, id: str) -> Any:
        if id in self.graph.inputs:
            return self.arithmetic.enter(self.graph.inputs[id].matrix)
        return self.done(self.swap.get(id) or self.graph.steps[id])


builtin_id = id


def followers(graph: Graph) -> dict[str, frozenset[str]]:
    """For every id, the steps that are computed from it, directly or not."""
    found: dict[str, set[str]] = {id: set() for id in (*graph.inputs, *graph.steps)}
    for step in reversed(list(graph.steps.values())):
        sources = step.inputs if step.closed is None else (*step.inputs, step.closed.source)
        for source in sources:
            found[source] |= {step.id} | found[step.id]
    # A swapped step may read inputs its own op does not; it then depends on everything before it.
    return {id: frozenset(steps) for id, steps in found.items()}
