"""What `attncli why` does: find the cell, print its tree."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from attncli.cli._calculation import arithmetic_of, calculated, is_problem, problem_of, whole_number
from attncli.cli._say import Say
from attncli.core.graph import Graph, show_shape
from attncli.core.message import InputError, Listed, closest
from attncli.core.terms import Index
from attncli.problems.names import means_gradient
from attncli.problems.run import named_step

#: Steps that are gone back where nothing is said.
DEPTH = 3
_BRACKETS = re.compile(r"(?P<step>[^\[\]]+)\[(?P<cell>[^\[\]]*)\]")


def explain(say: Say, *, cell: Sequence[str], depth: str | None, output: str | None, force: bool, **words: Any) -> int:
    """Print the arithmetic behind one cell, opened step by step."""
    from attncli.cli._output import language_of, write_file
    from attncli.cli._terminal import console
    from attncli.core.outputs import WHY
    from attncli.render.terminal import trimmed
    from attncli.render.view import view
    from attncli.render.why import print_why

    levels = None if depth == "all" else whole_number("--depth", depth, 1, 1000)
    name, step, places = _parts(cell, words)
    problem = problem_of(name, words, say)
    # The gradients are there to be asked for wherever there is something to start them from.
    result = calculated(name, problem, words, **arithmetic_of(words))
    id = _step(result.graph, step, problem.has_gradient)
    index = _index(result.graph, id, places, problem.layout)
    to_file = output is not None
    screen, buffer = console(to_file=to_file)
    shown = view(result, language_of(say, to_file=to_file), layout=problem.layout, width=screen.width)
    print_why(shown, id, index, DEPTH if depth is None else levels, screen, going_on=depth is None)
    text = trimmed(buffer.getvalue())
    if output is None:
        say.out(text)
    else:
        write_file(say, output, text.encode("utf-8"), WHY, force=force)
    return 0


def _parts(cell: Sequence[str], options: Mapping[str, Any]) -> tuple[str | None, str, list[str]]:
    """[PROBLEM] STEP and the places after it, or STEP[…]."""
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


def _step(graph: Graph, id: str, has_gradient: bool) -> str:
    if not has_gradient and id not in graph and means_gradient(id):
        raise InputError(
            "{id} is a gradient, and gradients need something to start from: --upstream MATRIX or --loss TEXT,"
            ' like --loss "sum({output})".',
            id=id,
            output=graph.output,
        )
    return named_step(graph, id)


def _index(graph: Graph, id: str, places: Sequence[str], layout: str) -> Index:
    """The cell's index from 0, tokens as rows, after checking it against the shape."""
    from attncli.render.names import names

    shape = graph.shape(id)
    turned = layout == "columns"
    axes = graph.axes(id)
    shown = tuple([*axes[:-2], *reversed(axes[-2:])] if turned else axes)
    if not places and all(size == 1 for size in shape):
        return (0,) * len(shape)
    sizes = tuple(axis.size for axis in shown)
    if len(places) != len(shape):
        raise _no_cell(id, places, sizes)
    index = tuple(
        _place(id, place, axis.size, names(axis, graph.labels), places, sizes)
        for place, axis in zip(places, shown, strict=True)
    )
    return (*index[:-2], *reversed(index[-2:])) if turned else index


def _place(id: str, place: str, size: int, called: Sequence[str], places: Sequence[str], sizes: tuple[int, ...]) -> int:
    """The index from 0 that a number counted from 1, or the name of a row or column, stands for."""
    found = [i for i, name in enumerate(called) if name and place in (name, name.partition(" ")[2])]
    if place.isdecimal() and len(place) < 10:
        if not 1 <= int(place) <= size:
            raise _no_cell(id, places, sizes)
        return int(place) - 1
    if len(found) == 1:
        return found[0]
    if found:
        numbers = Listed([i + 1 for i in found])
        raise InputError(
            "“{place}” stands several times in {id}: at {numbers}. Write the number.",
            place=place[:40],
            id=id,
            numbers=numbers,
        )
    given = [name for name in called if name]
    if not given:
        raise _no_cell(id, places, sizes)
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


def _no_cell(id: str, places: Sequence[str], sizes: tuple[int, ...]) -> InputError:
    return InputError(
        "{id}[{cell}] does not exist: {id} is {shape}, counted from 1. Write {example}.",
        id=id,
        cell=",".join(places)[:40],
        shape=show_shape(sizes),
        example=f"attncli why {id} {' '.join(map(str, sizes))}",
    )
