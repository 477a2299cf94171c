"""Every printed equation is true as printed, or has a ≈: read back from every worked example, in every format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

import pytest
from equations import Equation, in_latex, in_text, is_true

from attncli import api
from attncli.core.terms import Term, cell
from attncli.problems import library
from attncli.problems.problem import Run
from attncli.render.arithmetic import sign as sign_of
from attncli.render.latex import arithmetic
from attncli.render.view import View, view

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
            text, latex = shown.arithmetic(item), arithmetic(shown, item, item.panels[0])
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


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_the_readmes_print_what_is_true(name: str) -> None:
    found = list(in_text((Path(__file__).parents[2] / name).read_text(encoding="utf-8")))
    assert len(found) > 10
    assert false_ones(found) == []


@pytest.mark.parametrize(
    ("left", "result", "sign"),
    [
        (("product", "0.670", "4"), "2.679", "≈"),
        (("product", "0.670", "4"), "2.680", "="),
        (("sum", "0.660", "5.358"), "6.019", "≈"),
        (("quotient", "1", "3"), "0.333", "="),
        (("product", "0.667", "3"), "2", "≈"),  # a whole number without decimals is one
        (("product", "0.5", "0.001"), "0.001", "="),  # a 5 goes up
        (("exp", "−∞"), "0", "="),
        (("difference", "−∞", "−∞"), "−∞", "="),  # hidden stays hidden
        (("root", "2"), "1.414", "="),
        (("root", "2"), "1.415", "≈"),
    ],
)
def test_the_sign_is_that_of_the_printed_digits(left: tuple[str, ...], result: str, sign: str) -> None:
    kind, *numbers = left
    term = Term(kind, *(cell(text, ()) for text in numbers))
    assert sign_of(term, lambda text, _: text, result, 3) == sign
