"""Each line of theirs is a line: a wrong calculation of several operations settles what a person writes down in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mistake_graphs import graphs

from attncli.arithmetic.floating import FLOATING, Floating
from attncli.arithmetic.hand import Hand
from attncli.core.graph import Graph
from attncli.mistakes import mistakes_at
from attncli.problems.matrix_text import parse_matrix
from attncli.problems.problem import Problem

#: Operations whose results have more digits than anybody writes down.
LONG = ("exp", "log", "sqrt", "divide", "matmul", "tanh", "erf", "sin", "cos")
#: Operations that nobody takes of a number that he has not written down.
TAKEN = (*LONG, "multiply", "sum")
#: What is one line all the same: a quotient of a logarithm to another base, from one key of a calculator.
ONE_LINE = {("log-base", "divide", "log")}


class Watching(Floating):
    """Float64 that notes which operation took a result that was not settled."""

    def __init__(self) -> None:
        self.made: dict[int, tuple[str, Any]] = {}
        self.found: set[tuple[str, str]] = set()
        for name in (*TAKEN, "add", "subtract"):
            setattr(self, name, self._watched(name, getattr(FLOATING, name)))

    def _watched(self, name: str, compute: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*operands: Any) -> Any:
            before = [self.made[id(one)][0] for one in operands if id(one) in self.made]
            if name in TAKEN:
                self.found.update((name, one) for one in before if one in LONG)
            value = np.asarray(compute(*operands))
            # A sum of what was long is as long.
            kept = name if name in LONG else next((one for one in before if one in LONG), name)
            self.made[id(value)] = kept, value
            return value

        return watched

    def round_intermediate(self, value: Any) -> Any:
        return np.array(value)

    def round_step(self, value: Any) -> Any:
        return np.array(value)


def test_nothing_is_calculated_from_what_was_not_written_down() -> None:
    found = set()
    for graph in graphs().values():
        right = graph.evaluate()
        for step in graph.steps:
            for mistake in mistakes_at(graph, step):
                for id, swap in mistake.swap.items():
                    if swap.op.name != "instead":
                        continue
                    watching = Watching()
                    with np.errstate(all="ignore"):
                        try:
                            swap.op.compute(watching, *(right[i] for i in swap.inputs), **swap.params)
                        except (ValueError, IndexError):
                            continue
                    found |= {(mistake.id, *one, graph.steps[id].op.name) for one in watching.found}
    assert {one for one in found if one[:3] not in ONE_LINE} == set()


def at(graph: Graph, step: str, id: str, given: dict[str, str]) -> list[str]:
    """What a mistake comes to by hand, in every way that people do it."""
    numbers = {name: parse_matrix(text).values for name, text in given.items()}
    found = []
    for mistake in mistakes_at(graph, step):
        if mistake.id == id:
            value = graph.evaluate(Hand(3), given=numbers, swap=mistake.swap, until=step)[step]
            found.append("; ".join(" ".join(f"{cell:.3f}" for cell in row) for row in value))
    return found


def test_softmax_over_columns_by_hand() -> None:
    """Below its maximum, column 1 is 0 −4.041: e^x 1 0.018, and 1/1.018 is 0.982. In one go it would be 0.983."""
    inputs = {"Q": parse_matrix("4 0; 0 -1"), "K": parse_matrix("1 1; 2 0"), "V": parse_matrix("1 0; 0 1")}
    graph = Problem("attention", inputs, settings={"causal": True}).graph()
    found = at(graph, "A", "softmax-over-columns", {"scaled": "2.309 3.464; -1.732 -0.577"})
    assert "0.982 0.000; 0.018 1.000" in found
    assert "0.983 0.000; 0.017 1.000" in found  # from e^2.309 = 10.064 and e^−1.732 = 0.177


def test_only_the_diagonal_by_hand() -> None:
    """0.333 · 0.667 is 0.222; 0.222 · 0.5 is 0.111. From 0.333 · 0.5 = 0.167 it is the same here."""
    inputs = {"Q": parse_matrix("0"), "K": parse_matrix("1; 2; 3"), "V": parse_matrix("1; 2; 3")}
    graph = Problem("attention", inputs, upstream=parse_matrix("1")).graph()
    given = {"A": "0.333 0.333 0.333", "G_A": "0.5 0.501 1"}
    assert at(graph, "G_scores", "softmax-diagonal-only", given) == ["0.111 0.111 0.222"] * 2
