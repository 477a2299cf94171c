"""Runs to render, and every formula of the registry."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from cases import CASES
from samples import SAMPLES

from attncli import api
from attncli.core.message import ENGLISH, Language
from attncli.problems.problem import Run
from attncli.render import printer
from attncli.render.formula import put_in
from attncli.render.view import View, view

#: Names as an attacker or an unlucky teacher writes them.
HOSTILE = (
    "它",
    "<script>alert(1)</script>",
    "=1+1",
    "a|b*c_d`e`",
    "$x$ \\input{y} 100% #1 &amp; ~^{}",
    "bell\x07 \x1b[31mred\u202e",
)

ZH = Language("zh", lambda text: f"中·{text}")


def _hostile() -> Any:
    size = len(HOSTILE)
    x = np.random.default_rng(5).normal(size=(size, 2)).round(2)
    return api.problem(
        model="self_attention",
        inputs={"X": x, "W_Q": "1 0; 0 1", "W_K": "1 1; 0 1", "W_V": "1 2; 3 4"},
        settings={"causal": True},
        gradient={"loss": "sum(O)"},
        labels={"token": list(HOSTILE)},
        title={"en": "<b>*Who*</b>\n# $is$ “it” & {why}", "zh": "<i>谁？</i>"},
    )


def _plain() -> Any:
    return api.problem(inputs={"Q": "1 2", "K": "1 0; 0 1", "V": "2 0; 0 4"}, gradient={"G_O": "1 2"})


def _heads() -> Any:
    return api.problem(
        inputs={"Q": "1 2; 0 1 | 1 0; 2 1", "K": "1 0; 0 1 | 1 1; 0 1", "V": "2 0; 0 4 | 1 1; 0 3"},
        settings={"causal": True},
        gradient={"G_O": "1 2; 0 1 | 0 1; 1 0"},
    )


def _lost() -> Any:
    """A maximum far above everything visible: 0/0."""
    return api.problem(
        inputs={"Q": "2000 1; 1 1", "K": "1 0; 0 1", "V": "2 0; 0 4"},
        settings={"mask": "-inf 0; 0 0", "max_over": "all"},
        gradient={"G_O": "1 1; 0 1"},
    )


def _hidden() -> Any:
    return api.problem(
        inputs={"Q": "1 2; 3 4", "K": "1 0; 0 1", "V": "2 0; 0 4"},
        settings={"mask": "-inf -inf; 0 -inf"},
        gradient={"G_O": "1 1; 0 1"},
    )


def _tokens() -> Any:
    """T is a vector, E has names, eta adds an update."""
    return api.problem(
        model="embedded_attention",
        inputs={
            "text": "我爱你我",
            "E": "1 0; 0 1; 1 1; 0.5 0.5",
            "W_Q": "1 0; 0 1",
            "W_K": "1 0; 0 1",
            "W_V": "1 0; 0 1",
        },
        settings={"vocabulary": ["我", "爱", "你", "-x"], "eta": 0.1},
        gradient={"loss": "sum(O)"},
    )


def _wide() -> Any:
    random = np.random.default_rng(0)
    return api.problem(
        inputs={name: random.normal(size=size) for name, size in (("Q", (2, 2)), ("K", (24, 2)), ("V", (24, 1)))},
        gradient={"loss": "sum(O)"},
    )


def _exact() -> Any:
    return api.problem(
        inputs={"Q": "1 2; 0 1", "K": "1 0; 0 1", "V": "2 0; 0 4"},
        settings={"causal": True},
        gradient={"G_O": "1 2; 0 1"},
    )


PROBLEMS: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "hostile": (_hostile, {"check": True}),
    "plain": (_plain, {"check": True}),
    "heads": (_heads, {}),
    "lost": (_lost, {}),
    "hidden": (_hidden, {}),
    "tokens": (_tokens, {}),
    "wide": (_wide, {}),
    "exact": (_exact, {"arithmetic": "exact"}),
    "by_hand": (_plain, {"arithmetic": "hand"}),
}
LAYOUTS = ("rows", "columns")


@cache
def calculated(name: str) -> Run:
    problem, how = PROBLEMS[name]
    return api.backward(problem(), **how)


@cache
def make_view(name: str, language: Language = ENGLISH, *, layout: str = "rows", **options: Any) -> View:
    run = calculated(name)
    return view(run.changed(problem=run.problem.changed(layout=layout)), language, **options)


_TEXTS: dict[tuple[str, int], Any] = {}


def written(format: str, shown: View) -> Any:
    """The view in a format, rendered once for all tests (views are kept, so their ids stay)."""
    key = format, id(shown)
    if key not in _TEXTS:
        _TEXTS[key] = printer(format)(shown)
    return _TEXTS[key]


@cache
def all_formulas() -> list[str]:
    """Every formula and symbol of every op (its samples) and every model (its cases), in both layouts."""
    found: set[str] = set()
    graphs = [sample.graph(name) for name, several in SAMPLES.items() for sample in several]
    graphs += [graph_of(model, case) for model, several in CASES.items() for case in several]
    for graph in graphs:
        found.update(formulas_of(graph))
    return sorted(found)


def graph_of(model: str, case: Any) -> Any:
    """The graph of a case, with its backward steps where the model has some."""
    graph = case.problem(model).graph()
    if any(input.differentiable for input in graph.inputs.values()):
        return case.with_upstream(model).graph()
    return graph


def formulas_of(graph: Any) -> set[str]:
    found = {graph.symbol(id) for id in (*graph.inputs, *graph.steps)}
    for step in graph.steps.values():
        symbols = [graph.symbol(id) for id in step.inputs]
        found.update(put_in(step.formula(columns), symbols) for columns in (False, True))
        if (numbers := step.numbers()) is not None:
            found.add(put_in(numbers, symbols))
    return found
