"""Self-attention: queries, keys and values all come from the same tokens."""

from __future__ import annotations

from attncli.core.graph import Graph
from attncli.core.message import N_
from attncli.models import Argument, Given, Model
from attncli.models._attend import SETTINGS
from attncli.models._project import WEIGHTS, self_attend


def build(graph: Graph, given: Given) -> str:
    """X (token d_model), W_Q, W_K (d_model d_k), W_V (d_model d_v) → O (token d_v)."""
    x = graph.input("X", given.inputs["X"], ("token", "d_model"))
    return self_attend(graph, x, given)


MODEL = Model(
    name="self_attention",
    text=N_("self-attention: X times W_Q, W_K, W_V, then attention"),
    arguments=(Argument("X", ("token", "d_model"), N_("the tokens, one row each")), *WEIGHTS),
    settings=SETTINGS,
    build=build,
)
