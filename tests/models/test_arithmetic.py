"""Every model in every number system: bounds hold what floats and hands come to, exact numbers agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import CASES, EACH, IDS, Case

from attncli.arithmetic import by_name
from attncli.arithmetic.interval import IntervalArithmetic
from attncli.graph import Graph
from attncli.matrix import Matrix


def graph_of(model: str, case: Case) -> Graph:
    graph = case.problem(model).graph()
    moved = any(input.differentiable for input in graph.inputs.values())
    return case.with_upstream(model).graph() if moved else graph


@pytest.mark.parametrize(("model", "case"), EACH, ids=IDS)
def test_bounds(model: str, case: Case) -> None:
    graph = graph_of(model, case)
    plain, close = graph.evaluate(), graph.evaluate(IntervalArithmetic(None))
    for step in graph.steps:
        assert (close[step].contains(plain[step]) | np.isnan(plain[step])).all(), step
        finite = np.isfinite(plain[step])
        width = close[step].hi[finite] - close[step].lo[finite]
        # Bounds grow from step to step: those of a stack of blocks hold, but are not as close.
        assert len(graph.steps) >= 80 or width.max(initial=0.0) <= 1e-9, step
    wide = graph.evaluate(IntervalArithmetic(3))
    for rounding in ("away", "even"):
        hand = graph.evaluate(by_name("hand", 3, rounding))
        for step in graph.steps:
            assert (wide[step].contains(hand[step]) | np.isnan(hand[step])).all(), step
    for step in graph.steps:
        assert (wide[step].contains(plain[step]) | np.isnan(plain[step])).all(), step


#: One small case of each model; expressions grow with every step.
SMALL = ["layer_norm", "rms_norm", "positions", "rotary", "feed_forward", "residual", "multi_head", "latent"]


def decimal(values: Any) -> Matrix:
    """Numbers with one decimal, as they are written."""
    rounded = np.round(np.asarray(values, dtype=np.float64), 1)
    entries = tuple(("num", f"{value:.1f}") for value in rounded.flat)
    return Matrix(rounded, np.ones(rounded.shape, dtype=np.int_), entries)


@pytest.mark.parametrize("model", SMALL)
def test_exact_numbers(model: str) -> None:
    pytest.importorskip("sympy")
    for case in CASES[model][:2] if model in ("multi_head", "latent") else CASES[model]:
        inputs = {name: decimal(values) for name, values in case.inputs.items()}
        graph = case.problem(model).changed(inputs=inputs).graph()
        exact, plain = graph.evaluate(by_name("exact")), graph.evaluate()
        for step in graph.steps:
            numbers = np.array([float(n) for n in exact[step].flat]).reshape(plain[step].shape)
            np.testing.assert_allclose(numbers, plain[step], rtol=1e-12, atol=1e-14, err_msg=step)
