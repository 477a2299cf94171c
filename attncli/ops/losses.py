"""One number that says how far off we are, and what it sends back: squares, weighted sums, logarithms, cross-entropy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np

from attncli.arithmetic import Arithmetic, Indices, Value
from attncli.core.graph import Op, Params
from attncli.core.matrix import FloatArray, Matrix
from attncli.core.message import N_
from attncli.ops.elementwise import numeral


def total(xp: Arithmetic, a: Value, ndim: int) -> Value:
    """The sum of everything in the last `ndim` axes, as a 1×1 array."""
    added = xp.sum(a, tuple(range(-ndim, 0)))
    return added if ndim == 2 else xp.reshape(added, (*added.shape[:-ndim], 1, 1))


def _of_everything(operands: int, params: Params) -> str:
    each = "i j" if params.get("ndim", 2) == 2 else "h i j"
    return f"{', '.join([each] * operands)} -> 1 1"


# --- squares ----------------------------------------------------------------------------------------------------------


def _square_sum(xp: Arithmetic, a: Value, *, ndim: int = 2) -> Value:
    """Σ a², as a 1×1 array."""
    return total(xp, xp.multiply(a, a), ndim)


def _mean_square(xp: Arithmetic, a: Value, *, ndim: int = 2) -> Value:
    """Σ a² / (number of entries), as a 1×1 array."""
    return xp.divide(_square_sum(xp, a, ndim=ndim), numeral(xp, np.prod(a.shape[-ndim:])))


SQUARE_SUM = Op(
    name="square_sum",
    compute=_square_sum,
    axes=lambda params: _of_everything(1, params),
    formula=r"\sum #1^2",
    why=N_("Square every entry, so that signs do not cancel, and add up."),
)
MEAN_SQUARE = Op(
    name="mean_square",
    compute=_mean_square,
    axes=lambda params: _of_everything(1, params),
    formula=r"\frac{1}{N} \sum #1^2",
    why=N_("Square every entry, so that signs do not cancel, and take the mean."),
)


# --- weighted sums ----------------------------------------------------------------------------------------------------


def _weighted_sum(xp: Arithmetic, a: Value, coefficients: Value, *, ndim: int = 2) -> Value:
    """Σ a ⊙ coefficients, of `ndim` axes, as a 1×1 array."""
    each, used = xp.multiply(coefficients, a), xp.plain(coefficients)
    if np.count_nonzero(used) < used.size:  # 0 · −∞, of a hidden score that nobody asked for, is no number
        each = xp.where(used != 0, each, numeral(xp, 0.0))
    return total(xp, each, ndim)


WEIGHTED_SUM = Op(
    name="weighted_sum",
    compute=_weighted_sum,
    axes=lambda params: _of_everything(2, params),
    formula=lambda params, columns: str(params.get("written") or r"\sum #2 \odot #1"),
    why=N_("The loss: one number that says how far off we are."),
)


def _weighted_total(xp: Arithmetic, *parts: Value, factors: Sequence[Matrix]) -> Value:
    """Σ factor · part, of 1×1 arrays."""
    times = (
        part if float(factor.values) == 1.0 else xp.multiply(xp.constant(factor), part)
        for part, factor in zip(parts, factors, strict=True)
    )
    return reduce(xp.add, times)


def signed_sum(parts: Iterable[tuple[str, str]]) -> str:
    r"""#1 - 2 \cdot #2, from factors with their signs and what each of them multiplies."""
    text = ""
    for factor, what in parts:
        size = factor.removeprefix("-")
        minus = size != factor
        sign = (" - " if minus else " + ") if text else "-" if minus else ""
        text += sign + (what if size == "1" else rf"{size} \cdot {what}")
    return text


WEIGHTED_TOTAL = Op(
    "weighted_total",
    lambda params: ", ".join(["i j"] * len(params["factors"])) + " -> i j",
    _weighted_total,
    lambda params, columns: signed_sum((factor, f"#{i}") for i, factor in enumerate(params["written"], start=1)),
    N_("The loss: what was measured, each part with its factor."),
)


# --- logarithms of chosen entries -------------------------------------------------------------------------------------


def _log_loss(xp: Arithmetic, a: Value, y: Value, *, ndim: int = 2, rows: bool = False) -> Value:
    """−Σ y ln a over the entries where y is not 0: of everything (1 1), or of each row (… i 1)."""
    factors, log, zero = np.asarray(xp.plain(y)), xp.log(a), numeral(xp, 0.0)
    # Where nothing counts, ln 0 must not meet the 0 in front of it.
    each = xp.where(factors == 0, zero, xp.where(factors == 1, log, xp.multiply(y, log)))
    return xp.subtract(zero, xp.sum(each, -1) if rows else total(xp, each, ndim))


def _log_loss_formula(params: Params, columns: bool) -> str:
    usual = r"-\sum_j #2 \odot \ln #1" if params.get("rows") else r"-\sum #2 \odot \ln #1"
    return params.get("written") or usual


LOG_LOSS = Op(
    name="log_loss",
    compute=_log_loss,
    axes=lambda params: "i j, i j -> i 1" if params.get("rows") else _of_everything(2, params),
    formula=_log_loss_formula,
    why=N_("Minus the logarithm of a probability: 0 where it is 1, and larger the nearer it is to 0."),
)


def _log_slope(xp: Arithmetic, a: Value, y: Value) -> Value:
    """−y/a where y is not 0, else 0."""
    counted = np.asarray(xp.plain(y)) != 0
    zero, one = numeral(xp, 0.0), numeral(xp, 1.0)
    return xp.where(counted, xp.subtract(zero, xp.divide(y, xp.where(counted, a, one))), zero)


LOG_SLOPE = Op(
    name="log_slope",
    compute=_log_slope,
    axes="i j, i j -> i j",
    formula=r"-\frac{#2}{#1}",
    why=N_(
        "The slope of −ln a is −1/a: the smaller the probability, the harder it is pulled up. Entries that the loss does not"
        " ask for get gradient 0."
    ),
)


# --- cross-entropy, line by line: Y (token class) holds a single 1 in each row that has a target ----------------------


def _pick(xp: Arithmetic, p: Value, y: Value, *, count: int) -> Value:
    """Of the `count` rows of P and Y (token class) that have a target, the entry of P where Y is 1 (counted 1)."""
    picked = xp.sum(xp.multiply(p, y), -1)
    return picked if count == y.shape[-2] else xp.take(picked, _with_target(xp.plain(y), count))


def _with_target(y: FloatArray, count: int) -> Indices:
    """The rows that hold a target: (counted), or (sheet counted)."""
    without = ~np.asarray(y).any(-1)
    return np.argsort(without, axis=-1, kind="stable")[..., :count]


PICK = Op(
    name="pick",
    compute=_pick,
    axes="i j, i j -> =counted:count 1",
    formula=r"\sum_j #1 \odot #2",
    why=N_("Each {row} of Y holds a single 1, at the target: only the probability of the target is left."),
)
NEGATIVE_LOG = Op(
    "negative_log",
    "i j -> i j",
    lambda xp, a: xp.subtract(numeral(xp, 0.0), xp.log(a)),  # 0 − ln 1 is 0; −1 · 0 would be −0
    r"-\ln #1",
    N_("Minus the logarithm of the target's probability: 0 where it is certain, and large where it was ruled out."),
)


def _average(xp: Arithmetic, a: Value, *, mean: bool) -> Value:
    """Σ a, or Σ a / N, of a column of N entries (N 1), as a 1×1 array."""
    added = xp.sum(a, -2)
    return xp.divide(added, numeral(xp, a.shape[-2])) if mean else added


AVERAGE = Op(
    name="average",
    compute=_average,
    axes="i 1 -> 1 1",
    formula=lambda params, columns: r"\frac{1}{N} \sum #1" if params["mean"] else r"\sum #1",
    why=N_("One number for the whole sequence: the loss."),
)


def _class_error(xp: Arithmetic, p: Value, y: Value, *, some: bool = False) -> Value:
    """P − Y (token class); where only `some` rows count, 0 in those whose target is nowhere."""
    error = xp.subtract(p, y)
    if not some:
        return error
    counted = np.any(xp.plain(y), -1, keepdims=True)
    return xp.where(counted, error, numeral(xp, 0.0))


CLASS_ERROR = Op(
    name="class_error",
    compute=_class_error,
    axes="i j, i j -> i j",
    formula="#1 - #2",
    why=N_(
        "Softmax and the logarithm after it together have a simple slope: the probability, "
        "minus 1 at the target. So a step downhill lowers every wrong class and raises the "
        "target."
    ),
)


BATCH_SHARE = Op(
    "batch_share",
    "i j -> i j",
    lambda xp, a, *, count: xp.divide(a, numeral(xp, count)),
    r"\frac{#1}{N}",
    N_("The loss is a mean over the tokens that count, so each of them only has its share in it."),
    numbers=lambda params: rf"\frac{{#1}}{{{params['count']}}}",
)
