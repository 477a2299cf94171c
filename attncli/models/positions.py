"""The sinusoidal position code."""

from __future__ import annotations

from attncli.core.graph import Graph
from attncli.core.matrix import as_matrix
from attncli.core.message import N_
from attncli.models import Given, Model, Setting, _positions


def build(graph: Graph, given: Given) -> str:
    """→ PE (token d_model)."""
    count = _positions.needed(given, "n")
    code = _positions.positions(graph, given, count, _positions.needed(given, "d_model"))
    first = float(given.setting("start", as_matrix(0.0)).values)
    # Positions are counted from 0, so that t1 would be a misleading name for the first of them.
    graph.labels["token"] = tuple(f"p={first + place:g}" for place in range(count))
    return code


MODEL = Model(
    name="positions",
    text=N_("sinusoidal positions: sines and cosines that tell each token where it stands"),
    arguments=(),
    settings=(
        Setting("n", "count", N_("how many positions")),
        Setting("d_model", "count", N_("how many columns")),
        _positions.BASE,
        _positions.START,
        _positions.POSITION_SCALE,
        _positions.EXPONENTS,
        Setting(
            "arrangement",
            "choice",
            N_("sine and cosine in turn (interleaved), or all sines first (concatenated)"),
            ("interleaved", "concatenated"),
        ),
    ),
    build=build,
)
