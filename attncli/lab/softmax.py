"""Softmax as its logits grow: from all weights alike to one that takes everything, and no gradient left."""

from __future__ import annotations

import math

import numpy as np

from attncli.core.matrix import FloatArray, as_matrix
from attncli.core.message import N_, InputError, Message
from attncli.core.record import Record
from attncli.core.report import Column, Plot, Report, ReportPart, Table, Trend
from attncli.lab import Experiment, Option, Settings
from attncli.problems.problem import Problem

#: From this weight on softmax counts as saturated here.
_SATURATED = 0.99
#: A factor is looked for up to here.
_FARTHEST = 1e9


class Behaviour(Record):
    """Of every row of scores: the weights, their entropy (in nats), the largest one, and the norm of the Jacobian."""

    weights: FloatArray
    entropy: FloatArray
    largest: FloatArray
    gradient: FloatArray


def behaviour(scores: FloatArray) -> Behaviour:
    """What softmax makes of scores (row key).

    The Jacobian of a row, ∂a_i/∂s_j, is calculated by the backward steps of the model `softmax`: with the unit vector
    e_i as upstream gradient, the gradient of the scores is its row i. One head does this for each i. The norm is
    Frobenius': the root of the sum of the squares.
    """
    rows, keys = scores.shape
    problem = Problem(
        model="softmax",
        inputs={"scores": as_matrix(np.broadcast_to(scores, (keys, rows, keys)))},
        upstream=as_matrix(np.broadcast_to(np.eye(keys)[:, None, :], (keys, rows, keys))),
    )
    trace = problem.graph().evaluate(until=("A", "G_scores"))
    weights: FloatArray = trace["A"][0]
    return Behaviour(weights, entropy(weights), weights.max(-1), np.sqrt((trace["G_scores"] ** 2).sum((0, 2))))


def entropy(weights: FloatArray) -> FloatArray:
    """−Σ a ln a along the last axis, in nats; a weight of 0 adds nothing."""
    logs = np.log(weights, where=weights > 0, out=np.zeros_like(weights))
    total: FloatArray = -(weights * logs).sum(-1)
    return total + 0.0  # no −0


def run(seed: int, settings: Settings) -> Report:
    """Multiply the logits by every factor, and find where softmax is saturated."""
    logits, factors = _logits(seed, settings), np.asarray(settings["factors"])
    seen = behaviour(factors[:, None] * logits)
    parts: tuple[ReportPart, ...] = (
        _opening(logits, given=settings["logits"] is not None, seed=seed),
        *_figures(factors, seen),
        *_saturation(logits, factors, seen),
    )
    shown = {**settings, "logits": logits.tolist(), "keys": logits.size}
    return Report("softmax", Message("Softmax as the logits grow"), seed, shown, parts)


def _logits(seed: int, settings: Settings) -> FloatArray:
    given = settings["logits"]
    if given is None:
        return np.random.default_rng(seed).standard_normal((settings["keys"],))
    if len(given) < 2:
        raise InputError(
            "--logits: softmax needs at least two numbers to share 1 between. Write several, like “2 1 0”."
        )
    return np.asarray(given)


def _opening(logits: FloatArray, *, given: bool, seed: int) -> Message:
    keys = logits.size
    whose = (
        Message("Your {keys} logits", keys=keys)
        if given
        else Message("{keys} random logits (mean 0, variance 1, seed {seed})", keys=keys, seed=seed)
    )
    return Message(
        "{logits}, times a factor. At factor 0 all weights are {alike} and the entropy, which says how evenly they are"
        " spread, is ln {keys} = {most}, the most there can be; the larger the factor, the more of the weight goes to the"
        " largest logit. An entropy of 0 means: one key has all of it.",
        logits=whose,
        keys=keys,
        most=math.log(keys),
        alike=1 / keys,
    )


def _figures(factors: FloatArray, seen: Behaviour) -> tuple[Plot, Table]:
    keys = seen.weights.shape[-1]
    factor, largest, gradient = Message("factor"), Message("largest weight"), Message("norm of the gradient")
    share = (seen.entropy / math.log(keys)).tolist()
    plot = Plot(
        Message("Softmax against the factor"),
        factor,
        factors.tolist(),
        (
            Trend(largest, seen.largest.tolist()),
            Trend(Message("entropy, as a share of ln {keys}", keys=keys), share),
            Trend(gradient, seen.gradient.tolist()),
        ),
        log_x=True,
        low=0.0,
        high=1.0,
    )
    table = Table(
        "softmax",
        Message("Largest weight, entropy and gradient"),
        (
            Column("factor", factor, factors.tolist()),
            Column("largest", largest, seen.largest.tolist()),
            Column("entropy", Message("entropy (nats)"), seen.entropy.tolist()),
            Column("share", Message("as a share of ln {keys}", keys=keys), share),
            Column("gradient", gradient, seen.gradient.tolist()),
        ),
    )
    return plot, table


def saturating_factor(logits: FloatArray) -> float | None:
    """The factor at which the largest weight reaches 0.99, by halving; None if it never does.

    It grows with the factor, up to 1 divided by how many logits are the largest.
    """
    if _largest(logits, _FARTHEST) < _SATURATED:
        return None
    low, high = 0.0, _FARTHEST
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if _largest(logits, middle) >= _SATURATED else (middle, high)
    return high


def _largest(logits: FloatArray, factor: float) -> float:
    return float(behaviour(factor * logits[None]).largest[0])


def _saturation(logits: FloatArray, factors: FloatArray, seen: Behaviour) -> tuple[Message, ...]:
    peak = int(seen.gradient.argmax())
    most = Message(
        "The gradient norm (of the Jacobian of softmax, diag(a) − a aᵀ) is largest at factor {factor} of those listed:"
        " {gradient}. At factor {last} it is {least}.",
        factor=float(factors[peak]),
        gradient=float(seen.gradient[peak]),
        last=float(factors[-1]),
        least=float(seen.gradient[-1]),
    )
    factor = saturating_factor(logits)
    if factor is None:
        equal = int((logits == logits.max()).sum())
        return most, Message(
            "{equal} of the {keys} logits are the largest or nearly so: they go on sharing the weight, and none of them"
            " reaches {saturated}, however large the factor.",
            equal=max(2, equal),
            keys=logits.size,
            saturated=_SATURATED,
        )
    at = behaviour(factor * logits[None])
    return most, Message(
        "From factor {factor} on, the largest weight is above {saturated}: softmax is saturated. The gradient norm is {gradient}"
        " there and goes on falling. A forgotten 1/√d_k is just such a factor, √d_k: it reaches {factor} at d_k = {d}.",
        factor=factor,
        saturated=_SATURATED,
        gradient=float(at.gradient[0]),
        d=math.ceil(factor**2),
    )


EXPERIMENT = Experiment(
    "softmax",
    N_("Softmax as the logits grow: entropy, largest weight, gradient, and where it saturates."),
    (
        Option("logits", N_("Logits of your own, like \"2 1 0\"; without them, random ones."), "numbers", "LIST", None, -1e4, 1e4, 64, ("keys",)),
        Option("keys", N_("How many random logits, 2 to 64."), "count", "N", 8, 2, 64),
        Option("factors", N_("Factors to multiply the logits by, like \"0.5 1 2\"."), "positives", "LIST", tuple(2.0**i for i in range(-4, 7)), 1e-4, 1e4, 32),
    ),
    run,
)  # fmt: skip
