"""The rows of a table that ids name."""

from __future__ import annotations

import numpy as np

from attncli.arithmetic import Arithmetic, Indices, Value
from attncli.message import N_, NoSuchRow


def rows_named(xp: Arithmetic, ids: Value, count: int) -> Indices:
    """The rows that ids (token) name in a table of `count` rows; of many sheets (sheet 1 token): (sheet token).

    Raises
    ------
    NoSuchRow
        An id that is no whole number from 0 to count − 1.
    """
    numbers = xp.plain(ids)
    rows = np.rint(numbers)
    wrong = ~((rows == numbers) & (rows >= 0) & (rows < count))
    if np.count_nonzero(wrong):
        raise _no_such_row(numbers, wrong, count)
    named: Indices = rows.astype(np.int_)
    return named if named.ndim == 1 else named.reshape(len(named), -1)


def _no_such_row(numbers: np.ndarray[tuple[int, ...], np.dtype[np.float64]], wrong: Indices, count: int) -> NoSuchRow:
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
