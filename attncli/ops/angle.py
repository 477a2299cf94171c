"""The angle of every position and every pair of columns: p/b^(2i/d) (Vaswani et al., arXiv 1706.03762, section 3.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.matrix import Matrix
from attncli.message import N_
from attncli.ops._waves import angles
from attncli.terms import Index, Term, number

if TYPE_CHECKING:
    from attncli.core.graph import Step


def compute(xp: Arithmetic, *, start: Matrix, count: int, base: Matrix, pairs: int, width: int) -> Value:
    """(start + p) / base^(2i/width) for row p and pair i, as (count pairs)."""
    return xp.enter(angles(start, count, base, range(0, 2 * pairs, 2), width))


def formula(params: Params, columns: bool) -> str:
    return r"\frac{{p}}{{b^{{2i/d}}}}"


def numbers(params: Params) -> str:
    return rf"\frac{{{{p}}}}{{{{{float(params['base'].values):g}^{{{{2i/{params['width']}}}}}}}}}"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    p, i = index
    base, width = float(step.params["base"].values), step.params["width"]
    exponent = Term("quotient", number(2.0 * i), number(float(width)))
    return Term("quotient", number(float(step.params["start"].values) + p), Term("power", number(base), exponent))


OP = Op(
    name="angle",
    compute=compute,
    axes="-> =token:count =pair:pairs",
    formula=formula,
    numbers=numbers,
    terms=terms,
    why=N_(
        "Position p gives each pair of {columns} i its own angle (both are counted from 0): the first pair turns fast,"
        " every later one more slowly."
    ),
)
