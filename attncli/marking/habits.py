"""The habits by which people and programs carry numbers on: each makes a *witness*, one right calculation in plain numbers.

A person writes a line, rounded or cut off, and goes on with what stands on the page, with more digits than that, or with
all that the calculator holds. A program goes on with floats of some precision, added up in some order.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.arithmetic.floating import FLOATING, Floating
from attncli.arithmetic.hand import Hand, truncate_decimal
from attncli.core.matrix import Matrix
from attncli.core.record import Record

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

    def _is_held(self, values: Value) -> Any:
        """Whether a float is the number itself, so that nothing was rounded: whole numbers and halves are."""
        with np.errstate(invalid="ignore"):
            return np.round(values * 64) == values * 64

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
    how : what a right number is called that this habit shows: "full" or "carried"
    more : places kept beyond those asked for; None: all digits
    ties : where a tie goes, "away" or "even"; "cut": what is left is cut off
    """

    how: str
    more: int | None = None
    ties: str = "away"

    def arithmetic(self, decimals: int) -> Arithmetic:
        """The arithmetic of this habit where so many places are asked for."""
        if self.more is None:
            return FLOATING
        places = max(0, decimals + self.more)
        return CutOff(places) if self.ties == "cut" else ByHand(places, self.ties)


FULL = Habit("full")
ROUNDED = Habit("carried", 0)

_CUT = Habit("carried", 0, "cut")

#: Of a person who goes on with what the calculator holds, or with so many places, whatever stands on the page.
BY_HEAD = (
    FULL,
    ROUNDED,
    Habit("carried", 0, "even"),
    Habit("carried", 1),
    Habit("carried", 2),
    Habit("carried", 3),
    _CUT,
    Habit("carried", 1, "cut"),
)

#: What becomes of the lines in between where a person goes on with what was written: some of these.
FROM_THE_PAGE = (FULL, ROUNDED, _CUT)

#: Of a person who rounds before the places asked for: right for what was carried, and wrong all the same.
TOO_EARLY = tuple(Habit("carried", -fewer, ties) for fewer in (1, 2) for ties in ("away", "cut"))


class Program(Record):
    """A program's way: floats of one kind, added up in one order; or (`noise`) with errors of that size."""

    how: str
    kind: Any
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
    orders = [Program("carried", kind, True), *(Program("carried", kind, noise=seed) for seed in range(1, _NOISES + 1))]
    full = Program("full", np.float64)
    return (full, *orders) if kind is np.float64 else (full, Program("carried", kind), *orders)
