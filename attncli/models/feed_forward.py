"""The feed-forward sublayer (Vaswani et al., arXiv 1706.03762, equation 2; SwiGLU: Shazeer, arXiv 2002.05202, eq. 6)."""

from __future__ import annotations

from attncli.core.graph import Graph
from attncli.core.message import N_
from attncli.models import Argument, Given, Model, _forward


def build(graph: Graph, given: Given) -> str:
    """X (token d_model), W_1 (d_model d_ff), W_2 (d_ff d_out) → Y (token d_out)."""
    return _forward.feed_forward(graph, graph.input("X", given.inputs["X"], ("token", "d_model")), given)


MODEL = Model(
    name="feed_forward",
    text=N_("the feed-forward sublayer: two matrices with ReLU, GELU or a SwiGLU gate between them"),
    arguments=(Argument("X", ("token", "d_model"), N_("the tokens, one row each")), *_forward.WEIGHTS),
    settings=_forward.SETTINGS,
    build=build,
)
