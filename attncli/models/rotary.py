"""Rotary positions: pairs of columns turned by the position; with keys beside the queries, their scores."""

from __future__ import annotations

from attncli.core.graph import Graph
from attncli.message import N_, Message
from attncli.models import Argument, Given, Model, _positions
from attncli.ops import product


def build(graph: Graph, given: Given) -> str:
    """X ([head] token d) → rotated; with K ([head] token d) on to scores ([head] token token)."""
    heads = ["head"] if given.inputs["X"].values.ndim == 3 else []
    x = graph.input("X", given.inputs["X"], [*heads, "token", "d"])
    keys = graph.input("K", given.inputs["K"], [*heads, "token", "d"]) if "K" in given else None
    cos, sin = _positions.rotation(graph, given, x)
    queries = _positions.rotated(graph, given, x, cos, sin, "rotated", r"X_{rotated}")
    if keys is None:
        return queries
    turned = _positions.rotated(graph, given, keys, cos, sin, "K_rotated", r"K_{rotated}")
    graph.notes.append(
        Message(
            N_(
                "A query turned by its position meets a key turned by its own: what is left in their score is the distance"
                " between them. Start both elsewhere, and every score stays the same."
            )
        )
    )
    return graph.apply(
        product.OP,
        "scores",
        queries,
        turned,
        symbol="S",
        first=(0, 1),
        transpose_b=True,
        why=Message(
            N_(
                "Compare every rotated query with every rotated key: of the positions, only the "
                "distance between the two still matters."
            )
        ),
    )


MODEL = Model(
    name="rotary",
    text=N_("rotary positions: each pair of columns turned by an angle that grows with the position"),
    arguments=(
        Argument("X", ("token", "d"), N_("the queries (or whatever is turned), one row per position")),
        Argument("K", ("token", "d"), N_("keys at the same positions: adds their scores"), required=False),
    ),
    settings=(
        _positions.BASE,
        _positions.PAIRING,
        _positions.START,
        _positions.ROTARY_DIM,
    ),
    build=build,
)
