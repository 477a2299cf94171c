"""What `attncli why` does: find the cell, print its tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attncli.cli._calculation import arithmetic_of, calculated, problem_of, whole_number
from attncli.cli._say import Say
from attncli.core.graph import Graph, show_shape
from attncli.message import InputError
from attncli.terms import Index


def explain(say: Say, *, cell: Sequence[str], depth: str | None, **words: Any) -> int:
    """Print the arithmetic behind one cell, opened step by step."""
    from attncli.cli._terminal import console
    from attncli.render._view import view
    from attncli.render._why import print_why
    from attncli.render.table import trimmed

    levels = whole_number("--depth", depth, 1, 1000)
    name, step, numbers = _parts(cell)
    problem = problem_of(name, words, say)
    # The gradients are there to be asked for wherever there is something to start them from.
    result = calculated(name, problem, words, **arithmetic_of(words))
    id = _step(result.graph, step, problem.has_gradient)
    index = _index(result.graph, id, numbers, problem.layout)
    screen, buffer = console()
    print_why(view(result, say.language, layout=problem.layout, width=screen.width), id, index, levels, screen)
    say.out(trimmed(buffer.getvalue()))
    return 0


def _parts(cell: Sequence[str]) -> tuple[str | None, str, list[int]]:
    """[PROBLEM] STEP and the numbers after it."""
    words = list(cell)
    numbers: list[int] = []
    while words and words[-1].isdecimal() and len(words[-1]) < 10:
        numbers.insert(0, int(words.pop()))
    if len(words) not in (1, 2) or not numbers or not words[-1][:1].isalpha():
        raise InputError(
            "Name a step and a cell, like: attncli why A 1 2 (row 1, column 2). Before them a problem may stand."
        )
    return (words[0] if len(words) == 2 else None), words[-1], numbers


def _step(graph: Graph, id: str, has_gradient: bool) -> str:
    if id not in graph and id.rpartition(".")[2].startswith("G_") and not has_gradient:
        raise InputError(
            "{id} is a gradient, and gradients need something to start from: --upstream MATRIX or --loss TEXT,"
            ' like --loss "sum({output})".',
            id=id,
            output=graph.output,
        )
    return graph.known(id)


def _index(graph: Graph, id: str, numbers: list[int], layout: str) -> Index:
    """The cell's index from 0, tokens as rows, after checking it against the shape."""
    shape = graph.shape(id)
    shown = (*shape[:-2], *reversed(shape[-2:])) if layout == "columns" else shape
    if len(numbers) != len(shape) or not all(1 <= i <= size for i, size in zip(numbers, shown, strict=False)):
        raise InputError(
            "{id}[{cell}] does not exist: {id} is {shape}, counted from 1. Write {example}.",
            id=id,
            cell=",".join(map(str, numbers)),
            shape=show_shape(shown),
            example=f"attncli why {id} {' '.join(map(str, shown))}",
        )
    index = tuple(i - 1 for i in numbers)
    return (*index[:-2], *reversed(index[-2:])) if layout == "columns" else index
