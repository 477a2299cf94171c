"""Trainings of a few steps by PyTorch, with torch.optim.Adam and torch.optim.SGD: python make_torch_training.py > torch_training.json

Written with PyTorch alone. The first numbers are drawn here, so that nothing comes from attncli.
"""

from __future__ import annotations

import json
import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional

Numbers = dict[str, torch.Tensor]


def positions(count: int, width: int) -> torch.Tensor:
    rows = [
        [
            math.sin(p / 10000 ** (c / width)) if c % 2 == 0 else math.cos(p / 10000 ** ((c - 1) / width))
            for c in range(width)
        ]
        for p in range(count)
    ]
    return torch.tensor(rows, dtype=torch.float64)


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]


def heads_of(x: torch.Tensor, count: int) -> torch.Tensor:
    return x.reshape(len(x), count, -1).transpose(0, 1)


def multi_head(x: torch.Tensor, p: Numbers, part: str, spec: dict[str, Any]) -> torch.Tensor:
    q = heads_of(x @ p[f"{part}W_Q"], spec["heads"])
    shared = spec["heads"] // spec["kv_heads"]
    k, v = (heads_of(x @ p[f"{part}{name}"], spec["kv_heads"]).repeat_interleave(shared, 0) for name in ("W_K", "W_V"))
    return attend(q, k, v).transpose(0, 1).reshape(len(x), -1) @ p[f"{part}W_O"]


def logits(p: Numbers, ids: torch.Tensor, spec: dict[str, Any]) -> torch.Tensor:
    x = functional.embedding(ids, p["E"])
    if spec["positions"] == "sinusoidal":
        x = x + positions(len(ids), x.shape[1])
    if spec["positions"] == "learned":
        x = x + p["P"][: len(ids)]
    width = (x.shape[1],)
    if spec["layers"] == 0:
        x = multi_head(x, p, "", spec) if "W_O" in p else attend(x @ p["W_Q"], x @ p["W_K"], x @ p["W_V"])
    for layer in range(1, spec["layers"] + 1):
        part = f"layer{layer}."

        def normed(x: torch.Tensor, name: str, part: str = part) -> torch.Tensor:
            return functional.layer_norm(x, width, p[f"{part}{name}.gamma"][0], p[f"{part}{name}.beta"][0])

        def fed(x: torch.Tensor, part: str = part) -> torch.Tensor:
            return functional.gelu(x @ p[f"{part}ffn.W_1"]) @ p[f"{part}ffn.W_2"]

        if spec["norm"] == "pre":
            x = x + multi_head(normed(x, "norm1"), p, f"{part}self.", spec)
            x = x + fed(normed(x, "norm2"))
        else:
            x = normed(x + multi_head(x, p, f"{part}self.", spec), "norm1")
            x = normed(x + fed(x), "norm2")
    if spec["layers"] and spec["norm"] == "pre":
        x = functional.layer_norm(x, width, p["final.gamma"][0], p["final.beta"][0])
    return x @ (p["E"].T if spec["tied"] else p["W_out"])


def shapes(spec: dict[str, Any]) -> dict[str, tuple[int, int]]:
    d, d_k, d_v, h, g = (spec[name] for name in ("d_model", "d_k", "d_v", "heads", "kv_heads"))
    count = len(spec["tokens"])
    found = {"E": (count, d)}
    if spec["positions"] == "learned":
        found["P"] = (spec["context"], d)
    joined = spec["layers"] > 0 or h > 1 or spec["tied"]
    for part in [f"layer{i}.self." for i in range(1, spec["layers"] + 1)] or [""]:
        found |= {f"{part}W_Q": (d, h * d_k), f"{part}W_K": (d, g * d_k), f"{part}W_V": (d, g * d_v)}
        if joined:
            found[f"{part}W_O"] = (h * d_v, d)
    for i in range(1, spec["layers"] + 1):
        for name in ("norm1", "norm2"):
            found |= {f"layer{i}.{name}.gamma": (1, d), f"layer{i}.{name}.beta": (1, d)}
        found |= {f"layer{i}.ffn.W_1": (d, spec["d_ff"]), f"layer{i}.ffn.W_2": (spec["d_ff"], d)}
    if spec["layers"] and spec["norm"] == "pre":
        found |= {"final.gamma": (1, d), "final.beta": (1, d)}
    if not spec["tied"]:
        found["W_out"] = (d if joined else d_v, count)
    return found


def case(text: str, steps: int, **changes: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "split": "characters",
        "d_model": 4,
        "d_k": 2,
        "d_v": 2,
        "heads": 1,
        "kv_heads": 1,
        "layers": 0,
        "d_ff": 0,
        "positions": "sinusoidal",
        "norm": "pre",
        "tied": False,
        "optimizer": "adam",
        "eta": 0.05,
        **changes,
    }
    pieces = text.split(" ") if spec["split"] == "words" else list(text)
    spec["tokens"] = list(dict.fromkeys(pieces))
    spec["context"] = len(pieces) - 1
    ids = torch.tensor([spec["tokens"].index(piece) for piece in pieces])
    first = {name: torch.randn(shape, dtype=torch.float64).round(decimals=2) for name, shape in shapes(spec).items()}
    learnt = {name: nn.Parameter(values.clone()) for name, values in first.items()}
    kind = torch.optim.Adam if spec["optimizer"] == "adam" else torch.optim.SGD
    optimizer = kind(learnt.values(), lr=spec["eta"])
    after = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = functional.cross_entropy(logits(learnt, ids[:-1], spec), ids[1:])
        loss.backward()
        optimizer.step()
        after.append({"loss": loss.item(), "numbers": {n: v.detach().tolist() for n, v in learnt.items()}})
    return {"text": text, "spec": spec, "first": {n: v.tolist() for n, v in first.items()}, "after": after}


def main() -> None:
    torch.manual_seed(20)
    block = {"d_model": 4, "layers": 1, "d_ff": 6, "heads": 2, "kv_heads": 1}
    cases = [
        case("我喜欢数学", 5),
        case("我喜欢数学", 5, optimizer="sgd", eta=0.5),
        case("我爱你你爱我", 4, positions="none"),
        case("我爱你你爱我", 4, positions="learned", optimizer="sgd", eta=0.2),
        case("to be or not to be", 4, split="words", tied=True),
        case("abcab", 3, heads=2, d_v=3),
        case("abcab", 3, **block),
        case("abcab", 3, **block, norm="post", optimizer="sgd", eta=0.1),
        case("abcab", 3, **{**block, "layers": 2, "kv_heads": 2}, positions="learned", tied=True),
    ]
    print(json.dumps({"torch": torch.__version__, "cases": cases}, ensure_ascii=False))


if __name__ == "__main__":
    main()
