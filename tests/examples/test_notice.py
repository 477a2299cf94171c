"""Notices: text whose numbers come from the calculation."""

from __future__ import annotations

import pytest

from attncli.core.message import InputError
from attncli.problems.file import from_data
from attncli.problems.lesson import observations
from attncli.problems.problem import Problem


def problem(**keys: object) -> Problem:
    return from_data(
        {
            "model": "attention",
            "inputs": {"Q": "1 2", "K": "1 0; 0 1", "V": "2 0; 0 4"},
            "contrast": {"inputs": {"Q": "1 -2"}, "settings": {"scale": "none"}},
            **keys,
        }
    )


def fill(problem: Problem, text: str) -> str:
    return observations(problem.changed(notice={"en": text}), "en")


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("weight {A[1,2]}", "weight 0.670"),
        ("{O[1,2]:3} and {O[1,2]:4}", "2.679 and 2.6790"),
        ("{carried.O[1,2]}", "2.680"),
        ("{full.O[1,2]:5}", "2.67905"),
        ("{scores[1,2]:0}", "2"),
        ("{Q[1,1]:1}", "1.0"),
        ("{contrast.scores[1,2]:0}", "−2"),
        ("{contrast.A[1,1]}", "0.953"),
        ("{shape.V}", "2×2"),
        ("{{1, 2}}", "{1, 2}"),
        ("nothing", "nothing"),
    ],
)
def test_places(text: str, filled: str) -> None:
    assert fill(problem(), text) == filled


def test_default_decimals_are_the_steps() -> None:
    assert fill(problem(decimals={"default": 2, "A": 5}), "{A[1,1]} {O[1,1]}") == "0.33024 0.66"


def test_infinities_and_no_numbers() -> None:
    masked = from_data({"model": "softmax", "inputs": {"scores": "800 -inf"}, "settings": {"subtract": "none"}})
    assert fill(masked, "{scores[1,2]} {exp[1,1]} {A[1,1]}") == "−∞ ∞ NaN"


def test_minus_zero_is_zero() -> None:
    assert fill(problem(inputs={"Q": "-0.0001 0", "K": "1 0; 0 1", "V": "1; 1"}), "{scores[1,1]}") == "0.000"


def test_a_flat_list_has_one_index() -> None:
    tokens = from_data(
        {"model": "tokens", "inputs": {"text": "我爱你"}, "settings": {"vocabulary": "我爱你"}, "decimals": 0}
    )
    assert fill(tokens, "{T[3]}") == "2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{B[1,2]}", "The notice quotes the step “B” does not exist."),
        ("{A}", "“A”"),
        ("{A[1,2]:x}", "“A[1,2]:x”"),
        ("{A[1,2]!r}", "“A[1,2]!r”"),
        ("{}", "“”"),
        ("{A[0,1]}", "A[0,1], but A is 1×2: rows and columns are counted from 1"),
        ("{A[1]}", "A[1], but A is 1×2"),
        ("{A[1,2]", "brace"),
        ("A[1,2]}", "brace"),
        ("{__class__.x[1,1]}", "does not exist"),
    ],
)
def test_what_cannot_be_filled(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        fill(problem(), text)
    assert message in str(error.value)


def test_a_contrast_must_be_there() -> None:
    with pytest.raises(InputError, match="this problem has none"):
        fill(problem(contrast=None), "{contrast.A[1,1]}")


def test_an_unreadable_contrast_names_the_key() -> None:
    with pytest.raises(InputError, match=r"contrast\.inputs\.Q"):
        fill(problem(contrast={"inputs": {"Q": "1 x"}}), "{contrast.A[1,1]}")


def test_of_several_unreadable_inputs_of_a_contrast_the_first_is_named() -> None:
    """Whatever order Python keeps the names of a set in."""
    inputs = {"Q": "1 x", "V": "x", "K": "y", "mask": "z"}
    for names in (inputs, dict(reversed(inputs.items()))):
        with pytest.raises(InputError, match=rf"contrast\.inputs\.{next(iter(names))}"):
            fill(problem(contrast={"inputs": names}), "{contrast.A[1,1]}")


def test_languages() -> None:
    both = problem(notice={"en": "weight {A[1,1]}", "zh": "权重 {A[1,1]}"})
    assert observations(both, "zh") == "权重 0.330"
    assert observations(both, "fr") == observations(both, "en") == "weight 0.330"
    assert observations(problem(), "zh") == ""
