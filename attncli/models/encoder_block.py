"""A block of the Transformer's encoder: self-attention and feed-forward, each with residual and norm."""

from __future__ import annotations

from attncli.core.graph import Graph
from attncli.core.message import N_
from attncli.models import Argument, Given, Model, _block


def build(graph: Graph, given: Given) -> str:
    """X (token d_model) and the weights of self., norm1., ffn., norm2. → the block's output (token d_model)."""
    return _block.encoder(graph, graph.input("X", given.inputs["X"], ("token", "d_model")), given)


MODEL = Model(
    name="encoder_block",
    text=N_("a block of the encoder: self-attention and feed-forward, each with a residual and a norm"),
    arguments=(Argument("X", ("token", "d_model"), N_("the tokens, one row each")), *_block.encoder_arguments()),
    settings=_block.SETTINGS,
    build=build,
)
