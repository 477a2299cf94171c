"""A learner with a calculator at a GPT: embedding, positions, blocks, logits, cross-entropy, and the update behind it.

Bare NumPy; nothing of attncli is used here.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from learn_blocks import (
    Shapes,
    attention_part,
    attention_shapes,
    block_settings,
    case_mask,
    forward_part,
    forward_shapes,
    heads_of,
    is_fit,
    norm_part,
    norm_shapes,
    sublayer,
)
from learn_layers import made, positions_kinds, positions_lines
from learn_loss import loss_part, updated
from learn_parts import Page, Part
from learner import Case, Exercise, gradient_of, lines, t
from wrongs import Kind, alike, first_only, kinds

#: The lines of the attention that make queries, keys and values.
_FED = ("Q", "K", "V")


def _draw(rng: random.Random) -> Case:
    while True:
        case = _drawn(rng)
        if is_fit(case):
            return case


def _drawn(rng: random.Random) -> Case:
    layers, heads, d = rng.choice((0, 1, 1)), heads_of(rng), 2
    n, width, count = rng.randint(2, 3), rng.randint(3, 4), rng.randint(3, 4)
    is_bare = layers == 0 and rng.random() < 0.5
    settings = {} if layers == 0 else block_settings(rng, heads)
    settings["layers"] = layers
    settings["positions"] = rng.choice(("none", "sinusoidal", "learned"))
    shapes: Shapes = {"E": (count, width)}
    if settings["positions"] == "learned":
        shapes["P"] = (n + rng.randint(0, 1), width)
    if is_bare:
        shapes |= {"W_Q": (width, d), "W_K": (width, d), "W_V": (width, rng.choice((d, width)))}
    else:
        if layers == 0:
            settings |= {"heads": heads[0], **({"kv_heads": heads[1]} if heads[1] != heads[0] else {})}
        part = "layer1.self." if layers else ""
        shapes |= attention_shapes(part, width, width, heads, d, layers > 0 and rng.random() < 0.2)
    if layers:
        shapes |= norm_shapes(rng, "layer1.norm1.", width, settings["normalisation"])
        if rng.random() < 0.7:
            shapes |= forward_shapes("layer1.ffn.", width, rng.randint(2, 3), rng.random() < 0.3)
            shapes |= norm_shapes(rng, "layer1.norm2.", width, settings["normalisation"])
        else:
            settings.pop("activation", None)
        if settings.get("norm") == "pre":
            shapes |= norm_shapes(rng, "final.", width, settings["normalisation"])
    out = width if not is_bare else shapes["W_V"][1]
    settings["tied"] = out == width and rng.random() < 0.5
    if not settings["tied"]:
        shapes["W_out"] = (out, count)
    if rng.random() < 0.3:
        shapes["b_out"] = (count,)
    case = made("gpt", rng, shapes, None, 1.2)
    case.settings, case.width, case.least = settings, d, 2
    if not is_bare and settings["positions"] == "none" and rng.random() < 0.6:
        settings["rotary"] = True
        settings["pairing"] = rng.choice(("adjacent", "half"))
    if rng.random() < 0.5 and (settings["positions"] == "sinusoidal" or "rotary" in settings):
        settings["base"] = rng.choice((4.0, 10.0, 100.0))
    ids = [rng.randrange(count) for _ in range(n)]
    if rng.random() < 0.6:
        ids[-1] = ids[0]
    case.inputs["T"], case.texts["T"] = np.array(ids), " ".join(map(str, ids))
    _put_together(rng, case, n, out)
    return case


def _put_together(rng: random.Random, case: Case, n: int, out: int) -> None:
    page, layers = Page(), case.settings["layers"]
    width = case.inputs["E"].shape[1]
    rows = (n, width)
    page.add(_looked_up(case.inputs["T"], "X", "E", case))
    x = _positioned(page, case, rows)
    heads = case.settings.get("heads", 1)
    mask = case_mask(rng, case, n, heads, causal=True)
    if layers == 0:
        part = (
            attention_part(case, "", x, "", (rows, rows), mask) if "W_O" in case.inputs else _bare(case, x, rows, mask)
        )
        x = page.add(part).named("output" if "W_O" in case.inputs else "O")
    else:
        prefix = "layer1."
        x = sublayer(
            page, case, x, rows, prefix, 1, lambda s: attention_part(case, f"{prefix}self.", s, "", (rows, rows), mask)
        )
        if f"{prefix}ffn.W_1" in case.inputs:
            x = sublayer(page, case, x, rows, prefix, 2, lambda s: forward_part(case, f"{prefix}ffn.", s, rows))
        kind = case.settings["normalisation"]
        if case.settings.get("norm") == "pre" and kind != "none":
            page.add(norm_part(case, "final.", x, rows, kind))
            x = "final.Y"
    page.add(_logits(case, x, out))
    page.add(loss_part(rng, case, n))
    if case.settings["positions"] != "none":
        page.own += _positions_left_out(page)
    parameters = [name for name in case.inputs if name != "T"]
    updated(rng, case, page, {name: gradient_of(name) for name in parameters})
    case.exercise = page.exercise(_draw, "logits")
    case.vectors = ()


def _looked_up(ids: Any, name: str, table: str, case: Case) -> Part:
    """Rows of a table; a table's gradient gathers what its rows send back."""
    count, path = len(case.inputs[table]), f"G_{table}"

    def put(rows: Any, add: bool) -> Any:
        out = np.zeros((count, rows.shape[1]))
        for row, id in zip(rows, ids, strict=True):
            out[id] = out[id] + row if add else row
        return out

    found = [
        Kind(path, "gradient-overwritten", lambda g: put(g(f"G_{name}"), False)),
        Kind(path, "first-gradient-only", lambda g: first_only(g(f"G_{name}"), ids, count)),
        Kind(path, "value-for-gradient", lambda g: put(g(name), True)),
    ]
    return Part(
        "",
        {table: table},
        {table: {path: name}},
        [(name, lambda g: g(table)[ids])],
        [(path, lambda g: put(g(f"G_{name}"), True))],
        found,
    )


def _positioned(page: Page, case: Case, rows: tuple[int, int]) -> str:
    kind = case.settings["positions"]
    if kind == "none":
        return "X"
    code = "PE" if kind == "sinusoidal" else "X_P"
    if kind == "learned":
        page.add(_looked_up(np.arange(rows[0]), "X_P", "P", case))
    else:
        own = Case("positions", {}, {}, settings={**case.settings, "n": rows[0], "d_model": rows[1]})
        page.add(Part("", {}, {}, list(positions_lines(own)), [], list(positions_kinds(own))))
    back = [("G_X", lambda g: g("G_positioned"))]
    ways = {"X": {"G_X": "positioned"}}
    sources = {"X": "X"}
    if kind == "learned":
        back.insert(0, ("G_X_P", lambda g: g("G_positioned")))
        sources["X_P"], ways["X_P"] = "X_P", {"G_X_P": "positioned"}
    left = Kind("positioned", "no-positions", lambda g: g("X"))
    page.add(Part("", sources, ways, [("positioned", lambda g: g("X") + g(code))], back, [left]))
    return "positioned"


def _positions_left_out(page: Page) -> Iterator[Kind]:
    """Keys and values of the bare embeddings."""
    for part in page.parts:
        if part.sources.get("X") == "positioned" and {place for place, _ in part.forward} >= set(_FED):
            bare = [part.with_source(name, lambda g: g("X")) for name in "KV"]
            yield from (Kind(place, "positions-on-queries-only", line) for place, line in bare)
            yield from alike("positions-on-queries-only", bare, "keys and values")


def _bare(case: Case, x: str, rows: tuple[int, int], mask: Any) -> Part:
    """A single causal attention, without heads."""
    own = Case(
        "self_attention",
        {"X": np.zeros(rows), **{name: case.inputs[name] for name in ("W_Q", "W_K", "W_V")}},
        {},
        width=case.width,
    )
    own.mask, own.hidden, own.bias = mask
    if own.bias is not None:
        own.bias = own.bias[0]
    every = list(lines(own))
    end = [id for id, _ in every].index("O") + 1
    ways = {"X": {f"G_X_{name}": name for name in "QKV"}}
    back = [pair for pair in every[end:] if pair[0] != "G_X"]
    found = [kind for kind in kinds(own) if not kind.page and kind.place != "G_X"]
    return Part("", {"X": x}, ways, every[:end], back, found)


def _logits(case: Case, x: str, width: int) -> Part:
    """A score for every entry of the vocabulary, with weights of their own or with the table turned."""
    is_tied = case.settings["tied"]
    weight = "E" if is_tied else "W_out"
    path = "G_E_logits" if is_tied else "G_W_out"

    def biased(g: Any, product: Any) -> Any:
        return product + g("b_out") if "b_out" in case.inputs else product

    def right(g: Any) -> Any:
        return t(g(weight)) if is_tied else g(weight)

    back = [(path, lambda g: t(g("G_logits")) @ g("X") if is_tied else t(g("X")) @ g("G_logits"))]
    back.append(("G_X", lambda g: g("G_logits") @ t(right(g))))
    found = [
        Kind("logits", "weight-transposed", lambda g: biased(g, g("X") @ t(right(g)))),
        Kind("G_X", "gradient-not-transposed", lambda g: g("G_logits") @ right(g)),
        Kind("G_X", "value-for-gradient", lambda g: g("logits") @ t(right(g))),
    ]
    if is_tied:
        found.append(Kind(path, "value-for-gradient", lambda g: t(g("logits")) @ g("X")))
        found.append(Kind(path, "gradient-not-transposed", lambda g: g("G_logits") @ g("X")))
        found.append(Kind(path, "operands-swapped", lambda g: t(g("X")) @ g("G_logits")))
    else:
        found.append(Kind(path, "value-for-gradient", lambda g: t(g("X")) @ g("logits")))
        found.append(Kind(path, "gradient-not-transposed", lambda g: g("X") @ g("G_logits")))
        found.append(Kind(path, "operands-swapped", lambda g: t(g("G_logits")) @ g("X")))
    if "b_out" in case.inputs:
        back.insert(0, ("G_b_out", lambda g: g("G_logits").sum(0, keepdims=True)))
        found.append(Kind("G_b_out", "mean-for-sum", lambda g: g("G_logits").mean(0, keepdims=True)))
        found.append(Kind("G_b_out", "value-for-gradient", lambda g: g("logits").sum(0, keepdims=True)))
    sources = {"X": x, **({"E": "E"} if is_tied else {})}
    ways = {"X": {"G_X": "logits"}, **({"E": {path: "logits"}} if is_tied else {})}
    return Part("", sources, ways, [("logits", lambda g: biased(g, g("X") @ right(g)))], back, found)


#: Every case that is drawn has an exercise of its own.
GPT = Exercise(_draw, lambda case: iter(()), lambda case: iter(()), "logits")
