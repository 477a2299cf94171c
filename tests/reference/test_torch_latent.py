"""Latent attention, rotary heads and ALiBi equal PyTorch's autograd in float64 (torch_latent.json, written by
make_torch_latent.py, which also holds scaled_dot_product_attention and both forms of latent attention together)."""

from __future__ import annotations

import pytest
from against_torch import assert_close, cases_of, only_ours, steps_of

CASES = cases_of("torch_latent.json")


@pytest.mark.parametrize("name", CASES)
def test_every_step_and_gradient_equals_pytorch(name: str) -> None:
    for id, ours, theirs in steps_of(CASES[name]):
        assert_close(ours, theirs, id)


#: What only we write down: the inside of softmax and its gradient, angles, slopes of a soft cap, errors of a loss.
INSIDE = {
    *("row_max", "shifted", "exp", "row_sum", "weighted", "row_dot", "deviation", "slope", "error", "L"),
    *("angle", "cos", "sin"),
}


@pytest.mark.parametrize("name", CASES)
def test_pytorch_has_every_gradient_that_we_write(name: str) -> None:
    assert only_ours(CASES[name]) <= INSIDE


def test_the_reference_covers_what_it_should() -> None:
    assert len(CASES) >= 56
    latent = [case for case in CASES.values() if case["model"] == "latent"]
    assert len(latent) >= 36 and sum(bool(case["settings"].get("absorbed")) for case in latent) * 2 == len(latent)
    inputs = {name for case in latent for name in case["inputs"]}
    assert inputs >= {"W_DQ", "W_QR", "W_KR", "b_O", "c_KV_past", "K_R_past"}
    assert any("W_DQ" not in case["inputs"] for case in latent) and any("W_QR" not in case["inputs"] for case in latent)
    settings = {name for case in CASES.values() for name in case["settings"]}
    assert settings >= {"absorbed", "rotary", "rotary_dim", "alibi", "pairing", "base", "start", "causal", "window"}
    for name in ("rotary", "alibi"):
        assert sum(name in case["settings"] for case in CASES.values()) >= 9
