"""Writes torch_dumps.json: what PyTorch's own layers come to in float32, as a program's dump would hold it.

Not run by the tests; they read the file. To write it anew: `pip install torch==2.13.0`, then
`python tests/marking/make_torch_dumps.py`. attncli is not imported here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

PER_KIND = 5
EPS = (1e-5, 1e-3, 0.1)


def numbers(*shape: int) -> torch.Tensor:
    """Numbers with two decimals, as float32."""
    return (torch.randint(-200, 201, shape) / 100.0).to(torch.float32)


def listed(value: torch.Tensor) -> Any:
    """A matrix, or a vector as one row; nine digits tell float32 numbers apart."""
    rows = value.detach().reshape(-1, value.shape[-1]).tolist()
    return [[float(f"{v:.9g}") for v in row] for row in rows]


def texts(**arrays: torch.Tensor) -> dict[str, str]:
    return {
        name: "; ".join(" ".join(f"{v:.2f}" for v in row) for row in listed(value)) for name, value in arrays.items()
    }


def norm(name: str, eps: float) -> dict[str, Any]:
    rows, width = int(torch.randint(2, 6, ())), int(torch.randint(2, 9, ()))
    x, gamma = numbers(rows, width).requires_grad_(), numbers(width).requires_grad_()
    beta, arriving = numbers(width).requires_grad_(), numbers(rows, width)
    inputs = {"X": x, "gamma": gamma, "beta": beta}
    if name == "rms_norm":
        del inputs["beta"]
        y = functional.rms_norm(x, (width,), gamma, eps)
    else:
        y = functional.layer_norm(x, (width,), gamma, beta, eps)
    y.backward(arriving)
    dump = {"Y": y, **{f"G_{id}": value.grad for id, value in inputs.items()}}
    return entry(name, {"eps": eps}, inputs, arriving, dump)


def feed_forward(kind: str) -> dict[str, Any]:
    rows, width, hidden = (int(torch.randint(2, 6, ())) for _ in range(3))
    inputs = {
        "X": numbers(rows, width).requires_grad_(),
        "W_1": numbers(width, hidden).requires_grad_(),
        "W_2": numbers(hidden, width).requires_grad_(),
    }
    arriving = numbers(rows, width)
    bends = {
        "relu": functional.relu,
        "gelu": functional.gelu,
        "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
        "silu": functional.silu,
    }
    if kind == "swiglu":
        inputs["W_gate"] = numbers(width, hidden).requires_grad_()
        gate = inputs["X"] @ inputs["W_gate"]
        seen = {"gate": gate, "swish": functional.silu(gate), "hidden": inputs["X"] @ inputs["W_1"]}
        seen["activated"] = seen["swish"] * seen["hidden"]
    else:
        seen = {"hidden": inputs["X"] @ inputs["W_1"]}
        seen["activated"] = bends[kind](seen["hidden"])
    seen["Y"] = seen["activated"] @ inputs["W_2"]
    for value in seen.values():
        value.retain_grad()
    seen["Y"].backward(arriving)
    dump = {**seen, **{f"G_{id}": value.grad for id, value in {**seen, **inputs}.items() if id != "Y"}}
    return entry("feed_forward", {"activation": kind}, inputs, arriving, dump)


def positions(base: float) -> dict[str, Any]:
    rows, width = int(torch.randint(2, 24, ())), 2 * int(torch.randint(1, 5, ()))
    at = torch.arange(rows, dtype=torch.float32)[:, None]
    # As in PyTorch's own tutorial: the frequencies by exp and log.
    step = torch.exp(torch.arange(0, width, 2, dtype=torch.float32) * (-torch.log(torch.tensor(base)) / width))
    code = torch.zeros(rows, width)
    code[:, 0::2], code[:, 1::2] = torch.sin(at * step), torch.cos(at * step)
    settings = {"n": rows, "d_model": width, "base": base}
    return {
        "model": "positions",
        "settings": settings,
        "inputs": {},
        "dump": {"angle": listed(at * step), "PE": listed(code)},
    }


def rotary(pairing: str, base: float) -> dict[str, Any]:
    rows, width = int(torch.randint(2, 24, ())), 2 * int(torch.randint(1, 5, ()))
    x, arriving = numbers(rows, width).requires_grad_(), numbers(rows, width)
    angle = torch.outer(
        torch.arange(rows, dtype=torch.float32), 1.0 / base ** (torch.arange(0, width, 2).float() / width)
    )
    cos, sin = angle.cos(), angle.sin()
    if pairing == "half":  # as in Llama's code in transformers
        whole = torch.cat([-x[:, width // 2 :], x[:, : width // 2]], -1)
        y = x * torch.cat([cos, cos], -1) + whole * torch.cat([sin, sin], -1)
    else:  # as in Llama's own code: complex numbers
        turned = torch.view_as_complex(x.reshape(rows, -1, 2)) * torch.polar(torch.ones_like(angle), angle)
        y = torch.view_as_real(turned).reshape(rows, width)
    y.backward(arriving)
    dump = {"angle": angle, "cos": cos, "sin": sin, "rotated": y, "G_X": x.grad}
    return entry("rotary", {"pairing": pairing, "base": base}, {"X": x}, arriving, dump)


def entry(
    model: str,
    settings: dict[str, Any],
    inputs: dict[str, torch.Tensor],
    arriving: torch.Tensor,
    dump: dict[str, torch.Tensor],
) -> dict[str, Any]:
    upstream = texts(upstream=arriving)["upstream"]
    shown = {id: listed(value) for id, value in dump.items()}
    return {"model": model, "settings": settings, "inputs": texts(**inputs), "upstream": upstream, "dump": shown}


def main() -> None:
    torch.manual_seed(6)
    made = []
    for i in range(PER_KIND):
        made += [norm(name, EPS[i % 3]) for name in ("layer_norm", "rms_norm")]
        made += [feed_forward(kind) for kind in ("relu", "gelu", "gelu_tanh", "silu", "swiglu")]
        base = (10000.0, 500000.0, 100.0)[i % 3]
        made += [positions(base), rotary("half", base), rotary("adjacent", base)]
    out = Path(__file__).with_name("torch_dumps.json")
    out.write_text("[\n" + ",\n".join(json.dumps(one) for one in made) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
