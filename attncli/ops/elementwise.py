"""Entry by entry: what happens to a number does not depend on its neighbours.

A curve's slope, and what a step of training makes of a number, stand beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Op, Params, Rule, Step, part_of
from attncli.core.matrix import EXACT, Expression, Matrix, as_matrix
from attncli.core.message import N_
from attncli.core.record import Record


def numeral(xp: Arithmetic, value: float) -> Value:
    """A plain number of the arithmetic, one that a float64 holds: 0, 1/2, d."""
    return xp.constant(as_matrix(float(value)))


def literal(value: float, entry: Expression) -> Matrix:
    """A number that a float64 may not hold, as it is written: bounds and exact results have it in their own way."""
    return Matrix(np.asarray(value), np.asarray(EXACT), (entry,))


def size(params: Params, name: str) -> float:
    """The number that a parameter is."""
    return float(params[name].values)


def in_formula(value: float) -> str:
    r"""A number of a formula: 0.1, 1e-08 as 10^{-8}, 2.5e-06 as 2.5 \cdot 10^{-6}."""
    digits, _, power = f"{value:g}".partition("e")
    if not power:
        return digits
    exponent = f"10^{{{int(power)}}}"
    return exponent if digits == "1" else rf"{digits} \cdot {exponent}"


# --- the same numbers -------------------------------------------------------------------------------------------------


def unchanged(why: str = "") -> Rule:
    """A gradient that passes as it is, and why."""
    return lambda graph, step, upstream, target: graph.apply(IDENTITY, target, upstream, why=why or None)


IDENTITY = Op("identity", "i j -> i j", lambda xp, a: a, "#1", N_("The gradient passes unchanged."), (unchanged(),))


# --- sums and products ------------------------------------------------------------------------------------------------


def sum_of_two(name: str, why: str, *rules: Rule | None) -> Op:
    """a + b under a name of its own."""
    return Op(name, "i j, i j -> i j", lambda xp, a, b: xp.add(a, b), "#1 + #2", why, rules)


TO_BOTH = unchanged(
    N_("A sum hands its gradient on to both parts in full; this is why a residual keeps gradients alive.")
)
#: What went into a sublayer, added to what came out of it (He et al., arXiv 1512.03385, equation 1).
RESIDUAL = sum_of_two(
    "residual",
    N_("What went in is added to what came out, so a sublayer only has to learn the difference."),
    TO_BOTH,
    TO_BOTH,
)
#: Scores, and 0 where a key may be seen, −∞ where it may not.
MASK = sum_of_two(
    "mask",
    N_("Adding −∞ hides a key, adding 0 leaves it alone. e^−∞ = 0, so a hidden key gets a weight of exactly 0."),
    unchanged(
        N_(
            "The mask only adds a constant, so the gradient passes unchanged."
            " Hidden places already carry 0: their weight was 0."
        )
    ),
    None,
)

MULTIPLY: Op = Op(
    "multiply",
    "i j, i j -> i j",
    lambda xp, a, b: xp.multiply(a, b),
    r"#1 \odot #2",
    N_("Multiply entry by entry, not row by column."),
    (
        lambda graph, step, upstream, target: graph.apply(MULTIPLY, target, upstream, step.inputs[1]),
        lambda graph, step, upstream, target: graph.apply(MULTIPLY, target, upstream, step.inputs[0]),
    ),
)


def _scaled(
    xp: Arithmetic, a: Value, *, root: Matrix | None = None, factor: Matrix | None = None, divisor: Matrix | None = None
) -> Value:
    """a / √root, a / divisor, or a · factor."""
    if divisor is not None:
        return xp.divide(a, xp.constant(divisor))
    if root is not None:
        return xp.divide(a, xp.round_intermediate(xp.sqrt(xp.constant(root))))
    assert factor is not None
    return xp.multiply(a, xp.constant(factor))


def _scaled_by(params: Params, label: str) -> str:
    """The formula with this in the place of the number."""
    if params.get("root") is not None:
        return rf"\frac{{#1}}{{\sqrt{{{label}}}}}"
    if params.get("divisor") is not None:
        return rf"\frac{{#1}}{{{label}}}"
    return rf"{label} \cdot #1"


def _scale_formula(params: Params, columns: bool) -> str:
    label: str = params.get("label") or ""
    if not label and params.get("factor") is not None:
        return _scale_numbers(params)
    return _scaled_by(params, label or "c")


def _scale_numbers(params: Params) -> str:
    value = size(params, next(name for name in ("root", "divisor", "factor") if params.get(name) is not None))
    return _scaled_by(params, str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}")


SCALE: Op = Op(
    "scale",
    "i j -> i j",
    _scaled,
    _scale_formula,
    N_("Every entry gets the same factor. A factor on the way forward is the same factor on the way back."),
    (lambda graph, step, upstream, target: graph.apply(SCALE, target, upstream, notes=step.notes, **step.params),),
    numbers=_scale_numbers,
)


# --- functions --------------------------------------------------------------------------------------------------------


def _exp_gradient(graph: Graph, step: Step, upstream: str, target: str) -> None:
    graph.apply(MULTIPLY, target, upstream, step.id, why=N_("The slope of e^x is e^x itself."))


EXP = Op(
    "exp",
    "i j -> i j",
    lambda xp, a: xp.exp(a),
    "e^{#1}",
    N_("e^x makes every entry positive and keeps their order. e^0 = 1, and e^−∞ = 0 for what is hidden."),
    (_exp_gradient,),
)


# --- the curves of a feed-forward layer, each with its slope ----------------------------------------------------------
#
# GELU: x Φ(x), with Φ the normal distribution (Hendrycks and Gimpel, arXiv 1606.08415, section 2), or its approximation
# by tanh from the same page. SiLU, also called Swish: x / (1 + e^−x).


class Curve(Record):
    """A curve and its slope: what is calculated, and as a formula."""

    value: Callable[[Arithmetic, Value], Value]
    formula: str
    slope: Callable[[Arithmetic, Value], Value]
    slope_formula: str


CUBIC = literal(0.044715, ("num", "0.044715"))
THREE_CUBIC = literal(0.134145, ("num", "0.134145"))
ROOT_2 = literal(math.sqrt(2.0), ("sqrt", ("num", "2")))
ROOT_2_PI = literal(math.sqrt(2.0 / math.pi), ("sqrt", ("/", ("num", "2"), ("pi",))))
ROOT_TAU = literal(math.sqrt(2.0 * math.pi), ("sqrt", ("*", ("num", "2"), ("pi",))))


def _one_and(xp: Arithmetic, a: Value) -> Value:
    return xp.add(numeral(xp, 1.0), a)


def _one_minus(xp: Arithmetic, a: Value) -> Value:
    return xp.subtract(numeral(xp, 1.0), a)


def _minus(xp: Arithmetic, a: Value) -> Value:
    return xp.multiply(numeral(xp, -1.0), a)


def _half(xp: Arithmetic, a: Value) -> Value:
    return xp.multiply(numeral(xp, 0.5), a)


def _sigmoid(xp: Arithmetic, a: Value) -> Value:
    """1 / (1 + e^−a)."""
    return xp.divide(numeral(xp, 1.0), _one_and(xp, xp.exp(_minus(xp, a))))


def _silu_slope(xp: Arithmetic, a: Value) -> Value:
    """σ (1 + a (1 − σ))."""
    share = _sigmoid(xp, a)
    return xp.multiply(share, _one_and(xp, xp.multiply(a, _one_minus(xp, share))))


def _one_and_erf(xp: Arithmetic, a: Value) -> Value:
    """1 + erf(a/√2) = 2 Φ(a)."""
    return _one_and(xp, xp.erf(xp.divide(a, xp.constant(ROOT_2))))


def _gelu_slope(xp: Arithmetic, a: Value) -> Value:
    """Φ(a) + a e^(−a²/2)/√(2π)."""
    power = xp.exp(_minus(xp, _half(xp, xp.multiply(a, a))))
    return xp.add(_half(xp, _one_and_erf(xp, a)), xp.multiply(a, xp.divide(power, xp.constant(ROOT_TAU))))


def _tanh(xp: Arithmetic, a: Value) -> Value:
    """t = tanh(√(2/π) (a + 0.044715 a³))."""
    cubed = xp.multiply(xp.constant(CUBIC), xp.multiply(xp.multiply(a, a), a))
    return xp.tanh(xp.multiply(xp.constant(ROOT_2_PI), xp.add(a, cubed)))


def _gelu_tanh_slope(xp: Arithmetic, a: Value) -> Value:
    """(1 + t)/2 + a/2 (1 − t²) √(2/π) (1 + 0.134145 a²)."""
    t = _tanh(xp, a)
    inside = xp.multiply(xp.constant(ROOT_2_PI), _one_and(xp, xp.multiply(xp.constant(THREE_CUBIC), xp.multiply(a, a))))
    rest = xp.multiply(_half(xp, a), xp.multiply(_one_minus(xp, xp.multiply(t, t)), inside))
    return xp.add(_half(xp, _one_and(xp, t)), rest)


CURVES = {
    "relu": Curve(
        value=lambda xp, a: xp.positive(a),
        formula=r"\max(#1, 0)",
        slope=lambda xp, a: xp.is_positive(a),  # 0 at 0
        slope_formula=r"[#1 > 0]",
    ),
    "silu": Curve(
        value=lambda xp, a: xp.multiply(a, _sigmoid(xp, a)),
        formula=r"\frac{#1}{1 + e^{-#1}}",
        slope=_silu_slope,
        slope_formula=r"\sigma (1 + #1 (1 - \sigma))",
    ),
    "gelu": Curve(
        value=lambda xp, a: xp.multiply(a, _half(xp, _one_and_erf(xp, a))),
        formula=r"#1 \odot \Phi(#1)",
        slope=_gelu_slope,
        slope_formula=r"\Phi(#1) + #1 \odot \frac{e^{-#1^2/2}}{\sqrt{2\pi}}",
    ),
    "gelu_tanh": Curve(
        value=lambda xp, a: xp.multiply(a, _half(xp, _one_and(xp, _tanh(xp, a)))),
        formula=r"\frac{1}{2} #1 \odot (1 + \tanh(\sqrt{2/\pi} (#1 + 0.044715 \, #1^3)))",
        slope=_gelu_tanh_slope,
        slope_formula=r"\frac{1}{2}(1 + t) + \frac{1}{2} #1 (1 - t^2) \sqrt{2/\pi} (1 + 0.134145 \, #1^2)",
    ),
}


def _activation_gradient(graph: Graph, step: Step, upstream: str, target: str) -> None:
    """The slope at every entry, times what arrives there."""
    slope_id, kind = part_of(step.id) + "slope", step.params["kind"]
    slope = graph.apply(ACTIVATION_SLOPE, slope_id, step.inputs[0], symbol="D", kind=kind)
    why = N_("Each entry passes on as much of its gradient as the curve is steep there.")
    graph.apply(MULTIPLY, target, upstream, slope, why=why)


ACTIVATION = Op(
    "activation",
    "i j -> i j",
    lambda xp, a, *, kind: CURVES[kind].value(xp, a),
    lambda params, columns: CURVES[params["kind"]].formula,
    N_("Every entry goes through the same curve. Without it, two matrices in a row could do no more than one."),
    (_activation_gradient,),
)
ACTIVATION_SLOPE = Op(
    "activation_slope",
    "i j -> i j",
    lambda xp, a, *, kind: CURVES[kind].slope(xp, a),
    lambda params, columns: CURVES[params["kind"]].slope_formula,
    N_("How steep the curve is at every entry: about 1 where it lets everything through, 0 where it is flat."),
)


# --- the soft cap of scores: c·tanh(x/c) keeps them between −c and c (Gemma 2, arXiv 2408.00118, section 2) -----------


def _softcap(xp: Arithmetic, a: Value, *, cap: Matrix) -> Value:
    """cap · tanh(a / cap)."""
    c = xp.constant(cap)
    return xp.multiply(c, xp.tanh(xp.divide(a, c)))


def _cap_slope(xp: Arithmetic, a: Value, *, cap: Matrix) -> Value:
    """tanh' = 1 − tanh², so of the capped a it is 1 − (a / cap)²."""
    share = xp.divide(a, xp.constant(cap))
    return _one_minus(xp, xp.multiply(share, share))


def _softcap_gradient(graph: Graph, step: Step, upstream: str, target: str) -> None:
    slope_id, cap = part_of(step.id) + "slope", step.params["cap"]
    slope = graph.apply(CAP_SLOPE, slope_id, step.id, symbol=r"\sigma", cap=cap)
    why = N_("Where the cap bends the curve flat, little of the gradient gets through.")
    graph.apply(MULTIPLY, target, upstream, slope, why=why)


SOFTCAP = Op(
    "softcap",
    "i j -> i j",
    _softcap,
    r"c \tanh(#1 / c)",
    N_("Large scores are bent softly towards the cap; small ones hardly change."),
    (_softcap_gradient,),
    numbers=lambda params: rf"{size(params, 'cap'):g} \tanh(#1 / {size(params, 'cap'):g})",
)
CAP_SLOPE = Op(
    "cap_slope",
    "i j -> i j",
    _cap_slope,
    r"1 - (#1 / c)^2",
    N_("The slope of the soft cap at every entry: 1 for small scores, near 0 at the cap."),
)


# --- a step of training -----------------------------------------------------------------------------------------------

UPDATE = Op(
    "update",
    "i j, i j -> i j",
    lambda xp, a, gradient, *, eta: xp.subtract(a, xp.multiply(xp.constant(eta), gradient)),
    r"#1 - \eta \, #2",
    N_("The gradient points uphill, so a small step the other way (η is the step size) makes the loss smaller."),
    (
        unchanged(),
        lambda graph, step, upstream, target: graph.apply(SCALE, target, upstream, factor=step.params["eta"].negated()),
    ),
    numbers=lambda params: rf"#1 - {in_formula(size(params, 'eta'))} \cdot #2",
)


# Adam: its memory m and v, the same corrected for their beginning, and the step (Kingma and Ba, arXiv 1412.6980,
# algorithm 1).


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


def _adam_update(xp: Arithmetic, a: Value, mean: Value, square: Value, *, eta: Matrix, eps: Matrix) -> Value:
    """a − η m̂ / (√v̂ + ε)."""
    share = xp.divide(mean, xp.add(xp.sqrt(square), xp.constant(eps)))
    return xp.subtract(a, xp.multiply(xp.constant(eta), share))


def _adam_numbers(params: Params) -> str:
    eta, eps = in_formula(size(params, "eta")), in_formula(size(params, "eps"))
    return rf"#1 - {eta} \, \frac{{#2}}{{\sqrt{{#3}} + {eps}}}"


MOVING_AVERAGE = Op(
    "moving_average",
    "i j, i j -> i j",
    _moving_average,
    _moving_average_formula,
    N_("Adam remembers: most of the old mean stays, a little of this step's gradient comes in."),
    numbers=_moving_average_numbers,
)
#: Divided by 1 − βᵗ.
UNBIASED = Op(
    "unbiased",
    "i j, 1 1 -> i j",
    lambda xp, a, correction: xp.divide(a, correction),
    r"\frac{#1}{#2}",
    N_("The running mean began at 0 and is too small at first; this makes up for it."),
)
ADAM_UPDATE = Op(
    "adam_update",
    "i j, i j, i j -> i j",
    _adam_update,
    r"#1 - \eta \, \frac{#2}{\sqrt{#3} + \varepsilon}",
    N_(
        "Against the mean gradient, divided by its usual size: so every number moves by about η, however steep the slope is."
    ),
    numbers=_adam_numbers,
)
