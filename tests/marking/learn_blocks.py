"""A learner with a calculator at the blocks of a Transformer, and at attention with what distance costs (ALiBi).

Bare NumPy, put together from the exercises on heads, norms and the feed-forward sublayer. Nothing of attncli is used here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from learn_forward import FEED_FORWARD
from learn_heads import MULTI_HEAD
from learn_layers import EXERCISES, is_uneven, made, turned
from learn_parts import Page, Part, part_of
from learner import Case, Exercise, Learner, Line, Use, hidden_cells
from wrongs import Kind, alike

NORMS = {"layer": ("layer_norm", EXERCISES[0]), "rms": ("rms_norm", EXERCISES[1])}

Shapes = dict[str, tuple[int, ...]]


# Weights ----------------------------------------------------------------------------------------------------------


def heads_of(rng: random.Random) -> tuple[int, int]:
    """Query heads, and heads of keys and values."""
    return rng.choice(((1, 1), (2, 2), (2, 2), (2, 1)))


def attention_shapes(prefix: str, width: int, other: int, heads: tuple[int, int], d: int, biased: bool) -> Shapes:
    """Weights of an attention whose output is as wide as its tokens."""
    wide, narrow = heads[0] * d, heads[1] * d
    shapes = {"W_Q": (width, wide), "W_K": (other, narrow), "W_V": (other, narrow), "W_O": (wide, width)}
    if biased:
        shapes |= {f"b_{name}": shapes[f"W_{name}"][1:] for name in "QKVO"}
    return {f"{prefix}{name}": shape for name, shape in shapes.items()}


def forward_shapes(prefix: str, width: int, hidden: int, biased: bool) -> Shapes:
    shapes = {"W_1": (width, hidden), "W_2": (hidden, width)}
    if biased:
        shapes |= {"b_1": (hidden,), "b_2": (width,)}
    return {f"{prefix}{name}": shape for name, shape in shapes.items()}


def norm_shapes(rng: random.Random, prefix: str, width: int, kind: str) -> Shapes:
    if kind == "none" or rng.random() < 0.3:
        return {}
    return {f"{prefix}gamma": (width,), **({f"{prefix}beta": (width,)} if kind == "layer" else {})}


# Parts ------------------------------------------------------------------------------------------------------------


def part_case(case: Case, model: str, prefix: str, exercise: Exercise, rows: dict[str, tuple[int, int]]) -> Case:
    """What one part sees of the whole: its own weights by their short names, and the shapes of what it works on."""
    inputs = {
        name.removeprefix(prefix): values
        for name, values in case.inputs.items()
        if name.startswith(prefix) and "." not in name.removeprefix(prefix)
    }
    inputs |= {name: np.zeros(shape) for name, shape in rows.items()}
    return Case(model, inputs, {}, settings=case.settings, exercise=exercise, width=case.width)


def attention_part(case: Case, prefix: str, source: str, memory: str, shapes: Any, mask: Any = None) -> Part:
    """Multi-head attention of rows (n d_model) to themselves or to `memory`.

    Parameters
    ----------
    shapes : of the rows, and of the memory's
    mask : its kind, what is hidden, and what is added
    """
    rows, other = shapes
    own = part_case(case, "multi_head", prefix, MULTI_HEAD, {"X": rows, **({"X_kv": other} if memory else {})})
    own.mask, own.hidden, own.bias = mask or ("none", None, None)
    if memory and "rotary" in own.settings:
        own.settings = {name: value for name, value in own.settings.items() if name != "rotary"}
    is_shared = own.settings.get("kv_heads", own.settings["heads"]) != own.settings["heads"]
    is_turned = "rotary" in own.settings
    key = "K_shared" if is_shared else "K_rotated" if is_turned else "K_heads"
    own.names = ("Q_rotated" if is_turned else "Q_heads", key, "V_shared" if is_shared else "V_heads")
    own.turned = (case.width or 0) if is_turned else 0
    ways: dict[str, dict[str, str]] = {"X": {f"G_X_{name}": name for name in "QKV"}}
    if memory:
        ways = {"X": {"G_X": "Q"}, "X_kv": {f"G_X_kv_{name}": name for name in "KV"}}
    sources = {"X": source, **({"X_kv": memory} if memory else {})}
    part = part_of(own, "output", prefix, sources, ways, feeds=("Q",) if memory else ("Q", "K", "V"))
    if memory and rows[1] == other[1]:
        part.kinds += _other_sequence(own)
    if is_turned:
        part.kinds += _values_turned(own)
    return part


def _other_sequence(case: Case) -> Iterator[Kind]:
    """Across two sequences, the wrong one of them."""

    def of(name: str, source: str) -> Line:
        def line(g: Use) -> Any:
            made = g(source) @ g(f"W_{name}")
            return made + g(f"b_{name}") if f"b_{name}" in case.inputs else made

        return line

    yield Kind("Q", "other-sequence", of("Q", "X_kv"))
    for name in "KV":
        yield Kind(name, "other-sequence", of(name, "X"))
    yield from alike("other-sequence", [(name, of(name, "X")) for name in "KV"], "both")


def _values_turned(case: Case) -> Iterator[Kind]:
    value, pairing = case.names[2], case.settings.get("pairing", "adjacent")
    yield Kind("O", "value-rotated", lambda g: g("A") @ turned(g(value), g("cos"), g("sin"), pairing))


def norm_part(case: Case, prefix: str, source: str, rows: tuple[int, int], kind: str) -> Part:
    model, exercise = NORMS[kind]
    own = part_case(case, model, prefix, exercise, {"X": rows})
    first, second, root = ("centred", "mean", "std") if kind == "layer" else ("normalised", "mean_square", "rms")
    ways = {"X": {f"G_X_{first}": first, f"G_X_{second}": second}}
    straight = ("G_normalised", root, f"G_X_{first}")
    return part_of(own, "Y", prefix, {"X": source}, ways, straight=straight, feeds=(first, second))


def forward_part(case: Case, prefix: str, source: str, rows: tuple[int, int]) -> Part:
    own = part_case(case, "feed_forward", prefix, FEED_FORWARD, {"X": rows})
    own.settings = {"activation": "relu", **own.settings}
    return part_of(own, "Y", prefix, {"X": source}, {"X": {"G_X": "hidden"}}, feeds=("hidden",))


# Sublayers --------------------------------------------------------------------------------------------------------


def sublayer(
    page: Page, case: Case, x: str, rows: tuple[int, int], prefix: str, number: int, make: Callable[[str], Part]
) -> str:
    """LN(x + f(x)) or x + f(LN(x)), or no norm at all; the name of the result."""
    kind = case.settings.get("normalisation", "layer")
    norm = f"{prefix}norm{number}."
    is_pre = case.settings.get("norm", "post") == "pre"
    if kind == "none":
        through = page.add(make(x))
        return _added(page, through, x)
    if is_pre:
        page.add(norm_part(case, norm, x, rows, kind))
        through = page.add(make(f"{norm}Y"))
        added = _added(page, through, x)
        page.own += _misplaced_pre(case, kind, norm, x, through, added)
        return added
    through = page.add(make(x))
    added = _added(page, through, x)
    page.add(norm_part(case, norm, added, rows, kind))
    page.own += _misplaced_post(case, kind, norm, x, through, added)
    return f"{norm}Y"


def _added(page: Page, through: Part, x: str) -> str:
    result = f"{through.prefix}residual"
    page.residual(result, x, through.named(through.forward[-1][0]))
    return result


def normed(case: Case, kind: str, prefix: str) -> Callable[[Use, Any], Any]:
    """A whole norm at once, of any rows."""
    eps = case.settings.get("eps", 1e-5)

    def norm(g: Use, rows: Any) -> Any:
        moved = rows - rows.mean(-1, keepdims=True) if kind == "layer" else rows
        out = moved / np.sqrt((moved**2).mean(-1, keepdims=True) + eps)
        out = out * g(f"{prefix}gamma") if f"{prefix}gamma" in case.inputs else out
        return out + g(f"{prefix}beta") if f"{prefix}beta" in case.inputs else out

    return norm


def _misplaced_post(case: Case, kind: str, norm: str, x: str, f: Part, added: str) -> Iterator[Kind]:
    of, last, out = normed(case, kind, norm), f"{norm}Y", f.named(f.forward[-1][0])
    fed = [f.with_source(place, lambda g: of(g, g(x))) for place in f.feeds]
    plain = (last, lambda g: g(added))
    yield from alike("norm-placement", [*fed, plain], "x + f(LN(x))")
    inner = (last, lambda g: g(x) + of(g, g(out)))
    yield from alike("norm-placement", [(added, lambda g: g(out)), inner], "x + LN(f(x))")
    both = (added, lambda g: of(g, g(x)) + g(out))
    yield from alike("norm-placement", [*fed, both, plain], "LN(x) + f(LN(x))")


def _misplaced_pre(case: Case, kind: str, norm: str, x: str, f: Part, added: str) -> Iterator[Kind]:
    of, out = normed(case, kind, norm), f.named(f.forward[-1][0])
    bare = [f.with_source(place, lambda g: g(x)) for place in f.feeds]
    yield from alike("norm-placement", [*bare, (added, lambda g: of(g, g(x) + g(out)))], "LN(x + f(x))")
    yield from alike("norm-placement", [*bare, (added, lambda g: g(x) + of(g, g(out)))], "x + LN(f(x))")
    yield Kind(added, "norm-placement", lambda g: g(f"{norm}Y") + g(out), "LN(x) + f(LN(x))")


# Encoder and decoder ----------------------------------------------------------------------------------------------


def block_settings(rng: random.Random, heads: tuple[int, int]) -> dict[str, Any]:
    settings: dict[str, Any] = {"heads": heads[0]}
    eps = rng.choice((0.001, 0.01, 0.1))
    if heads[1] != heads[0]:
        settings["kv_heads"] = heads[1]
    if rng.random() < 0.5:
        settings["norm"] = rng.choice(("pre", "post", "pre"))
    settings["normalisation"] = rng.choice(("layer", "layer", "layer", "rms", "none"))
    if settings["normalisation"] != "none":
        settings["eps"] = eps
    if rng.random() < 0.3:
        settings["activation"] = rng.choice(("gelu", "silu"))
    return settings


def is_fit(case: Case) -> bool:
    """Scores within ±4, an uneven gradient, rows that differ and that a norm can divide by their spread."""
    values = Learner(case, 6).run()
    scores = [np.abs(value).max() for id, value in values.items() if id.rpartition(".")[2] == "scores"]
    spread = [value.min() for id, value in values.items() if id.rpartition(".")[2] in ("std", "rms")]
    even = case.upstream is not None and not is_uneven(case.upstream)
    # The same token twice, and no positions: from equal rows on, everybody is right.
    differ = min(
        np.ptp(rows, 0).max() for id, rows in values.items() if id.rpartition(".")[2] in ("residual", "logits")
    )
    return differ > 0.1 and max(scores) <= 4 and min(spread, default=1.0) > 0.25 and not even


def _draw(rng: random.Random) -> Case:
    while True:
        case = _drawn(rng)
        if is_fit(case):
            return case


def _drawn(rng: random.Random) -> Case:
    model = rng.choice(("encoder_block", "encoder_block", "decoder_block"))
    heads, n, width, d = heads_of(rng), rng.randint(2, 3), rng.randint(3, 4), 2
    biased = rng.random() < 0.25
    settings = block_settings(rng, heads)
    m, other = rng.randint(2, 3), width if rng.random() < 0.6 else rng.randint(2, 3)
    shapes: Shapes = {"X": (n, width)}
    if model == "decoder_block":
        shapes["memory"] = (m, other)
        shapes |= attention_shapes("cross.", width, other, heads, d, biased)
    shapes |= attention_shapes("self.", width, width, heads, d, biased)
    shapes |= forward_shapes("ffn.", width, rng.randint(2, 3), biased)
    for number in range(1, 4 if model == "decoder_block" else 3):
        shapes |= norm_shapes(rng, f"norm{number}.", width, settings["normalisation"])
    case = made(model, rng, shapes, (n, width), 1.2)
    case.settings, case.width, case.least = settings, d, 2
    mask = case_mask(rng, case, n, heads[0], causal=model == "decoder_block")
    cross = ("none", None, None)
    if rng.random() < 0.3 and model == "decoder_block":
        hidden = hidden_cells(rng, "padding", n, m)
        cross = ("padding", hidden, None)
        case.settings["cross_hide"] = [bool(cell) for cell in hidden[0]]
    _put_together(case, (n, width), (m, other), mask, cross)
    return case


def case_mask(rng: random.Random, case: Case, n: int, heads: int, causal: bool) -> tuple[str, Any, Any]:
    """The kind of mask, what is hidden, and what is added: settings that say so are put into the case."""
    if not causal and rng.random() < 0.5:
        causal = case.settings["causal"] = True
    hidden = hidden_cells(rng, "causal", n, n) if causal else None
    if rng.random() < 0.25:
        slopes = sorted((rng.choice((0.25, 0.3, 0.4, 0.5, 0.7)) for _ in range(heads)), reverse=True)
        case.settings["alibi"] = [float(slope) for slope in slopes]
        steps = np.abs(np.arange(n)[:, None] - np.arange(n)[None, :])
        bias = -np.array(slopes)[:, None, None] * steps
        return ("causal" if causal else "none"), np.zeros((n, n), dtype=bool) if hidden is None else hidden, bias
    return ("causal" if causal else "none"), hidden, None


def _put_together(case: Case, rows: Any, memory: Any, mask: Any, cross: Any) -> None:
    page = Page()
    x, number = "X", 1
    x = sublayer(page, case, x, rows, "", 1, lambda s: attention_part(case, "self.", s, "", (rows, rows), mask))
    if case.model == "decoder_block":
        number = 2
        x = sublayer(
            page, case, x, rows, "", 2, lambda s: attention_part(case, "cross.", s, "memory", (rows, memory), cross)
        )
    x = sublayer(page, case, x, rows, "", number + 1, lambda s: forward_part(case, "ffn.", s, rows))
    case.exercise = page.exercise(_draw, x)
    case.vectors = ()


#: Every case that is drawn has an exercise of its own.
BLOCKS = Exercise(_draw, lambda case: iter(()), lambda case: iter(()), "")
