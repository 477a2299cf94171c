"""Sheets of blocks, stacks and a GPT, where hundreds of steps may be left out: a right one is never marked wrong, and
a wrong number is not let through because nobody can know what rounding did on the way."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from cases import CASES, Case

from attncli import mark
from attncli.arithmetic.floating import Floating
from attncli.core.graph import Graph
from attncli.core.matrix import as_matrix
from attncli.marking.mark import Marker
from attncli.mistakes import mistakes_at
from attncli.problems.answers import Sheet, answer
from attncli.problems.problem import Problem

STACKS = ("encoder_block", "decoder_block", "gpt", "latent")


class Sometimes(Floating):
    """Floats rounded after a step or not, as it comes."""

    def __init__(self, places: int, seed: int, share: float) -> None:
        self.places, self.random, self.share = places, random.Random(seed), share

    def round_step(self, value: Any) -> Any:
        return rounded(value, self.places) if self.random.random() < self.share else value

    round_intermediate = round_step


def rounded(value: Any, places: int) -> Any:
    unit = 10.0**places
    return np.sign(value) * np.floor(np.abs(value) * unit + 0.5) / unit


def written(value: Any, places: int) -> str:
    blocks = value if value.ndim == 3 else [value]
    rows = (("; ".join(" ".join(f"{cell:.{places}f}" for cell in row) for row in block)) for block in blocks)
    return " | ".join(rows)


def with_gradient(model: str, case: Case, places: int, seed: int) -> Problem:
    problem = case.problem(model).changed(decimals=places)
    if model == "gpt":
        return problem.changed(loss="cross_entropy(logits, T)")
    graph = problem.graph()
    upstream = np.random.default_rng(seed).normal(size=graph.shape(graph.output)).round(2)
    return problem.changed(upstream=as_matrix(upstream))


def right_sheet(problem: Problem, rng: random.Random) -> dict[str, str]:
    """Some steps of a right calculation, rounded now and then on the way, as they are written down."""
    graph, places = problem.graph(), problem.decimals
    trace = graph.evaluate(Sometimes(places, rng.randrange(10**9), rng.choice([0.0, 0.5, 1.0])))
    ids = [id for id in graph.steps if np.isfinite(trace[id]).all()]
    kept = rng.sample(ids, max(1, rng.choice([1, 2, 3, len(ids) // 4, len(ids) // 2])))
    return {id: written(rounded(trace[id], places), places) for id in ids if id in kept}


@pytest.mark.parametrize("model", STACKS)
@pytest.mark.parametrize("seed", range(8))
def test_a_right_sheet_is_never_marked_wrong(model: str, seed: int) -> None:
    rng = random.Random(f"{model} {seed}")
    problem = with_gradient(model, CASES[model][seed % len(CASES[model])], rng.choice([2, 3, 4]), seed)
    sheets = [right_sheet(problem, rng) for _ in range(2)]
    marked = [mark(problem, sheet) for sheet in sheets]
    for sheet in marked:
        assert sheet.first_wrong is None, [(step.id, step.verdict) for step in sheet.steps if step.verdict == "wrong"]
    # Side by side they come out as by themselves.
    together = Marker(problem).mark_many(
        [Sheet(None, {id: answer(text) for id, text in sheet.items()}) for sheet in sheets]
    )
    assert [[step.verdict for step in one.steps] for one in together] == [
        [step.verdict for step in one.steps] for one in marked
    ]


@pytest.mark.parametrize("model", STACKS)
def test_a_wrong_number_alone_at_the_end_is_found(model: str) -> None:
    """Bounds alone would let anything pass there: they hold a hundred times the number."""
    for case in CASES[model][:3]:
        problem = with_gradient(model, case, 4, 1)
        graph = problem.graph()
        last = [id for id, step in graph.steps.items() if step.phase == "backward"][-1]
        value = graph.evaluate()[last]
        wrong = value + 0.2 * np.abs(value).max() * np.where(np.indices(value.shape).sum(0) % 2, 1, -1)
        assert mark(problem, {last: written(wrong, 4)}).first_wrong == last
        assert mark(problem, {last: written(value, 4)}).first_wrong is None


#: Mistakes that only blocks, stacks and a GPT can hold.
OF_STACKS = {
    *("norm-placement", "residual-missing", "residual-doubled", "residual-path-missing", "value-rotated"),
    *("positions-on-queries-only", "output-head-missing", "batch-factor-missing"),
}


def mistakes_of(graph: Graph) -> list[tuple[str, str, Any]]:
    """Every such mistake with the step it shows at and what comes out there, where that can be told from the right."""
    right, found = graph.evaluate(), []
    for step in graph.steps.values():
        for mistake in mistakes_at(graph, step.id):
            if mistake.id in OF_STACKS:
                last = [id for id in graph.steps if id in mistake.swap][-1]
                wrong = graph.evaluate(swap=mistake.swap, until=last)[last]
                if not np.allclose(wrong, right[last], atol=2e-2):
                    found.append((mistake.id, last, wrong))
    return found


@pytest.mark.slow
def test_mistakes_of_blocks_are_named() -> None:
    named = set()
    for model, number in (("encoder_block", 0), ("encoder_block", 1), ("gpt", 1), ("gpt", 2), ("gpt", 4)):
        problem = with_gradient(model, CASES[model][number], 4, 1)
        graph = problem.graph()
        for id, last, wrong in mistakes_of(graph):
            marked = mark(problem, {last: written(rounded(wrong, 4), 4)})
            step = next(step for step in marked.steps if step.id == last)
            assert id in {mistake.id for mistake in step.mistakes}, (model, number, id, last, step.verdict)
            named.add(id)
    assert named == OF_STACKS
