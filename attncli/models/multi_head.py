"""Multi-head, multi-query and grouped-query attention, for self-attention and cross-attention."""

from __future__ import annotations

from attncli.core.graph import Graph
from attncli.core.message import N_, InputError, Message
from attncli.models import Argument, Given, Model
from attncli.models._heads import CACHE, SETTINGS, WEIGHTS, multi_head
from attncli.models._positions import ROTARY


def build(graph: Graph, given: Given) -> str:
    """X (token d_model), perhaps X_kv (key d_kv), W_Q, W_K, W_V, W_O → output (token d_out)."""
    _check_positions(given)
    if "X_kv" not in given:
        x = graph.input("X", given.inputs["X"], ("token", "d_model"))
        return multi_head(graph, x, x, given)
    x = graph.input("X", given.inputs["X"], ("query", "d_model"))
    other = graph.input(
        "X_kv",
        given.inputs["X_kv"],
        ("new_key" if "K_past" in given else "key", "d_kv"),
        why=Message(N_("The other sequence: keys and values come from here, queries from X.")),
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


MODEL = Model(
    name="multi_head",
    text=N_("multi-head attention: heads side by side, shared keys and values (MQA, GQA), output projection"),
    arguments=(
        Argument("X", ("token", "d_model"), N_("the tokens, one row each")),
        Argument("X_kv", ("key", "d_kv"), N_("another sequence that keys and values come from"), required=False),
        *(weight.changed(required=False) if weight.name == "W_O" else weight for weight in WEIGHTS),
        *CACHE,
    ),
    settings=SETTINGS,
    build=build,
)
