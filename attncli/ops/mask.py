"""A mask added to the scores: 0 where a key may be seen, −∞ where it may not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op
from attncli.matrix import as_matrix
from attncli.message import N_, Message
from attncli.ops import Mistake, at, fixed, instead, pass_on, with_operands
from attncli.terms import Index, Term

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, scores: Value, mask: Value) -> Value:
    """scores + mask."""
    return xp.add(scores, mask)


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    scores, mask = step.inputs
    return Term("sum", at(values, scores, index), at(values, mask, index))


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    """Adding a constant changes no slope."""
    graph.apply(
        pass_on.OP,
        id,
        upstream,
        why=Message(
            N_(
                "The mask only adds a constant, so the gradient passes unchanged."
                " Hidden places already carry 0: their weight was 0."
            )
        ),
    )


def mistakes(graph: Graph, step: Step) -> Iterator[Mistake]:
    """Another number in the hidden places, or other places hidden."""
    scores, id = step.inputs
    mask = graph.inputs[id].matrix.values
    hidden = np.isneginf(mask)
    bias = np.where(hidden, 0.0, mask)
    yield with_operands("no-mask", step, pass_on.OP, (scores,), {})
    for name, number in (("mask-as-zero", 0.0), ("mask-tiny", 1e-9), ("mask-plus-infinity", math.inf)):
        yield instead(name, step, _with(hidden, number, bias), scores)
    for ones in (hidden, ~hidden):
        yield instead("mask-added-as-01", step, _adding(ones + bias), scores)
    for name, other in _other_places(hidden):
        if other.shape == hidden.shape and not np.array_equal(other, hidden):
            yield instead(name, step, _with(other, -math.inf, bias), scores)
    if bias.any():
        yield from _mistakes_of_bias(step, scores, hidden, bias)


def _mistakes_of_bias(step: Step, scores: str, hidden: Any, bias: Any) -> Iterator[Mistake]:
    """Numbers at visible places (ALiBi): left out, with the other sign, or of another head."""
    if hidden.any():
        yield instead("bias-left-out", step, _with(hidden, -math.inf, np.zeros_like(bias)), scores)
    yield instead("bias-sign", step, _with(hidden, -math.inf, -bias), scores)
    if bias.ndim == 3 and not np.array_equal(bias, bias[::-1]):
        yield instead("bias-of-another-head", step, _with(hidden, -math.inf, bias[::-1]), scores)


def _with(hidden: Any, number: float, bias: Any) -> Any:
    """One number in the hidden places, and in the others the score with what the mask adds there."""

    def masked(xp: Arithmetic, scores: Value) -> Value:
        others = xp.add(scores, xp.enter(as_matrix(np.broadcast_to(bias, scores.shape)))) if bias.any() else scores
        return xp.where(
            np.broadcast_to(hidden, scores.shape), xp.enter(as_matrix(np.full(scores.shape, number))), others
        )

    return masked


def _adding(ones: Any) -> Any:
    return lambda xp, scores: xp.add(scores, xp.enter(as_matrix(np.broadcast_to(ones, scores.shape).astype(float))))


def _other_places(hidden: Any) -> Iterator[tuple[str, Any]]:
    """What people hide instead: the visible, the diagonal too, the past, rows for columns, another corner."""
    yield "mask-inverted", ~hidden
    rows, columns = hidden.shape[-2:]
    causal = np.triu(np.ones((rows, columns), dtype=np.bool_), 1)
    if np.array_equal(hidden, np.broadcast_to(causal, hidden.shape)):
        yield "mask-diagonal", np.triu(np.ones_like(hidden), 0)
        yield "mask-other-triangle", np.tril(np.ones_like(hidden), -1)
    corner = np.triu(np.ones((rows, columns), dtype=np.bool_), 1 + columns - rows)
    for one, other in ((causal, corner), (corner, causal)):
        if rows != columns and np.array_equal(hidden, np.broadcast_to(one, hidden.shape)):
            yield "mask-other-corner", np.broadcast_to(other, hidden.shape)
    if rows == columns and (hidden == hidden[..., :1, :]).all():
        yield "mask-query-rows", hidden.swapaxes(-1, -2)


OP = Op(
    name="mask",
    compute=compute,
    axes="i j, i j -> i j",
    formula=fixed("{0} + {1}"),
    terms=terms,
    why=N_("Adding −∞ hides a key, adding 0 leaves it alone. e^−∞ = 0, so a hidden key gets a weight of exactly 0."),
    backward=(gradient, None),
    mistakes=mistakes,
)
