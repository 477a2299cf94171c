"""Hints as a ladder: where to look, the formula in letters, the numbers put in without the result. Never a result."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from attncli.core.graph import Graph
from attncli.core.message import N_, Message
from attncli.core.terms import Index, Term
from attncli.marking.feedback import StepMark
from attncli.mistakes import look, varies, without_vaguer
from attncli.practice.parts import CellArithmetic, Formula, Part, Text

#: The rung that gives the result, and costs the line.
LAST = 4
#: Cells that the arithmetic of one cell may hold and still be read.
_MOST_CELLS = 40

_FROM_ABOVE = N_("Work this line out once more from the lines above it.")


def rung(
    number: int, graph: Graph, id: str, mark: StepMark | None, on_screen: Collection[str], values: Mapping[str, Any]
) -> Part:
    """The hint of one rung below the last, about the learner's last try where there was one.

    Parameters
    ----------
    mark : of the last try, or None
    on_screen : inputs and lines that stand on the screen; every other number is opened down to these
    values : the numbers of all lines, as they follow from what stands on the screen
    """
    if number == 1:
        return Text(where_to_look(graph, id, mark))
    if number == 2:
        return Formula((id, *_hidden_before(graph, id, on_screen)))
    return arithmetic(graph, id, mark.cells[0] if mark is not None and mark.cells else None, on_screen, values)


def where_to_look(graph: Graph, id: str, mark: StepMark | None) -> Message:
    """What to look at again: in the words of the likeliest mistake, else what the line is for."""
    if mark is None:
        return graph.steps[id].why
    if not mark.mistakes:
        return Message(_FROM_ABOVE)
    told = without_vaguer([named.id for named in mark.mistakes if named.step == mark.mistakes[0].step])
    likeliest = next(named for named in mark.mistakes if named.id == told[0])
    return look(likeliest.id, graph if varies(likeliest.id) else None, likeliest.step)


def arithmetic(
    graph: Graph, id: str, cell: Index | None, on_screen: Collection[str], values: Mapping[str, Any]
) -> CellArithmetic:
    """One cell's arithmetic with the numbers put in: the first wrong one (counted from 1), else the first that takes any."""
    step = graph.steps[id]
    shape = graph.shape(id)
    index = tuple(i - 1 for i in cell) if cell is not None and _inside(cell, shape) else (0,) * len(shape)
    term = step.op.terms(step, index, values)
    opened = _opened(term, graph, on_screen, values)
    return CellArithmetic(id, index, opened if len(list(opened.cells())) <= _MOST_CELLS else term, frozenset(on_screen))


def _inside(cell: Index, shape: tuple[int, ...]) -> bool:
    return len(cell) == len(shape) and all(1 <= i <= size for i, size in zip(cell, shape, strict=True))


def _opened(term: Term, graph: Graph, on_screen: Collection[str], values: Mapping[str, Any]) -> Term:
    """The term with every cell that stands nowhere on the screen replaced by its own arithmetic."""
    if term.kind == "cell":
        id, index = term.parts
        step = graph.steps.get(str(id))
        if step is None or id in on_screen or not isinstance(index, tuple):
            return term
        return _largest(_opened(step.op.terms(step, index, values), graph, on_screen, values), values)
    if term.kind in ("number", "text"):
        return term
    return Term(term.kind, *(_opened(part, graph, on_screen, values) for part in term.parts if isinstance(part, Term)))


def _largest(term: Term, values: Mapping[str, Any]) -> Term:
    """Of a maximum of numbers that stand somewhere, the one that it is: it stands there, too."""
    parts = [part for part in term.parts if isinstance(part, Term)]
    if term.kind != "max" or any(part.kind != "cell" for part in parts):
        return term
    return max(parts, key=lambda part: float(values[str(part.parts[0])][part.parts[1]]))


def _hidden_before(graph: Graph, id: str, on_screen: Collection[str]) -> list[str]:
    """The lines that a line is worked out from and that stand nowhere, the last one first."""
    found: set[str] = set()
    waiting = [id]
    while waiting:
        for source in graph.steps[waiting.pop()].inputs:
            if source in graph.steps and source not in on_screen and source not in found:
                found.add(source)
                waiting.append(source)
    return [step for step in reversed(graph.steps) if step in found]


__all__ = ["LAST", "arithmetic", "rung", "where_to_look"]
