"""RMS normalisation of every row."""

from __future__ import annotations

from attncli.core.graph import Graph
from attncli.core.message import N_
from attncli.models import Argument, Given, Model, _norm


def build(graph: Graph, given: Given) -> str:
    """X (token d), gamma (d) → Y (token d)."""
    return _norm.rms_norm(graph, graph.input("X", given.inputs["X"], ("token", "d")), given)


MODEL = Model(
    name="rms_norm",
    text=N_("RMS normalisation: each row over its root mean square, times γ; the mean stays"),
    arguments=(Argument("X", ("token", "d"), N_("the tokens, one row each")), _norm.GAMMA),
    settings=_norm.SETTINGS,
    build=build,
)
