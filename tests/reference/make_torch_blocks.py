"""Writes torch_blocks.json: heads, norms, positions and feed-forward layers as PyTorch's autograd computes them.

Not run by the tests; they read the file. To write it anew: `pip install torch==2.13.0`, then
`python tests/reference/make_torch_blocks.py`. attncli is not imported here. Where PyTorch has the whole module
(MultiheadAttention, LayerNorm, RMSNorm, GELU, SiLU), its own output and gradients are compared before writing.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch
from make_torch import Numbers, Run, attend, loss_of, plain
from torch import nn
from torch.nn import functional as F

Tensor = torch.Tensor
NAMES = ("Q", "K", "V")


def linear(run: Run, x: Tensor, id: str, weight: str, bias: str) -> Tensor:
    out = x @ run.given[weight]
    if bias in run.given:
        out = out + run.given[bias]
    return run.keep(id, out)


def multi_head(run: Run) -> Tensor:
    given, settings = run.given, run.settings
    heads = settings.get("heads", 1)
    kv = settings.get("kv_heads", heads)
    x = given["X"]
    if "X_kv" in given:
        other = given["X_kv"]
        uses = {"Q": x, "K": run.keep("X_kv_K", other * 1), "V": run.keep("X_kv_V", other * 1)}
    else:
        # Each use of X is a node of its own, so that autograd keeps each path's gradient.
        uses = {name: run.keep(f"X_{name}", x * 1) for name in NAMES}
    whole = {name: linear(run, uses[name], name, f"W_{name}", f"b_{name}") for name in NAMES}
    own = {"Q": heads, "K": kv, "V": kv}
    parts = [
        run.keep(f"{name}_heads", whole[name].view(len(whole[name]), own[name], -1).transpose(0, 1)) for name in NAMES
    ]
    out = attend(run, *parts)
    concat = run.keep("concat", out.transpose(0, 1).reshape(out.shape[1], -1))
    output = linear(run, concat, "output", "W_O", "b_O")
    run.checks.append(lambda: agrees_with_module(run, output))
    return output


def agrees_with_module(run: Run, output: Tensor) -> None:
    """torch.nn.MultiheadAttention with these weights, where it can have them: equal widths, plain or causal."""
    given, settings = run.given, run.settings
    width = given["X"].shape[1]
    heads = settings.get("heads", 1)
    square = all(given[f"W_{name}"].shape == (width, width) for name in "QKVO")
    if not square or set(settings) - {"heads", "causal"} or "K_past" in given or width % heads:
        return
    module = nn.MultiheadAttention(width, heads, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.cat([given[f"W_{name}"].T for name in NAMES]))
        module.out_proj.weight.copy_(given["W_O"].T)
        zero = torch.zeros(1, width, dtype=torch.float64)
        module.in_proj_bias.copy_(torch.cat([given.get(f"b_{name}", zero)[0] for name in NAMES]))
        module.out_proj.bias.copy_(given.get("b_O", zero)[0])
    x = given["X"].detach().clone().requires_grad_()
    other = given.get("X_kv", x)
    mask = torch.triu(torch.ones(len(x), len(other), dtype=torch.bool), 1) if settings.get("causal") else None
    theirs, weights = module(x[None], other[None], other[None], attn_mask=mask, average_attn_weights=False)
    torch.testing.assert_close(theirs[0], output, rtol=1e-11, atol=1e-13)
    torch.testing.assert_close(weights[0], run.tensors["A"], rtol=1e-11, atol=1e-13)
    upstream = torch.linspace(-1, 1, output.numel(), dtype=torch.float64).reshape(output.shape)
    names = [f"W_{name}" for name in (*NAMES, "O")]
    ours = torch.autograd.grad(output, [given["X"], *(given[name] for name in names)], upstream, retain_graph=True)
    found = torch.autograd.grad(theirs[0], [x, module.in_proj_weight, module.out_proj.weight], upstream)
    torch.testing.assert_close(found[0], ours[0], rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(found[1], torch.cat([w.T for w in ours[1:4]]), rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(found[2], ours[4].T, rtol=1e-10, atol=1e-12)
    run.settings["module"] = True


def scaled(run: Run, normalised: Tensor) -> Tensor:
    given = run.given
    y = normalised * given["gamma"] if "gamma" in given else normalised * 1
    return run.keep("Y", y + given["beta"] if "beta" in given else y * 1)


def layer_norm(run: Run) -> Tensor:
    given, eps = run.given, run.settings.get("eps", 1e-5)
    x = given["X"]
    mean = run.keep("mean", x.mean(-1, keepdim=True))
    centred = run.keep("centred", x - mean)
    variance = run.keep("variance", (centred**2).mean(-1, keepdim=True))
    std = run.keep("std", torch.sqrt(variance + eps))
    y = scaled(run, run.keep("normalised", centred / std))
    gamma, beta = (given[name][0] if name in given else None for name in ("gamma", "beta"))
    run.checks.append(lambda: same(y, F.layer_norm(x, x.shape[1:], gamma, beta, eps), x))
    return y


def rms_norm(run: Run) -> Tensor:
    given, eps = run.given, run.settings.get("eps", 1e-5)
    x = given["X"]
    square = run.keep("mean_square", (x**2).mean(-1, keepdim=True))
    rms = run.keep("rms", torch.sqrt(square + eps))
    y = scaled(run, run.keep("normalised", x / rms))
    gamma = given["gamma"][0] if "gamma" in given else None
    run.checks.append(lambda: same(y, F.rms_norm(x, x.shape[1:], gamma, eps), x))
    return y


def same(ours: Tensor, theirs: Tensor, x: Tensor) -> None:
    """Equal values, and equal gradients for x."""
    torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-13)
    upstream = torch.linspace(-1, 1, ours.numel(), dtype=torch.float64).reshape(ours.shape)
    one, other = (torch.autograd.grad(y, x, upstream, retain_graph=True)[0] for y in (ours, theirs))
    torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def rotary(run: Run) -> Tensor:
    """By complex numbers (adjacent pairs) or by rotate_half, not by the formula that attncli writes."""
    settings, x = run.settings, run.given["X"]
    rows, width = x.shape[-2:]
    part = settings.get("rotary_dim", width)
    p = settings.get("start", 0) + torch.arange(rows, dtype=torch.float64)
    theta = p[:, None] * settings.get("base", 10000.0) ** (-torch.arange(0, part, 2, dtype=torch.float64) / part)
    run.tensors["angle"] = theta
    ids = [("X", "rotated")] + ([("K", "K_rotated")] if "K" in run.given else [])
    turned = []
    for name, id in ids:
        values = run.given[name]
        head = values[..., :part]
        if settings.get("pairing") == "half":
            half = torch.cat([-head[..., part // 2 :], head[..., : part // 2]], -1)
            both = torch.cat([theta, theta], -1)
            new = head * both.cos() + half * both.sin()
        else:
            z = torch.view_as_complex(head.reshape(*head.shape[:-1], -1, 2))
            new = torch.view_as_real(z * torch.polar(torch.ones_like(theta), theta)).flatten(-2)
        turned.append(run.keep(id, torch.cat([new, values[..., part:]], -1)))
    return turned[0] if len(turned) == 1 else run.keep("scores", turned[0] @ turned[1].mT)


CURVES = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
}


def feed_forward(run: Run) -> Tensor:
    given, kind = run.given, run.settings.get("activation", "relu")
    x = given["X"]
    if kind == "swiglu":
        gate = run.keep("gate", run.keep("X_gate", x * 1) @ given["W_gate"])
        hidden = linear(run, run.keep("X_hidden", x * 1), "hidden", "W_1", "b_1")
        activated = run.keep("activated", run.keep("swish", F.silu(gate)) * hidden)
    else:
        activated = run.keep("activated", CURVES[kind](linear(run, x, "hidden", "W_1", "b_1")))
    return linear(run, activated, "Y", "W_2", "b_2")


def residual(run: Run) -> Tensor:
    return run.keep("Y", run.given["X"] + run.given["F"])


MODELS = {
    "multi_head": multi_head,
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "rotary": rotary,
    "feed_forward": feed_forward,
    "residual": residual,
}


def heads(
    r: Numbers,
    n: int,
    d: int,
    d_k: int,
    d_v: int,
    out: int,
    h: int,
    kv: int | None = None,
    biases: str = "",
    d_kv: int = 0,
) -> Any:
    kv = h if kv is None else kv
    shapes = {
        "X": (n, d),
        "W_Q": (d, h * d_k),
        "W_K": (d_kv or d, kv * d_k),
        "W_V": (d_kv or d, kv * d_v),
        "W_O": (h * d_v, out),
    }
    widths = {"Q": h * d_k, "K": kv * d_k, "V": kv * d_v, "O": out}
    shapes |= {f"b_{name}": (1, widths[name]) for name in biases}
    return {name: r.normal(*shape, spread=0.8) for name, shape in shapes.items()}


def past(r: Numbers, kv: int, rows: int, d_k: int, d_v: int) -> Any:
    return {"K_past": r.normal(kv, rows, d_k), "V_past": r.normal(kv, rows, d_v)}


def multi_head_cases(r: Numbers) -> list[Any]:
    hidden = [[0.5, -math.inf, 0.0], [-math.inf, 0.0, 2.0], [0.25, 0.125, -3.0]]
    return [
        ("MHA", heads(r, 3, 4, 2, 2, 4, 2), {"heads": 2}),
        ("MHA, causal", heads(r, 4, 6, 2, 2, 6, 3), {"heads": 3, "causal": True}),
        ("MHA, biases", heads(r, 3, 4, 1, 1, 4, 4, biases="QKVO"), {"heads": 4}),
        ("MHA, biases, causal", heads(r, 5, 8, 2, 2, 8, 4, biases="QKVO"), {"heads": 4, "causal": True}),
        ("MHA, one head", heads(r, 3, 4, 4, 4, 4, 1, biases="O"), {}),
        ("MHA, widths of its own", heads(r, 2, 3, 2, 4, 5, 3), {"heads": 3}),
        ("MHA, one token", heads(r, 1, 3, 2, 2, 3, 2), {"heads": 2}),
        ("MHA, padding", heads(r, 3, 4, 2, 2, 4, 2), {"heads": 2, "hide": [[False, False, True]]}),
        ("MHA, keep", heads(r, 3, 4, 2, 2, 4, 2), {"heads": 2, "keep": r.marks(3, 3)}),
        ("MHA, mask of numbers", heads(r, 3, 4, 2, 2, 4, 2), {"heads": 2, "mask": hidden}),
        ("MHA, scale", heads(r, 3, 4, 2, 2, 4, 2), {"heads": 2, "scale": 0.3}),
        ("MHA, no scale", heads(r, 3, 4, 2, 2, 4, 2), {"heads": 2, "scale": "none"}),
        ("MHA, soft cap", heads(r, 3, 4, 2, 2, 4, 2), {"heads": 2, "softcap": 1.5, "causal": True}),
        ("MHA, window", heads(r, 5, 4, 2, 2, 4, 2), {"heads": 2, "window": [1, 0]}),
        ("MHA, cache", heads(r, 2, 4, 2, 2, 4, 2) | past(r, 2, 3, 2, 2), {"heads": 2, "causal": True}),
        ("MQA", heads(r, 3, 4, 2, 2, 4, 4, 1), {"heads": 4, "kv_heads": 1}),
        ("MQA, causal, biases", heads(r, 3, 4, 2, 3, 4, 3, 1, "QKVO"), {"heads": 3, "kv_heads": 1, "causal": True}),
        ("MQA, cache", heads(r, 1, 4, 2, 2, 4, 4, 1) | past(r, 1, 4, 2, 2), {"heads": 4, "kv_heads": 1, "causal": True}),
        ("GQA", heads(r, 3, 4, 2, 2, 4, 4, 2), {"heads": 4, "kv_heads": 2}),
        ("GQA, causal", heads(r, 4, 5, 2, 1, 3, 6, 3), {"heads": 6, "kv_heads": 3, "causal": True}),
        ("GQA, biases", heads(r, 3, 4, 1, 2, 4, 6, 2, "KO"), {"heads": 6, "kv_heads": 2}),
        ("GQA, cache, window", heads(r, 2, 3, 2, 2, 3, 4, 2) | past(r, 2, 2, 2, 2), {"heads": 4, "kv_heads": 2, "window": [2, 0]}),
        ("GQA, soft cap", heads(r, 3, 4, 2, 2, 4, 4, 2), {"heads": 4, "kv_heads": 2, "softcap": 0.7}),
        ("cross", heads(r, 2, 4, 2, 2, 4, 2) | {"X_kv": r.normal(5, 4)}, {"heads": 2}),
        ("cross, biases", heads(r, 3, 4, 2, 2, 4, 2, biases="QKVO") | {"X_kv": r.normal(2, 4)}, {"heads": 2}),
        ("cross, another width", heads(r, 3, 4, 2, 2, 4, 2, d_kv=3) | {"X_kv": r.normal(4, 3)}, {"heads": 2}),
        ("cross, GQA", heads(r, 2, 3, 2, 2, 3, 4, 2, d_kv=5) | {"X_kv": r.normal(3, 5)}, {"heads": 4, "kv_heads": 2}),
        ("cross, padding", heads(r, 2, 4, 2, 2, 4, 2) | {"X_kv": r.normal(4, 4)}, {"heads": 2, "hide": [[False, True, False, True]]}),
    ]  # fmt: skip


def norm_cases(r: Numbers) -> list[Any]:
    out: list[Any] = []
    for n, d, eps, vectors, spread in [
        (3, 4, None, "gb", 1.0),
        (1, 2, None, "gb", 1.0),
        (2, 5, 0.1, "gb", 1.0),
        (4, 3, 0.01, "g", 3.0),
        (2, 3, None, "b", 1.0),
        (3, 6, None, "", 1.0),
        (5, 8, 1e-3, "gb", 0.05),
        (2, 4, 0.0, "gb", 1.0),
        (2, 16, None, "gb", 2.0),
    ]:
        settings = {} if eps is None else {"eps": eps}
        inputs = {"X": r.normal(n, d, spread=spread) + (0.5 if spread == 3.0 else 0.0)}
        names = {"g": "gamma", "b": "beta"}
        inputs |= {names[v]: r.normal(1, d) for v in vectors}
        title = f"{n}×{d}, eps {eps}, {vectors or 'plain'}"
        out.append(("layer_norm", title, inputs, settings))
        out.append(("rms_norm", title, {name: x for name, x in inputs.items() if name != "beta"}, settings))
    return out


def rotary_cases(r: Numbers) -> list[Any]:
    return [
        ("adjacent", {"X": r.normal(3, 4)}, {}),
        ("half", {"X": r.normal(3, 4)}, {"pairing": "half"}),
        ("one pair", {"X": r.normal(5, 2)}, {}),
        ("heads", {"X": r.normal(2, 3, 6)}, {"pairing": "adjacent"}),
        ("heads, half", {"X": r.normal(2, 3, 6)}, {"pairing": "half", "base": 500000.0}),
        ("base", {"X": r.normal(4, 4)}, {"base": 100.0}),
        ("start", {"X": r.normal(3, 4)}, {"start": 7}),
        ("part", {"X": r.normal(3, 6)}, {"rotary_dim": 4}),
        ("part, half", {"X": r.normal(3, 7)}, {"rotary_dim": 4, "pairing": "half", "start": 2}),
        ("scores", {"X": r.normal(3, 4), "K": r.normal(3, 4)}, {}),
        ("scores, half", {"X": r.normal(4, 6), "K": r.normal(4, 6)}, {"pairing": "half", "start": 3}),
        ("scores, heads", {"X": r.normal(2, 3, 4), "K": r.normal(2, 3, 4)}, {}),
    ]  # fmt: skip


def feed_forward_cases(r: Numbers) -> list[Any]:
    out = []
    for kind in ("relu", "gelu", "gelu_tanh", "silu", "swiglu"):
        for n, d, ff, o, biases in [(3, 2, 4, 2, ""), (2, 3, 5, 3, "12"), (4, 2, 3, 5, "2")]:
            inputs = {"X": r.normal(n, d, spread=1.5), "W_1": r.normal(d, ff), "W_2": r.normal(ff, o)}
            inputs |= {f"b_{b}": r.normal(1, ff if b == "1" else o) for b in biases}
            if kind == "swiglu":
                inputs["W_gate"] = r.normal(d, ff)
            out.append((f"{kind}, {n}×{d}×{ff}×{o}{', biases' * bool(biases)}", inputs, {"activation": kind}))
    return out


def gradient_of(r: Numbers, number: int, id: str, out: Tensor) -> dict[str, Any]:
    """An upstream gradient, or now and then a loss."""
    if number % 7 == 3:
        return {"loss": f"mse({id}, goal)", "target": r.normal(*out.shape)}
    if number % 7 == 5:
        first, last = (1,) * out.ndim, tuple(out.shape)
        text = f"{id}[{','.join(map(str, first))}] - 2.5*{id}[{','.join(map(str, last))}]"
        return {"loss": text, "terms": [(1.0, first), (-2.5, last)]}
    return {"upstream": r.normal(*out.shape)}


def result(run: Run, out: Tensor, gradient: dict[str, Any]) -> dict[str, Tensor]:
    """Every step and every gradient, by id."""
    loss = loss_of(run, out, gradient)
    loss.backward(retain_graph=True)
    paths = ("X_Q", "X_K", "X_V", "X_kv_K", "X_kv_V", "X_gate", "X_hidden")
    found = {id: tensor for id, tensor in run.tensors.items() if id not in run.given and id not in paths}
    if "upstream" not in gradient:
        found["L"] = loss.reshape(1, 1)
    return found | {
        f"G_{id}": t.grad.clone() for id, t in run.tensors.items() if t.requires_grad and t.grad is not None
    }


def cases() -> list[dict[str, Any]]:
    r = Numbers(20250202)
    listed = [("multi_head", *case) for case in multi_head_cases(r)]
    listed += norm_cases(r)
    listed += [("rotary", *case) for case in rotary_cases(r)]
    listed += [("feed_forward", *case) for case in feed_forward_cases(r)]
    listed += [("residual", "plain", {"X": r.normal(3, 2), "F": r.normal(3, 2)}, {})]
    out = []
    for number, (model, name, inputs, settings) in enumerate(listed):
        run = Run(inputs, dict(settings))
        output = MODELS[model](run)
        (id,) = [id for id, tensor in run.tensors.items() if tensor is output]
        gradient = gradient_of(r, number, id, output)
        steps = result(run, output, gradient)
        for check in run.checks:
            check()
        gradient.pop("terms", None)
        case = {
            "name": f"{model}: {name}",
            "model": model,
            "inputs": inputs,
            "settings": settings,
            "gradient": gradient,
        }
        if run.settings.get("module"):
            case["module"] = "torch.nn.MultiheadAttention"
        out.append(plain({**case, "steps": steps}))
    return out


def main() -> None:
    found = cases()
    lines = ",\n".join(json.dumps(case, ensure_ascii=False, allow_nan=False) for case in found)
    text = f'{{"source": "PyTorch {torch.__version__}, autograd, float64", "cases": [\n{lines}\n]}}\n'
    Path(__file__).with_name("torch_blocks.json").write_text(text, encoding="utf-8")
    print(len(found), "cases,", sum("module" in case for case in found), "held against torch.nn.MultiheadAttention")


if __name__ == "__main__":
    main()
