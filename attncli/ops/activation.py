"""The bend between the two matrices of a feed-forward layer, entry by entry.

ReLU: max(x, 0). GELU: x Φ(x), with Φ the normal distribution (Hendrycks and Gimpel, arXiv 1606.08415, section 2), or its
approximation by tanh from the same page. SiLU, also called Swish: x / (1 + e^−x).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params, part_of
from attncli.core.message import N_, Message
from attncli.core.terms import Index, Term, at, number
from attncli.ops import activation_slope, multiply
from attncli.ops._bends import CUBIC, HALF, ONE, ROOT_2, ROOT_2_PI, bent, sigmoid, tanh_inside

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value, *, kind: str) -> Value:
    """relu(a), gelu(a), gelu_tanh(a) or silu(a), entry by entry."""
    if kind == "relu":
        return xp.positive(a)
    if kind == "silu":
        return xp.multiply(a, sigmoid(xp, a))
    inside = xp.erf(xp.divide(a, xp.enter(ROOT_2))) if kind == "gelu" else xp.tanh(tanh_inside(xp, a))
    return xp.multiply(a, bent(xp, inside))


_FORMULAS = {
    "relu": r"\max({0}, 0)",
    "gelu": r"{0} \odot \Phi({0})",
    "gelu_tanh": r"\frac{{1}}{{2}} {0} \odot (1 + \tanh(\sqrt{{2/\pi}} ({0} + 0.044715 \, {0}^3)))",
    "silu": r"\frac{{{0}}}{{1 + e^{{-{0}}}}}",
}


def formula(params: Params, columns: bool) -> str:
    return _FORMULAS[params["kind"]]


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    x = at(values, step.inputs[0], index)
    match step.params["kind"]:
        case "relu":
            return Term("max", x, number(0.0))
        case "silu":
            return Term("quotient", x, Term("sum", number(1.0), Term("exp", Term("product", number(-1.0), x))))
        case "gelu":
            share = Term("erf", Term("quotient", x, Term("root", number(2.0))))
        case _:
            cubed = Term("product", number(float(CUBIC.values)), x, x, x)
            share = Term("tanh", Term("product", number(float(ROOT_2_PI.values)), Term("sum", x, cubed)))
    return Term("product", number(float(HALF.values)), x, Term("sum", number(float(ONE.values)), share))


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    """The slope at every entry, times what arrives there."""
    slope = graph.apply(
        activation_slope.OP,
        part_of(step.id) + "slope",
        step.inputs[0],
        symbol="D",
        kind=step.params["kind"],
    )
    graph.apply(
        multiply.OP,
        id,
        upstream,
        slope,
        why=Message(N_("Each entry passes on as much of its gradient as the curve is steep there.")),
    )


OP = Op(
    name="activation",
    compute=compute,
    axes="i j -> i j",
    formula=formula,
    terms=terms,
    why=N_("Every entry is bent by the same curve. Without a bend two matrices in a row would be no more than one."),
    backward=(gradient,),
)
