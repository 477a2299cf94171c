"""Settings as they were written, read by the kinds a model declares."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from attncli.matrix import BoolArray, Matrix
from attncli.message import N_, AttnError, InputError, Message, unknown
from attncli.models import Model, Setting
from attncli.problems.text import parse_matrix


def read_settings(model: Model, written: Mapping[str, Any], layout: str = "rows") -> dict[str, Any]:
    """The settings with their values read: numbers as floats, masks as matrices, marks as booleans.

    Raises
    ------
    InputError
        Names the setting, what was given, and what to write.
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
            raise unknown(Message(N_("Model {model}: the setting"), model=model.name), name, list(kinds))
        out[name] = _read(kinds[name], value, layout)
    return out


def _read(setting: Setting, value: Any, layout: str) -> Any:
    try:
        return _READERS[setting.kind](value, setting, layout)
    except AttnError as error:
        raise error.at(setting.name) from None


def _flag(value: Any, setting: Setting, layout: str) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.casefold() in ("true", "yes", "on", "false", "no", "off"):
        return value.casefold() in ("true", "yes", "on")
    raise InputError("“{value}” is neither true nor false. Write true or false.", value=value)


def _number(value: Any, setting: Setting, layout: str) -> Matrix:
    """One number with what was written of it, so that 1/3 stays a third in exact results."""
    if isinstance(value, bool):
        raise InputError("“{value}” is not a number. Write a number, like 0.5.", value=str(value).lower())
    number = _one(value)
    if not math.isfinite(float(number.values)) or (float(number.values) <= 0 and setting.name in ("softcap", "eta")):
        raise InputError("{value} does not work here. Write a finite number above 0, like 0.5.", value=value)
    return number


def _one(value: Any) -> Matrix:
    """A number as a matrix without axes."""
    matrix = parse_matrix(repr(value) if isinstance(value, (int, float)) else str(value))
    if matrix.values.size != 1:
        raise InputError("“{value}” is not one number. Write a number, like 0.5.", value=value)
    return Matrix(
        matrix.values.reshape(()), matrix.decimals.reshape(()) if matrix.decimals is not None else None, matrix.entries
    )


def _scale(value: Any, setting: Setting, layout: str) -> str | Matrix:
    if value in ("sqrt", "none"):
        return str(value)
    if isinstance(value, str) and value.isalpha() and value not in ("e", "inf", "nan"):
        raise unknown(Message(N_("The scale")), value, ["sqrt", "none", N_("a number")])
    number = _number(value, setting, layout)
    if float(number.values) == 0:
        raise InputError(
            "A scale of 0 would erase all scores. Write sqrt, none, or a number that multiplies, like 0.5."
        )
    return number


def _shift(value: Any, setting: Setting, layout: str) -> str | Matrix:
    if value in ("max", "none"):
        return str(value)
    if isinstance(value, str) and value.isalpha() and value not in ("e", "inf", "nan"):
        raise unknown(Message(N_("What to subtract")), value, ["max", "none", N_("a number")])
    return _number(value, setting, layout)


def matrix_of(value: Any) -> Matrix:
    """A matrix from text, or from nested lists of numbers and entry texts as TOML and JSON have them."""
    if isinstance(value, Matrix):
        return value
    if isinstance(value, str):
        return parse_matrix(value)
    if isinstance(value, np.ndarray):
        return Matrix(np.asarray(value, dtype=np.float64))
    return parse_matrix(_nested_text(value, 0))


def _nested_text(value: Any, depth: int) -> str:
    if isinstance(value, bool):
        raise InputError("“{value}” stands where a number is expected. Write a number.", value=str(value).lower())
    if isinstance(value, (int, float)):
        text = repr(value)
        return text if len(text) < 400 else "1e999"
    if isinstance(value, str):
        return f"({value})" if any(sign in value for sign in " +*/^") else value
    if isinstance(value, (list, tuple)):
        if depth > 3:
            raise InputError("Brackets are nested too deep. Write [[1, 2], [3, 4]].")
        return "[" + ", ".join(_nested_text(part, depth + 1) for part in value) + "]"
    raise InputError(
        "“{value}” is not a matrix. Write text like “1 2; 3 4”, or rows like [[1, 2], [3, 4]].", value=str(value)[:40]
    )


def _mask(value: Any, setting: Setting, layout: str) -> Matrix:
    matrix = matrix_of(value)
    matrix = matrix.transposed() if layout == "columns" else matrix
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


def _booleans(value: Any, setting: Setting, layout: str) -> BoolArray:
    """Marks from true/false, or from 0/1: here the name says what 1 means."""
    if isinstance(value, np.ndarray) and value.dtype == np.bool_:
        marks: BoolArray = value
    else:
        text = value if isinstance(value, str) else _marks_text(value)
        words = {"true": "1", "false": "0", "yes": "1", "no": "0"}
        import re

        text = re.sub(r"[A-Za-z]+", lambda word: words.get(word.group().casefold(), word.group()), text)
        matrix = parse_matrix(text)
        if not np.isin(matrix.values, (0.0, 1.0)).all():
            raise InputError("only true and false (or 1 and 0) may stand here, like “true true false”.")
        marks = matrix.values == 1.0
    return marks.swapaxes(-1, -2) if layout == "columns" and marks.ndim > 1 else marks


def _marks_text(value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_marks_text(part) for part in value) + "]"
    return _nested_text(value, 1)


def _window(value: Any, setting: Setting, layout: str) -> tuple[int, int]:
    numbers = matrix_of(value).values.ravel() if not isinstance(value, (int, float)) else np.array([])
    if (
        numbers.size != 2
        or any(number != int(number) or number < -1 for number in numbers if np.isfinite(number))
        or not np.isfinite(numbers).all()
    ):
        raise InputError("A window is two whole numbers, [left, right], each 0 or more, or -1 for no limit: [2, 0].")
    return int(numbers[0]), int(numbers[1])


def _words(value: Any, setting: Setting, layout: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(value.split()) if any(c.isspace() for c in value.strip()) else tuple(value.strip())
    if isinstance(value, (list, tuple)) and all(isinstance(word, str) for word in value):
        return tuple(value)
    raise InputError('A vocabulary is a list of tokens, like ["我", "爱", "你"].')


def _text(value: Any, setting: Setting, layout: str) -> str:
    if isinstance(value, str):
        return value
    raise InputError("“{value}” is not text. Write it in quotes.", value=value)


def _choice(value: Any, setting: Setting, layout: str) -> str:
    if value in setting.choices:
        return str(value)
    raise unknown(Message(N_("The value")), str(value), setting.choices)


_READERS = {
    "flag": _flag,
    "number": _number,
    "scale": _scale,
    "shift": _shift,
    "mask": _mask,
    "booleans": _booleans,
    "window": _window,
    "words": _words,
    "text": _text,
    "choice": _choice,
}
