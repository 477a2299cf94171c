"""The numbers of many sheets side by side, by one habit of carrying them on; each worked out when it is asked for.

Every value has a leading axis for the sheets, of length 1 where all of them come to the same. A fork shares whatever
does not follow from what is different in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Params, Step, Swap
from attncli.core.matrix import BoolArray
from attncli.core.message import NoSuchRow
from attncli.marking.habits import Habit, Program
from attncli.mistakes.routes import softmaxes

#: What goes wrong where operands do not fit the other way round, or an id has no row.
MISFITS = (ValueError, IndexError, RecursionError, NoSuchRow)


class Lineage(Mapping[str, frozenset[str]]):
    """What all chains of one graph share: what follows from what, and the places asked for.

    Parameters
    ----------
    places : decimals asked for, by step
    """

    def __init__(self, graph: Graph, places: Callable[[str], int]) -> None:
        self.graph = graph
        self.places = {step_id: places(step_id) for step_id in (*graph.inputs, *graph.steps)}
        self.axes = {step_id: len(graph.shape(step_id)) for step_id in (*graph.inputs, *graph.steps)}
        self.largest = max((math.prod(graph.shape(step_id)) for step_id in self.axes), default=1)
        self._after = followers(graph)
        self.softmaxes = tuple(softmaxes(graph))

    def __getitem__(self, step_id: str) -> frozenset[str]:
        return self._after[step_id]

    def __iter__(self) -> Any:
        return iter(self._after)

    def __len__(self) -> int:
        return len(self._after)

    def after(self, ids: Iterable[str]) -> frozenset[str]:
        """All that follows from these steps."""
        return frozenset[str]().union(*(self._after[step_id] for step_id in ids))


def followers(graph: Graph) -> dict[str, frozenset[str]]:
    """For every id, the steps that are computed from it, directly or not."""
    found: dict[str, set[str]] = {step_id: set() for step_id in (*graph.inputs, *graph.steps)}
    for step in reversed(list(graph.steps.values())):
        sources = step.inputs if step.composite is None else (*step.inputs, step.composite.source)
        for source in sources:
            found[source] |= {step.id} | found[step.id]
    return {step_id: frozenset(steps) for step_id, steps in found.items()}


class Chain:
    """The numbers of one habit.

    Parameters
    ----------
    base : the chain that this one shares with whatever does not follow from what is given or swapped here
    rows : which sheets of the base; None: all of them
    """

    def __init__(
        self,
        lineage: Lineage,
        habit: Habit | Program,
        base: Chain | None = None,
        rows: Any = None,
    ) -> None:
        self.lineage = lineage
        self.graph = lineage.graph
        self.habit = habit
        self.base = base
        self.rows = rows
        self.swap: dict[str, Swap] = {} if base is None else base.swap
        self._arithmetics: dict[int, Arithmetic] = {} if base is None else base._arithmetics
        self._given: dict[str, tuple[Value, Any]] = {}
        self._free: frozenset[str] = frozenset() if base is None else base._free
        self._own: set[str] = set()
        self._raw: dict[str, Value] = {}
        self._carried: dict[str, Value] = {}

    def fork(
        self, swap: Mapping[str, Swap] | None = None, rows: Any = None, free: frozenset[str] = frozenset()
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

    def give(self, step_id: str, values: Value, where: Any = None) -> None:
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
            shared = self.base is not None and step_id not in self._own
            found = self._raw[step_id] = (
                self._of_base(self.base.raw(step_id)) if shared and self.base else self._computed(step_id)
            )
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
        if given is None:
            return (
                self.raw(step_id)
                if step_id in self.graph.inputs
                else self.arithmetic(step_id).round_step(self.raw(step_id))
            )
        values, where = given
        if where is None:
            return values
        return np.where(where, values, self.arithmetic(step_id).round_step(self.raw(step_id)))

    def _given_below(self, step_id: str) -> tuple[Value, Any] | None:
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

    def is_apart(self, step_id: str) -> bool:
        """Whether a step may come out differently here than in the base."""
        return step_id in self._own

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


def of_sheets(values: Sequence[Value], rows: Any) -> list[Value]:
    """The same numbers of some of the sheets; what all of them share stays as it is."""
    return [value if len(value) == 1 else value[rows] for value in values]


class Family:
    """One calculation by several habits: its witnesses."""

    def __init__(self, chains: Sequence[Chain]) -> None:
        self.chains = list(chains)

    def fork(
        self, swap: Mapping[str, Swap] | None = None, rows: Any = None, free: frozenset[str] = frozenset()
    ) -> Family:
        return Family([chain.fork(swap, rows, free) for chain in self.chains])

    def give(self, step_id: str, values: Value, where: BoolArray | None = None) -> None:
        for chain in self.chains:
            chain.give(step_id, values, where)

    def raws(self, step_id: str) -> list[Value]:
        """What the habits come to at a step; those whose operands do not fit one another come to nothing."""
        found = []
        for chain in self.chains:
            try:
                found.append(chain.raw(step_id))
            except MISFITS:
                continue
        return found

    @property
    def swap(self) -> Mapping[str, Swap]:
        return self.chains[0].swap


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
