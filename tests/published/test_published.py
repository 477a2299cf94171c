"""Printed numbers, recomputed: what counts as rounded, carried, truncated and wrong."""

from __future__ import annotations

import pytest

from attncli.problems.file import from_data
from attncli.problems.lesson import PrintedCheck, check

A1 = {"model": "attention", "inputs": {"Q": "1 2", "K": "1 0; 0 1", "V": "2 0; 0 4"}}


def one(step: str, text: str, how: str | None = None, **keys: object) -> PrintedCheck:
    published_how = {} if how is None else {step: how}
    (checked,) = check(from_data({**A1, "published": {step: text}, "published_how": published_how, **keys}))
    return checked


def product(a: str, text: str) -> PrintedCheck:
    """O = a · 1: the number itself as a published step."""
    (checked,) = check(from_data({"model": "product", "inputs": {"A": a, "V": "1"}, "published": {"O": text}}))
    return checked


@pytest.mark.parametrize(
    ("value", "printed", "ok"),
    [
        ("2.675", "2.68", True),  # half away from zero and half to even
        ("2.665", "2.67", True),  # half away
        ("2.665", "2.66", True),  # half to even
        ("2.675", "2.67", False),
        ("0.33", "0.330", True),
        ("0.33021", "0.33", True),  # trailing zeros dropped
        ("0.33021", "0.331", False),
        ("0.33", "0", False),  # a whole number only if it is one
        ("3", "3", True),
        ("2.9999", "3", False),
        ("2.9999", "3.0", True),
        ("1/3", "0.33333333333333333", True),
        ("1/3", "3.3333333333333333E-1", True),
        ("1/3", "0.33333333333333", True),
        ("1/3", "0.33333333333334", False),
        ("1/3", "1/3", True),
        ("0.3333333", "1/3", False),
        ("e^-1", "exp(-1)", True),
        ("-0.0004", "0.000", True),
        ("-0.0004", "-0.000", True),
        ("0.1", "?", True),
    ],
)
def test_rounded(value: str, printed: str, ok: bool) -> None:
    assert product(value, printed).ok is ok


def test_a_cell_that_is_off_is_named_with_more_digits() -> None:
    checked = one("A", "0.331 0.670")
    assert str(checked.message) == "cell [1,1] is printed as 0.331, but the calculation gives 0.330238."
    assert checked.computed == "0.330238 0.670"


def test_carried() -> None:
    assert one("O", "0.660 2.680", "carried") == PrintedCheck("O", "carried", True, "0.660 2.680", "0.660 2.680")
    assert not one("O", "0.660 2.679", "carried").ok
    assert "plain rounding would explain it" in str(one("O", "0.660 2.679", "carried").message)
    assert "write “carried”" in str(one("O", "0.660 2.680").message)


def test_carried_where_rounding_is_enough() -> None:
    checked = one("A", "0.330 0.670", "carried")
    assert checked.ok and "not needed" in str(checked.message)


def test_carried_with_ties_to_even() -> None:
    keys = {"model": "product", "inputs": {"A": "0.5 0.5", "V": "0.25; 0.4"}, "decimals": 1}
    for text, ok in (("0.2", False), ("0.3", True)):
        (checked,) = check(from_data({**keys, "published": {"O": text}, "published_how": {"O": "carried"}}))
        assert checked.ok is ok
    tie = {"model": "product", "inputs": {"A": "0.25", "V": "1"}, "decimals": 1}
    for text in ("0.2", "0.3"):
        (checked,) = check(from_data({**tie, "published": {"O": text}, "published_how": {"O": "carried"}}))
        assert checked.ok


def test_truncated() -> None:
    assert one("A", "0.330 0.669", "truncated").ok
    assert not one("A", "0.330 0.669").ok
    assert "write “truncated”" in str(one("A", "0.330 0.669").message)
    assert not one("A", "0.330 0.670", "truncated").ok


def test_wrong_must_be_wrong() -> None:
    wrong = one("A", "0.340 0.670", "wrong: a misprint")
    assert wrong.ok and str(wrong.message) == "The source is off here: a misprint"
    assert wrong.computed == "0.330238 0.670"
    for step, text, word in (
        ("A", "0.330 0.670", "Take the remark away"),
        ("O", "0.660 2.680", "Write “carried”"),
        ("A", "0.330 0.669", "Write “truncated”"),
    ):
        stale = one(step, text, "wrong: a misprint")
        assert not stale.ok and word in str(stale.message)


def test_wrong_needs_a_reason() -> None:
    assert not one("A", "0.340 0.670", "wrong:").ok


def test_an_unknown_remark() -> None:
    checked = one("A", "0.330 0.670", "truncate")
    assert not checked.ok and "Did you mean “truncated”?" in str(checked.message)


def test_an_unknown_step() -> None:
    checked = one("weights", "0.330 0.670")
    assert not checked.ok and "The step “weights” does not exist." in str(checked.message)


def test_an_unreadable_number_names_the_place() -> None:
    checked = one("A", "0.330 o.670")
    assert not checked.ok and "row 1, column 2" in str(checked.message)


@pytest.mark.parametrize("text", ["0.330 0.670 0", "0.330 0.670; 0 0", "0.330"])
def test_another_shape(text: str) -> None:
    checked = one("A", text)
    assert not checked.ok and "A is 1×2" in str(checked.message)


def test_a_vector_may_be_a_row_or_a_column() -> None:
    data = {"model": "softmax", "inputs": {"scores": "1 2; 4 3"}}
    for text in ("2; 4", "2 4"):
        assert check(from_data({**data, "published": {"row_max": text}}))[0].ok
    assert not check(from_data({**data, "published": {"scores": "1 2 4 3"}}))[0].ok


def test_cells_that_were_not_printed_are_left_out() -> None:
    checked = one("O", "0.660 ?")
    assert checked.ok and checked.computed == "0.660 ?"


def test_hidden_is_hidden() -> None:
    data = {"model": "softmax", "inputs": {"scores": "1 -inf"}}
    assert check(from_data({**data, "published": {"shifted": "0 -∞"}}))[0].ok
    assert not check(from_data({**data, "published": {"shifted": "0 -1000"}}))[0].ok


def test_columns() -> None:
    data = {"model": "product", "layout": "columns", "inputs": {"A": "0.3; 0.7", "V": "2 6; 4 8"}}
    (checked, shape) = check(from_data({**data, "published": {"O": "4.8; 6.8"}, "shapes": {"O": "2×1"}}))
    assert checked.ok and checked.computed == "4.8; 6.8" and shape.ok


def test_heads() -> None:
    data = {"model": "softmax", "inputs": {"scores": "0 0; 1 1 | 2 2; 3 3"}}
    (checked,) = check(from_data({**data, "published": {"A": "0.5 0.5; 0.5 0.5\n| 0.5 0.5\n0.5 0.5"}}))
    assert checked.ok and checked.printed == checked.computed == "0.5 0.5; 0.5 0.5 | 0.5 0.5; 0.5 0.5"


@pytest.mark.parametrize("text", ["1×2", "1x2", "1 × 2", "(1, 2)"])
def test_shapes(text: str) -> None:
    (checked,) = check(from_data({**A1, "shapes": {"A": text}}))
    assert checked.ok and checked.how == "shape"


def test_inputs_and_gradients_may_be_published() -> None:
    data = {"model": "product", "inputs": {"A": "0.3 0.7", "V": "2 4; 6 8"}, "gradient": {"loss": "O[1,1] + 2*O[1,2]"}}
    checked = check(from_data({**data, "published": {"A": "0.3 0.7", "G_O": "1 2", "G_A": "10 22", "L": "18.4"}}))
    assert [(entry.step, entry.ok) for entry in checked] == [("A", True), ("G_O", True), ("G_A", True), ("L", True)]
