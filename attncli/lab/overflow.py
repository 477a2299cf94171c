"""Where e^x leaves the floating-point numbers, and how taking the maximum away first saves softmax from it.

Nothing here is typed in: the limits are found by asking e^x itself, float by float, by halving. A positive float's bits,
read as a whole number, rise with it, so there are at most 64 questions to ask.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from attncli.core.matrix import as_matrix
from attncli.core.message import N_, InputError, Listed, Message
from attncli.core.record import Record
from attncli.core.report import Column, Report, Span, Spans, Table
from attncli.lab import Experiment, Option
from attncli.problems.problem import Problem

TYPES: Mapping[str, Any] = {"float16": np.float16, "float32": np.float32, "float64": np.float64}
_BITS = {2: np.uint16, 4: np.uint32, 8: np.uint64}
#: The visible scores of the order pitfall; a third one is hidden.
_VISIBLE = (1.0, 2.0)


class Limits(Record):
    """The largest x whose e^x is finite and the smallest whose e^x is not 0, with both powers, and the largest number."""

    largest_x: float
    largest: float
    smallest_x: float
    smallest: float
    most: float


def limits(kind: Any) -> Limits:
    """Where e^x overflows and underflows in this type of floats."""
    with np.errstate(all="ignore"):
        high = _last(kind, lambda x: bool(np.isfinite(np.exp(x))))
        low = -_last(kind, lambda x: bool(np.exp(-x) > 0))
        return Limits(float(high), float(np.exp(high)), float(low), float(np.exp(low)), float(np.finfo(kind).max))


def _last(kind: Any, holds: Callable[[Any], bool]) -> Any:
    """The largest positive float that something holds for, if it holds for small ones and not for large ones."""
    bits = _BITS[np.dtype(kind).itemsize]

    def as_float(number: int) -> Any:
        return np.asarray(number, dtype=bits).view(kind)[()]

    low, high = 0, int(np.asarray(np.finfo(kind).max).view(bits))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(as_float(middle)) else (low, middle)
    return as_float(low)


def run(seed: int, settings: Mapping[str, Any]) -> Report:
    """The limits of the three types, softmax with and without the maximum taken away, and the order pitfall."""
    logits = settings["logits"]
    _check(logits)
    found = {name: limits(kind) for name, kind in TYPES.items()}
    parts = (*_about_limits(found), *_about_softmax(logits), *_about_order(settings["hidden"], found))
    return Report("overflow", Message(N_("Where e^x overflows, and what saves softmax")), seed, settings, parts)


def _check(logits: tuple[float, ...]) -> None:
    most = float(np.finfo(np.float16).max)
    for number in logits:
        if abs(number) > most:
            raise InputError(
                "--logits: {number} is too large for float16, which ends at {most}. Write smaller numbers.",
                number=f"{number:g}",
                most=f"{most:g}",
            )


def _about_limits(found: Mapping[str, Limits]) -> tuple[Any, ...]:
    half, double = found["float16"], found["float64"]
    return (
        Message(
            N_(
                "e^x grows so fast that it soon leaves the numbers a computer has. In float16, whose largest number is"
                " {most16}, it overflows to ∞ just above x = {high16}; in float64 just above x = {high64}. Downwards it"
                " becomes exactly 0 below x = {low16} and x = {low64}. These limits were found by calculating e^x, float by"
                " float."
            ),
            most16=half.most,
            high16=half.largest_x,
            high64=double.largest_x,
            low16=half.smallest_x,
            low64=double.smallest_x,
        ),
        Spans(
            Message(N_("Where e^x is neither ∞ nor 0")),
            tuple(Span(name, one.smallest_x, one.largest_x) for name, one in found.items()),
        ),
        Table(
            "limits",
            Message(N_("The last x before e^x overflows and before it becomes 0")),
            (
                Column("type", Message(N_("type"))),
                Column("largest_x", Message(N_("largest x")), 7),
                Column("largest", Message(N_("e^x there")), joined=True),
                Column("smallest_x", Message(N_("smallest x")), 7),
                Column("smallest", Message(N_("e^x there")), joined=True),
            ),
            tuple((name, one.largest_x, one.largest, one.smallest_x, one.smallest) for name, one in found.items()),
        ),
    )


def softmax_in(kind: Any, logits: tuple[float, ...], subtract: str) -> Any:
    """Softmax of one row in this type of floats, by the model `softmax`."""
    scores = np.asarray([logits], dtype=np.float64)
    graph = Problem(model="softmax", inputs={"scores": as_matrix(scores)}, settings={"subtract": subtract}).graph()
    return graph.evaluate(given={"scores": scores.astype(kind)})


def _about_softmax(logits: tuple[float, ...]) -> tuple[Any, ...]:
    ways = {"none": Message(N_("plain")), "max": Message(N_("maximum subtracted"))}
    rows, lost = [], []
    for name, kind in TYPES.items():
        for way, said in ways.items():
            weights = softmax_in(kind, logits, way)["A"][0].astype(np.float64)
            rows.append((name, said, *weights.tolist()))
            if way == "none" and np.isnan(weights).any():
                lost.append(name)
    columns = tuple(
        Column(f"A{i}", Message(N_("weight of {logit}"), logit=logit)) for i, logit in enumerate(logits, start=1)
    )
    table = Table(
        "softmax",
        Message(N_("Softmax of these logits")),
        (Column("type", Message(N_("type"))), Column("way", Message(N_("way"))), *columns),
        tuple(rows),
    )
    if lost:
        said = Message(
            N_(
                "Plain softmax, e^x divided by the sum, fails here in {types}: e^x is ∞, so the sum is ∞, and ∞/∞ is not a"
                " number (NaN), while a finite e^x divided by ∞ is 0. Take the maximum {most} away from every logit first: now"
                " the largest power is e^0 = 1 and nothing can overflow. The weights stay the same, because the factor"
                " e^−{most} cancels in the division."
            ),
            types=Listed(lost),
            most=max(logits),
        )
    else:
        said = Message(
            N_(
                "Plain softmax, e^x divided by the sum, works for these logits in all three types, and taking the maximum {most}"
                " away first gives the same weights, because the factor e^−{most} cancels in the division. Try larger ones:"
                " --logits \"1000 999 998\"."
            ),
            most=max(logits),
        )  # fmt: skip
    return table, said


def _masked(kind: Any, hidden: float, max_over: str) -> Any:
    """Attention with scores 1, 2 and a hidden one: by the model `attention`, the maximum over visible or all scores."""
    keys = np.asarray([[*_VISIBLE, hidden]]).T
    graph = Problem(
        model="attention",
        inputs={"Q": as_matrix([[1.0]]), "K": as_matrix(keys), "V": as_matrix(np.eye(len(keys)))},
        settings={"mask": "0 0 -inf", "scale": "none", "max_over": max_over},
    ).graph()
    given = {name: given.matrix.values.astype(kind) for name, given in graph.inputs.items()}
    return graph.evaluate(given=given)


def _about_order(hidden: float, found: Mapping[str, Limits]) -> tuple[Any, ...]:
    ways = {"all": Message(N_("all scores")), "visible": Message(N_("visible ones"))}
    rows, lost = [], []
    for name, kind in TYPES.items():
        for way, said in ways.items():
            trace = _masked(kind, hidden, way)
            weights = trace["A"][0].astype(np.float64)
            rows.append((name, said, float(trace["row_sum"].item()), *weights.tolist()))
            if way == "all" and np.isnan(weights).any():
                lost.append(name)
    scores = (*_VISIBLE, hidden)
    table = Table(
        "order",
        Message(N_("Scores {scores}, the last one hidden by the mask"), scores=Listed(f"{s:g}" for s in scores)),
        (
            Column("type", Message(N_("type"))),
            Column("maximum", Message(N_("maximum over"))),
            Column("row_sum", Message(N_("sum of e^x"))),
            *(Column(f"A{i}", Message(N_("weight {number}"), number=i)) for i in range(1, len(scores) + 1)),
        ),
        tuple(rows),
    )
    fields = {"hidden": hidden, "best": max(_VISIBLE), "gap": hidden - max(_VISIBLE)}
    enough = Message(
        N_(
            "A hidden score has to be only about {gap16} larger than the visible ones in float16, {gap32} in float32 and"
            " {gap64} in float64. So mask first, then take the maximum over what is left."
        ),
        gap16=-found["float16"].smallest_x,
        gap32=-found["float32"].smallest_x,
        gap64=-found["float64"].smallest_x,
    )
    if lost:
        return table, Message(
            N_(
                "The order matters too. If the maximum is taken over all scores, the hidden {hidden} is taken away from the"
                " visible ones, which are at most {best}. In {types} every visible e^x becomes 0, so does the sum, and 0/0 is"
                " NaN: the row is lost."
            ),
            types=Listed(lost),
            **fields,
        ), enough  # fmt: skip
    return table, Message(
        N_(
            "The order matters too. If the maximum is taken over all scores, the hidden {hidden} is taken away from the visible"
            " ones, which are at most {best}. Here the row survives in all three types, because the difference is only {gap}."
        ),
        **fields,
    ), enough  # fmt: skip


EXPERIMENT = Experiment(
    "overflow",
    N_("Where e^x overflows in float16, float32 and float64, and how the maximum saves softmax."),
    (
        Option("logits", N_("Logits for softmax, like \"1000 999 998\"."), "numbers", "LIST", (89.0, 88.0, 87.0), -1e9, 1e9, 8),
        Option("hidden", N_("The hidden score of the order pitfall, beside visible 1 and 2."), "number", "X", 802.0, 2, 60_000),
    ),
    run,
)  # fmt: skip
