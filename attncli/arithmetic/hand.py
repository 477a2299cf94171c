"""How a person with a calculator and a notebook page works: every written line is rounded, and the rounded line goes on."""

from __future__ import annotations

from attncli.arithmetic import ROUNDINGS, Arithmetic, Value
from attncli.arithmetic.floating import Floating
from attncli.arithmetic.rounding import round_decimal
from attncli.message import Message, unknown


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

    def recording(self, cells: int) -> Arithmetic:
        return self

    def settle(self, value: Value) -> Value:
        return round_decimal(value, self.decimals, self.rounding)
