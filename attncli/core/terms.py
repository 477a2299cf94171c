"""The arithmetic behind one cell, as a small expression tree.

`1×1 + 2×0` is a sum of products of two cells each. Renderers put the numbers in; `why` opens
the cells it refers to, one after another, back to the inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from attncli.arithmetic import Value

Index: TypeAlias = tuple[int, ...]

#: The numbers of an evaluation, by id of a step or input.
Values: TypeAlias = Mapping[str, Value]


class Term:
    """A node: what is done (`kind`) with which parts.

    Kinds: "cell" (step id, index), "number" (a float), "text" (a word), and over further terms
    "sum", "product", "difference", "quotient", "negative", "exp", "ln", "power", "root", "tanh", "erf", "sin", "cos", "max",
    "positive" (1 of what is above 0, else 0). A difference of −∞ and −∞ is −∞: what is hidden stays hidden.

    A term says what is calculated whatever the numbers are: it depends on the step and the place, never on a value, so
    that a page or a spreadsheet can calculate it anew from other numbers.
    """

    __slots__ = ("kind", "parts")

    def __init__(self, kind: str, *parts: object) -> None:
        self.kind = kind
        self.parts = parts

    def __repr__(self) -> str:
        return f"Term({self.kind!r}, {', '.join(map(repr, self.parts))})"

    def cells(self) -> Iterator[tuple[str, Index]]:
        """The cells this arithmetic refers to, in reading order."""
        if self.kind == "cell":
            step, index = self.parts
            assert isinstance(step, str) and isinstance(index, tuple)
            yield step, index
            return
        for part in self.parts:
            if isinstance(part, Term):
                yield from part.cells()


def cell(step: str, index: Index) -> Term:
    """A reference to one number of another step or input."""
    return Term("cell", step, index)


def number(value: float) -> Term:
    """A number that belongs to the formula itself."""
    return Term("number", value)


def at(values: Values, step_id: str, index: Sequence[int]) -> Term:
    """The cell of `step_id` at `index`, counted from the last axis; an axis of length 1 is spread."""
    shape = values[step_id].shape
    own = tuple(index)[len(index) - len(shape) :]
    return cell(step_id, tuple(0 if size == 1 else i for i, size in zip(own, shape, strict=True)))


def along(values: Values, step_id: str, index: Index, axis: int) -> list[Term]:
    """The cells of `step_id` at `index` all along one axis, which is counted from the end."""
    before, after = index[: len(index) + axis], index[len(index) + axis + 1 :]
    return [at(values, step_id, (*before, place, *after)) for place in range(values[step_id].shape[axis])]
