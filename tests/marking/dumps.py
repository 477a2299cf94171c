"""A program's intermediates: layers in bare NumPy at float32 or float64, each sum and product in an order of its own.

Nothing of attncli is used here. What a library may do in another way (its order of adding, a reciprocal for a division,
its own sine) is drawn anew for every dump.
"""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
from learner import Case

_erf = np.vectorize(math.erf, otypes=[float])
Dump = dict[str, Any]


class Program:
    """One run of one exercise in floats of one kind."""

    def __init__(self, case: Case, kind: Any, rng: random.Random) -> None:
        self.case, self.kind, self.rng = case, kind, rng
        self.given = {name: np.asarray(value, dtype=kind) for name, value in case.known.items()}

    def run(self) -> Dump:
        dump: Dump = getattr(self, self.case.model)()
        assert all(value.dtype == self.kind for value in dump.values()), self.case.model
        return dump

    def one_of(self, *ways: Any) -> Any:
        return self.rng.choice(ways)()

    def constant(self, value: float) -> Any:
        return self.kind(value)

    def total(self, a: Any, axis: int) -> Any:
        """A sum, its terms in some order."""
        order = list(range(a.shape[axis]))
        self.rng.shuffle(order)

        def one_by_one() -> Any:
            out = np.zeros_like(np.take(a, [0], axis))
            for i in order:
                out = out + np.take(a, [i], axis)
            return out

        return self.one_of(lambda: a.sum(axis, keepdims=True), one_by_one)

    def mean(self, a: Any, axis: int = -1) -> Any:
        count = a.shape[axis]
        total = self.total(a, axis)
        return self.one_of(lambda: total / self.constant(count), lambda: total * self.constant(1 / count))

    def product(self, a: Any, b: Any) -> Any:
        def outer() -> Any:
            order = list(range(a.shape[-1]))
            self.rng.shuffle(order)
            out = a[..., order[0], None] * b[..., order[0], None, :]
            for k in order[1:]:
                out = out + a[..., k, None] * b[..., k, None, :]
            return out

        return self.one_of(lambda: a @ b, outer, lambda: np.einsum("...ik,...kj->...ij", a, b))

    def over(self, a: Any, b: Any) -> Any:
        """A quotient, or a product with the reciprocal."""
        return self.one_of(lambda: a / b, lambda: a * (self.constant(1) / b))

    def bumped(self, a: Any) -> Any:
        """A library's own function: up to two units in the last place beside NumPy's."""
        bump = np.array([self.rng.uniform(-2, 2) for _ in range(a.size)]).reshape(a.shape)
        return (a * (1 + bump * np.finfo(self.kind).eps)).astype(self.kind)

    # Layers ---------------------------------------------------------------------------------------------------

    def layer_norm(self) -> Dump:
        x, eps = self.given["X"], self.constant(self.case.settings["eps"])
        out: Dump = {"mean": self.mean(x)}
        out["centred"] = x - out["mean"]
        square = out["centred"] ** 2
        out["variance"] = self.one_of(lambda: self.mean(square), lambda: x.var(-1, keepdims=True))
        out["std"] = self.bumped(np.sqrt(out["variance"] + eps))
        return self._normalised(out, "centred", "variance", "std")

    def rms_norm(self) -> Dump:
        x, eps = self.given["X"], self.constant(self.case.settings["eps"])
        out: Dump = {"mean_square": self.mean(x * x)}
        out["rms"] = self.bumped(np.sqrt(out["mean_square"] + eps))
        return self._normalised(out, "X", "mean_square", "rms")

    def _normalised(self, out: Dump, source: str, square: str, root: str) -> Dump:
        given, width = self.given, self.given["X"].shape[-1]
        divided = out.get(source, given["X"])
        out["normalised"] = n = self.over(divided, out[root])
        y = n * given["gamma"] if "gamma" in given else n
        out["Y"] = y + given["beta"] if "beta" in given else y
        arriving = given["G_Y"]
        if "beta" in given:
            out["G_beta"] = self.total(arriving, 0)
        if "gamma" in given:
            out["G_gamma_product"] = arriving * n
            out["G_gamma"] = self.total(out["G_gamma_product"], 0)
        out["G_normalised"] = g = arriving * given["gamma"] if "gamma" in given else arriving
        if self.rng.random() < 0.4:
            # All in one, as libraries do it: nothing in between is there to be seen.
            inner = g - n * self.mean(g * n)
            if source == "centred":
                inner = inner - self.mean(g)
            out["G_X"] = self.over(inner, out[root])
            return out
        out[f"G_{root}_product"] = g * n
        out[f"G_{root}_total"] = self.total(out[f"G_{root}_product"], -1)
        out[f"G_{root}_share"] = self.over(out[f"G_{root}_total"], out[root])
        out[f"G_{root}"] = -out[f"G_{root}_share"]
        out[f"G_{source}_normalised"] = self.over(g, out[root])
        out[f"G_{square}_half"] = out[f"G_{root}"] * self.constant(0.5)
        out[f"G_{square}"] = s = self.over(out[f"G_{square}_half"], out[root])
        two = self.constant(2)
        out[f"G_{source}_{square}"] = self.one_of(
            lambda: two * divided * s / self.constant(width), lambda: self.constant(2 / width) * s * divided
        )
        out[f"G_{source}"] = out[f"G_{source}_normalised"] + out[f"G_{source}_{square}"]
        if source == "centred":
            out["G_mean_total"] = self.total(out["G_centred"], -1)
            out["G_mean"] = -out["G_mean_total"]
            out["G_X_centred"] = out["G_centred"]
            out["G_X_mean"] = np.repeat(out["G_mean"] / self.constant(width), width, -1)
            out["G_X"] = out["G_X_centred"] + out["G_X_mean"]
        return out

    def _angle(self, rows: int, width: int) -> Any:
        base, start = self.case.settings.get("base", 10000.0), self.case.settings.get("start", 0.0)
        at = (np.arange(rows)[:, None] + start).astype(self.kind)
        exponents = np.arange(0, width, 2).astype(self.kind)
        b, w = self.constant(base), self.constant(width)
        return self.one_of(
            lambda: at / b ** (exponents / w),
            lambda: at * np.exp(exponents * self.constant(-math.log(base) / width)),
            lambda: at * (self.constant(1) / b ** (exponents / w)),
            lambda: at * np.exp(-np.log(b) * exponents / w),
        )

    def positions(self) -> Dump:
        rows, width = self.case.settings["n"], self.case.settings["d_model"]
        angle = self._angle(rows, width)
        out = np.empty((rows, width), dtype=self.kind)
        out[:, 0::2], out[:, 1::2] = self.bumped(np.sin(angle)), self.bumped(np.cos(angle))[:, : width // 2]
        return {"angle": angle, "PE": out}

    def rotary(self) -> Dump:
        given = self.given
        *_, rows, width = given["X"].shape
        angle = self._angle(rows, width)
        out: Dump = {"angle": angle, "cos": self.bumped(np.cos(angle)), "sin": self.bumped(np.sin(angle))}

        def turned(x: Any, sin: Any) -> Any:
            pairs, moved = width // 2, np.empty_like(x)
            adjacent = self.case.settings["pairing"] == "adjacent"
            first, second = (
                (slice(0, None, 2), slice(1, None, 2)) if adjacent else (slice(0, pairs), slice(pairs, None))
            )
            a, b = x[..., first], x[..., second]
            moved[..., first], moved[..., second] = a * out["cos"] - b * sin, b * out["cos"] + a * sin
            return moved

        out["rotated"] = turned(given["X"], out["sin"])
        arriving = given.get("G_rotated")
        if "K" in given:
            out["K_rotated"] = turned(given["K"], out["sin"])
            out["scores"] = self.product(out["rotated"], np.swapaxes(out["K_rotated"], -1, -2))
            arriving = out["G_rotated"] = self.product(given["G_scores"], out["K_rotated"])
            out["G_K_rotated"] = self.product(np.swapaxes(given["G_scores"], -1, -2), out["rotated"])
            out["G_K"] = turned(out["G_K_rotated"], -out["sin"])
        out["G_X"] = turned(arriving, -out["sin"])
        return out

    def feed_forward(self) -> Dump:
        given, kind = self.given, self.case.settings["activation"]
        out: Dump = {}

        def linear(x: Any, weight: str, bias: str) -> Any:
            return self.product(x, given[weight]) + given[bias] if bias in given else self.product(x, given[weight])

        source = "hidden"
        if kind == "swiglu":
            source = "gate"
            out["gate"] = linear(given["X"], "W_gate", "")
        out["hidden"] = linear(given["X"], "W_1", "b_1")
        bent, slope = self._bent(out[source], "silu" if kind == "swiglu" else kind)
        if kind == "swiglu":
            out["swish"] = bent
        out["activated"] = bent * out["hidden"] if kind == "swiglu" else bent
        out["Y"] = linear(out["activated"], "W_2", "b_2")
        if "b_2" in given:
            out["G_b_2"] = self.total(given["G_Y"], 0)
        out["G_W_2"] = self.product(out["activated"].T, given["G_Y"])
        back = out["G_activated"] = self.product(given["G_Y"], given["W_2"].T)
        out["slope"] = slope
        if kind == "swiglu":
            out["G_hidden"], out["G_swish"] = back * out["swish"], back * out["hidden"]
            out["G_gate"] = out["G_swish"] * slope
            out["G_W_gate"] = self.product(given["X"].T, out["G_gate"])
            out["G_X_gate"] = self.product(out["G_gate"], given["W_gate"].T)
            out["G_X_hidden"] = self.product(out["G_hidden"], given["W_1"].T)
            out["G_X"] = out["G_X_gate"] + out["G_X_hidden"]
        else:
            out["G_hidden"] = back * slope
            out["G_X"] = self.product(out["G_hidden"], given["W_1"].T)
        if "b_1" in given:
            out["G_b_1"] = self.total(out["G_hidden"], 0)
        out["G_W_1"] = self.product(given["X"].T, out["G_hidden"])
        return out

    def _bent(self, x: Any, kind: str) -> tuple[Any, Any]:
        c, one, half = self.constant, self.constant(1), self.constant(0.5)
        if kind == "relu":
            return np.maximum(x, c(0)), (x > 0).astype(self.kind)
        if kind == "gelu":
            phi = half * (one + self.bumped(_erf(x * c(1 / math.sqrt(2))).astype(self.kind)))
            density = self.bumped(np.exp(-half * x * x)) * c(1 / math.sqrt(2 * math.pi))
            return x * phi, phi + x * density
        if kind == "gelu_tanh":
            b, k = c(math.sqrt(2 / math.pi)), c(0.044715)
            inside = self.one_of(lambda: b * (x + k * x * x * x), lambda: b * x * (one + k * x * x))
            th = self.bumped(np.tanh(inside))
            right = half * x * (one - th * th) * b * (one + c(3) * k * x * x)
            return half * x * (one + th), half * (one + th) + right
        s = self.one_of(lambda: one / (one + self.bumped(np.exp(-x))), lambda: half * (one + np.tanh(half * x)))
        return x * s, s * (one + x * (one - s))
