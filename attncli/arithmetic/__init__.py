"""The number systems a graph can be evaluated in.

One small set of functions, four meanings: `floating` (float64), `hand` (rounds after every
step), `interval` (guaranteed bounds) and `exact` (SymPy). An op is written once, with these; so what it calculates can
be written down as well (`Written` in `attncli.core.terms`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from attncli.core.matrix import BoolArray, FloatArray, Matrix

#: An array of one number system: float64 array, Interval, object array of SymPy numbers.
Value: TypeAlias = Any
#: A number of SymPy, or of mpmath: libraries without types, loaded only where somebody asks for exact results.
Number: TypeAlias = Any
if TYPE_CHECKING:
    from numpy.typing import NDArray

    Indices: TypeAlias = NDArray[np.int_]
else:
    Indices = Any


class Arithmetic(Protocol):
    """What an op may do with numbers. Arrays are row-major, tokens as rows, a head axis first."""

    name: str

    def constant(self, matrix: Matrix) -> Value:
        """The written numbers as numbers of this system."""

    def round_step(self, value: Value) -> Value:
        """What is carried on after a step: itself, rounded, or widened to what rounding can do."""

    def round_intermediate(self, value: Value) -> Value:
        """A number worked out beside a step (√d_k), which a learner may or may not have rounded."""

    def context(self) -> AbstractContextManager[None]:
        """Entered once around an evaluation."""

    def matmul(self, a: Value, b: Value, /) -> Value: ...
    def add(self, a: Value, b: Value, /) -> Value: ...
    def subtract(self, a: Value, b: Value, /) -> Value: ...
    def multiply(self, a: Value, b: Value, /) -> Value: ...
    def divide(self, a: Value, b: Value, /) -> Value: ...
    def exp(self, a: Value, /) -> Value: ...
    def log(self, a: Value, /) -> Value:
        """The natural logarithm; of 0 it is −∞."""

    def sqrt(self, a: Value, /) -> Value: ...
    def tanh(self, a: Value, /) -> Value: ...
    def erf(self, a: Value, /) -> Value: ...
    def sin(self, a: Value, /) -> Value: ...
    def cos(self, a: Value, /) -> Value: ...

    def positive(self, a: Value, /) -> Value:
        """a where it is positive, else 0."""

    def is_positive(self, a: Value, /) -> Value:
        """1 where a is positive, else 0."""

    def max(self, a: Value, axis: int, /) -> Value:
        """The maximum along `axis`, which is kept with length 1."""

    def sum(self, a: Value, axis: int | tuple[int, ...], /) -> Value:
        """The sum along `axis`, which is kept with length 1."""

    def where(self, condition: BoolArray, a: Value, b: Value, /) -> Value: ...
    def swapaxes(self, a: Value, first: int, second: int, /) -> Value: ...
    def take(self, a: Value, rows: Indices, /) -> Value:
        """The rows of `a` named by `rows`, from the axis before the last: (n), or (sheet n) where a leads with sheets."""

    def scatter_add(self, a: Value, rows: Indices, count: int, /) -> Value:
        """`count` rows of zeros to which row i of `a` is added at row `rows[i]`: (n), or (sheet n)."""

    def concatenate(self, parts: Sequence[Value], axis: int, /) -> Value: ...
    def slice(self, a: Value, axis: int, start: int, stop: int, /) -> Value: ...
    def repeat(self, a: Value, count: int, axis: int, /) -> Value:
        """Every entry along `axis` `count` times in a row: a, a, b, b."""

    def reshape(self, a: Value, shape: tuple[int, ...], /) -> Value: ...
    def hidden(self, a: Value, /) -> BoolArray:
        """Where a value is −∞."""

    def plain(self, a: Value, /) -> FloatArray:
        """The values as float64, of bounds their middle: for ids, and for marks of 0 and 1."""
