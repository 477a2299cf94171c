"""Products of named sizes: 2·n_h·d_h·l is a formula, numbers and a number at once."""

from __future__ import annotations

from fractions import Fraction
from math import prod

from attncli.core.record import Record


class Size(Record):
    """A size with its name: n_h = 32; a sum of sizes keeps its terms: (d_c + d_h^R) = (512 + 64)."""

    symbol: str
    value: int
    terms: tuple[int, ...] = ()


class Product(Record):
    """Factors multiplied."""

    factors: tuple[Size, ...]

    @property
    def value(self) -> int:
        return prod(factor.value for factor in self.factors)

    def times(self, *factors: Size) -> Product:
        """The product with further factors in front."""
        return Product((*factors, *self.factors))


def product(*factors: Size) -> Product:
    return Product(factors)


def total(*terms: Size) -> Size:
    """The sum of some sizes, as one factor."""
    if len(terms) == 1:
        return terms[0]
    return Size(
        f"({' + '.join(term.symbol for term in terms)})",
        sum(term.value for term in terms),
        tuple(term.value for term in terms),
    )


def two() -> Size:
    """Keys and values: both are kept."""
    return Size("2", 2)


class Ratio(Record):
    """One product over another."""

    above: Product
    below: Product

    @property
    def value(self) -> Fraction:
        return Fraction(self.above.value, self.below.value)
