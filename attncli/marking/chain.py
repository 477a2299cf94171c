"""The numbers of many sheets side by side, by one habit of carrying them on; each worked out when it is asked for.

A person writes a line, rounded or cut off, and goes on with what stands on the page, with more digits than that, or with
all that the calculator holds. A program goes on with floats of some precision, added up in some order. Each such habit
makes a *witness*, one right calculation in plain numbers.

Every value has a leading axis for the sheets, of length 1 where all of them come to the same. A fork shares whatever
does not follow from what is different in it.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.arithmetic.floating import FLOATING, Floating
from attncli.arithmetic.hand import Hand, truncate_decimal
from attncli.core.graph import Graph, Params, Step, Swap
from attncli.core.matrix import BoolArray, Matrix
from attncli.core.message import NoSuchRow
from attncli.core.record import Record
from attncli.marking.judge import Rows
from attncli.mistakes.routes import softmaxes

#: What goes wrong where operands do not fit the other way round, or an id has no row.
MISFITS = (ValueError, IndexError, RecursionError, NoSuchRow)

T = TypeVar("T")

#: Errors of one operation of a program, in units of its precision; and how many such programs are drawn.
_ERRORS = 4.0
#: In float16 libraries work each function out in float32 and round once: half a unit, and one for another order.
_ERRORS_OF_HALF = 1.0
_COARSE = float(np.finfo(np.float16).eps)
_NOISES = 6


class CutOff(Floating):
    """Float64 cut off after `decimals` places after every step."""

    name = "cut off"

    def __init__(self, decimals: int) -> None:
        self.decimals = decimals

    def round_step(self, value: Value) -> Value:
        return truncate_decimal(value, self.decimals)

    round_intermediate = round_step


class ByHand(Hand):
    """Hand arithmetic that rounds numbers beside a step (√d_k) too."""

    def round_intermediate(self, value: Value) -> Value:
        return self.round_step(value)


class Precision(Floating):
    """Floats of a program's precision, in NumPy's order of adding or from the other end."""

    name = "program"

    def __init__(self, kind: Any, backwards: bool = False) -> None:
        self.kind = kind
        self.backwards = backwards

    def constant(self, matrix: Matrix) -> Value:
        return matrix.values.astype(self.kind)

    def round_step(self, value: Value) -> Value:
        return value.astype(self.kind)

    def round_intermediate(self, value: Value) -> Value:
        return np.asarray(value, dtype=self.kind)

    def matmul(self, a: Value, b: Value) -> Value:
        if self.backwards:
            a, b = a[..., ::-1], b[..., ::-1, :]
        return np.matmul(a, b)

    def sum(self, a: Value, axis: int | tuple[int, ...]) -> Value:
        if self.backwards:
            a = np.flip(a, axis)
        return np.add.reduce(a, axis, keepdims=True)


class Noisy(Floating):
    """Float64 in which every number is off by as much as a program of some precision may be, drawn anew for each.

    Another order of operations (a scale applied earlier, a power by logarithms, sums in blocks) makes other errors of
    that size: stochastic arithmetic (Vignes, A stochastic arithmetic for reliable scientific computation, 1993).
    """

    name = "program"

    def __init__(self, eps: float, seed: int) -> None:
        self.eps = eps
        self.seed = seed

    def constant(self, matrix: Matrix) -> Value:
        return np.where(self._is_held(matrix.values), matrix.values, self.round_step(matrix.values))

    def _is_held(self, values: Value) -> BoolArray:
        """Whether a float is the number itself, so that nothing was rounded: whole numbers and halves are."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.round(values * 64) == values * 64)

    def round_step(self, value: Value) -> Value:
        value = np.asarray(value, dtype=np.float64)
        draw = np.random.Generator(np.random.PCG64(zlib.crc32(value.tobytes()) ^ self.seed)).uniform(-1, 1, value.shape)
        moved, errors = np.isfinite(value), _ERRORS
        if self.eps >= _COARSE:  # what is exact there is exact in every order, and a unit is a thousandth of it
            moved, errors = moved & ~self._is_held(value), _ERRORS_OF_HALF
        return np.where(moved, value * (1 + errors * self.eps * draw), value)

    round_intermediate = round_step


class Habit(Record):
    """One way to carry numbers on from line to line.

    Parameters
    ----------
    more : places kept beyond those asked for; None: all digits
    ties : where a tie goes, "away" or "even"; "cut": what is left is cut off
    by_head : nobody who goes on with what stands on the page carries on the lines in between so
    """

    more: int | None = None
    ties: str = "away"
    by_head: bool = False

    def arithmetic(self, decimals: int) -> Arithmetic:
        """The arithmetic of this habit where so many places are asked for."""
        if self.more is None:
            return FLOATING
        places = max(0, decimals + self.more)
        return CutOff(places) if self.ties == "cut" else ByHand(places, self.ties)


FULL = Habit()
ROUNDED = Habit(0)

#: Of a person who goes on with what the calculator holds, or with so many places, whatever stands on the page.
BY_HEAD = (
    FULL,
    ROUNDED,
    Habit(0, "even", by_head=True),
    Habit(1, by_head=True),
    Habit(2, by_head=True),
    Habit(3, by_head=True),
    Habit(0, "cut"),
    Habit(1, "cut", by_head=True),
)

#: Of a person who rounds before the places asked for: right for what was carried, and wrong all the same.
TOO_EARLY = tuple(Habit(-fewer, ties) for fewer in (1, 2) for ties in ("away", "cut"))


class Program(Habit):
    """A program's way: floats of one kind, added up in one order; or (`noise`) with errors of that size."""

    kind: Any = np.float64
    backwards: bool = False
    noise: int = 0

    def arithmetic(self, decimals: int) -> Arithmetic:
        if self.noise:
            return Noisy(float(np.finfo(self.kind).eps), self.noise)
        return FLOATING if self.kind is np.float64 and not self.backwards else Precision(self.kind, self.backwards)


_KINDS: tuple[Any, ...] = (np.float16, np.float32)


def programs(eps: float) -> tuple[Program, ...]:
    """The calculation in floats of this relative precision, in either order of adding and with errors of its size; and in
    float64."""
    kind = next((kind for kind in _KINDS if float(np.finfo(kind).eps) == eps), np.float64)
    orders = [Program(kind=kind, backwards=True), *(Program(kind=kind, noise=seed) for seed in range(1, _NOISES + 1))]
    return (Program(), *orders) if kind is np.float64 else (Program(), Program(kind=kind), *orders)


class Lineage:
    """What all chains of one graph share: what follows from what, and the places asked for.

    Parameters
    ----------
    places : decimals asked for, by step
    """

    def __init__(self, graph: Graph, places: Callable[[str], int]) -> None:
        self.graph = graph
        self.shapes = {step_id: graph.shape(step_id) for step_id in (*graph.inputs, *graph.steps)}
        self.places = {step_id: places(step_id) for step_id in self.shapes}
        self.largest = max(map(math.prod, self.shapes.values()), default=1)
        self.softmaxes = tuple(softmaxes(graph))
        after: dict[str, set[str]] = {step_id: set() for step_id in self.shapes}
        for step in reversed(list(graph.steps.values())):
            for source in step.inputs if step.composite is None else (*step.inputs, step.composite.source):
                after[source] |= {step.id} | after[step.id]
        self._after = {step_id: frozenset(steps) for step_id, steps in after.items()}

    def __getitem__(self, step_id: str) -> frozenset[str]:
        """The steps that are computed from one, directly or not."""
        return self._after[step_id]

    def after(self, ids: Iterable[str]) -> frozenset[str]:
        """All that follows from these steps."""
        return frozenset[str]().union(*(self._after[step_id] for step_id in ids))

    def steps_between(self, wrong: Iterable[str], step_id: str, open_steps: Sequence[str]) -> int:
        """How many steps have to be worked out again where these are done otherwise."""
        after = self.after(wrong)
        return 1 + sum(step in after for step in open_steps)

    def open_steps(self, step_id: str, written: Iterable[str]) -> list[str]:
        """Unwritten steps that lead to this one without passing a written one."""
        closed = set(written)
        found, waiting = set[str](), [step_id]
        while waiting:
            step = self.graph.steps.get(waiting.pop())
            for source in () if step is None else step.inputs:
                if source in self.graph.steps and source not in found and source not in closed:
                    found.add(source)
                    waiting.append(source)
        return [step for step in self.graph.steps if step in found]


class Chain:
    """The numbers of one habit.

    Parameters
    ----------
    base : the chain that this one shares with whatever does not follow from what is given or swapped here
    rows : which sheets of the base; None: all of them
    """

    def __init__(self, lineage: Lineage, habit: Habit, base: Chain | None = None, rows: Rows | None = None) -> None:
        self.lineage = lineage
        self.graph = lineage.graph
        self.habit = habit
        self.base = base
        self.rows = rows
        self.swap: dict[str, Swap] = {} if base is None else base.swap
        self._arithmetics: dict[int, Arithmetic] = {} if base is None else base._arithmetics
        self._given: dict[str, tuple[Value, BoolArray | None]] = {}
        self._free: frozenset[str] = frozenset() if base is None else base._free
        self._own: set[str] = set()
        self._raw: dict[str, Value] = {}
        self._carried: dict[str, Value] = {}

    def fork(
        self, swap: Mapping[str, Swap] | None = None, rows: Rows | None = None, free: frozenset[str] = frozenset()
    ) -> Chain:
        """The same chain with some steps done otherwise.

        Parameters
        ----------
        rows : for some of its sheets only (an index; one may stand there twice)
        free : steps that are carried on as they come out, whatever was given for them
        """
        fork = Chain(self.lineage, self.habit, self, rows)
        if swap:
            fork.swap = {**self.swap, **swap}
            fork._own |= {*swap, *self.lineage.after(swap)}
        if free:
            fork._free |= free
            fork._own |= {*free, *self.lineage.after(free)}
        return fork

    def give(self, step_id: str, values: Value, where: BoolArray | None = None) -> None:
        """Go on with these numbers for a step (where `where` says so), before what follows from it is asked for."""
        self._given[step_id] = values, where
        self._carried.pop(step_id, None)
        self._own |= self.lineage[step_id]

    def arithmetic(self, step_id: str) -> Arithmetic:
        """The arithmetic of this habit at one step."""
        places = self.lineage.places[step_id]
        found = self._arithmetics.get(places)
        if found is None:
            found = self._arithmetics[places] = self.habit.arithmetic(places)
        return found

    def raw(self, step_id: str) -> Value:
        """What a step comes out as, before it is rounded."""
        found = self._raw.get(step_id)
        if found is None:
            shared = self.base if step_id not in self._own else None
            found = self._computed(step_id) if shared is None else self._of_base(shared.raw(step_id))
            self._raw[step_id] = found
        return found

    def carried(self, step_id: str) -> Value:
        """What the next steps work with."""
        found = self._carried.get(step_id)
        if found is None:
            found = self._carried[step_id] = self._going_on(step_id)
        return found

    def _going_on(self, step_id: str) -> Value:
        given = self._given.get(step_id)
        if given is None:
            if self.base is not None and step_id not in self._own:
                return self._of_base(self.base.carried(step_id))
            given = self._given_below(step_id)
        if given is None and step_id in self.graph.inputs:
            return self.raw(step_id)
        values, where = given or (None, np.False_)
        if where is None:
            return values
        worked_out = self.arithmetic(step_id).round_step(self.raw(step_id))
        return worked_out if given is None else np.where(where, values, worked_out)

    def _given_below(self, step_id: str) -> tuple[Value, BoolArray | None] | None:
        """What a chain below goes on with for a step, which stands whatever leads to it here."""
        if self.base is None or step_id in self._free:
            return None
        given = self.base._given.get(step_id) or self.base._given_below(step_id)
        if given is None or self.rows is None:
            return given
        values, where = given
        return self._of_base(values), None if where is None else self._of_base(where)

    def _of_base(self, value: Value) -> Value:
        return value if self.rows is None or len(value) == 1 else value[self.rows]

    def done(self, step_id: str, doing: Step | Swap) -> Value:
        """What a step, or something else in its place, comes out as from the numbers of this chain."""
        return self.with_operands(step_id, doing, [self.carried(i) for i in doing.inputs])

    def with_operands(self, step_id: str, doing: Step | Swap, operands: Sequence[Value]) -> Value:
        """What a step comes out as from these operands, each with the leading axis."""
        own = [value.ndim - 1 for value in operands]
        return side_by_side(doing.op.compute, self.arithmetic(step_id), operands, own, doing.params)

    def _computed(self, step_id: str) -> Value:
        if step_id in self.graph.inputs:
            return self.arithmetic(step_id).constant(self.graph.inputs[step_id].matrix)[None]
        return self.done(step_id, self.swap.get(step_id) or self.graph.steps[step_id])


def fitting(work: Callable[..., T], *args: Any) -> T | None:
    """What comes out of that; None where operands do not fit one another."""
    try:
        return work(*args)
    except MISFITS:
        return None


def of_sheets(values: Sequence[Value], rows: Rows) -> list[Value]:
    """The same numbers of some of the sheets; what all of them share stays as it is."""
    return [value if len(value) == 1 else value[rows] for value in values]


class Family:
    """One calculation by several habits: its witnesses, the first of them with all digits."""

    def __init__(self, chains: Sequence[Chain]) -> None:
        self.chains = list(chains)

    @property
    def full(self) -> Chain:
        return self.chains[0]

    def fork(
        self, swap: Mapping[str, Swap] | None = None, rows: Rows | None = None, free: frozenset[str] = frozenset()
    ) -> Family:
        return Family([chain.fork(swap, rows, free) for chain in self.chains])

    def of(self, rows: Rows) -> Family:
        """The same of some of the sheets."""
        return self.fork(rows=rows)

    def from_page(self) -> Family:
        """The same for those who go on with what stands on their page: nothing yet."""
        return Family([chain.fork() for chain in self.chains if not chain.habit.by_head])

    def give(self, step_id: str, values: Value, where: BoolArray) -> None:
        """Go on with these numbers for a step, where `where` says so."""
        some = None if where.all() else where
        for chain in self.chains:
            chain.give(step_id, values, some)

    def raws(self, step_id: str) -> list[Value]:
        """What the habits come to at a step; those whose operands do not fit one another come to nothing."""
        return [value for value in (fitting(chain.raw, step_id) for chain in self.chains) if value is not None]


def side_by_side(
    compute: Callable[..., Value],
    xp: Arithmetic,
    operands: Sequence[Value],
    own_ndims: Sequence[int],
    params: Params,
) -> Value:
    """What `compute` gives for every sheet, one behind the other: (sheet, …the result's own axes).

    Parameters
    ----------
    operands : each with a leading axis of sheets, of length 1 where all share it
    own_ndims : how many axes each has without that; where it is fewer than the most, axes of length 1 are put
        between the sheets and its own, so that a mask of all heads (sheet query key) does not meet the heads of scores
        (sheet head query key)
    """
    if not operands:
        shared = compute(xp, **params)
        return xp.reshape(shared, (1, *shared.shape))
    widest = max(own_ndims)
    return compute(
        xp, *[_wide(xp, value, own, widest) for value, own in zip(operands, own_ndims, strict=True)], **params
    )


def _wide(xp: Arithmetic, value: Value, own: int, widest: int) -> Value:
    if own == widest:
        return value
    return xp.reshape(value, (value.shape[0], *(1,) * (widest - own), *value.shape[1:]))
