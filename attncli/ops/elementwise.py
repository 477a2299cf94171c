"""Entry by entry: what happens to a number does not depend on its neighbours."""

from __future__ import annotations

from collections.abc import Callable

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Op, Params, Rule, Step
from attncli.core.matrix import Matrix
from attncli.core.message import N_
from attncli.core.terms import Index, Term, Values, at, number


def entrywise(kind: str) -> Callable[[Step, Index, Values], Term]:
    """The arithmetic of a cell that is made of the cells of all operands at its place."""
    return lambda step, index, values: Term(kind, *(at(values, operand, index) for operand in step.inputs))


def same_cell(step: Step, index: Index, values: Values) -> Term:
    """The cell of the first operand at the same place."""
    return at(values, step.inputs[0], index)


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


IDENTITY = Op(
    name="identity",
    compute=lambda xp, a: a,
    axes="i j -> i j",
    formula="#1",
    terms=same_cell,
    why=N_("The gradient passes unchanged."),
    backward=(unchanged(),),
)


# --- products ---------------------------------------------------------------------------------------------------------

MULTIPLY: Op = Op(
    name="multiply",
    compute=lambda xp, a, b: xp.multiply(a, b),
    axes="i j, i j -> i j",
    formula=r"#1 \odot #2",
    terms=entrywise("product"),
    why=N_("Multiply entry by entry, not row by column."),
    backward=(
        lambda graph, step, upstream, target: graph.apply(MULTIPLY, target, upstream, step.inputs[1]),
        lambda graph, step, upstream, target: graph.apply(MULTIPLY, target, upstream, step.inputs[0]),
    ),
)


def _scaled(
    xp: Arithmetic,
    a: Value,
    *,
    root: Matrix | None = None,
    factor: Matrix | None = None,
    divisor: Matrix | None = None,
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


def _scale_terms(step: Step, index: Index, values: Values) -> Term:
    entry, params = same_cell(step, index, values), step.params
    if params.get("root") is not None:
        return Term("quotient", entry, Term("root", number(size(params, "root"))))
    if params.get("divisor") is not None:
        return Term("quotient", entry, number(size(params, "divisor")))
    return Term("product", number(size(params, "factor")), entry)


SCALE: Op = Op(
    name="scale",
    compute=_scaled,
    axes="i j -> i j",
    formula=_scale_formula,
    numbers=_scale_numbers,
    terms=_scale_terms,
    why=N_("Every entry gets the same factor. A factor on the way forward is the same factor on the way back."),
    backward=(
        lambda graph, step, upstream, target: graph.apply(SCALE, target, upstream, notes=step.notes, **step.params),
    ),
)


# --- sums -------------------------------------------------------------------------------------------------------------


def sum_of_two(name: str, why: str, *rules: Rule | None) -> Op:
    """a + b under a name of its own."""
    return Op(
        name=name,
        compute=lambda xp, a, b: xp.add(a, b),
        axes="i j, i j -> i j",
        formula="#1 + #2",
        terms=entrywise("sum"),
        why=why,
        backward=rules,
    )


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


# --- functions --------------------------------------------------------------------------------------------------------


def elementwise(
    name: str, kind: str, function: Callable[[Arithmetic, Value], Value], formula: str, why: str, *rules: Rule
) -> Op:
    """A function of every entry; in the arithmetic of a cell it is called `kind`."""
    return Op(
        name=name,
        compute=function,
        axes="i j -> i j",
        formula=formula,
        terms=entrywise(kind),
        why=why,
        backward=rules,
    )


def _exp_gradient(graph: Graph, step: Step, upstream: str, target: str) -> None:
    graph.apply(MULTIPLY, target, upstream, step.id, why=N_("The slope of e^x is e^x itself."))


EXP = elementwise(
    "exp",
    "exp",
    lambda xp, a: xp.exp(a),
    "e^{#1}",
    N_("e^x makes every entry positive and keeps their order. e^0 = 1, and e^−∞ = 0 for what is hidden."),
    _exp_gradient,
)
