"""Numbers in other places: rows and columns joined and cut apart, columns shared out among heads and put together again,
heads repeated, summed up and averaged. Each operation stands beside its transpose."""

from __future__ import annotations

from collections.abc import Callable

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Op, Params, Rule, Step
from attncli.core.message import N_
from attncli.ops.elementwise import numeral

#: The axis of the queries of all heads side by side, whose width is often taken for d_k.
HEADS_WIDTH = "heads·d_k"

# --- rows or columns before one another, and cut apart again ----------------------------------------------------------


def joined(xp: Arithmetic, first: Value, second: Value, axis: int) -> Value:
    """One array put before another along `axis`; what all sheets share stands before or after that of each."""
    sheets = max(first.shape[0], second.shape[0])
    if first.ndim > 2 and first.shape[0] != second.shape[0]:
        first, second = (a if a.shape[0] == sheets else xp.repeat(a, sheets, 0) for a in (first, second))
    return xp.concatenate([first, second], axis)


def slice_along(along: int, name: str, axes: str, formula: Callable[[Params, bool], str], why: str) -> Op:
    """Some consecutive rows or columns: places start … start+length−1 of the axis `along`."""

    def compute(xp: Arithmetic, a: Value, *, start: int, length: int) -> Value:
        return xp.slice(a, along, start, start + length)

    return Op(name, axes, compute, formula, why)


def join_along(along: int, name: str, axes: str, formula: Callable[[Params, bool], str], why: str, transpose: Op) -> Op:
    """All of the first operand, then all of the second, along the axis `along`; `transpose` cuts them apart."""

    def cut(position: int) -> Rule:
        def gradient(graph: Graph, step: Step, upstream: str, target: str) -> None:
            axis = graph.axes(step.inputs[position])[along]
            start = graph.axes(step.inputs[0])[along].size if position else 0
            graph.apply(transpose, target, upstream, start=start, length=axis.size, axes=(axis.name,))

        return gradient

    return Op(name, axes, lambda xp, first, second: joined(xp, first, second, along), formula, why, (cut(0), cut(1)))


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


# --- one array to many heads, and back --------------------------------------------------------------------------------


def _split(xp: Arithmetic, a: Value, *, heads: int, width: int) -> Value:
    """Row i of head h: columns h·width … (h+1)·width−1 of row i of a (n heads·width), as (head n width)."""
    return xp.swapaxes(xp.reshape(a, (*a.shape[:-1], heads, width)), -3, -2)


def _split_gradient(graph: Graph, step: Step, upstream: str, target: str) -> None:
    axis = graph.axes(step.inputs[0])[-1]
    heads, width = step.params["heads"], step.params["width"]
    graph.apply(MERGE_HEADS, target, upstream, heads=heads, width=width, axes=(axis.name,))


SPLIT_HEADS = Op(
    name="split_heads",
    compute=_split,
    axes="n w -> =head:heads n =d:width",
    formula=r"\operatorname{split}(#1)",
    why=N_("Every {row} is cut into equal pieces, one for each head."),
    backward=(_split_gradient,),
)


def _merge(xp: Arithmetic, a: Value, *, heads: int, width: int) -> Value:
    """Columns h·width … (h+1)·width−1 of row i: row i of head h of a (head n width), as (n heads·width)."""
    rows_first = xp.swapaxes(a, -3, -2)
    return xp.reshape(rows_first, (*rows_first.shape[:-2], heads * width))


def _merge_gradient(graph: Graph, step: Step, upstream: str, target: str) -> None:
    head, _, width = graph.axes(step.inputs[0])
    graph.apply(SPLIT_HEADS, target, upstream, heads=head.size, width=width.size, axes=(head.name, width.name))


MERGE_HEADS = Op(
    name="merge_heads",
    compute=_merge,
    axes="h n d -> n h*d",
    formula=r"\operatorname{concat}(#1)",
    why=N_("The pieces of a {row} are put side by side again, head 1 first."),
    backward=(_merge_gradient,),
)


# --- heads that share keys and values, and the sum over those that share ----------------------------------------------


def _repeat(xp: Arithmetic, a: Value, *, group: int, heads: int) -> Value:
    """Every head of a (kv_head n d) `group` times in a row, a, a, b, b (head n d)."""
    return xp.repeat(a, group, -3)


def _repeat_gradient(graph: Graph, step: Step, upstream: str, target: str) -> None:
    axis = graph.axes(step.inputs[0])[0]
    graph.apply(SUM_KV_GROUPS, target, upstream, group=step.params["group"], heads=axis.size, axes=(axis.name,))


REPEAT_KV = Op(
    name="repeat_kv",
    compute=_repeat,
    axes="g n d -> =head:heads n d",
    formula=r"\operatorname{repeat}(#1)",
    why=N_("Neighbouring query heads share one head of keys and values, so it is repeated for each of them."),
    backward=(_repeat_gradient,),
)


def _sum_groups(xp: Arithmetic, a: Value, *, group: int, heads: int) -> Value:
    """Heads of a (head n d) added up in groups of `group` neighbours (kv_head n d)."""
    *more, _, rows, width = a.shape
    grouped = xp.reshape(a, (*more, heads, group, rows * width))
    return xp.reshape(xp.sum(grouped, -2), (*more, heads, rows, width))


def _sum_groups_gradient(graph: Graph, step: Step, upstream: str, target: str) -> None:
    graph.apply(REPEAT_KV, target, upstream, group=step.params["group"], heads=graph.shape(step.inputs[0])[0])


SUM_KV_GROUPS = Op(
    name="sum_kv_groups",
    compute=_sum_groups,
    axes="h n d -> =kv_head:heads n d",
    formula=r"\sum_{\text{group}} #1",
    why=N_("A shared head worked for several query heads, so it receives the sum of their gradients."),
    backward=(_sum_groups_gradient,),
)


# --- the mean over the heads, and what it gives back ------------------------------------------------------------------


def _head_mean(xp: Arithmetic, a: Value) -> Value:
    """(head i j) → (i j)."""
    heads = a.shape[-3]
    total = xp.sum(a, -3)
    return xp.divide(xp.reshape(total, (*total.shape[:-3], *total.shape[-2:])), numeral(xp, heads))


HEAD_MEAN = Op(
    name="head_mean",
    compute=_head_mean,
    axes="h i j -> i j",
    formula=r"\frac{1}{H} \sum_h #1",
    why=N_(
        "The heads' weights averaged, as many libraries return them. This is only to look at: the output is not computed from it."
    ),
    backward=(
        lambda graph, step, upstream, target: graph.apply(
            TO_HEADS, target, upstream, heads=graph.shape(step.inputs[0])[-3]
        ),
    ),
)


def _to_heads(xp: Arithmetic, a: Value, *, heads: int) -> Value:
    """(i j) → (head i j), each a / heads."""
    shared = xp.divide(a, numeral(xp, heads))
    return xp.repeat(xp.reshape(shared, (*shared.shape[:-2], 1, *shared.shape[-2:])), heads, -3)


TO_HEADS: Op = Op(
    name="to_heads",
    compute=_to_heads,
    axes="i j -> =head:heads i j",
    formula=r"\frac{1}{H} #1",
    why=N_("Each head makes up 1/H of the mean, so it gets 1/H of the mean's gradient."),
)
