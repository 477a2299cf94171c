"""How large an exact number is, to many digits: to tell which of two is larger, or whether one is positive.

SymPy's own `N` works out every part anew wherever it stands, and asks each of them how many digits it needs; in the
numbers of a calculation the same parts stand in many places.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, TypeAlias

#: A number of SymPy, or of mpmath: libraries without types, loaded only where somebody asks for exact results.
Number: TypeAlias = Any

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
        self._known: dict[Number, Number] = {}

    def of(self, number: Number) -> Number:
        """The number, to a few dozen digits; 0 where nothing else is certain."""
        value = self._value(number)
        return self._context.mpf(0) if abs(value) < _LEAST else value

    def _value(self, number: Number) -> Number:
        known = self._known.get(number)
        if known is None:
            known = self._known[number] = self._worked_out(number)
        return known

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
