"""Numbers drawn for a recipe: the same from the same seed, hand-friendly, of equal effort, and no mistake hides in them."""

import numpy as np
import pytest

from attncli.core.message import InputError
from attncli.marking.mark import Marker
from attncli.worksheets import recipes
from attncli.worksheets.generator import EVEN, Draws, draw, effort
from attncli.worksheets.outcomes import certificate, wrong_sheets

QUICK = ("softmax", "embedding", "attention")


def text_of(problem):
    return {id: matrix.values.tolist() for id, matrix in problem.inputs.items()}


def test_draws_are_the_same_on_every_python():
    """From CPython's Mersenne Twister, whose random() is promised to stay as it is."""
    draws = Draws(1, "attention", "s")
    assert [draws.below(10) for _ in range(8)] == FIRST


FIRST = [0, 8, 0, 4, 5, 9, 0, 8]


@pytest.mark.parametrize("name", recipes.names())
def test_drawn_numbers_are_friendly(name):
    recipe = recipes.load(name)
    problem, _ = draw(recipe, "t")
    assert text_of(problem) == text_of(draw(recipe, "t")[0]) != text_of(draw(recipe, "u")[0])
    graph = problem.graph()
    trace = graph.evaluate()
    for id, numbers in {**recipe.inputs, **recipe.gradient}.items():
        assert set(graph.inputs[id].matrix.values.flat) <= set(numbers.choices)
    for step in graph.steps.values():
        if step.is_attention and step.phase == "forward":
            rows = trace[step.id].reshape(-1, trace[step.id].shape[-1])
            for row in rows:
                seen = row[row > 0]
                assert len(seen) == 1 or (seen.min() >= 0.02 and seen.max() <= 0.9)
    if "scores" in graph:
        scores = trace["scores"]
        assert np.abs(scores).max() <= 4
    assert list(problem.marking.points) == list(graph.steps)
    assert abs(effort(graph, trace) / recipe.effort - 1) <= EVEN


@pytest.mark.parametrize("name", QUICK)
def test_every_mistake_is_named_beside_nothing_but_the_known_pairs(name):
    problem, proofs = draw(recipes.load(name), "proof", proved=True)
    assert [proof for proof in proofs if not proof.is_alone] == []
    assert {proof.verdict for proof in proofs} >= {"alone"}
    made = {(one.step, one.id) for one in wrong_sheets(Marker(problem)) if one.lines is not None}
    assert made == {(proof.step, proof.id) for proof in proofs if proof.verdict != "impossible"}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(recipes.names()) - set(QUICK)))
@pytest.mark.parametrize("seed", ["1", "2"])
def test_every_recipe_has_numbers_in_which_no_mistake_hides(name, seed):
    _, proofs = draw(recipes.load(name), seed, proved=True)
    assert [(proof.step, proof.id, proof.shared) for proof in proofs if not proof.is_alone] == []


def test_a_certificate_says_where_a_mistake_hides():
    """The other side: with equal scores everywhere nothing tells a scale from none."""
    import attncli

    problem = attncli.problem(model="attention", inputs={"Q": "0 0; 0 0", "K": "1 2; 3 4", "V": "1 2; 3 4"})
    proofs = {(proof.step, proof.id): proof for proof in certificate(Marker(problem))}
    assert not proofs["scaled", "no-scale"].is_alone
    assert proofs["scaled", "no-scale"].shared == (("", "right"),)


def test_places_steps_and_unknown_names():
    recipe = recipes.load("attention")
    problem, _ = draw(recipe, 1, decimals=2, ask=["O", "A"])
    assert problem.decimals == 2 and list(problem.marking.points) == ["A", "O"]
    with pytest.raises(InputError, match="attention"):
        recipes.load("atention")
    with pytest.raises(InputError, match="scores"):
        draw(recipe, 1, ask=["score"])
