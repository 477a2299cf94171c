"""Inputs of the models that are put together from others: blocks, stacks, a GPT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attncli import models

#: Lengths of the axes where a case says nothing else.
SIZES = {
    "token": 3,
    "source": 2,
    "position": 5,
    "vocabulary": 5,
    "d_model": 4,
    "d": 4,
    "d_ff": 3,
    "d_memory": 4,
    "heads·d_k": 4,
    "kv_heads·d_k": 4,
    "kv_heads·d_v": 2,
    "heads·d_v": 2,
    "d_out": 4,
    "d_k": 2,
    "d_v": 4,
}


def weights(
    model: str,
    settings: Mapping[str, Any],
    *,
    leave_out: Sequence[str] = (),
    without: Sequence[str] = (),
    sizes: Mapping[str, int] | None = None,
    **given: Any,
) -> dict[str, Any]:
    """Numbers without pattern for every input of the model but `without` and what ends in one of `leave_out`."""
    lengths = {**SIZES, **(sizes or {})}
    r = np.random.default_rng(len(model) + 100 * len(leave_out) + len(str(dict(settings))))
    out = dict(given)
    for argument in models.get(model).takes(settings):
        tail = argument.name.rpartition(".")[2]
        left_out = argument.name in without or tail in leave_out or tail.endswith("_past")
        if argument.name in given or argument.kind != "matrix" or left_out or not argument.listed:
            continue
        shape = [lengths[axis] for axis in argument.axes]
        values = np.round(r.normal(size=shape) * 0.8, 3)
        out[argument.name] = values[None] if values.ndim == 1 else values
    return out


PLAIN = ("b_Q", "b_K", "b_V", "b_O", "b_1", "b_2", "W_gate", "beta", "gamma")
NO_GATE = ("W_gate",)
ONE_HEAD = {"heads·d_k": 2, "kv_heads·d_k": 2, "kv_heads·d_v": 2, "heads·d_v": 2}
TWO_HEADS = {"heads·d_k": 4, "kv_heads·d_k": 4, "kv_heads·d_v": 6, "heads·d_v": 6}
SHARED = {"heads·d_k": 4, "kv_heads·d_k": 2, "kv_heads·d_v": 2, "heads·d_v": 4}
BARE = ("P", "W_O", "b_out", "final.gamma", "final.beta")
LAST_NORMS = tuple(f"{part}.norm.{name}" for part in ("encoder", "decoder") for name in ("gamma", "beta"))
OF_BARE = ("W_Q", "W_K", "W_V", "W_O")


def block_cases() -> dict[str, list[tuple[dict[str, Any], dict[str, Any]]]]:
    """Inputs and settings by model."""
    rms = {"heads": 2, "norm": "pre", "normalisation": "rms"}
    adam = {"layers": 1, "heads": 2, "kv_heads": 1, "rotary": True, "eta": 0.05, "optimizer": "adam"}
    gpt2 = {"layers": 2, "heads": 2, "norm": "pre", "tied": True, "positions": "learned", "activation": "gelu_tanh"}
    return {
        "encoder_block": [
            (weights("encoder_block", {}, leave_out=PLAIN, sizes=ONE_HEAD), {}),
            (weights("encoder_block", {}, leave_out=NO_GATE, sizes=TWO_HEADS), {"heads": 2, "norm": "pre"}),
            (
                weights("encoder_block", {}, leave_out=("b_Q", "b_1", "beta"), sizes=SHARED),
                {**rms, "kv_heads": 1, "activation": "swiglu", "causal": True},
            ),
            (
                weights("encoder_block", {}, leave_out=PLAIN, sizes=TWO_HEADS),
                {"heads": 2, "normalisation": "none", "activation": "gelu", "hide": [[False, True, False]]},
            ),
        ],
        "decoder_block": [
            (weights("decoder_block", {}, leave_out=PLAIN, sizes=ONE_HEAD), {}),
            (
                weights("decoder_block", {}, leave_out=NO_GATE, sizes={**TWO_HEADS, "d_memory": 3}),
                {"heads": 2, "norm": "pre", "cross_hide": [[False, True]]},
            ),
            (weights("decoder_block", {}, leave_out=("W_gate", "beta"), sizes=SHARED), {**rms, "kv_heads": 1}),
        ],
        "transformer": [
            (weights("transformer", {}, leave_out=(*PLAIN, "W_out", "b_out"), sizes=ONE_HEAD), {"positions": "none"}),
            (
                weights("transformer", {"layers": 2}, leave_out=(*PLAIN, "b_out"), sizes=TWO_HEADS),
                {"layers": 2, "heads": 2, "norm": "pre"},
            ),
            (
                weights("transformer", {}, leave_out=NO_GATE, without=LAST_NORMS, sizes=TWO_HEADS),
                {"heads": 2, "cross_keep": [[True, False]], "base": 50},
            ),
        ],
        "gpt": [
            (weights("gpt", {}, without=BARE, T=[0, 3, 4]), {}),
            (weights("gpt", {}, without=BARE, T=[2, 0, 2]), {"positions": "sinusoidal", "eta": 0.1}),
            (
                weights(
                    "gpt", {}, leave_out=("gamma", "beta"), without=("W_out",), sizes={"heads·d_v": 4}, T=[1, 4, 1]
                ),
                {"positions": "learned", "tied": True},
            ),
            (
                weights(
                    "gpt",
                    gpt2,
                    leave_out=NO_GATE,
                    without=(*OF_BARE, "W_out", "b_out"),
                    sizes=TWO_HEADS,
                    T=[0, 1, 1, 3],
                ),
                gpt2,
            ),
            (
                weights(
                    "gpt", {"layers": 1}, leave_out=PLAIN, without=(*OF_BARE, "P", "b_out"), sizes=SHARED, T=[3, 0]
                ),
                adam,
            ),
        ],
    }
