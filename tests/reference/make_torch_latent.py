"""Writes torch_latent.json: latent attention, rotary heads and ALiBi as PyTorch's autograd computes them.

Not run by the tests; they read the file. To write it anew: `pip install torch==2.13.0`, then
`python tests/reference/make_torch_latent.py`. attncli is not imported here. Every attention is held against PyTorch's
own scaled_dot_product_attention, and every absorbed form against the plain one, before it is written.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch
from make_torch import INF, Numbers, agrees_with_sdpa, attend, cached, mask_of, plain, qkv, xw
from make_torch import MODELS as ATTENTIONS
from make_torch import Run as Plain
from make_torch_blocks import gradient_of, heads, linear, past, result

Tensor = torch.Tensor


# --- positions --------------------------------------------------------------------------------------------------------


def turned(x: Tensor, settings: dict[str, Any], before: int = 0) -> Tensor:
    """Rows of x turned by position: by complex numbers (adjacent pairs) or by rotate_half."""
    rows, part = x.shape[-2], settings.get("rotary_dim", x.shape[-1])
    p = settings.get("start", 0) + before + torch.arange(rows, dtype=torch.float64)
    theta = p[:, None] * settings.get("base", 10000.0) ** (-torch.arange(0, part, 2, dtype=torch.float64) / part)
    head = x[..., :part]
    if settings.get("pairing") == "half":
        half = torch.cat([-head[..., part // 2 :], head[..., : part // 2]], -1)
        both = torch.cat([theta, theta], -1)
        new = head * both.cos() + half * both.sin()
    else:
        z = torch.view_as_complex(head.reshape(*head.shape[:-1], -1, 2).contiguous())
        new = torch.view_as_real(z * torch.polar(torch.ones_like(theta), theta)).flatten(-2)
    return torch.cat([new, x[..., part:]], -1)


def slopes_of(n: int) -> list[float]:
    """`get_slopes` of github.com/ofirpress/attention_with_linear_biases."""

    def power_of_2(n: int) -> list[float]:
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(n).is_integer():
        return power_of_2(n)
    closest = 2 ** math.floor(math.log2(n))
    return power_of_2(closest) + slopes_of(2 * closest)[0::2][: n - closest]


def bias_of(asked: Any, count: int, n: int, m: int, before: int) -> Tensor:
    """−slope · |i − j| for every head; (n m) where `count` is 0."""
    slopes = slopes_of(max(count, 1)) if asked is True else [float(slope) for slope in asked]
    steps = (torch.arange(n)[:, None] + before - torch.arange(m)[None, :]).abs().double()
    whole = torch.stack([-slope * steps for slope in slopes])
    return whole if count else whole[0]


# --- latent attention -------------------------------------------------------------------------------------------------


class Run(Plain):
    """A calculation that knows which of its tensors are only paths."""

    def __init__(self, inputs: dict[str, Tensor], settings: dict[str, Any]) -> None:
        super().__init__(inputs, settings)
        self.paths: set[str] = set()


class Paths:
    """Every use of a tensor as a node of its own, so that autograd keeps each path's gradient."""

    def __init__(self, run: Run, id: str, tensor: Tensor) -> None:
        self.run, self.id, self.tensor = run, id, tensor

    def to(self, use: str) -> Tensor:
        name = f"{self.id}_{use}"
        self.run.paths.add(name)
        return self.run.keep(name, self.tensor * 1)


def split(run: Run, x: Tensor, id: str, count: int) -> Tensor:
    return run.keep(id, x.view(len(x), count, -1).transpose(0, 1))


def weigh(run: Run, q: Tensor, k: Tensor, v: Tensor, width: int, before: int, id: str) -> Tensor:
    """Scores, softmax and sum, with every mask that the settings ask for."""
    settings, whole = run.settings, (k, v)
    if q.shape[0] != k.shape[0]:
        k, v = (run.keep(f"{n}_shared", x.expand(q.shape[0], -1, -1) * 1) for n, x in (("K", k), ("V", v)))
    s = run.keep("scores", q @ k.mT)
    scale = settings.get("scale", 1 / math.sqrt(width))
    if width > 1 or "scale" in settings:
        s = run.keep("scaled", s * scale if "scale" in settings else s / math.sqrt(width))
    if "softcap" in settings:
        s = run.keep("capped", settings["softcap"] * torch.tanh(s / settings["softcap"]))
    n, m = s.shape[-2:]
    mask = mask_of(settings, n, m, before)
    if "alibi" in settings:
        bias = bias_of(settings["alibi"], q.shape[0], n, m, before)
        mask = bias if mask is None else mask + bias
    if mask is not None:
        s = run.keep("masked", s + mask)
    weights = run.keep("A", torch.softmax(s, -1))
    out = run.keep(id, weights @ v)
    if "softcap" not in settings:
        run.checks.append(lambda: agrees_with_sdpa(q, *whole, mask, scale, out))
    return out


def remembered(run: Run, name: str, new: Tensor) -> tuple[str, Tensor]:
    if f"{name}_past" not in run.given:
        return name, new
    return f"{name}_all", run.keep(f"{name}_all", torch.cat([run.given[f"{name}_past"], new]))


def latent(run: Run) -> Tensor:
    given, settings = run.given, run.settings
    count, absorbed = settings.get("heads", 1), settings.get("absorbed", False)
    rotary = "W_QR" in given
    before = len(given["c_KV_past"]) if "c_KV_past" in given else 0
    x = Paths(run, "X", given["X"])
    name, rows = remembered(run, "c_KV", run.keep("c_KV", x.to("c_KV") @ given["W_DKV"]))
    c = Paths(run, name, rows)
    source = x
    if "W_DQ" in given:
        low = run.keep("c_Q", x.to("c_Q") @ given["W_DQ"])
        # One use alone is no path of its own.
        source = Paths(run, "c_Q", low)
    q = run.keep("Q_C", (source.to("Q_C") if rotary or source is x else source.tensor) @ given["W_UQ"])
    q = split(run, q, "Q_C_heads" if rotary or absorbed else "Q_heads", count)
    width = q.shape[-1]
    if rotary:
        q_r = split(run, run.keep("Q_R", source.to("Q_R") @ given["W_QR"]), "Q_R_heads", count)
        q_r = run.keep("Q_R_rotated", turned(q_r, settings, before))
        k_r = run.keep("K_R_rotated", turned(run.keep("K_R", x.to("K_R") @ given["W_KR"]), settings, before))
        _, k_r = remembered(run, "K_R", k_r)
        width += k_r.shape[-1]
    if absorbed:
        w_uk = split(run, given["W_UK"], "W_UK_heads", count)
        q = run.keep("Q_absorbed", torch.einsum("hnd,hcd->hnc", q, w_uk))
        if rotary:
            q = run.keep("Q_heads", torch.cat([q, q_r], -1))
            k = run.keep("K_heads", run.keep("K_latent", torch.cat([c.to("K_latent"), k_r], -1))[None] * 1)
        else:
            k = run.keep("K_heads", c.to("K_heads")[None] * 1)
        v = run.keep("V_heads", c.to("V_heads")[None] * 1)
        mixed = weigh(run, q, k, v, width, before, "O_latent")
        w_uv = split(run, given["W_UV"], "W_UV_heads", count)
        out = run.keep("O", torch.einsum("hnc,hcd->hnd", mixed, w_uv))
    else:
        k = run.keep("K_C", c.to("K_C") @ given["W_UK"])
        v = run.keep("V_C", c.to("V_C") @ given["W_UV"])
        k = split(run, k, "K_C_heads" if rotary else "K_heads", count)
        v = split(run, v, "V_heads", count)
        if rotary:
            q = run.keep("Q_heads", torch.cat([q, q_r], -1))
            one = run.keep("K_R_heads", k_r[None] * 1)
            if count > 1:
                one = run.keep("K_R_shared", one.expand(count, -1, -1) * 1)
            k = run.keep("K_heads", torch.cat([k, one], -1))
        out = weigh(run, q, k, v, width, before, "O")
    concat = run.keep("concat", out.transpose(0, 1).reshape(out.shape[1], -1))
    return linear(run, concat, "output", "W_O", "b_O")


# --- rotary heads and ALiBi -------------------------------------------------------------------------------------------


def multi_head(run: Run) -> Tensor:
    given, settings = run.given, run.settings
    count = settings.get("heads", 1)
    own = {"Q": count, "K": settings.get("kv_heads", count), "V": settings.get("kv_heads", count)}
    x = Paths(run, "X", given["X"])
    parts = {}
    for name in "QKV":
        whole = linear(run, x.to(name), name, f"W_{name}", f"b_{name}")
        parts[name] = split(run, whole, f"{name}_heads", own[name])
    if settings.get("rotary"):
        before = given["K_past"].shape[-2] if "K_past" in given else 0
        for name in "QK":
            parts[name] = run.keep(f"{name}_rotated", turned(parts[name], settings, before))
    out = attend(run, *parts.values())
    concat = run.keep("concat", out.transpose(0, 1).reshape(out.shape[1], -1))
    return linear(run, concat, "output", "W_O", "b_O")


MODELS = {**ATTENTIONS, "multi_head": multi_head, "latent": latent}


def with_bias(model: str, inputs: dict[str, Tensor], settings: dict[str, Any]) -> dict[str, Any]:
    """ALiBi as numbers added by the mask, for the attentions of make_torch."""
    if model == "latent" or "alibi" not in settings:
        return settings
    before = inputs["K_past"].shape[-2] if "K_past" in inputs else 0
    rows = inputs["Q" if "Q" in inputs else "X"].shape[-2]
    keys = inputs["K" if "K" in inputs else "X"].shape[-2] + before
    heads_first = len(inputs["Q"]) if "Q" in inputs and inputs["Q"].ndim == 3 else 0
    count = settings.get("heads", 1) if model == "multi_head" else heads_first
    bias = bias_of(settings["alibi"], count, rows, keys, before)
    if "mask" in settings:
        bias = bias + torch.tensor(settings["mask"], dtype=torch.float64)
    return {**settings, "mask": bias.tolist()}


# --- cases ------------------------------------------------------------------------------------------------------------


def latents(
    r: Numbers,
    n: int,
    d: int,
    c: int,
    d_h: int,
    d_v: int,
    out: int,
    h: int,
    *,
    cq: int = 0,
    rope: int = 0,
    before: int = 0,
    bias: bool = False,
) -> dict[str, Tensor]:
    shapes = {"X": (n, d), "W_DKV": (d, c), "W_UK": (c, h * d_h), "W_UV": (c, h * d_v), "W_UQ": (cq or d, h * d_h)}
    shapes["W_O"] = (h * d_v, out)
    if cq:
        shapes["W_DQ"] = (d, cq)
    if rope:
        shapes |= {"W_QR": (cq or d, h * rope), "W_KR": (d, rope)}
    if before:
        shapes["c_KV_past"] = (before, c)
        shapes |= {"K_R_past": (before, rope)} if rope else {}
    if bias:
        shapes["b_O"] = (1, out)
    return {name: r.normal(*shape, spread=0.7) for name, shape in shapes.items()}


def latent_cases(r: Numbers) -> list[Any]:
    hidden = [[0.5, -INF, 0.0], [-INF, 0.0, 2.0], [0.25, 0.125, -3.0]]
    listed = [
        ("plain", latents(r, 3, 4, 2, 2, 3, 3, 2), {"heads": 2}),
        ("query latent", latents(r, 3, 4, 2, 2, 3, 3, 2, cq=3), {"heads": 2}),
        ("rotary", latents(r, 3, 4, 2, 1, 2, 3, 2, rope=2), {"heads": 2}),
        ("rotary, query latent", latents(r, 3, 5, 3, 2, 2, 4, 3, cq=2, rope=4), {"heads": 3}),
        ("causal", latents(r, 4, 3, 2, 2, 2, 3, 2), {"heads": 2, "causal": True}),
        ("causal, all parts, bias", latents(r, 4, 6, 3, 2, 3, 6, 4, cq=4, rope=2, bias=True), {"heads": 4, "causal": True}),
        ("one head", latents(r, 3, 4, 2, 2, 3, 3, 1), {}),
        ("one head, rotary", latents(r, 3, 4, 2, 1, 1, 3, 1, cq=2, rope=2), {"causal": True}),
        ("half, base", latents(r, 3, 4, 2, 2, 2, 3, 2, rope=4), {"heads": 2, "pairing": "half", "base": 50.0}),
        ("start", latents(r, 2, 4, 3, 2, 2, 3, 2, cq=3, rope=4), {"heads": 2, "start": 5, "base": 500.0}),
        ("one token", latents(r, 1, 4, 2, 2, 2, 3, 2, rope=2), {"heads": 2, "causal": True}),
        ("window, soft cap", latents(r, 5, 4, 2, 2, 2, 3, 2, rope=2), {"heads": 2, "window": [2, 0], "softcap": 1.5}),
        ("padding", latents(r, 3, 4, 2, 2, 2, 3, 2, bias=True), {"heads": 2, "hide": [[False, True, False]]}),
        ("mask of numbers", latents(r, 3, 4, 3, 2, 2, 3, 2, rope=2), {"heads": 2, "mask": hidden}),
        ("scale", latents(r, 3, 4, 2, 2, 2, 3, 2, cq=2, rope=2), {"heads": 2, "scale": 0.3}),
        ("cache", latents(r, 2, 4, 2, 2, 2, 3, 2, before=3), {"heads": 2, "causal": True}),
        ("cache, rotary", latents(r, 2, 4, 3, 2, 2, 3, 3, cq=3, rope=2, before=2), {"heads": 3, "causal": True}),
        ("cache, one new token", latents(r, 1, 4, 2, 2, 1, 3, 2, rope=4, before=4), {"heads": 2, "pairing": "half"}),
        ("ALiBi", latents(r, 4, 4, 2, 2, 2, 3, 2), {"heads": 2, "causal": True, "alibi": True}),
    ]  # fmt: skip
    out = []
    for name, inputs, settings in listed:
        out.append(("latent", name, inputs, settings))
        out.append(("latent", f"{name}, absorbed", inputs, {**settings, "absorbed": True}))
    return out


def rotary_cases(r: Numbers) -> list[Any]:
    listed = [
        ("rotary", heads(r, 3, 4, 4, 2, 3, 2), {"heads": 2}),
        ("rotary, one head", heads(r, 4, 3, 2, 3, 3, 1), {"base": 100.0}),
        ("rotary, half, biases", heads(r, 3, 4, 4, 1, 4, 2, biases="QKVO"), {"heads": 2, "pairing": "half", "causal": True}),
        ("rotary, GQA", heads(r, 4, 4, 2, 2, 3, 4, 2), {"heads": 4, "kv_heads": 2, "causal": True}),
        ("rotary, MQA, start", heads(r, 3, 4, 4, 2, 3, 3, 1), {"heads": 3, "kv_heads": 1, "start": 7, "base": 20.0}),
        ("rotary, part", heads(r, 3, 4, 5, 2, 3, 2), {"heads": 2, "rotary_dim": 4, "softcap": 2.0}),
        ("rotary, part, half", heads(r, 3, 4, 6, 2, 3, 2), {"heads": 2, "rotary_dim": 4, "pairing": "half", "window": [1, 1]}),
        ("rotary, cache", heads(r, 2, 4, 4, 2, 3, 2) | past(r, 2, 3, 4, 2), {"heads": 2, "causal": True}),
        ("rotary, GQA, cache", heads(r, 1, 4, 2, 2, 3, 4, 2) | past(r, 2, 4, 2, 2), {"heads": 4, "kv_heads": 2, "start": 3}),
    ]  # fmt: skip
    return [("multi_head", name, inputs, {**settings, "rotary": True}) for name, inputs, settings in listed]


def alibi_cases(r: Numbers) -> list[Any]:
    numbers = [[0.5, -INF, 0.0], [0.0, 0.0, 2.0], [0.25, 0.125, -3.0]]
    return [
        ("attention", "ALiBi, one head", qkv(r, 4, 4, 2, 3), {"alibi": True, "causal": True}),
        ("attention", "ALiBi, both ways", qkv(r, 3, 5, 2, 2, heads=4), {"alibi": True}),
        ("attention", "ALiBi, three heads", qkv(r, 4, 4, 2, 2, heads=3), {"alibi": True, "causal": True}),
        ("attention", "ALiBi, twelve heads", qkv(r, 3, 3, 2, 1, heads=12, kv=4), {"alibi": True, "causal": True}),
        ("attention", "ALiBi, sixteen heads", qkv(r, 3, 3, 1, 1, heads=16), {"alibi": True}),
        ("attention", "ALiBi, cache", cached(r, 2, 3, 2, 2, heads=2), {"alibi": True, "causal": True}),
        ("attention", "ALiBi, slopes", qkv(r, 4, 4, 2, 2, heads=2), {"alibi": [0.5, 0.125], "window": [2, 0]}),
        ("attention", "ALiBi, mask", qkv(r, 3, 3, 2, 2, heads=2), {"alibi": [1.0, 0.3], "mask": numbers}),
        ("self_attention", "ALiBi", xw(r, 4, 3, 2, 2), {"alibi": [0.4], "causal": True}),
        ("multi_head", "ALiBi", heads(r, 4, 4, 2, 2, 3, 2, biases="QO"), {"heads": 2, "alibi": True, "causal": True}),
        ("multi_head", "ALiBi, GQA", heads(r, 3, 4, 2, 2, 3, 6, 3), {"heads": 6, "kv_heads": 3, "alibi": True}),
        ("multi_head", "ALiBi, soft cap", heads(r, 3, 4, 2, 2, 3, 2), {"heads": 2, "alibi": True, "softcap": 1.0}),
    ]  # fmt: skip


def cases() -> list[dict[str, Any]]:
    r = Numbers(20250303)
    listed = [*latent_cases(r), *rotary_cases(r), *alibi_cases(r)]
    out: list[dict[str, Any]] = []
    before: dict[str, Tensor] = {}
    for number, (model, name, inputs, settings) in enumerate(listed):
        run = Run(inputs, with_bias(model, inputs, settings))
        output = MODELS[model](run)
        (id,) = [id for id, tensor in run.tensors.items() if tensor is output]
        gradient = out[-1]["gradient"] if settings.get("absorbed") else gradient_of(r, number, id, output)
        steps = result(run, output, dict(gradient))
        steps = {step: values for step, values in steps.items() if step not in run.paths}
        for check in run.checks:
            check()
        if settings.get("absorbed"):
            for step in ("output", "A", "O", "G_X", *(f"G_{name}" for name in inputs)):
                torch.testing.assert_close(steps[step], before[step], rtol=1e-11, atol=1e-13)
        before = steps
        out.append({"name": f"{model}: {name}", "model": model, "inputs": inputs, "settings": settings, "gradient": gradient, "steps": steps})  # fmt: skip
    for case in out:
        case["gradient"].pop("terms", None)
    return [plain(case) for case in out]


def main() -> None:
    found = cases()
    lines = ",\n".join(json.dumps(case, ensure_ascii=False, allow_nan=False) for case in found)
    text = f'{{"source": "PyTorch {torch.__version__}, autograd, float64", "cases": [\n{lines}\n]}}\n'
    Path(__file__).with_name("torch_latent.json").write_text(text, encoding="utf-8")
    print(len(found), "cases")


if __name__ == "__main__":
    main()
