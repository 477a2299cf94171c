"""What may not be seen: the masks of an attention, added up to one, and what distance costs (ALiBi)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TypeVar

import numpy as np

from attncli.arithmetic.expression import FLOATS, evaluate
from attncli.core.axes import show_shape
from attncli.core.graph import Graph
from attncli.core.matrix import BoolArray, Expression, FloatArray, Matrix
from attncli.core.message import N_, Listed, Message, ShapeError
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
        added = added if values.shape == added.shape else _made_of(values, _same, added)
    bias = _bias(part, shape, past)
    if bias is not None:
        added = bias if added is None else _made_of(added.values + bias.values, _sum, added, bias)
    if hidden is None or (added is not None and not hidden.any()):
        return added
    if added is None:
        return Matrix(np.where(hidden, -np.inf, 0.0))
    return _made_of(np.where(hidden, -np.inf, added.values), _same, added)


def _made_of(values: FloatArray, entry: Callable[..., Expression], *parts: Matrix) -> Matrix:
    """These numbers, with the expression that a cell comes to from those of the parts; −∞ is −∞.

    A part with fewer rows or heads is repeated for every one.
    """
    if all(part.entries is None for part in parts):
        return Matrix(values)
    each = (list(part.each()) * (values.size // part.values.size) for part in parts)
    cells = zip(values.flat, *each, strict=True)
    return Matrix(values, None, tuple(_NEVER if np.isneginf(value) else entry(*cell) for value, *cell in cells))


_NEVER: Expression = ("num", "-inf")


def _same(a: Expression) -> Expression:
    return a


def _sum(a: Expression, b: Expression) -> Expression:
    return ("+", a, b)


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
    left, right = part.setting("window") or (-1, -1)
    hidden: list[BoolArray] = []
    if part.setting("causal"):
        hidden.append(j > i)
    if left >= 0:
        hidden.append(j < i - left)
    if right >= 0:
        hidden.append(j > i + right)
    for name in ("keep", "hide"):
        marks = part.setting(name)
        if marks is not None:
            marks = _fitted(marks, shape, part.names.get(name, name))
            hidden.append(~marks if name == "keep" else marks)
    return reduce(np.logical_or, hidden) if hidden else None


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


def slopes_of(heads: int) -> list[Expression]:
    """Slopes of the paper (Press et al., arXiv 2108.12409, section 3): 2^(−8h/H) for head h of H = 1, 2, 4, 8 …

    For another number of heads: those of the power of two below, then every other one of the power above (the
    authors' code, attention_with_linear_biases, `get_slopes`).
    """
    below = 1 << (heads.bit_length() - 1)
    slopes = [_power(8 * h, below) for h in range(1, below + 1)]
    slopes += [_power(8 * h, 2 * below) for h in range(1, 2 * below + 1, 2)]
    return slopes[:heads]


def _power(over: int, under: int) -> Expression:
    """2^−(over/under): a number where it is one in full, else how it is written."""
    if over % under == 0:
        return ("num", repr(2.0 ** -(over // under)))
    common = math.gcd(over, under)
    return ("^", ("num", "2"), ("neg", ("/", ("num", str(over // common)), ("num", str(under // common)))))


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
    numbers = np.array([evaluate(slope, FLOATS) for slope in slopes])
    values = np.where(steps == 0, 0.0, -numbers[:, None, None] * steps).reshape(shape)
    if asked is True and all(slope[0] == "num" for slope in slopes):
        return Matrix(values)
    return Matrix(values, None, tuple(_times(slope, int(step)) for slope in slopes for step in steps.flat))


def _given_slopes(asked: Matrix, heads: int) -> list[Expression]:
    if asked.values.size != heads:
        raise ShapeError(
            "alibi has {count} slopes, but there are {heads} heads. Give one for each head, or write alibi = true for the"
            " usual ones.",
            count=asked.values.size,
            heads=heads,
        )
    return list(asked.each())


def _times(slope: Expression, steps: int) -> Expression:
    if steps == 0:
        return ("num", "0")
    return ("neg", slope if steps == 1 else ("*", slope, ("num", str(steps))))
