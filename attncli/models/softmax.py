"""Softmax on its own: start from scores."""

from __future__ import annotations

from attncli.core.graph import Graph
from attncli.core.matrix import Matrix, as_matrix
from attncli.core.message import N_, InputError, Message
from attncli.models import Argument, Given, Model, Setting
from attncli.models._attend import SETTINGS, _empty_note, masked
from attncli.models._mask import mask_of
from attncli.ops import scale
from attncli.ops.softmax import hidden_rows, log_softmax, softmax


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
    source = _warmed(graph, source, given)
    visible = mask_of(graph, source, given, 0)
    if visible is not None:
        source = masked(graph, source, visible, given)
    empty = hidden_rows(matrix if visible is None else Matrix(matrix.values + visible.values))
    if empty is not None:
        graph.notes.append(_empty_note(empty))
    subtract = given.setting("subtract", "max")
    shift = None if subtract == "max" else as_matrix(0.0) if subtract == "none" else subtract
    weights = softmax(graph, source, empty=empty is not None, shift=shift)
    if not given.setting("log"):
        return weights
    if empty is not None:
        raise InputError(
            "A row in which nothing is visible has no log-softmax: ln 0 − ln 0. Leave log out, or show it a key."
        )
    return log_softmax(graph, source)


def _warmed(graph: Graph, source: str, given: Given) -> str:
    """The scores over the temperature; themselves where it is 1."""
    temperature = given.setting("temperature")
    if temperature is None or float(temperature.values) == 1.0:
        return source
    why = N_(
        "Every score is divided by the temperature. Below 1 the differences grow and one weight takes nearly all; above 1"
        " they shrink and the weights come closer to one another."
    )
    return graph.apply(
        scale.OP, "scaled", source, symbol="S_{scaled}", divisor=temperature, label=r"\tau", why=Message(why)
    )


MODEL = Model(
    name="softmax",
    text=N_("scores to weights: subtract the row maximum, e^x, divide by the row sum"),
    arguments=(Argument("scores", ("query", "key"), N_("scores, one row per query; -inf = hidden")),),
    settings=(
        Setting("subtract", "shift", N_("what to take away first: max (the default), none, or a number")),
        Setting("temperature", "positive", N_("what every score is divided by first (default: 1)")),
        *(setting for setting in SETTINGS if setting.name in ("causal", "mask", "keep", "hide")),
        Setting("log", "flag", N_("one step more, log_A: log-softmax, worked out without the weights")),
    ),
    build=build,
)
