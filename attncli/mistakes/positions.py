"""Other angles, other columns, or positions added or turned where they do not belong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Params, Step, Swap, part_of
from attncli.core.matrix import Matrix, as_matrix
from attncli.core.message import N_
from attncli.mistakes.mistake import (
    Made,
    MistakeKind,
    Swaps,
    and_back,
    anywhere,
    by_habit,
    instead,
    passing,
    source_of_softmax,
    step_of,
    steps_of,
    together,
    ways,
    with_operands,
)
from attncli.ops.positions import ROTATE, SINUSOID, columns_of, positional_angles

_ANGLE = N_("Look again at the angle p/10000^(2i/d): which i belongs to which {column}?")
_PAIRS = N_("Look again at which two {columns} are turned together.")

#: By the number of pairs: 4i/d; and other published ones, i/d and i/(d/2 − 1).
_DOUBLED = [lambda pairs: (range(0, 4 * pairs, 4), 0)]
_PUBLISHED = [lambda pairs: (range(pairs), 0), lambda pairs: (range(pairs), pairs - 1)]
#: By the column: its number taken for that of the pair in the cosine alone, or in the sine alone.
_MIXED_UP = [
    lambda column: 2 * column if column % 2 else column,
    lambda column: column - 1 if column % 2 else 2 * column,
]
#: Bases that are taken for one another.
_BASES = (100.0, 1000.0, 10000.0, 100000.0, 500000.0)


# --- angles -----------------------------------------------------------------------------------------------------------


def _angles(params: Params, exponents: Sequence[int], width: int = 0) -> Matrix:
    """The angles by these parameters, but with these exponents, over another width if one is given."""
    over = width or params["width"]
    return positional_angles(
        params["start"], params["count"], params["base"], exponents, over, params["position_scale"]
    )


def _otherwise(step: Step, **params: Matrix) -> dict[str, Swap]:
    """The same step with another base, or another first position."""
    return with_operands(step, step.op, step.inputs, {**step.params, **params})


def _with_exponents(
    of_pairs: Sequence[Callable[[int], tuple[Sequence[int], int]]], of_columns: Sequence[Callable[[int], int]]
) -> Made:
    """Other exponents than 2i/d, told at the angles or at their sines and cosines.

    Parameters
    ----------
    of_pairs : (number of pairs) -> the exponents of all, and what they are over (0: the width)
    of_columns : (column) -> its exponent, where sine and cosine take turns
    """

    def made(graph: Graph, step: Step) -> Iterator[Swaps]:
        angle = step if step.op.name == "angle" else step_of(graph, step.inputs[0], "angle")
        if angle is None or angle.params["exponents"] != "pairs":
            return
        if step is angle:
            for exponents in of_pairs if angle.params["pairs"] > 1 else ():
                matrix = _angles(angle.params, *exponents(angle.params["pairs"]))
                yield instead(step, lambda xp, matrix: xp.constant(matrix), matrix=matrix)
        elif step.params["arrangement"] == "interleaved":
            for exponent in of_columns:
                matrix = _angles(angle.params, [exponent(column) for column in range(step.params["width"])])
                yield instead(step, _waves, matrix=matrix)

    return made


def _waves(xp: Arithmetic, matrix: Matrix) -> Value:
    """Sine and cosine in turn."""
    a = xp.round_step(xp.constant(matrix))
    return xp.where(np.arange(matrix.shape[-1]) % 2 == 0, xp.sin(a), xp.cos(a))


def _from_one(step: Step) -> dict[str, Swap]:
    return _otherwise(step, start=as_matrix(float(step.params["start"].values) + 1.0))


def _other_base(graph: Graph, step: Step) -> Iterator[Swaps]:
    if step.params["pairs"] > 1:
        for base in _BASES:
            if base != float(step.params["base"].values):
                yield _otherwise(step, base=as_matrix(base))


def _everywhere(wrong: Callable[[Step], Swaps], graph: Graph, step: Step) -> Swaps:
    """The same in every other place that counts positions."""
    return together(*(wrong(other) for other in steps_of(graph, "angle") if other is not step))


def _from_one_alike(graph: Graph, step: Step, swap: Swaps) -> Swaps:
    return _everywhere(_from_one, graph, step)


def _other_base_alike(graph: Graph, step: Step, swap: Swaps) -> Swaps:
    return _everywhere(partial(_otherwise, base=swap[step.id].params["base"]), graph, step)


# --- the position code ------------------------------------------------------------------------------------------------


def _concatenated(graph: Graph, step: Step) -> Iterator[Swaps]:
    width = step.params["width"]
    if step.params["arrangement"] == "interleaved" and width > 2:
        yield with_operands(step, SINUSOID, step.inputs, {"width": width, "arrangement": "concatenated"})


def _queries_only(graph: Graph, step: Step) -> Iterator[Swaps]:
    """Keys and values of the bare embeddings, where positions were added to them; both by habit, or this alone."""
    added, part = step_of(graph, step.inputs[0], "add_positions"), part_of(step.id)
    if added is None or step.id.removeprefix(part) not in ("K", "V"):
        return
    beside = [graph.steps.get(f"{part}{name}") for name in "KV"]
    alike = [other for other in beside if other is not None and other.inputs[0] == added.id]

    def bare(one: Step) -> dict[str, Swap]:
        return with_operands(one, one.op, (added.inputs[0], *one.inputs[1:]), one.params)

    yield from by_habit(bare, step, alike)


# --- rotation ---------------------------------------------------------------------------------------------------------


def _other_pairing(step: Step) -> dict[str, Swap]:
    pairing = "half" if step.params["pairing"] == "adjacent" else "adjacent"
    return with_operands(step, ROTATE, step.inputs, {**step.params, "pairing": pairing})


def _reversed(step: Step) -> dict[str, Swap]:
    return with_operands(step, ROTATE, step.inputs, {**step.params, "reverse": not step.params.get("reverse")})


def _mixed(exchange: str, step: Step, slope: bool = False) -> dict[str, Swap]:
    """The exchange of one pairing with the angles of the other, as x ⊙ cos + exchanged(x) ⊙ sin.

    Parameters
    ----------
    slope : on the way back, the slope of that; it is no rotation, so turning back is something else
    """
    reverse = bool(step.params.get("reverse"))
    return instead(step, _exchanged_and_rotated, *step.inputs, exchange=exchange, reverse=reverse, slope=slope)


def _exchanged_and_rotated(
    xp: Arithmetic, a: Value, cos: Value, sin: Value, exchange: str, reverse: bool, slope: bool
) -> Value:
    pairs = cos.shape[-1]
    column = np.arange(2 * pairs)
    if exchange == "half":
        partner, is_first, of_angle = (column + pairs) % (2 * pairs), column < pairs, column // 2
    else:
        partner, is_first, of_angle = column ^ 1, column % 2 == 0, column % pairs
    whole = xp.slice(a, -1, 0, 2 * pairs)
    own = xp.multiply(whole, columns_of(xp, cos, of_angle))
    other = xp.multiply(columns_of(xp, whole, partner), columns_of(xp, sin, of_angle[partner] if slope else of_angle))
    minus = is_first != reverse
    rotated = xp.where(minus, xp.subtract(own, other), xp.add(own, other))
    rest = a.shape[-1] - 2 * pairs
    return xp.concatenate([rotated, xp.slice(a, -1, 2 * pairs, a.shape[-1])], -1) if rest else rotated


def _habit(wrong: Callable[[Step], dict[str, Swap]], graph: Graph, step: Step) -> Iterator[Swaps]:
    """Here, or by habit in queries and keys alike: whatever is turned by the same angles."""
    angle = step.inputs[1:]
    same = (one for one in steps_of(graph, "rotate") if one.phase == step.phase and one.inputs[1:] == angle)
    return by_habit(wrong, step, same if step.phase == "forward" else ())


def _with_pairs(pairing: str, graph: Graph, step: Step) -> Iterator[Swaps]:
    """Where the pairing is another one than `pairing`, and there is more than one pair."""
    if step.params["pairing"] != pairing and graph.shape(step.inputs[1])[-1] > 1:
        yield from _habit(_other_pairing, graph, step)


def _pairings_mixed(graph: Graph, step: Step) -> Iterator[Swaps]:
    if graph.shape(step.inputs[1])[-1] > 1:
        for exchange in ("half", "adjacent"):
            yield from _habit(partial(_mixed, exchange), graph, step)


def _pairings_mixed_back(graph: Graph, step: Step, swap: Swaps) -> Swaps:
    wrong = partial(_mixed, swap[step.id].params["exchange"], slope=True)
    return and_back(wrong, "rotate")(graph, step, swap)


def _value_rotated(graph: Graph, step: Step) -> Iterator[Swaps]:
    """At the step that weighs values (O = A V): the values turned like the keys that met the queries."""
    weights, values = step.inputs[:2]
    keys = _rotated_keys(graph, weights) if step.phase == "forward" else None
    if keys is None:
        return
    _, cos, sin = keys.inputs
    rows, width = graph.shape(values)[-2:]
    new, pairs = graph.shape(cos)[-2:]
    if rows < new or width < 2 * pairs:
        return

    def mixed(xp: Arithmetic, a: Value, v: Value, c: Value, s: Value) -> Value:
        rotated = ROTATE.compute(xp, xp.slice(v, -2, rows - new, rows), c, s, **keys.params)
        if rows > new:  # what comes from a cache stays as it is
            rotated = xp.concatenate([xp.slice(v, -2, 0, rows - new), rotated], -2)
        return xp.matmul(a, xp.round_step(rotated))

    yield instead(step, mixed, weights, values, cos, sin)


#: Between a rotation and the scores: a cache in front, and heads that are shared.
_ON_THE_WAY = ("join_rows", "repeat_kv")


def _rotated_keys(graph: Graph, weights: str) -> Step | None:
    """The step that turned the keys which these attention weights come from, if one did."""
    scores = graph.steps.get(source_of_softmax(graph, weights) or "")
    while scores is not None and scores.op.name != "product":
        scores = graph.steps.get(scores.inputs[0])
    keys = "" if scores is None else scores.inputs[1]
    while between := step_of(graph, keys, *_ON_THE_WAY):
        keys = between.inputs[-1]
    return step_of(graph, keys, "rotate")


MISTAKES = (
    MistakeKind("exponent-doubled", 4, N_("Your exponent is twice as large as it should be: the i in 2i/d counts pairs, so 2i is already the number of the {column}."), _ANGLE, ("angle", "sinusoid"), _with_exponents(_DOUBLED, [lambda column: 2 * column])),
    MistakeKind("cos-exponent-odd", 4, N_("You gave the cosine an exponent of its own. Sine and cosine of a pair share one angle."), _ANGLE, ("sinusoid",), _with_exponents([], [lambda column: column])),
    MistakeKind("position-exponents", 3, N_("You used a different exponent. Here pair i of d {columns}, counted from 0, has 2i/d for its sine and for its cosine."), _ANGLE, ("angle", "sinusoid"), _with_exponents(_PUBLISHED, _MIXED_UP)),
    MistakeKind("sin-cos-concatenated", 4, N_("You put all sines first and then all cosines. Here they take turns."), N_("Look again at the order of the {columns}."), ("sinusoid",), _concatenated),
    MistakeKind("positions-from-one", 0, N_("You counted positions from 1. The first one is 0."), N_("Look again at where counting starts."), ("angle",), ways(anywhere, _from_one), _from_one_alike),
    MistakeKind("base-changed", 1, N_("You used a different base."), N_("Look again at the base of the angles."), ("angle",), _other_base, _other_base_alike),
    MistakeKind("no-positions", 0, N_("You left the positions out."), N_("Look again at what goes into the attention: the embedding plus where the token stands."), ("add_positions",), ways(anywhere, passing)),
    MistakeKind("positions-on-queries-only", 1, N_("You added the positions for the queries only. Keys and values come from the same vectors."), N_("Look again at what K and V are made of: embeddings with positions."), ("product", "affine"), _queries_only),
    MistakeKind("half-split-pairs", 5, N_("You paired the first half of the {columns} with the second. Here neighbours form a pair."), _PAIRS, ("rotate",), partial(_with_pairs, "half"), and_back(_other_pairing, "rotate")),
    MistakeKind("adjacent-pairs", 5, N_("You paired neighbouring {columns}. Here the first half goes with the second half."), _PAIRS, ("rotate",), partial(_with_pairs, "adjacent"), and_back(_other_pairing, "rotate")),
    MistakeKind("pairings-mixed", 2, N_("You mixed two ways of pairing: the angles of one, the partners of the other."), N_("Look again at which two {columns} are turned together, and that both of them get the angle of their pair."), ("rotate",), _pairings_mixed, _pairings_mixed_back),
    MistakeKind("rotation-reversed", 3, N_("You turned the other way round."), N_("Look again at the signs: (x cos θ − y sin θ, x sin θ + y cos θ)."), ("rotate",), partial(_habit, _reversed), and_back(_reversed, "rotate")),
    MistakeKind("value-rotated", 1, N_("You turned the values too. What a token hands over does not depend on its place."), N_("Look again at what is turned by position: queries and keys, never values."), ("product",), _value_rotated),
)  # fmt: skip
