"""Where a token stands: angles of positions, and vectors turned by them."""

from __future__ import annotations

from typing import Any

from attncli.core.graph import Graph, Step, show_shape
from attncli.core.matrix import Matrix, as_matrix
from attncli.core.message import N_, InputError, LimitError, Message, ShapeError
from attncli.models import Given, Setting
from attncli.ops import angle, cosine, rotate, sine, sinusoid

#: Angles that are worked out; each is kept as an expression.
MOST_ANGLES = 1 << 17

BASE = Setting("base", "positive", N_("the base of the angles (default: 10000)"))
START = Setting("start", "number", N_("the position of the first row (default: 0)"))
POSITION_SCALE = Setting(
    "position_scale",
    "positive",
    N_("what every position is multiplied by before its angles are taken (default: 1); 1/5 fits five times as many in"),
)
#: Of sines and cosines that are added; in a rotation two columns share one angle.
EXPONENTS = Setting(
    "exponents",
    "choice",
    N_(
        "the exponent of the base: 2i/d with i the pair (pairs, default), 2j/d with j the column (columns), or"
        " i/(d/2 − 1) with i the pair (pairs-minus-one); all counted from 0"
    ),
    ("pairs", "columns", "pairs-minus-one"),
)
PAIRING = Setting(
    "pairing",
    "choice",
    N_("which columns form a pair: adjacent (1 and 2, 3 and 4) or half (1 and d/2 + 1)"),
    ("adjacent", "half"),
)
ROTARY_DIM = Setting("rotary_dim", "count", N_("how many columns, from the left, are rotated (default: all)"), least=2)

#: Of an attention whose queries and keys are turned on the way.
ROTARY = (
    Setting("rotary", "flag", N_("queries and keys are turned by their positions before they meet")),
    BASE,
    PAIRING,
    START,
    POSITION_SCALE,
    ROTARY_DIM,
)


def angles(
    graph: Graph, given: Given, rows: int, width: int, prefix: str = "", past: int = 0, exponents: str = "pairs"
) -> str:
    """The step angle (token pair) for `rows` positions and columns of `width`; returns its id.

    Angles that stand in the graph already (of an earlier layer) are used again, so that they are worked out once.

    Parameters
    ----------
    past : tokens before the first row, which are in a cache
    exponents : see the setting of this name; by "columns", each column has an angle of its own
    """
    pairs = width if exponents == "columns" else (width + 1) // 2
    if rows * pairs > MOST_ANGLES:
        raise LimitError(
            "{rows} positions with {pairs} angles each are too many; the limit is {limit} angles. Take a smaller example.",
            rows=rows,
            pairs=pairs,
            limit=MOST_ANGLES,
        )
    params: dict[str, Any] = {
        "start": _later(given.setting("start", as_matrix(0.0)), past),
        "count": rows,
        "base": given.setting("base", as_matrix(10000.0)),
        "pairs": pairs,
        "width": width,
        "exponents": exponents,
        "position_scale": given.setting("position_scale", as_matrix(1.0)),
    }
    for step in graph.steps.values():
        if step.op is angle.OP and _same(step, params):
            return step.id
    # Sinusoidal positions and rotary heads in one part of a model have angles of their own.
    id = f"{prefix}angle" if f"{prefix}angle" not in graph else f"{prefix}rotary_angle"
    why = Message(_BY_COLUMN) if exponents == "columns" else None
    return graph.apply(angle.OP, id, symbol=r"\theta", why=why, **params)


_BY_COLUMN = N_(
    "Position p gives each {column} j an angle of its own (both are counted from 0), so that a sine and the cosine beside"
    " it turn at different speeds."
)


def _later(start: Matrix, past: int) -> Matrix:
    """The position of the first new row, after `past` cached ones."""
    if not past:
        return start
    (entry,) = start.each()
    number = float(start.values) + past
    if number.is_integer():
        return as_matrix(number)
    return Matrix(as_matrix(number).values, None, (("+", entry, ("num", str(past))),))


def _same(step: Step, params: dict[str, Any]) -> bool:
    """Whether a step's angles are those of these parameters."""
    plain = ("count", "pairs", "width", "exponents")
    return all(step.params[name] == params[name] for name in plain) and all(
        float(step.params[name].values) == float(params[name].values) for name in ("start", "base", "position_scale")
    )


def positions(graph: Graph, given: Given, rows: int, width: int, prefix: str = "", past: int = 0) -> str:
    """The steps angle and PE (token d_model); returns the id of PE. With a cache, positions count from `past`."""
    exponents = given.setting("exponents", "pairs")
    arrangement = given.setting("arrangement", "interleaved")
    if exponents == "columns" and arrangement != "interleaved":
        raise InputError(
            "exponents = columns goes with sine and cosine in turn: with all sines first, the number of a column says nothing"
            " of its pair. Write arrangement = interleaved, or leave exponents out."
        )
    turned = angles(graph, given, rows, width, prefix, past, exponents)
    return graph.apply(sinusoid.OP, f"{prefix}PE", turned, symbol="P", width=width, arrangement=arrangement)


def rotation(graph: Graph, given: Given, x: str, prefix: str = "", past: int = 0) -> tuple[str, str]:
    """The steps angle, cos and sin for the rows of x ([head] token d); returns the ids of cos and sin.

    With a cache, positions count from `past`, its length.

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
    theta = angles(graph, given, rows.size, turned, prefix, past)
    found = {step.op: step.id for step in graph.steps.values() if step.inputs == (theta,)}
    cos = found.get(cosine.OP) or graph.apply(cosine.OP, f"{prefix}cos", theta, symbol=r"\cos\theta")
    return cos, found.get(sine.OP) or graph.apply(sine.OP, f"{prefix}sin", theta, symbol=r"\sin\theta")


def rotated(
    graph: Graph, given: Given, x: str, cos: str, sin: str, id: str, symbol: str, why: Message | None = None
) -> str:
    """The rows of x turned by their positions; returns the id."""
    pairing = given.setting("pairing", "adjacent")
    return graph.apply(rotate.OP, id, x, cos, sin, symbol=symbol, why=why, pairing=pairing)


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
