"""Why scores are divided by √d_k: what happens to their spread, to softmax and to its gradient without it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from attncli.core.matrix import as_matrix
from attncli.core.message import N_, LimitError, Message
from attncli.core.report import Column, Plot, Report, ReportPart, Table, Trend
from attncli.lab import Experiment, Option, Settings
from attncli.lab.softmax import behaviour
from attncli.problems.problem import Problem

#: Queries that meet a row of keys each, for softmax.
_QUERIES = 500
#: Random numbers that one width may take.
_MOST_NUMBERS = 8_000_000


#: What was measured at one d_k, by the names of the columns it stands in.
Measured = Mapping[str, float]


def run(seed: int, settings: Settings) -> Report:
    """Measure for every d_k, and say what the last of them shows."""
    widths, samples, keys = settings["d_k"], settings["samples"], settings["keys"]
    for width in widths:
        _check_size(width, samples, keys)
    measured = [_measure(seed, width, samples, keys) for width in widths]
    parts = (*_about_variance(measured, samples, seed), *_about_softmax(measured, keys))
    return Report("scaling", Message("Why scores are divided by √d_k"), seed, settings, parts)


def _check_size(width: int, samples: int, keys: int) -> None:
    for option, count in (("--samples", samples), ("--keys", _QUERIES * keys)):
        if count * width > _MOST_NUMBERS:
            raise LimitError(
                "{option} and --d-k {width} together need {numbers} random numbers; the limit is {limit}. Make one of them smaller.",
                option=option,
                width=width,
                numbers=f"{count * width:,}",
                limit=f"{_MOST_NUMBERS:,}",
            )


def _measure(seed: int, width: int, samples: int, keys: int) -> Measured:
    """The variance of q·k and of q·k/√d_k; means over the queries of what softmax makes of their scores, without the scale and with it."""
    random = np.random.default_rng([seed, width])  # so that a width's numbers do not depend on the other widths
    pairs = Problem(
        model="dot_variance",
        inputs={name: as_matrix(random.standard_normal((samples, width))) for name in ("q", "k")},
    )
    spread = pairs.graph().evaluate(until=("variance", "scaled_variance"))
    meeting = Problem(
        model="attention",
        inputs={
            "Q": as_matrix(random.standard_normal((_QUERIES, 1, width))),
            "K": as_matrix(random.standard_normal((_QUERIES, keys, width))),
            "V": as_matrix(np.zeros((_QUERIES, keys, 1))),
        },
    ).graph()
    scaled = "scaled" if "scaled" in meeting else "scores"  # with d_k = 1 there is nothing to scale
    scores = meeting.evaluate(until=("scores", scaled))
    without, with_ = behaviour(scores["scores"][:, 0]), behaviour(scores[scaled][:, 0])
    variance = spread["variance"].item()
    return {
        "d_k": width,
        "variance": variance,
        "chance": _chance(width, samples),
        "std": math.sqrt(variance),
        "scaled_variance": spread["scaled_variance"].item(),
        "largest": float(without.largest.mean()),
        "largest_scaled": float(with_.largest.mean()),
        "gradient": float(without.gradient.mean()),
        "gradient_scaled": float(with_.gradient.mean()),
    }


def _chance(width: int, samples: int) -> float:
    """The standard deviation of the mean of s², s = q·k: for normal numbers E s⁴ = 3d² + 6d, so Var(s²) = 2d² + 6d."""
    return math.sqrt((2 * width**2 + 6 * width) / samples)


def _against_d_k(
    measured: Sequence[Measured], title: Message, names: Mapping[str, Message | str], *, is_share: bool
) -> Plot:
    """What was measured, by the names of the lines: a variance, or a share of 1."""
    trends = tuple(Trend(text, [row[name] for row in measured]) for name, text in names.items())
    low, high = (0.0, 1.0) if is_share else (None, None)
    widths = [row["d_k"] for row in measured]
    return Plot(title, "d_k", widths, trends, log_x=True, log_y=not is_share, low=low, high=high)


def _about_variance(measured: Sequence[Measured], samples: int, seed: int) -> tuple[ReportPart, ...]:
    return (
        Message(
            "A score q·k adds up d_k products. Each product of two independent numbers with mean 0 and variance 1 has"
            " variance 1 again, and variances of independent numbers add up: so the variance of q·k is d_k."
            " Here it is measured on {samples} random pairs for every d_k (seed {seed}).",
            samples=samples,
            seed=seed,
        ),
        _against_d_k(
            measured,
            Message("Variance of the scores, against d_k"),
            {"variance": "q·k", "scaled_variance": "q·k/√d_k"},
            is_share=False,
        ),
        Table.of(
            "variance",
            Message("The measured variances"),
            measured,
            Column("d_k", Message("d_k (theory)")),
            Column("variance", Message("variance of q·k")),
            Column("chance", Message("± by chance"), digits=2),
            Column("std", Message("standard deviation")),
            Column("scaled_variance", Message("variance of q·k/√d_k")),
        ),
        Message(
            "At d_k = {d_k} theory says {d_k}, and {variance} was measured; chance moves this by about {chance}."
            " So a score is typically {std} away from 0. Divided by √{d_k}, its variance is {scaled_variance}:"
            " the scale brings it back to 1, whatever d_k is.",
            **measured[-1],
        ),
    )


def _about_softmax(measured: Sequence[Measured], keys: int) -> tuple[ReportPart, ...]:
    with_scale = Message("with the scale")
    return (
        _against_d_k(
            measured,
            Message("Largest of {keys} attention weights, against d_k", keys=keys),
            {"largest": Message("without the scale"), "largest_scaled": Message("with it")},
            is_share=True,
        ),
        Table.of(
            "softmax",
            Message("What softmax makes of the scores"),
            measured,
            Column("d_k", "d_k"),
            Column("largest", Message("largest weight, without")),
            Column("largest_scaled", with_scale, joined=True),
            Column("gradient", Message("norm of the gradient, without")),
            Column("gradient_scaled", with_scale, joined=True),
        ),
        Message(
            "Here each of {queries} queries meets {keys} keys. At d_k = {d_k} the largest weight is {largest} on average"
            " without the scale, and {largest_scaled} with it (all alike would be {alike}). How much gradient gets through"
            " softmax (the norm of its Jacobian, the table of how much every weight moves with every score) is {gradient}"
            " without and {gradient_scaled} with it. The nearer one weight"
            " comes to 1, the less gradient is left for the scores to learn from: that is why they are divided by √d_k.",
            queries=_QUERIES,
            keys=keys,
            alike=1 / keys,
            **measured[-1],
        ),
    )


EXPERIMENT = Experiment(
    "scaling",
    N_("Why scores are divided by √d_k: variance of q·k, softmax and its gradient."),
    (
        Option("d_k", N_("Widths to measure at, like \"1 4 64\"."), "counts", "LIST", tuple(2**i for i in range(10)), 1, 8192),
        Option("samples", N_("Random pairs of q and k for every d_k, 10 to 20000."), "count", "N", 4000, 10, 20_000),
        Option("keys", N_("Keys that a query meets, 2 to 64."), "count", "N", 8, 2, 64),
    ),
    run,
)  # fmt: skip
