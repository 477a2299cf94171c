"""Other numbers for an exercise that somebody wrote: of the same shapes, whole, and as friendly as a short search finds them."""

from __future__ import annotations

import math

import numpy as np

from attncli.core.graph import Graph, gradient_id
from attncli.core.matrix import FloatArray, Matrix
from attncli.problems.problem import Problem
from attncli.problems.source import matrix_of
from attncli.worksheets.generator import VERSION, Climb, Draws
from attncli.worksheets.recipes import Drawn, Recipe

#: Drawn are drawn from the range of those that stood there, no wider than this.
_WIDEST = 3.0
#: Cells up to which numbers are looked for that are friendly, and not only drawn; changes that are tried.
_MOST_CELLS, _MOST_CHANGES = 60, 400
#: Draws that are tried until every line comes to a number.
_MOST_DRAWS = 20


def redrawn(problem: Problem, seed: int) -> Problem:
    """The exercise with other numbers; ids, weights that add up to 1 and what a loss needs stay as they are.

    Parameters
    ----------
    seed : the same one gives the same numbers, on every Python
    """
    graph = problem.graph()
    output = gradient_id(graph.output)
    # In the graph tokens are rows, whatever the file says.
    inside = {id: one.matrix.values for id, one in graph.inputs.items()}
    inputs = {id: _range(inside[id]) for id, one in problem.inputs.items() if _is_drawn(graph, id, one)}
    gradient = {} if problem.upstream is None else {output: _range(inside[output])}
    if not inputs:
        return problem
    recipe = Recipe(problem.id or problem.model, problem.model, inputs, gradient, ties=True)
    climb = Climb(recipe, graph)
    draws = Draws(VERSION, "redrawn", recipe.name, seed)
    count = sum(math.prod(one.shape) for one in (*inputs.values(), *gradient.values()))
    for _ in range(_MOST_DRAWS):
        cells, _ = climb.climbed(draws, _MOST_CHANGES if count <= _MOST_CELLS else 0)
        written = {**problem.inputs, output: problem.upstream}
        drawn = {
            id: matrix_of(_turned(np.reshape(cells[id], one.shape), written[id]).tolist())
            for id, one in {**inputs, **gradient}.items()
        }
        found = problem.changed(
            inputs={**problem.inputs, **{id: drawn[id] for id in inputs}},
            upstream=drawn.get(output, problem.upstream),
            published={},
            how={},
            notice={},
            contrast=None,
        )
        if _is_worked_out(found.graph()) or not _is_worked_out(graph):
            return found
    return problem


def _turned(values: FloatArray, like: Matrix | None) -> FloatArray:
    """Numbers of the graph as the file writes such a matrix."""
    return values if like is None or values.shape == like.values.shape else values.swapaxes(-1, -2)


def _is_worked_out(graph: Graph) -> bool:
    """Whether every line comes to numbers: no row of equal numbers is divided by its spread."""
    with np.errstate(all="ignore"):
        trace = graph.evaluate()
    return not any(np.isnan(trace[step]).any() for step in graph.steps)


def _is_drawn(graph: Graph, id: str, matrix: Matrix) -> bool:
    """Whether an input may hold any numbers: no ids, no weights, nothing infinite."""
    values = matrix.values
    if id not in graph.inputs or not np.isfinite(values).all() or values.size < 2:
        return False
    return not (id.endswith("T") or _is_weights(values) or id in _taken_as_ids(graph))


def _is_weights(values: FloatArray) -> bool:
    return bool((values >= 0).all() and np.allclose(values.sum(-1), 1))


def _taken_as_ids(graph: Graph) -> set[str]:
    """What names rows of a table."""
    return {id for step in graph.steps.values() if step.op.name in ("look_up", "scatter_add") for id in step.inputs[1:]}


def _range(values: FloatArray) -> Drawn:
    """Whole numbers about as large as these; positive ones stay positive, as a γ or a variance is."""
    if values.min() > 0:
        return Drawn(values.shape, 1.0, max(2.0, min(math.ceil(float(values.max())), _WIDEST)))
    most = max(2.0, min(math.ceil(float(np.abs(values).max())), _WIDEST))
    return Drawn(values.shape, -most, most)


__all__ = ["redrawn"]
