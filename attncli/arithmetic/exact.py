"""Exact numbers: fractions, roots and powers of e instead of decimals. Needs SymPy (the extra `exact`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType

import numpy as np

from attncli.arithmetic import Number, Value
from attncli.arithmetic.expression import FLOATS, Operations, evaluate
from attncli.arithmetic.floating import Floating
from attncli.arithmetic.shorten import Shortener, length
from attncli.core.matrix import BoolArray, FloatArray, Matrix
from attncli.core.message import N_, InputError, LimitError, Message

#: Exact expressions grow with every step; beyond these sizes they say nothing to a reader and take minutes.
MAX_CELLS = 400
MAX_OPERATIONS = 500
#: Operations of all results together: some seconds of work, the same limit on every machine.
MAX_TOGETHER = 250_000
MAX_POWER = 1000
MAX_DIGITS = 100
MAX_SECONDS = 20.0
#: Operations of a number beyond which SymPy is not asked whether a root or a power of it can be written otherwise: it
#: would work the number out again and again to find its sign.
_LONG = 60

_WHAT_TO_DO = N_("Leave out --exact, or use a smaller example with rounder numbers.")


class Exact(Floating):
    """Object arrays of SymPy numbers; what only moves numbers about is as for floats."""

    name = "exact"

    def __init__(self) -> None:
        try:
            import sympy
        except ModuleNotFoundError:
            raise InputError(
                "Exact results need SymPy, which is not installed. Install it with: pip install 'attncli[exact]'"
            ) from None
        self.sympy = sympy
        self._operations: Operations = {
            **FLOATS,
            "num": self._decimal,
            "inf": lambda: sympy.oo,
            "e": lambda: sympy.E,
            "pi": lambda: sympy.pi,
            "sqrt": sympy.sqrt,
            "exp": sympy.exp,
            "^": self._power,
        }
        self._settled: dict[Number, Number] = {}
        self._endless = (sympy.oo, -sympy.oo, sympy.zoo, sympy.nan)
        self._digits = Digits(sympy)
        self._shortener = Shortener(sympy)
        self._until = float("inf")
        self._together = 0
        half, zero, one = sympy.Rational(1, 2), sympy.Integer(0), sympy.Integer(1)
        of_one = {
            "exp": lambda number: sympy.exp(number, evaluate=length(number) <= _LONG),
            "sqrt": lambda number: sympy.Pow(number, half, evaluate=length(number) <= _LONG),
            "positive": lambda number: zero if self._size(number) <= 0 else number,
            "is_positive": lambda number: one if self._size(number) > 0 else zero,
            "log": lambda number: -sympy.oo if number == 0 else sympy.log(number),
            **{name: getattr(sympy, name) for name in ("tanh", "erf", "sin", "cos")},
        }
        of_arrays = {name: getattr(np, name) for name in ("matmul", "add", "subtract", "multiply")}
        of_arrays["divide"] = np.frompyfunc(self._quotient, 2, 1)
        for name, function in {**of_arrays, **{name: np.frompyfunc(f, 1, 1) for name, f in of_one.items()}}.items():
            setattr(self, name, self._giving_array(function))

    def _giving_array(self, function: Callable[..., Value]) -> Callable[..., Value]:
        """The function with an object array for its result, also where NumPy would unwrap a single number."""
        return lambda *operands: np.asarray(function(*operands), dtype=object)

    def constant(self, matrix: Matrix) -> Value:
        _check_cells(matrix.values.size)
        out = np.empty(matrix.values.size, dtype=object)
        for i, entry in enumerate(matrix.each()):
            self._check_time()
            out[i] = self._short(evaluate(entry, self._operations))
        return out.reshape(matrix.shape)

    def _decimal(self, text: str) -> Number:
        if "inf" in text:
            return -self.sympy.oo if text.startswith("-") else self.sympy.oo
        # 1e-999999999 is 0 as a float64, and a fraction of a billion digits.
        digits, _, power = text.lower().partition("e")
        if len(digits) + abs(int(power or 0)) > MAX_DIGITS:
            raise _too_many_digits(text)
        return self.sympy.Rational(text)

    def _power(self, base: Number, power: Number) -> Number:
        """base^power, refused before it is multiplied out where it would have too many digits."""
        if abs(power) > MAX_POWER:
            raise LimitError(
                "The power {power} is too large for an exact result; the limit is {limit}."
                " Write the number out, or leave out --exact.",
                power=str(power)[:40],
                limit=MAX_POWER,
            )
        digits = max((_digits(part) for part in base.atoms(self.sympy.Rational)), default=0)
        if power.is_Rational and digits * abs(power) > MAX_DIGITS and base not in (0, 1, -1):
            raise _too_many_digits(f"{base}^{power}" if base.is_Integer else f"({base})^{power}")
        return base**power

    def round_step(self, value: Value) -> Value:
        """Each number in a short form, so that √2/2 and e^{-1} look like that."""
        _check_cells(value.size)
        out = np.empty(value.shape, dtype=object)
        for index in np.ndindex(value.shape):
            self._check_time()
            out[index] = self._short(value[index])
        return out

    def _short(self, number: Number) -> Number:
        short = self._settled.get(number)
        if short is None:
            number = self.sympy.sympify(number)
            self._check_size(number)
            short = number if number.is_Rational or number.has(*self._endless) else self._shortener.short(number)
            self._settled[number] = self._settled[short] = short
        return short

    def _check_size(self, number: Number) -> None:
        waiting, operations = [number], 0
        while waiting:
            part = waiting.pop()
            operations += 1
            if part.is_Rational and _digits(part) > MAX_DIGITS:
                raise _too_many_digits("")
            if operations > MAX_OPERATIONS:
                raise LimitError(
                    "An exact result has grown past {limit} operations, too long to read."
                    " Leave out --exact, show fewer steps with --step, or use rounder numbers.",
                    limit=MAX_OPERATIONS,
                )
            waiting.extend(part.args)

        self._together += operations
        if self._together > MAX_TOGETHER:
            raise LimitError(
                "The exact results have grown past {limit} operations altogether, too many to read."
                " Leave out --exact, show fewer steps with --step, or use rounder numbers.",
                limit=f"{MAX_TOGETHER:,}",
            )

    def _check_time(self) -> None:
        if time.monotonic() > self._until:
            raise LimitError(
                "The exact results have taken more than {seconds} seconds. {fix}",
                seconds=f"{MAX_SECONDS:g}",
                fix=Message(_WHAT_TO_DO),
            )

    @contextmanager
    def context(self) -> Iterator[None]:
        self._until = time.monotonic() + MAX_SECONDS
        try:
            # NumPy reports floating-point flags that SymPy's own work on objects has raised.
            with np.errstate(all="ignore"):
                yield
        finally:
            self._until = float("inf")

    def max(self, a: Value, axis: int) -> Value:
        """The largest, decided by 30 digits; equal to 30 digits is equal."""
        rows = np.moveaxis(a, axis, -1)
        out = np.empty((*rows.shape[:-1], 1), dtype=object)
        for index in np.ndindex(rows.shape[:-1]):
            out[(*index, 0)] = max(rows[index], key=self._size)
        return np.moveaxis(out, -1, axis)

    def _quotient(self, a: Number, b: Number) -> Number:
        """a/b; over 0, as for floats, an infinity with the sign of a, or no number: SymPy's own has no sign."""
        if b != 0:
            return a / b
        if a == 0 or a is self.sympy.nan:
            return self.sympy.nan
        return -self.sympy.oo if self._size(a) < 0 else self.sympy.oo

    def _size(self, number: Number) -> Number:
        self._check_time()
        return self._digits.of(number)

    def hidden(self, a: Value) -> BoolArray:
        return np.asarray(a == -self.sympy.oo, dtype=np.bool_)

    def plain(self, a: Value) -> FloatArray:
        return np.asarray(a, dtype=np.float64)


def _check_cells(cells: int) -> None:
    if cells > MAX_CELLS:
        raise LimitError(
            "Exact results are for small matrices: this one has {cells} cells, the limit is {limit}. {fix}",
            cells=cells,
            limit=MAX_CELLS,
            fix=Message(_WHAT_TO_DO),
        )


def _too_many_digits(text: str) -> LimitError:
    if text:
        return LimitError(
            "“{text}” has more than {limit} digits as a fraction, too many for an exact result. {fix}",
            text=text if len(text) <= 40 else text[:37] + "…",
            limit=MAX_DIGITS,
            fix=Message(_WHAT_TO_DO),
        )
    return LimitError(
        "The fractions of an exact result have grown past {limit} digits, too long to read. {fix}",
        limit=MAX_DIGITS,
        fix=Message(_WHAT_TO_DO),
    )


def _digits(number: Number) -> float:
    """Decimal digits of the longer part of a fraction, without writing it out."""
    return float(max(abs(int(number.p)).bit_length(), int(number.q).bit_length()) * 0.30103)


#: Digits that are worked out, and those that count: what is smaller is 0.
WORKED_OUT = 60
_LEAST = 1e-30


class Digits:
    """Real numbers of SymPy as numbers of mpmath; every part is worked out once."""

    def __init__(self, sympy: ModuleType) -> None:
        import mpmath

        self.sympy = sympy
        self._context = mpmath.mp.clone()
        self._context.dps = WORKED_OUT
        self._value = cache(self._worked_out)

    def of(self, number: Number) -> Number:
        """The number, to a few dozen digits; 0 where nothing else is certain."""
        value = self._value(number)
        return self._context.mpf(0) if abs(value) < _LEAST else value

    def _worked_out(self, number: Number) -> Number:
        sympy, mp = self.sympy, self._context
        if number.is_Rational:
            return mp.mpf(int(number.p)) / int(number.q)
        if number in (sympy.oo, -sympy.oo):
            return mp.inf if number == sympy.oo else -mp.inf
        if number in (sympy.nan, sympy.zoo):
            return mp.nan
        if number.is_Add:
            return mp.fsum(self._value(part) for part in number.args)
        if number.is_Mul:
            return mp.fprod(self._value(part) for part in number.args)
        if number.is_Pow:
            return self._value(number.base) ** self._value(number.exp)
        function = getattr(mp, type(number).__name__, None)
        if function is not None and len(number.args) == 1 and isinstance(number, sympy.Function):
            return function(self._value(number.args[0]))
        return mp.mpf(sympy.N(number, WORKED_OUT))
