"""How a person with a calculator and a notebook page works: every written line is rounded, and the rounded line goes on."""

from __future__ import annotations

from collections.abc import Sequence

from attncli.arithmetic import Arithmetic, Value
from attncli.arithmetic.floating import Floating
from attncli.arithmetic.rounding import ROUNDINGS, round_decimal
from attncli.core.message import Message, unknown

#: Distance from a tie, in units of the last place kept, that a calculator does not show. On paper
#: 533.21·51.58 + 905.81·34.80 − 590.96·99.88 is 0.075, a tie; in float64 it is 10^-11 less.
UNSEEN = 1e-8
#: Products of numbers with more decimals than these may truly lie so close to a tie.
_MOST_DECIMALS = 6


def unseen(decimals: int) -> float:
    """The distance from a tie that is put down to the computer, in units of the last of `decimals` places."""
    return UNSEEN if decimals <= _MOST_DECIMALS else 0.0


class Hand(Floating):
    """Float64 rounded to `decimals` places after every step.

    Parameters
    ----------
    decimals : places kept
    rounding : "away" (a tie goes away from zero, as taught in school) or "even" (to the even neighbour)

    Raises
    ------
    InputError
        A rounding that does not exist.
    """

    name = "hand"

    def __init__(self, decimals: int, rounding: str = "away") -> None:
        if rounding not in ROUNDINGS:
            raise unknown(Message("The rounding"), rounding, ROUNDINGS)
        self.decimals = decimals
        self.rounding = rounding

    def recording(self, cells: Sequence[int]) -> Arithmetic:
        return self

    def round_step(self, value: Value) -> Value:
        return round_decimal(value, self.decimals, self.rounding, unseen(self.decimals))
