"""Layer normalisation of every row."""

from __future__ import annotations

from attncli.core.graph import Graph
from attncli.core.message import N_
from attncli.models import Argument, Given, Model, _norm


def build(graph: Graph, given: Given) -> str:
    """X (token d), gamma (d), beta (d) → Y (token d)."""
    return _norm.layer_norm(graph, graph.input("X", given.inputs["X"], ("token", "d")), given)


MODEL = Model(
    name="layer_norm",
    text=N_("layer normalisation: each row minus its mean, over its standard deviation, times γ plus β"),
    arguments=(Argument("X", ("token", "d"), N_("the tokens, one row each")), _norm.GAMMA, _norm.BETA),
    settings=_norm.SETTINGS,
    build=build,
)
