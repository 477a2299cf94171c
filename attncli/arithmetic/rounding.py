"""Rounding decimal numbers that are held in binary.

2.675 is stored as 2.67499…; a calculator shows 2.675 and a person rounds it to 2.68. So a
value within a few units in the last place of a tie counts as that tie.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_NEAR = 32 * np.finfo(np.float64).eps
#: From here on every float64 is a whole number.
_WHOLE = 2.0**52


def round_decimal(values: Any, decimals: int, ties: str = "away") -> Any:
    """Round to `decimals` places.

    Parameters
    ----------
    values : float64 array or number; infinities and NaN pass through
    decimals : places after the point, 0 to 15
    ties : where a tie goes: "away" from zero (school), "even", "floor" or "ceil"

    Returns
    -------
    float64 array or number
        The float64 nearest to each rounded decimal number.
    """
    power = 10.0**decimals
    with np.errstate(all="ignore"):
        scaled = np.abs(values) * power
        below = np.floor(scaled)
        rest = scaled - below
        tie = np.abs(rest - 0.5) <= _NEAR * np.maximum(scaled, 1.0)
        if ties == "away":
            up = tie
        elif ties == "even":
            up = tie & (below % 2 == 1)
        elif ties == "floor":
            up = tie & np.signbit(values)
        elif ties == "ceil":
            up = tie & ~np.signbit(values)
        else:
            raise ValueError(f"ties: {ties!r} is none of away, even, floor, ceil")
        whole = below + (up | (~tie & (rest > 0.5)))
        rounded = np.copysign(whole / power, values)
        return np.where(np.isfinite(scaled) & (scaled < _WHOLE), rounded, values)[()]


def truncate_decimal(values: Any, decimals: int) -> Any:
    """Cut off after `decimals` places, a value a few units below a decimal number counting as that number."""
    power = 10.0**decimals
    with np.errstate(all="ignore"):
        scaled = np.abs(values) * power
        nearest = np.rint(scaled)
        whole = np.where(np.abs(scaled - nearest) <= _NEAR * np.maximum(scaled, 1.0), nearest, np.floor(scaled))
        return np.where(np.isfinite(scaled) & (scaled < _WHOLE), np.copysign(whole / power, values), values)[()]
