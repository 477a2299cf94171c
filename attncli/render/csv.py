"""CSV in long form, one row a cell: for a spreadsheet, pandas or R."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import numpy as np

from attncli.render._view import Item, View

_COLUMNS = ("step", "phase", "head", "row", "column", "row_name", "column_name", "value")
#: A spreadsheet reads text that starts with one of these as a formula (OWASP, CSV injection).
_FORMULA = frozenset("=+-@\t\r＝＋－＠")


def render(view: View) -> str:
    """Every number in full precision: step, phase, head, row, column (counted from 1), their names, value."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for item in (*view.inputs, *view.steps):
        writer.writerows(_cells(item))
    return out.getvalue()


def _cells(item: Item) -> Iterator[tuple[object, ...]]:
    for block in item.blocks:
        head = "" if block.head is None else block.head
        values = block.values.astype(np.float64)
        for (i, j), value in np.ndenumerate(values):
            names = (as_text(block.rows[i]), as_text(block.columns[j]))
            # repr is the shortest text that reads back as the same float64; inf, -inf and nan are themselves.
            yield as_text(item.id), item.phase, head, i + 1, j + 1, *names, repr(float(value))


def as_text(name: str) -> str:
    """A name that no spreadsheet takes for a formula: an apostrophe goes before =, +, -, @."""
    return f"'{name}" if name.lstrip()[:1] in _FORMULA and name else name
