"""Every worked example as a page: its texts are attncli's to the last sign, its numbers those of attncli run anew."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from opened import Opened, example, view_of

from attncli import api
from attncli.core.matrix import Matrix, as_matrix
from attncli.problems import library
from attncli.problems.problem import Problem
from attncli.render import explorer
from attncli.render.text import cell_name
from attncli.render.view import View

#: Everything that the page says about its numbers.
_SAID = """() => {
  const texts = {};
  for (const e of document.querySelectorAll("[data-cell]")) texts[e.dataset.cell] = e.tagName === "INPUT" ? e.value : e.textContent;
  const arithmetic = Object.fromEntries(window.attncli.names().map(name => [name, window.attncli.arithmetic(name)]));
  return {texts, arithmetic, inputs: [...document.querySelectorAll("input[data-cell]")].map(e => e.dataset.cell)};
}"""


def is_explored(id: str) -> bool:
    run = view_of(library.load(id)).run
    return sum(math.prod(values.shape) for values in run.trace.numbers.values()) <= explorer.MOST_CELLS


#: Those that the ordinary tests open; the others belong to the slow ones.
QUICK = {
    "a1-pronoun", "a9-causal-mask", "b6-full-backward", "c7-repeated-token", "d2-multi-query", "e3-layer-norm", "e6-feed-forward",
    "e9-decoder-block", "f1-bare-gpt", "f2-gpt-block", "f4-cross-entropy", "aibyhand-three-heads", "candle-softmax-down-columns",
}  # fmt: skip
EXPLORED = [id for id in library.ids() if is_explored(id)]


def test_most_worked_examples_can_be_explored() -> None:
    assert len(EXPLORED) > 0.9 * len(library.ids())
    assert set(EXPLORED) >= QUICK


@pytest.mark.parametrize("id", [pytest.param(id, marks=() if id in QUICK else pytest.mark.slow) for id in EXPLORED])
def test_a_page_says_what_attncli_says(open_page: Callable[..., Opened], id: str) -> None:
    problem = library.load(id)
    assert_says_the_same(open_page(example(id)), problem)


QKV = {"Q": "1 2; 3 -1", "K": "1 0; 0 1", "V": "2 0; 0 4"}
FEED = {"X": "0.5 -1; 2 1", "W_1": "1 -1; 0.5 2", "b_1": "0.1 -0.2", "W_2": "1 0; -1 2", "b_2": "0 0.3"}
#: What no worked example has.
MADE: dict[str, dict[str, Any]] = {
    "a hidden row": {"inputs": QKV, "settings": {"keep": [[True, False], [False, False]]}, "gradient": {"G_O": "1 1; 0 1"}},
    "softcap": {"inputs": QKV, "settings": {"softcap": 2, "causal": True}, "gradient": {"loss": "sum(O)"}},
    "what cancels": {"inputs": {"Q": "1e8 1e8", "K": "1e8 -1e8; 100000001 -1e8", "V": "1 2; 3 4"}, "settings": {"scale": "1e-9"}, "gradient": {"G_O": "1 1"}},
    "a target": {"inputs": QKV, "gradient": {"loss": "mse(O, Y)", "Y": "1 2; 3 4"}},
    "a cache": {"inputs": {**QKV, "K_past": "1 1", "V_past": "3 1"}, "settings": {"causal": True}, "gradient": {"G_O": "1 1; 0 1"}},
    **{
        kind: {"model": "feed_forward", "inputs": FEED, "settings": {"activation": kind}, "gradient": {"G_Y": "1 2; -1 1"}}
        for kind in ("relu", "gelu", "gelu_tanh", "silu")
    },
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_a_page_says_the_same_of_what_no_example_has(open_page: Callable[..., Opened], name: str) -> None:
    problem = api.problem(**MADE[name])
    assert_says_the_same(open_page(explorer.page(view_of(problem))), problem)


def assert_says_the_same(page: Opened, problem: Problem) -> None:
    shown = view_of(problem)
    said = page.page.evaluate(_SAID)
    assert page.message == ""  # no term that does not come to attncli's number
    for item in (*shown.inputs, *shown.steps):
        for block in item.panels:
            for i, j in np.ndindex(*block.values.shape):
                assert said["texts"][name_of(shown, item.id, block.index(i, j))] == item.text(block.values[i, j])
        for name, text in shown.arithmetic(item):
            cell = name.replace(item.name, item.id, 1)
            assert said["arithmetic"][cell] == f"{name} = {text}"
    edit_three_times(page, problem, said["inputs"], random.Random(problem.id))


def name_of(view: View, id: str, index: tuple[int, ...]) -> str:
    return cell_name(id, index, view.layout)


def edit_three_times(page: Opened, problem: Problem, inputs: list[str], draw: random.Random) -> None:
    """Three changes, one after the other, each against a problem with that number calculated from its beginning."""
    if not inputs:
        return
    for _ in range(3):
        name, value = draw.choice(inputs), round(draw.uniform(-3, 3), 2)
        problem = changed(problem, name, value)
        found = page.numbers([(name, repr(value))])
        run = view_of(problem).run
        for id, values in run.trace.numbers.items():
            names = [cell_name(id, index, problem.layout) for index in np.ndindex(*values.shape)]
            ours = np.array([found[cell] for cell in names])
            scale = float(np.max(np.abs(values[np.isfinite(values)]), initial=0.0))
            np.testing.assert_allclose(
                ours, values.ravel(), rtol=1e-9, atol=1e-12 * max(scale, 1.0), err_msg=f"{name} = {value}: {id}"
            )


def changed(problem: Problem, name: str, value: float) -> Problem:
    """The problem with one number of an input, as the page names it, replaced."""
    id, _, place = name.rstrip("]").partition("[")
    index = tuple(int(part) - 1 for part in place.split(","))

    def with_number(matrix: Matrix) -> Any:
        values = np.array(matrix.values)
        values[index] = value
        return as_matrix(values)

    if id in problem.inputs:
        return problem.changed(inputs={**problem.inputs, id: with_number(problem.inputs[id])})
    if id in problem.extras:
        return problem.changed(extras={**problem.extras, id: with_number(problem.extras[id])})
    assert problem.upstream is not None
    return problem.changed(upstream=with_number(problem.upstream))


@pytest.mark.parametrize("how", [{"arithmetic": "hand"}, {"arithmetic": "exact"}])
def test_what_cannot_be_calculated_anew_is_to_read_and_says_so(how: dict[str, Any]) -> None:
    text = explorer.page(view_of(library.load("a1-pronoun"), **how))
    assert "<script" not in text and "This page is for reading" in text


def test_a_page_of_many_numbers_is_to_read_and_says_so() -> None:
    problem = Problem("attention", {name: as_matrix(np.ones((40, 2))) for name in "QKV"})
    text = explorer.page(view_of(problem))
    assert "<script" not in text and "beyond 3,000 it does not recalculate" in text
