"""The angle of every position and every pair of columns: p/b^(2i/d) (Vaswani et al., arXiv 1706.03762, section 3.5).

Other exponents that were published: i/(d/2 − 1) of Tensor2Tensor and fairseq; 2j/d with j the column.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.core.matrix import Matrix
from attncli.core.message import N_
from attncli.core.terms import Index, Term, number
from attncli.ops._waves import angles, usual

if TYPE_CHECKING:
    from attncli.core.graph import Step


def compute(
    xp: Arithmetic,
    *,
    start: Matrix,
    count: int,
    base: Matrix,
    pairs: int,
    width: int,
    exponents: str,
    position_scale: Matrix,
) -> Value:
    """(start + p) · position_scale / base^exponent for row p and pair (or column) i, as (count pairs)."""
    powers, over = usual({"pairs": pairs, "width": width, "exponents": exponents})
    return xp.enter(angles(start, count, base, powers, over, position_scale))


#: What stands above b, by the exponents chosen; and the same with the numbers put in.
_EXPONENTS = {"pairs": "2i/d", "columns": "2j/d", "pairs-minus-one": "i/(d/2 - 1)"}


def _is_scaled(params: Params) -> bool:
    return float(params["position_scale"].values) != 1


def formula(params: Params, columns: bool) -> str:
    above = r"s\,p" if _is_scaled(params) else "p"
    return rf"\frac{{{{{above}}}}}{{{{b^{{{{{_EXPONENTS[params['exponents']]}}}}}}}}}"


def numbers(params: Params) -> str:
    _, over = usual(params)
    name = {"pairs": "2i", "columns": "2j", "pairs-minus-one": "i"}[params["exponents"]]
    above = rf"{float(params['position_scale'].values):g}\,p" if _is_scaled(params) else "p"
    return rf"\frac{{{{{above}}}}}{{{{{float(params['base'].values):g}^{{{{{name}/{over}}}}}}}}}"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    p, i = index
    params = step.params
    powers, over = usual(params)
    position = number(float(params["start"].values) + p)
    if _is_scaled(params):
        position = Term("product", position, number(float(params["position_scale"].values)))
    exponent = Term("quotient", number(float(powers[i])), number(float(over)))
    return Term("quotient", position, Term("power", number(float(params["base"].values)), exponent))


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
