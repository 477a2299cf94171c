"""The arithmetic behind one cell, as a small expression tree.

`1×1 + 2×0` is a sum of products of two cells each. Renderers put the numbers in; `why` opens
the cells it refers to, one after another, back to the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

from attncli.arithmetic import Value
from attncli.core.matrix import Matrix

Index: TypeAlias = tuple[int, ...]

#: The numbers of an evaluation, by id of a step or input.
Values: TypeAlias = Mapping[str, Value]


#: What a term is read as.
T = TypeVar("T")

#: What a term is made of: further terms; of a cell its step and index, of a number its value, of a word the word.
TermPart: TypeAlias = "Term | str | float | Index"


class Term:
    """A node: what is done (`kind`) with which parts.

    Kinds: "cell" (step id, index), "number" (a float), "text" (a word), and over further terms
    "sum", "product", "difference", "quotient", "negative", "exp", "ln", "power", "root", "tanh", "erf", "sin", "cos", "max",
    "positive" (1 of what is above 0, else 0). A difference of −∞ and −∞ is −∞: what is hidden stays hidden.

    A term says what is calculated whatever the numbers are: it depends on the step and the place, never on a value, so
    that a page or a spreadsheet can calculate it anew from other numbers.
    """

    __slots__ = ("kind", "parts")

    def __init__(self, kind: str, *parts: TermPart) -> None:
        self.kind = kind
        self.parts = parts

    def __repr__(self) -> str:
        return f"Term({self.kind!r}, {', '.join(map(repr, self.parts))})"

    @property
    def terms(self) -> list[Term]:
        """The terms it is made of; of a cell, a number or a word none."""
        return [part for part in self.parts if isinstance(part, Term)]

    @property
    def place(self) -> tuple[str, Index]:
        """Of a cell, the step and the index."""
        step, index = self.parts
        assert isinstance(step, str) and isinstance(index, tuple)
        return step, index

    @property
    def value(self) -> float:
        """Of a number, the number."""
        (value,) = self.parts
        assert isinstance(value, float)
        return value

    def cells(self) -> Iterator[tuple[str, Index]]:
        """The cells this arithmetic refers to, in reading order."""
        if self.kind == "cell":
            yield self.place
        for part in self.terms:
            yield from part.cells()

    def fold(
        self,
        cell: Callable[[str, Index], T],
        number: Callable[[float], T],
        over: Callable[[Term, list[T]], T],
        text: Callable[[str], T],
    ) -> T:
        """What the term is, worked out from its leaves up: as text, in LaTeX, as a number …

        Parameters
        ----------
        cell, number, text : what a leaf is
        over : what any other term is, from the term and what the terms in it are
        """
        match self.kind:
            case "cell":
                return cell(*self.place)
            case "number":
                return number(self.value)
            case "text":
                return text(str(self.parts[0]))
        return over(self, [part.fold(cell, number, over, text) for part in self.terms])

    def with_cells(self, put_in: Callable[[str, Index], Term]) -> Term:
        """The term with another one in the place of every cell."""
        return self.fold(put_in, number, lambda term, parts: Term(term.kind, *parts), lambda word: Term("text", word))


def cell(step: str, index: Index) -> Term:
    """A reference to one number of another step or input."""
    return Term("cell", step, index)


def number(value: float) -> Term:
    """A number that belongs to the formula itself."""
    return Term("number", float(value))


def at(values: Values, step_id: str, index: Sequence[int]) -> Term:
    """The cell of `step_id` at `index`, counted from the last axis; an axis of length 1 is spread."""
    shape = values[step_id].shape
    own = tuple(index)[len(index) - len(shape) :]
    return cell(step_id, tuple(0 if size == 1 else i for i, size in zip(own, shape, strict=True)))


def along(values: Values, step_id: str, index: Index, axis: int) -> list[Term]:
    """The cells of `step_id` at `index` all along one axis, which is counted from the end."""
    before, after = index[: len(index) + axis], index[len(index) + axis + 1 :]
    return [at(values, step_id, (*before, place, *after)) for place in range(values[step_id].shape[axis])]


# --- Calculations entry by entry, written down instead of carried out --------------------------------------------------


def _function(kind: str) -> staticmethod[[Term], Term]:
    return staticmethod(lambda a: Term(kind, a))


class Written:
    """The part of an `Arithmetic` that works entry by entry, on the term of one cell in the place of numbers.

    What an op of this kind calculates is what stands on the screen: the same function, once with numbers and once with
    terms. Products of products and sums of sums are written in a row, a number before the cell that it multiplies;
    a · (1/b) is a/b, 0 − a is −a, a + 0 is a, −1 · 0.5 is −0.5.
    """

    def constant(self, matrix: Matrix) -> Term:
        match next(matrix.each()):
            case ("sqrt", ("num", str(under))):
                return Term("root", number(float(under)))
        return number(matrix.values.item())

    def round_step(self, value: Term) -> Term:
        return value

    def round_intermediate(self, value: Term) -> Term:
        return value

    def add(self, a: Term, b: Term) -> Term:
        return a if _is_number(b, 0.0) else Term("sum", *_in_a_row("sum", a), *_in_a_row("sum", b))

    def subtract(self, a: Term, b: Term) -> Term:
        return Term("negative", b) if _is_number(a, 0.0) else Term("difference", a, b)

    def multiply(self, a: Term, b: Term) -> Term:
        if b.kind == "quotient" and _is_number(b.parts[0], 1.0):
            return Term("quotient", a, b.parts[1])
        first, *others = _in_a_row("product", b)
        if first.kind == "number" and _is_number(a, -1.0):
            return Term("product", number(-first.value), *others)
        if first.kind == "number" and a.kind == "cell":
            return Term("product", first, a, *others)
        return Term("product", *_in_a_row("product", a), first, *others)

    def divide(self, a: Term, b: Term) -> Term:
        return Term("quotient", a, b)

    exp, log, sqrt = _function("exp"), _function("ln"), _function("root")
    tanh, erf, sin, cos = _function("tanh"), _function("erf"), _function("sin"), _function("cos")
    is_positive = _function("positive")

    def positive(self, a: Term) -> Term:
        return Term("max", a, number(0.0))

    def repeat(self, a: Term, count: int, axis: int) -> Term:
        """A number that is repeated along its line is the same at every place of it."""
        return a

    def hidden(self, a: Term) -> bool:
        """Terms know of themselves what becomes of −∞."""
        return False


WRITTEN = Written()


def _is_number(term: TermPart, value: float) -> bool:
    return isinstance(term, Term) and term.kind == "number" and term.value == value


def _in_a_row(kind: str, term: Term) -> list[Term]:
    """What a sum or a product is made of; any other term is by itself."""
    return term.terms if term.kind == kind else [term]
