"""Scaled dot-product attention, the core every attention model shares.

Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V (Vaswani et al., arXiv 1706.03762, equation 1), with a
soft cap before the mask, a mask before softmax, and a cache of earlier keys and values in front.
"""

from __future__ import annotations

import numpy as np

from attncli.core.graph import Axis, Graph, default_symbol, show_shape
from attncli.core.matrix import BoolArray, Matrix, as_matrix
from attncli.core.message import N_, InputError, Listed, Message, ShapeError
from attncli.models.linear import linear
from attncli.models.masks import mask_of
from attncli.models.model import TOKENS, Argument, Given, Model, Setting
from attncli.ops.elementwise import MASK, SCALE, SOFTCAP
from attncli.ops.layout import HEAD_MEAN, JOIN_ROWS, REPEAT_KV
from attncli.ops.product import PRODUCT
from attncli.ops.softmax import hidden_rows, softmax

SETTINGS = (
    Setting("causal", "flag", N_("a token sees itself and what came before, never what comes after")),
    Setting("mask", "mask", N_("numbers added to the scaled scores: 0 = visible, -inf = hidden")),
    Setting("keep", "booleans", N_("true = this key may be seen")),
    Setting("hide", "booleans", N_("true = this key is hidden")),
    Setting(
        "alibi",
        "slopes",
        N_("true: what is farther away loses, in head h of H by the slope 2^(−8h/H); or the slopes themselves"),
    ),
    Setting("scale", "scale", N_("sqrt: divide by √d_k (the default); none; or a number that multiplies")),
    Setting("softcap", "positive", N_("c: bend scores softly into −c … c, before the mask")),
    Setting("window", "window", N_("[left, right]: how far back and ahead a token sees; -1 = no limit")),
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
_MASK = N_("The mask: 0 where {row} i may look at {column} j, −∞ where it may not.")
_MASK_WITH_DISTANCE = N_(
    "What distance costs: minus the head's slope times the steps from {row} i to {column} j; −∞ where it may not look."
)
_MASKED_WITH_DISTANCE = N_(
    "Every step away from a key takes the head's slope off its score (ALiBi), so far keys get less weight, and no position"
    " has to stand in the vectors. Heads with a small slope look far, those with a large one stay near."
)


def attend(
    graph: Graph,
    q: str,
    k: str,
    v: str | None,
    given: Given,
    prefix: str = "",
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
    past = past_keys(given, prefix) if past is None else past
    if f"{prefix}K_past" in given and v is not None:
        k, v = _with_cache(graph, given, k, v, prefix)
    k = _shared(graph, q, k, "K", prefix)
    v = None if v is None else _shared(graph, q, v, "V", prefix)
    scores = graph.apply(
        PRODUCT, f"{prefix}scores", q, k, symbol="S", gradient_order=(0, 1), transpose_b=True, why=Message(_SCORES)
    )
    source = _scaled(graph, scores, given, prefix, width or graph.axes(q)[-1])
    cap = given.setting("softcap")
    if cap is not None:
        source = graph.apply(SOFTCAP, f"{prefix}capped", source, symbol="S_{capped}", cap=cap)
    visible = mask_of(graph, scores, given, past)
    weights = softmax(
        graph,
        source if visible is None else masked(graph, source, visible, given, prefix),
        prefix=prefix,
        empty=visible is not None and _noted(graph, hidden_rows(visible)),
        maximum_of=source if given.setting("max_over") == "all" else None,
    )
    if given.setting("average_heads"):
        _averaged(graph, weights, prefix)
    if v is None:
        graph.notes.append(Message(N_("V is not given, so the calculation ends with the weights A.")))
        return weights
    return graph.apply(PRODUCT, f"{prefix}{result}", weights, v, symbol=symbol, why=Message(_OUTPUT))


def _averaged(graph: Graph, weights: str, prefix: str) -> None:
    """The step A_mean: the weights averaged over the heads.

    Raises
    ------
    InputError
        There are no heads.
    """
    if len(graph.shape(weights)) != 3:
        raise InputError(
            "average_heads is given, but there are no heads to average. Leave it out, or give several heads."
        )
    graph.apply(HEAD_MEAN, f"{prefix}A_mean", weights, symbol=r"A_{mean}")


def past_keys(given: Given, prefix: str = "") -> int:
    """How many keys a cache holds that go before the new ones; 0 where there is none.

    Raises
    ------
    InputError
        Half a cache.
    """
    names = [f"{prefix}{name}_past" for name in "KV"]
    missing = [name for name in names if name not in given]
    if len(missing) == len(names):
        return 0
    if missing:
        raise InputError(
            "A cache needs both {first} and {second}; {name} is missing.",
            first=names[0],
            second=names[1],
            name=missing[0],
        )
    shape = given.inputs[names[0]].shape
    return shape[-2] if len(shape) > 1 else 0


def _with_cache(graph: Graph, given: Given, k: str, v: str, prefix: str) -> tuple[str, str]:
    ids = []
    for name, new in (("K", k), ("V", v)):
        axes = [axis.name for axis in graph.axes(new)]
        axes[-2] = "past_key"
        old = graph.input(f"{prefix}{name}_past", given.inputs[f"{prefix}{name}_past"], axes)
        ids.append(
            graph.apply(
                JOIN_ROWS,
                f"{prefix}{name}_all",
                old,
                new,
                axes=("key",),
                why=N_("Keys and values of earlier tokens are not computed again: the cached {rows} come first."),
            )
        )
    return ids[0], ids[1]


def _shared(graph: Graph, q: str, step_id: str, name: str, prefix: str) -> str:
    """Repeat heads of keys or values until every query head has one."""
    heads, own = graph.axes(q)[:-2], graph.axes(step_id)[:-2]
    if len(heads) != len(own):
        raise ShapeError(
            "{q} is {q_shape} and {name} is {shape}: give both a head axis, or neither.",
            q=q,
            q_shape=show_shape(graph.shape(q)),
            name=step_id,
            shape=show_shape(graph.shape(step_id)),
        )
    if not heads or heads[0].size == own[0].size:
        return step_id
    if own[0].size == 0 or heads[0].size % own[0].size:
        raise ShapeError(
            "{name} has {own} heads and {q} has {heads}: {heads} query heads cannot share {own} heads evenly."
            " Give {name} a number of heads that divides {heads}.",
            name=step_id,
            own=own[0].size,
            q=q,
            heads=heads[0].size,
        )
    return graph.apply(
        REPEAT_KV, f"{prefix}{name}_shared", step_id, group=heads[0].size // own[0].size, heads=heads[0].size
    )


def _scaled(graph: Graph, scores: str, given: Given, prefix: str, width: Axis) -> str:
    kind = given.setting("scale", "sqrt")
    if kind == "none" or (kind == "sqrt" and width.size == 1) or (kind != "sqrt" and float(kind.values) == 1.0):
        return scores
    if kind == "sqrt":
        return graph.apply(
            SCALE,
            f"{prefix}scaled",
            scores,
            symbol="S_{scaled}",
            root=as_matrix(width.size),
            notes={"label": default_symbol(width.name)},
            why=Message(
                N_(
                    "A sum of {d} products spreads about √{d} times as wide as one. Dividing by √{d} brings it back,"
                    " so that softmax does not put nearly all weight on one key."
                ),
                d=width.size,
            ),
        )
    return graph.apply(
        SCALE,
        f"{prefix}scaled",
        scores,
        symbol="S_{scaled}",
        factor=kind,
        why=Message(
            N_("Every score is multiplied by the scale that was asked for, {scale}."), scale=f"{float(kind.values):g}"
        ),
    )


def masked(graph: Graph, source: str, visible: Matrix, given: Given, prefix: str = "") -> str:
    """The scores with the mask M added, which has as many axes as it was given with."""
    far = bool(given.setting("alibi"))
    step_id = graph.input(
        f"{prefix}M",
        visible,
        [axis.name for axis in graph.axes(source)][-visible.values.ndim :],
        symbol="M",
        differentiable=False,
        hidden=True,
        why=Message(_MASK_WITH_DISTANCE if far else _MASK),
    )
    why = Message(_MASKED_WITH_DISTANCE) if far else None
    return graph.apply(MASK, f"{prefix}masked", source, step_id, symbol="S_{masked}", why=why)


def _noted(graph: Graph, empty: BoolArray | None) -> bool:
    """Whether there are rows in which nothing is visible; a note says so."""
    if empty is not None:
        graph.notes.append(empty_note(empty))
    return empty is not None


def empty_note(empty: BoolArray) -> Message:
    """Which rows see nothing, and what that means for their weights."""
    rows = sorted({int(index[-2]) + 1 for index in np.argwhere(empty)})
    return Message(
        N_(
            "Nothing at all is visible in {row} {which}. The bare formula would give 0/0 there (NaN in PyTorch's plain softmax;"
            " other frameworks spread the weight evenly). Here its weights are 0, so it outputs 0 and passes no gradient."
        ),
        which=Listed(rows),
    )


# --- Models -----------------------------------------------------------------------------------------------------------

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


def self_attend(graph: Graph, x: str, given: Given) -> str:
    """Steps Q, K, V from X (token d_model) with W_Q, W_K (d_model d_k), W_V (d_model d_v), then attention."""
    q, k, v = (
        linear(graph, given, x, weight.name[-1], weight.name, weight.axes[1], why=_PROJECTED[weight.name[-1]])
        for weight in WEIGHTS
    )
    return attend(graph, q, k, v, given)


def _attention(graph: Graph, given: Given) -> str:
    """Q ([head] query d_k), K ([kv_head] key d_k), V ([kv_head] key d_v) → O ([head] query d_v); without V → A."""
    heads = given.inputs["Q"].values.ndim == 3
    same = heads and given.inputs["K"].shape[:1] == given.inputs["Q"].shape[:1]
    other = ["head" if same else "kv_head"] if heads else []
    q = graph.input("Q", given.inputs["Q"], [*(["head"] if heads else []), "query", "d_k"])
    row = "new_key" if "K_past" in given or "V_past" in given else "key"
    k = graph.input("K", given.inputs["K"], [*other, row, "d_k"])
    if "V" not in given and "V_past" in given:
        raise InputError("V_past is given without V. Give V too, or leave the cache out.")
    v = graph.input("V", given.inputs["V"], [*other, row, "d_v"]) if "V" in given else None
    return attend(graph, q, k, v, given)


def _weighted_values(graph: Graph, given: Given) -> str:
    """A ([head] query key), V ([head] key d_v) → O ([head] query d_v)."""
    heads = ["head"] if given.inputs["A"].values.ndim == 3 else []
    a = graph.input("A", given.inputs["A"], [*heads, "query", "key"], why=N_("The attention weights."))
    v = graph.input("V", given.inputs["V"], [*heads, "key", "d_v"])
    why = N_("Each output {row} adds up the {rows} of V, each times its weight; weight j belongs to {row} j.")
    return graph.apply(PRODUCT, "O", a, v, why=Message(why))


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
        build=lambda graph, given: self_attend(graph, given.enter(graph, TOKENS), given),
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
)
