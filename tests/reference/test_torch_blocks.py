"""Heads, norms, rotary and feed-forward layers equal PyTorch's autograd in float64 (torch_blocks.json, written by
make_torch_blocks.py, which also holds PyTorch's own modules against them)."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import assert_close, cases_of, only_ours, steps_of

CASES = cases_of("torch_blocks.json")


@pytest.mark.parametrize("name", CASES)
def test_every_step_and_gradient_equals_pytorch(name: str) -> None:
    for id, ours, theirs in steps_of(CASES[name]):
        if id == "G_b_K":
            # The same bias on every key moves all scores of a row alike: its gradient is 0 but for rounding, in both.
            assert max(np.abs(ours).max(), np.abs(theirs).max()) < 1e-14
        else:
            assert_close(ours, theirs, id)


#: What only we write down: the inside of softmax, norms, rotations and their gradients, masks, errors of a loss.
INSIDE = {
    *("row_max", "shifted", "exp", "row_sum", "weighted", "row_dot", "deviation", "slope", "error", "L"),
    *("cos", "sin", "G_gamma_product", "G_std_product", "G_std_total", "G_std_share", "G_variance_half"),
    *("G_rms_product", "G_rms_total", "G_rms_share", "G_mean_square_half", "G_mean_total"),
    *("G_centred_normalised", "G_centred_variance", "G_X_centred", "G_X_mean", "G_X_normalised", "G_X_mean_square"),
}


@pytest.mark.parametrize("name", CASES)
def test_pytorch_has_every_gradient_that_we_write(name: str) -> None:
    assert only_ours(CASES[name]) <= INSIDE


def test_the_reference_covers_what_it_should() -> None:
    assert len(CASES) >= 70
    models = {case["model"] for case in CASES.values()}
    assert models == {"multi_head", "layer_norm", "rms_norm", "rotary", "feed_forward", "residual"}
    settings = {name for case in CASES.values() for name in case["settings"]}
    assert settings >= {"heads", "kv_heads", "causal", "hide", "keep", "mask", "scale", "softcap", "window"}
    assert settings >= {"eps", "base", "pairing", "start", "rotary_dim", "activation"}
    own = [case for case in CASES.values() if case.get("module") == "torch.nn.MultiheadAttention"]
    assert len(own) >= 6
    shapes = [np.shape(case["inputs"]["X"]) for case in CASES.values()]
    assert any(n != d for n, d, *_ in shapes)
