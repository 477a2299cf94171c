"""The number that a Term stands for, worked out from the numbers of a trace."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping

import numpy as np

from attncli.core.graph import Step, Trace
from attncli.core.terms import Term

_WORKED: Mapping[str, Callable[..., float]] = {
    "sum": lambda *parts: float(sum(parts)),
    "product": lambda *parts: math.prod(parts),
    "difference": lambda a, b: a if a == b == -math.inf else a - b,
    "positive": lambda a: float(a > 0),
    "quotient": lambda a, b: a / b,
    "exp": math.exp,
    "negative": lambda a: -a,
    "ln": math.log,
    "root": math.sqrt,
    "tanh": math.tanh,
    "power": math.pow,
    "erf": math.erf,
    "sin": math.sin,
    "cos": math.cos,
    "max": lambda *parts: max(parts),
}


def value_of(term: Term, trace: Trace) -> float:
    return term.fold(
        lambda step_id, index: float(trace[step_id][index]),
        float,
        lambda term, parts: _WORKED[term.kind](*parts),
        float,
    )


def assert_cells_agree(step: Step, trace: Trace, built_from: Trace | None = None) -> None:
    """`terms` of every cell of a step gives the number that was computed, from cells of its own operands.

    `built_from`: the numbers that `terms` is shown, where they are others than those it is worked out with.
    """
    computed = trace[step.id]
    terms = step.terms(built_from or trace)
    assert terms.shape == computed.shape
    for index in itertools.product(*map(range, computed.shape)):
        term = terms[index]
        assert {id for id, _ in term.cells()} <= set(step.inputs)
        if term.kind == "text":
            assert term.parts == (step.notes["tokens"][index[0]],)
            continue
        worked = value_of(term, trace)
        np.testing.assert_allclose(worked, computed[index], rtol=1e-12, atol=1e-14, err_msg=f"{step.id}{index}: {term}")
