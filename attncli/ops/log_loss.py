"""Minus the logarithms of chosen entries, added up: −Σ Y ⊙ ln A, where Y says how often each entry counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.core.matrix import as_matrix
from attncli.core.message import N_
from attncli.core.terms import Index, Term, at

if TYPE_CHECKING:
    from attncli.core.graph import Step


def compute(xp: Arithmetic, a: Value, y: Value, *, ndim: int = 2, rows: bool = False, written: str = "") -> Value:
    """−Σ y ln a over the entries where y is not 0: of everything (1 1), or of each row (… i 1)."""
    counted = np.asarray(xp.plain(y)) != 0
    zero = xp.enter(as_matrix(0.0))
    # Where nothing counts, ln 0 must not meet the 0 in front of it.
    each = xp.where(counted, xp.multiply(y, xp.log(a)), zero)
    total = xp.subtract(zero, xp.sum(each, -1 if rows else tuple(range(-ndim, 0))))
    return total if rows or ndim == 2 else xp.reshape(total, (*total.shape[:-ndim], 1, 1))


def axes(params: Params) -> str:
    if params.get("rows"):
        return "i j, i j -> i 1"
    return "i j, i j -> 1 1" if params.get("ndim", 2) == 2 else "h i j, h i j -> 1 1"


def formula(params: Params, columns: bool) -> str:
    written: str = params.get("written", "")
    return written or (r"-\sum_j {1} \odot \ln {0}" if params.get("rows") else r"-\sum {1} \odot \ln {0}")


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    a, y = step.inputs
    cells = [tuple(int(i) for i in place) for place in np.argwhere(values[y])]
    if step.params.get("rows"):
        cells = [place for place in cells if place[:-1] == tuple(index[:-1])]
    parts = []
    for place in cells:
        log = Term("ln", at(values, a, place))
        parts.append(log if float(values[y][place]) == 1.0 else Term("product", at(values, y, place), log))
    return Term("negative", parts[0] if len(parts) == 1 else Term("sum", *parts))


OP = Op(
    name="log_loss",
    compute=compute,
    axes=axes,
    formula=formula,
    terms=terms,
    why=N_("Minus the logarithm of a probability: 0 where it is 1, and larger the nearer it is to 0."),
)
