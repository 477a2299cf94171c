"""A step of training: against the gradient, or, with Adam, against its running mean (Kingma and Ba, arXiv 1412.6980)."""

from __future__ import annotations

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params, Step
from attncli.core.matrix import Matrix
from attncli.core.message import N_
from attncli.core.terms import Index, Term, Values, at, number
from attncli.ops.elementwise import SCALE, entrywise, in_formula, size, unchanged

# --- gradient descent -------------------------------------------------------------------------------------------------


def _update(xp: Arithmetic, a: Value, gradient: Value, *, eta: Matrix) -> Value:
    """a − η · gradient."""
    return xp.subtract(a, xp.multiply(xp.constant(eta), gradient))


def _update_terms(step: Step, index: Index, values: Values) -> Term:
    a, gradient = (at(values, operand, index) for operand in step.inputs)
    return Term("difference", a, Term("product", number(size(step.params, "eta")), gradient))


UPDATE = Op(
    name="update",
    compute=_update,
    axes="i j, i j -> i j",
    formula=r"#1 - \eta \, #2",
    numbers=lambda params: rf"#1 - {in_formula(size(params, 'eta'))} \cdot #2",
    terms=_update_terms,
    why=N_("The gradient points uphill, so a small step the other way (η is the step size) makes the loss smaller."),
    backward=(
        unchanged(),
        lambda graph, step, upstream, target: graph.apply(SCALE, target, upstream, factor=step.params["eta"].negated()),
    ),
)


# --- Adam: its memory m and v, the same corrected for their beginning, and the step (algorithm 1) ---------------------


def _moving_average(xp: Arithmetic, old: Value, new: Value, *, keep: Matrix, rest: Matrix, square: bool) -> Value:
    """keep · old + rest · new, or of new², with rest = 1 − keep."""
    fresh = xp.multiply(new, new) if square else new
    return xp.add(xp.multiply(xp.constant(keep), old), xp.multiply(xp.constant(rest), fresh))


def _moving_average_formula(params: Params, columns: bool) -> str:
    label = params["label"]
    return rf"{label} \, #1 + (1 - {label}) \, #2{'^2' if params['square'] else ''}"


def _moving_average_numbers(params: Params) -> str:
    keep = size(params, "keep")
    return rf"{keep:g} \cdot #1 + {1 - keep:g} \cdot #2{'^2' if params['square'] else ''}"


def _moving_average_terms(step: Step, index: Index, values: Values) -> Term:
    old, new = (at(values, operand, index) for operand in step.inputs)
    keep = size(step.params, "keep")
    fresh = (new, new) if step.params["square"] else (new,)
    return Term("sum", Term("product", number(keep), old), Term("product", number(1 - keep), *fresh))


MOVING_AVERAGE = Op(
    name="moving_average",
    compute=_moving_average,
    axes="i j, i j -> i j",
    formula=_moving_average_formula,
    numbers=_moving_average_numbers,
    terms=_moving_average_terms,
    why=N_("Adam remembers: most of the old mean stays, a little of this step's gradient comes in."),
)
#: Divided by 1 − βᵗ.
UNBIASED = Op(
    name="unbiased",
    compute=lambda xp, a, correction: xp.divide(a, correction),
    axes="i j, 1 1 -> i j",
    formula=r"\frac{#1}{#2}",
    terms=entrywise("quotient"),
    why=N_("The running mean began at 0 and is too small at first; this makes up for it."),
)


def _adam_update(xp: Arithmetic, a: Value, mean: Value, square: Value, *, eta: Matrix, eps: Matrix) -> Value:
    """a − η m̂ / (√v̂ + ε)."""
    share = xp.divide(mean, xp.add(xp.sqrt(square), xp.constant(eps)))
    return xp.subtract(a, xp.multiply(xp.constant(eta), share))


def _adam_numbers(params: Params) -> str:
    eta, eps = in_formula(size(params, "eta")), in_formula(size(params, "eps"))
    return rf"#1 - {eta} \, \frac{{#2}}{{\sqrt{{#3}} + {eps}}}"


def _adam_terms(step: Step, index: Index, values: Values) -> Term:
    a, mean, square = (at(values, operand, index) for operand in step.inputs)
    spread = Term("sum", Term("root", square), number(size(step.params, "eps")))
    return Term("difference", a, Term("product", number(size(step.params, "eta")), Term("quotient", mean, spread)))


ADAM_UPDATE = Op(
    name="adam_update",
    compute=_adam_update,
    axes="i j, i j, i j -> i j",
    formula=r"#1 - \eta \, \frac{#2}{\sqrt{#3} + \varepsilon}",
    numbers=_adam_numbers,
    terms=_adam_terms,
    why=N_(
        "Against the mean gradient; divided by its usual size, every number moves about η, however steep it stands."
    ),
)
