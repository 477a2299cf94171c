"""Writes torch.json: attention and its gradients as PyTorch's autograd computes them, in float64.

Not run by the tests; they read the file. To write it anew: `pip install torch==2.13.0`, then
`python tests/reference/make_torch.py`. attncli is not imported here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

Case = dict[str, Any]
Tensor = torch.Tensor

INF = math.inf


class Run:
    """One calculation: tensors by step id, whose gradients autograd keeps."""

    def __init__(self, inputs: dict[str, Tensor], settings: dict[str, Any]) -> None:
        self.settings = settings
        self.tensors: dict[str, Tensor] = {}
        self.checks: list[Callable[[], None]] = []
        self.given = {name: self.leaf(name, value) for name, value in inputs.items()}

    def leaf(self, id: str, value: Tensor) -> Tensor:
        if value.is_floating_point():
            self.tensors[id] = value.clone().requires_grad_()
            return self.tensors[id]
        return value

    def keep(self, id: str, value: Tensor) -> Tensor:
        value.retain_grad()
        self.tensors[id] = value
        return value


def mask_of(settings: dict[str, Any], n: int, m: int, past: int) -> Tensor | None:
    """0 or −∞ (or the numbers given) for query i and key j; None where no mask is asked for."""
    i, j = torch.arange(n)[:, None] + past, torch.arange(m)[None, :]
    masks = []
    if settings.get("causal"):
        masks.append(j > i)
    if "window" in settings:
        left, right = settings["window"]
        if left >= 0:
            masks.append(i - j > left)
        if right >= 0:
            masks.append(j - i > right)
    if "keep" in settings:
        masks.append(~torch.tensor(settings["keep"]))
    if "hide" in settings:
        masks.append(torch.tensor(settings["hide"]))
    total = torch.zeros(n, m, dtype=torch.float64)
    for hidden in masks:
        total = total.masked_fill(hidden, -INF)
    if "mask" in settings:
        return total + torch.tensor(settings["mask"], dtype=torch.float64)
    return total if masks else None


def attend(run: Run, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    settings, given = run.settings, run.given
    past = 0
    if "K_past" in given:
        past = given["K_past"].shape[-2]
        k = run.keep("K_all", torch.cat([given["K_past"], k], -2))
        v = run.keep("V_all", torch.cat([given["V_past"], v], -2))
    whole = k, v
    if q.ndim == 3 and q.shape[0] != k.shape[0]:
        k = run.keep("K_shared", k.repeat_interleave(q.shape[0] // k.shape[0], 0))
        v = run.keep("V_shared", v.repeat_interleave(q.shape[0] // v.shape[0], 0))
    s = run.keep("scores", q @ k.mT)
    kind = settings.get("scale", "sqrt")
    scale = {"sqrt": 1 / math.sqrt(q.shape[-1]), "none": 1.0}.get(kind, kind)
    if scale != 1:
        s = run.keep("scaled", s / math.sqrt(q.shape[-1]) if kind == "sqrt" else s * scale)
    if "softcap" in settings:
        c = settings["softcap"]
        s = run.keep("capped", c * torch.tanh(s / c))
    mask = mask_of(settings, q.shape[-2], k.shape[-2], past)
    if mask is not None:
        s = run.keep("masked", s + mask)
    # A row with nothing visible: weights 0, as in scaled_dot_product_attention.
    weights = run.keep("A", torch.ops.aten._safe_softmax(s, -1))
    out = run.keep("O", weights @ v)
    if "softcap" not in settings:
        run.checks.append(lambda: agrees_with_sdpa(q, *whole, mask, scale, out))
    return out


def agrees_with_sdpa(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float, out: Tensor) -> None:
    """PyTorch's own attention gives the same output and the same gradients for q, k and v."""
    fused = scaled_dot_product_attention(
        *(x[None] if x.ndim == 3 else x[None, None] for x in (q, k, v)),
        attn_mask=mask,
        scale=scale,
        enable_gqa=q.ndim == 3 and q.shape[0] != k.shape[0],
    )
    fused = fused.reshape(out.shape)
    upstream = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).reshape(out.shape)
    ours = torch.autograd.grad(out, (q, k, v), upstream, retain_graph=True)
    theirs = torch.autograd.grad(fused, (q, k, v), upstream, retain_graph=True)
    for a, b in zip((out, *ours), (fused, *theirs), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


def self_attend(run: Run, x: Tensor) -> Tensor:
    # Each use of X is a node of its own, so that autograd keeps each path's gradient.
    paths = {name: run.keep(f"X_{name}", x * 1) for name in "QKV"}
    q, k, v = (run.keep(name, paths[name] @ run.given[f"W_{name}"]) for name in "QKV")
    return attend(run, q, k, v)


def look_up(run: Run) -> Tensor:
    return run.keep("X", torch.nn.functional.embedding(run.given["T"], run.given["E"]))


MODELS = {
    "attention": lambda run: attend(run, run.given["Q"], run.given["K"], run.given["V"]),
    "self_attention": lambda run: self_attend(run, run.given["X"]),
    "embedded_attention": lambda run: self_attend(run, look_up(run)),
    "softmax": lambda run: run.keep("A", torch.ops.aten._safe_softmax(run.given["scores"], -1)),
    "product": lambda run: run.keep("O", run.given["A"] @ run.given["V"]),
    "embedding": look_up,
}
OUTPUT = {"softmax": "A", "embedding": "X"}


def loss_of(run: Run, out: Tensor, gradient: dict[str, Any]) -> Tensor:
    if "upstream" in gradient:
        return (out * gradient["upstream"]).sum()
    if "terms" in gradient:
        return sum(factor * out[tuple(i - 1 for i in index)] for factor, index in gradient["terms"])
    if "target" in gradient:
        return torch.nn.functional.mse_loss(out, gradient["target"])
    return out.sum()


def result(run: Run, out: Tensor, gradient: dict[str, Any]) -> dict[str, Tensor]:
    """Every step and every gradient, by id."""
    loss = loss_of(run, out, gradient)
    loss.backward(retain_graph=True)
    found = {
        id: tensor for id, tensor in run.tensors.items() if id not in run.given and id not in ("X_Q", "X_K", "X_V")
    }
    grads = {f"G_{id}": tensor.grad.clone() for id, tensor in run.tensors.items() if tensor.grad is not None}
    if "upstream" not in gradient:
        found["L"] = loss.reshape(1, 1)
    if "eta" in run.settings:
        table = run.given["E"].detach().clone().requires_grad_()
        table.grad = grads["G_E"]
        torch.optim.SGD([table], lr=run.settings["eta"]).step()
        found["E_new"] = table
    return found | grads


class Numbers:
    """Seeded random arrays."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int, spread: float = 1.0) -> Tensor:
        # Four decimals keep the file readable; the results have all digits.
        values = torch.randn(*shape, generator=self.generator, dtype=torch.float64) * spread
        return (values * 1e4).round() / 1e4

    def marks(self, *shape: int) -> list[Any]:
        return (torch.rand(*shape, generator=self.generator) < 0.5).tolist()


def qkv(r: Numbers, n: int, m: int, d_k: int, d_v: int, heads: int = 0, kv: int = 0, spread: float = 1.0) -> Any:
    q, k = ((heads,), (kv or heads,)) if heads else ((), ())
    return {
        "Q": r.normal(*q, n, d_k, spread=spread),
        "K": r.normal(*k, m, d_k, spread=spread),
        "V": r.normal(*k, m, d_v),
    }


def cached(r: Numbers, n: int, past: int, d_k: int, d_v: int, heads: int = 0, kv: int = 0) -> Any:
    k = (kv or heads,) if heads else ()
    return qkv(r, n, n, d_k, d_v, heads, kv) | {
        "K_past": r.normal(*k, past, d_k),
        "V_past": r.normal(*k, past, d_v),
    }


def xw(r: Numbers, n: int, d_model: int, d_k: int, d_v: int) -> Any:
    return {"X": r.normal(n, d_model)} | weights(r, d_model, d_k, d_v)


def weights(r: Numbers, d_model: int, d_k: int, d_v: int) -> Any:
    shapes = {"W_Q": (d_model, d_k), "W_K": (d_model, d_k), "W_V": (d_model, d_v)}
    return {name: r.normal(*shape) for name, shape in shapes.items()}


def table(r: Numbers, vocabulary: int, d_model: int, ids: list[int]) -> Any:
    return {"E": r.normal(vocabulary, d_model), "T": torch.tensor(ids)}


def attention_cases(r: Numbers) -> list[tuple[str, Any, dict[str, Any]]]:
    hidden = [[0.5, -INF, 0.0, -1.25], [-INF, 0.0, 2.0, -INF], [0.25, 0.125, -INF, -3.0]]
    return [
        ("plain", qkv(r, 3, 3, 2, 2), {}),
        ("plain, one token", qkv(r, 1, 1, 3, 2), {}),
        ("plain, d_k 1", qkv(r, 3, 3, 1, 2), {}),
        ("fewer queries than keys", qkv(r, 2, 5, 3, 3), {}),
        ("more queries than keys", qkv(r, 4, 2, 3, 3), {}),
        ("d_v differs", qkv(r, 3, 4, 2, 5), {}),
        ("large scores", qkv(r, 3, 3, 4, 2, spread=3.0), {}),
        ("causal", qkv(r, 4, 4, 2, 3), {"causal": True}),
        ("causal, fewer queries", qkv(r, 2, 4, 2, 2), {"causal": True}),
        ("causal, more queries", qkv(r, 4, 2, 2, 2), {"causal": True}),
        ("causal, no scale", qkv(r, 3, 3, 3, 2), {"causal": True, "scale": "none"}),
        ("mask of numbers", qkv(r, 3, 4, 2, 2), {"mask": r.normal(3, 4).tolist()}),
        ("mask with hidden keys", qkv(r, 3, 4, 2, 2), {"mask": hidden}),
        ("mask with a hidden row", qkv(r, 3, 4, 2, 2), {"mask": [*hidden[:2], [-INF] * 4]}),
        ("mask and causal", qkv(r, 3, 4, 2, 2), {"mask": r.normal(3, 4).tolist(), "causal": True}),
        ("mask for each head", qkv(r, 3, 4, 2, 2, heads=2), {"mask": r.normal(2, 3, 4).tolist()}),
        ("keep", qkv(r, 4, 5, 2, 2), {"keep": r.marks(4, 5)}),
        ("keep, one row for all", qkv(r, 3, 4, 2, 2), {"keep": [[True, True, False, True]]}),
        ("keep for each head", qkv(r, 3, 3, 2, 2, heads=2), {"keep": r.marks(2, 3, 3)}),
        ("keep nothing in row 2", qkv(r, 2, 2, 2, 2), {"keep": [[True, False], [False, False]]}),
        ("hide", qkv(r, 3, 5, 2, 2), {"hide": r.marks(3, 5)}),
        ("hide and causal", qkv(r, 4, 4, 2, 2), {"hide": [[False, True, False, False]], "causal": True}),
        ("scale none", qkv(r, 3, 3, 4, 2), {"scale": "none"}),
        ("scale 0.3", qkv(r, 3, 3, 4, 2), {"scale": 0.3}),
        ("scale -0.5", qkv(r, 3, 3, 2, 2), {"scale": -0.5}),
        ("softcap 2", qkv(r, 3, 4, 3, 2), {"softcap": 2.0}),
        ("softcap 0.5 and causal", qkv(r, 3, 3, 3, 2), {"softcap": 0.5, "causal": True}),
        ("softcap, no scale", qkv(r, 3, 3, 3, 2), {"softcap": 3.0, "scale": "none"}),
        ("window 1 back", qkv(r, 4, 4, 2, 2), {"window": [1, 0]}),
        ("window 1 back, 1 ahead", qkv(r, 4, 4, 2, 2), {"window": [1, 1]}),
        ("window open to the left", qkv(r, 3, 5, 2, 2), {"window": [-1, 1]}),
        ("window and causal", qkv(r, 5, 5, 2, 2), {"window": [2, -1], "causal": True}),
        ("cache", cached(r, 2, 3, 2, 3), {}),
        ("cache and causal", cached(r, 3, 2, 2, 3), {"causal": True}),
        ("cache, causal, one new token", cached(r, 1, 4, 2, 2), {"causal": True}),
        ("cache and window", cached(r, 2, 3, 2, 2), {"window": [2, 0]}),
        ("heads", qkv(r, 3, 4, 2, 3, heads=2), {}),
        ("heads and causal", qkv(r, 3, 3, 2, 2, heads=3), {"causal": True}),
        ("shared heads", qkv(r, 3, 3, 2, 2, heads=4, kv=2), {}),
        ("shared heads and causal", qkv(r, 3, 3, 2, 2, heads=4, kv=2), {"causal": True}),
        ("one shared head", qkv(r, 2, 3, 2, 3, heads=3, kv=1), {"causal": True}),
        ("shared heads, softcap, scale", qkv(r, 2, 3, 2, 2, heads=6, kv=3), {"softcap": 1.5, "scale": 0.7}),
        ("shared heads, cache, window", cached(r, 2, 2, 2, 2, heads=4, kv=2), {"causal": True, "window": [2, 0]}),
        (
            "everything",
            cached(r, 2, 2, 3, 2, heads=4, kv=2),
            {"causal": True, "softcap": 2.5, "scale": 0.4, "mask": r.normal(4, 2, 4).tolist()},
        ),
    ]


def other_cases(r: Numbers) -> list[tuple[str, str, Any, dict[str, Any]]]:
    hidden = torch.tensor([[1.0, -INF, -INF], [4.0, 5.0, -INF], [7.0, 8.0, 9.0]], dtype=torch.float64)
    lost = torch.tensor([[0.5, -INF], [-INF, -INF]], dtype=torch.float64)
    return [
        ("self_attention", "plain", xw(r, 3, 2, 2, 2), {}),
        ("self_attention", "three widths", xw(r, 3, 4, 2, 5), {}),
        ("self_attention", "three widths, causal", xw(r, 4, 3, 2, 4), {"causal": True}),
        ("self_attention", "d_k 1", xw(r, 3, 2, 1, 2), {"causal": True}),
        ("self_attention", "keep", xw(r, 4, 3, 2, 2), {"keep": r.marks(4, 4)}),
        ("self_attention", "mask", xw(r, 3, 3, 2, 2), {"mask": r.normal(3, 3).tolist()}),
        ("self_attention", "hide", xw(r, 3, 2, 3, 2), {"hide": [[False, True, False]]}),
        ("self_attention", "softcap, scale, window", xw(r, 4, 2, 3, 2), {"softcap": 2.0, "scale": 0.6, "window": [1, 1]}),
        ("embedded_attention", "plain", table(r, 6, 4, [0, 3, 5]) | weights(r, 4, 2, 2), {}),
        ("embedded_attention", "causal", table(r, 6, 4, [4, 1, 2]) | weights(r, 4, 2, 2), {"causal": True}),
        ("embedded_attention", "repeated", table(r, 4, 3, [2, 0, 2, 2]) | weights(r, 3, 2, 4), {"causal": True}),
        ("embedded_attention", "repeated, η", table(r, 5, 3, [1, 1, 0]) | weights(r, 3, 2, 2), {"eta": 0.1}),
        ("embedded_attention", "η", table(r, 6, 4, [0, 2, 1]) | weights(r, 4, 2, 2), {"eta": 0.5, "causal": True}),
        ("softmax", "plain", {"scores": r.normal(3, 4)}, {}),
        ("softmax", "heads", {"scores": r.normal(2, 3, 4)}, {}),
        ("softmax", "far apart", {"scores": r.normal(3, 5, spread=4.0)}, {}),
        ("softmax", "shifted by 500", {"scores": r.normal(2, 4) + 500}, {}),
        ("softmax", "hidden keys", {"scores": hidden}, {}),
        ("softmax", "a hidden row", {"scores": lost}, {}),
        ("softmax", "bare formula", {"scores": r.normal(3, 3)}, {"subtract": "none"}),
        ("softmax", "another constant", {"scores": r.normal(3, 3)}, {"subtract": 1.5}),
        ("product", "plain", {"A": r.normal(2, 3), "V": r.normal(3, 4)}, {}),
        ("product", "heads", {"A": r.normal(2, 2, 3), "V": r.normal(2, 3, 2)}, {}),
        ("embedding", "plain", table(r, 4, 3, [2, 3, 0]), {}),
        ("embedding", "repeated", table(r, 3, 2, [0, 0, 2, 0]), {}),
        ("embedding", "repeated, η", table(r, 3, 2, [1, 2, 1]), {"eta": 0.25}),
    ]  # fmt: skip


def gradient_of(r: Numbers, number: int, model: str, out: Tensor) -> dict[str, Any]:
    """An upstream gradient, or a loss: each kind in turn."""
    name = OUTPUT.get(model, "O")
    kind = number % 5
    if kind == 1:
        return {"loss": f"sum({name})"}
    if kind == 2:
        first, last = (1,) * out.ndim, tuple(out.shape)
        text = f"{name}[{','.join(map(str, first))}] - 2.5*{name}[{','.join(map(str, last))}]"
        return {"loss": text, "terms": [(1.0, first), (-2.5, last)]}
    if kind == 3:
        return {"loss": f"mse({name}, goal)", "target": r.normal(*out.shape)}
    return {"upstream": r.normal(*out.shape)}


def plain(value: Any) -> Any:
    """For JSON: nested lists, full digits, infinities as text."""
    if isinstance(value, Tensor):
        return plain(value.detach().tolist())
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        assert not math.isnan(value)
        return "inf" if value > 0 else "-inf"
    return value


def cases() -> list[Case]:
    r = Numbers(20250101)
    listed = [("attention", *case) for case in attention_cases(r)] + other_cases(r)
    out = []
    for number, (model, name, inputs, settings) in enumerate(listed):
        run = Run(inputs, settings)
        output = MODELS[model](run)
        gradient = gradient_of(r, number, model, output)
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
        out.append(plain({**case, "steps": steps}))
    return out


def main() -> None:
    found = cases()
    lines = ",\n".join(json.dumps(case, ensure_ascii=False, allow_nan=False) for case in found)
    text = f'{{"source": "PyTorch {torch.__version__}, autograd, float64", "cases": [\n{lines}\n]}}\n'
    Path(__file__).with_name("torch.json").write_text(text, encoding="utf-8")
    print(len(found), "cases")


if __name__ == "__main__":
    main()
