"""Numbers for a recipe: hand-friendly, and such that no mistake hides. The same seed gives the same numbers on every Python."""

from __future__ import annotations

import hashlib
import itertools
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from attncli.arithmetic import Value
from attncli.core.graph import Graph, gradient_id
from attncli.core.matrix import FloatArray, Matrix
from attncli.core.message import InputError, Message, unknown
from attncli.core.terms import Term
from attncli.marking.mark import Marker
from attncli.problems.file import from_data
from attncli.problems.matrix_text import write_matrix
from attncli.problems.problem import Problem
from attncli.problems.source import matrix_of
from attncli.worksheets.outcomes import Proof, certificate, collisions
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
T = TypeVar("T")


class Draws:
    """Whole numbers from a seed, the same on every Python: `random.Random(int).random()` is promised to stay as it is."""

    def __init__(self, *seed: str | int) -> None:
        digest = hashlib.sha256("/".join(map(str, seed)).encode("utf-8")).digest()
        self._random = random.Random(int.from_bytes(digest, "big"))

    def below(self, count: int) -> int:
        """One of 0, …, count − 1."""
        return int(self._random.random() * count)

    def one_of(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]


def draw(
    recipe: Recipe,
    seed: str | int,
    *,
    decimals: int | None = None,
    ask: Sequence[str] = (),
    problem_id: str | None = None,
    proved: bool = False,
) -> tuple[Problem, list[Proof]]:
    """A complete problem with numbers of its own, and its certificate.

    Parameters
    ----------
    decimals, ask : places and steps, where not as the recipe says
    problem_id : made from recipe and seed, if nothing is said
    proved : also marked: each mistake that can be made is told from the others (slower); without it there is no certificate
    """
    draws = Draws(VERSION, recipe.name, seed)
    if problem_id is None:
        problem_id = f"{recipe.name}-{re.sub('[^A-Za-z0-9._-]+', '-', str(seed))[:30]}"
    start = _problem(recipe, _drawn({**recipe.inputs, **recipe.gradient}, draws), decimals, ask, problem_id)
    climb = Climb(recipe, start.graph())
    best: tuple[Problem, list[Proof]] | None = None
    fewest, tried = math.inf, 0
    for _ in range(_MOST_DRAWS):
        cells, is_friendly = climb.to_friendly(draws)
        if not is_friendly or not climb.to_even(cells, draws):
            continue
        problem = _with(start, recipe, cells)
        hidden, proofs = _hidden(problem, fewest, proved)
        if hidden < fewest:
            fewest, best = hidden, (problem, proofs)
        tried += 1
        if best is not None and (not fewest or tried == _PATIENCE):
            return best
    raise InputError(
        "Recipe {name}: no hand-friendly numbers were found. Widen the ranges of its inputs.", name=recipe.name
    )


def _hidden(problem: Problem, fewest: float, proved: bool) -> tuple[int, list[Proof]]:
    """How many mistakes are not told apart, and the certificate, if it is wanted and they may be fewer than before."""
    marker = Marker(problem)
    alike = collisions(marker)
    proofs = certificate(marker) if proved and alike < fewest else []
    return max(alike, sum(not proof.is_alone for proof in proofs)), proofs


class Climb:
    """From a draw to hand-friendly numbers, one number changed at a time."""

    def __init__(self, recipe: Recipe, graph: Graph) -> None:
        self.recipe = recipe
        self.graph = graph
        self.numbers = {**recipe.inputs, **recipe.gradient}
        forward = [step for step in graph.steps.values() if step.phase == "forward"]
        #: The weights of each attention, what their softmax is taken of, and that before the scale and the mask.
        self.attentions: list[tuple[str, str, str]] = []
        for step in filter(lambda step: step.is_attention, forward):
            scores = _before(graph, step.inputs[0], ("exp", "subtract", "row_max"))
            self.attentions.append((step.id, scores, _before(graph, scores, ("scale", "mask"))))
        self.spreads = [step.id for step in forward if step.id.endswith("variance")]
        self.until = [*itertools.chain.from_iterable(self.attentions), *self.spreads]

    def to_friendly(self, draws: Draws, most: int = _MOST_CHANGES) -> tuple[Cells, bool]:
        """Numbers drawn and made friendlier by at most so many changes, and whether they are hand-friendly now."""
        cells = _drawn(self.numbers, draws)
        return cells, self._climbed(cells, draws, most, self.cost) == 0

    def to_even(self, cells: Cells, draws: Draws) -> bool:
        """Change friendly numbers into ones that make as much work as the recipe says; whether that worked."""
        wanted = self.recipe.effort

        def off(cells: Cells) -> float:
            return abs(self.effort(cells) / wanted - 1) if wanted and self.cost(cells) == 0 else math.inf

        return wanted is None or self._climbed(cells, draws, _MOST_EVENING, off, EVEN) <= EVEN

    def _climbed(
        self, cells: Cells, draws: Draws, most: int, cost: Callable[[Cells], float], enough: float = 0.0
    ) -> float:
        """How far off numbers are when at most so many were changed, each only where that led no farther off."""
        off = cost(cells)
        places = [(name, i) for name, row in cells.items() for i in range(len(row))]
        for _ in range(most):
            if off <= enough:
                break
            name, i = draws.one_of(places)
            before = cells[name][i]
            cells[name][i] = draws.one_of(self.numbers[name].choices)
            changed = cost(cells) if cells[name][i] != before else off
            if changed <= off:
                off = changed
            else:
                cells[name][i] = before
        return off

    def cost(self, cells: Cells) -> float:
        """How far numbers are from hand-friendly ones; 0 where they are."""
        shaped = _shaped(self.numbers, cells)
        cost = float(sum(_plainness(self.numbers[name], value) for name, value in shaped.items()))
        cost += sum(_constant_rows(shaped[name]) for name in self.recipe.gradient)
        if not self.until:
            return cost
        given = {name: shaped[name] for name in self.recipe.inputs if name in self.graph.inputs}
        values = self.graph.evaluate(given=given, until=self.until)
        for weights, scores, product in self.attentions:
            cost += self._of_scores(values[scores]) + _of_weights(values[weights])
            cost += float(np.maximum(0, np.abs(values[product]) - MOST_SCORE).sum())
        return cost + sum(float((values[spread] < 1).sum()) for spread in self.spreads)

    def _of_scores(self, scores: FloatArray) -> float:
        shown = np.where(np.isfinite(scores), scores, np.nan)
        rows = shown.reshape(-1, shown.shape[-1])
        cost = 0.0
        if not self.recipe.ties:
            cost += sum(len(row) - len(np.unique(row)) for row in (each[~np.isnan(each)] for each in rows))
        cost += float((np.abs(np.nansum(rows, -1)) < 1e-9).sum())
        return cost + float(_is_symmetric(shown))

    def effort(self, cells: Cells) -> int:
        """What these numbers cost by hand."""
        given = {name: value for name, value in _shaped(self.numbers, cells).items() if name in self.graph.inputs}
        return effort(self.graph, self.graph.evaluate(given=given))


def _before(graph: Graph, name: str, ops: Sequence[str]) -> str:
    """The step or input that leads to this one through these ops alone."""
    while name in graph.steps and graph.steps[name].op.name in ops:
        name = graph.steps[name].inputs[0]
    return name


def _of_weights(weights: FloatArray) -> float:
    rows = weights.reshape(-1, weights.shape[-1])
    choice = (rows > 0).sum(-1, keepdims=True) > 1
    too_small = (rows > 0) & (rows < LEAST_WEIGHT)
    return float(((too_small | (rows > MOST_WEIGHT)) & choice).sum())


def _plainness(numbers: Drawn, value: FloatArray) -> int:
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


def _is_symmetric(value: FloatArray) -> bool:
    return (
        value.ndim > 1
        and value.shape[-1] > 1
        and value.shape[-1] == value.shape[-2]
        and bool((value == value.swapaxes(-1, -2)).all())
    )


def _constant_rows(value: FloatArray) -> int:
    return int((value == value[..., :1]).all(-1).sum()) if value.ndim > 1 and value.shape[-1] > 1 else 0


def _drawn(matrices: Mapping[str, Drawn], draws: Draws) -> Cells:
    return {
        name: [draws.one_of(matrix.choices) for _ in range(math.prod(matrix.shape))]
        for name, matrix in matrices.items()
    }


def _shaped(numbers: Mapping[str, Drawn], cells: Cells) -> dict[str, FloatArray]:
    return {name: np.array(cells[name], dtype=np.float64).reshape(matrix.shape) for name, matrix in numbers.items()}


def _problem(recipe: Recipe, cells: Cells, decimals: int | None, ask: Sequence[str], problem_id: str) -> Problem:
    """The problem of some numbers, read like any problem file."""
    data = {
        "schema": 1,
        "id": problem_id,
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
            raise unknown(Message("The step"), step, list(known))
    return from_data({**data, "marking": {"points": {step: 1 for step in known if step in asked}}})


def _with(problem: Problem, recipe: Recipe, cells: Cells) -> Problem:
    """The same problem with other numbers."""
    tables = _matrices(recipe, cells)
    return problem.changed(
        inputs={name: matrix_of(text) for name, text in tables["inputs"].items()},
        upstream=next(iter(matrix_of(text) for text in tables["gradient"].values()), None),
    )


def _matrices(recipe: Recipe, cells: Cells) -> dict[str, dict[str, str]]:
    """The matrices as a problem file writes them."""
    return {
        table: {name: write_matrix(values) for name, values in _shaped(numbers, cells).items()}
        for table, numbers in (("inputs", recipe.inputs), ("gradient", recipe.gradient))
    }


# How much work it is.

#: What a person does nothing for.
_FREE = (0.0, 1.0, -1.0)
#: Each of these is a calculation of its own.
_CALCULATED = frozenset({"exp", "ln", "power", "root", "tanh", "erf", "sin", "cos"})


def effort(graph: Graph, values: Mapping[str, Value]) -> int:
    """Multiplications, divisions and powers of a whole calculation; those with 0 and ±1 cost nothing."""
    return sum(
        _work(terms[index], values)
        for step in graph.steps.values()
        for terms in [step.terms(values)]
        for index in itertools.product(*map(range, graph.shape(step.id)))
    )


def _work(term: Term, values: Mapping[str, Value]) -> int:
    parts = term.terms
    inside = sum(_work(part, values) for part in parts)
    if term.kind == "product":
        plain = [_plain(part, values) for part in parts]
        return 0 if 0.0 in plain else inside + max(0, sum(one not in _FREE for one in plain) - 1)
    if term.kind == "quotient":
        over, under = (_plain(part, values) for part in parts)
        return inside + (over != 0.0 and under not in _FREE)
    if term.kind in _CALCULATED:
        plain = [_plain(part, values) for part in parts]
        return inside + all(one is None or (one != 0.0 and math.isfinite(one)) for one in plain)
    return inside


def _plain(term: Term, values: Mapping[str, Value]) -> float | None:
    """A number that stands on the page, or None for something that is worked out first."""
    if term.kind == "cell":
        step_id, index = term.place
        return float(values[step_id][index])
    if term.kind == "number":
        return term.value
    return None


# Other numbers for an exercise that somebody wrote.

#: Drawn are drawn from the range of those that stood there, no wider than this.
_WIDEST = 3.0
#: Cells up to which numbers are looked for that are friendly, and not only drawn; changes that are tried.
_MOST_CELLS, _MOST_RECHANGES = 60, 400
#: Draws that are tried until every line comes to a number.
_MOST_REDRAWS = 20


def redrawn(problem: Problem, seed: int) -> Problem:
    """The exercise with other numbers: of the same shapes, whole, and as friendly as a short search finds them.

    Ids, weights that add up to 1 and what a loss needs stay as they are.

    Parameters
    ----------
    seed : the same one gives the same numbers, on every Python
    """
    graph = problem.graph()
    output = gradient_id(graph.output)
    # In the graph tokens are rows, whatever the file says.
    inside = {name: given.matrix.values for name, given in graph.inputs.items()}
    inputs = {name: _range(inside[name]) for name, matrix in problem.inputs.items() if _is_drawn(graph, name, matrix)}
    gradient = {} if problem.upstream is None else {output: _range(inside[output])}
    if not inputs:
        return problem
    recipe = Recipe(problem.id or problem.model, problem.model, inputs, gradient, ties=True)
    climb = Climb(recipe, graph)
    draws = Draws(VERSION, "redrawn", recipe.name, seed)
    count = sum(math.prod(matrix.shape) for matrix in climb.numbers.values())
    written = {**problem.inputs, output: problem.upstream}
    for _ in range(_MOST_REDRAWS):
        cells, _ = climb.to_friendly(draws, _MOST_RECHANGES if count <= _MOST_CELLS else 0)
        drawn = {
            name: matrix_of(_in_layout_of(values, written[name]).tolist())
            for name, values in _shaped(climb.numbers, cells).items()
        }
        found = problem.changed(
            inputs={**problem.inputs, **{name: drawn[name] for name in inputs}},
            upstream=drawn.get(output, problem.upstream),
            published={}, how={}, notice={}, contrast=None,
        )  # fmt: skip
        if _is_worked_out(found.graph()) or not _is_worked_out(graph):
            return found
    return problem


def _in_layout_of(values: FloatArray, like: Matrix | None) -> FloatArray:
    """Numbers of the graph as the file writes such a matrix."""
    return values if like is None or values.shape == like.values.shape else values.swapaxes(-1, -2)


def _is_worked_out(graph: Graph) -> bool:
    """Whether every line comes to numbers: no row of equal numbers is divided by its spread."""
    with np.errstate(all="ignore"):
        trace = graph.evaluate()
    return not any(np.isnan(trace[step]).any() for step in graph.steps)


def _is_drawn(graph: Graph, name: str, matrix: Matrix) -> bool:
    """Whether an input may hold any numbers: no ids, no weights, nothing infinite."""
    values = matrix.values
    if name not in graph.inputs or not np.isfinite(values).all() or values.size < 2:
        return False
    is_weights = bool((values >= 0).all() and np.allclose(values.sum(-1), 1))
    return not (name.endswith("T") or is_weights or name in _taken_as_ids(graph))


def _taken_as_ids(graph: Graph) -> set[str]:
    """What names rows of a table."""
    return {
        name for step in graph.steps.values() if step.op.name in ("look_up", "scatter_add") for name in step.inputs[1:]
    }


def _range(values: FloatArray) -> Drawn:
    """Whole numbers about as large as these; positive ones stay positive, as a γ or a variance is."""
    if values.min() > 0:
        return Drawn(values.shape, 1.0, max(2.0, min(math.ceil(float(values.max())), _WIDEST)))
    most = max(2.0, min(math.ceil(float(np.abs(values).max())), _WIDEST))
    return Drawn(values.shape, -most, most)
