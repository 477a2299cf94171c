"""Numbers that an option gives, within bounds."""

from __future__ import annotations

from attncli.core.message import AttnError, InputError

#: The largest --seed, of experiments and trainings alike.
LARGEST_SEED = 2**32 - 1
#: Digits that are not read any more: no option goes so far.
_LONG = 12


def whole_number(option: str, text: str | None, least: int, most: int) -> int | None:
    """The whole number that an option gives, or None where it is not given.

    Raises
    ------
    InputError
        It is not one, or out of range.
    """
    if text is None:
        return None
    digits = text.strip().removeprefix("-")
    number = int(text) if digits.isascii() and digits.isdigit() and len(digits) < _LONG else None
    if number is None or not least <= number <= most:
        raise InputError(
            "{option}: “{given}” is not allowed here. Write a whole number from {least} to {most}.",
            option=option,
            given=text[:40],
            least=least,
            most=most,
        )
    return number


def number(option: str, text: str, least: float, most: float) -> float:
    """A number that an option gives.

    Raises
    ------
    InputError
        It is none, or out of range.
    """
    from attncli.problems.matrix_text import parse_number

    try:
        value: float = parse_number(text)[0]
    except AttnError as error:
        raise error.at(option) from None
    if not least <= value <= most:
        raise InputError(
            "{option}: {given} is out of range. Write a number from {least} to {most}.",
            option=option,
            given=f"{value:g}",
            least=f"{least:g}",
            most=f"{most:g}",
        )
    return value
