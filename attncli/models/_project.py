"""Queries, keys and values from one array of tokens, and the attention after them."""

from __future__ import annotations

from attncli.core.graph import Graph
from attncli.core.message import N_, Message
from attncli.models import Argument, Given
from attncli.models._attend import attend
from attncli.ops import product

WEIGHTS = (
    Argument("W_Q", ("d_model", "d_k"), N_("weights that turn a token into its query")),
    Argument("W_K", ("d_model", "d_k"), N_("weights that turn a token into its key")),
    Argument("W_V", ("d_model", "d_v"), N_("weights that turn a token into its value")),
)

_WHY = {
    "Q": N_("Every token's vector times W_Q: what this token is looking for."),
    "K": N_("Every token's vector times W_K: what this token can be matched by."),
    "V": N_("Every token's vector times W_V: what this token hands over."),
}


def self_attend(graph: Graph, x: str, given: Given) -> str:
    """Steps Q, K, V from X (token d_model) with W_Q, W_K (d_model d_k), W_V (d_model d_v), then attention."""
    weights = {
        argument.name: graph.input(argument.name, given.inputs[argument.name], argument.axes) for argument in WEIGHTS
    }
    ids = [graph.apply(product.OP, name, x, weights[f"W_{name}"], why=Message(_WHY[name])) for name in "QKV"]
    return attend(graph, ids[0], ids[1], ids[2], given)
