"""Other ways that are right too: each ends where the right one does."""

from __future__ import annotations

import re

import numpy as np
import pytest
from mistake_graphs import graphs

from attncli.mistakes.routes import Route, routes
from attncli.problems.matrix_text import parse_matrix
from attncli.problems.problem import Problem


@pytest.mark.parametrize("name", graphs())
def test_every_route_ends_where_the_right_way_ends(name: str) -> None:
    graph = graphs()[name]
    right = graph.evaluate()
    ends = [graph.output, *(f"G_{id}" for id in graph.inputs if f"G_{id}" in graph.steps)]
    for route in routes(graph):
        assert re.fullmatch(r"[a-z]+(-[a-z]+)+", route.id)
        trace = graph.evaluate(swap={**route.after, **route.swap})
        for end in ends:
            np.testing.assert_allclose(trace[end], right[end], rtol=1e-9, atol=1e-12, err_msg=f"{route.id}: {end}")


def exercise() -> Problem:
    """Two tokens, the second one hidden from the first; √d_k = 2."""
    inputs = {
        "Q": parse_matrix("2 0 0 0; 0 2 0 0"),
        "K": parse_matrix("1 3 0 0; 2 2 0 0"),
        "V": parse_matrix("1 0; 0 1"),
    }
    return Problem("attention", inputs, settings={"causal": True}, upstream=parse_matrix("1 2; 3 5"))


def of(id: str) -> list[Route]:
    return [route for route in routes(exercise().graph()) if route.id == id]


def test_the_mask_may_be_added_to_scores_that_are_scaled_afterwards() -> None:
    """scores = 2 4; 6 4, masked = 2 −∞; 6 4, and half of that is what softmax is taken of."""
    graph = exercise().graph()
    right = graph.evaluate()
    shown = [graph.evaluate(swap=route.swap)["masked"].tolist() for route in of("mask-before-scale")]
    assert shown == [[[1.0, -np.inf], [3.0, 2.0]], [[2.0, -np.inf], [6.0, 4.0]], [[2.0, -np.inf], [6.0, 4.0]]]
    for route in of("mask-before-scale"):
        assert np.array_equal(graph.evaluate(swap=route.swap)["A"], right["A"])
    assert "scaled" in of("mask-before-scale")[1].swap and "scaled" not in of("mask-before-scale")[2].swap
    # From one's own line: what was written as masked is scaled, not what it should have been.
    own = {"masked": np.array([[2.0, -np.inf], [8.0, 4.0]])}
    trace = graph.evaluate(given=own, swap=of("mask-before-scale")[2].swap)
    assert trace["shifted"].tolist() == [[0.0, -np.inf], [0.0, -2.0]]


def test_a_mask_that_fills_hands_back_nothing_whatever_the_weights_were() -> None:
    """A learner's own A gives weight to a hidden key; his mask is a where, so its gradient is 0."""
    graph = exercise().graph()
    own = {"A": np.array([[0.5, 0.5], [0.75, 0.25]])}
    plain = graph.evaluate(given=own)
    assert plain["G_scaled"][0, 1] != 0
    here, both = (graph.evaluate(given=own, swap=route.swap) for route in of("where-fill"))
    assert here["G_scaled"][0, 1] == both["G_scaled"][0, 1] == both["G_masked"][0, 1] == 0
    assert here["G_masked"][0, 1] == plain["G_masked"][0, 1]
    assert np.array_equal(here["G_scaled"][1], plain["G_scaled"][1])


def test_without_a_mask_nothing_is_filled() -> None:
    graph = exercise().changed(settings={}).graph()
    assert not {"where-fill", "mask-before-scale"} & {route.id for route in routes(graph)}
