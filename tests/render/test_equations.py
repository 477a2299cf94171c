"""Every printed equation is true as printed, or has a ≈: read back from every worked example, in every format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice

import pytest
from equations import Equation, in_latex, in_text, is_true

from attncli import api
from attncli.problems import library
from attncli.render._latex import arithmetic
from attncli.render._view import View, view
from attncli.run import Run

#: Equations of one step that are read back.
_OF_A_STEP = 8
#: Worked examples that are also tried with rounded numbers carried on.
_BY_HAND = 24


def _run(id: str, arithmetic: str) -> Run:
    problem = library.load(id)
    return (
        api.backward(problem, arithmetic=arithmetic)
        if problem.has_gradient
        else api.forward(problem, arithmetic=arithmetic)
    )


def false_ones(equations: Iterable[Equation], least: int = 0) -> list[str]:
    """Those that say = and are false, and those that say ≈ and are true."""
    return [f"{one.left} {one.sign} {one.right}" for one in equations if is_true(one, least) != (one.sign == "=")]


def _first_cells(shown: View) -> Iterator[tuple[str, str]]:
    """The first cells of every step: as --expand writes them, and in LaTeX."""
    for item in shown.steps:
        if item.step is not None:
            text, latex = shown.arithmetic(item), arithmetic(shown, item, item.blocks[0])
            for (name, line), formula in islice(zip(text, latex, strict=False), _OF_A_STEP):
                yield f"{name} = {line}", f"${formula}$"


@pytest.mark.parametrize("how", ["floating", "hand"])
@pytest.mark.parametrize("id", library.ids())
def test_worked_examples_print_what_is_true(id: str, how: str) -> None:
    if how == "hand" and id not in library.ids()[:_BY_HAND]:
        return
    run = _run(id, how)
    lines = list(_first_cells(view(run)))
    least = run.problem.decimals
    texts, formulas = (
        list(chain.from_iterable(map(read, side)))
        for read, side in zip((in_text, in_latex), zip(*lines, strict=True), strict=True)
    )
    assert [one.sign for one in texts] == [one.sign for one in formulas]
    assert false_ones(texts, least) == []
    assert false_ones(formulas, least) == []
