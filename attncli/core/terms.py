"""The arithmetic behind one cell, as a small expression tree.

`1×1 + 2×0` is a sum of products of two cells each. Renderers put the numbers in; `why` opens
the cells it refers to, one after another, back to the inputs. No op says it by hand: it is what the op calculates, in
an arithmetic of terms (`Written`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from attncli.arithmetic import Indices, Value
from attncli.arithmetic.floating import FLOATING
from attncli.core.matrix import BoolArray, FloatArray, Matrix

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


# --- A calculation written down instead of carried out ------------------------------------------------------------------


class Cells:
    """An array of terms, each written down when its place is asked for.

    Attributes
    ----------
    shape : of the array
    numbers : of an operand, what stands in its cells: ids choose rows, and what is hidden takes no part
    """

    __slots__ = ("_written", "numbers", "shape")

    def __init__(self, shape: tuple[int, ...], written: Callable[[Index], Term], numbers: Value = None) -> None:
        self.shape = shape
        self.numbers = numbers
        self._written = written

    def __getitem__(self, index: Index) -> Term:
        """The term at a place, counted from the last axis; an axis of length 1 is the same all along."""
        if len(index) != len(self.shape) or 1 in self.shape:
            own = index[len(index) - len(self.shape) :]
            index = tuple([0 if size == 1 else i for i, size in zip(own, self.shape, strict=True)])
        return self._written(index)

    @property
    def ndim(self) -> int:
        return len(self.shape)


def cells_of(step_id: str, numbers: Value) -> Cells:
    """The cells of a step or an input, from which others are calculated."""
    return Cells(numbers.shape, lambda index: cell(step_id, index), numbers)


def _entrywise(function: Callable[..., Term]) -> Callable[..., Cells]:
    """What is done to the terms at each place."""

    def method(self: Written, *operands: Cells) -> Cells:
        shape = np.broadcast_shapes(*(a.shape for a in operands))
        return Cells(shape, lambda index: function(*(a[index] for a in operands)))

    return method


def _kind(kind: str) -> Callable[..., Cells]:
    return _entrywise(lambda *parts: Term(kind, *parts))


def _moving(function: Callable[..., Value]) -> Callable[..., Cells]:
    """What only moves numbers about: done to their places, which are counted."""

    def method(self: Written, a: Cells, *where: Any) -> Cells:
        places = function(_places(a), *where)
        return Cells(places.shape, lambda index: a[_place(places[index], a.shape)])

    return method


def _places(a: Cells) -> Indices:
    return np.arange(math.prod(a.shape)).reshape(a.shape)


def _place(number: int, shape: tuple[int, ...]) -> Index:
    return tuple(map(int, np.unravel_index(number, shape)))


def _along(together: Callable[[list[Term]], Term]) -> Callable[..., Cells]:
    """What is made of all terms along an axis, or along several."""

    def method(self: Written, a: Cells, axis: int | tuple[int, ...]) -> Cells:
        axes = {each % a.ndim for each in ([axis] if isinstance(axis, int) else axis)}

        def written(index: Index) -> Term:
            lines = [range(size) if i in axes else (index[i],) for i, size in enumerate(a.shape)]
            return together([a[place] for place in itertools.product(*lines)])

        return Cells(tuple(1 if i in axes else size for i, size in enumerate(a.shape)), written)

    return method


def _total(parts: list[Term]) -> Term:
    """A sum, without what is 0 whatever the numbers are."""
    parts = [part for part in parts if not _is_number(part, 0.0)]
    return Term("sum", *parts) if parts else number(0.0)


def _sum(a: Term, b: Term) -> Term:
    return a if _is_number(b, 0.0) else Term("sum", *_in_a_row("sum", a), *_in_a_row("sum", b))


def _difference(a: Term, b: Term) -> Term:
    if _is_number(a, 0.0):
        return Term("negative", b.terms[0] if b.kind == "sum" and len(b.parts) == 1 else b)
    return Term("difference", a, b)


def _product(a: Term, b: Term) -> Term:
    if b.kind == "quotient" and _is_number(b.parts[0], 1.0):
        return Term("quotient", a, b.parts[1])
    first, *others = _in_a_row("product", b)
    if first.kind == "number" and _is_number(a, -1.0):
        return Term("product", number(-first.value), *others)
    if first.kind == "number" and a.kind == "cell":
        return Term("product", first, a, *others)
    return Term("product", *_in_a_row("product", a), first, *others)


def _is_number(term: TermPart, value: float) -> bool:
    return isinstance(term, Term) and term.kind == "number" and term.value == value


def _in_a_row(kind: str, term: Term) -> list[Term]:
    """What a sum or a product is made of; any other term is by itself."""
    return term.terms if term.kind == kind else [term]


class Written:
    """The `Arithmetic` of terms: what an op calculates is what stands on the screen.

    Products of products and sums of sums are written in a row, a number before the cell that it multiplies;
    a · (1/b) is a/b, 0 − a is −a, a + 0 is a, −1 · 0.5 is −0.5.
    """

    name = "written"

    add, subtract, multiply, divide = _entrywise(_sum), _entrywise(_difference), _entrywise(_product), _kind("quotient")
    exp, log, sqrt, tanh, erf, sin, cos = map(_kind, ("exp", "ln", "root", "tanh", "erf", "sin", "cos"))
    positive, is_positive = _entrywise(lambda a: Term("max", a, number(0.0))), _kind("positive")
    sum, max = _along(_total), _along(lambda parts: Term("max", *parts))
    swapaxes, take, slice = _moving(FLOATING.swapaxes), _moving(FLOATING.take), _moving(FLOATING.slice)
    repeat, reshape = _moving(FLOATING.repeat), _moving(FLOATING.reshape)

    def constant(self, matrix: Matrix) -> Cells:
        match matrix.entries:
            case (("sqrt", ("num", str(under))),):
                return Cells(matrix.shape, lambda index: Term("root", number(float(under))))
        return Cells(matrix.shape, lambda index: number(matrix.values[index]))

    def round_step(self, value: Cells) -> Cells:
        return value

    round_intermediate = round_step

    def matmul(self, a: Cells, b: Cells) -> Cells:
        def written(index: Index) -> Term:
            *heads, i, j = index
            return _total([_product(a[(*heads, i, k)], b[(*heads, k, j)]) for k in range(a.shape[-1])])

        heads = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        return Cells((*heads, a.shape[-2], b.shape[-1]), written)

    def scatter_add(self, a: Cells, rows: Indices, count: int) -> Cells:
        def written(index: Index) -> Term:
            *head, row, column = index
            return _total([a[(*head, int(i), column)] for i in np.flatnonzero(rows == row)])

        return Cells((*a.shape[:-2], count, a.shape[-1]), written)

    def concatenate(self, parts: Sequence[Cells], axis: int) -> Cells:
        owner = np.concatenate([np.full(part.shape, i) for i, part in enumerate(parts)], axis)
        places = np.concatenate([_places(part) for part in parts], axis)

        def written(index: Index) -> Term:
            part = parts[int(owner[index])]
            return part[_place(places[index], part.shape)]

        return Cells(places.shape, written)

    def where(self, condition: BoolArray, a: Cells, b: Cells) -> Cells:
        marks = np.broadcast_to(condition, np.broadcast_shapes(condition.shape, a.shape, b.shape))

        def written(index: Index) -> Term:
            # Terms know of themselves that −∞ less −∞ stays hidden.
            return a[index] if marks[index] and not _is_number(a[index], -math.inf) else b[index]

        return Cells(marks.shape, written)

    def hidden(self, a: Cells) -> BoolArray:
        return np.isneginf(self.plain(a))

    def plain(self, a: Cells) -> FloatArray:
        return np.asarray(a.numbers, dtype=np.float64)


WRITTEN = Written()
