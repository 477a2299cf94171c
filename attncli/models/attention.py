"""Scaled dot-product attention, the core every attention model shares.

Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V (Vaswani et al., arXiv 1706.03762, equation 1), with a
soft cap before the mask, a mask before softmax, and a cache of earlier keys and values in front. Softmax by itself, and
why scores are divided by √d_k: the spread of many dot products beside theory.
"""

from __future__ import annotations

import numpy as np

from attncli.arithmetic.expression import written
from attncli.core.axes import Axis
from attncli.core.graph import default_symbol
from attncli.core.matrix import Matrix, as_matrix
from attncli.core.message import N_, InputError, Message, ShapeError
from attncli.models import masks
from attncli.models.layers import linear
from attncli.models.model import TOKENS, Argument, Model, Part, Setting, indexed
from attncli.ops.elementwise import MULTIPLY, SCALE, SOFTCAP
from attncli.ops.layout import HEAD_MEAN, JOIN_ROWS, REPEAT_KV
from attncli.ops.losses import MEAN_SQUARE
from attncli.ops.product import PRODUCT
from attncli.ops.rows import ROOT, ROW_SUM
from attncli.ops.softmax import hidden_rows, log_softmax, softmax

SETTINGS = (
    *masks.SETTINGS,
    masks.ALIBI,
    Setting("scale", "scale", N_("sqrt: divide by √d_k (the default); none; or a number that multiplies")),
    Setting("softcap", "positive", N_("c: bend scores softly into −c … c, before the mask")),
    masks.WINDOW,
    Setting("average_heads", "flag", N_("one step more, A_mean: the weights averaged over the heads")),
    Setting(
        "max_over", "choice", N_("whose maximum is subtracted: the visible scores, or all of them"), ("visible", "all")
    ),
)

_SCORES = N_(
    "Compare every query with every key: multiply matching entries and add up. {Row} i, "
    "{column} j says how well query i matches key j. K is transposed because a matrix product "
    "runs along {columns}: the keys, which are the {rows} of K, must become {columns}."
)
_OUTPUT = N_(
    "Mix the values: each output {row} is a weighted average of the {rows} of V, with that {row}'s attention weights."
    " V is not transposed, because weight j belongs to {row} j of V."
)


def attend(
    part: Part,
    q: str,
    k: str,
    v: str | None,
    *,
    past: int | None = None,
    width: Axis | None = None,
    result: str = "O",
    symbol: str | None = None,
) -> str:
    """Write the steps scores … O for queries, keys and values, and return the id of O; without values, of A.

    Parameters
    ----------
    q, k, v : ids of Q ([head] query d_k), K ([kv_head] key d_k), V ([kv_head] key d_v)
    past : keys in k that come from a cache, where the caller has put them there
    width : d_k of the scale, where it is not the width of q
    result, symbol : the last step's, where it is not O
    """
    graph = part.graph
    if past is None:
        past = past_keys(part)
        if v is not None:
            k, v = (cached(part, name, new, _CACHED) for name, new in (("K", k), ("V", v)))
    k = _shared(part, q, k, "K")
    v = None if v is None else _shared(part, q, v, "V")
    scores = part.apply(PRODUCT, "scores", q, k, symbol="S", gradient_order=(0, 1), transpose_b=True, why=_SCORES)
    source = _scaled(part, scores, width or graph.axes(q)[-1])
    cap = part.setting("softcap")
    if cap is not None:
        source = part.apply(SOFTCAP, "capped", source, symbol="S_{capped}", cap=cap)
    visible = masks.mask_of(part, scores, past)
    empty = None if visible is None else masks.noted(graph, hidden_rows(visible))
    weights = softmax(
        graph,
        source if visible is None else masks.masked(part, source, visible),
        prefix=part.prefix,
        empty=empty is not None,
        maximum_of=source if part.setting("max_over") == "all" else None,
    )
    if part.setting("average_heads"):
        if len(graph.shape(weights)) != 3:
            raise InputError(
                "average_heads is given, but there are no heads to average. Leave it out, or give several heads."
            )
        part.apply(HEAD_MEAN, "A_mean", weights, symbol=r"A_{mean}")
    if v is None:
        graph.notes.append(Message("V is not given, so the calculation ends with the weights A."))
        return weights
    return part.apply(PRODUCT, result, weights, v, symbol=symbol, why=_OUTPUT)


def past_keys(part: Part) -> int:
    """How many keys a cache holds that go before the new ones; 0 where there is none.

    Raises
    ------
    InputError
        Half a cache.
    """
    missing = [name for name in ("K_past", "V_past") if name not in part]
    if len(missing) == 2:
        return 0
    if missing:
        raise InputError(
            "A cache needs both {first} and {second}; {name} is missing.",
            first=part.named("K_past"),
            second=part.named("V_past"),
            name=part.named(missing[0]),
        )
    shape = part.matrix("K_past").shape
    return shape[-2] if len(shape) > 1 else 0


_CACHED = N_("Keys and values of earlier tokens are not computed again: the cached {rows} come first.")


def cached(part: Part, name: str, new: str, why: str) -> str:
    """What a cache holds of `name`, then the new rows; these alone where there is no cache. Returns the id."""
    if f"{name}_past" not in part:
        return new
    axes = [axis.name for axis in part.graph.axes(new)]
    axes[-2] = "past_key"
    old = part.input(f"{name}_past", axes, symbol=indexed(name, "past"))
    return part.apply(JOIN_ROWS, f"{name}_all", old, new, symbol=indexed(name, "all"), axes=("key",), why=why)


def _shared(part: Part, q: str, step_id: str, name: str) -> str:
    """Repeat heads of keys or values until every query head has one."""
    graph = part.graph
    heads, own = graph.axes(q)[:-2], graph.axes(step_id)[:-2]
    if not heads or heads[0].size == own[0].size:
        return step_id
    group, left = divmod(heads[0].size, own[0].size)
    if left:
        raise ShapeError(
            "{name} has {own} heads and {q} has {heads}: {heads} query heads cannot share {own} heads evenly."
            " Give {name} a number of heads that divides {heads}.",
            name=step_id,
            own=own[0].size,
            q=q,
            heads=heads[0].size,
        )
    return part.apply(REPEAT_KV, f"{name}_shared", step_id, group=group, heads=heads[0].size)


def _scaled(part: Part, scores: str, width: Axis) -> str:
    scale = part.setting("scale", "sqrt")
    if scale == "none" or (scale == "sqrt" and width.size == 1) or (scale != "sqrt" and float(scale.values) == 1.0):
        return scores
    if scale != "sqrt":
        why = Message(
            "Every score is multiplied by the scale that was asked for, {scale}.", scale=f"{float(scale.values):g}"
        )
        return part.apply(SCALE, "scaled", scores, symbol="S_{scaled}", factor=scale, why=why)
    why = Message(
        "A sum of {d} products spreads about √{d} times as wide as one. Dividing by √{d} brings it back,"
        " so that softmax does not put nearly all weight on one key.",
        d=width.size,
    )
    notes = {"label": default_symbol(width.name)}
    root = as_matrix(width.size)
    return part.apply(SCALE, "scaled", scores, symbol="S_{scaled}", root=root, notes=notes, why=why)


# --- attention from Q, K and V, or from tokens ------------------------------------------------------------------------

WEIGHTS = (
    Argument("W_Q", ("d_model", "d_k"), N_("weights that turn a token into its query")),
    Argument("W_K", ("d_model", "d_k"), N_("weights that turn a token into its key")),
    Argument("W_V", ("d_model", "d_v"), N_("weights that turn a token into its value")),
)

_PROJECTED = {
    "Q": N_("Every token's vector times W_Q: what this token is looking for."),
    "K": N_("Every token's vector times W_K: what this token can be matched by."),
    "V": N_("Every token's vector times W_V: what this token hands over."),
}


def self_attend(part: Part, x: str) -> str:
    """Steps Q, K, V from X (token d_model) with W_Q, W_K (d_model d_k), W_V (d_model d_v), then attention."""
    q, k, v = (
        linear(part, x, name, weight.name, weight.axes[1], _PROJECTED[name])
        for name, weight in zip("QKV", WEIGHTS, strict=True)
    )
    return attend(part, q, k, v)


def _attention(part: Part) -> str:
    """Q ([head] query d_k), K ([kv_head] key d_k), V ([kv_head] key d_v) → O ([head] query d_v); without V → A."""
    given = part.inputs
    heads = given["Q"].values.ndim == 3
    same = heads and given["K"].shape[:1] == given["Q"].shape[:1]
    other = ["head" if same else "kv_head"] if heads else []
    q = part.input("Q", [*(["head"] if heads else []), "query", "d_k"])
    row = "new_key" if "K_past" in part or "V_past" in part else "key"
    k = part.input("K", [*other, row, "d_k"])
    if "V" not in part and "V_past" in part:
        raise InputError("V_past is given without V. Give V too, or leave the cache out.")
    return attend(part, q, k, part.input("V", [*other, row, "d_v"]) if "V" in part else None)


def _weighted_values(part: Part) -> str:
    """A ([head] query key), V ([head] key d_v) → O ([head] query d_v)."""
    heads = ["head"] if part.matrix("A").values.ndim == 3 else []
    a = part.input("A", [*heads, "query", "key"], why=N_("The attention weights."))
    v = part.input("V", [*heads, "key", "d_v"])
    why = N_("Each output {row} adds up the {rows} of V, each times its weight; weight j belongs to {row} j.")
    return part.apply(PRODUCT, "O", a, v, why=why)


# --- softmax by itself, from scores on -------------------------------------------------------------------------------


def _softmax(part: Part) -> str:
    """scores ([head] query key) → A ([head] query key)."""
    graph, matrix = part.graph, part.matrix("scores")
    heads = ["head"] if matrix.values.ndim == 3 else []
    why = N_("The scores to turn into weights; −∞ marks a place that is hidden.")
    source = part.input("scores", [*heads, "query", "key"], symbol="S", hidden=True, why=why)
    source = _warmed(part, source)
    visible = masks.mask_of(part, source, 0)
    if visible is not None:
        source = masks.masked(part, source, visible)
    empty = masks.noted(graph, hidden_rows(matrix if visible is None else Matrix(matrix.values + visible.values)))
    subtract = part.setting("subtract", "max")
    shift = None if subtract == "max" else as_matrix(0.0) if subtract == "none" else subtract
    weights = softmax(graph, source, empty=empty is not None, shift=shift)
    if not part.setting("log"):
        return weights
    if empty is not None:
        raise InputError(
            "A row in which nothing is visible has no log-softmax: ln 0 − ln 0. Leave log out, or show it a key."
        )
    return log_softmax(graph, source)


def _warmed(part: Part, source: str) -> str:
    """The scores over the temperature; themselves where it is 1."""
    temperature = part.setting("temperature")
    if temperature is None or float(temperature.values) == 1.0:
        return source
    why = N_(
        "Every score is divided by the temperature. Below 1 the differences grow and one weight takes nearly all; above 1"
        " they shrink and the weights come closer to one another."
    )
    notes = {"label": r"\tau"}
    return part.apply(SCALE, "scaled", source, symbol="S_{scaled}", divisor=temperature, notes=notes, why=why)


# --- why scores are divided by √d_k ------------------------------------------------------------------------------------

# With entries of q and k independent, mean 0 and variance 1, every product q_i k_i has mean 0 and variance 1, and the
# variances of independent numbers add up: Var(q·k) = d_k (Vaswani et al., section 3.2.1, footnote 4).

_QUERIES = Argument("q", ("sample", "d_k"), N_("random queries, one row per sample"))
_KEYS = Argument("k", ("sample", "d_k"), N_("random keys, one row per sample"))


_MEASURED = N_("The measured variance: the mean of the squares, because the mean itself is 0 (up to chance).")


def _dot_variance(part: Part) -> str:
    """q, k (sample d_k) → scaled (sample 1), with the variances before and after; returns the id of scaled."""
    q = part.enter(_QUERIES, N_("Many queries, one per {row}."))
    k = part.enter(_KEYS, N_("Just as many keys, one per {row}."))
    width = part.graph.axes(q)[-1]
    _measure(part, q, k, width)
    _expect(part, width.size)
    return "scaled"


def _measure(part: Part, q: str, k: str, width: Axis) -> None:
    """products, dots, variance, std, scaled, scaled_variance: from the samples."""
    why: Message | str = N_("Each query is multiplied by its own key, entry by entry.")
    part.apply(MULTIPLY, "products", q, k, symbol="P", why=why)
    part.apply(ROW_SUM, "dots", "products", symbol="s", why=N_("Added up along the {row}: one score q·k per sample."))
    part.apply(MEAN_SQUARE, "variance", "dots", symbol=r"\sigma^2", why=_MEASURED)
    part.apply(ROOT, "std", "variance", symbol=r"\sigma")
    root, notes = as_matrix(width.size), {"label": default_symbol(width.name)}
    why = Message("The same scores, divided by √{d}.", d=width.size)
    part.apply(SCALE, "scaled", "dots", symbol="s_{scaled}", root=root, notes=notes, why=why)
    part.apply(MEAN_SQUARE, "scaled_variance", "scaled", symbol=r"\sigma_{scaled}^2", why=_MEASURED)


def _expect(part: Part, width: int) -> None:
    """expected_variance, expected_std, expected_scaled_variance: what theory says."""
    part.graph.bound.setdefault("", Axis("", 1, "unit"))
    why = Message("In theory: the variance of each of the {d} products is 1 · 1 = 1.", d=width)
    ones = Matrix(np.ones((1, width)), np.zeros((1, width), dtype=np.int_))
    part.input("unit", ("", "d_k"), ones, symbol=r"\mathbf{1}", differentiable=False, why=why)
    why = Message("In theory: variances of independent numbers add up, so Var(q·k) = d_k = {d}.", d=width)
    part.apply(ROW_SUM, "expected_variance", "unit", symbol=r"\operatorname{Var}", why=why)
    part.apply(ROOT, "expected_std", "expected_variance", symbol=r"\operatorname{Std}")
    why = Message(
        "In theory: dividing numbers by √{d} divides their variance by {d}, which leaves 1, whatever d_k is.",
        d=width,
    )
    share, symbol = written(("/", ("num", "1"), ("num", str(width)))), r"\operatorname{Var}_{scaled}"
    part.apply(SCALE, "expected_scaled_variance", "expected_variance", symbol=symbol, factor=share, why=why)


# --- Models -----------------------------------------------------------------------------------------------------------

MODELS = (
    Model(
        name="attention",
        text=N_("scaled dot-product attention: scores, softmax, weighted values"),
        arguments=(
            Argument("Q", ("query", "d_k"), N_("queries: what each token is looking for")),
            Argument("K", ("key", "d_k"), N_("keys: what each token can be matched by")),
            Argument(
                "V",
                ("key", "d_v"),
                N_("values: what each token hands over; left out, the weights A are the result"),
                required=False,
            ),
            Argument("K_past", ("past_key", "d_k"), N_("cached keys that go before K"), required=False),
            Argument("V_past", ("past_key", "d_v"), N_("cached values that go before V"), required=False),
        ),
        settings=SETTINGS,
        build=_attention,
    ),
    Model(
        name="self_attention",
        text=N_("self-attention: X times W_Q, W_K, W_V, then attention"),
        arguments=(TOKENS, *WEIGHTS),
        settings=SETTINGS,
        build=lambda part: self_attend(part, part.enter(TOKENS)),
    ),
    Model(
        name="product",
        text=N_("weights times values, O = A V, and its two gradients"),
        arguments=(
            Argument("A", ("query", "key"), N_("weights, one row per query")),
            Argument("V", ("key", "d_v"), N_("values, one row per key")),
        ),
        settings=(),
        build=_weighted_values,
    ),
    Model(
        name="softmax",
        text=N_("scores to weights: subtract the row maximum, e^x, divide by the row sum"),
        arguments=(Argument("scores", ("query", "key"), N_("scores, one row per query; -inf = hidden")),),
        settings=(
            Setting("subtract", "shift", N_("what to take away first: max (the default), none, or a number")),
            Setting("temperature", "positive", N_("what every score is divided by first (default: 1)")),
            *masks.SETTINGS,
            Setting("log", "flag", N_("one step more, log_A: log-softmax, worked out without the weights")),
        ),
        build=_softmax,
    ),
    Model(
        name="dot_variance",
        text=N_("why scores are divided by √d_k: the variance of many dot products q·k, before and after"),
        arguments=(_QUERIES, _KEYS),
        settings=(),
        build=_dot_variance,
    ),
)
