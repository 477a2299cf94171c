"""Rounding as a person does it, against Python's decimal module."""

from __future__ import annotations

from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from attncli.arithmetic.hand import Hand, round_decimal, truncate_decimal
from attncli.core.message import InputError

_WIDE = Context(prec=60)
_MODES = {"away": ROUND_HALF_UP, "even": ROUND_HALF_EVEN}


def written(digits: int, places: int) -> Decimal:
    return Decimal(digits).scaleb(-places)


#: Decimal numbers of at most 15 digits, every second one ending on 5, so that ties are common.
DECIMALS = st.builds(
    lambda digits, five, places: written(digits // 10 * 10 + 5 if five else digits, places),
    st.integers(1, 14).flatmap(lambda n: st.integers(-(10**n), 10**n)),
    st.booleans(),
    st.integers(0, 16),
)


@settings(max_examples=300)
@given(DECIMALS, st.integers(0, 15), st.sampled_from(["away", "even"]))
@example(Decimal("2.675"), 2, "away")
@example(Decimal("2.665"), 2, "even")
@example(Decimal("1.005"), 2, "away")
@example(Decimal("0.9"), 15, "away")
@example(Decimal("38368.8796210935"), 11, "away")
@example(Decimal("99999999999999"), 0, "away")
def test_a_written_number_is_rounded_as_on_paper(number: Decimal, decimals: int, ties: str) -> None:
    expected = number.quantize(Decimal(1).scaleb(-decimals), _MODES[ties], context=_WIDE)
    assert round_decimal(float(number), decimals, ties) == float(expected)


@settings(max_examples=200)
@given(DECIMALS, st.integers(0, 15))
@example(Decimal("0.29"), 2)
@example(Decimal("42940.876905"), 11)
def test_a_written_number_is_cut_off_as_on_paper(number: Decimal, decimals: int) -> None:
    expected = number.quantize(Decimal(1).scaleb(-decimals), ROUND_DOWN, context=_WIDE)
    assert truncate_decimal(float(number), decimals) == float(expected)


@given(st.floats(allow_nan=False), st.integers(0, 15))
def test_any_float_moves_by_half_a_unit_at_most_and_then_stays(value: float, decimals: int) -> None:
    for ties in ("away", "even", "floor", "ceil"):
        rounded = round_decimal(value, decimals, ties)
        assert round_decimal(rounded, decimals, ties) == rounded
        if np.isfinite(value):
            assert abs(rounded - value) <= 0.5 * 10.0**-decimals * 1.21 + abs(value) * 1e-15
            assert round_decimal(-value, decimals, "away") == -round_decimal(value, decimals, "away")


def test_infinities_and_nan_pass_through_and_zero_has_no_sign() -> None:
    values = np.array([-np.inf, np.inf, np.nan, -0.0004, 1e300])
    for function in (round_decimal, truncate_decimal):
        result = function(values, 3)
        np.testing.assert_array_equal(result, [-np.inf, np.inf, np.nan, 0.0, 1e300])
        assert not np.signbit(result[3])


def test_ties_go_where_they_are_told() -> None:
    values = np.array([0.125, -0.125, 2.675, -2.675])
    assert round_decimal(values, 2, "floor").tolist() == [0.12, -0.13, 2.67, -2.68]
    assert round_decimal(values, 2, "ceil").tolist() == [0.13, -0.12, 2.68, -2.67]
    assert round_decimal(values, 2, "away").tolist() == [0.13, -0.13, 2.68, -2.68]
    assert round_decimal(values, 2, "even").tolist() == [0.12, -0.12, 2.68, -2.68]
    with pytest.raises(ValueError, match="none of away, even, floor, ceil"):
        round_decimal(values, 2, "odd")


@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.integers(-99999, 99999), st.integers(-9999, 9999)), min_size=1, max_size=6),
    st.integers(1, 4),
    st.sampled_from(["away", "even"]),
)
@example([(53321, 5158), (90581, 3480), (-59096, 9988)], 2, "away")
def test_hand_products_of_written_numbers_tie_as_on_paper(
    pairs: list[tuple[int, int]], decimals: int, rounding: str
) -> None:
    """A sum of products that cancels leaves an error of float64 that paper does not know."""
    hand = Hand(decimals, rounding)
    a = np.array([[i / 10**decimals for i, _ in pairs]])
    b = np.array([[j / 10**decimals] for _, j in pairs])
    exact = sum((written(i, decimals) * written(j, decimals) for i, j in pairs), Decimal(0))
    expected = exact.quantize(Decimal(1).scaleb(-decimals), _MODES[rounding], context=_WIDE)
    assert hand.round_step(hand.matmul(a, b)).item() == float(expected)


#: Numbers of as many decimals as are carried, and factors that make ties of them.
FACTORS = st.sampled_from(["2.5", "-2", "0.5", "-1.5", "3.5"]).map(Decimal)


@settings(max_examples=300)
@given(st.integers(7, 10), st.lists(st.tuples(st.integers(-(10**9), 10**9), FACTORS), min_size=1, max_size=4))
@example(8, [(47719833, Decimal("2.5")), (63703011, Decimal("-2"))])
def test_a_sum_whose_terms_nearly_cancel_ties_as_on_paper(decimals: int, terms: list[tuple[int, Decimal]]) -> None:
    """0.47719833·2.5 + 0.63703011·(−2) is −0.081064395, a tie that float64 misses."""
    written_terms = [(written(digits, decimals), factor) for digits, factor in terms]
    exact = sum((number * factor for number, factor in written_terms), Decimal(0))
    expected = float(exact.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP, context=_WIDE))
    hand = Hand(decimals)
    numbers = np.array([[float(number) for number, _ in written_terms]])
    factors = np.array([[float(factor)] for _, factor in written_terms])
    assert hand.round_step(hand.matmul(numbers, factors))[0, 0] == expected
    assert hand.round_step(hand.sum(numbers * factors.T, -1))[0, 0] == expected
    rows = np.zeros(len(terms), dtype=int)
    assert hand.round_step(hand.scatter_add(numbers.T * factors, rows, 1))[0, 0] == expected


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [("0.1234567855", "-0.1234567800", 1e-8), ("1.00000005", "0.000000005", 1.00000006)],
)
def test_two_numbers_added_tie_as_on_paper(first: str, second: str, expected: float) -> None:
    hand = Hand(8)
    a, b = np.array([float(first)]), np.array([float(second)])
    assert hand.round_step(hand.add(a, b))[0] == expected
    assert hand.round_step(hand.subtract(a, -b))[0] == expected


def test_hand_refuses_a_rounding_that_does_not_exist() -> None:
    with pytest.raises(InputError, match="Did you mean “even”"):
        Hand(3, "evn")


@given(st.lists(st.tuples(st.integers(-999, 999), st.integers(-999, 999)), min_size=1, max_size=6), st.integers(4, 6))
@example([(-9, 18), (-31, 69), (41, 56)], 5)
def test_what_is_exact_at_the_places_asked_cuts_to_itself(pairs: list[tuple[int, int]], decimals: int) -> None:
    """Also where the sum of products loses digits by cancelling: nothing else can be cut off there."""
    sum_of_products = sum((a / 100) * (b / 100) for a, b in pairs)
    exact = sum(a * b for a, b in pairs) / 10_000
    assert truncate_decimal(sum_of_products, decimals) == exact
