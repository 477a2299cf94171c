"""Short forms of exact numbers: fractions of sums of powers of e, with bounded work.

Every number that attention leads to is a sum of terms  c · √n · t · e^x  (c a fraction, n a whole number, t a
product of other irrational numbers such as tanh(1/2), x a number), divided by powers of such sums: the row sums of
softmax. Numerator and denominators are kept apart, as a sum and a set of factors, and a factor is cancelled by
long division where it divides. SymPy's own `simplify` and `cancel` may take minutes; this takes steps that are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from math import gcd, isqrt
from types import ModuleType
from typing import TypeAlias

from attncli.arithmetic import Number

#: SymPy numbers with a fraction in front or above, sorted by their text: an exponent, or factors with their powers.
Parts: TypeAlias = tuple[tuple[Number, Number], ...]
#: What a term is besides its coefficient: (n of √n, other factors with powers, exponent of e), the last two by the
#: number that `_Tables` knows them by, 0 for none. To look up a tuple of fractions takes longer than to multiply them.
Kind: TypeAlias = tuple[int, int, int]
Sum: TypeAlias = dict[Kind, Fraction]

_ONE: Kind = (1, 0, 0)
#: Terms a numerator may have, and products of terms one number may take, before it is left as it is.
MOST_TERMS = 120
MOST_WORK = 4_000
#: A long number is left as it is where multiplying out has made it so many times as long.
_LONG = 100
_MUCH = 1.5


class TooLong(Exception):
    """This number has no short form that is worth looking for."""


@dataclass(slots=True)
class Quotient:
    """A sum over a product of powers of sums: numerator and (factor → power)."""

    above: Sum
    below: dict[frozenset[tuple[Kind, Fraction]], int] = field(default_factory=dict)


class _Tables:
    """Every `Parts` that has turned up, by number, with what is asked of it again and again."""

    def __init__(self) -> None:
        self.parts: list[Parts] = [()]
        self._numbers: dict[Parts, int] = {(): 0}
        self.joined, self.inverse = cache(self._joined), cache(self._inverse)
        self.text, self.value = cache(self._text), cache(self._value)
        self._part_text: Callable[[Number], str] = cache(str)
        self._part_value: Callable[[Number], float] = cache(lambda part: float(part.evalf(20)))

    def number(self, parts: dict[Number, Number]) -> int:
        """The number of these parts, those that are none left out."""
        key = tuple(sorted(((part, c) for part, c in parts.items() if c), key=lambda pair: self._part_text(pair[0])))
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = len(self.parts)
            self.parts.append(key)
        return known

    def _text(self, number: int) -> str:
        """What factors are sorted by among themselves."""
        return "".join(f"{self._part_text(part)}^{c} " for part, c in self.parts[number])

    def _joined(self, a: int, b: int) -> int:
        """e^a · e^b: the powers added."""
        if not a or not b:
            return a or b
        parts = dict(self.parts[a])
        for part, c in self.parts[b]:
            parts[part] = parts.get(part, 0) + c
        return self.number(parts)

    def _inverse(self, a: int) -> int:
        """1/e^a: the powers with the other sign."""
        return self.number({part: -c for part, c in self.parts[a]})

    def _value(self, exponent: int) -> float:
        """How large an exponent is."""
        return sum((self._part_value(part) * float(c) for part, c in self.parts[exponent]), 0.0)


class Shortener:
    """Finds short forms and remembers them.

    Attributes
    ----------
    work : products of terms and steps of divisions so far, by which a caller can tell that it is enough
    """

    def __init__(self, sympy: ModuleType) -> None:
        self.sympy = sympy
        self.work = 0
        self._tables = _Tables()
        self._quotient, self._order = cache(self._cancelled_quotient), cache(self._order_of)
        self._most = 0

    def short(self, number: Number) -> Number:
        """The shortest of a few ways to write a finite real number."""
        self._most = self.work + MOST_WORK
        try:
            quotient = self._quotient(number)
            ways = [self._built(quotient, True), self._built(quotient, False)]
        except TooLong:
            return number
        if number.is_Add:
            ways.append(self.sympy.Add(*(self._fraction_of(part) for part in number.args)))
        if not quotient.below:
            ways.append(number)  # below a line its powers of e would be negative: e^x/(1 + e^x), not 1/(1 + e^-x)
        best = min(ways, key=length)
        return number if _LONG < length(best) > length(number) * _MUCH else best

    def _fraction_of(self, part: Number) -> Number:
        """One summand, written as one fraction."""
        try:
            quotient = self._quotient(part)
            return min(self._built(quotient, True), self._built(quotient, False), key=length)
        except TooLong:
            return part

    # --- reading ---------------------------------------------------------------------------------

    def _cancelled_quotient(self, number: Number) -> Quotient:
        return self._cancelled(self._read(number))

    def _read(self, number: Number) -> Quotient:
        sympy = self.sympy
        if number.is_Rational:
            return Quotient({_ONE: Fraction(int(number.p), int(number.q))} if number != 0 else {})
        if number.is_Add:
            return self._added([self._quotient(part) for part in number.args])
        if number.is_Mul:
            result = Quotient({_ONE: Fraction(1)})
            for part in number.args:
                result = self._multiplied(result, self._quotient(part))
            return result
        if number == sympy.E:
            return Quotient({(1, 0, self._exponent(sympy.Integer(1))): Fraction(1)})
        if isinstance(number, sympy.exp):
            return Quotient({(1, 0, self._exponent(number.exp)): Fraction(1)})
        if isinstance(number, (sympy.sinh, sympy.cosh)):
            return self._quotient(number.rewrite(sympy.exp))
        if number.is_Pow:
            return self._powered(number)
        return Quotient({(1, self._tables.number({number: 1}), 0): Fraction(1)})

    def _powered(self, number: Number) -> Quotient:
        base, power = number.as_base_exp()
        if power.is_Integer:
            inner = self._quotient(base)
            if abs(int(power)) > 50:
                raise TooLong
            inner = inner if power > 0 else self._inverted(inner)
            result = inner
            for _ in range(abs(int(power)) - 1):
                result = self._multiplied(result, inner)
            return result
        if base.is_Integer and base > 0 and power.is_Rational and power.q == 2:
            whole = Fraction(int(base)) ** ((int(power.p) - 1) // 2)
            return Quotient({(int(base), 0, 0): whole})
        return Quotient({(1, self._tables.number({number: 1}), 0): Fraction(1)})

    def _exponent(self, number: Number) -> int:
        """x of e^x, as a sorted sum of (irrational part, fraction)."""
        parts = number.expand().as_coefficients_dict()
        return self._tables.number({part: Fraction(int(c.p), int(c.q)) for part, c in parts.items()})

    # --- calculating -----------------------------------------------------------------------------

    def _count(self, work: int) -> None:
        self.work += work
        if self.work > self._most:
            raise TooLong

    def _product(self, a: Sum, b: Sum) -> Sum:
        self._count(len(a) * len(b))
        out: Sum = {}
        joined = self._tables.joined
        for (n, t, x), c in a.items():
            for (m, u, y), d in b.items():
                common = gcd(n, m)
                kind = n * m // common**2, joined(t, u), joined(x, y)
                value = out.get(kind, 0) + c * d * common
                if value:
                    out[kind] = Fraction(value)
                else:
                    del out[kind]
        if len(out) > MOST_TERMS:
            raise TooLong
        return out

    def _multiplied(self, a: Quotient, b: Quotient) -> Quotient:
        below = dict(a.below)
        for factor, power in b.below.items():
            below[factor] = below.get(factor, 0) + power
        return Quotient(self._product(a.above, b.above), below)

    def _added(self, parts: list[Quotient]) -> Quotient:
        below: dict[frozenset[tuple[Kind, Fraction]], int] = {}
        for part in parts:
            for factor, power in part.below.items():
                below[factor] = max(below.get(factor, 0), power)
        total: Sum = {}
        for part in parts:
            above = part.above
            for factor, power in below.items():
                for _ in range(power - part.below.get(factor, 0)):
                    above = self._product(above, dict(factor))
            for kind, c in above.items():
                value = total.get(kind, Fraction(0)) + c
                if value:
                    total[kind] = value
                else:
                    total.pop(kind, None)
        if len(total) > MOST_TERMS:
            raise TooLong
        return Quotient(total, below)

    def _inverted(self, a: Quotient) -> Quotient:
        if not a.above:
            raise TooLong  # 1/0 has no value to shorten
        above: Sum = {_ONE: Fraction(1)}
        for factor, power in a.below.items():
            for _ in range(power):
                above = self._product(above, dict(factor))
        root, kind = self._rational(a.above)
        while len(root) > 1:  # 1/(1 + √2) = √2 − 1
            above, root = self._product(above, kind), self._product(root, kind)
            root, kind = self._rational(root)
        if len(root) == 1 and not kind:
            ((only, c),) = root.items()
            return Quotient(self._product(above, {self._reciprocal(only): 1 / c / only[0]}))
        single, rest = self._normal(a.above)
        ((only, c),) = single.items()
        above = self._product(above, {self._reciprocal(only): 1 / c / only[0]})
        return Quotient(above, {frozenset(rest.items()): 1})

    def _reciprocal(self, kind: Kind) -> Kind:
        n, t, x = kind
        return n, self._tables.inverse(t), self._tables.inverse(x)

    def _rational(self, a: Sum) -> tuple[Sum, Sum]:
        """a, and what it is multiplied by to lose one of its roots; nothing where it holds more than roots."""
        if len(a) == 1 or any(t or x for _, t, x in a):
            return ({}, {}) if len(a) > 1 else (a, {})
        prime = next((p for n, _, _ in a for p in _primes(n)), None)
        if prime is None:
            return {}, {}
        return a, {kind: -c if kind[0] % prime == 0 else c for kind, c in a.items()}

    def _normal(self, a: Sum) -> tuple[Sum, Sum]:
        """a as a single term times a sum whose smallest power of e is e^0, with whole coefficients and roots without a common divisor."""
        lowest = min(a, key=self._order)
        content = _content(a)
        if a[max(a, key=self._order)] < 0:
            content = -content
        root = gcd(*(n for n, _, _ in a))
        single: Sum = {(root, 0, lowest[2]): content}
        return single, self._product(a, {(root, 0, self._tables.inverse(lowest[2])): 1 / content / root})

    def _order_of(self, kind: Kind) -> tuple[float, int, str]:
        return self._tables.value(kind[2]), kind[0], self._tables.text(kind[1])

    def _cancelled(self, a: Quotient) -> Quotient:
        """a without the factors below that divide what is above."""
        above, below = a.above, {}
        if not above:
            return Quotient({})
        for factor, power in a.below.items():
            left = power
            while left:
                divided = self._divided(above, dict(factor))
                if divided is None:
                    break
                above, left = divided, left - 1
            if left:
                below[factor] = left
        return Quotient(above, below)

    def _divided(self, a: Sum, b: Sum) -> Sum | None:
        """a / b where b divides a: long division, the largest power of e first."""
        lead = max(b, key=self._order)
        if sum(self._tables.value(kind[2]) == self._tables.value(lead[2]) for kind in b) > 1:
            return None  # several terms lead, which this division does not handle
        inverse = {self._reciprocal(lead): 1 / b[lead] / lead[0]}
        lowest = min(self._tables.value(kind[2]) for kind in a) - min(self._tables.value(kind[2]) for kind in b)
        rest, result = dict(a), Sum()
        while rest:
            self._count(len(rest))
            top = max(rest, key=self._order)
            step = self._product({top: rest[top]}, inverse)
            ((kind, c),) = step.items()
            if self._tables.value(kind[2]) < lowest - 1e-9 or kind in result or len(result) > MOST_TERMS:
                return None
            result[kind] = c
            for taken, d in self._product(step, b).items():
                value = rest.get(taken, Fraction(0)) - d
                if value:
                    rest[taken] = value
                else:
                    rest.pop(taken, None)
        return result

    # --- writing ---------------------------------------------------------------------------------

    def _built(self, a: Quotient, taken_out: bool) -> Number:
        """The SymPy number; `taken_out`: with what all terms above share in front of a bracket."""
        sympy = self.sympy
        below = sympy.Mul(*(self._sum(dict(factor)) ** power for factor, power in a.below.items()))
        if taken_out and len(a.above) > 1:
            single, inner = self._normal(a.above)
            ((kind, c),) = single.items()
            front = self._fraction(c) * self._term(kind)
            return sympy.Mul(front, self._sum(inner), 1 / below)
        return self._sum(a.above) / below

    def _sum(self, a: Sum) -> Number:
        return self.sympy.Add(*(self._fraction(c) * self._term(kind) for kind, c in a.items()))

    def _fraction(self, c: Fraction) -> Number:
        return self.sympy.Rational(c.numerator, c.denominator)

    def _term(self, kind: Kind) -> Number:
        n, t, x = kind
        sympy, parts = self.sympy, self._tables.parts
        exponent = sympy.Add(*(self._fraction(c) * part for part, c in parts[x]))
        return sympy.Mul(sympy.sqrt(n), *(part**power for part, power in parts[t]), sympy.exp(exponent))


def length(number: Number) -> int:
    """How long a number is to read: its parts, a minus and a fraction counting as one each."""
    waiting, count = [number], 0
    while waiting:
        part = waiting.pop()
        count += 1
        if part.is_Rational:
            count += int(part.q != 1) + int(part.p < 0)
        waiting.extend(part.args)
    return count


def _content(a: Sum) -> Fraction:
    """The greatest fraction that leaves whole coefficients."""
    above = below = 0
    for c in a.values():
        above = gcd(above, c.numerator)
        below = c.denominator if not below else below * c.denominator // gcd(below, c.denominator)
    return Fraction(above, below)


def _primes(n: int) -> list[int]:
    """The smallest prime divisor of n, where it is small."""
    return next(([p] for p in range(2, min(isqrt(n), 1000) + 1) if n % p == 0), [n] if n > 1 else [])
