"""Softmax on its own: start from scores."""

from __future__ import annotations

from attncli.core.graph import Graph
from attncli.matrix import as_matrix
from attncli.message import N_, Message
from attncli.models import Argument, Given, Model, Setting
from attncli.models._attend import _empty_note
from attncli.softmax import hidden_rows, softmax


def build(graph: Graph, given: Given) -> str:
    """scores ([head] query key) → A ([head] query key)."""
    matrix = given.inputs["scores"]
    heads = ["head"] if matrix.values.ndim == 3 else []
    source = graph.input(
        "scores",
        matrix,
        [*heads, "query", "key"],
        symbol="S",
        hidden=True,
        why=Message(N_("The scores to turn into weights; −∞ marks a place that is hidden.")),
    )
    empty = hidden_rows(matrix)
    if empty is not None:
        graph.notes.append(_empty_note(empty))
    subtract = given.setting("subtract", "max")
    shift = None if subtract == "max" else as_matrix(0.0) if subtract == "none" else subtract
    return softmax(graph, source, empty=empty is not None, shift=shift)


MODEL = Model(
    name="softmax",
    text=N_("scores to weights: subtract the row maximum, e^x, divide by the row sum"),
    arguments=(Argument("scores", ("query", "key"), N_("scores, one row per query; -inf = hidden")),),
    settings=(Setting("subtract", "shift", N_("what to take away first: max (the default), none, or a number")),),
    build=build,
)
