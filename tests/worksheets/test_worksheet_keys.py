"""Right sheets of people who round here and there as they like: none is marked wrong, and all lie within the key's ranges."""

import numpy as np
import pytest
from simulated_class import Class, as_text, from_text, sheet

from attncli.marking.mark import Marker
from attncli.problems.question import question_of
from attncli.worksheets import recipes
from attncli.worksheets.generator import draw
from attncli.worksheets.outcomes import key_of

QUICK = ("attention", "layer-norm", "softmax-backward")
PEOPLE = 100
SOFTMAX = {"scaled", "masked", "row_max", "shifted", "exp", "row_sum", "A"}


def check(name):
    problem, _ = draw(recipes.load(name), "class/right", proved=True)
    marker = Marker(problem)
    key = key_of(marker, question_of(marker.problem))
    people = list(Class(problem).people(PEOPLE, 1))
    marked = marker.mark_many([sheet(texts) for texts in people])
    assert [one.first_wrong for one in marked if not one.ok] == []
    for texts in people:
        for id, text in texts.items():
            line = from_text(text)
            within = (line >= key[id].least - 1e-9) & (line <= key[id].most + 1e-9)
            assert (within | (line == key[id].values)).all(), (id, line, key[id].least, key[id].most)
    # The other side: two units beyond the range nothing is right. In one cell: a constant on all scores is another way. On the
    # way through softmax a hundred units: who takes one maximum from the whole matrix divides small numbers, and is as right.
    unit = 10.0**-problem.decimals
    with np.errstate(invalid="ignore"):
        sharp = [id for id in key if (key[id].most - key[id].least <= 2 * unit).all()]
    last = {id: np.arange(key[id].most.size).reshape(key[id].most.shape) == key[id].most.size - 1 for id in sharp}
    moved = {id: key[id].most + (100 if id in SOFTMAX else 2) * unit * last[id] for id in sharp}
    beyond = [sheet({id: as_text(moved[id], problem.decimals)}) for id in sharp]
    assert sharp
    assert {one.first_wrong for one in marker.mark_many(beyond)} == set(sharp)


@pytest.mark.parametrize("name", QUICK)
def test_right_sheets_lie_within_the_key(name):
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(recipes.names()) - set(QUICK)))
def test_right_sheets_of_every_recipe_lie_within_the_key(name):
    check(name)


def test_a_maximum_that_is_rounded_while_its_scores_are_not():
    """√2 − 1.414 = 0.0002 is written 0.000, its power 1.0002 as 1.000, and 0.0591 + 2·1.0002 is 2.060: one habit a line."""
    problem = draw(recipes.load("embedded-backward"), "right")[0]
    texts = {
        "scaled": "-1.414 1.414 1.414; 0.000 1.414 1.414; 0.000 1.414 1.414",
        "row_max": "1.414; 1.414; 1.414",
        "shifted": "-2.828 0.000 0.000; -1.414 0.000 0.000; -1.414 0.000 0.000",
        "exp": "0.059 1.000 1.000; 0.243 1.000 1.000; 0.243 1.000 1.000",
        "row_sum": "2.060; 2.244; 2.244",
    }
    assert Marker(problem).mark(sheet(texts)).first_wrong is None


def test_what_is_hidden_has_one_right_number():
    problem, _ = draw(recipes.load("attention-causal"), "hidden")
    marker = Marker(problem)
    masked = key_of(marker, question_of(marker.problem))["masked"]
    hidden = np.isneginf(masked.values)
    assert hidden.any() and (masked.least[hidden] == masked.most[hidden]).all()
    assert np.isfinite(masked.most[~hidden]).all()
