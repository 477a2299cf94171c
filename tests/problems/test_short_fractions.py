r"""\frac12 and \tfrac1{2}, as pages write them: a digit needs no braces in TeX."""

from __future__ import annotations

import pytest

from attncli.problems.matrix_text import parse_matrix


@pytest.mark.parametrize("text", [r"\frac12", r"\tfrac12", r"\dfrac 1 2", r"\frac1{2}", r"\frac{1}2", r"\frac{1}{2}"])
def test_half(text: str) -> None:
    assert parse_matrix(text).values.tolist() == [[0.5]]
    assert parse_matrix(rf"\begin{{bmatrix}}{text}&-{text}\\3&4\end{{bmatrix}}").values.tolist() == [
        [0.5, -0.5],
        [3, 4],
    ]
