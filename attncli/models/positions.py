"""Where a token stands: angles of positions, sinusoidal codes, and vectors turned by their angles (rotary)."""

from __future__ import annotations

from attncli.arithmetic.expression import written
from attncli.core.axes import show_shape
from attncli.core.matrix import Matrix, as_matrix
from attncli.core.message import N_, InputError, LimitError, Message, ShapeError
from attncli.models.model import Argument, Model, Part, Setting, indexed
from attncli.ops.positions import ANGLE, COSINE, ROTATE, SINE, SINUSOID
from attncli.ops.product import PRODUCT

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


def _angles(part: Part, rows: int, width: int, past: int, exponents: str = "pairs") -> str:
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
    params: dict[str, int | str | Matrix] = {
        "start": _later(part.setting("start", as_matrix(0.0)), past),
        "count": rows,
        "base": part.setting("base", as_matrix(10000.0)),
        "pairs": pairs,
        "width": width,
        "exponents": exponents,
        "position_scale": part.setting("position_scale", as_matrix(1.0)),
    }
    for step in part.graph.steps.values():
        if step.op is ANGLE and all(_number(step.params[name]) == _number(value) for name, value in params.items()):
            return step.id
    # Sinusoidal positions and rotary heads in one part of a model have angles of their own.
    name = "angle" if part.named("angle") not in part.graph else "rotary_angle"
    why = _BY_COLUMN if exponents == "columns" else None
    return part.apply(ANGLE, name, symbol=r"\theta", why=why, **params)


_BY_COLUMN = N_(
    "Position p gives each {column} j an angle of its own (both are counted from 0), so that a sine and the cosine beside"
    " it turn at different speeds."
)


def _later(start: Matrix, past: int) -> Matrix:
    """The position of the first new row, after `past` cached ones."""
    if not past:
        return start
    number = float(start.values) + past
    return as_matrix(number) if number.is_integer() else written(("+", *start.each(), ("num", str(past))))


def _number(value: int | str | Matrix) -> float | str:
    return float(value.values) if isinstance(value, Matrix) else value


def positions(part: Part, rows: int, width: int, past: int = 0) -> str:
    """The steps angle and PE (token d_model); returns the id of PE. With a cache, positions count from `past`."""
    exponents = part.setting("exponents", "pairs")
    arrangement = part.setting("arrangement", "interleaved")
    if exponents == "columns" and arrangement != "interleaved":
        raise InputError(
            "exponents = columns goes with sine and cosine in turn: with all sines first, the number of a column says nothing"
            " of its pair. Write arrangement = interleaved, or leave exponents out."
        )
    theta = _angles(part, rows, width, past, exponents)
    return part.apply(SINUSOID, "PE", theta, symbol="P", width=width, arrangement=arrangement)


def rotation(part: Part, x: str, past: int = 0) -> tuple[str, str]:
    """The steps angle, cos and sin for the rows of x ([head] token d); returns the ids of cos and sin.

    With a cache, positions count from `past`, its length.

    Raises
    ------
    ShapeError
        Columns that do not come in pairs.
    """
    graph = part.graph
    *_, rows, width = graph.axes(x)
    rotary_width = int(part.setting("rotary_dim", width.size))
    if rotary_width % 2 or rotary_width > width.size:
        raise ShapeError(
            "{name} is {shape}: rotary turns pairs of columns, and {count} columns cannot be paired. Give {name} an even"
            " number of columns, or set rotary_dim to an even number up to {most}.",
            name=x,
            shape=show_shape(graph.shape(x)),
            count=rotary_width,
            most=width.size,
        )
    theta = _angles(part, rows.size, rotary_width, past)
    found = {step.op: step.id for step in graph.steps.values() if step.inputs == (theta,)}
    cos = found.get(COSINE) or part.apply(COSINE, "cos", theta, symbol=r"\cos\theta")
    return cos, found.get(SINE) or part.apply(SINE, "sin", theta, symbol=r"\sin\theta")


def rotated(part: Part, x: str, cos: str, sin: str, of: str, why: str | None = None, name: str = "") -> str:
    """The rows of x, which is called `of`, turned by their positions: the step Q_rotated of Q; returns its id."""
    pairing, symbol = part.setting("pairing", "adjacent"), indexed(of, "rotated")
    return part.apply(ROTATE, name or f"{of}_rotated", x, cos, sin, symbol=symbol, why=why, pairing=pairing)


def refuse_rotation(part: Part, missing: Message | str) -> None:
    """Refuse settings of a rotation where nothing is turned, because `missing` is."""
    for setting in ROTARY[1:]:
        if part.setting(setting.name) is not None:
            raise InputError(
                "{setting} is given, but nothing is turned. Add {missing}, or leave {setting} out.",
                setting=setting.name,
                missing=missing,
            )


# --- Models -----------------------------------------------------------------------------------------------------------


def _needed(part: Part, name: str) -> int:
    """A setting without which nothing can be worked out."""
    value = part.setting(name)
    if value is None:
        raise InputError("The setting {name} is missing. Give it like this: --set {name}=4", name=name)
    return int(value)


def _positions(part: Part) -> str:
    """→ PE (token d_model)."""
    count = _needed(part, "n")
    code = positions(part, count, _needed(part, "d_model"))
    first = float(part.setting("start", as_matrix(0.0)).values)
    # Positions are counted from 0, so that t1 would be a misleading name for the first of them.
    part.graph.labels["token"] = tuple(f"p={first + place:g}" for place in range(count))
    return code


def _rotary(part: Part) -> str:
    """X ([head] token d) → rotated; with K ([head] token d) on to scores ([head] token token)."""
    axes = [*(["head"] if part.matrix("X").values.ndim == 3 else []), "token", "d"]
    x = part.input("X", axes)
    keys = part.input("K", axes) if "K" in part else None
    cos, sin = _waves(part, x)
    queries = rotated(part, x, cos, sin, "X", name="rotated")
    if keys is None:
        return queries
    rotated_keys = rotated(part, keys, cos, sin, "K")
    note = N_(
        "A query turned by its position meets a key turned by its own: what is left in their score is the distance"
        " between them. Start both elsewhere, and every score stays the same."
    )
    part.graph.notes.append(Message(note))
    why = N_(
        "Compare every rotated query with every rotated key: of the positions, only the "
        "distance between the two still matters."
    )
    return part.apply(
        PRODUCT, "scores", queries, rotated_keys, symbol="S", gradient_order=(0, 1), transpose_b=True, why=why
    )


#: Angles of one's own, or their cosines and sines from a table.
_OWN = {"angle": r"\theta", "cos": r"\cos\theta", "sin": r"\sin\theta"}


def _waves(part: Part, x: str) -> tuple[str, str]:
    """The ids of the cosines and sines (token pair): of the positions, of angles of one's own, or themselves given."""
    own = [name for name in _OWN if name in part]
    if not own:
        return rotation(part, x)
    if own not in (["angle"], ["cos", "sin"]):
        raise InputError(
            "{names}: give either the angles (angle), or both their cosines and sines (cos and sin).",
            names=", ".join(own),
        )
    graph = part.graph
    width = graph.axes(x)[-1]
    for name in own:
        part.input(name, ("token", "pair"), symbol=_OWN[name], differentiable=False)
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
        cos = part.apply(COSINE, "cos", "angle", symbol=r"\cos\theta")
        return cos, part.apply(SINE, "sin", "angle", symbol=r"\sin\theta")
    return "cos", "sin"


MODELS = (
    Model(
        name="positions",
        text=N_("sinusoidal positions: sines and cosines that tell each token where it stands"),
        arguments=(),
        settings=(
            Setting("n", "count", N_("how many positions")),
            Setting("d_model", "count", N_("how many columns")),
            BASE,
            START,
            POSITION_SCALE,
            EXPONENTS,
            Setting(
                "arrangement",
                "choice",
                N_("sine and cosine in turn (interleaved), or all sines first (concatenated)"),
                ("interleaved", "concatenated"),
            ),
        ),
        build=_positions,
    ),
    Model(
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
        settings=(BASE, PAIRING, START, POSITION_SCALE, ROTARY_DIM),
        build=_rotary,
    ),
)
