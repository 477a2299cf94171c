"""The table of e^−x on a sheet: it holds what a right learner looks up, rounds to the right digits, and depends on no variant."""

from itertools import chain

import numpy as np
import pytest

import attncli
from attncli.arithmetic.hand import round_decimal
from attncli.cli.main import main
from attncli.problems.question import question_of
from attncli.worksheets import recipes
from attncli.worksheets.generator import draw
from attncli.worksheets.outcomes import powers_of

WITHOUT = {"embedding", "layer-norm", "layer-norm-backward"}


@pytest.mark.parametrize("name", recipes.names())
def test_every_recipe_with_exponentials_has_all_that_are_needed(name):
    tables = []
    for seed in range(3):
        problem = draw(recipes.load(name), f"powers/{seed}")[0]
        table = powers_of(question_of(problem))
        assert (not table) == (name in WITHOUT)
        if table:
            known = {
                round(x, 6): round_decimal(np.array(power), 5)
                for line in table
                for x, power in zip(line.x, line.power, strict=True)
            }
            trace = problem.graph().evaluate()
            for x, power in zip(np.ravel(trace["shifted"]), np.ravel(trace["exp"]), strict=True):
                if np.isfinite(x) and x != 0:
                    assert round_decimal(known[round(-x, 6)], 3) == round_decimal(np.array(power), 3)
        tables.append(table)
    assert len({tuple(line.x for line in table) for table in tables}) == 1


def test_none_where_it_would_not_help():
    problem = draw(recipes.load("attention"), "1", ask=["scores", "scaled"])[0]
    assert powers_of(question_of(problem)) == ()
    odd = attncli.problem("attention", {"Q": "0.3 1", "K": "1 0; 0 1", "V": "2 0; 0 4"})
    assert powers_of(question_of(odd)) == ()


def test_what_is_printed_is_true(capfd):
    assert main(["worksheet", "a1", "--lang", "en"]) == 0
    rows = [line.split() for line in capfd.readouterr().out.splitlines()]
    xs = [row[1:] for row in rows if row[:1] == ["x"]]
    powers = [row[1:] for row in rows if row[:1] == ["e^(-x)"] and row[1][:1].isdigit()]
    assert sum(map(len, xs)) == sum(map(len, powers)) > 10
    for x, power in zip(chain(*xs), chain(*powers), strict=True):
        assert float(power) == pytest.approx(np.exp(-float(x)), abs=0.6e-5)
