"""Float64, as NumPy computes it. The functions are NumPy's own, so that nothing is paid for the abstraction."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from attncli.arithmetic import Arithmetic, Indices, Value
from attncli.core.matrix import BoolArray, FloatArray, Matrix

#: Cells of large results, in all, from which they are written into one block of memory.
_LARGE = 1 << 20
#: Results smaller than this (1 MB) are left to NumPy, whose memory comes from what earlier runs gave back.
_SMALL = 1 << 17
#: As an array, which NumPy need not make one of each time.
_HIDDEN = np.array(-np.inf)
#: NumPy has no error function; C's is within one unit in the last place.
_ERF = np.frompyfunc(math.erf, 1, 1)


class Floating:
    """IEEE double precision; −∞ is a number like any other, 0/0 is NaN."""

    name = "floating"

    add = staticmethod(np.add)
    subtract = staticmethod(np.subtract)
    multiply = staticmethod(np.multiply)
    divide = staticmethod(np.divide)
    exp = staticmethod(np.exp)
    log = staticmethod(np.log)
    sqrt = staticmethod(np.sqrt)
    tanh = staticmethod(np.tanh)
    sin = staticmethod(np.sin)
    cos = staticmethod(np.cos)
    where = staticmethod(np.where)
    concatenate = staticmethod(np.concatenate)

    def constant(self, matrix: Matrix) -> Value:
        return matrix.values

    def round_step(self, value: Value) -> Value:
        return value

    def matmul(self, a: Value, b: Value) -> Value:
        # Of two small matrices `dot` comes to the same in half the time.
        return a.dot(b) if a.ndim == b.ndim == 2 else np.matmul(a, b)

    def round_intermediate(self, value: Value) -> Value:
        return value

    def context(self) -> AbstractContextManager[None]:
        return np.errstate(all="ignore")

    def erf(self, a: Value) -> Value:
        return np.asarray(_ERF(a), dtype=np.float64)

    def positive(self, a: Value) -> Value:
        return np.maximum(a, 0.0)

    def is_positive(self, a: Value) -> Value:
        return np.heaviside(a, 0.0)

    def swapaxes(self, a: Value, first: int, second: int) -> Value:
        return a.swapaxes(first, second)  # np.swapaxes comes to the same by four times as long a way

    def max(self, a: Value, axis: int) -> Value:
        return np.maximum.reduce(a, axis, keepdims=True)

    def sum(self, a: Value, axis: int | tuple[int, ...]) -> Value:
        return np.add.reduce(a, axis, keepdims=True)

    def take(self, a: Value, rows: Indices) -> Value:
        return a.take(rows, -2) if rows.ndim == 1 else np.take_along_axis(a, rows[..., None], -2)

    def scatter_add(self, a: Value, rows: Indices, count: int) -> Value:
        place: Any
        if rows.ndim == 1:
            out = np.zeros((*a.shape[:-2], count, a.shape[-1]), dtype=a.dtype)
            place = (..., rows, slice(None))
        else:
            out = np.zeros((max(len(a), len(rows)), count, a.shape[-1]), dtype=a.dtype)
            place = (np.arange(len(out))[:, None], rows)
        np.add.at(out, place, a)
        return out

    def slice(self, a: Value, axis: int, start: int, stop: int) -> Value:
        index = [slice(None)] * a.ndim
        index[axis] = slice(start, stop)
        return a[tuple(index)]

    def reshape(self, a: Value, shape: tuple[int, ...]) -> Value:
        return a.reshape(shape)

    def repeat(self, a: Value, count: int, axis: int) -> Value:
        return np.repeat(a, count, axis)

    def hidden(self, a: Value) -> BoolArray:
        marks: BoolArray = np.equal(a, _HIDDEN)
        return marks

    def plain(self, a: Value) -> FloatArray:
        values: FloatArray = a
        return values


def _recorded(function: Callable[..., Value]) -> Any:
    """An operation entry by entry that writes into the block."""

    def method(self: Recording, *operands: Value) -> Value:
        return function(*operands, out=self._place(np.broadcast_shapes(*(a.shape for a in operands))))

    return method


class Recording(Floating):
    """Float64 that writes its results side by side into one block.

    A recorded run keeps every matrix, so each would be fresh memory; in one block the system hands
    that out in large pages, which costs a quarter of the time (measured at 12 matrices of 512×512).
    """

    def __init__(self, cells: int) -> None:
        self._block = np.empty(cells, dtype=np.float64)
        self._used = 0

    def _place(self, shape: tuple[int, ...]) -> FloatArray | None:
        size = math.prod(shape)
        if size < _SMALL or self._used + size > self._block.size:
            return None
        place = self._block[self._used : self._used + size].reshape(shape)
        self._used += size
        return place

    def matmul(self, a: Value, b: Value) -> Value:
        heads = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        return np.matmul(a, b, out=self._place((*heads, a.shape[-2], b.shape[-1])))

    add = _recorded(np.add)
    subtract = _recorded(np.subtract)
    multiply = _recorded(np.multiply)
    divide = _recorded(np.divide)
    exp = _recorded(np.exp)


FLOATING = Floating()


def recording(arithmetic: Arithmetic, cells: Sequence[int]) -> Arithmetic:
    """The arithmetic, of large results in float64 one that is ready to keep so many cells of each."""
    if arithmetic is not FLOATING or max(cells, default=0) < _SMALL:
        return arithmetic
    large = sum(size for size in cells if size >= _SMALL)
    return Recording(large) if large >= _LARGE else arithmetic
