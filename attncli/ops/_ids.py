"""The rows of a table that ids name."""

from __future__ import annotations

import numpy as np

from attncli.arithmetic import Arithmetic, Indices, Value
from attncli.core.matrix import BoolArray, as_matrix
from attncli.core.message import N_, NoSuchRow

#: How near to a whole number an id is.
_NEAR = 0.25


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


def looked_up(xp: Arithmetic, table: Value, rows: Indices) -> Value:
    """The rows of a table (vocabulary d); NaN for the row behind the last."""
    if (rows == table.shape[-2]).any():
        behind = xp.enter(as_matrix(np.full((*table.shape[:-2], 1, table.shape[-1]), np.nan)))
        table = xp.concatenate([table, behind], -2)
    return xp.take(table, rows)


def added_up(xp: Arithmetic, rows_of: Value, rows: Indices, count: int) -> Value:
    """A table of `count` rows to which each of `rows_of` is added at its row; at the row behind the last, nowhere."""
    if not (rows == count).any():
        return xp.scatter_add(rows_of, rows, count)
    return xp.slice(xp.scatter_add(rows_of, rows, count + 1), -2, 0, count)


def _no_such_row(numbers: np.ndarray[tuple[int, ...], np.dtype[np.float64]], wrong: BoolArray, count: int) -> NoSuchRow:
    places = [tuple(map(int, place)) for place in np.argwhere(wrong)]
    error = NoSuchRow(
        N_(
            "No {row} of the table belongs to the id {id}: with {count} of them, ids are whole numbers from 0 to {last}."
        ),
        id=f"{numbers[places[0]]:g}",
        count=count,
        last=count - 1,
    )
    error.positions = tuple(places)
    return error


def named_in(values: Value, ids: str) -> list[int]:
    """The rows that the written ids name, for the arithmetic of a cell."""
    return [round(float(value)) for value in np.ravel(values[ids])]
