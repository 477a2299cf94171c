"""A residual connection by itself: X + F."""

from __future__ import annotations

from attncli.core.graph import Graph
from attncli.core.message import N_, Message
from attncli.models import Argument, Given, Model
from attncli.ops import residual


def build(graph: Graph, given: Given) -> str:
    """X (token d_model), F (token d_model) → Y (token d_model)."""
    x = graph.input("X", given.inputs["X"], ("token", "d_model"))
    why = Message(N_("What the sublayer made of X."))
    f = graph.input("F", given.inputs["F"], ("token", "d_model"), why=why)
    return graph.apply(residual.OP, "Y", x, f)


MODEL = Model(
    name="residual",
    text=N_("a residual connection: what went into a sublayer, plus what came out"),
    arguments=(
        Argument("X", ("token", "d_model"), N_("what went in, one row per token")),
        Argument("F", ("token", "d_model"), N_("what came out, of the same shape")),
    ),
    settings=(),
    build=build,
)
