"""The sinusoidal position code."""

from __future__ import annotations

from attncli.graph import Graph
from attncli.message import N_
from attncli.models import Given, Model, Setting, _positions


def build(graph: Graph, given: Given) -> str:
    """→ PE (token d_model)."""
    return _positions.positions(graph, given, _positions.needed(given, "n"), _positions.needed(given, "d_model"))


MODEL = Model(
    name="positions",
    text=N_("sinusoidal positions: sines and cosines that tell each token where it stands"),
    arguments=(),
    settings=(
        Setting("n", "count", N_("how many positions")),
        Setting("d_model", "count", N_("how many columns")),
        _positions.BASE,
        _positions.START,
        Setting(
            "arrangement",
            "choice",
            N_("sine and cosine in turn (interleaved), or all sines first (concatenated)"),
            ("interleaved", "concatenated"),
        ),
    ),
    build=build,
)
