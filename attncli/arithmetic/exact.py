"""Exact numbers: fractions, roots and powers of e instead of decimals. Needs SymPy (the extra `exact`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from attncli.arithmetic import Arithmetic, Indices, Value
from attncli.arithmetic.floating import FLOATING
from attncli.matrix import BoolArray, Entry, Matrix
from attncli.message import InputError, LimitError

#: Exact expressions grow with every step; beyond these sizes they say nothing to a reader and take minutes.
MAX_CELLS = 400
MAX_OPERATIONS = 4000
MAX_POWER = 1000


class Exact:
    """Object arrays of SymPy numbers."""

    name = "exact"

    def __init__(self) -> None:
        try:
            import sympy
        except ModuleNotFoundError:
            raise InputError(
                "Exact results need SymPy, which is not installed. Install it with: pip install 'attncli[exact]'"
            ) from None
        self.sympy = sympy
        self._settled: dict[Any, Any] = {}
        self.exp = self._each(sympy.exp)
        self.sqrt = self._each(sympy.sqrt)
        self.tanh = self._each(sympy.tanh)

    def _each(self, function: Callable[..., Any]) -> Callable[..., Any]:
        elementwise = np.frompyfunc(function, 1, 1)
        return lambda a: self._array(elementwise(a))

    def _array(self, value: Any) -> Any:
        """An object array, also where NumPy would unwrap a single number."""
        if isinstance(value, np.ndarray):
            return value
        out = np.empty((), dtype=object)
        out[()] = value
        return out

    def enter(self, matrix: Matrix) -> Value:
        if matrix.values.size > MAX_CELLS:
            raise LimitError(
                "Exact results are for small matrices: this one has {cells} cells, the limit is {limit}."
                " Leave out --exact, or use a smaller example.",
                cells=matrix.values.size,
                limit=MAX_CELLS,
            )
        out = np.empty(matrix.values.size, dtype=object)
        for i, entry in enumerate(matrix.each()):
            out[i] = self._number(entry)
        return out.reshape(matrix.shape)

    def _number(self, entry: Entry) -> Any:
        sympy = self.sympy
        kind = entry[0]
        if kind == "num":
            text = str(entry[1])
            if "inf" in text:
                return -sympy.oo if text.startswith("-") else sympy.oo
            return sympy.Rational(text)
        parts = [self._number(part) for part in entry[1:] if isinstance(part, tuple)]
        match kind:
            case "inf":
                return sympy.oo
            case "e":
                return sympy.E
            case "neg":
                return -parts[0]
            case "+":
                return parts[0] + parts[1]
            case "-":
                return parts[0] - parts[1]
            case "*":
                return parts[0] * parts[1]
            case "/":
                return parts[0] / parts[1]
            case "sqrt":
                return sympy.sqrt(parts[0])
            case "exp":
                return sympy.exp(parts[0])
            case "^":
                if abs(parts[1]) > MAX_POWER:
                    raise LimitError(
                        "The power {power} is too large for an exact result; the limit is {limit}."
                        " Write the number out, or leave out --exact.",
                        power=str(parts[1])[:40],
                        limit=MAX_POWER,
                    )
                return parts[0] ** parts[1]
        raise ValueError(f"entry {kind!r}")

    def settle(self, value: Value) -> Value:
        """Each number in a short form, so that √2/2 and e^{-1} look like that."""
        if value.size > MAX_CELLS:
            raise LimitError(
                "Exact results are for small matrices: a step has {cells} cells, the limit is {limit}."
                " Leave out --exact, or use a smaller example.",
                cells=value.size,
                limit=MAX_CELLS,
            )
        out = np.empty(value.shape, dtype=object)
        for index in np.ndindex(value.shape):
            out[index] = self._short(value[index])
        return out

    def _short(self, number: Any) -> Any:
        found = self._settled.get(number)
        if found is not None:
            return found
        sympy = self.sympy
        number = sympy.sympify(number)
        if number.is_Rational or number in (sympy.oo, -sympy.oo):
            return number
        if number.count_ops() > MAX_OPERATIONS:
            raise LimitError(
                "An exact result has grown past {limit} operations, too long to read."
                " Leave out --exact, show fewer steps with --step, or use rounder numbers.",
                limit=MAX_OPERATIONS,
            )
        short = _shortest(sympy, number)
        self._settled[number] = short
        return short

    def aside(self, value: Value) -> Value:
        return value

    def recording(self, cells: int) -> Arithmetic:
        return self

    def context(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def matmul(self, a: Value, b: Value) -> Value:
        return self._array(np.matmul(a, b))

    def add(self, a: Value, b: Value) -> Value:
        return self._array(np.add(a, b))

    def subtract(self, a: Value, b: Value) -> Value:
        return self._array(np.subtract(a, b))

    def multiply(self, a: Value, b: Value) -> Value:
        return self._array(np.multiply(a, b))

    def divide(self, a: Value, b: Value) -> Value:
        return self._array(np.divide(a, b))

    def max(self, a: Value, axis: int) -> Value:
        return np.apply_along_axis(self._largest, axis, a)

    def _largest(self, numbers: Any) -> Any:
        """The largest, decided by 30 digits; equal to 30 digits is equal."""
        out = np.empty(1, dtype=object)
        out[0] = max(numbers, key=lambda number: self.sympy.N(number, 30))
        return out

    def sum(self, a: Value, axis: int | tuple[int, ...]) -> Value:
        return np.add.reduce(a, axis, keepdims=True)

    def where(self, condition: BoolArray, a: Value, b: Value) -> Value:
        return np.where(condition, self._exactly(a), self._exactly(b))

    def _exactly(self, value: Any) -> Any:
        return value if isinstance(value, np.ndarray) else self._array(self.sympy.sympify(value))

    def swapaxes(self, a: Value, first: int, second: int) -> Value:
        return np.swapaxes(a, first, second)

    def take(self, a: Value, rows: Indices) -> Value:
        return FLOATING.take(a, rows)

    def scatter_add(self, a: Value, rows: Indices, count: int) -> Value:
        out = np.full((*a.shape[:-2], count, a.shape[-1]), self.sympy.Integer(0), dtype=object)
        for i, row in enumerate(rows):
            out[..., row, :] = out[..., row, :] + a[..., i, :]
        return out

    def concatenate(self, parts: Sequence[Value], axis: int) -> Value:
        return np.concatenate(parts, axis)

    def slice(self, a: Value, axis: int, start: int, stop: int) -> Value:
        return FLOATING.slice(a, axis, start, stop)

    def repeat(self, a: Value, count: int, axis: int) -> Value:
        return np.repeat(a, count, axis)

    def reshape(self, a: Value, shape: tuple[int, ...]) -> Value:
        return np.reshape(a, shape)

    def hidden(self, a: Value) -> BoolArray:
        return np.asarray(np.equal(a, -self.sympy.oo), dtype=np.bool_)


def _shortest(sympy: Any, number: Any) -> Any:
    """The shortest of a few ways to write `number`, with powers of e rather than hyperbolic functions."""
    ways = [number, sympy.radsimp(number)]
    for way in (sympy.together, sympy.cancel, sympy.powsimp):
        ways.append(way(ways[-1]))
    if number.count_ops() < 60:
        ways.append(sympy.simplify(number.rewrite(sympy.exp)))
    plain = [way for way in ways if not way.has(sympy.functions.elementary.hyperbolic.HyperbolicFunction)]
    return min(plain, key=lambda way: (way.count_ops(), len(str(way)), str(way)))
