"""A cell as somebody names it: a step, and a place in it by numbers counted from 1 or by the names of row and column."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attncli.core.graph import Axis, Graph, show_shape
from attncli.core.message import InputError, Listed, closest
from attncli.core.terms import Index
from attncli.problems.names import means_gradient
from attncli.problems.request import is_problem
from attncli.problems.run import named_step

_BRACKETS = re.compile(r"(?P<step>[^\[\]]+)\[(?P<cell>[^\[\]]*)\]")


def parts(cell: Sequence[str], options: Mapping[str, Any]) -> tuple[str | None, str, list[str]]:
    """The problem, the step and the places that are meant by [PROBLEM] STEP PLACES, or by [PROBLEM] STEP[PLACES].

    Parameters
    ----------
    cell : the words
    options : what else is given, by parameter name

    Raises
    ------
    InputError
        No step is named.
    """
    words = [word.strip() for word in cell]
    first, rest = words[0], words[1:]
    bracketed = _BRACKETS.fullmatch(words[-1])
    if bracketed is not None and len(words) <= 2:
        places = [place for place in re.split(r"[\s,，]+", bracketed["cell"]) if place]
        return (first if rest else None), bracketed["step"].strip(), places
    if rest and (is_problem(first, rest[0]) or _is_missing(first, rest, options)):
        return first, rest[0], rest[1:]
    if not first or any(not word for word in rest):
        raise InputError(
            "Name a step and a cell, like: attncli why A 1 2 (row 1, column 2). A problem can go before them."
        )
    return None, first, rest


def _is_missing(first: str, rest: Sequence[str], options: Mapping[str, Any]) -> bool:
    """Whether the first word can only be meant as a problem that does not exist: nothing else says what to calculate."""
    given = any(options.get(name) for name in ("queries", "keys", "values", "set_", "model"))
    return not given and not rest[0].isdecimal()


def step_of(graph: Graph, id: str, *, has_gradient: bool) -> str:
    """The id of the step or input that is meant.

    Raises
    ------
    InputError
        There is none.
    """
    if not has_gradient and id not in graph and means_gradient(id):
        raise InputError(
            "{id} is a gradient, and gradients need something to start from: --upstream MATRIX or --loss TEXT,"
            ' like --loss "sum({output})".',
            id=id,
            output=graph.output,
        )
    return named_step(graph, id)


def index_of(
    graph: Graph,
    id: str,
    places: Sequence[str],
    layout: str,
    names: Callable[[Axis], Sequence[str]],
    problem: str | None = None,
) -> Index:
    """The cell's index from 0, tokens as rows, after checking it against the shape.

    Parameters
    ----------
    names : the names of the lines of an axis
    problem : the problem as it was named, for the command in a message

    Raises
    ------
    InputError
        There is no such cell.
    """
    shape = graph.shape(id)
    turned = layout == "columns"
    axes = graph.axes(id)
    shown = tuple([*axes[:-2], *reversed(axes[-2:])] if turned else axes)
    if not places and all(size == 1 for size in shape):
        return (0,) * len(shape)
    none = _no_cell(id, places, tuple(axis.size for axis in shown), problem)
    if len(places) != len(shape):
        raise none
    index = tuple(_place(id, place, axis.size, names(axis), none) for place, axis in zip(places, shown, strict=True))
    return (*index[:-2], *reversed(index[-2:])) if turned else index


def _place(id: str, place: str, size: int, called: Sequence[str], none: InputError) -> int:
    """The index from 0 that a number counted from 1, or the name of a row or column, stands for."""
    found = [i for i, name in enumerate(called) if name and place in (name, name.partition(" ")[2])]
    if place.isdecimal() and len(place) < 10:
        if not 1 <= int(place) <= size:
            raise none
        return int(place) - 1
    if len(found) == 1:
        return found[0]
    if found:
        numbers = Listed([i + 1 for i in found])
        raise InputError(
            "“{place}” occurs several times in {id}: at {numbers}. Write the number.",
            place=place[:40],
            id=id,
            numbers=numbers,
        )
    given = [name for name in called if name]
    if not given:
        raise none
    raise _no_name(id, place, given)


#: Names of rows that an error lists.
_MOST_NAMES = 12


def _no_name(id: str, place: str, given: Sequence[str]) -> InputError:
    names = Listed([*given[:_MOST_NAMES], *["…"] * (len(given) > _MOST_NAMES)])
    likely = closest(place, list(given))
    if likely is None:
        return InputError(
            "“{place}” is neither a number nor a name there: {id} has {names}.", place=place[:40], id=id, names=names
        )
    return InputError(
        "“{place}” is neither a number nor a name there: {id} has {names}. Did you mean “{likely}”?",
        place=place[:40],
        id=id,
        names=names,
        likely=likely,
    )


def _no_cell(id: str, places: Sequence[str], sizes: tuple[int, ...], problem: str | None) -> InputError:
    shape, example = show_shape(sizes), shlex.join(["attncli", "why", *filter(None, [problem]), id, *map(str, sizes)])
    if not places:
        return InputError(
            "Which number of {id}? It is {shape}, counted from 1. Write {example}.", id=id, shape=shape, example=example
        )
    return InputError(
        "{id}[{cell}] does not exist: {id} is {shape}, counted from 1. Write {example}.",
        id=id,
        cell=",".join(places)[:40],
        shape=shape,
        example=example,
    )
