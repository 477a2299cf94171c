"""Settings as they were written, read by the kinds a model declares."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from attncli.core.matrix import BoolArray, Matrix
from attncli.core.message import AttnError, InputError, Message, placed, unknown
from attncli.models.model import Model, Setting
from attncli.problems.matrix_text import from_cells, number_of, parse_number
from attncli.problems.reading import brief
from attncli.problems.source import matrix_of


def read_settings(
    model: Model, written: Mapping[str, Any], layout: str = "rows", places: Mapping[str, Message | str] | None = None
) -> dict[str, Any]:
    """The settings with their values read: numbers as floats, masks as matrices, marks as booleans.

    Parameters
    ----------
    places : where a setting was written (an option, a key of a file), for messages; else its name says it
    """
    kinds = {setting.name: setting for setting in model.settings}
    out: dict[str, Any] = {}
    for name, value in written.items():
        if value is None:
            continue
        if name not in kinds:
            if not kinds:
                raise InputError(
                    "Model {model} has no settings, but “{name}” was given. Leave it out.", model=model.name, name=name
                )
            raise unknown(Message("Model {model}: the setting", model=model.name), name, list(kinds))
        with placed((places or {}).get(name, name)):
            read = _READERS[kinds[name].kind](value, kinds[name])
        out[name] = read if layout == "rows" or kinds[name].kind not in _TURNED else _transposed(read)
    return out


#: Settings with a row a query and a column a key, which may be written with tokens as columns.
_TURNED = ("mask", "booleans")


def _transposed(read: Matrix | BoolArray) -> Matrix | BoolArray:
    if isinstance(read, Matrix):
        return read.transposed()
    return read.swapaxes(-1, -2) if read.ndim > 1 else read


_FLAGS = ("true", "yes", "on", "false", "no", "off")


def _flag(value: object, setting: Setting) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, str) and value.strip().casefold() in _FLAGS:
        return value.strip().casefold() in ("true", "yes", "on")
    raise InputError("“{value}” is neither true nor false. Write true or false.", value=brief(value))


def _number(value: object, setting: Setting) -> Matrix:
    """One number with what was written of it, so that 1/3 stays a third in exact results."""
    number = _one(value)
    if setting.kind == "positive" and not 0 < float(number.values) < math.inf:
        raise InputError("“{value}” is not allowed here. Write a finite number above 0, like 0.5.", value=brief(value))
    if not math.isfinite(float(number.values)):
        raise InputError("“{value}” is not allowed here. Write a finite number, like 0.5.", value=brief(value))
    if setting.kind == "eps" and float(number.values) < 0:
        raise InputError(
            "“{value}” is not allowed here. Write 0 or a small number above it, like 1e-5.", value=brief(value)
        )
    return number


#: The largest count: more heads, tokens or columns than anything here can show.
_MOST = 10**6


def _count(value: object, setting: Setting) -> int:
    """A whole number from the least one that the setting allows."""
    number = float(_one(value).values) if not isinstance(value, bool) else -1.0
    if not setting.least <= number <= _MOST or number != math.floor(number):
        raise InputError(
            "“{value}” is not allowed here. Write a whole number of at least {least}, like {example}.",
            value=brief(value),
            least=setting.least,
            example=max(setting.least, 2),
        )
    return int(number)


def _one(value: object) -> Matrix:
    """A number as a matrix without axes."""
    if isinstance(value, Matrix) and value.values.size == 1:
        return value.reshaped(())
    return from_cells([number_of(value)], ())


def _scale(value: object, setting: Setting) -> str | Matrix:
    number = _word_or_number(value, setting, ("sqrt", "none"), Message("The scale"))
    if isinstance(number, Matrix) and float(number.values) == 0:
        raise InputError(
            "A scale of 0 would erase all scores. Write sqrt, none, or a number that multiplies, like 0.5."
        )
    return number


def _shift(value: object, setting: Setting) -> str | Matrix:
    return _word_or_number(value, setting, ("max", "none"), Message("What to subtract"))


def _word_or_number(value: object, setting: Setting, words: tuple[str, ...], what: Message) -> str | Matrix:
    if isinstance(value, str) and value.strip() in words:
        return value.strip()
    if isinstance(value, str) and value.isalpha() and value not in ("e", "inf", "nan"):
        raise unknown(what, value, [*words, "NUMBER"])
    return _number(value, setting)


def _mask(value: object, setting: Setting) -> Matrix:
    matrix = matrix_of(value)
    if np.isin(matrix.values, (0.0, 1.0)).all() and (matrix.values == 1.0).any():
        raise InputError(
            "this mask holds only 0 and 1, which frameworks read in opposite ways. If 1 means “may be seen”, give it as keep;"
            " if 1 means “hidden”, give it as hide; if the numbers are really to be added to the scores, write one of them as 1.0000001 or use -inf for hidden."
        )
    if np.isposinf(matrix.values).any():
        raise InputError(
            "a mask of +∞ would put all weight on that key. Write -inf to hide a key, 0 to leave it visible."
        )
    return matrix


def _booleans(value: object, setting: Setting) -> BoolArray:
    """Marks from true/false, or from 0/1: here the name says what 1 means."""
    try:
        matrix = matrix_of(_marks(value))
    except AttnError as error:
        raise InputError(
            "{what} Here true and false (or 1 and 0) stand, like “true true false”.", what=error.message
        ) from None
    if not np.isin(matrix.values, (0.0, 1.0)).all():
        raise InputError("write only true and false (or 1 and 0) here, like “true true false”.")
    marks: BoolArray = matrix.values == 1.0
    return marks


_WORD = re.compile(r"[A-Za-z]+")
_MARKS = {"true": "1", "false": "0", "yes": "1", "no": "0"}


def _marks(value: object, depth: int = 0) -> object:
    """true and false as 1 and 0, in text and in nested lists."""
    if isinstance(value, (list, tuple)) and depth < 4:
        return [_marks(part, depth + 1) for part in value]
    if isinstance(value, str):
        return _WORD.sub(lambda word: _MARKS.get(word.group().casefold(), word.group()), value)
    return int(value) if isinstance(value, (bool, np.bool_)) else value


def _slopes(value: object, setting: Setting) -> bool | Matrix:
    """true for the usual slopes, or one for each head."""
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, str) and value.strip().casefold() in _FLAGS):
        return _flag(value, setting)
    try:
        slopes = matrix_of(value)
    except AttnError as error:
        raise InputError(
            "{what} Here true stands, or a slope for each head, like “1/2 1/4”.", what=error.message
        ) from None
    if max(slopes.shape) != slopes.values.size or not (np.isfinite(slopes.values) & (slopes.values > 0)).all():
        raise InputError(
            "Slopes are numbers above 0, one for each head, like “1/2 1/4”; or write true for the usual ones."
        )
    return slopes


#: A window this wide is open: no matrix here is longer.
_OPEN = 10**9


def _window(value: object, setting: Setting) -> tuple[int, int]:
    numbers = matrix_of(value).values.ravel()
    if numbers.size != 2 or not np.isfinite(numbers).all() or any(n != np.floor(n) or n < -1 for n in numbers):
        raise InputError("A window is two whole numbers, [left, right], each 0 or more, or -1 for no limit: [2, 0].")
    return min(int(numbers[0]), _OPEN), min(int(numbers[1]), _OPEN)


def _words(value: object, setting: Setting) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(value.split()) if any(c.isspace() for c in value.strip()) else tuple(value.strip())
    if isinstance(value, (list, tuple)) and all(isinstance(word, str) for word in value):
        return tuple(value)
    raise InputError('A vocabulary is a list of tokens, like ["我", "爱", "你"].')


def _text(value: object, setting: Setting) -> str:
    if isinstance(value, str):
        return value
    raise InputError("“{value}” is not text. Write it in quotes.", value=brief(value))


def _choice(value: object, setting: Setting) -> str:
    if isinstance(value, str) and value in setting.choices:
        return value
    raise unknown(Message("The value"), brief(value), setting.choices)


_READERS: Mapping[str, Callable[[object, Setting], Any]] = {
    "flag": _flag,
    "number": _number,
    "positive": _number,
    "eps": _number,
    "count": _count,
    "scale": _scale,
    "shift": _shift,
    "mask": _mask,
    "booleans": _booleans,
    "window": _window,
    "slopes": _slopes,
    "words": _words,
    "text": _text,
    "choice": _choice,
}


#: The largest --seed, of experiments and trainings alike.
LARGEST_SEED = 2**32 - 1
#: Digits that are not read any more: no option goes so far.
_LONG = 12


def layout_of(text: str | None) -> str | None:
    """Which way tokens run, where it is said."""
    if text not in (None, "rows", "columns"):
        raise unknown(Message("The layout"), text, ["rows", "columns"])
    return text


def whole_number(option: str, text: str | None, least: int, most: int) -> int | None:
    """The whole number that an option gives, from `least` to `most`; None where it is not given."""
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
    """The number that an option gives, from `least` to `most`."""
    with placed(option):
        value: float = parse_number(text)[0]
    if not least <= value <= most:
        raise InputError(
            "{option}: {given} is out of range. Write a number from {least} to {most}.",
            option=option,
            given=f"{value:g}",
            least=f"{least:g}",
            most=f"{most:g}",
        )
    return value
