"""The arithmetic of every cell of whole calculations, forward and backward, gives the number that was computed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from samples import some
from term_values import assert_cells_agree

from attncli.core.matrix import as_matrix
from attncli.problems.problem import Problem


def qkv(*, heads: tuple[int, ...] = (), kv: tuple[int, ...] = ()) -> dict[str, Any]:
    return {"Q": some(*heads, 3, 2), "K": some(*kv, 3, 2), "V": some(*kv, 3, 2)}


def problems() -> Iterator[tuple[str, Problem]]:
    def problem(
        model: str, inputs: dict[str, Any], settings: dict[str, Any] | None = None, loss: str = "sum(O)"
    ) -> Problem:
        matrices = {name: as_matrix(values) for name, values in inputs.items()}
        goal = {"goal": as_matrix(some(3, 2))}
        return Problem(model, matrices, settings=settings or {}, loss=loss, extras=goal)

    weights = {name: some(2, 2) * sign for name, sign in (("W_Q", 1), ("W_K", -1), ("W_V", 2))}
    past = {"K_past": some(1, 1, 2), "V_past": some(1, 1, 2)}
    lost = {"keep": [[True, False, True], [False, False, False], [True, True, True]]}
    yield "plain", problem("attention", qkv())
    yield "causal, soft cap", problem("attention", qkv(), {"causal": True, "softcap": 2.0}, "mse(O, goal)")
    yield "a hidden row", problem("attention", qkv(), lost)
    yield "max over all", problem("attention", qkv(), {"causal": True, "max_over": "all"})
    yield "heads, cache", problem("attention", qkv(heads=(2,), kv=(1,)) | past, {"causal": True}, "O[1,1,1] - O[2,2,2]")
    yield "hidden row, heads", problem("attention", qkv(heads=(2,), kv=(2,)), lost)
    yield "self-attention", problem("self_attention", {"X": some(3, 2)} | weights, {"causal": True}, "mse(O, goal)")
    yield "embedded", problem("embedded_attention", {"E": some(4, 2), "T": [2, 0, 2]} | weights, {"eta": 0.1})
    yield "softmax", problem("softmax", {"scores": [[1, -np.inf], [-np.inf, -np.inf]]}, loss="A[1,1]")


PROBLEMS = dict(problems())


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_arithmetic_of_every_cell_gives_its_value(name: str) -> None:
    graph = PROBLEMS[name].graph()
    trace = graph.evaluate()
    for step in graph.steps.values():
        assert_cells_agree(step, trace)
