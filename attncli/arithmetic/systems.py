"""The number systems by name; each is opened only when it is asked for."""

from __future__ import annotations

from attncli.arithmetic import Arithmetic
from attncli.core.message import Message, unknown


def by_name(name: str, decimals: int = 3, rounding: str = "away") -> Arithmetic:
    """The number system called `name`: "floating", "hand", "interval" or "exact".

    Raises
    ------
    InputError
        `exact` without SymPy installed, or a name that does not exist.
    """
    if name == "floating":
        from attncli.arithmetic.floating import FLOATING

        return FLOATING
    if name == "hand":
        from attncli.arithmetic.hand import Hand

        return Hand(decimals, rounding)
    if name == "interval":
        from attncli.arithmetic.interval import IntervalArithmetic

        return IntervalArithmetic(decimals)
    if name == "exact":
        from attncli.arithmetic.exact import Exact

        return Exact()
    raise unknown(Message("The arithmetic"), name, ["floating", "hand", "interval", "exact"])
