"""The slope of the curve of a feed-forward layer, entry by entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at, number
from attncli.ops._bends import (
    CUBIC,
    HALF,
    ONE,
    ROOT_2,
    ROOT_2_PI,
    ROOT_TAU,
    THREE_CUBIC,
    bent,
    negative,
    sigmoid,
    tanh_inside,
)

if TYPE_CHECKING:
    from attncli.core.graph import Step


def compute(xp: Arithmetic, a: Value, *, kind: str) -> Value:
    """The slope of relu, gelu, gelu_tanh or silu at every entry of a; relu's is 0 at 0."""
    one, half = xp.enter(ONE), xp.enter(HALF)
    if kind == "relu":
        return xp.is_positive(a)
    if kind == "silu":
        share = sigmoid(xp, a)
        return xp.multiply(share, xp.add(one, xp.multiply(a, xp.subtract(one, share))))
    square = xp.multiply(a, a)
    if kind == "gelu":
        density = xp.divide(xp.exp(negative(xp, xp.multiply(half, square))), xp.enter(ROOT_TAU))
        return xp.add(bent(xp, xp.erf(xp.divide(a, xp.enter(ROOT_2)))), xp.multiply(a, density))
    t = xp.tanh(tanh_inside(xp, a))
    steep = xp.multiply(xp.enter(ROOT_2_PI), xp.add(one, xp.multiply(xp.enter(THREE_CUBIC), square)))
    rest = xp.multiply(xp.multiply(half, a), xp.multiply(xp.subtract(one, xp.multiply(t, t)), steep))
    return xp.add(bent(xp, t), rest)


_FORMULAS = {
    "relu": r"[{0} > 0]",
    "gelu": r"\Phi({0}) + {0} \odot \frac{{e^{{-{0}^2/2}}}}{{\sqrt{{2\pi}}}}",
    "gelu_tanh": r"\frac{{1}}{{2}}(1 + t) + \frac{{1}}{{2}} {0} (1 - t^2) \sqrt{{2/\pi}} (1 + 0.134145 \, {0}^2)",
    "silu": r"\sigma (1 + {0} (1 - \sigma))",
}


def formula(params: Params, columns: bool) -> str:
    return _FORMULAS[params["kind"]]


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    x = at(values, step.inputs[0], index)
    one, half = number(1.0), number(0.5)
    kind = step.params["kind"]
    if kind == "relu":
        return Term("positive", x)
    if kind == "silu":
        share = Term("quotient", one, Term("sum", one, Term("exp", Term("product", number(-1.0), x))))
        return Term("product", share, Term("sum", one, Term("product", x, Term("difference", one, share))))
    if kind == "gelu":
        phi = Term("product", half, Term("sum", one, Term("erf", Term("quotient", x, Term("root", number(2.0))))))
        power = Term("exp", Term("product", number(-0.5), x, x))
        return Term("sum", phi, Term("product", x, Term("quotient", power, number(float(ROOT_TAU.values)))))
    cubed = Term("product", number(float(CUBIC.values)), x, x, x)
    t = Term("tanh", Term("product", number(float(ROOT_2_PI.values)), Term("sum", x, cubed)))
    steep = Term("sum", one, Term("product", number(float(THREE_CUBIC.values)), x, x))
    flat = Term("difference", one, Term("product", t, t))
    rest = Term("product", half, x, flat, number(float(ROOT_2_PI.values)), steep)
    return Term("sum", Term("product", half, Term("sum", one, t)), rest)


OP = Op(
    name="activation_slope",
    compute=compute,
    axes="i j -> i j",
    formula=formula,
    terms=terms,
    why=N_("How steep the curve is at every entry: about 1 where it lets everything through, 0 where it is flat."),
)
