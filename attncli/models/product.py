"""The last step of attention on its own: O = A V."""

from __future__ import annotations

from attncli.core.graph import Graph
from attncli.core.message import N_, Message
from attncli.models import Argument, Given, Model
from attncli.ops import product


def build(graph: Graph, given: Given) -> str:
    """A ([head] query key), V ([head] key d_v) → O ([head] query d_v)."""
    heads = ["head"] if given.inputs["A"].values.ndim == 3 else []
    a = graph.input("A", given.inputs["A"], [*heads, "query", "key"], why=Message(N_("The attention weights.")))
    v = graph.input("V", given.inputs["V"], [*heads, "key", "d_v"])
    return graph.apply(
        product.OP,
        "O",
        a,
        v,
        why=Message(
            N_("Each output {row} adds up the {rows} of V, each times its weight; weight j belongs to {row} j.")
        ),
    )


MODEL = Model(
    name="product",
    text=N_("weights times values, O = A V, and its two gradients"),
    arguments=(
        Argument("A", ("query", "key"), N_("weights, one row per query")),
        Argument("V", ("key", "d_v"), N_("values, one row per key")),
    ),
    settings=(),
    build=build,
)
