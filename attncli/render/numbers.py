r"""Numbers as text. Exact whole numbers are bare; everything else has the decimals that were asked for."""

from __future__ import annotations

import math
import re

import numpy as np

from attncli.arithmetic import Number, Value
from attncli.arithmetic.hand import round_decimal

#: From here on a decimal number says less than powers of ten.
_HUGE = 1e15
#: Digits that every float64 keeps of a decimal number.
SIGNIFICANT = 15


def number_text(value: Number, decimals: int) -> str:
    """One number: 2, 0.707, -1.500, −∞, NaN; an exact one as it is, like √2/2."""
    if not isinstance(value, (float, int, np.floating, np.integer)):
        from attncli.render.exact import exact_text

        return exact_text(value)
    number = float(value)
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "−∞" if number < 0 else "∞"
    if abs(number) >= _HUGE:
        return f"{number:.6e}"
    if number.is_integer():
        return str(int(number))
    places = min(decimals, _places_held(number))
    rounded = float(round_decimal(number, places))
    text = f"{rounded:.{places}f}"
    return text.removeprefix("-") if rounded == 0 else text


def _places_held(number: float) -> int:
    """Decimals of a finite number other than 0 up to which a float64 holds what it is."""
    return max(SIGNIFICANT - 1 - math.floor(math.log10(abs(number))), 0)


def is_cut(values: Value, decimals: int) -> bool:
    """Whether one of the numbers is shown with fewer decimals than these, because it holds no more."""
    sizes = np.abs(values)
    largest = float(np.max(sizes, initial=0.0, where=(sizes < _HUGE) & (np.trunc(sizes) != sizes)))
    return largest > 0 and _places_held(largest) < decimals


def number_latex(value: Number, decimals: int) -> str:
    """The same in LaTeX."""
    if not isinstance(value, (float, int, np.floating, np.integer)):
        from attncli.render.exact import exact_latex

        return exact_latex(value)
    number = float(value)
    if math.isnan(number):
        return r"\text{NaN}"
    if math.isinf(number):
        return r"-\infty" if number < 0 else r"\infty"
    if abs(number) >= _HUGE:
        mantissa, _, power = f"{number:.6e}".partition("e")
        return rf"{mantissa} \times 10^{{{int(power)}}}"
    return number_text(number, decimals)


def constant_text(value: float) -> str:
    """A number of the formula itself in six digits, without zeros at its end: 0.1, 10, 0.333333; a small one as 1e-8, never as 0."""
    if not math.isfinite(value) or (value.is_integer() and abs(value) < _HUGE):
        return number_text(value, 0)
    return re.sub(r"e([+-])0*", r"e\1", f"{value:.6g}")


def constant_latex(value: float) -> str:
    """The same in LaTeX: 1e-8 is 10^{-8}."""
    if not math.isfinite(value):
        return number_latex(value, 0)
    digits, _, power = constant_text(value).partition("e")
    if not power:
        return digits
    size = f"10^{{{int(power)}}}"
    return size if digits == "1" else rf"{digits} \times {size}"


def plain(values: Value) -> object:
    """Numbers as nested lists for data formats: floats in full, infinities as "inf" and "-inf", NaN as "nan"."""
    if values.dtype == object:
        values = values.astype(np.float64)
    if np.isfinite(values).all():
        return values.tolist()
    return _plain_part(values.tolist())


def _plain_part(part: object) -> object:
    if isinstance(part, list):
        return [_plain_part(entry) for entry in part]
    return part if isinstance(part, (int, float)) and math.isfinite(part) else str(part)


def padded(texts: list[str]) -> list[str]:
    """A column of numbers, aligned at the point by spaces on the right of whole numbers."""
    tails = [len(text) - text.index(".") if "." in text else 0 for text in texts]
    width = max(tails, default=0)
    return [text + " " * (width - tail) if _is_decimal(text) else text for text, tail in zip(texts, tails, strict=True)]


def _is_decimal(text: str) -> bool:
    return text.lstrip("-").replace(".", "", 1).isdigit()


def points_text(value: float) -> str:
    """Points without needless zeros: 2, 0.5, 1.33."""
    text = f"{value:.2f}"
    return text.rstrip("0").rstrip(".")
