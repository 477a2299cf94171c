"""Tokens, their ids, and the rows of a table that ids name: the look-up and its transpose."""

from __future__ import annotations

import numpy as np

from attncli.arithmetic import Arithmetic, Indices, Value
from attncli.core.graph import Graph, Op, Step
from attncli.core.matrix import BoolArray, FloatArray, as_matrix
from attncli.core.message import N_, NoSuchRow
from attncli.core.terms import Term

#: How near to a whole number an id is.
_NEAR = 0.25


def _encode(xp: Arithmetic, *, ids: FloatArray, count: int) -> Value:
    """The ids (token), counted from 0."""
    return xp.constant(as_matrix(ids))


ENCODE = Op(
    name="encode",
    compute=_encode,
    axes="-> =token:count",
    formula=r"\operatorname{id}(\text{token})",
    terms=lambda step, index: Term("text", step.notes["tokens"][index[0]]),
    why=N_("A computer cannot multiply words. Each token gets its number in the vocabulary, counted from 0."),
)


# --- the rows that ids name -------------------------------------------------------------------------------------------


def rows_named(xp: Arithmetic, ids: Value, count: int) -> Indices:
    """The rows that ids (token) name in a table of `count` rows; of many sheets (sheet 1 token): (sheet token).

    One sheet's id without a row must not stop the others: side by side it is given the row `count`, behind the last.

    Raises
    ------
    NoSuchRow
        By itself, an id that is no whole number from 0 to count − 1.
    """
    numbers = xp.plain(ids)
    rows = np.rint(numbers)
    # What a program's rounding leaves of a whole number is that number.
    wrong = ~((np.abs(rows - numbers) < _NEAR) & (rows >= 0) & (rows < count))
    if np.count_nonzero(wrong):
        if numbers.ndim == 1:
            raise _no_such_row(numbers, wrong, count)
        rows = np.where(wrong, count, rows)
    named: Indices = rows.astype(np.int_)
    return named if named.ndim == 1 else named.reshape(len(named), -1)


def _no_such_row(numbers: FloatArray, wrong: BoolArray, count: int) -> NoSuchRow:
    places = [tuple(map(int, place)) for place in np.argwhere(wrong)]
    error = NoSuchRow(
        "No {row} of the table belongs to the id {id}: there are {count} {rows}, so ids are whole numbers from 0 to {last}.",
        id=f"{numbers[places[0]]:g}",
        count=count,
        last=count - 1,
    )
    error.positions = tuple(places)
    return error


# --- rows out of a table, and added into it ---------------------------------------------------------------------------


def _look_up(xp: Arithmetic, table: Value, ids: Value) -> Value:
    """Row ids[i] of the table (vocabulary d) for every token i (token d); NaN for the row behind the last."""
    rows = rows_named(xp, ids, table.shape[-2])
    if (rows == table.shape[-2]).any():
        behind = xp.constant(as_matrix(np.full((*table.shape[:-2], 1, table.shape[-1]), np.nan)))
        table = xp.concatenate([table, behind], -2)
    return xp.take(table, rows)


def _look_up_gradient(graph: Graph, step: Step, upstream: str, target: str) -> None:
    table, ids = step.inputs
    axis = graph.axes(table)[-2]
    graph.apply(SCATTER_ADD, target, upstream, ids, count=axis.size, axes=(axis.name,))


LOOK_UP = Op(
    name="look_up",
    compute=_look_up,
    axes="v d, n -> n d",
    formula=lambda params, columns: "#1[:, #2]" if columns else "#1[#2]",
    why=N_("Each id names a {row} of the table; that {row} becomes the token's vector."),
    backward=(_look_up_gradient, None),
)


def _scatter_add(xp: Arithmetic, added: Value, ids: Value, *, count: int) -> Value:
    """A table of `count` rows (vocabulary d): row i (token d) is added at row ids[i]; the rest is 0."""
    return added_up(xp, added, rows_named(xp, ids, count), count)


def added_up(xp: Arithmetic, added: Value, rows: Indices, count: int) -> Value:
    """A table of `count` rows to which each of `added` is added at its row; at the row behind the last, nowhere."""
    if not (rows == count).any():
        return xp.scatter_add(added, rows, count)
    return xp.slice(xp.scatter_add(added, rows, count + 1), -2, 0, count)


SCATTER_ADD = Op(
    name="scatter_add",
    compute=_scatter_add,
    axes="n d, n -> =vocabulary:count d",
    formula=r"\sum_{i:\, #2_i = v} (#1)_i",
    why=N_(
        "Each token sends its gradient back to the {row} it was looked up from. A repeated token adds, it never overwrites;"
        " a {row} nobody looked up gets 0."
    ),
    backward=(lambda graph, step, upstream, target: graph.apply(LOOK_UP, target, upstream, step.inputs[1]), None),
)
