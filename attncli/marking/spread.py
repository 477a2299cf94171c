"""What rounding really does to a step far from what was written: tried out, where bounds have grown past all use.

Bounds forget that two numbers come from the same one, so behind many steps that nobody wrote down they hold nearly
everything, and a wrong number would pass for a right one. There the calculation is made a few times over with every
number rounded or not, or moved at random as far as rounding could have moved it. What a right calculation comes to lies close around
those results: with N results of a spread s, the band kept is 1.5 s wider on both sides, eight standard deviations
where many roundings add up, and more than all there is where it is one.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from attncli.arithmetic import Value
from attncli.arithmetic.floating import Floating
from attncli.arithmetic.interval import Interval
from attncli.matrix import BoolArray, FloatArray

if TYPE_CHECKING:
    from attncli.core.graph import Step, Swap
    from attncli.marking.chain import Chain

#: How often the calculation is made; the first time nothing is moved.
TIMES = 24
#: Bounds wider than so many units of the last written place are looked into.
LOOSE = 40.0
#: How much wider than the results the band is, in their spread.
_BEYOND = 1.5
#: Numbers at random are taken from so much more than the bounds, and what lies beyond from the ends: one in three or four.
_AT_ENDS = 1.4
#: Bounds so many times wider than the band come from a division by nearly nothing.
_SINGULAR = 1000.0
#: Ops that divide by a root: the mean square of a small gradient is 0.00 on the page.
_BY_A_ROOT = frozenset({"adam_update"})
#: Ops of which it is remembered whether their tries can be worked out side by side.
_MOST_KNOWN = 20_000


builtin_id = id


class Wobbling(Floating):
    """Floats whose numbers beside a step (√d_k) are moved as far as rounding could have moved them.

    Attributes
    ----------
    shares : how far each of the tries moves them, or one number for a single try
    unit : the last place that they may have been rounded to
    axes : of the step's results; with several tries, how many axes come behind theirs
    """

    def __init__(self, shares: FloatArray) -> None:
        self.shares = shares
        self.unit = 0.0
        self.axes = 0

    def aside(self, value: Value) -> Value:
        shares = self.shares.reshape(-1, *(1,) * self.axes) if self.shares.ndim else self.shares
        return value + self.unit / 2 * shares


#: What a step comes out as in every try, along a leading axis; not alone: False where all tries are the same and it
#: is there once.
Results: TypeAlias = "tuple[FloatArray, bool]"


class Sides:
    """Which ops give the right results for all tries side by side, found out once for operands of a shape."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], tuple[Step | Swap, bool]] = {}
        shares = np.array([float(share) for share in _noise("√", ())])
        self._all = Wobbling(shares)
        self._single = [Wobbling(np.asarray(share)) for share in shares]

    def computed(self, doing: Step | Swap, operands: Sequence[Results], unit: float) -> Results:
        """What an op comes to in every try."""
        # The op is kept with what is known of it, so its id is not reused.
        key = (builtin_id(doing), *((stacked, value.shape) for value, stacked in operands))
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[key] = doing, self._agree(doing, operands, unit)
        return self._together(doing, operands, unit) if known[1] else self._one_by_one(doing, operands, unit)

    def _together(self, doing: Step | Swap, operands: Sequence[Results], unit: float) -> Results:
        axes = max((value.ndim - stacked for value, stacked in operands), default=0)
        self._all.unit, self._all.axes = unit, axes
        values = [
            value.reshape(TIMES, *(1,) * (axes + 1 - value.ndim), *value.shape[1:]) if stacked else value
            for value, stacked in operands
        ]
        result = doing.op.compute(self._all, *values, **doing.params)
        return result, result.ndim > axes and len(result) == TIMES and any(stacked for _, stacked in operands)

    def _one_by_one(self, doing: Step | Swap, operands: Sequence[Results], unit: float) -> Results:
        results = [self._at(doing, operands, unit, k) for k in range(TIMES)]
        return np.stack(results), True

    def _at(self, doing: Step | Swap, operands: Sequence[Results], unit: float, k: int) -> FloatArray:
        arithmetic = self._single[k]
        arithmetic.unit = unit
        values = [value[k] if stacked else value for value, stacked in operands]
        result: FloatArray = doing.op.compute(arithmetic, *values, **doing.params)
        return result

    def _agree(self, doing: Step | Swap, operands: Sequence[Results], unit: float) -> bool:
        """Whether all tries at once come to the same as the first and the last one by themselves.

        With heads on the way, tries may be taken for heads.
        """
        alone = self._at(doing, operands, unit, 0), self._at(doing, operands, unit, -1)
        try:
            together, stacked = self._together(doing, operands, unit)
        except (ValueError, IndexError):
            return False
        ends = (together[0], together[-1]) if stacked else (together, together)
        return all(
            one.shape == other.shape and np.allclose(one, other, rtol=1e-9, atol=1e-12, equal_nan=True)
            for one, other in zip(ends, alone, strict=True)
        )


class Tries:
    """The results of a chain's steps, each worked out `TIMES` times, when they are asked for.

    Parameters
    ----------
    chain : whose numbers are tried
    """

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self._raw: dict[str, Results] = {}
        self._carried: dict[str, Results] = {}

    def raw(self, id: str) -> Results:
        """What a step comes out as."""
        found = self._raw.get(id)
        if found is None:
            chain = self.chain
            if chain.base is not None and not chain.is_own(id):
                return chain.base.tries().raw(id)
            found = self._raw[id] = self._computed(id)
        return found

    def _computed(self, id: str) -> Results:
        chain = self.chain
        if id in chain.graph.inputs:
            return chain.graph.inputs[id].matrix.values, False
        doing = chain.swap.get(id) or chain.graph.steps[id]
        operands = [self.carried(source) for source in doing.inputs]
        with np.errstate(all="ignore"):
            return chain.sides.computed(doing, operands, chain.unit(id))

    def carried(self, id: str) -> Results:
        """What the next steps work with: moved within what was written, or within what rounding can do."""
        found = self._carried.get(id)
        if found is None:
            chain = self.chain
            given = chain.given_for(id)
            if given is not None:
                found = _within(given, id), True
            elif id in chain.graph.inputs:
                found = self.raw(id)
            elif chain.base is not None and not chain.is_own(id):
                found = chain.base.tries().carried(id)
            else:
                found = _moved(self.raw(id), id, chain.unit(id))
            self._carried[id] = found
        return found


def tightened(chain: Chain, id: str, bounds: Interval) -> Interval:
    """The bounds of a step, cut down to what rounding really does where they are too wide to say anything."""
    unit = chain.unit(id)
    if not loose(bounds, unit).any() or _is_known_from(chain, id):
        return bounds
    results, stacked = chain.tries().raw(id)
    results = results if stacked else results[None]
    if results.shape[1:] != bounds.lo.shape:
        return bounds
    with np.errstate(all="ignore"):
        low, high = results.min(0), results.max(0)
        beyond = _BEYOND * (high - low) + unit
        band = high - low + 2 * beyond
        # Bounds of one step from tight operands are not that much wider, unless a divisor may be rounded to nearly 0:
        # then a few tries do not show everything that can happen.
        good = np.isfinite(results).all(0) & (bounds.hi - bounds.lo <= _SINGULAR * band)
        lo = np.where(good, np.maximum(bounds.lo, low - beyond), bounds.lo)
        hi = np.where(good, np.minimum(bounds.hi, high + beyond), bounds.hi)
    return Interval(lo, hi)


def _is_known_from(chain: Chain, id: str) -> bool:
    """Whether the bounds of a step forget little: it is done as it should be with numbers that were all given, or
    divides by a root that rounding may bring to nothing, of which a few tries would not show everything."""
    step = chain.graph.steps[id]
    if step.op.name in _BY_A_ROOT:
        return True
    return id not in chain.swap and all(chain.is_given(one) or one in chain.graph.inputs for one in step.inputs)


def unit_of(chain: Chain, id: str) -> float:
    """The last place that an unwritten number of this step may have been rounded to; 0 where nobody rounds."""
    third = np.full((1, 1), 1 / 3)
    settled = chain.settle(id, Interval(third, third))
    # Rounding moves a third by a third of a unit, at any number of places.
    moved = float(np.maximum(settled.hi - third, third - settled.lo)[0, 0])
    return 3.0 * moved if moved > 1e-17 else 0.0


def loose(bounds: Interval, unit: float) -> BoolArray:
    """Which bounds are too wide to say anything; what is −∞ for certain is not."""
    if not unit:
        return np.zeros(bounds.lo.shape, dtype=np.bool_)
    with np.errstate(invalid="ignore"):
        wide: BoolArray = ~(bounds.hi - bounds.lo <= LOOSE * unit) & (bounds.lo != bounds.hi)
    return wide


def _moved(results: Results, id: str, unit: float) -> Results:
    """What is carried on instead of a result: in every other try anything that rounding could reach, else what it does.

    The second try rounds everything, as one does on paper. A number that is 0 for certain, like a hidden weight, stays so.
    """
    if not unit:
        return results
    value, stacked = results
    value = value if stacked else np.broadcast_to(value, (TIMES, *value.shape))
    noise = _noise(id, value.shape[1:])
    moved = value.copy()
    even, odd = value[2::2], value[1::2]
    moved[2::2] = np.where(even == 0, even, even + unit / 2 * noise[2::2])
    rounded = np.sign(odd) * np.floor(np.abs(odd) / unit + 0.5) * unit
    moved[1::2] = np.where(noise[1::2] > 0, rounded, odd)
    moved[1] = rounded[0]
    return moved, True


def _within(bounds: Interval, id: str) -> FloatArray:
    """Numbers within bounds: the middle first, then at random, now and then at an end (a 0 that something is divided by)."""
    same = bounds.lo == bounds.hi
    middle = np.where(same, bounds.lo, (bounds.lo + bounds.hi) / 2)
    half = np.where(same, 0.0, (bounds.hi - bounds.lo) / 2)
    noise = np.clip(_AT_ENDS * _noise(id, bounds.lo.shape), -1.0, 1.0)
    numbers: FloatArray = middle + half * noise
    return numbers


@lru_cache(maxsize=4096)
def _noise(id: str, shape: tuple[int, ...]) -> Any:
    """For every try numbers from −1 to 1, the same for the same step; 0 the first time."""
    random = np.random.default_rng(zlib.crc32(id.encode()))
    noise = random.uniform(-1.0, 1.0, (TIMES, *shape))
    noise[0] = 0.0
    noise.flags.writeable = False
    return noise
