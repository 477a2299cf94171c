"""Attention weights can be read whatever colour the terminal is: WCAG 2.1 contrast of every pair of colours used."""

from __future__ import annotations

import pytest
from rich.color import Color, ColorSystem
from rich.style import Style

from attncli.render.tables import SHADES


def luminance(color: Color) -> float:
    red, green, blue = (
        part / 255 / 12.92 if part / 255 <= 0.03928 else ((part / 255 + 0.055) / 1.055) ** 2.4
        for part in color.get_truecolor()
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Color, other: Color) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("system", [ColorSystem.TRUECOLOR, ColorSystem.EIGHT_BIT, ColorSystem.STANDARD])
@pytest.mark.parametrize("shade", [shade for shade in SHADES if shade])
def test_a_shade_names_both_colours_and_they_differ_enough(shade: str, system: ColorSystem) -> None:
    style = Style.parse(shade)
    assert style.color is not None and style.bgcolor is not None, "the terminal's own colour may be black or white"
    assert contrast(style.color.downgrade(system), style.bgcolor.downgrade(system)) >= 4.5


def test_no_weight_has_the_colours_of_the_terminal() -> None:
    assert SHADES[0] == ""
