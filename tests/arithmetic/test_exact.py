"""Exact results look like on paper, and never take long: too much is refused with what to do instead."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy
from harness import within
from hypothesis import given
from hypothesis import strategies as st

from attncli.arithmetic import exact as exact_module
from attncli.arithmetic.exact import Exact
from attncli.arithmetic.shorten import Shortener
from attncli.core.message import LimitError
from attncli.problems import library
from attncli.problems.matrix_text import parse_matrix
from attncli.problems.problem import Problem, run


def attention(Q: str, K: str, V: str, upstream: str | None = None, **settings: Any) -> Problem:
    inputs = {"Q": parse_matrix(Q), "K": parse_matrix(K), "V": parse_matrix(V)}
    return Problem("attention", inputs, settings=settings, upstream=parse_matrix(upstream) if upstream else None)


def texts(value: Any) -> list[list[str]]:
    return [[str(number) for number in row] for row in value]


def test_the_first_exercise_reads_as_on_paper() -> None:
    trace = attention("1 2", "1 0; 0 1", "2 0; 0 4", "1 1").graph().evaluate(Exact())
    assert texts(trace["scaled"]) == [["sqrt(2)/2", "sqrt(2)"]]
    assert texts(trace["exp"]) == [["exp(-sqrt(2)/2)", "1"]]
    assert texts(trace["A"]) == [["1/(1 + exp(sqrt(2)/2))", "exp(sqrt(2)/2)/(1 + exp(sqrt(2)/2))"]]
    assert texts(trace["O"]) == [["2/(1 + exp(sqrt(2)/2))", "4*exp(sqrt(2)/2)/(1 + exp(sqrt(2)/2))"]]
    assert texts(trace["G_Q"])[0][1] == "sqrt(2)*exp(sqrt(2)/2)/(1 + exp(sqrt(2)/2))**2"


def test_all_gradients_of_three_tokens_hold_no_hyperbolic_function() -> None:
    one = parse_matrix("1 0; 0 1")
    x = parse_matrix("1 0; 0 1; 1 1")
    problem = Problem(
        "self_attention",
        {"X": x, "W_Q": one, "W_K": one, "W_V": one},
        settings={"causal": True},
        upstream=x,
    )
    with within(20):
        trace = problem.graph().evaluate(Exact())
    assert texts(trace["masked"])[0] == ["sqrt(2)/2", "-oo", "-oo"]
    assert texts(trace["A"])[2] == ["1/(2 + exp(sqrt(2)/2))"] * 2 + ["exp(sqrt(2)/2)/(2 + exp(sqrt(2)/2))"]
    for id in trace:
        assert not any(number.has(sympy.sinh, sympy.cosh) for number in trace[id].flat), id


@pytest.mark.parametrize(
    ("number", "short"),
    [
        ("sqrt(2)/2", "sqrt(2)/2"),
        ("1/sqrt(8)", "sqrt(2)/4"),
        ("exp(-1)", "exp(-1)"),
        ("1/exp(1)", "exp(-1)"),
        ("E*E", "exp(2)"),
        ("cosh(1) + sinh(1)", "E"),
        ("1/(1 + sqrt(2))", "-1 + sqrt(2)"),
        ("exp(1)/(exp(1) + exp(2))", "1/(1 + E)"),
        ("1/(1 + exp(-1))", "E/(1 + E)"),
        ("1/(1 + E) + E/(1 + E)", "1"),
        ("(exp(2) - 1)/(1 + E)", "-1 + E"),
        ("(2 + 2*E)/(4 + 4*E)", "1/2"),
        ("1/(sqrt(2) + sqrt(2)*E)", "sqrt(2)/(2*(1 + E))"),
        ("(1 + sqrt(2))*(1 - sqrt(2))", "-1"),
        ("sqrt(6)/sqrt(2)", "sqrt(3)"),
        ("(1 + E)**2 - 1 - 2*E - E**2", "0"),
        ("1/(sqrt(2)*E - sqrt(2)*(E - 1))", "sqrt(2)/2"),
        ("2**Rational(1, 3)", "2**(1/3)"),
    ],
)
def test_short_forms(number: str, short: str) -> None:
    assert str(Shortener(sympy).short(sympy.sympify(number))) == short


LEAVES = st.sampled_from(
    ["E", "exp(-1)", "exp(sqrt(2)/2)", "sqrt(2)", "sqrt(3)", "2", "-1", "1/2", "3**(1/3)", "tanh(1)"]
)


@st.composite
def expressions(draw: st.DrawFn) -> Any:
    text = st.recursive(
        LEAVES,
        lambda part: st.tuples(st.sampled_from("+-*/"), part, part).map(lambda p: f"(({p[1]}){p[0]}({p[2]}))"),
        max_leaves=9,
    )
    return draw(text)


@given(expressions())
def test_a_short_form_is_the_same_number(text: str) -> None:
    number = sympy.sympify(text, rational=True)
    if not number.is_finite:
        return
    size = sympy.N(number, 40)
    if abs(size) < 1e-30:
        return  # 0 in disguise, or its inverse; which of the two is not told by digits
    short = Shortener(sympy).short(number)
    assert abs(sympy.N(short, 40) - size) <= 1e-25 * abs(size)


@given(st.lists(st.fractions(-20, 20, max_denominator=30), min_size=2, max_size=4))
def test_shares_add_up_to_one_exactly(scores: list[Fraction]) -> None:
    exact = Exact()
    powers = exact.exp(np.array([[sympy.Rational(s.numerator, s.denominator) for s in scores]], dtype=object))
    total = exact.round_step(exact.sum(powers, -1))
    shares = exact.round_step(exact.divide(exact.round_step(powers), total))
    assert exact.round_step(exact.sum(shares, -1))[0, 0] == 1


@pytest.mark.parametrize("above", ["-2", "0", "3", "oo", "-oo", "nan"])
def test_over_0_stands_what_stands_there_for_floats(above: str) -> None:
    exact, number = Exact(), sympy.sympify(above)
    quotient = exact.divide(np.array([number], dtype=object), np.array([sympy.Integer(0)], dtype=object))
    with np.errstate(all="ignore"):
        np.testing.assert_equal(exact.plain(quotient), np.array([float(number)]) / 0.0)


def test_the_logarithm_of_0_is_an_infinity_with_a_sign() -> None:
    assert Exact().log(np.array([sympy.Integer(0)], dtype=object))[0] == -sympy.oo


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "entry",
    [
        "1.0000001^1000",
        "(1/3)^999",
        "((1/9)^999)^999",
        "1e-999999999",
        "2^-1000",
        "√2^999",
        "1e-150",
    ],
)
def test_numbers_with_too_many_digits_are_refused_at_once(entry: str) -> None:
    with within(5), pytest.raises(LimitError) as error:
        Exact().constant(parse_matrix(entry))
    assert "limit" in str(error.value) or "more than 100 digits" in str(error.value)
    assert "Leave out --exact" in str(error.value) or "leave out --exact" in str(error.value)


def test_the_message_says_what_was_given_and_what_to_do() -> None:
    with pytest.raises(LimitError) as error:
        Exact().constant(parse_matrix("(1/3)^999"))
    assert str(error.value) == (
        "“(1/3)^999” has more than 100 digits as a fraction, too many for an exact result."
        " Leave out --exact, or use a smaller example with rounder numbers."
    )
    with pytest.raises(LimitError) as error:
        Exact().constant(parse_matrix(np.zeros((21, 20)).tolist().__repr__()))
    assert str(error.value) == (
        "Exact results are for small matrices: this one has 420 cells, the limit is 400."
        " Leave out --exact, or use a smaller example with rounder numbers."
    )
    with pytest.raises(LimitError, match="The power 1001 is too large for an exact result; the limit is 1000"):
        Exact().constant(parse_matrix("0.5^1001"))


def test_long_sums_of_roots_are_left_as_they_are_or_refused_but_never_hang() -> None:
    keys = "; ".join(f"2^(1/{i + 2}) {i + 1}^(1/3)" for i in range(30))
    values = "; ".join(f"{i}^(1/5) 1" for i in range(30))
    roots = "1/(√2+√3+√5+√7+√11+√13+√17+√19)"
    with within(60):
        with pytest.raises(LimitError, match="grown past 500 operations"):
            attention("1 2", keys, values, "1 1").graph().evaluate(Exact())
        product = Exact().constant(parse_matrix(roots))
    assert float(product[0, 0].evalf()) == pytest.approx(1 / sum(np.sqrt([2, 3, 5, 7, 11, 13, 17, 19])))


def test_a_calculation_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_module, "MAX_SECONDS", 0.0)
    with pytest.raises(LimitError, match=r"taken more than 0 seconds\. Leave out --exact"):
        attention("1 2", "1 0; 0 1", "2 0; 0 4").graph().evaluate(Exact())


def test_the_maximum_is_decided_exactly() -> None:
    exact = Exact()
    numbers = exact.constant(parse_matrix("√2 1.4142135623730951 -inf; 1/3 0.3333333333333333 0"))
    assert texts(exact.max(numbers, -1)) == [["14142135623730951/10000000000000000"], ["1/3"]]
    assert texts(exact.max(numbers, -2)) == [["sqrt(2)", "14142135623730951/10000000000000000", "0"]]


def test_sympy_is_imported_only_when_asked_for() -> None:
    code = (
        "import sys; from attncli.problems.problem import arithmetic_called; import attncli.arithmetic.exact, attncli.arithmetic.interval;"
        "[arithmetic_called(n) for n in ('floating', 'hand')]; assert 'sympy' not in sys.modules;"
        "arithmetic_called('exact'); assert 'sympy' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_number_that_is_too_long_to_be_written_shorter_is_left_as_it_is() -> None:
    """Its numerator and denominator are found, but to multiply them out would take too many products."""
    problem = library.load("aibyhand-three-heads")
    exact, plain = problem.graph().evaluate(Exact()), problem.graph().evaluate()
    for id in ("A", "O"):
        close = [float(number) for number in exact[id].flat]
        np.testing.assert_allclose(close, plain[id].ravel(), rtol=1e-12, atol=1e-12)


def test_numbers_with_spaces_inside_are_told_apart_in_the_result() -> None:
    shown = run(library.load("e3-layer-norm"), backward=False, arithmetic="exact")
    assert "Y = 15·√151/151, -30·√151/151 - 1, 1; 0, -1 + 60·√601/601, " in str(shown)
    plain = run(library.load("e3-layer-norm"), backward=False)
    assert ", " not in str(plain).partition("Result: Y = ")[2]
