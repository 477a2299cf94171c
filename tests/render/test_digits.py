"""No digit is printed that a float64 does not have; what has too few of them is said."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import attncli
from attncli.render import render
from attncli.render.text import is_cut, number_text

SAID = "significant digits"


@given(st.floats(-1e14, 1e14), st.integers(0, 15))
def test_at_most_15_digits_and_they_are_right(value: float, decimals: int) -> None:
    text = number_text(value, decimals)
    digits = text.lstrip("-").replace(".", "").lstrip("0")
    assert len(digits) <= 15 or "." not in text
    assert float(text) == pytest.approx(value, rel=1e-14, abs=0.5 * 10.0**-decimals * 1.01)
    short = not value.is_integer() and len(text.partition(".")[2]) < decimals
    assert is_cut(np.array([value, 3.0, np.inf, np.nan]), decimals) == short


@pytest.mark.parametrize("format", ["table", "markdown", "html", "latex", "json"])
def test_more_decimals_than_there_are_digits_are_said(format: str) -> None:
    problem = attncli.problem("residual", {"X": "1234.1 0.2", "F": "0.1 0.1"})
    assert SAID in " ".join(str(render(attncli.forward(problem, decimals=12), format)).split())
    assert SAID not in str(render(attncli.forward(problem, decimals=11), format))
    assert "1234.20000000000" in str(render(attncli.forward(problem, decimals=12), "table"))
    assert "1234.200000000000" not in str(render(attncli.forward(problem, decimals=12), "table"))
