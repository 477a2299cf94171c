"""Curves that bend every entry, each with its slope: those of a feed-forward layer, and the soft cap of scores.

ReLU: max(x, 0). GELU: x Φ(x), with Φ the normal distribution (Hendrycks and Gimpel, arXiv 1606.08415, section 2), or its
approximation by tanh from the same page. SiLU, also called Swish: x / (1 + e^−x).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Op, Step, part_of
from attncli.core.matrix import EXACT, Expression, Matrix, as_matrix
from attncli.core.message import N_
from attncli.core.record import Record
from attncli.core.terms import Index, Term, Values, number
from attncli.ops.elementwise import MULTIPLY, same_cell, size


class Curve(Record):
    """A curve and its slope: what is computed, as a formula, and the arithmetic of one cell x."""

    value: Callable[[Arithmetic, Value], Value]
    formula: str
    terms: Callable[[Term], Term]
    slope: Callable[[Arithmetic, Value], Value]
    slope_formula: str
    slope_terms: Callable[[Term], Term]


# π and √2 are kept as such for exact results.


def _literal(value: float, entry: Expression) -> Matrix:
    return Matrix(np.asarray(value), np.asarray(EXACT), (entry,))


ONE = _literal(1.0, ("num", "1"))
HALF = _literal(0.5, ("num", "0.5"))
CUBIC = _literal(0.044715, ("num", "0.044715"))
THREE_CUBIC = _literal(0.134145, ("num", "0.134145"))
ROOT_2 = _literal(math.sqrt(2.0), ("sqrt", ("num", "2")))
ROOT_2_PI = _literal(math.sqrt(2.0 / math.pi), ("sqrt", ("/", ("num", "2"), ("pi",))))
ROOT_TAU = _literal(math.sqrt(2.0 * math.pi), ("sqrt", ("*", ("num", "2"), ("pi",))))


def _term(constant: Matrix) -> Term:
    return number(float(constant.values))


def _negative(xp: Arithmetic, a: Value) -> Value:
    return xp.multiply(xp.constant(ONE.negated()), a)


def _half_of_one_and(xp: Arithmetic, inside: Value) -> Value:
    """(1 + inside) / 2: from −1 … 1 to a share."""
    return xp.multiply(xp.constant(HALF), xp.add(xp.constant(ONE), inside))


# --- ReLU -------------------------------------------------------------------------------------------------------------

RELU = Curve(
    value=lambda xp, a: xp.positive(a),
    formula=r"\max(#1, 0)",
    terms=lambda x: Term("max", x, number(0.0)),
    slope=lambda xp, a: xp.is_positive(a),  # 0 at 0
    slope_formula=r"[#1 > 0]",
    slope_terms=lambda x: Term("positive", x),
)


# --- SiLU -------------------------------------------------------------------------------------------------------------


def _sigmoid(xp: Arithmetic, a: Value) -> Value:
    """1 / (1 + e^−a)."""
    one = xp.constant(ONE)
    return xp.divide(one, xp.add(one, xp.exp(_negative(xp, a))))


def _silu_slope(xp: Arithmetic, a: Value) -> Value:
    """σ (1 + a (1 − σ))."""
    one, share = xp.constant(ONE), _sigmoid(xp, a)
    return xp.multiply(share, xp.add(one, xp.multiply(a, xp.subtract(one, share))))


def _one_and_exp(x: Term) -> Term:
    return Term("sum", _term(ONE), Term("exp", Term("product", number(-1.0), x)))


def _silu_slope_terms(x: Term) -> Term:
    one = _term(ONE)
    share = Term("quotient", one, _one_and_exp(x))
    return Term("product", share, Term("sum", one, Term("product", x, Term("difference", one, share))))


SILU = Curve(
    value=lambda xp, a: xp.multiply(a, _sigmoid(xp, a)),
    formula=r"\frac{#1}{1 + e^{-#1}}",
    terms=lambda x: Term("quotient", x, _one_and_exp(x)),
    slope=_silu_slope,
    slope_formula=r"\sigma (1 + #1 (1 - \sigma))",
    slope_terms=_silu_slope_terms,
)


# --- GELU -------------------------------------------------------------------------------------------------------------


def _normal(xp: Arithmetic, a: Value) -> Value:
    """Φ(a) = (1 + erf(a/√2)) / 2."""
    return _half_of_one_and(xp, xp.erf(xp.divide(a, xp.constant(ROOT_2))))


def _gelu_slope(xp: Arithmetic, a: Value) -> Value:
    """Φ(a) + a e^(−a²/2)/√(2π)."""
    power = xp.exp(_negative(xp, xp.multiply(xp.constant(HALF), xp.multiply(a, a))))
    return xp.add(_normal(xp, a), xp.multiply(a, xp.divide(power, xp.constant(ROOT_TAU))))


def _erf_terms(x: Term) -> Term:
    return Term("sum", _term(ONE), Term("erf", Term("quotient", x, Term("root", number(2.0)))))


def _gelu_slope_terms(x: Term) -> Term:
    power = Term("exp", Term("product", number(-0.5), x, x))
    density = Term("product", x, Term("quotient", power, _term(ROOT_TAU)))
    return Term("sum", Term("product", _term(HALF), _erf_terms(x)), density)


GELU = Curve(
    value=lambda xp, a: xp.multiply(a, _normal(xp, a)),
    formula=r"#1 \odot \Phi(#1)",
    terms=lambda x: Term("product", _term(HALF), x, _erf_terms(x)),
    slope=_gelu_slope,
    slope_formula=r"\Phi(#1) + #1 \odot \frac{e^{-#1^2/2}}{\sqrt{2\pi}}",
    slope_terms=_gelu_slope_terms,
)


# --- GELU by tanh -----------------------------------------------------------------------------------------------------


def _tanh(xp: Arithmetic, a: Value) -> Value:
    """t = tanh(√(2/π) (a + 0.044715 a³))."""
    cubed = xp.multiply(xp.constant(CUBIC), xp.multiply(xp.multiply(a, a), a))
    return xp.tanh(xp.multiply(xp.constant(ROOT_2_PI), xp.add(a, cubed)))


def _gelu_tanh_slope(xp: Arithmetic, a: Value) -> Value:
    """(1 + t)/2 + a/2 (1 − t²) √(2/π) (1 + 0.134145 a²)."""
    one, half, t = xp.constant(ONE), xp.constant(HALF), _tanh(xp, a)
    steep = xp.multiply(xp.constant(ROOT_2_PI), xp.add(one, xp.multiply(xp.constant(THREE_CUBIC), xp.multiply(a, a))))
    rest = xp.multiply(xp.multiply(half, a), xp.multiply(xp.subtract(one, xp.multiply(t, t)), steep))
    return xp.add(_half_of_one_and(xp, t), rest)


def _tanh_terms(x: Term) -> Term:
    cubed = Term("product", _term(CUBIC), x, x, x)
    return Term("tanh", Term("product", _term(ROOT_2_PI), Term("sum", x, cubed)))


def _gelu_tanh_slope_terms(x: Term) -> Term:
    one, half, t = _term(ONE), _term(HALF), _tanh_terms(x)
    steep = Term("sum", one, Term("product", _term(THREE_CUBIC), x, x))
    flat = Term("difference", one, Term("product", t, t))
    rest = Term("product", half, x, flat, _term(ROOT_2_PI), steep)
    return Term("sum", Term("product", half, Term("sum", one, t)), rest)


GELU_TANH = Curve(
    value=lambda xp, a: xp.multiply(a, _half_of_one_and(xp, _tanh(xp, a))),
    formula=r"\frac{1}{2} #1 \odot (1 + \tanh(\sqrt{2/\pi} (#1 + 0.044715 \, #1^3)))",
    terms=lambda x: Term("product", _term(HALF), x, Term("sum", _term(ONE), _tanh_terms(x))),
    slope=_gelu_tanh_slope,
    slope_formula=(r"\frac{1}{2}(1 + t) + \frac{1}{2} #1 (1 - t^2) \sqrt{2/\pi} (1 + 0.134145 \, #1^2)"),
    slope_terms=_gelu_tanh_slope_terms,
)


# --- the bend of a feed-forward layer ---------------------------------------------------------------------------------

CURVES = {"relu": RELU, "gelu": GELU, "gelu_tanh": GELU_TANH, "silu": SILU}


def _activation_gradient(graph: Graph, step: Step, upstream: str, target: str) -> None:
    """The slope at every entry, times what arrives there."""
    slope_id, kind = part_of(step.id) + "slope", step.params["kind"]
    slope = graph.apply(ACTIVATION_SLOPE, slope_id, step.inputs[0], symbol="D", kind=kind)
    why = N_("Each entry passes on as much of its gradient as the curve is steep there.")
    graph.apply(MULTIPLY, target, upstream, slope, why=why)


ACTIVATION = Op(
    name="activation",
    compute=lambda xp, a, *, kind: CURVES[kind].value(xp, a),
    axes="i j -> i j",
    formula=lambda params, columns: CURVES[params["kind"]].formula,
    terms=lambda step, index, values: CURVES[step.params["kind"]].terms(same_cell(step, index, values)),
    why=N_("Every entry is bent by the same curve. Without a bend two matrices in a row would be no more than one."),
    backward=(_activation_gradient,),
)
ACTIVATION_SLOPE = Op(
    name="activation_slope",
    compute=lambda xp, a, *, kind: CURVES[kind].slope(xp, a),
    axes="i j -> i j",
    formula=lambda params, columns: CURVES[params["kind"]].slope_formula,
    terms=lambda step, index, values: CURVES[step.params["kind"]].slope_terms(same_cell(step, index, values)),
    why=N_("How steep the curve is at every entry: about 1 where it lets everything through, 0 where it is flat."),
)


# --- the soft cap of scores: c·tanh(x/c) keeps them between −c and c (Gemma 2, arXiv 2408.00118, section 2) -----------


def _softcap(xp: Arithmetic, a: Value, *, cap: Matrix) -> Value:
    """cap · tanh(a / cap)."""
    c = xp.constant(cap)
    return xp.multiply(c, xp.tanh(xp.divide(a, c)))


def _share_of_cap(step: Step, index: Index, values: Values) -> tuple[Term, Term]:
    """An entry over the cap, and the cap."""
    c = number(size(step.params, "cap"))
    return Term("quotient", same_cell(step, index, values), c), c


def _softcap_terms(step: Step, index: Index, values: Values) -> Term:
    share, c = _share_of_cap(step, index, values)
    return Term("product", c, Term("tanh", share))


def _softcap_gradient(graph: Graph, step: Step, upstream: str, target: str) -> None:
    slope_id, cap = part_of(step.id) + "slope", step.params["cap"]
    slope = graph.apply(CAP_SLOPE, slope_id, step.id, symbol=r"\sigma", cap=cap)
    why = N_("Where the cap bends the curve flat, little of the gradient gets through.")
    graph.apply(MULTIPLY, target, upstream, slope, why=why)


SOFTCAP = Op(
    name="softcap",
    compute=_softcap,
    axes="i j -> i j",
    formula=r"c \tanh(#1 / c)",
    numbers=lambda params: rf"{size(params, 'cap'):g} \tanh(#1 / {size(params, 'cap'):g})",
    terms=_softcap_terms,
    why=N_("Large scores are bent softly towards the cap; small ones hardly change."),
    backward=(_softcap_gradient,),
)


def _cap_slope(xp: Arithmetic, a: Value, *, cap: Matrix) -> Value:
    """tanh' = 1 − tanh², so of the capped a it is 1 − (a / cap)²."""
    share = xp.divide(a, xp.constant(cap))
    return xp.subtract(xp.constant(as_matrix(1.0)), xp.multiply(share, share))


def _cap_slope_terms(step: Step, index: Index, values: Values) -> Term:
    share, _ = _share_of_cap(step, index, values)
    return Term("difference", number(1.0), Term("product", share, share))


CAP_SLOPE = Op(
    name="cap_slope",
    compute=_cap_slope,
    axes="i j -> i j",
    formula=r"1 - (#1 / c)^2",
    terms=_cap_slope_terms,
    why=N_("The slope of the soft cap at every entry: 1 for small scores, near 0 at the cap."),
)
