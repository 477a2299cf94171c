"""One step of Adam: against the mean gradient, measured by its usual size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.core.matrix import Matrix
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at, number
from attncli.ops._written import in_formula

if TYPE_CHECKING:
    from attncli.core.graph import Step


def _step(xp: Arithmetic, mean: Value, square: Value, eta: Matrix, eps: Matrix) -> Value:
    return xp.multiply(xp.enter(eta), xp.divide(mean, xp.add(xp.sqrt(square), xp.enter(eps))))


def compute(xp: Arithmetic, a: Value, mean: Value, square: Value, *, eta: Matrix, eps: Matrix) -> Value:
    """a − η m̂ / (√v̂ + ε) (Kingma and Ba, arXiv 1412.6980, algorithm 1)."""
    return xp.subtract(a, _step(xp, mean, square, eta, eps))


def numbers(params: Params) -> str:
    eta, eps = (in_formula(float(params[name].values)) for name in ("eta", "eps"))
    return rf"{{0}} - {eta} \, \frac{{{{{{1}}}}}}{{{{\sqrt{{{{{{2}}}}}} + {eps}}}}}"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    a, mean, square = (at(values, id, index) for id in step.inputs)
    size = Term("sum", Term("root", square), number(float(step.params["eps"].values)))
    return Term(
        "difference",
        a,
        Term("product", number(float(step.params["eta"].values)), Term("quotient", mean, size)),
    )


OP = Op(
    name="adam_update",
    compute=compute,
    axes="i j, i j, i j -> i j",
    formula=lambda params, columns: r"{0} - \eta \, \frac{{{1}}}{{\sqrt{{{2}}} + \varepsilon}}",
    numbers=numbers,
    terms=terms,
    why=N_(
        "Against the mean gradient; divided by its usual size, every number moves about η, however steep it stands."
    ),
)
