"""Every printed equation is true as printed, or has a ≈: read back from every worked example, in every format."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

import pytest
from equations import Equation, in_latex, in_text, is_true
from hypothesis import given
from hypothesis import strategies as st

from attncli import api
from attncli.problems import library
from attncli.problems.problem import Problem
from attncli.render import get
from attncli.render._equals import sign
from attncli.render._view import view
from attncli.run import Run
from attncli.terms import Term, cell

#: Cells that a calculation may have to be read back whole; of a larger one the first equations of every step are.
_MOST = 300


def _run(id: str, arithmetic: str) -> Run:
    problem = library.load(id)
    return api.backward(problem, arithmetic=arithmetic) if problem.has_gradient else api.forward(problem, arithmetic=arithmetic)


def _some(equations: Iterator[Equation]) -> list[Equation]:
    """The first few equations of every step."""
    kept: dict[str, list[Equation]] = {}
    for one in equations:
        step = kept.setdefault(re.split(r"\[|_\{\d", one.name)[0], [])
        if len(step) < 12:
            step.append(one)
    return [one for step in kept.values() for one in step]


def false_ones(equations: list[Equation], least: int = 0) -> list[str]:
    """Those that say = and are false, and those that say ≈ and are true."""
    return [f"{one.left} {one.sign} {one.right}" for one in equations if is_true(one, least) != (one.sign == "=")]


@pytest.mark.parametrize("arithmetic", ["floating", "hand"])
@pytest.mark.parametrize("id", library.ids())
def test_worked_examples_print_what_is_true(id: str, arithmetic: str) -> None:
    run = _run(id, arithmetic)
    if sum(run[step].size for step in run.shown) > 20 * _MOST:
        pytest.skip("thousands of cells")
    least = run.problem.decimals
    shown = view(run, expand=True, width=4000)
    text = list(in_text(get("table").render(shown)))
    assert false_ones(_some(iter(text)), least) == []
    latex = get("latex").render(shown)
    assert false_ones(_some(in_latex(latex)), least) == []
    about = any(one.sign == "≈" for one in text)
    assert about == ("≈: " in get("table").render(shown))
