"""A loss that is a weighted sum of entries: L = Σ c·O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at

if TYPE_CHECKING:
    from attncli.core.graph import Step


def compute(xp: Arithmetic, a: Value, coefficients: Value, *, ndim: int = 2, written: str = "") -> Value:
    """Σ a ⊙ coefficients, of `ndim` axes, as a 1×1 array; `written` is how the loss was asked for, as a formula."""
    products = xp.multiply(a, coefficients)
    return xp.reshape(xp.sum(products, tuple(range(-ndim, 0))), (*products.shape[:-ndim], 1, 1))


def axes(params: Params) -> str:
    own = "i j" if params.get("ndim", 2) == 2 else "h i j"
    return f"{own}, {own} -> 1 1"


def formula(params: Params, columns: bool) -> str:
    written: str = params.get("written", "")
    return written or r"\sum {1} \odot {0}"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    a, coefficients = step.inputs
    used = np.argwhere(np.asarray(values[coefficients], dtype=np.float64) != 0)
    return Term(
        "sum",
        *(
            Term("product", at(values, coefficients, tuple(map(int, i))), at(values, a, tuple(map(int, i))))
            for i in used
        ),
    )


OP = Op(
    name="weighted_sum",
    compute=compute,
    axes=axes,
    formula=formula,
    terms=terms,
    why=N_("The loss: one number that says how far off we are."),
)
