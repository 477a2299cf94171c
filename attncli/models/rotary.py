"""Rotary positions: pairs of columns turned by the position; with keys beside the queries, their scores."""

from __future__ import annotations

from attncli.core.graph import Graph, show_shape
from attncli.core.message import N_, InputError, Message, ShapeError
from attncli.models import Argument, Given, Model, _positions
from attncli.ops import cosine, product, sine


def build(graph: Graph, given: Given) -> str:
    """X ([head] token d) → rotated; with K ([head] token d) on to scores ([head] token token)."""
    heads = ["head"] if given.inputs["X"].values.ndim == 3 else []
    x = graph.input("X", given.inputs["X"], [*heads, "token", "d"])
    keys = graph.input("K", given.inputs["K"], [*heads, "token", "d"]) if "K" in given else None
    cos, sin = _waves(graph, given, x)
    queries = _positions.rotated(graph, given, x, cos, sin, "rotated", r"X_{rotated}")
    if keys is None:
        return queries
    turned = _positions.rotated(graph, given, keys, cos, sin, "K_rotated", r"K_{rotated}")
    graph.notes.append(
        Message(
            N_(
                "A query turned by its position meets a key turned by its own: what is left in their score is the distance"
                " between them. Start both elsewhere, and every score stays the same."
            )
        )
    )
    return graph.apply(
        product.OP,
        "scores",
        queries,
        turned,
        symbol="S",
        first=(0, 1),
        transpose_b=True,
        why=Message(
            N_(
                "Compare every rotated query with every rotated key: of the positions, only the "
                "distance between the two still matters."
            )
        ),
    )


#: Angles of one's own, or their cosines and sines from a table.
_OWN = ("angle", "cos", "sin")


def _waves(graph: Graph, given: Given, x: str) -> tuple[str, str]:
    """The ids of the cosines and sines (token pair): of the positions, of angles of one's own, or themselves given."""
    own = [name for name in _OWN if name in given]
    if not own:
        return _positions.rotation(graph, given, x)
    if own not in (["angle"], ["cos", "sin"]):
        raise InputError(
            "{names}: give either the angles (angle), or both their cosines and sines (cos and sin).",
            names=", ".join(own),
        )
    width = graph.axes(x)[-1]
    for name in own:
        graph.input(name, given.inputs[name], ("token", "pair"), symbol=_SYMBOLS[name], differentiable=False)
        count, pairs = graph.shape(name)
        if 2 * pairs > width.size:
            raise ShapeError(
                "{name} is {shape}: {pairs} pairs need {columns} columns, but {x} has {width}. Give a row for each row of {x}"
                " and at most half as many columns.",
                name=name,
                shape=show_shape((count, pairs)),
                pairs=pairs,
                columns=2 * pairs,
                x=x,
                width=width.size,
            )
    if own == ["angle"]:
        cos = graph.apply(cosine.OP, "cos", "angle", symbol=r"\cos\theta")
        return cos, graph.apply(sine.OP, "sin", "angle", symbol=r"\sin\theta")
    return "cos", "sin"


_SYMBOLS = {"angle": r"\theta", "cos": r"\cos\theta", "sin": r"\sin\theta"}

MODEL = Model(
    name="rotary",
    text=N_("rotary positions: each pair of columns turned by an angle that grows with the position"),
    arguments=(
        Argument("X", ("token", "d"), N_("the queries (or whatever is turned), one row per position")),
        Argument("K", ("token", "d"), N_("keys at the same positions: adds their scores"), required=False),
        Argument(
            "angle", ("token", "pair"), N_("angles of your own, in place of those of the positions"), required=False
        ),
        Argument("cos", ("token", "pair"), N_("cosines from a table, together with sin"), required=False),
        Argument("sin", ("token", "pair"), N_("sines from a table, together with cos"), required=False),
    ),
    settings=(
        _positions.BASE,
        _positions.PAIRING,
        _positions.START,
        _positions.POSITION_SCALE,
        _positions.ROTARY_DIM,
    ),
    build=build,
)
