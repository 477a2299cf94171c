"""Every step and every gradient equals PyTorch's autograd in float64 (torch.json, written by make_torch.py)."""

from __future__ import annotations

import pytest
from against_torch import assert_close, cases_of, only_ours, steps_of

CASES = cases_of("torch.json")


@pytest.mark.parametrize("name", CASES)
def test_every_step_and_gradient_equals_pytorch(name: str) -> None:
    for id, ours, theirs in steps_of(CASES[name]):
        assert_close(ours, theirs, id)


def test_the_reference_covers_what_it_should() -> None:
    models = [case["model"] for case in CASES.values()]
    settings = {name for case in CASES.values() for name in case["settings"]}
    losses = {case["gradient"].get("loss", "upstream").split("(")[0].split("[")[0] for case in CASES.values()}
    assert len(CASES) >= 64
    assert set(models) == {"attention", "self_attention", "embedded_attention", "softmax", "product", "embedding"}
    assert settings >= {"causal", "mask", "keep", "hide", "scale", "softcap", "window", "eta", "subtract"}
    assert losses == {"upstream", "sum", "mse", "O", "A", "X"}


@pytest.mark.parametrize("name", CASES)
def test_pytorch_has_every_gradient_that_we_write(name: str) -> None:
    """Steps that only we write down are the inside of softmax and its gradient, masks, and errors of a loss."""
    inside = {"row_max", "shifted", "exp", "row_sum", "weighted", "row_dot", "deviation", "slope", "error", "L"}
    assert only_ours(CASES[name]) <= inside
