"""The curves of a feed-forward layer, from their parts; π and √2 are kept as such for exact results."""

from __future__ import annotations

import math

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.matrix import EXACT, Entry, Matrix


def _written(value: float, entry: Entry) -> Matrix:
    return Matrix(np.asarray(value), np.asarray(EXACT), (entry,))


ONE = _written(1.0, ("num", "1"))
HALF = _written(0.5, ("num", "0.5"))
CUBIC = _written(0.044715, ("num", "0.044715"))
THREE_CUBIC = _written(0.134145, ("num", "0.134145"))
ROOT_2 = _written(math.sqrt(2.0), ("sqrt", ("num", "2")))
ROOT_2_PI = _written(math.sqrt(2.0 / math.pi), ("sqrt", ("/", ("num", "2"), ("pi",))))
ROOT_TAU = _written(math.sqrt(2.0 * math.pi), ("sqrt", ("*", ("num", "2"), ("pi",))))


def sigmoid(xp: Arithmetic, a: Value) -> Value:
    """1 / (1 + e^−a)."""
    one = xp.enter(ONE)
    return xp.divide(one, xp.add(one, xp.exp(negative(xp, a))))


def negative(xp: Arithmetic, a: Value) -> Value:
    return xp.multiply(xp.enter(ONE.negated()), a)


def bent(xp: Arithmetic, inside: Value) -> Value:
    """(1 + inside) / 2: from −1 … 1 to a share."""
    return xp.multiply(xp.enter(HALF), xp.add(xp.enter(ONE), inside))


def tanh_inside(xp: Arithmetic, a: Value) -> Value:
    """√(2/π) (a + 0.044715 a³)."""
    cubed = xp.multiply(xp.enter(CUBIC), xp.multiply(xp.multiply(a, a), a))
    return xp.multiply(xp.enter(ROOT_2_PI), xp.add(a, cubed))
