"""A matrix as somebody wrote it: its numbers, how many decimals each was written with, and the expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from attncli.core.record import Record

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    FloatArray: TypeAlias = NDArray[np.float64]
    BoolArray: TypeAlias = NDArray[np.bool_]
else:
    FloatArray = BoolArray = Any

#: One entry as written: ("num", "0.33") or an operator over further entries: ("/", a, b), ("sqrt", a), ("exp", a) …
Expression: TypeAlias = "tuple[str | Expression, ...]"

#: `Matrix.decimals` where a cell was not written as a plain decimal number (√2/2, 1/3, ∞): it is exact.
EXACT = -1


class Matrix(Record):
    """Numbers with what was written.

    Parameters
    ----------
    values : float64 array, any shape; −∞ and +∞ allowed, NaN only in a blank cell
    decimals : int array of the same shape: decimals each cell was written with, or `EXACT`; None: full float64
    entries : the expressions cell by cell in row-major order; None: the float64 values themselves
    blank : bool array of the same shape: cells left open (answers only); None: no blanks
    text : what was typed, where its commas may have been meant as decimal commas
    """

    values: FloatArray
    decimals: NDArray[np.int_] | None = None
    entries: tuple[Expression, ...] | None = None
    blank: BoolArray | None = None
    text: str | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def each(self) -> Iterator[Expression]:
        """The expression of every cell, row by row."""
        if self.entries is not None:
            return iter(self.entries)
        return (("num", repr(float(value))) for value in self.values.flat)

    def transposed(self) -> Matrix:
        """The last two axes exchanged."""
        return self if self.values.ndim < 2 else self._moved(lambda cells: cells.swapaxes(-1, -2))

    def reshaped(self, shape: tuple[int, ...]) -> Matrix:
        """The same cells in rows and heads of another size."""
        return self if shape == self.shape else self._moved(lambda cells: cells.reshape(shape))

    def _moved(self, move: Callable[[NDArray[Any]], NDArray[Any]]) -> Matrix:
        """The cells in other places, with everything that is known of each."""
        order = move(np.arange(self.values.size).reshape(self.shape))
        return Matrix(
            move(self.values),
            None if self.decimals is None else move(self.decimals),
            None if self.entries is None else tuple(self.entries[i] for i in order.flat),
            None if self.blank is None else move(self.blank),
        )

    def negated(self) -> Matrix:
        """Every number with the other sign."""
        entries = None if self.entries is None else tuple(("neg", entry) for entry in self.entries)
        return Matrix(-self.values, self.decimals, entries)


def as_matrix(values: ArrayLike) -> Matrix:
    """A matrix of plain float64 numbers; a single float has no axes."""
    if type(values) is float and (values or math.copysign(1.0, values) > 0):
        return _number(values)
    return Matrix(np.asarray(values, dtype=np.float64))


@lru_cache(maxsize=1024)
def _number(value: float) -> Matrix:
    """A number that a formula needs again and again, made once."""
    values = np.asarray(value)
    values.flags.writeable = False
    return Matrix(values)
