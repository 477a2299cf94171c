"""What a session shows, before any screen: sentences, tables of numbers, a formula, the arithmetic of a cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attncli.message import Message
from attncli.problems.problem import Problem
from attncli.record import Record
from attncli.terms import Index, Term


class Part(Record):
    """Something to show."""


class Text(Part):
    """A sentence; its kind says how it stands out: "title", "right", "wrong", "remark", "aside", or nothing."""

    message: Message
    kind: str = ""


class Question(Part):
    """A whole exercise: its prompt, what is given, and the lines that are shown, with their numbers.

    Parameters
    ----------
    values : of every input and line
    shown : ids of the lines that stand there
    """

    problem: Problem
    values: Mapping[str, Any]
    shown: tuple[str, ...]


class Result(Part):
    """The numbers of one line, and of which calculation."""

    problem: Problem
    values: Mapping[str, Any]
    id: str


class Formula(Part):
    """How a line is calculated, in letters."""

    id: str


class Arithmetic(Part):
    """The arithmetic of one cell, its numbers put in, without the result.

    Parameters
    ----------
    on_screen : ids whose numbers stand on the screen; another cell is called by its name
    """

    id: str
    index: Index
    term: Term
    on_screen: frozenset[str]


class Wanted(Part):
    """What is asked for next: one line. `again`: it was asked for before, and is still open."""

    id: str
    symbol: str
    shape: tuple[int, ...]
    decimals: int
    again: bool = False
