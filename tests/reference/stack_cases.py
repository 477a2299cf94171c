"""The random blocks, transformers and GPTs that make_torch_stacks.py works out: inputs, settings and losses."""

from __future__ import annotations

import math
from typing import Any

import torch
from make_torch import Numbers

Tensor = torch.Tensor
INF = math.inf


def attention_shapes(d: int, d_k: int, d_v: int, h: int, kv: int, biases: str, d_kv: int = 0) -> dict[str, Any]:
    widths = {"Q": h * d_k, "K": kv * d_k, "V": kv * d_v, "O": d}
    shapes: dict[str, Any] = {f"W_{n}": (d if n == "Q" else d_kv or d, widths[n]) for n in "QKV"}
    return shapes | {"W_O": (h * d_v, d)} | {f"b_{n}": (1, widths[n]) for n in biases}


def block_shapes(
    d: int,
    ff: int,
    h: int = 1,
    kv: int = 0,
    *,
    d_k: int = 0,
    d_v: int = 0,
    memory: int = 0,
    biases: str = "",
    norms: str = "",
    gate: bool = False,
    prefix: str = "",
) -> dict[str, Any]:
    """Shapes of a block's weights: biases of QKVO and 12, norms of gb; with `memory` it is a decoder's."""
    own = attention_shapes(d, d_k or d // h, d_v or d // h, h, kv or h, "".join(b for b in biases if b in "QKVO"))
    shapes = {f"self.{name}": shape for name, shape in own.items()}
    if memory:
        other = attention_shapes(
            d, d_k or d // h, d_v or d // h, h, kv or h, "".join(b for b in biases if b in "QKVO"), memory
        )
        shapes |= {f"cross.{name}": shape for name, shape in other.items()}
    shapes |= {"ffn.W_1": (d, ff), "ffn.W_2": (ff, d)}
    shapes |= {f"ffn.b_{b}": (1, ff if b == "1" else d) for b in biases if b in "12"}
    if gate:
        shapes["ffn.W_gate"] = (d, ff)
    names = {"g": "gamma", "b": "beta"}
    shapes |= {f"norm{i}.{names[n]}": (1, d) for i in range(1, 4 if memory else 3) for n in norms}
    return {prefix + name: shape for name, shape in shapes.items()}


def drawn(r: Numbers, shapes: dict[str, Any]) -> dict[str, Tensor]:
    return {name: r.normal(*shape, spread=0.8) for name, shape in shapes.items()}


def stacked(d: int, ff: int, layers: int, **how: Any) -> dict[str, Any]:
    """Shapes of a transformer's weights."""
    out: dict[str, Any] = {}
    for layer in range(1, layers + 1):
        out |= block_shapes(d, ff, prefix=f"encoder.layer{layer}.", **how)
        out |= block_shapes(d, ff, prefix=f"decoder.layer{layer}.", memory=d, **how)
    return out


ALL = {"biases": "QKVO12", "norms": "gb"}
LAST = {f"{part}.norm.{name}": (1, 4) for part in ("encoder", "decoder") for name in ("gamma", "beta")}


def encoder_cases(r: Numbers) -> list[Any]:
    def one(n: int, d: int, ff: int, *args: Any, **how: Any) -> dict[str, Tensor]:
        return drawn(r, {"X": (n, d)} | block_shapes(d, ff, *args, **how))

    numbers = [[0.5, -INF, 0.0], [-INF, 0.0, 2.0], [0.25, 0.125, -3.0]]
    return [
        ("post", one(3, 4, 3, 2, **ALL), {"heads": 2}),
        ("post, gelu, one head", one(2, 4, 5, 1, **ALL), {"activation": "gelu"}),
        ("post, causal, no biases", one(3, 4, 3, 4, norms="gb"), {"heads": 4, "causal": True}),
        ("post, padding, eps", one(3, 4, 3, 2, **ALL), {"heads": 2, "hide": [[False, False, True]], "eps": 0.01}),
        ("post, keep, 3 wide, plain norms", one(4, 3, 4, 1, biases="12"), {"keep": r.marks(4, 4)}),
        ("pre", one(3, 4, 3, 2, **ALL), {"heads": 2, "norm": "pre"}),
        ("pre, gelu, six wide", one(2, 6, 4, 3, **ALL), {"heads": 3, "norm": "pre", "activation": "gelu"}),
        ("pre, causal", one(4, 4, 3, 2, biases="QO1", norms="g"), {"heads": 2, "norm": "pre", "causal": True}),
        ("pre, mask of numbers", one(3, 4, 2, 1, **ALL), {"norm": "pre", "mask": numbers}),
        ("post, rms", one(3, 4, 3, 2, norms="g"), {"heads": 2, "normalisation": "rms"}),
        ("pre, rms, GQA, swiglu, rotary", one(3, 4, 3, 4, 2, d_k=2, d_v=1, norms="g", gate=True),
         {"heads": 4, "kv_heads": 2, "norm": "pre", "normalisation": "rms", "activation": "swiglu", "rotary": True, "causal": True}),
        ("no norm, gelu_tanh", one(3, 4, 3, 2), {"heads": 2, "normalisation": "none", "activation": "gelu_tanh"}),
        ("no norm, pre, silu", one(2, 3, 4, 1), {"norm": "pre", "normalisation": "none", "activation": "silu"}),
        ("post, swiglu, MQA, soft cap", one(3, 4, 3, 2, 1, norms="b", gate=True, biases="Q2"),
         {"heads": 2, "kv_heads": 1, "activation": "swiglu", "softcap": 1.5}),
        ("pre, ALiBi, window, widths of its own", one(4, 4, 3, 2, d_k=1, d_v=3, norms="g"),
         {"heads": 2, "norm": "pre", "alibi": True, "window": [2, 0]}),
        ("post, scale, silu", one(2, 4, 3, 2, norms="gb"), {"heads": 2, "scale": 0.3, "activation": "silu"}),
    ]  # fmt: skip


def decoder_cases(r: Numbers) -> list[Any]:
    def one(n: int, m: int, d: int, ff: int, *args: Any, memory: int = 0, **how: Any) -> dict[str, Tensor]:
        shapes = block_shapes(d, ff, *args, memory=memory or d, **how)
        return drawn(r, {"X": (n, d), "memory": (m, memory or d)} | shapes)

    return [
        ("post", one(3, 2, 4, 3, 2, **ALL), {"heads": 2}),
        ("post, gelu", one(2, 3, 4, 3, 1, **ALL), {"activation": "gelu"}),
        ("post, padding", one(3, 3, 4, 2, 2, norms="gb"), {"heads": 2, "cross_hide": [[False, True, False]]}),
        ("post, both masks", one(2, 3, 4, 2, 2, biases="KV"), {"heads": 2, "mask": [[0.5, 0.0], [-1.0, 0.25]], "cross_mask": r.normal(2, 3).tolist()}),
        ("pre", one(3, 2, 4, 3, 2, **ALL), {"heads": 2, "norm": "pre"}),
        ("pre, gelu, four heads", one(2, 4, 4, 3, 4, **ALL), {"heads": 4, "norm": "pre", "activation": "gelu"}),
        ("pre, keep", one(3, 2, 4, 2, 1, norms="g"), {"norm": "pre", "cross_keep": [[True, False], [True, True], [False, True]]}),
        ("pre, eps, six wide", one(2, 2, 6, 2, 3, norms="gb", biases="O2"), {"heads": 3, "norm": "pre", "eps": 0.1}),
        ("pre, rms, MQA, swiglu", one(3, 2, 4, 3, 2, 1, norms="g", gate=True),
         {"heads": 2, "kv_heads": 1, "norm": "pre", "normalisation": "rms", "activation": "swiglu"}),
        ("post, memory three wide", one(3, 2, 4, 3, 2, memory=3, norms="b"), {"heads": 2, "activation": "silu"}),
        ("no norm, rotary, soft cap", one(3, 2, 4, 3, 2), {"heads": 2, "normalisation": "none", "rotary": True, "softcap": 2.0}),
        ("post, GQA, hide, window", one(4, 3, 4, 2, 4, 2, d_k=1, norms="g"),
         {"heads": 4, "kv_heads": 2, "hide": [[False, True, False, False]], "window": [2, -1], "activation": "gelu_tanh"}),
    ]  # fmt: skip


def transformer_cases(r: Numbers) -> list[Any]:
    def one(m: int, n: int, layers: int, ff: int = 2, **how: Any) -> dict[str, Tensor]:
        more = how.pop("more", {})
        return drawn(r, {"X": (m, 4), "Y": (n, 4)} | stacked(4, ff, layers, **how) | more)

    out, bias = {"W_out": (4, 5)}, {"b_out": (1, 5)}
    return [
        ("one layer, no positions", one(2, 3, 1, h=2, **ALL), {"heads": 2, "positions": "none"}),
        ("one layer", one(3, 2, 1, h=2, norms="gb"), {"heads": 2}),
        ("one layer, pre", one(2, 3, 1, h=1, biases="12", more=LAST), {"norm": "pre", "base": 50.0}),
        ("one layer, logits", one(3, 3, 1, h=2, more=out | bias), {"heads": 2, "cross_hide": [[False, False, True]]}, ([1, 4, 0], "")),
        ("two layers", one(2, 2, 2, h=2, norms="g"), {"layers": 2, "heads": 2}),
        ("two layers, pre, logits", one(2, 2, 2, h=2, more=LAST | out), {"layers": 2, "heads": 2, "norm": "pre"}, ([3, 2], ", sum")),
        ("two layers, rms, GQA, swiglu", one(2, 2, 2, h=2, kv=1, gate=True, more={"encoder.norm.gamma": (1, 4)}),
         {"layers": 2, "heads": 2, "kv_heads": 1, "norm": "pre", "normalisation": "rms", "activation": "swiglu"}),
        ("a mask for each token of the target", one(2, 2, 1, h=2, norms="gb"), {"heads": 2, "cross_hide": [[True, False], [False, False]]}),
        ("masks, gelu, one target counts", one(2, 3, 1, h=2, biases="QV", more=out),
         {"heads": 2, "activation": "gelu", "hide": [[False, True, False]], "cross_mask": [[0.5, -1.0]]}, ([-1, 2, -1], "")),
    ]  # fmt: skip


def gpt_cases(r: Numbers) -> list[Any]:
    def one(
        ids: list[int], shapes: dict[str, Any], v: int = 5, d: int = 4, out: int = 0, **more: tuple[int, int]
    ) -> dict[str, Any]:
        given = {"E": (v, d)} | more | shapes | ({"W_out": (out, v)} if out else {})
        return {"T": torch.tensor(ids)} | drawn(r, given)

    def layers(count: int, d: int = 4, ff: int = 3, **how: Any) -> dict[str, Any]:
        return {k: s for i in range(1, count + 1) for k, s in block_shapes(d, ff, prefix=f"layer{i}.", **how).items()}

    def bare(d: int, d_k: int, d_v: int) -> dict[str, Any]:
        return {"W_Q": (d, d_k), "W_K": (d, d_k), "W_V": (d, d_v)}

    def remembered(inputs: dict[str, Any]) -> dict[str, Any]:
        past = {}
        for name, x in inputs.items():
            if x.is_floating_point():
                past[f"{name}_m_past"] = r.normal(*x.shape, spread=0.1)
                past[f"{name}_v_past"] = r.normal(*x.shape, spread=0.1).abs() + 0.01
        return inputs | past

    final = {"final.gamma": (1, 4), "final.beta": (1, 4)}
    adam = {"eta": 0.05, "optimizer": "adam"}
    one_layer = {"layers": 1, "heads": 2}
    return [
        ("the blog's size", one([0, 3, 5], bare(4, 2, 2), v=6, out=2), {"eta": 0.5}, (None, "")),
        ("bare, repeated token, sum", one([2, 0, 2, 2], bare(4, 2, 3), out=3, b_out=(1, 5)), {"eta": 0.1}, (None, ", sum")),
        ("bare, sinusoidal", one([4, 1, 2], bare(4, 2, 2), out=2), {"positions": "sinusoidal"}, None),
        ("bare, tied, learned", one([1, 4, 1], bare(4, 2, 4), P=(5, 4)), {"positions": "learned", "tied": True, "eta": 0.2}, ([4, -1, 0], "")),
        ("bare, heads", one([1, 3, 0], attention_shapes(4, 2, 2, 2, 1, ""), out=4), {"heads": 2, "kv_heads": 1, "softcap": 2.0}, ([3, 0, 2], "")),
        ("bare, heads, rotary, tied", one([0, 2, 3], attention_shapes(4, 2, 1, 2, 2, "")), {"heads": 2, "rotary": True, "tied": True}, (None, "")),
        ("bare, Adam", one([0, 3, 0], bare(4, 2, 2), out=2), adam, (None, "")),
        ("bare, Adam, second step", remembered(one([1, 3, 2], bare(4, 2, 2), out=2, b_out=(1, 5))), {**adam, "t": 2}, (None, "")),
        ("bare, Adam, other rates, tied", remembered(one([1, 3, 1], bare(4, 2, 4))),
         {**adam, "tied": True, "t": 3, "beta1": 0.8, "beta2": 0.95, "adam_eps": 1e-3}, ([0, -1, 4], ", sum")),
        ("one layer", one([3, 0], layers(1, h=2, **ALL), out=4), {**one_layer, "eta": 0.1}, (None, "")),
        ("one layer, tied, sinusoidal", one([0, 2, 1], layers(1, h=2, norms="gb")), {**one_layer, "tied": True, "positions": "sinusoidal"}, (None, "")),
        ("one layer, attention only", one([0, 2, 1], {k: s for k, s in layers(1, h=2).items() if "ffn." not in k}, out=4), {**one_layer, "normalisation": "none", "alibi": True}, None),
        ("one layer, pre, Adam", one([1, 4, 1], layers(1, h=2, norms="gb") | final, out=4), {**one_layer, **adam, "norm": "pre"}, (None, "")),
        ("one layer, rms, rotary, GQA, swiglu", one([1, 4, 3], layers(1, h=2, kv=1, gate=True, norms="g") | {"final.gamma": (1, 4)}, out=4),
         {**one_layer, "kv_heads": 1, "norm": "pre", "normalisation": "rms", "activation": "swiglu", "rotary": True}, ([2, -1, -1], ", sum")),
        ("two layers, as GPT-2", one([0, 1, 1], layers(2, h=2, ff=2, biases="QVO12", norms="gb") | final, P=(4, 4)),
         {"layers": 2, "heads": 2, "norm": "pre", "tied": True, "positions": "learned", "activation": "gelu_tanh", "eta": 0.3}, (None, "")),
        ("bare, cache, sinusoidal", one([3, 0], bare(4, 2, 3), out=3, K_past=(3, 2), V_past=(3, 3)), {"positions": "sinusoidal"}, (None, "")),
        ("one layer, cache, learned, rotary, MQA", one([2, 4], layers(1, h=2, kv=1, norms="g"), out=4, P=(4, 4), **{f"layer1.self.{n}_past": (1, 2, 2) for n in "KV"}),
         {**one_layer, "kv_heads": 1, "positions": "learned", "rotary": True}, ([0, 1], "")),
        ("two layers, Adam", one([3, 0], layers(2, h=1, ff=2), out=4), {**adam, "layers": 2, "positions": "sinusoidal", "base": 100.0}, ([0, 4], "")),
    ]  # fmt: skip


def listed(r: Numbers) -> list[Any]:
    """(model, name, inputs, settings, the targets of a cross-entropy and its reduction, or None) for every case."""
    out = [("encoder_block", *case, None) for case in encoder_cases(r)]
    out += [("decoder_block", *case, None) for case in decoder_cases(r)]
    out += [("transformer", *(*case, None)[:4]) for case in transformer_cases(r)]
    return out + [("gpt", *case) for case in gpt_cases(r)]
