"""A GPT as one writes it in NumPy, forward and backward, without attncli: what the benchmarks hold ours against.

Every intermediate is kept, in `kept`, as a recorded run keeps it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]
_ROOT = np.sqrt(2 / np.pi)


class Kept(list[Any]):
    """Everything that was calculated."""

    def __call__(self, value: Any) -> Any:
        self.append(value)
        return value


def positions(count: int, width: int) -> Any:
    """Sinusoidal positions, sine and cosine in turn."""
    column = np.arange(width)
    angle = np.arange(count)[:, None] / 10000 ** (2 * (column // 2) / width)
    return np.where(column % 2 == 0, np.sin(angle), np.cos(angle))


def hidden(count: int) -> Any:
    """The causal mask."""
    return np.triu(np.full((count, count), -np.inf), 1)


def softmax(k: Kept, s: Any) -> Any:
    shifted = k(s - k(s.max(-1, keepdims=True)))
    u = k(np.exp(shifted))
    return k(u / k(u.sum(-1, keepdims=True)))


def softmax_back(k: Kept, a: Any, g_a: Any) -> Any:
    weighted = k(g_a * a)
    deviation = k(g_a - k(weighted.sum(-1, keepdims=True)))
    return k(a * deviation)


def norm(k: Kept, x: Any, gamma: Any, beta: Any) -> tuple[Any, Any]:
    centred = k(x - k(x.mean(-1, keepdims=True)))
    std = k(np.sqrt(k((centred * centred).mean(-1, keepdims=True)) + 1e-5))
    normalised = k(centred / std)
    return k(normalised * gamma + beta), (centred, std, normalised)


def norm_back(k: Kept, g: Any, gamma: Any, kept: Any) -> tuple[Any, Any, Any]:
    """The gradients of the input, γ and β, through mean and variance one after the other."""
    centred, std, normalised = kept
    g_gamma, g_beta = k(k(g * normalised).sum(0, keepdims=True)), k(g.sum(0, keepdims=True))
    g_n = k(g * gamma)
    g_std = k(-k(k(k(g_n * normalised).sum(-1, keepdims=True)) / std))
    g_variance = k(k(g_std * 0.5) / std)
    g_centred = k(k(g_n / std) + k(centred * (g_variance * (2 / centred.shape[-1]))))
    g_mean = k(-k(g_centred.sum(-1, keepdims=True)))
    return k(g_centred + k(np.broadcast_to(g_mean / centred.shape[-1], g.shape))), g_gamma, g_beta


def heads_of(x: Any, count: int) -> Any:
    return x.reshape(len(x), count, -1).swapaxes(0, 1)


def joined(x: Any) -> Any:
    return x.swapaxes(0, 1).reshape(x.shape[1], -1)


def gelu(k: Kept, x: Any) -> Any:
    """x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))."""
    return k(0.5 * x * (1 + np.tanh(_ROOT * (x + 0.044715 * x * x * x))))


def gelu_slope(k: Kept, x: Any) -> Any:
    t = np.tanh(_ROOT * (x + 0.044715 * x * x * x))
    return k(0.5 * (1 + t) + 0.5 * x * (1 - t * t) * _ROOT * (1 + 3 * 0.044715 * x * x))


def run(p: Arrays, ids: Any, targets: Any, layers: int, heads: int) -> tuple[Any, Arrays, Kept]:
    """The loss, every gradient, and all that was calculated; blocks in pre-norm."""
    k, g, saved = Kept(), {}, []
    n, classes = len(ids), p["W_out"].shape[1]
    mask, root = hidden(n), np.sqrt(p["layer1.self.W_Q"].shape[1] // heads)
    x = k(k(p["E"][ids]) + k(positions(n, p["E"].shape[1])))
    for layer in range(1, layers + 1):
        w = {name: p[f"layer{layer}.{name}"] for name in _LAYER}
        y, kept1 = norm(k, x, w["norm1.gamma"], w["norm1.beta"])
        q, key, v = (k(heads_of(k(y @ w[f"self.W_{name}"]), heads)) for name in "QKV")
        a = softmax(k, k(k(k(q @ key.swapaxes(-1, -2)) / root) + mask))
        concat = k(joined(k(a @ v)))
        x = k(x + k(concat @ w["self.W_O"]))
        y2, kept2 = norm(k, x, w["norm2.gamma"], w["norm2.beta"])
        wide = k(y2 @ w["ffn.W_1"])
        bent = gelu(k, wide)
        x = k(x + k(bent @ w["ffn.W_2"]))
        saved.append((w, y, kept1, q, key, v, a, concat, y2, kept2, wide, bent))
    y, kept = norm(k, x, p["final.gamma"], p["final.beta"])
    probabilities = softmax(k, k(y @ p["W_out"]))
    one_hot = np.eye(classes)[targets]
    loss = k(k(-np.log(k((probabilities * one_hot).sum(-1)))).mean())

    g_z = k(k(probabilities - one_hot) / n)
    g["W_out"] = k(y.T @ g_z)
    g_x, g["final.gamma"], g["final.beta"] = norm_back(k, k(g_z @ p["W_out"].T), p["final.gamma"], kept)
    for layer in range(layers, 0, -1):
        w, y, kept1, q, key, v, a, concat, y2, kept2, wide, bent = saved.pop()
        name = f"layer{layer}."
        g[f"{name}ffn.W_2"] = k(bent.T @ g_x)
        g_wide = k(k(g_x @ w["ffn.W_2"].T) * gelu_slope(k, wide))
        g[f"{name}ffn.W_1"] = k(y2.T @ g_wide)
        back, g[f"{name}norm2.gamma"], g[f"{name}norm2.beta"] = norm_back(
            k, k(g_wide @ w["ffn.W_1"].T), w["norm2.gamma"], kept2
        )
        g_x = k(g_x + back)
        g[f"{name}self.W_O"] = k(concat.T @ g_x)
        g_o = k(heads_of(k(g_x @ w["self.W_O"].T), heads))
        g_s = k(softmax_back(k, a, k(g_o @ v.swapaxes(-1, -2))) / root)
        g_q, g_k = k(joined(k(g_s @ key))), k(joined(k(g_s.swapaxes(-1, -2) @ q)))
        g_v = k(joined(k(a.swapaxes(-1, -2) @ g_o)))
        parts = []
        for letter, part in (("Q", g_q), ("K", g_k), ("V", g_v)):
            g[f"{name}self.W_{letter}"] = k(y.T @ part)
            parts.append(k(part @ w[f"self.W_{letter}"].T))
        back, g[f"{name}norm1.gamma"], g[f"{name}norm1.beta"] = norm_back(
            k, k(parts[0] + parts[1] + parts[2]), w["norm1.gamma"], kept1
        )
        g_x = k(g_x + back)
    g["E"] = k(np.zeros_like(p["E"]))
    np.add.at(g["E"], ids, g_x)
    return loss, g, k


_LAYER = (
    *("norm1.gamma", "norm1.beta", "self.W_Q", "self.W_K", "self.W_V", "self.W_O"),
    *("norm2.gamma", "norm2.beta", "ffn.W_1", "ffn.W_2"),
)


def bare_attention(p: Arrays, ids: Any, one_hot: Any, places: Any, mask: Any) -> tuple[Any, Arrays]:
    """The loss and the gradients of causal attention and nothing else: E, W_Q, W_K, W_V, W_out."""
    n = len(ids)
    x = p["E"][ids] + places
    q, k, v = x @ p["W_Q"], x @ p["W_K"], x @ p["W_V"]
    root = np.sqrt(q.shape[1])
    s = q @ k.T / root + mask
    u = np.exp(s - s.max(-1, keepdims=True))
    a = u / u.sum(-1, keepdims=True)
    o = a @ v
    z = o @ p["W_out"]
    e = np.exp(z - z.max(-1, keepdims=True))
    probabilities = e / e.sum(-1, keepdims=True)
    loss = -np.log((probabilities * one_hot).sum(-1)).mean()
    g_z = (probabilities - one_hot) / n
    g = {"W_out": o.T @ g_z}
    g_o = g_z @ p["W_out"].T
    g_a = g_o @ v.T
    g_s = a * (g_a - (g_a * a).sum(-1, keepdims=True)) / root
    g_q, g_k, g_v = g_s @ k, g_s.T @ q, a.T @ g_o
    g |= {"W_Q": x.T @ g_q, "W_K": x.T @ g_k, "W_V": x.T @ g_v}
    g_x = g_q @ p["W_Q"].T + g_k @ p["W_K"].T + g_v @ p["W_V"].T
    g["E"] = np.zeros_like(p["E"])
    np.add.at(g["E"], ids, g_x)
    return loss, g


class Descent:
    """Training of the bare attention by hand: one update at every call, which gives the loss before it."""

    def __init__(self, p: Arrays, ids: Any, targets: Any, optimizer: str, eta: float) -> None:
        self.p = {name: values.copy() for name, values in p.items()}
        self.m = {name: np.zeros_like(values) for name, values in p.items()}
        self.v = {name: np.zeros_like(values) for name, values in p.items()}
        self.given = ids, np.eye(len(p["E"]))[targets], positions(len(ids), p["E"].shape[1]), hidden(len(ids))
        self.optimizer, self.eta, self.t = optimizer, eta, 0

    def __call__(self) -> float:
        loss, g = bare_attention(self.p, *self.given)
        self.t += 1
        for name, slope in g.items():
            if self.optimizer == "sgd":
                self.p[name] = self.p[name] - self.eta * slope
                continue
            self.m[name] = 0.9 * self.m[name] + (1 - 0.9) * slope
            self.v[name] = 0.999 * self.v[name] + (1 - 0.999) * slope * slope
            mean, square = self.m[name] / (1 - 0.9**self.t), self.v[name] / (1 - 0.999**self.t)
            self.p[name] = self.p[name] - self.eta * mean / (np.sqrt(square) + 1e-8)
        return float(loss)
