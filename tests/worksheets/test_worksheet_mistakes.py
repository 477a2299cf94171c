"""Whole classes at the sheets of every recipe, simulated in bare NumPy: each mistake is found and named, nobody right is blamed."""

import pytest
from simulated_class import Class, complaint, sheet

from attncli.marking.mark import Marker
from attncli.worksheets import recipes
from attncli.worksheets.generator import draw
from attncli.worksheets.outcomes import certificate

QUICK = ("attention", "attention-causal", "embedding", "layer-norm", "softmax-backward")
SEEDS = ("class/1", "class/2")


def check(name, seed):
    problem, _ = draw(recipes.load(name), seed, proved=True)
    marker = Marker(problem)
    made = list(Class(problem).wrong())
    marked = marker.mark_many([sheet(wrong.texts) for wrong in made])
    assert [said for pair in zip(made, marked, strict=True) if (said := complaint(problem, *pair))] == []
    # Nothing that the certificate vouches for was left out here.
    vouched = {(proof.step, proof.id) for proof in certificate(marker) if proof.verdict != "impossible"}
    assert vouched <= {(wrong.kind.place, wrong.kind.id) for wrong in made}


@pytest.mark.parametrize("name", QUICK)
def test_every_mistake_is_marked_at_its_line_and_named(name):
    check(name, "class/1")


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", recipes.names())
def test_every_mistake_of_every_recipe_is_marked_at_its_line_and_named(name, seed):
    check(name, seed)
