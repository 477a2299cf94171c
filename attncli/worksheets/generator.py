"""Numbers for a recipe: hand-friendly, and such that no mistake hides. The same seed gives the same numbers on every Python."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attncli.core.graph import Graph
from attncli.core.message import N_, InputError, Message, unknown
from attncli.marking.mark import Marker
from attncli.problems.problem import Problem
from attncli.worksheets.certificate import Proof, by_hand, certificate, collisions, wrong_sheets
from attncli.worksheets.effort import effort
from attncli.worksheets.recipes import Drawn, Recipe

#: Of the drawing itself: whoever changes what is drawn from a seed counts it up.
VERSION = 1
#: Share of the recipe's effort by which a variant's may differ.
EVEN = 0.06
#: Largest score, and the smallest and the largest weight of a row in which there is a choice.
MOST_SCORE = 4.0
LEAST_WEIGHT, MOST_WEIGHT = 0.02, 0.90
#: Changes of one number that are tried from one draw, and draws that are tried for one variant.
_MOST_CHANGES = 1500
_MOST_DRAWS = 400
#: Changes that are tried to make it as much work as it should be, and drawn problems of which the best is taken.
_MOST_EVENING = 60
_PATIENCE = 12

Cells = dict[str, list[float]]


class Draws:
    """Whole numbers from a seed, the same on every Python: `random.Random(int).random()` is promised to stay as it is."""

    def __init__(self, *seed: object) -> None:
        digest = hashlib.sha256("/".join(map(str, seed)).encode("utf-8")).digest()
        self._random = random.Random(int.from_bytes(digest, "big"))

    def below(self, count: int) -> int:
        """One of 0, …, count − 1."""
        return int(self._random.random() * count)


def draw(
    recipe: Recipe,
    seed: object,
    *,
    decimals: int | None = None,
    ask: Sequence[str] = (),
    id: str | None = None,
    proved: bool = False,
) -> Problem:
    """A complete problem with numbers of its own.

    Parameters
    ----------
    seed : anything that has a text
    decimals, ask : places and steps, where not as the recipe says
    id : of the problem; made from recipe and seed, if nothing is said
    proved : also marked: each mistake that can be made is told from the others (slower)

    Raises
    ------
    InputError
        A step that the model does not have, or no such numbers were found.
    """
    return drawn(recipe, seed, decimals=decimals, ask=ask, id=id, proved=proved)[0]


def drawn(
    recipe: Recipe,
    seed: object,
    *,
    decimals: int | None = None,
    ask: Sequence[str] = (),
    id: str | None = None,
    proved: bool = True,
) -> tuple[Problem, list[Proof]]:
    """The same, with its certificate (empty where it was not asked for)."""
    draws = Draws(VERSION, recipe.name, seed)
    start = _problem(recipe, _drawn(recipe, draws), decimals, ask, id or _id(recipe, seed))
    climb = Climb(recipe, start.graph())
    best: tuple[int, Problem, list[Proof]] | None = None
    tried = 0
    for _ in range(_MOST_DRAWS):
        cells = climb.to_friendly(draws)
        if cells is None or not climb.to_even(cells, draws):
            continue
        problem = _with(start, recipe, cells)
        found = _told_apart(problem, best[0] if best is not None else None, proved)
        if found is not None:
            best = found[0], problem, found[1]
        tried += 1
        if best is not None and (best[0] == 0 or tried == _PATIENCE):
            return best[1], best[2]
    raise InputError(
        "Recipe {name}: no hand-friendly numbers were found. Widen the ranges of its inputs.", name=recipe.name
    )


def _told_apart(problem: Problem, before: int | None, proved: bool) -> tuple[int, list[Proof]] | None:
    """How many mistakes are not told apart, and the certificate; None where they are no fewer than before."""
    marker = Marker(problem)
    right = by_hand(marker)
    hidden = collisions(list(wrong_sheets(marker)), {id: right.carried(id)[0] for id in marker.points})
    if before is not None and hidden >= before:
        return None
    proofs = certificate(marker) if proved else []
    left = max(hidden, sum(not proof.is_alone for proof in proofs))
    return None if before is not None and left >= before else (left, proofs)


class Climb:
    """From a draw to hand-friendly numbers, one number changed at a time."""

    def __init__(self, recipe: Recipe, graph: Graph) -> None:
        self.recipe = recipe
        self.graph = graph
        self.numbers = {**recipe.inputs, **recipe.gradient}
        self.weights = [step.id for step in graph.steps.values() if step.is_attention and step.phase == "forward"]
        self.scores = [_scores_of(graph, id) for id in self.weights]
        self.spreads = [
            step.id for step in graph.steps.values() if step.id.endswith("variance") and step.phase == "forward"
        ]
        self.products = [_before(graph, id, ("scale", "mask")) for id in self.scores]
        self.until = [*self.weights, *self.scores, *self.products, *self.spreads]

    def to_friendly(self, draws: Draws) -> Cells | None:
        """Hand-friendly numbers, or None where this draw leads to none."""
        cells, cost = self.climbed(draws, _MOST_CHANGES)
        return cells if cost == 0 else None

    def climbed(self, draws: Draws, most: int) -> tuple[Cells, float]:
        """Numbers made friendlier by at most so many changes, and how far they are from friendly ones."""
        cells = _drawn(self.recipe, draws)
        cost = self.cost(cells)
        places = [(id, i) for id, row in cells.items() for i in range(len(row))]
        for _ in range(most):
            if cost == 0:
                break
            id, i = places[draws.below(len(places))]
            choices = self.numbers[id].choices
            before = cells[id][i]
            cells[id][i] = choices[draws.below(len(choices))]
            changed = self.cost(cells) if cells[id][i] != before else cost
            if changed <= cost:
                cost = changed
            else:
                cells[id][i] = before
        return cells, cost

    def cost(self, cells: Cells) -> float:
        """How far numbers are from hand-friendly ones; 0 where they are."""
        shaped = _shaped(self.numbers, cells)
        cost = float(sum(_plainness(self.numbers[id], value) for id, value in shaped.items()))
        cost += sum(_constant_rows(shaped[id]) for id in self.recipe.gradient)
        if not self.until:
            return cost
        given = {
            id: value for id, value in shaped.items() if id in self.graph.inputs and id not in self.recipe.gradient
        }
        values = self.graph.evaluate(given=given, until=self.until)
        for weights, scores, product in zip(self.weights, self.scores, self.products, strict=True):
            cost += self._of_scores(values[scores]) + _of_weights(values[weights])
            cost += float(np.maximum(0, np.abs(values[product]) - MOST_SCORE).sum())
        for id in self.spreads:
            cost += float((values[id] < 1).sum())
        return cost

    def _of_scores(self, scores: Any) -> float:
        shown = np.where(np.isfinite(scores), scores, np.nan)
        rows = shown.reshape(-1, shown.shape[-1])
        cost = 0.0
        if not self.recipe.ties:
            cost += sum(len(row) - len(np.unique(row)) for row in (each[~np.isnan(each)] for each in rows))
        cost += float((np.abs(np.nansum(rows, -1)) < 1e-9).sum())
        return cost + float(_is_symmetric(shown))

    def to_even(self, cells: Cells, draws: Draws) -> bool:
        """Change friendly numbers into ones that make as much work as the recipe says; whether that worked."""
        wanted = self.recipe.effort
        if wanted is None:
            return True
        off = abs(self.effort(cells) / wanted - 1)
        places = [(id, i) for id, row in cells.items() for i in range(len(row))]
        for _ in range(_MOST_EVENING):
            if off <= EVEN:
                return True
            id, i = places[draws.below(len(places))]
            choices = self.numbers[id].choices
            before = cells[id][i]
            cells[id][i] = choices[draws.below(len(choices))]
            changed = abs(self.effort(cells) / wanted - 1) if self.cost(cells) == 0 else off + 1
            if changed <= off:
                off = changed
            else:
                cells[id][i] = before
        return off <= EVEN

    def effort(self, cells: Cells) -> int:
        """What these numbers cost by hand."""
        given = {id: value for id, value in _shaped(self.numbers, cells).items() if id in self.graph.inputs}
        return effort(self.graph, self.graph.evaluate(given=given))


def _scores_of(graph: Graph, weights: str) -> str:
    """What a softmax is taken of: the step or input that its chain of ops begins with."""
    return _before(graph, graph.steps[weights].inputs[0], ("exp", "subtract", "row_max"))


def _before(graph: Graph, id: str, ops: Sequence[str]) -> str:
    """The step or input that leads to this one through these ops alone."""
    while id in graph.steps and graph.steps[id].op.name in ops:
        id = graph.steps[id].inputs[0]
    return id


def _of_weights(weights: Any) -> float:
    rows = weights.reshape(-1, weights.shape[-1])
    choice = (rows > 0).sum(-1, keepdims=True) > 1
    too_small = (rows > 0) & (rows < LEAST_WEIGHT)
    return float(((too_small | (rows > MOST_WEIGHT)) & choice).sum())


def _plainness(numbers: Drawn, value: Any) -> int:
    """Faults of one matrix: equal rows, symmetry, too many zeros; ids without the repetition that is wanted."""
    if numbers.repeats:
        distinct = len(np.unique(value))
        return abs(int(value.size) - 1 - distinct)
    faults = int(2 * (value == 0).sum() > value.size)
    if value.ndim > 1 and len(value) > 1:
        faults += len(value) - len({row.tobytes() for row in value + 0.0})
        faults += int(_is_symmetric(value))
    elif value.size > 1:
        faults += int((value == value.flat[0]).all())
    return faults


def _is_symmetric(value: Any) -> bool:
    return (
        value.ndim > 1
        and value.shape[-1] > 1
        and value.shape[-1] == value.shape[-2]
        and bool((value == value.swapaxes(-1, -2)).all())
    )


def _constant_rows(value: Any) -> int:
    return int((value == value[..., :1]).all(-1).sum()) if value.ndim > 1 and value.shape[-1] > 1 else 0


def _drawn(recipe: Recipe, draws: Draws) -> Cells:
    return {
        id: [numbers.choices[draws.below(len(numbers.choices))] for _ in range(int(np.prod(numbers.shape)))]
        for id, numbers in {**recipe.inputs, **recipe.gradient}.items()
    }


def _shaped(numbers: Mapping[str, Drawn], cells: Cells) -> dict[str, Any]:
    return {id: np.array(row, dtype=np.float64).reshape(numbers[id].shape) for id, row in cells.items()}


def _problem(recipe: Recipe, cells: Cells, decimals: int | None, ask: Sequence[str], id: str) -> Problem:
    """The problem of some numbers, read like any problem file."""
    from attncli.problems.file import from_data

    data = {
        "schema": 1,
        "id": id,
        "model": recipe.model,
        "decimals": recipe.decimals if decimals is None else decimals,
        "title": dict(recipe.title),
        "prompt": dict(recipe.prompt),
        "settings": dict(recipe.settings),
        **_matrices(recipe, cells),
    }
    problem = from_data(data)
    known = problem.graph().steps
    asked = tuple(ask) or recipe.ask or tuple(known)
    for step in asked:
        if step not in known:
            raise unknown(Message(N_("The step")), step, list(known))
    return from_data({**data, "marking": {"points": {step: 1 for step in known if step in asked}}})


def _id(recipe: Recipe, seed: object) -> str:
    """An id that a problem file may have."""
    return f"{recipe.name}-{re.sub('[^A-Za-z0-9._-]+', '-', str(seed))[:30]}"


def _with(problem: Problem, recipe: Recipe, cells: Cells) -> Problem:
    """The same problem with other numbers."""
    from attncli.problems.source import matrix_of

    tables = _matrices(recipe, cells)
    return problem.changed(
        inputs={id: matrix_of(text) for id, text in tables["inputs"].items()},
        upstream=next(iter(matrix_of(text) for text in tables["gradient"].values()), None),
    )


def _matrices(recipe: Recipe, cells: Cells) -> dict[str, dict[str, str]]:
    """The matrices as a problem file writes them."""
    return {
        table: {id: _text(one.shape, cells[id]) for id, one in numbers.items()}
        for table, numbers in (("inputs", recipe.inputs), ("gradient", recipe.gradient))
    }


def _text(shape: Sequence[int], cells: Sequence[float]) -> str:
    words = [f"{value:g}" for value in cells]
    return "; ".join(" ".join(words[i : i + shape[-1]]) for i in range(0, len(words), shape[-1]))


__all__ = ["Draws", "draw", "drawn"]
