"""What PyTorch's autograd calculated, in files that make_torch*.py wrote, held against our own steps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from attncli.core.matrix import as_matrix
from attncli.problems.problem import Problem

#: The largest relative difference between two float64 calculations of the same steps in another order.
CLOSE = 1e-12
#: Below this a gradient is 0 but for rounding (the gradient of a single weight of 1).
NOTHING = 1e-15


def array(nested: Any) -> np.ndarray:
    return np.array(nested, dtype=np.float64)


def problem_of(case: dict[str, Any]) -> Problem:
    inputs = {name: as_matrix(array(values)) for name, values in case["inputs"].items()}
    asked = case["gradient"]
    return Problem(
        case["model"],
        inputs,
        settings=case["settings"],
        upstream=as_matrix(array(asked["upstream"])) if "upstream" in asked else None,
        loss=asked.get("loss"),
        extras={"goal": as_matrix(array(asked["target"]))} if "target" in asked else {},
    )


def assert_close(ours: np.ndarray, theirs: np.ndarray, what: str) -> None:
    """Equal in the norm and entry by entry; what is hidden is hidden in both."""
    assert ours.shape == theirs.shape, what
    hidden = np.isneginf(theirs)
    assert np.array_equal(np.isneginf(ours), hidden), what
    ours, theirs = np.where(hidden, 0.0, ours), np.where(hidden, 0.0, theirs)
    difference = np.linalg.norm(ours - theirs)
    assert difference <= CLOSE * np.linalg.norm(theirs) + NOTHING, f"{what}: off by {difference}"
    np.testing.assert_allclose(ours, theirs, rtol=CLOSE, atol=CLOSE * np.abs(theirs).max() + NOTHING, err_msg=what)


def cases_of(name: str) -> dict[str, dict[str, Any]]:
    """The cases of a file, each under a name of its own."""
    listed = json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))["cases"]
    cases = {case["name"]: case for case in listed}
    assert len(cases) == len(listed)
    return cases


def steps_of(case: dict[str, Any]) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Every step that PyTorch has: its id, our numbers, and PyTorch's."""
    trace = problem_of(case).graph().evaluate()
    for id, values in case["steps"].items():
        assert id in trace, f"{id} is missing; there are {', '.join(trace)}"
        yield id, trace[id], array(values)


def only_ours(case: dict[str, Any]) -> set[str]:
    """The steps that we write down and PyTorch does not."""
    return {step.id for step in problem_of(case).graph().steps.values()} - set(case["steps"])
