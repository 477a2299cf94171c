"""A problem does not change, so its calculation is put together once."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import attncli
from attncli import models
from attncli.core.graph import Graph
from attncli.core.message import InputError
from attncli.render import formats, render


def attention() -> attncli.Problem:
    return attncli.problem(
        inputs={"Q": "1 2; 0 1", "K": "1 0; 0 1", "V": "2 0; 0 4"},
        settings={"causal": True},
        gradient={"G_O": "1 2; 3 4"},
        labels={"query": ["a", "b"]},
    )


def told(graph: Graph) -> object:
    """All that a graph says."""
    steps = [(s.id, s.symbol, s.inputs, str(s.axes), s.phase, str(s.why)) for s in graph.steps.values()]
    inputs = [(i.id, i.matrix.values.tolist()) for i in graph.inputs.values()]
    return steps, inputs, dict(graph.labels), [str(note) for note in graph.notes], graph.output, graph.loss, graph.phase


def test_the_same_graph_for_whoever_asks_again() -> None:
    problem = attention()
    assert problem.graph() is problem.graph() is problem.graph(backward=True)
    assert problem.graph(backward=False) is problem.graph(backward=False) is not problem.graph()
    assert attncli.backward(problem).graph is problem.graph()


def test_a_changed_problem_has_a_graph_of_its_own() -> None:
    problem = attention()
    before = problem.graph()
    other = problem.changed(settings={})
    assert "masked" in before
    assert "masked" not in other.graph()
    assert problem.graph() is before


def test_another_process_is_sent_the_fields() -> None:
    problem = attention()
    problem.graph()
    sent = pickle.loads(pickle.dumps(problem))
    assert set(vars(sent)) == set(attncli.Problem._fields)
    assert told(sent.graph()) == told(problem.graph())


def test_nobody_changes_what_others_are_given() -> None:
    problem = attention()
    graph = problem.graph()
    before = told(graph)
    run = attncli.backward(problem, check=True)
    for name in formats():
        render(run, name)
    attncli.forward(problem)
    attncli.mark(problem, {"A": "1 0; 0.5 0.5"})
    assert told(graph) == before
    assert problem.graph() is graph


def test_an_error_comes_again() -> None:
    problem = attention().changed(upstream=None)
    for _ in range(2):
        with pytest.raises(InputError, match="gradient to start from"):
            problem.graph(backward=True)
    assert "G_Q" not in problem.graph()


def test_the_models_are_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    known = models.names()
    known.append("nothing")
    monkeypatch.setattr(Path, "glob", None)
    assert models.names() == known[:-1]
    assert models.get("attention").name == "attention"
