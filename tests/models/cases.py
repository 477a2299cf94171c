"""Every model with inputs and settings to try it on. A model without a case fails test_models.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from block_cases import block_cases

from attncli.core.graph import Trace
from attncli.core.matrix import as_matrix
from attncli.core.message import InputError
from attncli.problems.problem import Problem


def some(*shape: int) -> np.ndarray:
    """Numbers without pattern, the same for the same shape."""
    return np.round(np.random.default_rng(sum(shape) + 10 * len(shape)).normal(size=shape), 3)


@dataclass(frozen=True)
class Case:
    """A model's inputs and settings; `output` and its shape say what the upstream gradient belongs to."""

    inputs: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)

    def problem(self, model: str, *, loss: str | None = None, **more: Any) -> Problem:
        inputs = {name: as_matrix(values) for name, values in self.inputs.items()}
        return Problem(model, inputs, self.texts, self.settings, loss=loss, **more)

    def with_upstream(self, model: str) -> Problem:
        graph = self.problem(model).graph()
        v = np.random.default_rng(3).normal(size=graph.shape(graph.output))
        return self.problem(model, upstream=as_matrix(v))


def trace_of(model: str, inputs: Mapping[str, Any], **settings: Any) -> Trace:
    """Everything that the model calculates."""
    return Case(inputs, settings).problem(model).graph().evaluate()


def message(model: str, inputs: Mapping[str, Any], **settings: Any) -> str:
    """What is said where the model refuses these inputs or settings."""
    with pytest.raises(InputError) as error:
        trace_of(model, inputs, **settings)
    return str(error.value)


def qkv(n: int, m: int, d_k: int, d_v: int, heads: int = 0, kv: int = 0) -> dict[str, np.ndarray]:
    q, k = ((heads,), (kv or heads,)) if heads else ((), ())
    return {"Q": some(*q, n, d_k), "K": -some(*k, m, d_k)[..., ::-1], "V": some(*k, m, d_v) * 2}


def cached(n: int, past: int, d_k: int, d_v: int, heads: int = 0, kv: int = 0) -> dict[str, np.ndarray]:
    k = (kv or heads,) if heads else ()
    return qkv(n, n, d_k, d_v, heads, kv) | {"K_past": some(*k, past, d_k) * 1.5, "V_past": some(*k, past, d_v)}


def weights(d_model: int, d_k: int, d_v: int) -> dict[str, np.ndarray]:
    return {"W_Q": some(d_model, d_k), "W_K": some(d_model, d_k)[::-1] * 0.9, "W_V": some(d_model, d_v) - 0.2}


def tokens(n: int, d_model: int, d_k: int, d_v: int) -> dict[str, np.ndarray]:
    return {"X": some(n, d_model)} | weights(d_model, d_k, d_v)


def table(vocabulary: int, d_model: int, ids: list[int]) -> dict[str, Any]:
    return {"E": some(vocabulary, d_model), "T": ids}


def heads(
    n: int,
    d_model: int,
    d_k: int,
    d_v: int,
    d_out: int,
    h: int,
    kv: int | None = None,
    *,
    biases: str = "",
    d_kv: int = 0,
) -> dict[str, np.ndarray]:
    """Inputs of multi_head: `h` query heads over `kv` heads of keys and values, with the biases that are named."""
    kv = h if kv is None else kv
    shapes = {
        "X": (n, d_model),
        "W_Q": (d_model, h * d_k),
        "W_K": (d_kv or d_model, kv * d_k),
        "W_V": (d_kv or d_model, kv * d_v),
        "W_O": (h * d_v, d_out),
    }
    widths = {"Q": h * d_k, "K": kv * d_k, "V": kv * d_v, "O": d_out}
    shapes |= {f"b_{name}": (1, widths[name]) for name in biases}
    r = np.random.default_rng(list(map(ord, str(shapes))))
    return {name: np.round(r.normal(size=shape) * 0.8, 3) for name, shape in shapes.items()}


def latents(
    n: int,
    d_model: int,
    d_c: int,
    d_h: int,
    d_v: int,
    d_out: int,
    h: int,
    *,
    d_cq: int = 0,
    d_r: int = 0,
    past: int = 0,
    bias: bool = False,
) -> dict[str, np.ndarray]:
    """Inputs of latent: `h` heads; a latent of queries, a rotary part and a cache where their sizes are given."""
    shapes = {"X": (n, d_model), "W_DKV": (d_model, d_c), "W_UK": (d_c, h * d_h), "W_UV": (d_c, h * d_v)}
    if d_cq:
        shapes["W_DQ"] = (d_model, d_cq)
    shapes["W_UQ"] = (d_cq or d_model, h * d_h)
    if d_r:
        shapes |= {"W_QR": (d_cq or d_model, h * d_r), "W_KR": (d_model, d_r)}
    shapes["W_O"] = (h * d_v, d_out)
    if bias:
        shapes["b_O"] = (1, d_out)
    if past:
        shapes["c_KV_past"] = (past, d_c)
        shapes |= {"K_R_past": (past, d_r)} if d_r else {}
    r = np.random.default_rng(list(map(ord, str(shapes))))
    return {name: np.round(r.normal(size=shape) * 0.8, 3) for name, shape in shapes.items()}


def layers(n: int, d_model: int, d_ff: int, d_out: int) -> dict[str, np.ndarray]:
    return {"X": some(n, d_model), "W_1": some(d_model, d_ff) * 1.1, "W_2": some(d_ff, d_out)[::-1] * 0.7}


NUMBERS = [[0.5, -1.0, 0.25], [0.0, 2.0, -0.75], [1.5, 0.0, -2.0]]
MASKED = [["0", "-inf", "0.5"], ["-1", "0", "-inf"], ["0.25", "0", "0"]]
KEEP_BUT_ROW_2 = [[True, False, True], [False, False, False], [True, True, True]]
VOCABULARY = ["我", "爱", "你", "<unk>"]

CASES: dict[str, list[Case]] = {
    "attention": [
        Case(qkv(3, 3, 2, 4)),
        Case(qkv(1, 1, 1, 1)),
        Case(qkv(2, 3, 1, 2), {"causal": True}),
        Case(qkv(3, 3, 2, 2), {"causal": True}),
        Case(qkv(4, 2, 3, 2), {"causal": True, "scale": "none"}),
        Case(qkv(3, 3, 2, 2), {"mask": MASKED}),
        Case(qkv(3, 3, 2, 2), {"mask": NUMBERS, "scale": 0.3}),
        Case(qkv(3, 3, 2, 2), {"keep": KEEP_BUT_ROW_2}),
        Case(qkv(3, 3, 2, 2, heads=2), {"keep": KEEP_BUT_ROW_2, "causal": True}),
        Case(qkv(3, 4, 2, 2), {"hide": [[False, True, False, False]]}),
        Case(qkv(3, 3, 2, 2), {"softcap": 0.8}),
        Case(qkv(3, 3, 2, 2), {"softcap": 2.0, "causal": True, "max_over": "all"}),
        Case(qkv(4, 4, 2, 2), {"window": [1, 0]}),
        Case(qkv(3, 3, 2, 2, heads=2), {"scale": -0.5}),
        Case(qkv(2, 3, 2, 3, heads=4, kv=2), {"causal": True}),
        Case(qkv(2, 2, 2, 2, heads=3, kv=1), {"softcap": 1.0, "window": [0, 1]}),
        Case(cached(2, 3, 2, 2), {"causal": True}),
        Case(cached(2, 1, 2, 3, heads=4, kv=2), {"causal": True, "window": [1, -1], "softcap": 1.5}),
        Case(qkv(3, 3, 2, 2), {"alibi": True, "causal": True}),
        Case(cached(2, 2, 2, 3, heads=3, kv=1), {"alibi": "1/3 1 0.1", "causal": True}),
        Case(qkv(2, 3, 2, 2, heads=3), {"alibi": True, "mask": [["1/3", "-inf", "0"], ["0", "0", "0"]]}),
    ],
    "self_attention": [
        Case(tokens(3, 2, 2, 2)),
        Case(tokens(3, 4, 2, 3), {"causal": True}),
        Case(tokens(3, 2, 1, 3), {"mask": MASKED}),
        Case(tokens(3, 3, 2, 2), {"keep": KEEP_BUT_ROW_2}),
        Case(tokens(3, 2, 3, 2), {"softcap": 1.2, "scale": "none", "window": [1, 1]}),
    ],
    "embedded_attention": [
        Case(table(6, 4, [0, 3, 5]) | weights(4, 2, 2)),
        Case(table(4, 3, [2, 0, 2]) | weights(3, 2, 4), {"causal": True}),
        Case(table(4, 3, [1, 1, 1]) | weights(3, 1, 2), {"eta": 0.1}),
        Case({"E": some(4, 3)} | weights(3, 2, 2), {"vocabulary": VOCABULARY, "causal": True}, {"text": "我爱我"}),
    ],
    "multi_head": [
        Case(heads(3, 4, 2, 2, 4, 2), {"heads": 2}),
        Case(heads(2, 3, 2, 3, 2, 1)),
        Case(heads(3, 2, 1, 2, 3, 4, 2, biases="QKVO"), {"heads": 4, "kv_heads": 2, "causal": True}),
        Case(heads(2, 3, 2, 1, 3, 3, 1, biases="VO"), {"heads": 3, "kv_heads": 1, "softcap": 1.5, "window": [1, 0]}),
        Case(
            heads(2, 3, 2, 2, 3, 2, d_kv=4, biases="K") | {"X_kv": some(4, 4)},
            {"heads": 2, "hide": [[False, True, False, False]]},
        ),
        Case(heads(3, 2, 2, 2, 2, 2), {"heads": 2, "mask": MASKED, "scale": 0.5}),
        Case(
            heads(2, 3, 2, 3, 3, 4, 2) | {"K_past": some(2, 1, 2), "V_past": some(2, 1, 3)},
            {"heads": 4, "kv_heads": 2, "causal": True},
        ),
        Case(heads(3, 3, 4, 1, 2, 2, 1), {"heads": 2, "kv_heads": 1, "rotary": True, "causal": True}),
        Case(
            heads(2, 3, 3, 2, 2, 2) | {"K_past": some(2, 2, 3), "V_past": some(2, 2, 2)},
            {"heads": 2, "rotary": True, "pairing": "half", "rotary_dim": 2, "base": 50, "start": "1/2"},
        ),
    ],
    "latent": [
        Case(latents(2, 3, 2, 1, 1, 2, 2, d_r=2), {"heads": 2}),
        Case(latents(2, 3, 2, 2, 1, 2, 1, d_cq=2), {}),
        Case(latents(3, 4, 3, 2, 3, 5, 2, d_cq=3, d_r=4, bias=True), {"heads": 2, "causal": True, "base": 50}),
        Case(latents(3, 4, 3, 2, 3, 5, 2, d_cq=3, d_r=4), {"heads": 2, "causal": True, "absorbed": True}),
        Case(latents(3, 4, 2, 2, 3, 3, 2), {"heads": 2, "absorbed": True, "mask": MASKED, "softcap": 1.5}),
        Case(
            latents(2, 4, 3, 2, 2, 3, 3, d_r=2, past=2), {"heads": 3, "causal": True, "pairing": "half", "start": "1/2"}
        ),
        Case(latents(2, 4, 3, 1, 2, 3, 2, d_r=2, past=1), {"heads": 2, "absorbed": True, "window": [1, 0]}),
    ],
    "softmax": [
        Case({"scores": some(3, 4)}),
        Case({"scores": some(2, 2, 3)}),
        Case({"scores": [[1.0, -np.inf, -np.inf], [4.0, 5.0, -np.inf], [7.0, 8.0, 9.0]]}),
        Case({"scores": [[1.0, 2.0], [-np.inf, -np.inf]]}),
        Case({"scores": some(2, 3)}, {"subtract": "none"}),
        Case({"scores": some(2, 3)}, {"subtract": 1.5}),
    ],
    "layer_norm": [
        Case({"X": some(3, 4), "gamma": some(1, 4) + 1, "beta": some(1, 4)}),
        Case({"X": some(2, 3)}),
        Case({"X": some(2, 3), "gamma": [0.5, -1.5, 2.0]}, {"eps": 0.1}),
        Case({"X": some(2, 3), "beta": [0.5, -1.5, 2.0]}, {"eps": 0}),
    ],
    "rms_norm": [
        Case({"X": some(3, 4), "gamma": some(1, 4) + 1}),
        Case({"X": some(2, 3)}, {"eps": "1/10"}),
    ],
    "positions": [
        Case({}, {"n": 4, "d_model": 6}),
        Case({}, {"n": 3, "d_model": 5, "base": 100, "start": 2, "arrangement": "concatenated"}),
        Case({}, {"n": 3, "d_model": 5, "base": 100, "exponents": "columns", "position_scale": "1/3"}),
        Case({}, {"n": 3, "d_model": 6, "exponents": "pairs-minus-one", "arrangement": "concatenated"}),
    ],
    "rotary": [
        Case({"X": some(3, 4)}),
        Case({"X": some(2, 3, 4)}, {"pairing": "half", "base": 50, "start": 5}),
        Case({"X": some(3, 5), "K": some(3, 5) * 1.3}, {"rotary_dim": 4, "start": "1/2"}),
        Case({"X": some(3, 4), "angle": some(3, 2)}),
        Case({"X": some(2, 3), "cos": some(2, 1), "sin": some(2, 1)}, {"pairing": "half"}),
        Case({"X": some(2, 4)}, {"start": 12, "position_scale": "1/5"}),
    ],
    "feed_forward": [Case(layers(3, 2, 4, 2), {"activation": kind}) for kind in ("relu", "gelu", "gelu_tanh", "silu")]
    + [
        Case(layers(2, 3, 2, 3) | {"b_1": some(1, 2), "b_2": some(1, 3)}),
        Case(layers(2, 3, 4, 3) | {"W_gate": some(3, 4) * 0.8, "b_2": some(1, 3)}, {"activation": "swiglu"}),
    ],
    "residual": [Case({"X": some(3, 2), "F": some(2, 3).T})],
    "product": [
        Case({"A": some(2, 3), "V": some(3, 4)}),
        Case({"A": some(2, 2, 3), "V": some(2, 3, 2)}),
    ],
    "embedding": [
        Case(table(4, 3, [2, 3, 0])),
        Case(table(3, 2, [0, 0, 2]), {"eta": 0.5}),
        Case({"E": some(4, 2)}, {"vocabulary": VOCABULARY, "unknown": "<unk>"}, {"text": "我爱她"}),
    ],
    "dot_variance": [Case({"q": some(5, 3), "k": some(5, 3)[::-1] * 1.1})],
    "tokens": [
        Case({}, {"vocabulary": VOCABULARY}, {"text": "我爱你"}),
        Case({}, {"corpus": "我爱你你爱我"}, {"text": "你我"}),
    ],
}

#: Settings that end elsewhere, add a step, or follow another convention.
CASES["attention"] += [
    Case({name: values for name, values in qkv(3, 3, 2, 4).items() if name != "V"}, {"causal": True}),
    Case(qkv(2, 3, 2, 2, heads=2), {"average_heads": True, "causal": True}),
]
CASES["multi_head"] += [
    Case(
        {name: values for name, values in heads(3, 4, 2, 2, 4, 2).items() if name != "W_O"},
        {"heads": 2, "average_heads": True},
    ),
]
CASES["softmax"] += [
    Case({"scores": some(3, 4)}, {"temperature": "1/2"}),
    Case({"scores": some(3, 3)}, {"temperature": 0.7, "causal": True}),
    Case({"scores": some(2, 3, 3)}, {"keep": [[True, True, False], [False, False, False], [True, True, True]]}),
    Case({"scores": some(2, 3)}, {"mask": [[0.0, -np.inf, 0.5], [0.0, 0.0, 0.0]]}),
    Case({"scores": some(3, 4)}, {"log": True}),
    Case({"scores": some(2, 3, 3)}, {"log": True, "subtract": "none", "temperature": 2}),
]
CASES["layer_norm"] += [Case({"X": some(2, 3)}, {"eps": 0.1, "eps_place": "outside"})]
CASES["rms_norm"] += [Case({"X": some(2, 3), "gamma": some(1, 3)}, {"eps": "1/10", "eps_place": "outside"})]

CASES |= {model: [Case(*case) for case in cases] for model, cases in block_cases().items()}

EACH = [(model, case) for model, cases in CASES.items() for case in cases]
IDS = [f"{model}-{number}" for model, cases in CASES.items() for number in range(len(cases))]
