"""Where a token stands: angles of positions, and vectors turned by them."""

from __future__ import annotations

from attncli.graph import Graph, show_shape
from attncli.matrix import Matrix, as_matrix
from attncli.message import N_, InputError, LimitError, ShapeError
from attncli.models import Given, Setting
from attncli.ops import angle, cosine, rotate, sine, sinusoid

#: Angles that are worked out; each is kept as an expression.
MOST_ANGLES = 1 << 17

BASE = Setting("base", "positive", N_("the base of the angles (10000 where nothing is said)"))
START = Setting("start", "number", N_("the position of the first row (0 where nothing is said)"))
PAIRING = Setting(
    "pairing",
    "choice",
    N_("which columns form a pair: adjacent (1 and 2, 3 and 4) or half (1 and d/2 + 1)"),
    ("adjacent", "half"),
)


def angles(graph: Graph, given: Given, rows: int, width: int, prefix: str = "") -> str:
    """The step angle (token pair) for `rows` positions and columns of `width`; returns its id."""
    pairs = (width + 1) // 2
    if rows * pairs > MOST_ANGLES:
        raise LimitError(
            "{rows} positions with {pairs} angles each are too many; the limit is {limit} angles. Take a smaller example.",
            rows=rows,
            pairs=pairs,
            limit=MOST_ANGLES,
        )
    base: Matrix = given.setting("base", as_matrix(10000.0))
    start: Matrix = given.setting("start", as_matrix(0.0))
    return graph.apply(
        angle.OP,
        f"{prefix}angle",
        symbol=r"\theta",
        start=start,
        count=rows,
        base=base,
        pairs=pairs,
        width=width,
    )


def positions(graph: Graph, given: Given, rows: int, width: int, prefix: str = "") -> str:
    """The steps angle and PE (token d_model); returns the id of PE."""
    turned = angles(graph, given, rows, width, prefix)
    arrangement = given.setting("arrangement", "interleaved")
    return graph.apply(sinusoid.OP, f"{prefix}PE", turned, symbol="P", width=width, arrangement=arrangement)


def rotation(graph: Graph, given: Given, x: str, prefix: str = "") -> tuple[str, str]:
    """The steps angle, cos and sin for the rows of x ([head] token d); returns the ids of cos and sin.

    Raises
    ------
    ShapeError
        Columns that do not come in pairs.
    """
    *_, rows, width = graph.axes(x)
    turned = int(given.setting("rotary_dim", width.size))
    if turned % 2 or turned > width.size:
        raise ShapeError(
            "{name} is {shape}: rotary turns pairs of columns, and {count} columns cannot be paired. Give {name} an even"
            " number of columns, or set rotary_dim to an even number up to {most}.",
            name=x,
            shape=show_shape(graph.shape(x)),
            count=turned,
            most=width.size,
        )
    theta = angles(graph, given, rows.size, turned, prefix)
    cos = graph.apply(cosine.OP, f"{prefix}cos", theta, symbol=r"\cos\theta")
    return cos, graph.apply(sine.OP, f"{prefix}sin", theta, symbol=r"\sin\theta")


def rotated(graph: Graph, given: Given, x: str, cos: str, sin: str, id: str, symbol: str) -> str:
    """The rows of x turned by their positions; returns the id."""
    return graph.apply(rotate.OP, id, x, cos, sin, symbol=symbol, pairing=given.setting("pairing", "adjacent"))


def needed(given: Given, name: str) -> int:
    """A setting without which nothing can be worked out.

    Raises
    ------
    InputError
        It is missing.
    """
    value = given.setting(name)
    if value is None:
        raise InputError("The setting {name} is missing. Give it like this: --set {name}=4", name=name)
    return int(value)
