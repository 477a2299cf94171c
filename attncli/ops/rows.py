"""Every row and its own number: sums, maxima, means, what a row is less or divided by, and what these send back."""

from __future__ import annotations

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Op, Params, Rule, Step
from attncli.core.matrix import as_matrix
from attncli.core.message import N_
from attncli.ops.elementwise import IDENTITY, MULTIPLY, SCALE, in_formula, numeral, size, unchanged


def _over_width(op: Op, graph: Graph, step: Step, upstream: str, target: str) -> None:
    """`op` brings a column back to the width of the step's operand."""
    axis = graph.axes(step.inputs[0])[-1]
    graph.apply(op, target, upstream, width=axis.size, axes=(axis.name,))


# --- a row's sum, and its transpose: a number repeated along a row ----------------------------------------------------

ROW_SUM = Op(
    name="row_sum",
    compute=lambda xp, a: xp.sum(a, -1),
    axes="i j -> i 1",
    formula=r"\sum_j #1",
    why=N_("Add up each {row}."),
    backward=(lambda graph, step, upstream, target: _over_width(BROADCAST, graph, step, upstream, target),),
)
#: A column (… i 1) repeated `width` times (… i j).
BROADCAST: Op = Op(
    "broadcast",
    "i 1 -> i =j:width",
    lambda xp, a, *, width: xp.repeat(a, width, -1),
    lambda params, columns: r"\mathbf{1} \, #1" if columns else r"#1 \mathbf{1}^{\top}",
    N_("Every entry of a {row} counts once in its sum, so each gets the sum's gradient in full."),
    (lambda graph, step, upstream, target: graph.apply(ROW_SUM, target, upstream),),
)

ROW_MAX = Op(
    name="row_max",
    compute=lambda xp, a: xp.max(a, -1),
    axes="i j -> i 1",
    formula=r"\max_j #1",
    why=N_(
        "The largest score in each {row} that is not masked. Subtracting it first keeps e^x "
        "from overflowing and does not change the weights."
    ),
)

#: The gradient of numbers that every row shares (a bias, γ, β).
COLUMN_SUM = Op(
    name="column_sum",
    compute=lambda xp, a: xp.sum(a, -2),
    axes="i j -> 1 j",
    formula=lambda params, columns: r"\sum_j #1" if columns else r"\sum_i #1",
    why=N_("Every {row} used the same numbers, so the gradients of all {rows} are added."),
)


# --- a row's mean, and what it gives back -----------------------------------------------------------------------------


def row_mean(xp: Arithmetic, a: Value) -> Value:
    """The mean along the last axis, which is kept with length 1."""
    return xp.divide(xp.sum(a, -1), numeral(xp, a.shape[-1]))


ROW_MEAN = Op(
    name="row_mean",
    compute=row_mean,
    axes="i j -> i 1",
    formula=lambda params, columns: r"\frac{1}{d} \sum_i #1" if columns else r"\frac{1}{d} \sum_j #1",
    why=N_("The mean of each {row}: its entries added up, divided by how many there are."),
    backward=(lambda graph, step, upstream, target: _over_width(SHARE_MEAN, graph, step, upstream, target),),
)
#: A column (… i 1) over `width`, repeated as often (… i width).
SHARE_MEAN: Op = Op(
    "share_mean",
    "i 1 -> i =j:width",
    lambda xp, a, *, width: xp.repeat(xp.divide(a, numeral(xp, width)), width, -1),
    lambda params, columns: r"\frac{1}{d} \mathbf{1} \, #1" if columns else r"\frac{1}{d} #1 \mathbf{1}^{\top}",
    N_("Every entry of a {row} moves the mean by 1/d of its own change, so each gets 1/d of the mean's gradient."),
    (lambda graph, step, upstream, target: graph.apply(ROW_MEAN, target, upstream),),
)


# --- a row's mean square: a variance, where its mean is 0 -------------------------------------------------------------

ROW_MEAN_SQUARE = Op(
    name="row_mean_square",
    compute=lambda xp, a: row_mean(xp, xp.multiply(a, a)),
    axes="i j -> i 1",
    formula=lambda params, columns: r"\frac{1}{d} \sum_i #1^2" if columns else r"\frac{1}{d} \sum_j #1^2",
    why=N_("Square every entry, so that signs do not cancel, and take the mean of each {row}."),
    backward=(lambda graph, step, upstream, target: graph.apply(SHARE_SQUARE, target, step.inputs[0], upstream),),
)


def _share_square(xp: Arithmetic, a: Value, gradient: Value) -> Value:
    """(2/d) · a · gradient: a (… i d), gradient (… i 1)."""
    share = xp.divide(numeral(xp, 2.0), numeral(xp, a.shape[-1]))
    return xp.multiply(xp.multiply(share, a), gradient)


SHARE_SQUARE: Op = Op(
    name="share_square",
    compute=_share_square,
    axes="i j, i 1 -> i j",
    formula=r"\frac{2}{d} #1 \odot #2",
    why=N_("The slope of x² is 2x, and the mean takes 1/d of it."),
)


# --- less its own number ----------------------------------------------------------------------------------------------


def _difference(xp: Arithmetic, a: Value, b: Value, *, column: bool = False) -> Value:
    """a − b; a column b is taken from every entry of its row.

    What is hidden (−∞) stays hidden, also where b is −∞ because a whole row is hidden; a term knows that of itself.
    """
    difference = xp.subtract(a, b)
    lost = xp.hidden(b)
    if np.count_nonzero(lost):  # a third of the time that lost.any() takes
        return xp.where(lost & xp.hidden(a), numeral(xp, -np.inf), difference)
    return difference


def _to_subtrahend(graph: Graph, step: Step, upstream: str, target: str) -> None:
    """Minus one for every entry it was taken from."""
    total = upstream
    if step.params.get("column"):
        added = N_("The same number was taken from every entry of the {row}, so what they send back is added up.")
        total = graph.apply(ROW_SUM, f"{target}_total", upstream, symbol="t", why=added)
    why = N_("It was subtracted: if it grows by 1, the difference falls by 1. Hence the minus.")
    graph.apply(SCALE, target, total, factor=as_matrix(-1.0), why=why)


SUBTRACT = Op(
    "subtract",
    lambda params: "i j, i 1 -> i j" if params.get("column") else "i j, i j -> i j",
    _difference,
    "#1 - #2",
    N_("Subtract, entry by entry."),
    (
        unchanged(N_("If what is subtracted from grows by 1, so does the difference: the gradient passes unchanged.")),
        _to_subtrahend,
    ),
)
CENTRE = SUBTRACT.changed(name="centre", why=N_("Each {row} minus its mean, so that it is centred on 0."))


# --- divided by its own number ----------------------------------------------------------------------------------------


def _share(xp: Arithmetic, a: Value, b: Value, scores: Value | None = None) -> Value:
    """a / b for each row; with `scores` (… i j), rows in which all of them are hidden become 0."""
    share = xp.divide(a, b)
    if scores is None:
        return share
    return xp.where(np.all(xp.hidden(scores), -1, keepdims=True), numeral(xp, 0.0), share)


def _to_dividend(graph: Graph, step: Step, upstream: str, target: str) -> None:
    """Divided as well."""
    why = N_(
        "Forward, the {row} was divided by this number, so a change in it counts that much less: divide the gradient too."
    )
    graph.apply(DIVIDE, target, upstream, *step.inputs[1:], why=why)


def _to_divisor(graph: Graph, step: Step, upstream: str, target: str) -> None:
    """∂(a/b)/∂b = −(a/b)/b, added up along the row; 0 for a row that is marked empty."""
    why = N_("How much each entry would pull on the common divisor of its {row}.")
    product = graph.apply(MULTIPLY, f"{target}_product", upstream, step.id, symbol="P", why=why)
    why = N_("All entries of a {row} share one divisor, so their pulls on it are added up.")
    total = graph.apply(ROW_SUM, f"{target}_total", product, symbol="p", why=why)
    why = N_("If the divisor b grows, a/b falls by (a/b)/b. This is that size; the minus comes next.")
    share = graph.apply(DIVIDE, f"{target}_share", total, *step.inputs[1:], symbol="q", why=why)
    why = N_("A larger divisor makes every entry of the {row} smaller, hence the minus.")
    graph.apply(SCALE, target, share, factor=as_matrix(-1.0), why=why)


DIVIDE = Op(
    name="divide",
    compute=_share,
    axes="i j, i 1, i k ? -> i j",
    formula=r"\frac{#1}{#2}",
    why=N_("Each entry as a share of its {row}, so before rounding every {row} adds up to exactly 1."),
    backward=(_to_dividend, _to_divisor, None),
)
STANDARDISE = DIVIDE.changed(
    name="standardise", why=N_("Each {row} divided by its own spread: whatever its size was, it is about 1 now.")
)


# --- what a row is divided by, and the logarithm of its sum -----------------------------------------------------------

#: Of a column: ∂ ln a/∂a = 1/a.
LOGARITHM = Op(
    "logarithm",
    "i 1 -> i 1",
    lambda xp, a: xp.log(a),
    r"\ln #1",
    N_("The natural logarithm, to the base e: it undoes e^x."),
    (lambda graph, step, upstream, target: graph.apply(DIVIDE, target, upstream, step.inputs[0]),),
)


def _by_root(halved: str, why: str, symbol: str | None = None) -> Rule:
    """∂√x/∂x = 1/(2√x), the root being the step itself."""

    def gradient(graph: Graph, step: Step, upstream: str, target: str) -> None:
        half = graph.apply(SCALE, f"{target}_half", upstream, symbol=symbol, factor=as_matrix(0.5), why=halved or None)
        graph.apply(DIVIDE, target, half, step.id, why=why)

    return gradient


ROOT = Op(
    "root",
    "i 1 -> i 1",
    lambda xp, a: xp.sqrt(a),
    r"\sqrt{#1}",
    N_("The square root brings a variance back to the unit of the numbers themselves: the standard deviation."),
    (_by_root("", N_("The slope of √x is 1/(2√x).")),),
)


def _root_eps_numbers(params: Params) -> str:
    eps = size(params, "eps")
    return rf"\sqrt{{#1 + {in_formula(eps)}}}" if eps else r"\sqrt{#1}"


ROOT_EPS = Op(
    "root_eps",
    "i 1 -> i 1",
    lambda xp, a, *, eps: xp.sqrt(xp.add(a, xp.constant(eps))),
    lambda params, columns: r"\sqrt{#1 + \varepsilon}" if size(params, "eps") else r"\sqrt{#1}",
    N_("The square root brings a variance back to the unit of the numbers themselves; ε keeps it away from 0."),
    (
        _by_root(
            N_("The slope of √x is 1/(2√x): first the half …"),
            N_("… then divided by the root itself, which the way forward has worked out already."),
            "h",
        ),
    ),
    numbers=_root_eps_numbers,
)
ADD_EPS = Op(
    "add_eps",
    "i 1 -> i 1",
    lambda xp, a, *, eps: xp.add(a, xp.constant(eps)),
    r"#1 + \varepsilon",
    N_("ε is added after the root here, not under it: another convention, and other digits."),
    (unchanged(N_("ε is a constant: the gradient passes unchanged.")),),
    numbers=lambda params: f"#1 + {in_formula(size(params, 'eps'))}",
)


# --- γ and β ----------------------------------------------------------------------------------------------------------


def _scale_shift(xp: Arithmetic, a: Value, *vectors: Value, gamma: bool, beta: bool) -> Value:
    """γ ⊙ a + β: a (… i j), the vectors that there are (1 j)."""
    if gamma:
        a = xp.multiply(vectors[0], a)
    return xp.add(a, vectors[-1]) if beta else a


def _scale_shift_formula(params: Params, columns: bool) -> str:
    scaled = r"#2 \odot #1" if params["gamma"] else "#1"
    return f"{scaled} + #{2 + params['gamma']}" if params["beta"] else scaled


def _to_rows(graph: Graph, step: Step, upstream: str, target: str) -> None:
    if not step.params["gamma"]:
        graph.apply(IDENTITY, target, upstream)
        return
    why = N_("A factor on the way forward is the same factor on the way back.")
    graph.apply(SCALE_SHIFT, target, upstream, step.inputs[1], gamma=True, beta=False, why=why)


def _to_first_vector(graph: Graph, step: Step, upstream: str, target: str) -> None:
    """γ receives each row's gradient times what it multiplied, added over the rows; β alone, the gradients themselves."""
    if step.params["gamma"]:
        why = N_(
            "How each {row} wants the factor to change: its gradient times the "
            "number that the factor was multiplied by."
        )
        upstream = graph.apply(MULTIPLY, f"{target}_product", upstream, step.inputs[0], symbol=r"P_\gamma", why=why)
    graph.apply(COLUMN_SUM, target, upstream)


SCALE_SHIFT = Op(
    "scale_shift",
    lambda params: f"i j{', 1 j' * (params['gamma'] + params['beta'])} -> i j",
    _scale_shift,
    _scale_shift_formula,
    N_("Each {column} gets its own factor and its own shift, which are learned and the same for every {row}."),
    (_to_rows, _to_first_vector, lambda graph, step, upstream, target: graph.apply(COLUMN_SUM, target, upstream)),
)
