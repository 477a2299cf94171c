"""Multi-head attention: several attentions side by side on slices of the same projections (Vaswani et al., arXiv
1706.03762, section 3.2.2), with keys and values shared by groups of query heads where there are fewer of them
(multi-query, Shazeer, arXiv 1911.02150; grouped-query, Ainslie et al., arXiv 2305.13245)."""

from __future__ import annotations

from attncli.core.graph import Axis, Graph, show_shape
from attncli.core.matrix import Matrix
from attncli.core.message import N_, InputError, Message, ShapeError
from attncli.models.attention import SETTINGS as ATTENTION
from attncli.models.attention import attend, past_keys
from attncli.models.linear import linear
from attncli.models.model import TOKENS, Argument, Given, Model, Setting
from attncli.models.positions import ROTARY, rotated, rotation
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


def multi_head(graph: Graph, x: str, x_kv: str, given: Given, prefix: str = "", out: str = "d_out") -> str:
    """Steps Q, K, V … concat, output for queries from `x` and keys and values from `x_kv`; returns the id of output.

    With `rotary`, queries and keys are turned by their positions before they meet. Across two sequences they are not:
    there is no distance between a place in one and a place in the other.

    Parameters
    ----------
    x, x_kv : ids of arrays (token d_model); the same one for self-attention
    prefix : goes before every id, and before the names of the weights in `given`
    out : the axis of the output's columns

    Raises
    ------
    ShapeError
        Heads that cannot share the columns or each other evenly.
    """
    heads = int(given.setting("heads", 1))
    kv_heads = int(given.setting("kv_heads", heads))
    if heads % kv_heads:
        raise ShapeError(
            "{heads} query heads cannot share {kv_heads} heads of keys and values evenly. Give kv_heads a number that"
            " divides {heads}.",
            heads=heads,
            kv_heads=kv_heads,
        )
    own = {"Q": heads, "K": kv_heads, "V": kv_heads}
    pieces = {}
    for name in "QKV":
        pieces[name] = _projected(graph, x if name == "Q" else x_kv, given, name, own[name], prefix)
        _bind(graph, pieces[name], name, heads, kv_heads, prefix)
    q, k, v = (_split(graph, pieces[name], name, own[name], heads, prefix) for name in "QKV")
    if given.setting("rotary") and x == x_kv:
        q, k = _turned(graph, given, q, k, prefix)
    attended = attend(graph, q, k, v, given, prefix)
    concat = joined(graph, attended, prefix)
    if f"{prefix}W_O" not in given:
        graph.notes.append(Message(N_("W_O is not given, so the joined heads are the result.")))
        return concat
    return output(graph, concat, given, prefix, out)


def joined(graph: Graph, attended: str, prefix: str) -> str:
    """The step concat: outputs of the heads (head query d_v) side by side."""
    head, _, width = graph.axes(attended)
    return graph.apply(
        MERGE_HEADS,
        f"{prefix}concat",
        attended,
        symbol="C",
        heads=head.size,
        width=width.size,
        axes=("heads·d_v",),
        why=joined_why(head.size, width.size),
    )


def joined_why(heads: int, width: int) -> Message | str:
    """Which columns come from which head."""
    if heads == 1:
        return N_("There is one head, so there is nothing to put beside it.")
    if width == 1:
        return N_("The heads' outputs are put side by side, one {column} from each head.")
    if heads == 2:
        return Message(
            N_(
                "The outputs of both heads are put side by side: the first {d} {columns} of every {row} come from head 1, the last {d} from head 2."
            ),
            d=width,
        )
    return Message(
        N_(
            "The heads' outputs are put side by side: in every {row}, {columns} 1 to {d} come from head 1, the next {d} from"
            " head 2, up to head {heads}."
        ),
        d=width,
        heads=heads,
    )


def _projected(graph: Graph, x: str, given: Given, name: str, heads: int, prefix: str) -> str:
    """Q, K or V of all heads: x W, plus a bias where there is one."""
    axis = next(argument.axes[1] for argument in WEIGHTS if argument.name == f"W_{name}")
    weight = f"{prefix}W_{name}"
    evenly(weight, given.inputs[weight], heads, "heads" if name == "Q" else "kv_heads")
    return linear(graph, given, x, f"{prefix}{name}", weight, axis, bias=f"{prefix}b_{name}", why=_PROJECTED[name])


def evenly(step_id: str, matrix: Matrix, heads: int, setting: str = "heads") -> None:
    """Refuse a weight matrix whose columns `heads` cannot share evenly.

    Raises
    ------
    ShapeError
    """
    if matrix.values.ndim == 2 and matrix.shape[1] % heads:
        raise ShapeError(
            "{weight} is {shape}: {heads} heads cannot share {columns} columns evenly. Give {weight} a number of columns"
            " that {heads} divides, or change {setting}.",
            weight=step_id,
            shape=show_shape(matrix.shape),
            heads=heads,
            columns=matrix.shape[1],
            setting=setting,
        )


def _bind(graph: Graph, step_id: str, name: str, heads: int, kv_heads: int, prefix: str) -> None:
    """W_Q sets the width that W_K's heads must have, W_V the rows of W_O: an error there can then name them."""
    columns = graph.axes(step_id)[-1].size
    if name == "Q":
        axis, size = "kv_heads·d_k", columns // heads * kv_heads
    elif name == "V":
        axis, size = "heads·d_v", columns // kv_heads * heads
    else:
        return
    graph.bound.setdefault(prefix + axis, Axis(axis, size, f"{prefix}W_{name}"))


def _split(graph: Graph, step_id: str, name: str, heads: int, of: int, prefix: str) -> str:
    width = graph.axes(step_id)[-1].size // heads
    return graph.apply(
        SPLIT_HEADS,
        f"{prefix}{name}_heads",
        step_id,
        heads=heads,
        width=width,
        axes=("head" if heads == of else "kv_head", "d_v" if name == "V" else "d_k"),
        why=split_why(name, heads, width),
    )


def split_why(name: str, heads: int, width: int) -> Message:
    """Which columns of `name` go to which head."""
    if heads == 1:
        return Message(N_("There is one head, and it takes all {columns} of {name}."), name=name)
    if width == 1:
        return Message(
            N_("Every head takes one {column} of {name}: head 1 the first, head 2 the second, and so on."), name=name
        )
    if heads == 2:
        return Message(
            N_("Head 1 takes the first {d} {columns} of every {row} of {name}, head 2 the last {d}."),
            d=width,
            name=name,
        )
    return Message(
        N_("Head 1 takes {columns} 1 to {d} of every {row} of {name}, head 2 the next {d}, up to head {heads}."),
        d=width,
        name=name,
        heads=heads,
    )


def _turned(graph: Graph, given: Given, q: str, k: str, prefix: str) -> tuple[str, str]:
    """Queries and new keys turned by their positions, counted from the length of the cache, whose keys are turned already."""
    cos, sin = rotation(graph, given, q, prefix, past_keys(given, prefix))
    why = N_(
        "Every head's queries and keys are turned by their positions, so that a score depends on how far apart query and"
        " key stand. Values are not turned: what a token hands over does not depend on its place."
    )
    query = rotated(graph, given, q, cos, sin, f"{prefix}Q_rotated", "Q_{rotated}", why)
    return query, rotated(graph, given, k, cos, sin, f"{prefix}K_rotated", "K_{rotated}", why)


def output(graph: Graph, concat: str, given: Given, prefix: str, out: str = "d_out") -> str:
    """The step output: the joined heads times W_O, plus a bias where there is one."""
    why = N_("W_O mixes what the heads have found: every output number draws on all of them.")
    return linear(
        graph, given, concat, f"{prefix}output", f"{prefix}W_O", out, bias=f"{prefix}b_O", symbol="Y", why=why
    )


def _multi_head(graph: Graph, given: Given) -> str:
    """X (token d_model), perhaps X_kv (key d_kv), W_Q, W_K, W_V, W_O → output (token d_out)."""
    _check_positions(given)
    if "X_kv" not in given:
        x = given.enter(graph, TOKENS)
        return multi_head(graph, x, x, given)
    x = graph.input("X", given.inputs["X"], ("query", "d_model"))
    other = graph.input(
        "X_kv",
        given.inputs["X_kv"],
        ("new_key" if "K_past" in given else "key", "d_kv"),
        why=N_("The other sequence: keys and values come from here, queries from X."),
    )
    return multi_head(graph, x, other, given)


def _check_positions(given: Given) -> None:
    """Distances between two sequences, and settings of a rotation that would turn nothing.

    Raises
    ------
    InputError
    """
    for name in ("rotary", "alibi"):
        if "X_kv" in given and given.setting(name):
            raise InputError(
                "{setting} goes by how far apart tokens of one sequence stand, but keys come from X_kv, another one."
                " Leave {setting} out, or leave X_kv out.",
                setting=name,
            )
    if given.setting("rotary"):
        return
    for setting in ROTARY[1:]:
        if given.setting(setting.name) is not None:
            raise InputError(
                "{setting} is given, but nothing is turned. Add rotary = true, or leave {setting} out.",
                setting=setting.name,
            )


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
