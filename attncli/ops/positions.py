"""Where a token stands: angles, their sines and cosines, the position code, and pairs of columns that are rotated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attncli.arithmetic import Arithmetic, Indices, Value
from attncli.core.graph import Graph, Op, Params, Step
from attncli.core.matrix import EXACT, Expression, Matrix
from attncli.core.message import N_
from attncli.core.terms import Index, Term, number
from attncli.ops.elementwise import TO_BOTH, size, sum_of_two
from attncli.ops.layout import joined

# --- angles -----------------------------------------------------------------------------------------------------------


def positional_angles(
    start: Matrix, count: int, base: Matrix, exponents: Sequence[int], over: int, position_scale: Matrix | None = None
) -> Matrix:
    """Row p: (start + p) · position_scale / base^(e/over) for every exponent e.

    They are numbers that were written down, so that every number system has them in its own way.
    """
    rows = [float(start.values) + p for p in range(count)]
    times = 1.0 if position_scale is None else float(position_scale.values)
    divisors = float(base.values) ** (np.array(exponents, dtype=np.float64) / over)
    values = np.array(rows)[:, None] * times / divisors
    (base_entry,), (start_entry,) = base.each(), start.each()
    below = [_power(base_entry, e, over) for e in exponents]
    entries: list[Expression] = []
    for p, row in enumerate(rows):
        above: Expression = ("num", str(int(row))) if row.is_integer() else ("+", start_entry, ("num", str(p)))
        if position_scale is not None and times != 1:
            above = ("*", above, *position_scale.each())
        entries.extend(above if power is None else ("/", above, power) for power in below)
    return Matrix(values, np.full(values.shape, EXACT), tuple(entries))


def _power(base: Expression, exponent: int, over: int) -> Expression | None:
    """base^(exponent/over); None where that is 1."""
    if exponent == 0:
        return None
    if exponent == over:
        return base
    return ("^", base, ("/", ("num", str(exponent)), ("num", str(over))))


def usual_exponents(params: Params) -> tuple[list[int], int]:
    """The exponents of a step of angles, as whole numbers over one: 2i/d, 2j/d or i/(d/2 − 1)."""
    count: int = params["pairs"]
    if params["exponents"] == "pairs-minus-one":
        return list(range(count)), max(count - 1, 1)
    return list(range(0, 2 * count, 2)), params["width"]


def _angles(
    xp: Arithmetic,
    *,
    start: Matrix,
    count: int,
    base: Matrix,
    pairs: int,
    width: int,
    exponents: str,
    position_scale: Matrix,
) -> Value:
    """(start + p) · position_scale / base^exponent for row p and pair (or column) i, as (count pairs)."""
    powers, over = usual_exponents({"pairs": pairs, "width": width, "exponents": exponents})
    return xp.constant(positional_angles(start, count, base, powers, over, position_scale))


#: What stands above b, by the exponents chosen: its numerator and its denominator.
_EXPONENTS = {"pairs": ("2i", "d"), "columns": ("2j", "d"), "pairs-minus-one": ("i", "(d/2 - 1)")}


def _is_scaled(params: Params) -> bool:
    return size(params, "position_scale") != 1


def _angle_formula(params: Params, columns: bool) -> str:
    above = r"s\,p" if _is_scaled(params) else "p"
    return rf"\frac{{{above}}}{{b^{{{'/'.join(_EXPONENTS[params['exponents']])}}}}}"


def _angle_numbers(params: Params) -> str:
    _, over = usual_exponents(params)
    above = rf"{size(params, 'position_scale'):g}\,p" if _is_scaled(params) else "p"
    exponent = f"{_EXPONENTS[params['exponents']][0]}/{over}"
    return rf"\frac{{{above}}}{{{size(params, 'base'):g}^{{{exponent}}}}}"


def _angle_terms(step: Step, index: Index) -> Term:
    p, i = index
    params = step.params
    powers, over = usual_exponents(params)
    position = number(size(params, "start") + p)
    if _is_scaled(params):
        position = Term("product", position, number(size(params, "position_scale")))
    exponent = Term("quotient", number(powers[i]), number(over))
    return Term("quotient", position, Term("power", number(size(params, "base")), exponent))


#: p/b^(2i/d) (Vaswani et al., arXiv 1706.03762, section 3.5). Other exponents that were published: i/(d/2 − 1) of
#: Tensor2Tensor and fairseq; 2j/d with j the column.
ANGLE = Op(
    name="angle",
    compute=_angles,
    axes="-> =token:count =pair:pairs",
    formula=_angle_formula,
    numbers=_angle_numbers,
    terms=_angle_terms,
    why=N_(
        "Position p gives each pair of {columns} i its own angle (both are counted from 0): the first pair turns fast,"
        " every later one more slowly."
    ),
)
SINE = Op("sine", "i j -> i j", lambda xp, a: xp.sin(a), r"\sin #1", N_("The sine of every angle."))
COSINE = Op("cosine", "i j -> i j", lambda xp, a: xp.cos(a), r"\cos #1", N_("The cosine of every angle."))


# --- the position code ------------------------------------------------------------------------------------------------


def columns_of(xp: Arithmetic, a: Value, places: Indices) -> Value:
    """These columns of an array, in this order."""
    return xp.swapaxes(xp.take(xp.swapaxes(a, -1, -2), places), -1, -2)


def _sinusoid(xp: Arithmetic, a: Value, *, width: int, arrangement: str) -> Value:
    """sin and cos of a (n pairs), as (n width): in turn, or all sines first; of a (n width), each column of its own."""
    both = xp.concatenate([xp.sin(a), xp.cos(a)], -1)
    return columns_of(xp, both, _order(width, a.shape[-1], arrangement))


def _order(width: int, pairs: int, arrangement: str) -> Indices:
    """For every column, its place in the sines followed by the cosines."""
    column = np.arange(width)
    if arrangement == "concatenated":
        return column
    return (column if pairs == width else column // 2) + (column % 2) * pairs


def _sinusoid_formula(params: Params, columns: bool) -> str:
    if params["arrangement"] == "concatenated":
        between = r"\\" if columns else "&"
        return rf"\begin{{bmatrix}}\sin(#1){between} \cos(#1)\end{{bmatrix}}"
    return r"\sin(#1), \cos(#1), \ldots"


#: Vaswani et al., arXiv 1706.03762, section 3.5.
SINUSOID = Op(
    name="sinusoid",
    compute=_sinusoid,
    axes="n p -> n =d_model:width",
    formula=_sinusoid_formula,
    why=N_(
        "Each angle gives two numbers, its sine and its cosine, like the hands of a clock: together they say where a hand"
        " stands, and moving on by k positions turns each hand by its own fixed angle, wherever one starts."
    ),
)
ADD_POSITIONS = sum_of_two(
    "add_positions",
    N_(
        "Attention by itself does not see the order of the tokens. What a token is, plus where it stands, tells it both."
    ),
    TO_BOTH,
    TO_BOTH,
)


# --- rotation ---------------------------------------------------------------------------------------------------------


def _rotate(xp: Arithmetic, a: Value, cos: Value, sin: Value, *, pairing: str, reverse: bool = False) -> Value:
    """Pair i of every row of a (… n d), rotated by the angle of cos and sin (n pairs); columns without a pair stay."""
    pairs = cos.shape[-1]
    x, y = (columns_of(xp, a, places) for places in _places(pairs, pairing))
    x_cos, y_sin = xp.multiply(x, cos), xp.multiply(y, sin)
    x_sin, y_cos = xp.multiply(x, sin), xp.multiply(y, cos)
    if reverse:
        rotated = [xp.add(x_cos, y_sin), xp.subtract(y_cos, x_sin)]
    else:
        rotated = [xp.subtract(x_cos, y_sin), xp.add(y_cos, x_sin)]
    whole = columns_of(xp, xp.concatenate(rotated, -1), np.argsort(np.concatenate(_places(pairs, pairing))))
    if 2 * pairs == a.shape[-1]:
        return whole
    return joined(xp, whole, xp.slice(a, -1, 2 * pairs, a.shape[-1]), -1)


def _places(pairs: int, pairing: str) -> tuple[Indices, Indices]:
    """The columns of the first and of the second number of every pair."""
    each = np.arange(pairs)
    return (each, each + pairs) if pairing == "half" else (2 * each, 2 * each + 1)


def _rotate_formula(params: Params, columns: bool) -> str:
    angle = r"-\theta" if params.get("reverse") else r"\theta"
    return rf"R_{{{angle}}} \, #1 \ (#2, #3)"


def _rotate_back(graph: Graph, step: Step, upstream: str, target: str) -> None:
    """A rotation is undone by turning back, and that is its transpose."""
    back = not step.params.get("reverse", False)
    why = N_("The gradient is turned back by the same angle.")
    graph.apply(ROTATE, target, upstream, *step.inputs[1:], pairing=step.params["pairing"], reverse=back, why=why)


#: Rotary position embedding (Su et al., arXiv 2104.09864, eq. 34).
ROTATE = Op(
    name="rotate",
    compute=_rotate,
    axes="n d, n p, n p -> n d",
    formula=_rotate_formula,
    why=N_(
        "Each pair (x, y) is turned by its angle: (x cos θ − y sin θ, x sin θ + y cos θ). Its length does not change."
    ),
    backward=(_rotate_back, None, None),
)
