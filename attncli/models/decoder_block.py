"""A block of the Transformer's decoder: causal self-attention, attention to the encoder's output, feed-forward."""

from __future__ import annotations

from attncli.core.graph import Graph
from attncli.core.message import N_, Message
from attncli.models import Argument, Given, Model, _block


def build(graph: Graph, given: Given) -> str:
    """X (token d_model), memory (source d_memory) and the weights → the block's output (token d_model)."""
    x = graph.input("X", given.inputs["X"], ("token", "d_model"))
    why = Message(N_("What the encoder made of the source: cross-attention takes its keys and values from here."))
    memory = graph.input("memory", given.inputs["memory"], ("source", "d_memory"), symbol="M", why=why)
    return _block.decoder(graph, x, memory, given)


MODEL = Model(
    name="decoder_block",
    text=N_(
        "a block of the decoder: causal self-attention, cross-attention and feed-forward, each with residual and norm"
    ),
    arguments=(
        Argument("X", ("token", "d_model"), N_("the tokens, one row each")),
        Argument("memory", ("source", "d_memory"), N_("the encoder's output, one row for each source token")),
        *_block.decoder_arguments(),
    ),
    settings=(*(s for s in _block.SETTINGS if s.name != "causal"), *_block.CROSS_SETTINGS),
    build=build,
)
