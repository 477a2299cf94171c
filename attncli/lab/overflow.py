"""Where e^x leaves the floating-point numbers, and how taking the maximum away first saves softmax from it.

Nothing here is typed in: the limits are found by asking e^x itself, float by float, by halving. A positive float's bits,
read as a whole number, rise with it, so there are at most 64 questions to ask.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from attncli.core.graph import Trace
from attncli.core.matrix import as_matrix
from attncli.core.message import N_, InputError, Listed, Message
from attncli.core.record import Record
from attncli.core.report import Column, Report, ReportPart, Span, Spans, Table, TableCell
from attncli.lab import Experiment, Option, Settings
from attncli.problems.problem import Problem

Floats = type[np.floating[Any]]
TYPES: Mapping[str, Floats] = {"float16": np.float16, "float32": np.float32, "float64": np.float64}
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


def limits(kind: Floats) -> Limits:
    """Where e^x overflows and underflows in this type of floats."""
    with np.errstate(all="ignore"):
        high = _last(kind, lambda x: bool(np.isfinite(np.exp(x))))
        low = -_last(kind, lambda x: bool(np.exp(-x) > 0))
        return Limits(float(high), float(np.exp(high)), float(low), float(np.exp(low)), float(np.finfo(kind).max))


def _last(kind: Floats, holds: Callable[[np.floating[Any]], bool]) -> np.floating[Any]:
    """The largest positive float that something holds for, if it holds for small ones and not for large ones."""
    bits = _BITS[np.dtype(kind).itemsize]

    def as_float(number: int) -> np.floating[Any]:
        return kind(np.asarray(number, dtype=bits).view(kind).item())

    low, high = 0, int(np.asarray(np.finfo(kind).max).view(bits))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(as_float(middle)) else (low, middle)
    return as_float(low)


def run(seed: int, settings: Settings) -> Report:
    """The limits of the three types, softmax with and without the maximum taken away, and the order pitfall."""
    logits = settings["logits"]
    _check(logits)
    found = {name: limits(kind) for name, kind in TYPES.items()}
    parts = (*_about_limits(found), *_about_softmax(logits), *_about_order(settings["hidden"], found))
    return Report("overflow", Message("Where e^x overflows, and what saves softmax"), seed, settings, parts)


def _check(logits: tuple[float, ...]) -> None:
    most = float(np.finfo(np.float16).max)
    for number in logits:
        if abs(number) > most:
            raise InputError(
                "--logits: {number} is too large for float16, which ends at {most}. Write smaller numbers.",
                number=f"{number:g}",
                most=f"{most:g}",
            )


_TYPE = Column("type", Message("type"))


def _about_limits(found: Mapping[str, Limits]) -> tuple[ReportPart, ...]:
    half, double, power = found["float16"], found["float64"], Message("e^x there")
    return (
        Message(
            "e^x grows so fast that it soon leaves the range of a computer's numbers. In float16, whose largest number is"
            " {most16}, it overflows to ∞ just above x = {high16}; in float64 just above x = {high64}. Going down, it"
            " becomes exactly 0 below x = {low16} in float16 and below x = {low64} in float64. These limits were found by calculating e^x, float by"
            " float.",
            most16=half.most,
            high16=half.largest_x,
            high64=double.largest_x,
            low16=half.smallest_x,
            low64=double.smallest_x,
        ),
        Spans(
            Message("Where e^x is neither ∞ nor 0"),
            tuple(Span(name, limit.smallest_x, limit.largest_x) for name, limit in found.items()),
        ),
        Table.of(
            "limits",
            Message("The last x before e^x overflows and before it becomes 0"),
            [{"type": name, **vars(limit)} for name, limit in found.items()],
            _TYPE,
            Column("largest_x", Message("largest x"), digits=7),
            Column("largest", power, joined=True),
            Column("smallest_x", Message("smallest x"), digits=7),
            Column("smallest", power, joined=True),
        ),
    )


def _in_every_type(
    column: str, ways: Mapping[str, Message], evaluated: Callable[[Floats, str], Trace]
) -> tuple[list[dict[str, TableCell]], list[str]]:
    """Softmax in every type of floats, each way, line by line; and the types in which it is lost the first way."""
    rows: list[dict[str, TableCell]] = []
    lost = []
    for name, kind in TYPES.items():
        for way, words in ways.items():
            trace = evaluated(kind, way)
            weights = {f"A{key}": float(weight) for key, weight in enumerate(trace["A"][0], start=1)}
            rows.append({"type": name, column: words, "row_sum": float(trace["row_sum"].item()), **weights})
            if way == next(iter(ways)) and np.isnan(trace["A"]).any():
                lost.append(name)
    return rows, lost


def softmax_in(kind: Floats, logits: tuple[float, ...], subtract: str) -> Trace:
    """Softmax of one row in this type of floats, by the model `softmax`."""
    scores = np.asarray([logits], dtype=np.float64)
    graph = Problem(model="softmax", inputs={"scores": as_matrix(scores)}, settings={"subtract": subtract}).graph()
    return graph.evaluate(given={"scores": scores.astype(kind)})


def _about_softmax(logits: tuple[float, ...]) -> tuple[ReportPart, ...]:
    ways = {"none": Message("plain"), "max": Message("maximum subtracted")}
    rows, lost = _in_every_type("way", ways, lambda kind, way: softmax_in(kind, logits, way))
    weights = (
        Column(f"A{key}", Message("weight of {logit}", logit=logit)) for key, logit in enumerate(logits, start=1)
    )
    way = Column("way", Message("way"))
    table = Table.of("softmax", Message("Softmax of these logits"), rows, _TYPE, way, *weights)
    if lost:
        return table, Message(
            "Plain softmax, e^x divided by the sum, fails here in {types}: e^x is ∞, so the sum is ∞, and ∞/∞ is not a"
            " number (NaN), while a finite e^x divided by ∞ is 0. Take the maximum {most} away from every logit first: now"
            " the largest power is e^0 = 1 and nothing can overflow. The weights stay the same, because the factor"
            " e^−{most} cancels in the division.",
            types=Listed(lost),
            most=max(logits),
        )
    return table, Message(
        "Plain softmax, e^x divided by the sum, works for these logits in all three types, and taking the maximum {most}"
        " away first gives the same weights, because the factor e^−{most} cancels in the division. Try larger ones:"
        ' --logits "1000 999 998".',
        most=max(logits),
    )


def _masked(kind: Floats, hidden: float, max_over: str) -> Trace:
    """Attention with scores 1, 2 and a hidden one: by the model `attention`, the maximum over visible or all scores."""
    keys = np.asarray([[*_VISIBLE, hidden]]).T
    graph = Problem(
        model="attention",
        inputs={"Q": as_matrix([[1.0]]), "K": as_matrix(keys), "V": as_matrix(np.eye(len(keys)))},
        settings={"mask": "0 0 -inf", "scale": "none", "max_over": max_over},
    ).graph()
    given = {name: given.matrix.values.astype(kind) for name, given in graph.inputs.items()}
    return graph.evaluate(given=given)


def _about_order(hidden: float, limits_of: Mapping[str, Limits]) -> tuple[ReportPart, ...]:
    ways = {"all": Message("all scores"), "visible": Message("visible ones")}
    rows, lost = _in_every_type("maximum", ways, lambda kind, way: _masked(kind, hidden, way))
    scores = (*_VISIBLE, hidden)
    table = Table.of(
        "order",
        Message("Scores {scores}, the last one hidden by the mask", scores=Listed(f"{s:g}" for s in scores)),
        rows,
        _TYPE,
        Column("maximum", Message("maximum over")),
        Column("row_sum", Message("sum of e^x")),
        *(Column(f"A{key}", Message("weight {number}", number=key)) for key in range(1, len(scores) + 1)),
    )
    survives = Message(
        "Here the row survives in all three types, because the difference is only {gap}.", gap=hidden - max(_VISIBLE)
    )
    is_lost = Message(
        "In {types} every visible e^x becomes 0, so does the sum, and 0/0 is NaN: the row is lost.",
        types=Listed(lost),
    )
    order = Message(
        "The order matters too. If the maximum is taken over all scores, the hidden {hidden} is taken away from the visible"
        " ones, which are at most {best}. {result}",
        hidden=hidden,
        best=max(_VISIBLE),
        result=is_lost if lost else survives,
    )
    enough = Message(
        "A hidden score has to be only about {gap16} larger than the visible ones in float16, {gap32} in float32 and"
        " {gap64} in float64. So mask first, then take the maximum over what is left.",
        gap16=-limits_of["float16"].smallest_x,
        gap32=-limits_of["float32"].smallest_x,
        gap64=-limits_of["float64"].smallest_x,
    )
    return table, order, enough


EXPERIMENT = Experiment(
    "overflow",
    N_("Where e^x overflows in float16, float32 and float64, and how the maximum saves softmax."),
    (
        Option("logits", N_("Logits for softmax, like \"1000 999 998\"."), "numbers", "LIST", (89.0, 88.0, 87.0), -1e9, 1e9, 8),
        Option("hidden", N_("The score that the mask hides, beside the visible 1 and 2."), "number", "X", 802.0, 2, 60_000),
    ),
    run,
)  # fmt: skip
