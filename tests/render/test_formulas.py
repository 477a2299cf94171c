"""Every formula of the registry can be shown: as text, as MathML, and as LaTeX that LaTeX accepts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from xml.etree import ElementTree

import pytest
import sympy
from cases import CASES
from rendering import all_formulas
from samples import OPS, SAMPLES

from attncli import models
from attncli.core.matrix import as_matrix
from attncli.core.terms import Term, cell, number
from attncli.locale.fit import fitted
from attncli.render.exact import exact_latex, exact_text
from attncli.render.formula import as_latex, as_mathml, as_text, put_in
from attncli.render.latex import escaped, matrix, term_latex
from attncli.render.view import View


def test_every_op_and_model_has_a_formula_in_the_list() -> None:
    assert set(SAMPLES) == set(OPS)
    assert set(CASES) == set(models.names())


@pytest.mark.parametrize("formula", all_formulas())
def test_formula_can_be_shown(formula: str) -> None:
    assert "\\" not in as_text(formula)
    tree = ElementTree.fromstring(as_mathml(formula))
    assert tree.tag == "math"
    text = "".join(tree.itertext())
    assert "\\" not in text and "{" not in text
    # Every letter and digit of the formula is still there.
    bare = re.sub(r"\\(?:begin|end)\{\w+\}|\\[A-Za-z]+|\W|_", "", formula)
    assert Counter(bare) <= Counter(text)
    assert as_latex(as_latex(formula)) == as_latex(formula)
    assert as_mathml(as_latex(formula)).count("<m") >= as_mathml(formula).count("<m")


def test_operands_stand_in_their_places() -> None:
    assert put_in(r"\frac{#2}{\sqrt{#1}} + #10", [f"x_{i}" for i in range(1, 11)]) == r"\frac{x_2}{\sqrt{x_1}} + x_10"


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"\begin{bmatrix}K_{past}& K\end{bmatrix}", "[K_past K]"),
        (r"\begin{bmatrix}K_{past}\\ K\end{bmatrix}", "[K_past; K]"),
        (r"\frac{Q K^{\top}}{\sqrt{d_k}}", "(Q Kᵀ) / √d_k"),
        (r"10^{-8}", "10⁻⁸"),
    ],
)
def test_text(latex: str, text: str) -> None:
    assert as_text(latex) == text


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\frac{U}{z}", "<mfrac><mi>U</mi><mi>z</mi></mfrac>"),
        (r"K^{\top}", "<msup><mi>K</mi><mi>⊤</mi></msup>"),
        (r"G_X^{(Q)}", "<msubsup><mi>G</mi><mi>X</mi><mrow><mo>(</mo><mi>Q</mi><mo>)</mo></mrow></msubsup>"),
        (r"\sqrt[3]{2}", "<mroot><mn>2</mn><mn>3</mn></mroot>"),
        (r"\sum_j U", "<mrow><munder><mo>∑</mo><mi>j</mi></munder><mi>U</mi></mrow>"),
        (r"-0.5", "<mrow><mo>−</mo><mn>0.5</mn></mrow>"),
        (r"S_{masked}", "<msub><mi>S</mi><mi>masked</mi></msub>"),
        (r"\text{<b>&}", "<mtext>&lt;b&gt;&amp;</mtext>"),
        ("<", "<mo>&lt;</mo>"),
    ],
)
def test_mathml(latex: str, expected: str) -> None:
    assert as_mathml(latex) == f"<math>{expected}</math>"


@pytest.mark.parametrize(
    "latex", [r"\input{x}", r"\href{a}{b}", r"\frac{1}", "{a", "a}", r"\begin{cases}a\end{cases}", "a^b^c"]
)
def test_mathml_refuses_what_it_does_not_know(latex: str) -> None:
    with pytest.raises(ValueError, match="formula"):
        as_mathml(latex)


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        ("S_{masked}", r"S_{\mathrm{masked}}"),
        ("G_{K_{past}}", r"G_{K_{\mathrm{past}}}"),
        (r"\max_j S", r"\max_j S"),
        (r"\operatorname{repeat}(K)", r"\mathrm{repeat}(K)"),
        (r"\begin{bmatrix}K\end{bmatrix}", r"\begin{bmatrix}K\end{bmatrix}"),
        ("W_Q", "W_Q"),
    ],
)
def test_words_are_upright(latex: str, expected: str) -> None:
    assert as_latex(latex) == expected


def _shown(id: str, index: object) -> str:
    return {"a": "2", "b": "-0.5", "c": r"1 + \sqrt{2}", "d": r"- \frac{1}{2}"}[id]


A, B, C, D = (cell(id, (0,)) for id in "abcd")


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (Term("sum", A, B), "2 - 0.5"),
        (Term("sum", A, D), r"2 + \left(- \frac{1}{2}\right)"),
        (Term("sum", B, A), "-0.5 + 2"),
        (Term("sum", Term("product", A, A), Term("product", B, A)), r"2 \times 2 + \left(-0.5 \times 2\right)"),
        (Term("product", A, B), r"2 \times \left(-0.5\right)"),
        (Term("product", C, A), r"\left(1 + \sqrt{2}\right) \times 2"),
        (Term("product", Term("difference", A, A), A), r"\left(2 - 2\right) \times 2"),
        (Term("difference", A, B), r"2 - \left(-0.5\right)"),
        (Term("difference", A, C), r"2 - \left(1 + \sqrt{2}\right)"),
        (Term("difference", A, Term("product", A, A)), r"2 - 2 \times 2"),
        (Term("quotient", C, Term("root", number(10.0))), r"\frac{1 + \sqrt{2}}{\sqrt{10}}"),
        (Term("exp", D), r"e^{- \frac{1}{2}}"),
        (Term("max", A, B), r"\max\left(2, -0.5\right)"),
        (Term("sum"), "0"),
        (Term("text", "$_|"), r"\text{\textdollar{}\_\textbar{}}"),
    ],
)
def test_arithmetic_in_latex(term: Term, expected: str) -> None:
    assert term_latex(term, _shown) == expected


def test_a_matrix_wider_than_amsmath_takes_is_an_array() -> None:
    assert matrix([["1"] * 10]).startswith(r"\begin{bmatrix} 1 & 1")
    assert matrix([["1"] * 11]).startswith(r"\left[\begin{array}{rrrrrrrrrrr} 1 & 1")
    assert as_mathml(matrix([["1"] * 11])).count("<mtd>") == 11


def test_text_is_no_command() -> None:
    assert escaped("\\input{x}$%#&_^~") == (
        r"\textbackslash{}input\{x\}\textdollar{}\%\#\&\_\textasciicircum{}\textasciitilde{}"
    )


def test_a_factor_of_ten_keeps_its_zero(seen: Callable[..., View]) -> None:
    from attncli.render.arithmetic import term_text
    from attncli.render.text import constant_text

    assert term_text(Term("product", number(10.0), A), _shown) == "10×2"
    assert term_text(Term("sum", A, Term("product", B, A)), _shown) == "2 + (-0.5×2)"
    assert [constant_text(value) for value in (0.0, 100.0, 0.1, -2.5)] == ["0", "100", "0.1", "-2.5"]


@pytest.mark.parametrize(
    ("value", "text", "ascii"),
    [
        (1e-8, "10⁻⁸", "1e-8"),
        (2.5e-6, "2.5 · 10⁻⁶", "2.5e-6"),
        (1e-12, "10⁻¹²", "1e-12"),
        (0.1, "0.1", "0.1"),
        (0.0001, "0.0001", "0.0001"),
    ],
)
def test_a_small_number_of_a_formula_is_a_power_of_ten(value: float, text: str, ascii: str) -> None:
    params = {"eta": as_matrix(0.5), "eps": as_matrix(value)}
    shown = as_text(put_in(OPS["adam_update"].numbers(params), ["E", "m", "v"]))  # type: ignore[misc]
    assert shown == f"E - 0.5 m / (√v + {text})"
    assert fitted(shown, "ascii") == f"E - 0.5 m / (sqrt(v) + {ascii})"
    assert fitted(shown, "gbk") == f"E - 0.5 m / (√v + {ascii.replace('*', '·')})"
    assert as_mathml(put_in(OPS["root_eps"].numbers({"eps": as_matrix(value)}), ["v"]))  # type: ignore[misc]


@pytest.mark.parametrize(
    ("number", "text", "latex"),
    [
        ("sqrt(2)/2", "√2/2", r"\frac{\sqrt{2}}{2}"),
        ("1/sqrt(2 + sqrt(3))", "1/√(√3 + 2)", r"\frac{1}{\sqrt{\sqrt{3} + 2}}"),
        ("2**Rational(1, 3)", "2^(1/3)", r"\sqrt[3]{2}"),
        ("E", "e", "e"),
        ("exp(2)/(1 + exp(2))", "e^2/(1 + e^2)", r"\frac{e^{2}}{1 + e^{2}}"),
        ("exp(-sqrt(2))", "e^(-√2)", r"e^{- \sqrt{2}}"),
        ("3*log(2)", "3·ln(2)", r"3 \ln{\left(2 \right)}"),
        ("erf(2)", "erf(2)", r"\mathrm{erf}{\left(2 \right)}"),
        ("oo", "∞", r"\infty"),
        ("-oo", "−∞", r"-\infty"),
        ("nan", "NaN", r"\text{NaN}"),
    ],
)
def test_exact_numbers_as_a_person_writes_them(number: str, text: str, latex: str) -> None:
    value = sympy.sympify(number)
    assert (exact_text(value), exact_latex(value)) == (text, latex)
    assert as_mathml(latex).startswith("<math>")
