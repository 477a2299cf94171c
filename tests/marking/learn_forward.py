"""A learner with a calculator at the feed-forward sublayer: bare NumPy, right and with the mistakes of the catalogue."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from learn_layers import Lines, is_uneven, made, paths
from learner import Case, Exercise, Use
from wrongs import Kind

_erf = np.vectorize(math.erf, otypes=[float])


def _bent(x: Any, kind: str) -> Any:
    if kind == "relu":
        return np.maximum(x, 0.0)
    if kind == "gelu":
        return x * (1 + _erf(x / math.sqrt(2))) / 2
    if kind == "gelu_tanh":
        return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2
    return x / (1 + np.exp(-x))


def _slope(x: Any, kind: str) -> Any:
    if kind == "relu":
        return (x > 0).astype(float)
    if kind == "gelu":
        return (1 + _erf(x / math.sqrt(2))) / 2 + x * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    if kind == "gelu_tanh":
        c = math.sqrt(2 / math.pi)
        th = np.tanh(c * (x + 0.044715 * x**3))
        return (1 + th) / 2 + x * (1 - th**2) * c * (1 + 3 * 0.044715 * x**2) / 2
    s = 1 / (1 + np.exp(-x))
    return s + x * s * (1 - s)


def _draw(rng: random.Random) -> Case:
    while True:
        kind = rng.choice(("relu", "gelu", "gelu_tanh", "silu", "swiglu"))
        n, d, hidden = rng.randint(2, 4), rng.randint(2, 3), rng.randint(2, 4)
        out = rng.choice((d, d, rng.randint(2, 3)))
        shapes: dict[str, tuple[int, ...]] = {"X": (n, d), "W_1": (d, hidden), "W_2": (hidden, out)}
        if kind == "swiglu":
            shapes["W_gate"] = (d, hidden)
        else:
            shapes.update({name: shapes[f"W{name[1:]}"][1:] for name in ("b_1", "b_2") if rng.random() < 0.6})
        case = made("feed_forward", rng, shapes, (n, out), 1.4)
        case.settings["activation"] = kind
        case.exercise = FEED_FORWARD
        case.vectors = ("G_b_1", "G_b_2")
        if is_uneven(case.upstream):
            return case


def _linear(case: Case, g: Use, x: Any, weight: Any, bias: str) -> Any:
    return x @ weight + g(bias) if bias in case.inputs else x @ weight


def _lines(case: Case) -> Lines:
    kind = case.settings["activation"]
    gated = kind == "swiglu"
    if gated:
        yield "gate", lambda g: g("X") @ g("W_gate")
        yield "swish", lambda g: _bent(g("gate"), "silu")
    yield "hidden", lambda g: _linear(case, g, g("X"), g("W_1"), "b_1")
    yield "activated", lambda g: g("swish") * g("hidden") if gated else _bent(g("hidden"), kind)
    yield "Y", lambda g: _linear(case, g, g("activated"), g("W_2"), "b_2")
    if "b_2" in case.inputs:
        yield "G_b_2", lambda g: g("G_Y").sum(0, keepdims=True)
    yield "G_W_2", lambda g: g("activated").T @ g("G_Y")
    yield "G_activated", lambda g: g("G_Y") @ g("W_2").T
    if gated:
        yield "G_hidden", lambda g: g("G_activated") * g("swish")
        yield "G_swish", lambda g: g("G_activated") * g("hidden")
        yield "slope", lambda g: _slope(g("gate"), "silu")
        yield "G_gate", lambda g: g("G_swish") * g("slope")
        yield "G_W_gate", lambda g: g("X").T @ g("G_gate")
        yield "G_W_1", lambda g: g("X").T @ g("G_hidden")
        yield "G_X_gate", lambda g: g("G_gate") @ g("W_gate").T
        yield "G_X_hidden", lambda g: g("G_hidden") @ g("W_1").T
        yield "G_X", lambda g: g("G_X_gate") + g("G_X_hidden")
        return
    yield "slope", lambda g: _slope(g("hidden"), kind)
    yield "G_hidden", lambda g: g("G_activated") * g("slope")
    if "b_1" in case.inputs:
        yield "G_b_1", lambda g: g("G_hidden").sum(0, keepdims=True)
    yield "G_W_1", lambda g: g("X").T @ g("G_hidden")
    yield "G_X", lambda g: g("G_hidden") @ g("W_1").T


def _kinds(case: Case) -> Iterator[Kind]:
    gated = case.settings["activation"] == "swiglu"
    layers = [("hidden", "X", "W_1", "b_1"), ("Y", "activated", "W_2", "b_2")]
    if gated:
        layers.append(("gate", "X", "W_gate", ""))
        yield from paths("G_X", ["G_X_gate", "G_X_hidden"])
    for place, x, weight, bias in layers:
        yield Kind(place, "weight-transposed", lambda g, x=x, w=weight, b=bias: _linear(case, g, g(x), g(w).T, b))
        yield Kind(place, "operands-swapped", lambda g, x=x, w=weight, b=bias: _linear(case, g, g(w), g(x), b))
        for other in ("W_1", "W_2", "W_gate"):
            if other != weight and other in case.inputs and case.inputs[other].shape == case.inputs[weight].shape:
                yield Kind(
                    place,
                    "wrong-weight",
                    lambda g, x=x, w=other, b=bias: _linear(case, g, g(x), g(w), b),
                    other,
                )
        yield Kind(f"G_{weight}", "gradient-not-transposed", lambda g, x=x, p=place: g(x) @ g(f"G_{p}"))
        yield Kind(f"G_{weight}", "value-for-gradient", lambda g, x=x, p=place: g(x).T @ g(p))
        back = f"G_{x}" if not (gated and x == "X") else f"G_X_{place}"
        yield Kind(back, "gradient-not-transposed", lambda g, w=weight, p=place: g(f"G_{p}") @ g(w))
        yield Kind(back, "value-for-gradient", lambda g, w=weight, p=place: g(p) @ g(w).T)
        yield Kind(f"G_{weight}", "operands-swapped", lambda g, x=x, p=place: g(f"G_{p}").T @ g(x))
        yield Kind(back, "operands-swapped", lambda g, w=weight, p=place: g(w) @ g(f"G_{p}").T)
        if bias in case.inputs:
            yield Kind(f"G_{bias}", "mean-for-sum", lambda g, p=place: g(f"G_{p}").mean(0, keepdims=True))
            yield Kind(f"G_{bias}", "value-for-gradient", lambda g, p=place: g(p).sum(0, keepdims=True))
    if gated:
        yield Kind("G_hidden", "value-for-gradient", lambda g: g("activated") * g("swish"))
        yield Kind("G_gate", "value-for-gradient", lambda g: g("swish") * g("slope"))
    else:
        yield Kind("G_hidden", "value-for-gradient", lambda g: g("activated") * g("slope"))


FEED_FORWARD = Exercise(_draw, _lines, _kinds, "Y")
