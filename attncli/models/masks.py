"""What may not be seen: the masks of an attention, added up to one, and what distance costs (ALiBi)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from attncli.core.axes import show_shape
from attncli.core.graph import Graph
from attncli.core.matrix import BoolArray, Expression, FloatArray, Matrix
from attncli.core.message import N_, Listed, Message, ShapeError
from attncli.core.record import Record
from attncli.models.model import Part, Setting
from attncli.ops.elementwise import MASK

SETTINGS = (
    Setting("causal", "flag", N_("a token sees itself and what came before, never what comes after")),
    Setting("mask", "mask", N_("numbers added to the scaled scores: 0 = visible, -inf = hidden")),
    Setting("keep", "booleans", N_("true = this key may be seen")),
    Setting("hide", "booleans", N_("true = this key is hidden")),
)
ALIBI = Setting(
    "alibi",
    "slopes",
    N_("true: what is farther away loses, in head h of H by the slope 2^(−8h/H); or the slopes themselves"),
)
WINDOW = Setting("window", "window", N_("[left, right]: how far back and ahead a token sees; -1 = no limit"))

#: Numbers, or what is true of a place.
MaskArray = TypeVar("MaskArray", FloatArray, BoolArray)

_MASK = N_("The mask: 0 where {row} i may look at {column} j, −∞ where it may not.")
_MASK_WITH_DISTANCE = N_(
    "What distance costs: minus the head's slope times the steps from {row} i to {column} j; −∞ where it may not look."
)
_MASKED_WITH_DISTANCE = N_(
    "Every step away from a key takes the head's slope off its score (ALiBi), so far keys get less weight, and no position"
    " has to stand in the vectors. Heads with a small slope look far, those with a large one stay near."
)


def mask_of(part: Part, scores: str, past: int) -> Matrix | None:
    """All masks that were asked for, added up to one: ([head] query key), or None.

    Parameters
    ----------
    past : keys that come before the first query, in a cache
    """
    shape = part.graph.shape(scores)
    hidden = _hidden(part, shape, past)
    added: Matrix | None = part.setting("mask")
    if added is not None:
        values = _fitted(added.values, shape, part.names.get("mask", "mask"))
        if values.shape != added.shape:
            written = None if added.entries is None else tuple(_spread(added, values.shape))
            added = Matrix(values, None, written)
    bias = _bias(part, shape, past)
    if bias is not None:
        added = bias if added is None else _sum(added, bias)
    if hidden is None or (added is not None and not hidden.any()):
        return added
    return _over(hidden, added)


def masked(part: Part, source: str, visible: Matrix) -> str:
    """The scores with the mask M added, which has as many axes as it was given with."""
    far = bool(part.setting("alibi"))
    axes = [axis.name for axis in part.graph.axes(source)][-visible.values.ndim :]
    why = _MASK_WITH_DISTANCE if far else _MASK
    mask = part.input("M", axes, visible, symbol="M", differentiable=False, hidden=True, why=why)
    return part.apply(MASK, "masked", source, mask, symbol="S_{masked}", why=_MASKED_WITH_DISTANCE if far else None)


def noted(graph: Graph, empty: BoolArray | None) -> BoolArray | None:
    """Rows in which nothing is visible, as they are; a note says which, and what that means for their weights."""
    if empty is not None:
        rows = sorted({int(index[-2]) + 1 for index in np.argwhere(empty)})
        graph.notes.append(Message(_EMPTY, which=Listed(rows)))
    return empty


_EMPTY = N_(
    "Nothing at all is visible in {row} {which}. The bare formula would give 0/0 there (NaN in PyTorch's plain softmax;"
    " other frameworks spread the weight evenly). Here its weights are 0, so it outputs 0 and passes no gradient."
)


def _hidden(part: Part, shape: Sequence[int], past: int) -> BoolArray | None:
    """What may not be seen, from causal, window, keep and hide; None where none of them is asked for."""
    n, m = shape[-2:]
    i, j = np.arange(n)[:, None] + past, np.arange(m)[None, :]
    hidden: BoolArray = np.zeros((n, m), dtype=np.bool_)
    asked = False
    if part.setting("causal"):
        hidden, asked = hidden | (j > i), True
    window = part.setting("window")
    if window is not None and window != (-1, -1):
        left, right = window
        if left >= 0:
            hidden = hidden | (j < i - left)
        if right >= 0:
            hidden = hidden | (j > i + right)
        asked = True
    for name in ("keep", "hide"):
        marks = part.setting(name)
        if marks is not None:
            marks = _fitted(marks, shape, part.names.get(name, name))
            hidden, asked = hidden | (~marks if name == "keep" else marks), True
    return hidden if asked else None


def _fitted(marks: MaskArray, shape: Sequence[int], name: str) -> MaskArray:
    """Marks as (query key) or (head query key); a single row counts for every query."""
    if marks.ndim == 1:
        marks = marks[None, :]
    allowed = [tuple(shape[-2:]), tuple(shape), (1, shape[-1])]
    if marks.shape not in allowed:
        raise ShapeError(
            "{name} is {shape}, but the scores are {scores}. Give {name} one row per query and one column per key ({expected}),"
            " or a single row of {keys} that holds for every query.",
            name=name,
            shape=show_shape(marks.shape),
            scores=show_shape(shape),
            expected=show_shape(shape[-2:]),
            keys=shape[-1],
        )
    return np.broadcast_to(marks, np.broadcast_shapes(marks.shape, shape[-2:])).copy()


# --- ALiBi ------------------------------------------------------------------------------------------------------------


class Slope(Record):
    """What one step of distance costs: the number, and how it is written where a float64 is not all of it."""

    value: float
    entry: Expression | None = None


def slopes_of(heads: int) -> list[Slope]:
    """Slopes of the paper (Press et al., arXiv 2108.12409, section 3): 2^(−8h/H) for head h of H = 1, 2, 4, 8 …

    For another number of heads: those of the power of two below, then every other one of the power above (the
    authors' code, attention_with_linear_biases, `get_slopes`).
    """
    below = 1 << (heads.bit_length() - 1)
    slopes = [_power(8 * h, below) for h in range(1, below + 1)]
    slopes += [_power(8 * h, 2 * below) for h in range(1, 2 * below + 1, 2)]
    return slopes[:heads]


def _power(over: int, under: int) -> Slope:
    """2^−(over/under)."""
    value = 2.0 ** -(over / under)
    if over % under == 0:
        return Slope(value)
    common = math.gcd(over, under)
    written = ("/", ("num", str(over // common)), ("num", str(under // common)))
    return Slope(value, ("^", ("num", "2"), ("neg", written)))


def _bias(part: Part, shape: Sequence[int], past: int) -> Matrix | None:
    """−slope · |i − j| for every head, ([head] query key); None where it is not asked for.

    The paper's heads look back only, at distances i − j; where a head also looks ahead, what is ahead costs as much.
    """
    asked = part.setting("alibi")
    if asked is None or asked is False:
        return None
    heads = shape[0] if len(shape) > 2 else 1
    slopes = slopes_of(heads) if asked is True else _given_slopes(asked, heads)
    n, m = shape[-2:]
    steps = np.abs(np.arange(n)[:, None] + past - np.arange(m)[None, :])
    values = np.where(steps == 0, 0.0, -np.array([slope.value for slope in slopes])[:, None, None] * steps)
    entries: tuple[Expression, ...] | None = None
    if any(slope.entry is not None for slope in slopes):
        entries = tuple(_times(slope, int(step)) for slope in slopes for step in steps.flat)
    return Matrix(values.reshape(shape), None, entries)


def _given_slopes(asked: Matrix, heads: int) -> list[Slope]:
    if asked.values.size != heads:
        raise ShapeError(
            "alibi has {count} slopes, but there are {heads} heads. Give one for each head, or write alibi = true for the"
            " usual ones.",
            count=asked.values.size,
            heads=heads,
        )
    return [Slope(float(value), entry) for value, entry in zip(asked.values.flat, asked.each(), strict=True)]


def _times(slope: Slope, steps: int) -> Expression:
    if steps == 0:
        return ("num", "0")
    entry = slope.entry or ("num", repr(slope.value))
    return ("neg", entry if steps == 1 else ("*", entry, ("num", str(steps))))


_NEVER: Expression = ("num", "-inf")


def _sum(one: Matrix, other: Matrix) -> Matrix:
    """Two masks added up; −∞ stays −∞."""
    values: FloatArray = one.values + other.values
    if one.entries is None and other.entries is None:
        return Matrix(values)
    parts = (_spread(matrix, values.shape) for matrix in (one, other))
    entries = tuple(
        _NEVER if np.isneginf(value) else ("+", a, b) for value, a, b in zip(values.flat, *parts, strict=True)
    )
    return Matrix(values, None, entries)


def _spread(matrix: Matrix, shape: Sequence[int]) -> list[Expression]:
    """The expressions of a matrix, repeated for every query or head of a larger one."""
    each = list(matrix.each())
    return each * (int(np.prod(shape)) // max(len(each), 1))


def _over(hidden: BoolArray, added: Matrix | None) -> Matrix:
    """−∞ where hidden, else what is added."""
    if added is None:
        return Matrix(np.where(hidden, -np.inf, 0.0))
    values = np.where(hidden, -np.inf, added.values)
    if added.entries is None:
        return Matrix(values)
    entries = zip(values.flat, _spread(added, values.shape), strict=True)
    return Matrix(values, None, tuple(_NEVER if np.isneginf(value) else entry for value, entry in entries))
