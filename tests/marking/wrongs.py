"""The mistakes of the catalogue, made by hand in bare NumPy. Nothing of attncli is used here."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from learner import Case, Line, Use, lines, t


@dataclass(frozen=True)
class Kind:
    """A mistake at a line: its name in the catalogue, and what is worked out instead."""

    place: str
    id: str
    line: Line
    variant: str = ""
    page: bool = False  #: a slip of the page: visible only where the line itself is written
    also: dict[str, Line] = field(default_factory=dict)  #: the same mistake at other lines, by the same habit

    @property
    def lines(self) -> dict[str, Line]:
        """Everything that is worked out in another way."""
        return {self.place: self.line, **self.also}

    @property
    def name(self) -> str:
        return f"{self.id} at {self.place}" + (f" ({self.variant})" if self.variant else "")


def kinds(case: Case, seed: int = 0) -> list[Kind]:
    """All mistakes that can be made in this exercise."""
    if case.exercise is not None:
        return [*case.exercise.kinds(case), *_slips(case, seed)]
    found = []
    if case.model in ("self_attention", "embedded_attention"):
        found += list(_projections(case))
    if case.model in ("self_attention", "embedded_attention", "attention"):
        found += list(scores_wrong(case))
        found += list(_attention_back(case))
    if case.model not in ("product", "embedding"):
        found += list(softmax_wrong(case))
    if case.model not in ("softmax", "embedding"):
        found += list(output_wrong(case))
    if case.model in ("embedded_attention", "embedding"):
        found += list(_table(case))
    return found + list(_slips(case, seed))


def alike(id: str, lines: Iterable[tuple[str, Line]], variant: str = "") -> Iterator[Kind]:
    """One mistake that is made at several lines at once, told at each of them."""
    every = dict(lines)
    for place, line in every.items():
        yield Kind(place, id, line, variant, also={at: one for at, one in every.items() if at != place})


def _projections(case: Case) -> Iterator[Kind]:
    for name in "QKV":
        yield Kind(name, "weight-transposed", lambda g, n=name: g("X") @ g(f"W_{n}").T)
        yield Kind(name, "operands-swapped", lambda g, n=name: g(f"W_{n}") @ g("X"))
        for other in "QKV".replace(name, ""):
            if case.inputs[f"W_{other}"].shape == case.inputs[f"W_{name}"].shape:
                yield Kind(name, "wrong-weight", lambda g, o=other: g("X") @ g(f"W_{o}"), f"W_{other}")


def scores_wrong(case: Case) -> Iterator[Kind]:
    """Scores, scale and mask, and the scale on the way back."""
    q, k, _ = case.names
    yield Kind("scores", "key-not-transposed", lambda g: g(q) @ g(k))
    yield Kind("scores", "operands-swapped", lambda g: g(k) @ t(g(q)))
    yield from _scale(case)
    yield from _mask(case)


def _scale(case: Case) -> Iterator[Kind]:
    d = case.width or case.inputs["Q" if "Q" in case.inputs else "W_Q"].shape[1]
    yield Kind("scaled", "no-scale", lambda g: g("scores"))
    yield Kind("scaled", "scale-by-d", lambda g: g("scores") / d)
    yield Kind(
        "scaled", "scale-by-d", lambda g: g.aside("once", g("scores") / g("root")) / g("root"), "twice by the root"
    )
    yield Kind("scaled", "scale-inverted", lambda g: g("scores") * g("root"))
    for width in sorted(set(case.inputs["W_Q"].shape) - {d}) if "W_Q" in case.inputs else ():
        yield Kind("scaled", "scale-by-model-width", lambda g, w=width: g("scores") / np.sqrt(w), f"{width}")
    yield Kind("G_scores", "gradient-scale-lost", lambda g: g("G_scaled"))
    # Made alike forward and back, it is one mistake.
    unscaled: Line = lambda g: g("G_scaled")  # noqa: E731
    yield Kind("scaled", "no-scale", lambda g: g("scores"), "back too", also={"G_scores": unscaled})
    whole: Line = lambda g: g("G_scaled") / d  # noqa: E731
    yield Kind("scaled", "scale-by-d", lambda g: g("scores") / d, "back too", also={"G_scores": whole})
    times: Line = lambda g: g("G_scaled") * g("root")  # noqa: E731
    yield Kind("scaled", "scale-inverted", lambda g: g("scores") * g("root"), "back too", also={"G_scores": times})
    for width in sorted(set(case.inputs["W_Q"].shape[:1]) - {d, d * d}) if "W_Q" in case.inputs else ():
        by: Line = lambda g, w=width: g("G_scaled") / np.sqrt(w)  # noqa: E731
        yield Kind(
            "scaled",
            "scale-by-model-width",
            lambda g, w=width: g("scores") / np.sqrt(w),
            f"{width}, back too",
            also={"G_scores": by},
        )
    yield Kind("G_scores", "value-for-gradient", lambda g: g("scaled") / g("root"))


def _mask(case: Case) -> Iterator[Kind]:
    hidden = case.hidden
    if hidden is None:
        return
    n, m = hidden.shape
    bias = 0 if case.bias is None else np.where(hidden, 0.0, case.bias)

    def put(where: Any, number: float, bias: Any = bias) -> Line:
        return lambda g: np.where(where, number, g("scaled") + bias)

    yield Kind("masked", "no-mask", lambda g: g("scaled"))
    if case.bias is not None:
        yield Kind("masked", "bias-sign", put(hidden, -np.inf, -bias))
        if hidden.any():
            yield Kind("masked", "bias-left-out", put(hidden, -np.inf, 0))
        if bias.ndim == 3 and len(bias) > 1:
            yield Kind("masked", "bias-of-another-head", put(hidden, -np.inf, bias[::-1]))
    if not hidden.any():
        return
    filled: Line = lambda g: np.where(hidden, 0.0, g("G_masked"))  # noqa: E731
    for id, number in (("mask-as-zero", 0.0), ("mask-tiny", 1e-9)):
        yield Kind("masked", id, put(hidden, number))
        # Filled in where it hides: then nothing comes back to a hidden score, whatever its weight was.
        yield Kind("masked", id, put(hidden, number), "filled on the way back", also={"G_scaled": filled})
    yield Kind("masked", "mask-plus-infinity", put(hidden, np.inf))
    yield Kind("masked", "mask-added-as-01", lambda g: g("scaled") + bias + hidden, "1 = hidden")
    yield Kind("masked", "mask-added-as-01", lambda g: g("scaled") + bias + ~hidden, "1 = visible")
    yield Kind("masked", "mask-inverted", put(~hidden, -np.inf))
    if case.mask == "causal":
        yield Kind("masked", "mask-diagonal", put(np.arange(m)[None, :] >= np.arange(n)[:, None], -np.inf))
        yield Kind("masked", "mask-other-triangle", put(np.arange(m)[None, :] < np.arange(n)[:, None], -np.inf))
        if n != m:
            corner = np.arange(m)[None, :] > np.arange(n)[:, None] + (m - n)
            yield Kind("masked", "mask-other-corner", put(corner, -np.inf))
    elif n == m:
        yield Kind("masked", "mask-query-rows", put(hidden.T, -np.inf))


def _share(g: Use, x: Any, axis: Any, label: str = "") -> Any:
    """Softmax along other axes, each of its lines a line that may be rounded."""
    less = g.aside(f"{label}shifted", x - g.aside(f"{label}max", np.max(x, axis=axis, keepdims=True)))
    hidden = np.isneginf(x)
    e = np.where(hidden, 0.0, g.aside(f"{label}exp", np.exp(less)))
    return _shares(e, g.aside(f"{label}sum", e.sum(axis=axis, keepdims=True)), hidden.all(axis, keepdims=True))


def _over(g: Use, axis: Any) -> Any:
    """The exponentials of the sheet, over sums of other axes."""
    hidden = np.isneginf(g("shifted")).all(axis, keepdims=True)
    return _shares(g("exp"), g.aside("sum", g("exp").sum(axis, keepdims=True)), hidden)


def _shares(e: Any, total: Any, hidden: Any) -> Any:
    """Shares of a total; where all is hidden, nothing."""
    return np.where(hidden, 0.0, e / np.where(hidden, 1.0, total))


def softmax_wrong(case: Case) -> Iterator[Kind]:
    s = case.source
    yield Kind(
        "row_sum",
        "sum-of-logits",
        lambda g: np.where(np.isfinite(g("shifted")), g("shifted"), 0).sum(-1, keepdims=True),
    )
    yield Kind("A", "softmax-over-columns", lambda g: _share(g, g(s), -2))
    yield Kind("A", "softmax-over-columns", lambda g: _over(g, -2), "from exp")
    yield Kind("A", "softmax-over-all", lambda g: _share(g, g(s), (-2, -1)))
    yield Kind("A", "softmax-over-all", lambda g: _over(g, (-2, -1)), "from exp")
    yield Kind("A", "column-sums-broadcast", lambda g: g("exp") / t(g("row_sum")))
    yield Kind("A", "no-normalisation", lambda g: g("exp"))
    yield Kind("A", "no-normalisation", lambda g: np.exp(g(s)), "without the maximum")
    yield Kind("A", "softmax-twice", lambda g: _share(g, g.aside("once", _share(g, g(s), -1)), -1, "second "))
    yield Kind("A", "softmax-twice", lambda g: _share(g, g.aside("once", g("exp") / g("row_sum")), -1), "from exp")
    yield Kind("exp", "exponent-negated", lambda g: np.where(np.isfinite(g("shifted")), np.exp(-g("shifted")), 0.0))

    def without_exponential(g: Use) -> Any:
        visible = np.where(np.isfinite(g(s)), g(s), 0)
        return visible / g.aside("sum", visible.sum(-1, keepdims=True))

    yield Kind("A", "no-exponential", without_exponential)
    if case.hidden is not None and case.hidden.any():
        yield Kind("A", "mask-after-softmax", lambda g: np.where(case.hidden, 0, _share(g, g("scaled"), -1)))
    yield from _softmax_back(case)


def output_wrong(case: Case) -> Iterator[Kind]:
    """The weighted values, and what comes back from there."""
    v = case.names[2]
    yield Kind("O", "weights-transposed", lambda g: t(g("A")) @ g(v))
    yield Kind("O", "value-transposed", lambda g: g("A") @ t(g(v)))
    yield Kind("O", "operands-swapped", lambda g: g(v) @ g("A"))
    if case.model != "product":
        for source in ("scores", "scaled"):
            yield Kind("O", "scores-for-weights", lambda g, s=source: g(s) @ g(v), source)
    yield Kind("G_A", "gradient-not-transposed", lambda g: g("G_O") @ g(v))
    yield Kind("G_A", "value-for-gradient", lambda g: g("O") @ t(g(v)))
    yield Kind("G_A", "operands-swapped", lambda g: g(v) @ t(g("G_O")))
    yield Kind(f"G_{v}", "gradient-not-transposed", lambda g: g("A") @ g("G_O"))
    yield Kind(f"G_{v}", "value-for-gradient", lambda g: t(g("A")) @ g("O"))
    yield Kind(f"G_{v}", "operands-swapped", lambda g: t(g("G_O")) @ g("A"))


def _softmax_back(case: Case) -> Iterator[Kind]:
    place = f"G_{case.source}"
    yield Kind("weighted", "value-for-gradient", lambda g: g("A") * g("A"))
    yield Kind("row_dot", "row-dot-over-columns", lambda g: t(g("weighted").sum(-2, keepdims=True)))
    yield Kind("deviation", "row-dot-missing", lambda g: g("G_A"))
    yield Kind("deviation", "softmax-sign", lambda g: g("row_dot") - g("G_A"))
    yield Kind(place, "softmax-passed-through", lambda g: g("G_A"))
    slope = {  # A ⊙ (1 − A) first, or the product with G_A first
        "": lambda g: g.aside("slope", g("A") * g.aside("1-A", 1 - g("A"))) * g("G_A"),
        "from weighted": lambda g: g("weighted") * g.aside("1-A", 1 - g("A")),
    }
    for variant, line in slope.items():
        yield Kind(place, "softmax-diagonal-only", line, variant)
    yield Kind(place, "row-dot-missing", lambda g: g("A") * g("G_A"))
    yield Kind(place, "softmax-sign", lambda g: g("A") * g.aside("turned", g("row_dot") - g("G_A")))
    yield Kind(place, "upstream-twice", lambda g: g.aside("once", g("A") * g("deviation")) * g("G_A"), "G_A")
    yield Kind(place, "upstream-twice", lambda g: g.aside("once", g("A") * g("deviation")) * g("A"), "A")


def scores_back(case: Case) -> Iterator[Kind]:
    """From the scores' gradient to those of queries and keys."""
    q, k, _ = case.names
    yield Kind(f"G_{q}", "gradient-not-transposed", lambda g: t(g("G_scores")) @ g(k))
    yield Kind(f"G_{q}", "value-for-gradient", lambda g: g("scores") @ g(k))
    yield Kind(f"G_{q}", "gradients-swapped", lambda g: t(g("G_scores")) @ g(q))
    yield Kind(f"G_{k}", "gradient-not-transposed", lambda g: g("G_scores") @ g(q))
    yield Kind(f"G_{k}", "operands-swapped", lambda g: t(g(q)) @ g("G_scores"))
    yield Kind(f"G_{k}", "value-for-gradient", lambda g: t(g("scores")) @ g(q))
    yield Kind(f"G_{k}", "gradients-swapped", lambda g: g("G_scores") @ g(k))


def _attention_back(case: Case) -> Iterator[Kind]:
    yield from scores_back(case)
    if case.model == "attention":
        return
    for name in "QKV":
        yield Kind(f"G_W_{name}", "gradient-not-transposed", lambda g, n=name: g("X") @ g(f"G_{n}"))
        yield Kind(f"G_W_{name}", "operands-swapped", lambda g, n=name: g(f"G_{n}").T @ g("X"))
        yield Kind(f"G_W_{name}", "value-for-gradient", lambda g, n=name: g("X").T @ g(n))
        yield Kind(f"G_X_{name}", "gradient-not-transposed", lambda g, n=name: g(f"G_{n}") @ g(f"W_{n}"))
        yield Kind(f"G_X_{name}", "operands-swapped", lambda g, n=name: g(f"W_{n}") @ g(f"G_{n}").T)
        yield Kind(f"G_X_{name}", "value-for-gradient", lambda g, n=name: g(n) @ g(f"W_{n}").T)
        for other in "QKV".replace(name, ""):
            yield Kind(f"G_W_{name}", "gradients-swapped", lambda g, o=other: g("X").T @ g(f"G_{o}"), other)
            swapped: Line = lambda g, o=other: g(f"G_{o}") @ g(f"W_{o}").T  # noqa: E731
            yield Kind(f"G_X_{name}", "gradients-swapped", swapped, other)
        left = [f"G_X_{other}" for other in "QKV" if other != name]
        yield Kind("G_X", "path-missing", lambda g, p=left: g(p[0]) + g(p[1]), name)
        yield Kind("G_X", "path-missing", lambda g, n=name: g(f"G_X_{n}"), f"all but {name}")
        yield Kind("G_X", "path-twice", lambda g, p=left, n=name: g(p[0]) + g(p[1]) + 2 * g(f"G_X_{n}"), name)


def _table(case: Case) -> Iterator[Kind]:
    ids, count = case.inputs["T"], len(case.inputs["E"])

    def put(rows: Any, add: bool) -> Any:
        out = np.zeros((count, rows.shape[1]))
        for row, id in zip(rows, ids, strict=True):
            out[id] = out[id] + row if add else row
        return out

    yield Kind("G_E", "gradient-overwritten", lambda g: put(g("G_X"), False))
    yield Kind("G_E", "first-gradient-only", lambda g: first_only(g("G_X"), ids, count))
    yield Kind("G_E", "value-for-gradient", lambda g: put(g("X"), True))
    if case.eta is not None:
        yield Kind("E_new", "update-sign", lambda g: g("E") + case.eta * g("G_E"))


def first_only(rows: Any, ids: Any, count: int) -> Any:
    """Of a token that occurs again, the first gradient alone."""
    out = np.zeros((count, rows.shape[1]))
    for row, id in reversed(list(zip(rows, ids, strict=True))):
        out[id] = row
    return out


def _slips(case: Case, seed: int) -> Iterator[Kind]:
    """Slips in single cells of a line, chosen by `seed`."""
    rng = random.Random(seed)
    for place, line in lines(case):
        pick, power = rng.random(), rng.choice((-2, -1, 1, 2))
        other = rng.random()

        def sign(g: Use, line: Line = line, pick: float = pick) -> Any:
            return _with(line(g), pick, lambda v: -v)

        def point(g: Use, line: Line = line, pick: float = pick, power: int = power) -> Any:
            return _with(line(g), pick, lambda v: v * 10.0**power)

        def exchanged(g: Use, line: Line = line, pick: float = pick, other: float = other) -> Any:
            out = np.array(line(g), dtype=float)
            a, b = int(pick * out.size), int(other * out.size)
            out.flat[a], out.flat[b] = out.flat[b], out.flat[a]
            return out

        def lines_exchanged(g: Use, line: Line = line, pick: float = pick) -> Any:
            out = np.array(line(g), dtype=float)
            first = out[0] if out.ndim == 3 else out
            if pick < 0.5 and len(first) > 1:
                first[:2] = first[[1, 0]]
            elif first.shape[1] > 1:
                first[:, :2] = first[:, [1, 0]]
            return out

        yield Kind(place, "sign", sign, page=True)
        yield Kind(place, "decimal-point", point, page=True)
        yield Kind(place, "cells-exchanged", exchanged, page=True)
        yield Kind(place, "cells-exchanged", lines_exchanged, "lines", page=True)
        if place not in case.vectors:
            yield Kind(place, "layout-transposed", lambda g, line=line: t(np.asarray(line(g))), page=True)


def _with(values: Any, pick: float, change: Any) -> Any:
    out = np.array(values, dtype=float)
    out.flat[int(pick * out.size)] = change(out.flat[int(pick * out.size)])
    return out
