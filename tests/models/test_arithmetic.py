"""Every model in every number system: bounds hold what floats and hands come to, exact numbers agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy
from block_cases import OF_BARE, PLAIN
from block_cases import weights as stack_weights
from cases import CASES, EACH, IDS, Case, latents

from attncli import models
from attncli.arithmetic.interval import IntervalArithmetic
from attncli.core.graph import Graph
from attncli.core.matrix import Matrix, as_matrix
from attncli.core.message import LimitError
from attncli.problems.problem import Problem, arithmetic_called


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
        hand = graph.evaluate(arithmetic_called("hand", 3, rounding))
        for step in graph.steps:
            assert (wide[step].contains(hand[step]) | np.isnan(hand[step])).all(), step
    for step in graph.steps:
        assert (wide[step].contains(plain[step]) | np.isnan(plain[step])).all(), step


# --- exact ------------------------------------------------------------------------------------------------------------

#: Two tokens, two numbers each: what a stack can be worked out for exactly, on paper and here.
TINY = {
    **dict.fromkeys(
        ("token", "source", "position", "vocabulary", "d_model", "d", "d_ff", "d_memory", "d_out", "d_v"), 2
    ),
    **dict.fromkeys(("heads·d_k", "kv_heads·d_k", "kv_heads·d_v", "heads·d_v", "d_k"), 1),
}
BARE = ("P", "W_O", "b_out", "final.gamma", "final.beta")
ONE_LAYER = (*OF_BARE, "P", "b_out")


def tiny(model: str, leave_out: Sequence[str] = PLAIN, without: Sequence[str] = (), **settings: Any) -> Case:
    ids = {"T": [0, 1]} if model == "gpt" else {}
    return Case(stack_weights(model, settings, sizes=TINY, leave_out=leave_out, without=without, **ids), settings)


#: Models whose cases are too large, with cases of their own; of every other model the cases of `cases.py` are taken,
#: rounded to halves, but for those numbered in `TOO_LARGE`. A new model is tried without being named here.
STACKS: dict[str, list[Case]] = {
    "encoder_block": [
        tiny("encoder_block"),
        tiny("encoder_block", norm="pre"),
        tiny("encoder_block", normalisation="none", causal=True),
    ],
    "decoder_block": [tiny("decoder_block"), tiny("decoder_block", normalisation="none")],
    "latent": [
        Case(latents(2, 3, 2, 2, 1, 2, 1, d_cq=2)),
        Case(latents(2, 2, 1, 1, 1, 2, 2, d_r=2), {"heads": 2, "causal": True}),
        Case(latents(2, 2, 1, 1, 1, 2, 2, d_r=2), {"heads": 2, "causal": True, "absorbed": True}),
    ],
    "transformer": [tiny("transformer", (*PLAIN, "W_out", "b_out"), positions="none", eps=0)],
    "gpt": [
        tiny("gpt", without=BARE, eta="1/2"),
        tiny("gpt", without=("W_out", *BARE), tied=True, eta="1/2", optimizer="adam"),
        tiny("gpt", without=ONE_LAYER, layers=1, eta="1/2", norm="pre", eps=0),
        tiny("gpt", without=(*ONE_LAYER, *BARE[3:]), layers=1, eta="1/2", normalisation="none"),
    ],
}
#: Whose expressions grow past the limit or near it.
TOO_LARGE = {"latent": (2,), "multi_head": (7, 8)}

EXACT = [
    (model, case)
    for model in models.names()
    for number, case in enumerate(STACKS.get(model) or CASES[model])
    if model in STACKS or number not in TOO_LARGE.get(model, ())
]
EXACT_IDS = [f"{model}-{number}" for number, (model, _) in enumerate(EXACT)]


def halves(values: Any) -> Matrix:
    """Multiples of 1/2, −∞ among them, as they are written."""
    return as_matrix((np.round(np.asarray(values, dtype=np.float64) * 2) / 2 + 0.0).tolist())


def exact_problem(model: str, case: Case) -> Problem:
    """The case with round numbers, and with its way back where it has one."""
    inputs = {name: as_matrix(values) if name == "T" else halves(values) for name, values in case.inputs.items()}
    problem = case.problem(model).changed(inputs=inputs)
    graph = problem.graph()
    if model == "gpt":
        return problem.changed(loss="cross_entropy(logits, T)")
    if not any(input.differentiable for input in graph.inputs.values()):
        return problem
    return problem.changed(upstream=halves(np.random.default_rng(3).normal(size=graph.shape(graph.output)) * 2))


def digits(number: Any, known: dict[Any, Any]) -> Any:
    """A SymPy number as one of mpmath; every part once."""
    if number not in known:
        parts = [digits(part, known) for part in number.args]
        if number.is_Add:
            known[number] = mpmath.fsum(parts)
        elif number.is_Mul:
            known[number] = mpmath.fprod(parts)
        elif number.is_Pow:
            known[number] = mpmath.power(*parts)
        elif parts:
            known[number] = getattr(mpmath, type(number).__name__)(*parts)
        else:
            known[number] = mpmath.mpmathify(sympy.N(number, 60))
    return known[number]


@pytest.mark.parametrize(("model", "case"), EXACT, ids=EXACT_IDS)
def test_exact_numbers_lie_in_their_bounds_and_floats_agree(model: str, case: Case) -> None:
    graph = exact_problem(model, case).graph()
    plain, bounds, exact = (
        graph.evaluate(),
        graph.evaluate(IntervalArithmetic(None)),
        graph.evaluate(arithmetic_called("exact")),
    )
    known: dict[Any, Any] = {}
    with mpmath.workdps(50):
        for step in graph.steps:
            for place in np.ndindex(plain[step].shape):
                number = exact[step][place]
                if number in (sympy.oo, -sympy.oo):
                    assert plain[step][place] == bounds[step].lo[place] == float(number), step
                    continue
                value = digits(number, known)
                lo, hi = bounds[step].lo[place], bounds[step].hi[place]
                # What cancels to 0 only on paper is off by as much as 50 digits leave.
                slack = mpmath.mpf(10) ** -40
                assert lo - slack <= value <= hi + slack, (step, place, number)
                assert float(value) == pytest.approx(plain[step][place], rel=1e-9, abs=1e-11), (step, place)


def test_every_model_is_calculated_exactly() -> None:
    assert {model for model, _ in EXACT} == set(models.names())
    updated = [exact_problem(model, case).graph() for model, case in EXACT if model == "gpt"]
    assert {"E_new", "L", "G_E"} <= set.intersection(*(set(graph.steps) for graph in updated))


@pytest.mark.parametrize(("model", "number"), [(m, n) for m, numbers in TOO_LARGE.items() for n in numbers[:1]])
def test_what_grows_too_large_is_refused_with_the_step(model: str, number: int) -> None:
    """By the same count on every machine, and not by the clock."""
    graph = exact_problem(model, CASES[model][number]).graph()
    with pytest.raises(
        LimitError, match=r"^(\w+): .*grown past [\d,]+ (operations|operations altogether), too .*--step"
    ):
        graph.evaluate(arithmetic_called("exact"))
