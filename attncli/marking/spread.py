"""What rounding really does to a step far from what was written: tried out, where bounds have grown past all use.

Bounds forget that two numbers come from the same one, so behind many steps that nobody wrote down they hold nearly
everything, and a wrong number would pass for a right one. There the calculation is made a few times over with every
number rounded or not, or moved at random as far as rounding could have moved it. What a right calculation comes to lies close around
those results: with N results of a spread s, the band kept is 1.5 s wider on both sides, eight standard deviations
where many roundings add up, and more than all there is where it is one.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.arithmetic import Value
from attncli.arithmetic.floating import Floating
from attncli.arithmetic.interval import Interval
from attncli.matrix import BoolArray, FloatArray

if TYPE_CHECKING:
    from attncli.marking.chain import Chain

#: How often the calculation is made; the first time nothing is moved.
TIMES = 24
#: Bounds wider than so many units of the last written place are looked into.
LOOSE = 40.0
#: How much wider than the results the band is, in their spread.
_BEYOND = 1.5
#: Bounds so many times wider than the band come from a division by nearly nothing.
_SINGULAR = 1000.0


class Wobbling(Floating):
    """Floats whose numbers beside a step (√d_k) are moved as far as rounding could have moved them."""

    def __init__(self, share: float) -> None:
        self._share = share
        self.unit = 0.0

    def aside(self, value: Value) -> Value:
        return value + self.unit / 2 * self._share


class Tries:
    """The results of a chain's steps, each worked out `TIMES` times, when they are asked for.

    Parameters
    ----------
    chain : whose numbers are tried
    """

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self._raw: dict[str, list[FloatArray]] = {}
        self._carried: dict[str, list[FloatArray]] = {}
        self._wobbling = [Wobbling(float(share)) for share in _noise("√", ())]

    def raw(self, id: str) -> list[FloatArray]:
        """What a step comes out as."""
        found = self._raw.get(id)
        if found is None:
            chain = self.chain
            if chain.base is not None and not chain.is_own(id):
                return chain.base.tries().raw(id)
            found = self._raw[id] = self._computed(id)
        return found

    def _computed(self, id: str) -> list[FloatArray]:
        chain = self.chain
        if id in chain.graph.inputs:
            return [chain.graph.inputs[id].matrix.values] * TIMES
        doing = chain.swap.get(id) or chain.graph.steps[id]
        operands = [self.carried(source) for source in doing.inputs]
        unit, results = chain.unit(id), []
        with np.errstate(all="ignore"):
            for k, arithmetic in enumerate(self._wobbling):
                arithmetic.unit = unit
                results.append(doing.op.compute(arithmetic, *(values[k] for values in operands), **doing.params))
        return results

    def carried(self, id: str) -> list[FloatArray]:
        """What the next steps work with: moved within what was written, or within what rounding can do."""
        found = self._carried.get(id)
        if found is None:
            chain = self.chain
            given = chain.given_for(id)
            if given is not None:
                found = _within(given, id)
            elif id in chain.graph.inputs:
                found = self.raw(id)
            else:
                results = self.raw(id)
                noise, unit = _noise(id, results[0].shape), chain.unit(id)
                found = [_moved(value, noise[k], unit, k) for k, value in enumerate(results)]
            self._carried[id] = found
        return found


def tightened(chain: Chain, id: str, bounds: Interval) -> Interval:
    """The bounds of a step, cut down to what rounding really does where they are too wide to say anything."""
    unit = chain.unit(id)
    if not loose(bounds, unit).any():
        return bounds
    results = np.stack(chain.tries().raw(id))
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


def _moved(value: FloatArray, noise: FloatArray, unit: float, number: int) -> FloatArray:
    """What is carried on instead of a result: in every other try anything that rounding could reach, else what it does.

    The second try rounds everything, as one does on paper. A number that is 0 for certain, like a hidden weight, stays so.
    """
    if not unit or number == 0:
        return value
    if number % 2 == 0:
        return np.where(value == 0, value, value + unit / 2 * noise)
    rounded = np.sign(value) * np.floor(np.abs(value) / unit + 0.5) * unit
    return np.where((noise > 0) | (number == 1), rounded, value)


def _within(bounds: Interval, id: str) -> list[FloatArray]:
    """Numbers within bounds: the middle first, then at random."""
    noise = _noise(id, bounds.lo.shape)
    middle = np.where(bounds.lo == bounds.hi, bounds.lo, (bounds.lo + bounds.hi) / 2)
    half = np.where(bounds.lo == bounds.hi, 0.0, (bounds.hi - bounds.lo) / 2)
    return [np.asarray(middle + half * noise[k]) for k in range(TIMES)]


@lru_cache(maxsize=4096)
def _noise(id: str, shape: tuple[int, ...]) -> Any:
    """For every try numbers from −1 to 1, the same for the same step; 0 the first time."""
    random = np.random.default_rng(zlib.crc32(id.encode()))
    noise = random.uniform(-1.0, 1.0, (TIMES, *shape))
    noise[0] = 0.0
    noise.flags.writeable = False
    return noise
