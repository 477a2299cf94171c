"""Rows brought to one scale: means and mean squares, what they give back, and what a row is divided by."""

from __future__ import annotations

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Op, Params, Rule, Step
from attncli.core.matrix import EXACT, Matrix, as_matrix
from attncli.core.message import N_
from attncli.core.terms import Index, Term, Values, along, at, number
from attncli.ops.elementwise import IDENTITY, MULTIPLY, SCALE, entrywise, in_formula, same_cell, size, unchanged
from attncli.ops.rows import COLUMN_SUM, DIVIDE, ROW_SUM, SUBTRACT, over_width, to_dividend

# --- a row's mean, and what it gives back -----------------------------------------------------------------------------


def row_mean(xp: Arithmetic, a: Value) -> Value:
    """The mean along the last axis, which is kept with length 1."""
    return xp.divide(xp.sum(a, -1), xp.constant(as_matrix(float(a.shape[-1]))))


def _over_row(cells: list[Term]) -> Term:
    return Term("quotient", Term("sum", *cells), number(float(len(cells))))


ROW_MEAN = Op(
    name="row_mean",
    compute=row_mean,
    axes="i j -> i 1",
    formula=lambda params, columns: r"\frac{1}{d} \sum_i #1" if columns else r"\frac{1}{d} \sum_j #1",
    terms=lambda step, index, values: _over_row(along(values, step.inputs[0], index, -1)),
    why=N_("The mean of each {row}: its entries added up, divided by how many there are."),
    backward=(lambda graph, step, upstream, target: over_width(graph, step, SHARE_MEAN, upstream, target),),
)


def _share_mean(xp: Arithmetic, a: Value, *, width: int) -> Value:
    """Column a / width (… i 1), repeated `width` times (… i width)."""
    return xp.repeat(xp.divide(a, xp.constant(as_matrix(float(width)))), width, -1)


def _share_mean_formula(params: Params, columns: bool) -> str:
    return r"\frac{1}{d} \mathbf{1} \, #1" if columns else r"\frac{1}{d} #1 \mathbf{1}^{\top}"


SHARE_MEAN: Op = Op(
    name="share_mean",
    compute=_share_mean,
    axes="i 1 -> i =j:width",
    formula=_share_mean_formula,
    terms=lambda step, index, values: Term(
        "quotient", same_cell(step, index, values), number(float(step.params["width"]))
    ),
    why=N_("Every entry of a {row} moves the mean by 1/d of its own change, so each gets 1/d of the mean's gradient."),
    backward=(lambda graph, step, upstream, target: graph.apply(ROW_MEAN, target, upstream),),
)

CENTRE = SUBTRACT.changed(name="centre", why=N_("Each {row} minus its mean, so that it is centred on 0."))


# --- a row's mean square: a variance, where its mean is 0 -------------------------------------------------------------

ROW_MEAN_SQUARE = Op(
    name="row_mean_square",
    compute=lambda xp, a: row_mean(xp, xp.multiply(a, a)),
    axes="i j -> i 1",
    formula=lambda params, columns: r"\frac{1}{d} \sum_i #1^2" if columns else r"\frac{1}{d} \sum_j #1^2",
    terms=lambda step, index, values: _over_row(
        [Term("product", entry, entry) for entry in along(values, step.inputs[0], index, -1)]
    ),
    why=N_("Square every entry, so that signs do not cancel, and take the mean of each {row}."),
    backward=(lambda graph, step, upstream, target: graph.apply(SHARE_SQUARE, target, step.inputs[0], upstream),),
)


def _share_square(xp: Arithmetic, a: Value, gradient: Value) -> Value:
    """(2/d) · a · gradient: a (… i d), gradient (… i 1)."""
    width = a.shape[-1]
    share = Matrix(np.asarray(2.0 / width), np.asarray(EXACT), (("/", ("num", "2"), ("num", str(width))),))
    return xp.multiply(xp.multiply(xp.constant(share), a), gradient)


def _share_square_terms(step: Step, index: Index, values: Values) -> Term:
    a, gradient = step.inputs
    share = Term("quotient", number(2.0), number(float(values[a].shape[-1])))
    return Term("product", share, at(values, a, index), at(values, gradient, index))


SHARE_SQUARE: Op = Op(
    name="share_square",
    compute=_share_square,
    axes="i j, i 1 -> i j",
    formula=r"\frac{2}{d} #1 \odot #2",
    terms=_share_square_terms,
    why=N_("The slope of x² is 2x, and the mean takes 1/d of it."),
)


# --- what a row is divided by -----------------------------------------------------------------------------------------


def _by_root(halved: str, why: str, symbol: str | None = None) -> Rule:
    """∂√x/∂x = 1/(2√x), the root being the step itself."""

    def gradient(graph: Graph, step: Step, upstream: str, target: str) -> None:
        half = graph.apply(SCALE, f"{target}_half", upstream, symbol=symbol, factor=as_matrix(0.5), why=halved or None)
        graph.apply(DIVIDE, target, half, step.id, why=why)

    return gradient


ROOT = Op(
    name="root",
    compute=lambda xp, a: xp.sqrt(a),
    axes="i 1 -> i 1",
    formula=r"\sqrt{#1}",
    terms=entrywise("root"),
    why=N_("The square root brings a variance back to the unit of the numbers themselves: the standard deviation."),
    backward=(_by_root("", N_("The slope of √x is 1/(2√x).")),),
)


def _root_eps(xp: Arithmetic, a: Value, *, eps: Matrix) -> Value:
    """√(a + eps) of a column (… i 1)."""
    return xp.sqrt(xp.add(a, xp.constant(eps)))


def _root_eps_numbers(params: Params) -> str:
    eps = size(params, "eps")
    return rf"\sqrt{{#1 + {in_formula(eps)}}}" if eps else r"\sqrt{#1}"


def _root_eps_terms(step: Step, index: Index, values: Values) -> Term:
    entry, eps = same_cell(step, index, values), size(step.params, "eps")
    return Term("root", Term("sum", entry, number(eps)) if eps else entry)


ROOT_EPS = Op(
    name="root_eps",
    compute=_root_eps,
    axes="i 1 -> i 1",
    formula=lambda params, columns: r"\sqrt{#1 + \varepsilon}" if size(params, "eps") else r"\sqrt{#1}",
    numbers=_root_eps_numbers,
    terms=_root_eps_terms,
    why=N_("The square root brings a variance back to the unit of the numbers themselves; ε keeps it away from 0."),
    backward=(
        _by_root(
            N_("The slope of √x is 1/(2√x): first the half …"),
            N_("… then divided by the root itself, which the way forward has worked out already."),
            "h",
        ),
    ),
)


def _add_eps(xp: Arithmetic, a: Value, *, eps: Matrix) -> Value:
    """a + eps of a column (… i 1)."""
    return xp.add(a, xp.constant(eps))


ADD_EPS = Op(
    name="add_eps",
    compute=_add_eps,
    axes="i 1 -> i 1",
    formula=r"#1 + \varepsilon",
    numbers=lambda params: f"#1 + {in_formula(size(params, 'eps'))}",
    terms=lambda step, index, values: Term("sum", same_cell(step, index, values), number(size(step.params, "eps"))),
    why=N_("ε is added after the root here, not under it: another convention, and other digits."),
    backward=(unchanged(N_("ε is a constant: the gradient passes unchanged.")),),
)


def _to_deviation(graph: Graph, step: Step, upstream: str, target: str) -> None:
    """∂(a/b)/∂b = −(a/b)/b, added up along the row."""
    why = N_("How much each entry would pull on the common divisor of its {row}.")
    product = graph.apply(MULTIPLY, f"{target}_product", upstream, step.id, symbol="P", why=why)
    why = N_("All entries of a {row} share one divisor, so their pulls on it are added up.")
    total = graph.apply(ROW_SUM, f"{target}_total", product, symbol="p", why=why)
    why = N_("If the divisor b grows, a/b falls by (a/b)/b. This is that size; the minus comes next.")
    share = graph.apply(DIVIDE, f"{target}_share", total, step.inputs[1], symbol="q", why=why)
    why = N_("A larger divisor makes every entry of the {row} smaller, hence the minus.")
    graph.apply(SCALE, target, share, factor=as_matrix(-1.0), why=why)


STANDARDISE = DIVIDE.changed(
    name="standardise",
    why=N_("Each {row} divided by its own spread: whatever its size was, it is about 1 now."),
    backward=(to_dividend, _to_deviation),
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


def _scale_shift_terms(step: Step, index: Index, values: Values) -> Term:
    term, place = same_cell(step, index, values), (0, index[-1])
    if step.params["gamma"]:
        term = Term("product", at(values, step.inputs[1], place), term)
    return Term("sum", term, at(values, step.inputs[-1], place)) if step.params["beta"] else term


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
    name="scale_shift",
    compute=_scale_shift,
    axes=lambda params: f"i j{', 1 j' * (params['gamma'] + params['beta'])} -> i j",
    formula=_scale_shift_formula,
    terms=_scale_shift_terms,
    why=N_("Each {column} gets its own factor and its own shift, which are learned and the same for every {row}."),
    backward=(
        _to_rows,
        _to_first_vector,
        lambda graph, step, upstream, target: graph.apply(COLUMN_SUM, target, upstream),
    ),
)
