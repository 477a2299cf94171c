"""The angle of every position and every pair of columns: p/b^(2i/d) (Vaswani et al., arXiv 1706.03762, section 3.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.matrix import Matrix, as_matrix
from attncli.message import N_
from attncli.ops import Mistake, instead
from attncli.ops._waves import angles
from attncli.terms import Index, Term, number

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step

#: Bases that are taken for one another.
_BASES = (100.0, 1000.0, 10000.0, 100000.0, 500000.0)


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


def mistakes(graph: Graph, step: Step) -> Iterator[Mistake]:
    """Another exponent, another first position, another base."""
    known = dict(step.params)
    pairs, width = known.pop("pairs"), known.pop("width")
    start, base, count = known["start"], known["base"], known["count"]
    usual = range(0, 2 * pairs, 2)
    if pairs > 1:
        yield instead("exponent-doubled", step, _entered(angles(start, count, base, range(0, 4 * pairs, 4), width)))
    later = as_matrix(float(start.values) + 1.0)
    yield instead("positions-from-one", step, _entered(angles(later, count, base, usual, width)))
    if pairs > 1:
        for other in _BASES:
            if other != float(base.values):
                yield instead("base-changed", step, _entered(angles(start, count, as_matrix(other), usual, width)))


def _entered(matrix: Matrix) -> Any:
    return lambda xp: xp.enter(matrix)


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
    mistakes=mistakes,
)
