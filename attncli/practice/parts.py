"""What a session shows, before any screen: sentences, tables of numbers, a formula, the arithmetic of a cell."""

from __future__ import annotations

from attncli.core.message import Message
from attncli.core.record import Record
from attncli.core.terms import Index, Term


class Part(Record):
    """Something to show."""


class Text(Part):
    """A sentence; its kind says how it stands out: "title", "right", "wrong", "remark", "aside", or nothing."""

    message: Message
    kind: str = ""


class WholeExercise(Part):
    """A whole exercise: its prompt, what is given, and the lines that are shown.

    Parameters
    ----------
    shown : ids of the lines whose numbers stand there
    """

    shown: tuple[str, ...]


class Result(Part):
    """The numbers of one line."""

    id: str


class Formula(Part):
    """How a line is calculated, in letters; and the lines before it that stand nowhere."""

    ids: tuple[str, ...]


class CellArithmetic(Part):
    """The arithmetic of one cell, its numbers put in.

    Parameters
    ----------
    on_screen : ids whose numbers stand on the screen; another cell is called by its name
    solved : with its result, where the result was asked for
    """

    id: str
    index: Index
    term: Term
    on_screen: frozenset[str]
    solved: bool = False


class Wanted(Part):
    """What is asked for next: one line. `again`: it was asked for before, and is still open."""

    id: str
    symbol: str
    shape: tuple[int, ...]
    decimals: int
    again: bool = False
