"""A mistake made alike forward and back is one mistake: its gradient is the gradient of what was calculated instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from mistake_graphs import graphs

from attncli.core.graph import Graph
from attncli.marking.mark import Marker
from attncli.mistakes import mistakes_at
from attncli.mistakes.mistake import Mistake
from attncli.problems.answers import sheet
from attncli.problems.matrix_text import parse_matrix
from attncli.problems.problem import Problem


def test_no_scale_forward_and_back() -> None:
    """By hand: scores 1 2, A = 0.269 0.731, G_A = 2 8, G_S = A ⊙ (G_A − 6.386); without any scale that is G_Q."""
    inputs = {"Q": parse_matrix("1 2"), "K": parse_matrix("1 0; 0 1"), "V": parse_matrix("2 0; 0 4")}
    graph = Problem("attention", inputs, upstream=parse_matrix("1 2")).graph()
    mistake = next(one for one in mistakes_at(graph, "scaled") if one.id == "no-scale")
    assert np.round(graph.evaluate(swap={**mistake.swap, **mistake.alike})["G_Q"], 4).tolist() == [[-1.1797, 1.1797]]
    assert np.round(graph.evaluate(swap=mistake.swap)["G_Q"], 4).tolist() == [[-0.8342, 0.8342]]


def made_alike(graph: Graph) -> Iterator[tuple[str, Mistake]]:
    """Each way to make each mistake that has more to it than one place, where it is made first."""
    seen = set[tuple[str, str, int]]()
    for step in graph.steps.values():
        ways: dict[str, int] = {}
        for mistake in mistakes_at(graph, step.id) if step.phase == "forward" else ():
            ways[mistake.id] = way = ways.get(mistake.id, 0) + 1
            if mistake.alike and (mistake.id, step.op.name, way) not in seen:
                seen.add((mistake.id, step.op.name, way))
                yield f"{mistake.id} at {step.id}, {way}", mistake


def result(graph: Graph, given: Mapping[str, Any], swap: Mapping[str, Any]) -> float:
    """The loss, or what takes its place: the output, each entry weighed by the gradient that arrives there."""
    target = graph.loss or graph.output
    value = graph.evaluate(given=given, swap=swap, until=target)[target]
    return float(np.sum(value if graph.loss else value * graph.inputs[f"G_{target}"].matrix.values))


def test_its_gradient_is_the_slope_of_what_was_calculated() -> None:
    tried = set[str]()
    for name, graph in graphs().items():
        inputs = [input for input in graph.inputs.values() if f"G_{input.id}" in graph.steps]
        if not inputs or "." in graph.output or name.startswith(("gpt", "transformer")):
            continue
        r = np.random.default_rng(5)
        ways = {input.id: r.normal(size=input.matrix.shape) for input in inputs}
        h = 1e-6
        for said, mistake in made_alike(graph):
            forward = {
                id: one for id, one in {**mistake.swap, **mistake.alike}.items() if graph.steps[id].phase == "forward"
            }
            try:
                trace = graph.evaluate(swap={**mistake.swap, **mistake.alike})
            except ValueError:  # operands that do not fit the other way round
                continue
            if any(trace[id].shape != graph.shape(id) for id in mistake.swap):
                continue
            slope = sum(float(np.sum(trace[f"G_{id}"] * way)) for id, way in ways.items())
            ends = [
                result(graph, {i.id: i.matrix.values + s * h * ways[i.id] for i in inputs}, forward) for s in (1, -1)
            ]
            assert slope == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=2e-4, abs=1e-6), f"{name}: {said}"
            tried.add(mistake.id)
    products = {"weight-transposed", "key-not-transposed", "operands-swapped", "weights-transposed", "value-transposed"}
    norms = {
        "sample-variance",
        "eps-outside-root",
        "not-square-rooted",
        "rooted-twice",
        "variance-squared",
        "not-centred",
    }
    heads = {"split-without-transpose", "merge-without-transpose", "heads-reversed", "kv-heads-tiled"}
    scales = {"no-scale", "scale-by-d", "scale-by-model-width", "scale-inverted"}
    others = {"residual-missing", "residual-doubled", "half-split-pairs", "pairings-mixed", "rotation-reversed"}
    assert tried >= products | norms | heads | scales | others


def test_two_gradients_exchanged_are_one_mistake() -> None:
    inputs = {
        "Q": parse_matrix("1 2; 0 1; 2 1"),
        "K": parse_matrix("1 0; 0 1; 1 3"),
        "V": parse_matrix("2 0; 0 4; 1 1"),
    }
    problem = Problem("attention", inputs, upstream=parse_matrix("1 2; 0 1; -1 1"))
    trace = problem.graph().evaluate()
    written = {"G_Q": as_text(trace["G_K"]), "G_K": as_text(trace["G_Q"])}
    marks = {step.id: step for step in Marker(problem).mark(sheet({"answers": written})).steps}
    assert (marks["G_Q"].verdict, [named.id for named in marks["G_Q"].mistakes]) == ("wrong", ["gradients-swapped"])
    assert marks["G_K"].verdict == "follow_through"
    assert marks["G_K"].points == marks["G_K"].max_points
    alone = Marker(problem).mark(sheet({"answers": {"G_Q": as_text(trace["G_Q"]), "G_K": as_text(trace["G_Q"])}}))
    assert [step.verdict for step in alone.steps if step.id in written] == ["correct", "wrong"]


def test_a_mistake_made_alike_is_told_where_it_showed_in_no_written_line() -> None:
    """All scores are 0, with the scale and without; in the gradient it shows."""
    inputs = {"Q": "0 0; 0 0", "K": "1 2; 3 1", "V": "2 0; 0 4"}
    matrices = {name: parse_matrix(given) for name, given in inputs.items()}
    problem = Problem("attention", matrices, upstream=parse_matrix("1 2; 0 1"))
    trace = problem.graph().evaluate()
    written = {"scores": "0 0; 0 0", "scaled": "0 0; 0 0", "G_scores": as_text(trace["G_scaled"])}
    marks = {step.id: step for step in Marker(problem).mark(sheet({"answers": written})).steps}
    assert marks["scaled"].verdict == "correct"
    assert {(named.step, named.id) for named in marks["G_scores"].mistakes} == {
        ("scaled", "no-scale"),
        ("G_scores", "gradient-scale-lost"),
    }
    beside = Problem("attention", {**matrices, "Q": parse_matrix("0 0; 1 0")}, upstream=parse_matrix("1 2; 0 1"))
    trace = beside.graph().evaluate()
    written = {name: as_text(trace[name]) for name in ("scores", "scaled")} | {"G_scores": as_text(trace["G_scaled"])}
    marks = {step.id: step for step in Marker(beside).mark(sheet({"answers": written})).steps}
    assert [named.id for named in marks["G_scores"].mistakes] == ["gradient-scale-lost"]


def as_text(value: Any) -> str:
    return "; ".join(" ".join(f"{cell:.3f}" for cell in row) for row in value)
