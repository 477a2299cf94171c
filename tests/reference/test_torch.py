"""Every step and every gradient equals PyTorch's autograd in float64 (torch.json, written by make_torch.py)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attncli.core.matrix import as_matrix
from attncli.problems.problem import Problem

REFERENCE = json.loads(Path(__file__).with_name("torch.json").read_text(encoding="utf-8"))
CASES = {case["name"]: case for case in REFERENCE["cases"]}

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


@pytest.mark.parametrize("name", CASES)
def test_every_step_and_gradient_equals_pytorch(name: str) -> None:
    case = CASES[name]
    trace = problem_of(case).graph().evaluate()
    for id, values in case["steps"].items():
        assert id in trace, f"{id} is missing; there are {', '.join(trace)}"
        assert_close(trace[id], array(values), id)


def test_the_reference_covers_what_it_should() -> None:
    models = [case["model"] for case in CASES.values()]
    settings = {name for case in CASES.values() for name in case["settings"]}
    losses = {case["gradient"].get("loss", "upstream").split("(")[0].split("[")[0] for case in CASES.values()}
    assert len(CASES) == len(REFERENCE["cases"]) >= 64
    assert set(models) == {"attention", "self_attention", "embedded_attention", "softmax", "product", "embedding"}
    assert settings >= {"causal", "mask", "keep", "hide", "scale", "softcap", "window", "eta", "subtract"}
    assert losses == {"upstream", "sum", "mse", "O", "A", "X"}


@pytest.mark.parametrize("name", CASES)
def test_pytorch_has_every_gradient_that_we_write(name: str) -> None:
    """Steps that only we write down are the inside of softmax and its gradient, masks, and errors of a loss."""
    case = CASES[name]
    ours = {step.id for step in problem_of(case).graph().steps.values()}
    inside = {"row_max", "shifted", "exp", "row_sum", "weighted", "row_dot", "deviation", "slope", "error", "L"}
    assert ours - set(case["steps"]) <= inside
