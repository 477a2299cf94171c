"""From tokens to attention and back to the embedding table: E, T → X → Q, K, V → O → … → G_E."""

from __future__ import annotations

from attncli.core.graph import Graph
from attncli.core.message import N_
from attncli.models import Given, Model, _attend, _embed
from attncli.models._project import WEIGHTS, self_attend


def build(graph: Graph, given: Given) -> str:
    """E (vocabulary d_model), T (token), W_Q, W_K (d_model d_k), W_V (d_model d_v) → O (token d_v)."""
    return self_attend(graph, _embed.embed(graph, given), given)


MODEL = Model(
    name="embedded_attention",
    text=N_("tokens to embeddings to self-attention, with every gradient back to the table"),
    arguments=(*_embed.ARGUMENTS, *WEIGHTS),
    settings=(*_embed.SETTINGS, *_attend.SETTINGS),
    build=build,
    after=_embed.updated,
)
