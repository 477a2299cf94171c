"""Softmax by itself, from scores on; and why scores are divided by √d_k: the spread of a dot product beside theory.

With entries of q and k independent, mean 0 and variance 1, every product q_i k_i has mean 0 and variance 1, and the
variances of independent numbers add up: Var(q·k) = d_k (Vaswani et al., arXiv 1706.03762, section 3.2.1, footnote 4).
"""

from __future__ import annotations

import numpy as np

from attncli.core.axes import Axis
from attncli.core.graph import default_symbol
from attncli.core.matrix import Matrix, as_matrix
from attncli.core.message import N_, InputError, Message
from attncli.models import masks
from attncli.models.model import Argument, Model, Part, Setting
from attncli.ops.elementwise import MULTIPLY, SCALE
from attncli.ops.losses import MEAN_SQUARE
from attncli.ops.rows import ROOT, ROW_SUM
from attncli.ops.softmax import hidden_rows, log_softmax, softmax


def _softmax(part: Part) -> str:
    """scores ([head] query key) → A ([head] query key)."""
    graph, matrix = part.graph, part.matrix("scores")
    heads = ["head"] if matrix.values.ndim == 3 else []
    why = N_("The scores to turn into weights; −∞ marks a place that is hidden.")
    source = part.input("scores", [*heads, "query", "key"], symbol="S", hidden=True, why=why)
    source = _warmed(part, source)
    visible = masks.mask_of(part, source, 0)
    if visible is not None:
        source = masks.masked(part, source, visible)
    empty = masks.noted(graph, hidden_rows(matrix if visible is None else Matrix(matrix.values + visible.values)))
    subtract = part.setting("subtract", "max")
    shift = None if subtract == "max" else as_matrix(0.0) if subtract == "none" else subtract
    weights = softmax(graph, source, empty=empty is not None, shift=shift)
    if not part.setting("log"):
        return weights
    if empty is not None:
        raise InputError(
            "A row in which nothing is visible has no log-softmax: ln 0 − ln 0. Leave log out, or show it a key."
        )
    return log_softmax(graph, source)


def _warmed(part: Part, source: str) -> str:
    """The scores over the temperature; themselves where it is 1."""
    temperature = part.setting("temperature")
    if temperature is None or float(temperature.values) == 1.0:
        return source
    why = N_(
        "Every score is divided by the temperature. Below 1 the differences grow and one weight takes nearly all; above 1"
        " they shrink and the weights come closer to one another."
    )
    notes = {"label": r"\tau"}
    return part.apply(SCALE, "scaled", source, symbol="S_{scaled}", divisor=temperature, notes=notes, why=why)


_QUERIES = Argument("q", ("sample", "d_k"), N_("random queries, one row per sample"))
_KEYS = Argument("k", ("sample", "d_k"), N_("random keys, one row per sample"))


_MEASURED = N_("The measured variance: the mean of the squares, because the mean itself is 0 (up to chance).")


def _dot_variance(part: Part) -> str:
    """q, k (sample d_k) → scaled (sample 1), with the variances before and after; returns the id of scaled."""
    q = part.enter(_QUERIES, N_("Many queries, one per {row}."))
    k = part.enter(_KEYS, N_("Just as many keys, one per {row}."))
    width = part.graph.axes(q)[-1]
    _measure(part, q, k, width)
    _expect(part, width.size)
    return "scaled"


def _measure(part: Part, q: str, k: str, width: Axis) -> None:
    """products, dots, variance, std, scaled, scaled_variance: from the samples."""
    why: Message | str = N_("Each query is multiplied by its own key, entry by entry.")
    part.apply(MULTIPLY, "products", q, k, symbol="P", why=why)
    part.apply(ROW_SUM, "dots", "products", symbol="s", why=N_("Added up along the {row}: one score q·k per sample."))
    part.apply(MEAN_SQUARE, "variance", "dots", symbol=r"\sigma^2", why=_MEASURED)
    part.apply(ROOT, "std", "variance", symbol=r"\sigma")
    root, notes = as_matrix(width.size), {"label": default_symbol(width.name)}
    why = Message("The same scores, divided by √{d}.", d=width.size)
    part.apply(SCALE, "scaled", "dots", symbol="s_{scaled}", root=root, notes=notes, why=why)
    part.apply(MEAN_SQUARE, "scaled_variance", "scaled", symbol=r"\sigma_{scaled}^2", why=_MEASURED)


def _expect(part: Part, width: int) -> None:
    """expected_variance, expected_std, expected_scaled_variance: what theory says."""
    part.graph.bound.setdefault("", Axis("", 1, "unit"))
    why = Message("In theory: the variance of each of the {d} products is 1 · 1 = 1.", d=width)
    ones = Matrix(np.ones((1, width)), np.zeros((1, width), dtype=np.int_))
    part.input("unit", ("", "d_k"), ones, symbol=r"\mathbf{1}", differentiable=False, why=why)
    why = Message("In theory: variances of independent numbers add up, so Var(q·k) = d_k = {d}.", d=width)
    part.apply(ROW_SUM, "expected_variance", "unit", symbol=r"\operatorname{Var}", why=why)
    part.apply(ROOT, "expected_std", "expected_variance", symbol=r"\operatorname{Std}")
    why = Message(
        "In theory: dividing numbers by √{d} divides their variance by {d}, which leaves 1, whatever d_k is.",
        d=width,
    )
    share = Matrix(np.asarray(1.0 / width), None, (("/", ("num", "1"), ("num", str(width))),))
    symbol = r"\operatorname{Var}_{scaled}"
    part.apply(SCALE, "expected_scaled_variance", "expected_variance", symbol=symbol, factor=share, why=why)


MODELS = (
    Model(
        name="softmax",
        text=N_("scores to weights: subtract the row maximum, e^x, divide by the row sum"),
        arguments=(Argument("scores", ("query", "key"), N_("scores, one row per query; -inf = hidden")),),
        settings=(
            Setting("subtract", "shift", N_("what to take away first: max (the default), none, or a number")),
            Setting("temperature", "positive", N_("what every score is divided by first (default: 1)")),
            *masks.SETTINGS,
            Setting("log", "flag", N_("one step more, log_A: log-softmax, worked out without the weights")),
        ),
        build=_softmax,
    ),
    Model(
        name="dot_variance",
        text=N_("why scores are divided by √d_k: the variance of many dot products q·k, before and after"),
        arguments=(_QUERIES, _KEYS),
        settings=(),
        build=_dot_variance,
    ),
)
