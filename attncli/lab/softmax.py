"""Softmax as its logits grow: from all weights alike to one that takes everything, and no gradient left."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from attncli.core.matrix import FloatArray
from attncli.core.message import N_, InputError, Message
from attncli.core.report import Column, Plot, Report, Table, Trend
from attncli.lab import Experiment, Option
from attncli.lab._softmax import Behaviour, behaviour, share_of_most

#: From this weight on softmax counts as saturated here.
_SATURATED = 0.99
#: A factor is looked for up to here.
_FARTHEST = 1e9


def run(seed: int, settings: Mapping[str, Any]) -> Report:
    """Multiply the logits by every factor, and find where softmax is saturated."""
    logits = _logits(seed, settings)
    factors = np.asarray(settings["factors"])
    seen = behaviour(factors[:, None] * logits)
    parts: tuple[Any, ...] = (
        _opening(logits, given=settings["logits"] is not None, seed=seed),
        _plot(factors, seen, logits.size),
        _table(factors, seen, logits.size),
        *_saturation(logits, factors, seen),
    )
    title = Message(N_("Softmax as the logits grow"))
    return Report("softmax", title, seed, {**settings, "logits": logits.tolist(), "keys": logits.size}, parts)


def _logits(seed: int, settings: Mapping[str, Any]) -> FloatArray:
    given = settings["logits"]
    if given is None:
        random: FloatArray = np.random.default_rng(seed).standard_normal(settings["keys"])
        return random
    if len(given) < 2:
        raise InputError(
            "--logits: softmax needs at least two numbers to share 1 between. Write several, like “2 1 0”."
        )
    return np.asarray(given)


def _opening(logits: FloatArray, *, given: bool, seed: int) -> Message:
    fields: dict[str, Any] = {"keys": logits.size, "most": math.log(logits.size), "alike": 1 / logits.size}
    if given:
        return Message(
            N_(
                "Your {keys} logits, times a factor. At factor 0 all weights are {alike} and the entropy, which says how evenly"
                " they are spread, is ln {keys} = {most}, the most there can be; the larger the factor, the more of the weight"
                " goes to the largest logit. An entropy of 0 means: one key has all of it."
            ),
            **fields,
        )
    return Message(
        N_(
            "{keys} random logits (mean 0, variance 1, seed {seed}), times a factor. At factor 0 all weights are {alike} and"
            " the entropy, which says how evenly they are spread, is ln {keys} = {most}, the most there can be; the larger the"
            " factor, the more of the weight goes to the largest logit. An entropy of 0 means: one key has all of it."
        ),
        seed=seed,
        **fields,
    )


def _plot(factors: FloatArray, seen: Behaviour, keys: int) -> Plot:
    return Plot(
        Message(N_("Softmax against the factor")),
        Message(N_("factor")),
        tuple(factors.tolist()),
        (
            Trend(Message(N_("largest weight")), tuple(seen.largest.tolist())),
            Trend(
                Message(N_("entropy, as a share of ln {keys}"), keys=keys),
                tuple(share_of_most(value, keys) for value in seen.entropy.tolist()),
            ),
            Trend(Message(N_("norm of the gradient")), tuple(seen.gradient.tolist())),
        ),
        log_x=True,
        low=0.0,
        high=1.0,
    )


def _table(factors: FloatArray, seen: Behaviour, keys: int) -> Table:
    return Table(
        "softmax",
        Message(N_("Largest weight, entropy and gradient")),
        (
            Column("factor", Message(N_("factor"))),
            Column("largest", Message(N_("largest weight"))),
            Column("entropy", Message(N_("entropy (nats)"))),
            Column("share", Message(N_("as a share of ln {keys}"), keys=keys)),
            Column("gradient", Message(N_("norm of the gradient"))),
        ),
        tuple(
            (factor, largest, entropy, share_of_most(entropy, keys), gradient)
            for factor, largest, entropy, gradient in zip(
                factors.tolist(),
                seen.largest.tolist(),
                seen.entropy.tolist(),
                seen.gradient.tolist(),
                strict=True,
            )
        ),
    )


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
        N_(
            "The gradient norm (of the Jacobian of softmax, diag(a) − a aᵀ) is largest at factor {factor} of those listed:"
            " {gradient}. At factor {last} it is {least}."
        ),
        factor=float(factors[peak]),
        gradient=float(seen.gradient[peak]),
        last=float(factors[-1]),
        least=float(seen.gradient[-1]),
    )
    factor = saturating_factor(logits)
    if factor is None:
        equal = int((logits == logits.max()).sum())
        return most, Message(
            N_(
                "{equal} of the {keys} logits are the largest or nearly so: they go on sharing the weight, and none of them"
                " reaches {saturated}, however large the factor."
            ),
            equal=max(2, equal),
            keys=logits.size,
            saturated=_SATURATED,
        )
    at = behaviour(factor * logits[None])
    return most, Message(
        N_(
            "From factor {factor} on, the largest weight is above {saturated}: softmax is saturated. The gradient norm is {gradient}"
            " there and goes on falling. A forgotten 1/√d_k is just such a factor, √d_k: it reaches {factor} at d_k = {d}."
        ),
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
