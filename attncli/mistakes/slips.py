"""Slips in single cells: a sign, the decimal point, two cells (or lines) exchanged, the whole matrix transposed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from attncli.arithmetic.interval import Interval
from attncli.message import N_
from attncli.mistakes.entry import Entry
from attncli.problems.written import Written, around, meets

#: Powers of ten a decimal point slips by.
_SLIPS = np.array([1e-3, 1e-2, 1e-1, 1e1, 1e2, 1e3])

ENTRIES = (
    Entry("rounded-too-early", 3, N_("You rounded too early: with a line cut or rounded to fewer places than asked, the rest is just what follows from it."), N_("Look again at how many places each line keeps before you go on."), rank=2),
    Entry("layout-transposed", 4, N_("This is the right matrix, transposed."), N_("Look again at which way tokens run."), rank=2),
    Entry("sign", 0, N_("A sign is wrong."), N_("Look again at the signs in the marked cells."), rank=2, vaguer_than=frozenset({"softmax-sign", "bias-sign", "mask-plus-infinity"})),
    Entry("decimal-point", 0, N_("The decimal point slipped."), N_("Look again at the decimal point in the marked cells."), rank=2),
    Entry("cells-exchanged", 0, N_("Two places are exchanged."), N_("Look again at where the marked numbers belong."), rank=2),
)  # fmt: skip


def slips(written: Written, reached: Interval, wrong: Any, decimals: int) -> Iterator[str]:
    """Ids of the slips that turn every wrong cell into a right one."""
    if written.values.ndim >= 2 and _transposed_fits(written, reached, decimals):
        yield "layout-transposed"
    if wrong is not None and wrong.any():
        yield from cell_slips(written, reached, wrong, decimals)


def cell_slips(written: Written, reached: Interval, wrong: Any, decimals: int) -> Iterator[str]:
    """Ids of the slips in single cells that turn every wrong cell into a right one."""
    asked = written.rounded_to(decimals)
    signs = meets(Interval(-asked.hi, -asked.lo), reached)
    if (signs | ~wrong).all():
        yield "sign"
    elif (_point_fits(written, reached, decimals) | ~wrong).all():
        yield "decimal-point"
    if _exchanged(written, reached, wrong, decimals):
        yield "cells-exchanged"


def _fits(written: Written, reached: Interval, decimals: int) -> Any:
    return meets(written.rounded_to(decimals), reached)


def _point_fits(written: Written, reached: Interval, decimals: int) -> Any:
    """Where a power of ten times the written number is right; the slipped number keeps the digits it was written with.

    Of 0 every power is 0: a small number there is no slip of its point.
    """
    powers = _SLIPS.reshape(-1, *(1 for _ in written.values.shape))
    moved = around(written.values * powers, 0.5 * 10.0**-decimals * np.maximum(powers, 1.0))
    return meets(moved, reached).any(0) & (written.values != 0) & ((reached.lo > 0) | (reached.hi < 0))


def _transposed_fits(written: Written, reached: Interval, decimals: int) -> bool:
    turned = written.at(lambda cells: cells.swapaxes(-1, -2))
    return turned.values.shape == reached.shape and bool((_fits(turned, reached, decimals) | turned.blank).all())


def _exchanged(written: Written, reached: Interval, wrong: Any, decimals: int) -> bool:
    """Whether exchanging two cells, rows or columns makes all of it right."""
    shape = written.values.shape
    order = np.arange(written.values.size).reshape(shape)
    # Every way to cut it into lines, of which two may stand in each other's place: cells, rows, columns.
    ways = [order.reshape(-1, 1), order.reshape(-1, shape[-1])]
    if len(shape) > 1:  # the ids T are a single row
        ways.append(order.swapaxes(-1, -2).reshape(-1, shape[-2]))
    for lines in ways:
        off = np.flatnonzero(wrong.ravel()[lines].any(1))
        if len(off) == 2:
            swapped = order.ravel().copy()
            swapped[lines[off]] = lines[off[::-1]]
            if _reordered_fits(written, swapped.reshape(shape), reached, decimals):
                return True
    return False


def _reordered_fits(written: Written, order: Any, reached: Interval, decimals: int) -> bool:
    moved = written.at(lambda cells: cells.ravel()[order])
    return bool((_fits(moved, reached, decimals) | moved.blank).all())
