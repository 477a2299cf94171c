"""Slips of writing: the decimal point, two cells (or lines) exchanged. (A sign and a transposed page need no numbers.)"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from attncli.arithmetic import Indices
from attncli.core.matrix import BoolArray
from attncli.core.message import N_
from attncli.mistakes.mistake import MistakeKind

MISTAKES = (
    MistakeKind("rounded-too-early", 3, N_("You rounded too early: a line was cut or rounded to fewer places than asked, and the rest follows from that."), N_("Look again at how many places each line keeps before you go on."), rank=2),
    MistakeKind("layout-transposed", 4, N_("This is the right matrix, transposed."), N_("Look again at which way the tokens run."), rank=2),
    MistakeKind("sign", 0, N_("A sign is wrong."), N_("Look again at the signs in the marked cells."), rank=2, vaguer_than=frozenset({"softmax-sign", "bias-sign", "mask-plus-infinity"})),
    MistakeKind("decimal-point", 0, N_("The decimal point slipped."), N_("Look again at the decimal point in the marked cells."), rank=2),
    MistakeKind("cells-exchanged", 0, N_("Two places are swapped."), N_("Look again at where the marked numbers belong."), rank=2),
)  # fmt: skip

#: Powers of ten, as exponents, that a decimal point slips by.
POWERS = (-3, -2, -1, 1, 2, 3)


def orders_exchanged(shape: Sequence[int], wrong: BoolArray) -> Iterator[Indices]:
    """The orders of cells in which the two wrong cells, rows or columns stand in each other's place.

    Parameters
    ----------
    shape : of the matrix, which is cut into cells, rows and columns
    wrong : its wrong cells, of that shape

    Yields
    ------
    (cells,) indices into the flat matrix
    """
    order = np.arange(wrong.size).reshape(shape)
    turned = order.swapaxes(-1, -2) if order.ndim > 1 else order
    for lines in (order.reshape(-1, 1), order.reshape(-1, order.shape[-1]), turned.reshape(-1, turned.shape[-1])):
        off = np.flatnonzero(wrong.ravel()[lines].any(1))
        if len(off) == 2:
            swapped = order.ravel().copy()
            swapped[lines[off]] = lines[off[::-1]]
            yield swapped
