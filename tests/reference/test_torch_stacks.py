"""Blocks, the transformer, a GPT, its loss and its updates equal PyTorch's in float64 (torch_stacks.json, written by
make_torch_stacks.py, which also holds TransformerEncoderLayer and TransformerDecoderLayer against them)."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import CLOSE, assert_close, cases_of, only_ours, steps_of

CASES = cases_of("torch_stacks.json")


#: Sums of products of ordinary size that cancel down to about ε where one norm follows another: what a norm sends back
#: has nothing along its own result, and the next norm's scale asks for just that. Only rounding at 1e-16 is left to compare.
CANCELLED = ("G_std", "G_variance", "G_centred_variance", "G_rms", "G_mean_square")


@pytest.mark.parametrize("name", CASES)
def test_every_step_and_gradient_equals_pytorch(name: str) -> None:
    case = CASES[name]
    found = {id: (ours, theirs) for id, ours, theirs in steps_of(case)}
    for id, (ours, theirs) in found.items():
        if id.endswith(".G_b_K") and "softcap" not in case["settings"]:
            # The same bias on every key moves all scores of a row alike: its gradient is 0 but for rounding, in both.
            usual = np.linalg.norm(found[id.replace("G_b_K", "G_K")][0])
            assert max(np.linalg.norm(ours), np.linalg.norm(theirs)) < CLOSE * usual + 1e-14
        elif id.endswith(CANCELLED):
            np.testing.assert_allclose(ours, theirs, rtol=CLOSE, atol=1e-14, err_msg=id)
        else:
            assert_close(ours, theirs, id)


#: What only we write down, in whichever part: the inside of softmax, norms, rotations and their gradients, positions,
#: masks, errors of a loss.
INSIDE = {
    *("row_max", "shifted", "exp", "row_sum", "weighted", "row_dot", "deviation", "slope", "error", "L"),
    *("angle", "cos", "sin", "PE", "G_gamma_product", "G_std_product", "G_std_total", "G_std_share"),
    *("G_variance_half", "G_mean_total", "G_rms_product", "G_rms_total", "G_rms_share", "G_mean_square_half"),
}


@pytest.mark.parametrize("name", CASES)
def test_pytorch_has_every_gradient_that_we_write(name: str) -> None:
    assert {id.rpartition(".")[2] for id in only_ours(CASES[name])} <= INSIDE


def test_the_reference_covers_what_it_should() -> None:
    assert len(CASES) >= 55
    models = [case["model"] for case in CASES.values()]
    assert {model: models.count(model) for model in models} == {
        "encoder_block": 16,
        "decoder_block": 12,
        "transformer": 9,
        "gpt": 18,
    }
    own = [
        (case["settings"].get("norm", "post"), module) for case in CASES.values() for module in case.get("modules", ())
    ]
    for norm in ("pre", "post"):
        for layer in ("Encoder", "Decoder"):
            assert own.count((norm, f"torch.nn.Transformer{layer}Layer")) >= 4
    settings = {(name, str(value)) for case in CASES.values() for name, value in case["settings"].items()}
    assert settings >= {("norm", "pre"), ("normalisation", "rms"), ("normalisation", "none"), ("rotary", "True")}
    assert settings >= {("activation", kind) for kind in ("gelu", "gelu_tanh", "silu", "swiglu")}
    assert settings >= {("optimizer", "adam"), ("t", "2"), ("tied", "True"), ("layers", "2"), ("positions", "learned")}
    assert {name for name, _ in settings} >= {"mask", "keep", "hide", "cross_mask", "cross_keep", "cross_hide", "alibi"}


def test_the_losses_it_covers() -> None:
    losses = [case["gradient"] for case in CASES.values() if "cross_entropy" in case["gradient"].get("loss", "")]
    assert len(losses) >= 16
    assert any("sum)" in one["loss"] for one in losses) and any("T)" in one["loss"] for one in losses)
    assert any(-1 in one.get("target", ()) for one in losses)
