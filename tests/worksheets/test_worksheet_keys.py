"""Right sheets of people who round here and there as they like: none is marked wrong, and all lie within the key's ranges."""

import random

import numpy as np
import pytest

from attncli.arithmetic.rounding import round_decimal
from attncli.core.matrix import Matrix
from attncli.marking.habits import BY_HEAD
from attncli.marking.mark import Marker
from attncli.problems.answers import Answer, Sheet
from attncli.worksheets import recipes
from attncli.worksheets.generator import draw
from attncli.worksheets.key import key_of

QUICK = ("attention", "layer-norm", "softmax-backward")
PEOPLE = 100


def lines_of(problem, seed):
    """Every line by a habit of its own: all digits, or one to three places more than asked, or those asked."""
    chance = random.Random(seed)
    graph = problem.graph()
    values = {id: given.matrix.values for id, given in graph.inputs.items()}
    lines = {}
    for step in graph.steps.values():
        habit = chance.choice([one for one in BY_HEAD if one.ties == "away"]).arithmetic(problem.decimals)
        raw = step.op.compute(habit, *(values[id] for id in step.inputs), **step.params)
        values[step.id] = habit.round_step(raw)
        lines[step.id] = round_decimal(np.asarray(raw, dtype=float), problem.decimals)
    return lines


def sheet_of(problem, lines):
    return Sheet(None, {id: Answer(Matrix(line, np.full(line.shape, problem.decimals))) for id, line in lines.items()})


def check(name):
    problem = draw(recipes.load(name), "right")
    marker = Marker(problem)
    key = key_of(marker, list(marker.points))
    people = [lines_of(problem, f"{name} {number}") for number in range(PEOPLE)]
    marked = marker.mark_many([sheet_of(problem, lines) for lines in people])
    assert [one.first_wrong for one in marked if not one.ok] == []
    for lines in people:
        for id, line in lines.items():
            within = (line >= key[id].least - 1e-9) & (line <= key[id].most + 1e-9)
            assert (within | (line == key[id].values)).all(), (id, line, key[id].least, key[id].most)
    # The other side: two units beyond the range nothing is right.
    unit = 10.0**-problem.decimals
    sharp = [id for id in key if (key[id].most - key[id].least <= 2 * unit).all() and np.isfinite(key[id].most).all()]
    beyond = [sheet_of(problem, {id: key[id].most + 2 * unit}) for id in sharp]
    assert sharp
    assert {one.first_wrong for one in marker.mark_many(beyond)} == set(sharp)


@pytest.mark.parametrize("name", QUICK)
def test_right_sheets_lie_within_the_key(name):
    check(name)


#: 1 + 1 + 0.05949 is 2.059; whoever has 0.0595 on the calculator's way writes 2.060, and marking says: one unit off.
TWICE_ROUNDED = pytest.mark.xfail(strict=False, reason="a number rounded twice, by habits mixed from line to line")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[TWICE_ROUNDED] if name == "embedded-backward" else [])
        for name in sorted(set(recipes.names()) - set(QUICK))
    ],
)
def test_right_sheets_of_every_recipe_lie_within_the_key(name):
    check(name)
