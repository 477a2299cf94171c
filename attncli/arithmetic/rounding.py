"""Rounding decimal numbers that are held in binary.

2.675 is stored as 2.67499…; a calculator shows 2.675 and a person rounds it to 2.68. So a value
that is a tie when read to 15 significant digits, as many as a float64 holds for certain, is a tie.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.core.matrix import BoolArray, FloatArray

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

#: Where a tie goes.
ROUNDINGS = ("away", "even")


#: Relative distance within which a value is read as the decimal number beside it. Two decimal numbers of
#: 15 digits are at least 4.5 eps apart, and forming value·10^decimals costs 1 eps.
_NEAR = 3 * float(np.finfo(np.float64).eps)
#: Beyond 10^14 units the distance above says nothing; what is left of a unit does.
_MOST = 0.1
#: So many units below a decimal number, a value that is cut off is that number all the same: sums that nearly cancel lose more.
_CUT = 1e-7
#: From here on every float64 is a whole number.
_WHOLE = 2.0**52


def round_decimal(values: ArrayLike, decimals: int, ties: str = "away", near: float = 0.0) -> Any:
    """Round to `decimals` places.

    Parameters
    ----------
    values : float64 array or number; infinities and NaN pass through
    decimals : places after the point, 0 to 15
    ties : where a tie goes: "away" from zero (school), "even", "floor" or "ceil"
    near : distance from a tie, in units of the last place kept, that is put down to the computer as well

    Returns
    -------
    float64 array or number
        The float64 nearest to each rounded decimal number; never −0.
    """
    power = 10.0**decimals
    with np.errstate(all="ignore"):
        scaled = np.abs(values) * power
        below = np.floor(scaled)
        rest = scaled - below
        tie = np.abs(rest - 0.5) <= _tolerance(scaled, near)
        whole = below + np.where(tie, _tie_goes_up(below, values, ties), rest > 0.5)
        return _signed(whole, below, scaled, values, power)


def truncate_decimal(values: ArrayLike, decimals: int) -> Any:
    """Cut off after `decimals` places; a value a few units below a decimal number counts as that number."""
    power = 10.0**decimals
    with np.errstate(all="ignore"):
        scaled = np.abs(values) * power
        below, nearest = np.floor(scaled), np.rint(scaled)
        whole = np.where(np.abs(scaled - nearest) <= _tolerance(scaled, _CUT), nearest, below)
        return _signed(whole, below, scaled, values, power)


def _signed(whole: FloatArray, below: FloatArray, scaled: FloatArray, values: ArrayLike, power: float) -> Any:
    """`whole` units with the sign of `values`; a number of so many places already is itself."""
    size = np.abs(values)
    same = ~(scaled < _WHOLE) | (below / power == size) | ((below + 1) / power == size)
    return np.where(same, values, np.copysign(whole / power, values))[()] + 0.0


def _tolerance(scaled: FloatArray, near: float = 0.0) -> FloatArray:
    """How far from a tie a value may lie and still be one, in units of the last place kept."""
    return np.maximum(np.minimum(scaled * _NEAR, _MOST), near)


def _tie_goes_up(below: FloatArray, values: ArrayLike, ties: str) -> BoolArray | np.bool_:
    """Whether a tie goes away from zero, given the whole units below it."""
    if ties == "away":
        return np.True_
    if ties == "even":
        odd: BoolArray = below % 2 == 1
        return odd
    if ties == "floor":
        return np.signbit(values)
    if ties == "ceil":
        return ~np.signbit(values)
    raise ValueError(f"ties: {ties!r} is none of away, even, floor, ceil")
