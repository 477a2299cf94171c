"""A recorded run against the bare NumPy formula: pytest tests/benchmarks --benchmark-enable -s"""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import attncli
from attncli.core.matrix import as_matrix
from attncli.problems.problem import Problem


def problem(n: int, d: int) -> Problem:
    generator = np.random.RandomState(0)
    q, k, v, upstream = (as_matrix(generator.standard_normal((n, d))) for _ in range(4))
    return Problem("attention", {"Q": q, "K": k, "V": v}, settings={"causal": True}, upstream=upstream)


def bare(p: Problem):  # type: ignore[no-untyped-def]
    """Forward and backward as one writes them in NumPy, keeping nothing."""
    q, k, v = (p.inputs[name].values for name in "QKV")
    upstream = p.upstream.values
    root = np.sqrt(q.shape[1])
    hidden = np.triu(np.ones((len(q), len(k)), dtype=bool), 1)

    def formula():  # type: ignore[no-untyped-def]
        s = np.where(hidden, -np.inf, q @ k.T / root)
        e = np.exp(s - s.max(-1, keepdims=True))
        a = e / e.sum(-1, keepdims=True)
        o = a @ v
        g_a = upstream @ v.T
        g_s = a * (g_a - (g_a * a).sum(-1, keepdims=True)) / root
        return o, g_s @ k, g_s.T @ q, a.T @ upstream

    return formula


@pytest.mark.parametrize(("n", "d", "limit", "rounds"), [(3, 2, 4.0, 3000), (512, 64, 1.2, 40)])
def test_a_recorded_run(ratio, n, d, limit, rounds) -> None:  # type: ignore[no-untyped-def]
    p = problem(n, d)
    graph, formula = p.graph(), bare(p)
    trace = graph.evaluate()
    for ours, theirs in zip(("O", "G_Q", "G_K", "G_V"), formula(), strict=True):
        np.testing.assert_allclose(trace[ours], theirs, rtol=1e-9, atol=1e-12)
    del trace
    ratio(graph.evaluate, formula, limit=limit, rounds=rounds)


@pytest.mark.parametrize(("n", "d", "limit", "rounds"), [(3, 2, 4.0, 3000), (512, 64, 1.2, 40)])
def test_a_call_from_python(ratio, n, d, limit, rounds) -> None:  # type: ignore[no-untyped-def]
    """The same through `attncli.backward`, again and again with one problem: its calculation is put together once."""
    p = problem(n, d)
    formula = bare(p)
    np.testing.assert_allclose(attncli.backward(p)["G_Q"], formula()[1], rtol=1e-9, atol=1e-12)
    ratio(lambda: attncli.backward(p), formula, limit=limit, rounds=rounds)


def test_memory_of_a_recorded_run() -> None:
    """At n = 2048 the peak is the recorded matrices and little more: nothing is recorded twice."""
    graph = problem(2048, 64).graph()
    tracemalloc.start()
    try:
        trace = graph.evaluate()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    kept = {id(value): value.nbytes for step in trace.steps for value in [trace[step.id]]}
    print(f"\nmemory at n=2048: peak {peak / 1e6:.0f} MB, recorded {sum(kept.values()) / 1e6:.0f} MB")
    assert peak <= 1.2 * sum(kept.values())
