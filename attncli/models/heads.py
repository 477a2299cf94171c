"""Multi-head attention: several attentions side by side on slices of the same projections (Vaswani et al., arXiv
1706.03762, section 3.2.2), with keys and values shared by groups of query heads where there are fewer of them
(multi-query, Shazeer, arXiv 1911.02150; grouped-query, Ainslie et al., arXiv 2305.13245)."""

from __future__ import annotations

from attncli.core.axes import Axis, show_shape
from attncli.core.message import N_, InputError, Message, ShapeError
from attncli.models.attention import SETTINGS as ATTENTION
from attncli.models.attention import attend, past_keys
from attncli.models.layers import linear
from attncli.models.model import TOKENS, Argument, Model, Part, Setting, indexed
from attncli.models.positions import ROTARY, refuse_rotation, rotated, rotation
from attncli.ops.layout import HEADS_WIDTH, MERGE_HEADS, SPLIT_HEADS

WEIGHTS = (
    Argument("W_Q", ("d_model", HEADS_WIDTH), N_("weights of the queries, the heads side by side")),
    Argument("W_K", ("d_model", "kv_heads·d_k"), N_("weights of the keys, the heads side by side")),
    Argument("W_V", ("d_model", "kv_heads·d_v"), N_("weights of the values, the heads side by side")),
    Argument("W_O", ("heads·d_v", "d_out"), N_("weights that mix the joined heads into the output")),
    Argument("b_Q", (HEADS_WIDTH,), N_("bias of the queries"), required=False),
    Argument("b_K", ("kv_heads·d_k",), N_("bias of the keys"), required=False),
    Argument("b_V", ("kv_heads·d_v",), N_("bias of the values"), required=False),
    Argument("b_O", ("d_out",), N_("bias of the output"), required=False),
)

CACHE = (
    Argument("K_past", ("kv_head", "past_key", "d_k"), N_("cached keys that go before K, by head"), required=False),
    Argument("V_past", ("kv_head", "past_key", "d_v"), N_("cached values that go before V, by head"), required=False),
)

SETTINGS = (
    Setting("heads", "count", N_("query heads (default: 1)")),
    Setting("kv_heads", "count", N_("heads of keys and values: as many as heads (MHA), 1 (MQA), or between (GQA)")),
    *ATTENTION,
    *ROTARY,
)

_PROJECTED = {
    "Q": N_("Every token's vector times W_Q: the queries of all heads side by side."),
    "K": N_("Every token's vector times W_K: the keys of all heads side by side."),
    "V": N_("Every token's vector times W_V: the values of all heads side by side."),
}


def multi_head(part: Part, x: str, x_kv: str, out: str = "d_out") -> str:
    """Steps Q, K, V … concat, output for queries from `x` and keys and values from `x_kv`; returns the id of output.

    With `rotary`, queries and keys are turned by their positions before they meet. Across two sequences they are not:
    there is no distance between a place in one and a place in the other.

    Parameters
    ----------
    x, x_kv : ids of arrays (token d_model); the same one for self-attention
    out : the axis of the output's columns

    Raises
    ------
    ShapeError
        Heads that cannot share the columns or each other evenly.
    """
    heads = int(part.setting("heads", 1))
    kv_heads = int(part.setting("kv_heads", heads))
    if heads % kv_heads:
        raise ShapeError(
            "{heads} query heads cannot share {kv_heads} heads of keys and values evenly. Give kv_heads a number that"
            " divides {heads}.",
            heads=heads,
            kv_heads=kv_heads,
        )
    whole = {"Q": _projected(part, x, "Q", heads, "heads")}
    # W_Q sets the width that W_K's heads must have, W_V the rows of W_O: an error there can then name them.
    _bind(part, "kv_heads·d_k", whole["Q"], heads, kv_heads, "W_Q")
    whole |= {name: _projected(part, x_kv, name, kv_heads, "kv_heads") for name in "KV"}
    _bind(part, "heads·d_v", whole["V"], kv_heads, heads, "W_V")
    own = {"Q": heads, "K": kv_heads, "V": kv_heads}
    q, k, v = (split(part, whole[name], name, "d_v" if name == "V" else "d_k", own[name], heads) for name in "QKV")
    if part.setting("rotary") and x == x_kv:
        q, k = _rotated(part, q, k)
    attended = attend(part, q, k, v)
    concat = joined(part, attended)
    if "W_O" in part:
        return output(part, concat, out)
    part.graph.notes.append(Message("W_O is not given, so the joined heads are the result."))
    return concat


def joined(part: Part, attended: str) -> str:
    """The step concat: outputs of the heads (head query d_v) side by side."""
    head, _, width = part.graph.axes(attended)
    why = joined_why(head.size, width.size)
    return part.apply(
        MERGE_HEADS, "concat", attended, symbol="C", heads=head.size, width=width.size, axes=("heads·d_v",), why=why
    )


def joined_why(heads: int, width: int) -> Message | str:
    """Which columns come from which head."""
    if heads == 1:
        return N_("There is one head, so there is nothing to put beside it.")
    if width == 1:
        return N_("The heads' outputs are put side by side, one {column} from each head.")
    if heads == 2:
        return Message(
            "The outputs of both heads are put side by side: the first {d} {columns} of every {row} come from head 1, the last {d} from head 2.",
            d=width,
        )
    return Message(
        "The heads' outputs are put side by side: in every {row}, {columns} 1 to {d} come from head 1, the next {d} from"
        " head 2, up to head {heads}.",
        d=width,
        heads=heads,
    )


def _projected(part: Part, x: str, name: str, heads: int, setting: str) -> str:
    """Q, K or V of all heads: x W, plus a bias where there is one."""
    weight = next(argument for argument in WEIGHTS if argument.name == f"W_{name}")
    evenly(part, weight.name, heads, setting)
    return linear(part, x, name, weight.name, weight.axes[1], _PROJECTED[name])


def evenly(part: Part, weight: str, heads: int, setting: str = "heads") -> None:
    """Refuse a weight matrix whose columns `heads` cannot share evenly."""
    matrix = part.matrix(weight)
    if matrix.values.ndim == 2 and matrix.shape[1] % heads:
        raise ShapeError(
            "{weight} is {shape}: {heads} heads cannot share {columns} columns evenly. Give {weight} a number of columns"
            " that {heads} divides, or change {setting}.",
            weight=part.named(weight),
            shape=show_shape(matrix.shape),
            heads=heads,
            columns=matrix.shape[1],
            setting=setting,
        )


def _bind(part: Part, axis: str, projected: str, heads: int, others: int, weight: str) -> None:
    """The axis of `others` heads that are as wide as the `heads` of what was projected."""
    size = part.graph.axes(projected)[-1].size // heads * others
    part.graph.bound.setdefault(part.named(axis), Axis(axis, size, part.named(weight)))


def split(part: Part, source: str, name: str, width: str, heads: int, of: int) -> str:
    """The step NAME_heads: the columns of `source` shared out among `heads`; returns its id.

    Parameters
    ----------
    width : the axis of a head's columns
    of : query heads; fewer than these are heads of keys and values
    """
    each = part.graph.axes(source)[-1].size // heads
    axes = ("head" if heads == of else "kv_head", width)
    why = _split_why(source.removeprefix(part.prefix), heads, each)
    symbol = indexed(name, "heads")
    return part.apply(SPLIT_HEADS, f"{name}_heads", source, symbol=symbol, heads=heads, width=each, axes=axes, why=why)


def _split_why(name: str, heads: int, width: int) -> Message:
    """Which columns of `name` go to which head."""
    if heads == 1:
        return Message("There is one head, and it takes all {columns} of {name}.", name=name)
    if width == 1:
        return Message(
            "Every head takes one {column} of {name}: head 1 the first, head 2 the second, and so on.", name=name
        )
    if heads == 2:
        return Message(
            "Head 1 takes the first {d} {columns} of every {row} of {name}, head 2 the last {d}.",
            d=width,
            name=name,
        )
    return Message(
        "Head 1 takes {columns} 1 to {d} of every {row} of {name}, head 2 the next {d}, up to head {heads}.",
        d=width,
        name=name,
        heads=heads,
    )


def _rotated(part: Part, q: str, k: str) -> tuple[str, str]:
    """Queries and new keys turned by their positions, counted from the length of the cache, whose keys are turned already."""
    cos, sin = rotation(part, q, past_keys(part))
    why = N_(
        "Every head's queries and keys are turned by their positions, so that a score depends on how far apart query and"
        " key stand. Values are not turned: what a token hands over does not depend on its place."
    )
    return rotated(part, q, cos, sin, "Q", why), rotated(part, k, cos, sin, "K", why)


def output(part: Part, concat: str, out: str = "d_out") -> str:
    """The step output: the joined heads times W_O, plus a bias where there is one."""
    why = N_("W_O mixes what the heads have found: every output number draws on all of them.")
    return linear(part, concat, "output", "W_O", out, why, "Y")


def _multi_head(part: Part) -> str:
    """X (token d_model), perhaps X_kv (key d_kv), W_Q, W_K, W_V, W_O → output (token d_out)."""
    for name in ("rotary", "alibi"):
        if "X_kv" in part and part.setting(name):
            raise InputError(
                "{setting} goes by how far apart tokens of one sequence stand, but keys come from X_kv, another one."
                " Leave {setting} out, or leave X_kv out.",
                setting=name,
            )
    if not part.setting("rotary"):
        refuse_rotation(part, "rotary = true")
    if "X_kv" not in part:
        x = part.enter(TOKENS)
        return multi_head(part, x, x)
    x = part.input("X", ("query", "d_model"))
    why = N_("The other sequence: keys and values come from here, queries from X.")
    other = part.input("X_kv", ("new_key" if "K_past" in part else "key", "d_kv"), why=why)
    return multi_head(part, x, other)


MODELS = (
    Model(
        name="multi_head",
        text=N_("multi-head attention: heads side by side, shared keys and values (MQA, GQA), output projection"),
        arguments=(
            TOKENS,
            Argument("X_kv", ("key", "d_kv"), N_("another sequence that keys and values come from"), required=False),
            *(weight.changed(required=False) if weight.name == "W_O" else weight for weight in WEIGHTS),
            *CACHE,
        ),
        settings=SETTINGS,
        build=_multi_head,
    ),
)
