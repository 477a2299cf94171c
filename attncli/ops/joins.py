"""Arrays put before one another, and cut apart again: one operation and its transpose, along rows or columns."""

from __future__ import annotations

from collections.abc import Callable

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Op, Params, Rule, Step
from attncli.core.message import N_
from attncli.core.terms import Index, Term, Values, at


def joined(xp: Arithmetic, first: Value, second: Value, axis: int) -> Value:
    """One array put before another along `axis`; what all sheets share stands before or after that of each."""
    sheets = max(first.shape[0], second.shape[0])
    if first.ndim > 2 and first.shape[0] != second.shape[0]:
        first, second = (a if a.shape[0] == sheets else xp.repeat(a, sheets, 0) for a in (first, second))
    return xp.concatenate([first, second], axis)


def moved(index: Index, along: int, by: int) -> Index:
    """A place, `by` further along an axis that is counted from the end."""
    place = list(index)
    place[along] += by
    return tuple(place)


def slice_along(along: int, name: str, axes: str, formula: Callable[[Params, bool], str], why: str) -> Op:
    """Some consecutive rows or columns: places start … start+length−1 of the axis `along`."""

    def compute(xp: Arithmetic, a: Value, *, start: int, length: int) -> Value:
        return xp.slice(a, along, start, start + length)

    def terms(step: Step, index: Index, values: Values) -> Term:
        return at(values, step.inputs[0], moved(index, along, step.params["start"]))

    return Op(name, compute, axes, formula, terms, why)


def join_along(along: int, name: str, axes: str, formula: Callable[[Params, bool], str], why: str, transpose: Op) -> Op:
    """All of the first operand, then all of the second, along the axis `along`; `transpose` cuts them apart."""

    def compute(xp: Arithmetic, first: Value, second: Value) -> Value:
        return joined(xp, first, second, along)

    def terms(step: Step, index: Index, values: Values) -> Term:
        first, second = step.inputs
        before = values[first].shape[along]
        return at(values, first, index) if index[along] < before else at(values, second, moved(index, along, -before))

    def cut(position: int) -> Rule:
        def gradient(graph: Graph, step: Step, upstream: str, target: str) -> None:
            axis = graph.axes(step.inputs[position])[along]
            start = graph.axes(step.inputs[0])[along].size if position else 0
            graph.apply(transpose, target, upstream, start=start, length=axis.size, axes=(axis.name,))

        return gradient

    return Op(name, compute, axes, formula, terms, why, (cut(0), cut(1)))


def _rows_formula(params: Params, columns: bool) -> str:
    rows = f"{params['start'] + 1}:{params['start'] + params['length']}"
    return f"#1[:, {rows}]" if columns else f"#1[{rows}]"


def _columns_formula(params: Params, columns: bool) -> str:
    first, last = params["start"] + 1, params["start"] + params["length"]
    part = f"{first}:{last}" if first < last else f"{first}"
    return f"#1[{part}]" if columns else f"#1[:, {part}]"


def _below(params: Params, columns: bool) -> str:
    between = "&" if columns else r"\\"
    return rf"\begin{{bmatrix}}#1{between} #2\end{{bmatrix}}"


def _beside(params: Params, columns: bool) -> str:
    return r"\begin{bmatrix}#1\\ #2\end{bmatrix}" if columns else r"[#1,\ #2]"


SLICE_ROWS = slice_along(
    -2, "slice_rows", "n d -> =row:length d", _rows_formula, N_("The {rows} that belong to this part.")
)
JOIN_ROWS = join_along(
    -2,
    "join_rows",
    "a d, b d -> a+b d",
    _below,
    N_("The cached {rows} come first, the new ones after them."),
    SLICE_ROWS,
)
SLICE_COLUMNS = slice_along(
    -1,
    "slice_columns",
    "n d -> n =column:length",
    _columns_formula,
    N_("Forward, both parts were put side by side; on the way back each takes its own {columns} again."),
)
JOIN_COLUMNS = join_along(
    -1,
    "join_columns",
    "n a, n b -> n a+b",
    _beside,
    N_("The {columns} of the first come first, those of the second after them."),
    SLICE_COLUMNS,
)
