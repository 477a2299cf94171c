"""A learner with a calculator at multi-head attention (MHA, GQA, MQA, cross-attention), right and with the mistakes
of the catalogue. Bare NumPy: nothing of attncli is used here."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import permutations
from typing import Any

import numpy as np
from learn_layers import Lines, is_uneven, made, paths, turned_back, turned_kinds, turned_lines
from learner import Case, Exercise, Learner, Line, Use, attention, attention_back, hidden_cells
from wrongs import Kind, alike, output_wrong, scores_back, scores_wrong, softmax_wrong


def _draw(rng: random.Random) -> Case:
    while True:
        case = _drawn(rng)
        values = Learner(case, 6).run()
        if is_uneven(case.upstream) and np.abs(values["scores"]).max() <= 4:
            return case


def _drawn(rng: random.Random) -> Case:
    heads, kv_heads = rng.choice(((1, 1), (2, 2), (2, 2), (3, 3), (2, 1), (4, 2), (3, 1)))
    n, d, d_v = rng.randint(2, 3), rng.randint(1, 2) if heads > 2 else 2, rng.randint(1, 2)
    if d == 1:
        d = 2  # with a single column there is nothing to scale
    width, out = rng.randint(2, 4), rng.randint(2, 4)
    if rng.random() < 0.4:
        d_v, width, out = d, heads * d, heads * d  # the usual case, in which most things fit either way
    cross = rng.random() < 0.3
    m, other = (rng.randint(2, 4), rng.randint(2, 3)) if cross else (n, width)
    shapes: dict[str, tuple[int, ...]] = {"X": (n, width)}
    if cross:
        shapes["X_kv"] = (m, other)
    shapes["W_Q"], shapes["W_K"] = (width, heads * d), (other, kv_heads * d)
    shapes["W_V"], shapes["W_O"] = (other, kv_heads * d_v), (heads * d_v, out)
    for name in "QKVO":
        if rng.random() < 0.2:
            shapes[f"b_{name}"] = shapes[f"W_{name}"][1:]
    case = made("multi_head", rng, shapes, (n, out), 1.1)
    case.settings["heads"] = heads
    if kv_heads != heads or rng.random() < 0.2:
        case.settings["kv_heads"] = kv_heads
    case.mask = rng.choice(("none", "causal", "causal", "padding"))
    case.hidden = hidden_cells(rng, case.mask, n, m)
    if case.mask == "causal":
        case.settings["causal"] = True
    elif case.mask == "padding":
        case.settings["mask"] = "; ".join(" ".join("-inf" if h else "0" for h in row) for row in case.hidden)
    shared = "heads" if kv_heads == heads else "shared"
    case.names = ("Q_heads", f"K_{shared}", f"V_{shared}")
    case.width, case.exercise = d, MULTI_HEAD
    case.vectors = (*case.vectors, *(f"G_b_{name}" for name in "QKVO"))
    return case


def _source(case: Case, name: str) -> str:
    return "X_kv" if name != "Q" and "X_kv" in case.inputs else "X"


def _own(case: Case, name: str) -> int:
    """Heads of queries, keys or values."""
    heads: int = case.settings["heads"]
    return heads if name == "Q" else case.settings.get("kv_heads", heads)


def _unshared(case: Case, name: str) -> str:
    """Keys or values before they are repeated for the query heads that share them."""
    return "K_rotated" if name == "K" and "rotary" in case.settings else f"{name}_heads"


def _group(case: Case) -> int:
    return _own(case, "Q") // _own(case, "K")


def split_heads(x: Any, heads: int) -> Any:
    """Columns of every row dealt out to heads, the first ones to head 1."""
    return np.stack(np.split(x, heads, axis=1))


def join_heads(x: Any) -> Any:
    return np.concatenate(list(x), axis=1)


def _biased(case: Case, g: Use, product: Any, name: str) -> Any:
    return product + g(f"b_{name}") if f"b_{name}" in case.inputs else product


def _lines(case: Case) -> Lines:
    group = _group(case)
    for name in "QKV":
        yield name, lambda g, n=name: _biased(case, g, g(_source(case, n)) @ g(f"W_{n}"), n)
    for name in "QKV":
        yield f"{name}_heads", lambda g, n=name: split_heads(g(n), _own(case, n))
    if "rotary" in case.settings:
        yield from turned_lines(case, {"Q_rotated": "Q_heads", "K_rotated": "K_heads"})
    if group > 1:
        for name in "KV":
            yield (
                f"{name}_shared",
                lambda g, n=name: np.stack([head for head in g(_unshared(case, n)) for _ in range(group)]),
            )
    yield from attention(case)
    yield "concat", lambda g: join_heads(g("O"))
    yield "output", lambda g: _biased(case, g, g("concat") @ g("W_O"), "O")
    if "b_O" in case.inputs:
        yield "G_b_O", lambda g: g("G_output").sum(0, keepdims=True)
    yield "G_W_O", lambda g: g("concat").T @ g("G_output")
    yield "G_concat", lambda g: g("G_output") @ g("W_O").T
    yield "G_O", lambda g: split_heads(g("G_concat"), _own(case, "Q"))
    yield from attention_back(case)
    if group > 1:
        for name in "KV":
            yield f"G_{_unshared(case, name)}", lambda g, n=name: _summed(g(f"G_{n}_shared"), group)
    if "rotary" in case.settings:
        yield from turned_back(case, {"Q_rotated": "Q_heads", "K_rotated": "K_heads"})
    for name in "QKV":
        yield f"G_{name}", lambda g, n=name: join_heads(g(f"G_{n}_heads"))
    yield from _projections_back(case)


def _projections_back(case: Case) -> Lines:
    for name in "QKV":
        if f"b_{name}" in case.inputs:
            yield f"G_b_{name}", lambda g, n=name: g(f"G_{n}").sum(0, keepdims=True)
        yield f"G_W_{name}", lambda g, n=name: g(_source(case, n)).T @ g(f"G_{n}")
    for place, parts in _paths(case).items():
        for part, name in parts.items():
            yield part, lambda g, n=name: g(f"G_{n}") @ g(f"W_{n}").T
        if len(parts) > 1:
            yield place, lambda g, p=tuple(parts): sum(g(part) for part in p)


def _paths(case: Case) -> dict[str, dict[str, str]]:
    """The gradients of the tokens, and the paths that meet there, with the projection each comes through."""
    if "X_kv" in case.inputs:
        return {"G_X_kv": {"G_X_kv_K": "K", "G_X_kv_V": "V"}, "G_X": {"G_X": "Q"}}
    return {"G_X": {f"G_X_{name}": name for name in "QKV"}}


def _summed(heads: Any, group: int) -> Any:
    return np.stack([heads[first : first + group].sum(0) for first in range(0, len(heads), group)])


def _kinds(case: Case) -> Iterator[Kind]:
    yield from _projections(case)
    yield from _heads(case)
    yield from scores_wrong(case)
    yield from softmax_wrong(case)
    yield from output_wrong(case)
    yield from scores_back(case)
    yield from _output(case)
    yield from _back(case)
    if "rotary" in case.settings:
        yield from turned_kinds(case, {"Q_rotated": "Q_heads", "K_rotated": "K_heads"})


def _projections(case: Case) -> Iterator[Kind]:
    for name in "QKV":
        x = _source(case, name)

        def done(product: Line, name: str = name) -> Line:
            return lambda g: _biased(case, g, product(g), name)

        yield Kind(name, "weight-transposed", done(lambda g, x=x, n=name: g(x) @ g(f"W_{n}").T))
        yield Kind(name, "operands-swapped", done(lambda g, x=x, n=name: g(f"W_{n}") @ g(x)))
        for other in "QKV".replace(name, ""):
            if case.inputs[f"W_{other}"].shape == case.inputs[f"W_{name}"].shape:
                yield Kind(name, "wrong-weight", done(lambda g, x=x, o=other: g(x) @ g(f"W_{o}")), f"W_{other}")


def _heads(case: Case) -> Iterator[Kind]:
    """Heads cut, joined and shared in other ways."""
    heads, group = _own(case, "Q"), _group(case)

    def cut(name: str, gradient: str = "") -> Line:
        return lambda g: g(gradient or name).reshape(_own(case, name), len(g(gradient or name)), -1)

    cuts = {f"{name}_heads": cut(name) for name in "QKV" if _own(case, name) > 1}
    for place, line in cuts.items():
        yield Kind(place, "split-without-transpose", line)
    if len(cuts) > 1:
        yield from alike("split-without-transpose", cuts.items(), "all")
    if group > 1 and _own(case, "K") > 1:
        tiled = {f"{name}_shared": _tiled(_unshared(case, name), group) for name in "KV"}
        for place, line in tiled.items():
            yield Kind(place, "kv-heads-tiled", line)
        yield from alike("kv-heads-tiled", tiled.items(), "both")
    if heads > 1:
        rows = len(case.inputs["X"])
        yield Kind("concat", "merge-without-transpose", lambda g: g("O").reshape(rows, -1))
        for order in permutations(range(heads)) if heads < 4 else (tuple(range(heads))[::-1],):
            if order != tuple(range(heads)):
                yield Kind("concat", "heads-reversed", lambda g, o=order: join_heads(g("O")[list(o)]), f"{order}")
        yield Kind("G_O", "split-without-transpose", cut("Q", "G_concat"))
        yield Kind("G_Q", "merge-without-transpose", lambda g: g("G_Q_heads").reshape(rows, -1))


def _tiled(source: str, group: int) -> Line:
    return lambda g: np.concatenate([g(source)] * group)


def projection_kinds(case: Case, place: str, x: str, weight: str, others: list[str], back: str) -> Iterator[Kind]:
    """What goes wrong in x W, perhaps with a bias, and in the gradients of both: W's, and x's at `back`."""
    name = weight.removeprefix("W_")

    def done(product: Line) -> Line:
        return lambda g: _biased(case, g, product(g), name)

    yield Kind(place, "weight-transposed", done(lambda g: g(x) @ g(weight).T))
    yield Kind(place, "operands-swapped", done(lambda g: g(weight) @ g(x)))
    for other in others:
        if case.inputs[other].shape == case.inputs[weight].shape:
            yield Kind(place, "wrong-weight", done(lambda g, o=other: g(x) @ g(o)), other)
    yield Kind(f"G_{weight}", "gradient-not-transposed", lambda g: g(x) @ g(f"G_{place}"))
    yield Kind(f"G_{weight}", "value-for-gradient", lambda g: g(x).T @ g(place))
    yield Kind(f"G_{weight}", "operands-swapped", lambda g: g(f"G_{place}").T @ g(x))
    yield Kind(back, "gradient-not-transposed", lambda g: g(f"G_{place}") @ g(weight))
    yield Kind(back, "value-for-gradient", lambda g: g(place) @ g(weight).T)
    yield Kind(back, "operands-swapped", lambda g: g(weight) @ g(f"G_{place}").T)
    if f"b_{name}" in case.inputs:
        yield Kind(f"G_b_{name}", "mean-for-sum", lambda g: g(f"G_{place}").mean(0, keepdims=True))


def _output(case: Case) -> Iterator[Kind]:
    yield Kind("output", "no-output-projection", lambda g: g("concat"))
    yield from projection_kinds(case, "output", "concat", "W_O", [], "G_concat")


def _back(case: Case) -> Iterator[Kind]:
    group = _group(case)
    if group > 1:
        for name in "KV":
            for only in (0, group - 1):
                yield Kind(
                    f"G_{_unshared(case, name)}",
                    "group-not-summed",
                    lambda g, n=name, o=only: g(f"G_{n}_shared")[o::group],
                    f"head {only + 1} of {group}",
                )
    parts = {part: name for parts in _paths(case).values() for part, name in parts.items()}
    for part, name in parts.items():
        yield Kind(part, "gradient-not-transposed", lambda g, n=name: g(f"G_{n}") @ g(f"W_{n}"))
        yield Kind(part, "operands-swapped", lambda g, n=name: g(f"W_{n}") @ g(f"G_{n}").T)
        yield Kind(part, "value-for-gradient", lambda g, n=name: g(n) @ g(f"W_{n}").T)
    for name in "QKV":
        x = _source(case, name)
        yield Kind(f"G_{name}", "value-for-gradient", lambda g, n=name: join_heads(g(f"{n}_heads")))
        for other in "QKV".replace(name, ""):
            if case.inputs[f"W_{other}"].shape[1] == case.inputs[f"W_{name}"].shape[1]:
                yield Kind(f"G_{name}", "gradients-swapped", lambda g, o=other: join_heads(g(f"G_{o}_heads")), other)
        if f"b_{name}" in case.inputs:
            yield Kind(f"G_b_{name}", "mean-for-sum", lambda g, n=name: g(f"G_{n}").mean(0, keepdims=True))
        yield Kind(f"G_W_{name}", "gradient-not-transposed", lambda g, x=x, n=name: g(x) @ g(f"G_{n}"))
        yield Kind(f"G_W_{name}", "value-for-gradient", lambda g, x=x, n=name: g(x).T @ g(n))
        yield Kind(f"G_W_{name}", "operands-swapped", lambda g, x=x, n=name: g(f"G_{n}").T @ g(x))
        for other in "QKV".replace(name, ""):
            if case.inputs[f"W_{other}"].shape == case.inputs[f"W_{name}"].shape and _source(case, other) == x:
                yield Kind(f"G_W_{name}", "gradients-swapped", lambda g, x=x, o=other: g(x).T @ g(f"G_{o}"), other)
    for place, meeting in _paths(case).items():
        if len(meeting) > 1:
            yield from paths(place, list(meeting))


MULTI_HEAD = Exercise(_draw, _lines, _kinds, "output")
