"""Further witnesses: learners who mix their habits from line to line and from cell to cell, drawn with a fixed seed.

Asked only where the plain habits do not show a number, before giving up on it.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from attncli.arithmetic import Value
from attncli.arithmetic.floating import Floating
from attncli.core.graph import Step, Swap
from attncli.core.matrix import BoolArray, FloatArray
from attncli.marking.chain import Chain

#: Learners drawn.
LEARNERS = 48
#: What a computer may have lost, in units.
_LOST = 1e-9
#: Share of the learners who read a written number off the page.
_FROM_PAGE = 0.5
#: Shares of the habits in a cell: all digits, the places asked, one more, two more, cut off.
_HABITS = (0.5, 0.25, 0.1, 0.05, 0.1)


class Mixed(Chain):
    """The chain of learners who mix their habits, all sheets beside one another for each of them.

    Parameters
    ----------
    base : the full chain of the sheets
    rows : which of its sheets
    kept : by step, which sheets always go on with what they wrote (a wrong line is nothing else)
    """

    def __init__(self, base: Chain, rows: Any, kept: Mapping[str, BoolArray]) -> None:
        super().__init__(base.setting, base.habit, base, np.tile(rows, LEARNERS))
        self.count = len(rows)
        self.kept = {id: np.tile(which[rows], LEARNERS) for id, which in kept.items()}
        self._own = set(base.graph.steps)

    def done(self, id: str, doing: Step | Swap) -> Value:
        return self.with_operands(id, doing, [self._going_on_to(i, id) for i in doing.inputs])

    def _going_on_to(self, id: str, consumer: str) -> Value:
        """What the learners put in for a step where another one needs it: one may read it off the page here and use the
        calculator's digits there."""
        if id in self.graph.inputs:
            return self.raw(id)
        given = self._given_below(id)
        shape = self.raw(id).shape[1:]
        worked_out = _settled(self.raw(id), _plan(id, consumer, shape, self.setting.places[id]), self.count)
        if given is None:
            return worked_out
        values, where = given
        from_page = np.repeat(_draws(f"page {id}", consumer, shape) < _FROM_PAGE, self.count, axis=0)
        kept = self.kept.get(id)
        if kept is not None:
            from_page = from_page | kept.reshape(-1, *(1,) * len(shape))
        return np.where(from_page if where is None else from_page & where, values, worked_out)

    def arithmetic(self, id: str) -> Any:
        return _Beside(_plan("√", id, (), self.setting.places[id]), self.count, self.setting.axes[id])


class _Beside(Floating):
    """Floats whose numbers beside a step (√d_k) are rounded by some of the learners."""

    def __init__(self, plan: tuple[Any, Any, Any], count: int, axes: int) -> None:
        self.plan, self.count, self.axes = plan, count, axes

    def round_intermediate(self, value: Value) -> Value:
        if np.ndim(value):
            return value
        return _settled(np.asarray(value), self.plan, self.count).reshape(-1, *(1,) * self.axes)


def _settled(value: Value, plan: tuple[Any, Any, Any], count: int) -> Value:
    """Each cell by its learner's habit."""
    as_it_is, power, added = (np.repeat(one, count, axis=0) if count > 1 else one for one in plan)
    with np.errstate(invalid="ignore"):
        units = np.floor(np.abs(value) * power + added) / power
    return np.where(as_it_is | ~np.isfinite(value), value, np.copysign(units, value))


@lru_cache(maxsize=2048)
def _plan(id: str, consumer: str, shape: Sequence[int], decimals: int) -> tuple[Any, Any, Any]:
    """(learners, …) which cells keep all digits, the units they are counted in, and what rounding adds (cutting: nothing,
    but what the computer has lost)."""
    draw = _draws(id, consumer, shape)
    edges = np.cumsum(_HABITS)
    more = (draw >= edges[1]) * 1.0 + ((draw >= edges[2]) & (draw < edges[3])) * 1.0 - (draw >= edges[3]) * 1.0
    return draw < edges[0], 10.0 ** (decimals + more), np.where(draw >= edges[3], _LOST, 0.5 + _LOST)


@lru_cache(maxsize=2048)
def _draws(id: str, consumer: str, shape: Sequence[int]) -> FloatArray:
    """(learners, …) what decides each cell's habit. A third of the learners keep one habit along a line wherever it is
    used, a third where it is used once, a third none."""
    line = np.random.Generator(np.random.PCG64(zlib.crc32(id.encode())))
    use = np.random.Generator(np.random.PCG64(zlib.crc32(f"{id} for {consumer}".encode())))
    ones = tuple(1 for _ in shape)
    found = use.random((LEARNERS, *shape))
    found[::3] = line.random((len(found[::3]), *ones))
    found[1::3] = use.random((len(found[1::3]), *ones))
    found.flags.writeable = False
    return found


def hull(base: Chain, rows: Any, id: str, kept: Mapping[str, BoolArray]) -> tuple[FloatArray, FloatArray]:
    """The smallest and the largest number that mixed learners come to, for some sheets: two arrays (sheets, …)."""
    chain = Mixed(base, rows, kept)
    with np.errstate(all="ignore"):
        reached = np.broadcast_to(chain.raw(id), (LEARNERS * len(rows), *chain.raw(id).shape[1:]))
        stack = reached.reshape(LEARNERS, len(rows), *reached.shape[1:])
        finite = np.isfinite(stack)
        return np.where(finite, stack, np.inf).min(0), np.where(finite, stack, -np.inf).max(0)
