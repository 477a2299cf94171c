"""attncli why on narrow screens, with small constants, and without Unicode."""

from __future__ import annotations

import re

import pytest
from harness import once

#: Two numbers and nothing calculated: 1.2 = 1.200 explains nothing.
NOTHING = re.compile(r"= (-?[\d.]+) [=≈] -?[\d.]+$", re.MULTILINE)


@pytest.mark.parametrize(
    "words",
    (
        ("why", "b6-full-backward", "L", "--depth", "all"),
        ("why", "d1-two-heads", "output", "1", "1", "--depth", "all"),
        ("examples", "run", "b6-full-backward", "--expand"),
        ("check", "c6-embedding-gradient", "G_E=0.6 -0.2; 0.8 0.3; 0.1 0.4"),
        ("check", "b6-full-backward", "X=1 2 3 4; 5 6 7 8; 9 8 7 6"),
    ),
)
def test_a_number_taken_over_goes_by_its_name(words: tuple[str, ...]) -> None:
    text = once(*words, COLUMNS=200, ATTNCLI_LANG="en").out
    assert " = " in text and NOTHING.findall(text) == []


def test_where_a_looked_up_number_comes_from() -> None:
    words = ("b6-full-backward", "X", "1", "1", "--depth", "1")
    assert "X[1,1] = E[3,1] = 1.200" in once("why", *words, COLUMNS=80, ATTNCLI_LANG="en").out


def test_a_deep_tree_stops_where_no_room_is_left_and_says_where_to_go_on() -> None:
    words = ("why", "e8-encoder-block", "norm1.Y", "1", "2", "--depth", "all")
    narrow, wide = (once(*words, COLUMNS=width, ATTNCLI_LANG="en").out for width in (50, 300))
    assert "the screen is too narrow. Go on from self." in narrow.replace("\n", " ")
    assert all(len(line) - len(line.lstrip("│├└─ ")) <= 32 for line in narrow.splitlines())
    assert "too narrow" not in wide and "self.W_Q" not in wide


def test_a_small_constant_is_not_shown_as_0() -> None:
    text = once("why", "f3-adam", "E_new", "1", "1", "--depth", "1", COLUMNS=120).out
    assert "√0.543 + 1e-8" in text and "+ 0)" not in text


def test_one_power_of_e_has_no_brackets_around_it() -> None:
    text = once("why", "a4-reading-scores", "A", "1", "2", "--exact", COLUMNS=200).out
    assert "A[1,2] = e^(-3·√2/2) / (e^(-3·√2/2) + e^(-√2) + 1)" in text


def test_a_root_in_ascii_has_brackets() -> None:
    text = once("why", "f3-adam", "E_new", "1", "1", "--depth", "1", COLUMNS=120, encoding="ascii").out
    assert "sqrt(0.543) + 1e-8" in text


def test_which_of_two_right_values_is_shown_is_said() -> None:
    """The source of a1 carries rounded values on (2.680); why and forward do not (2.679)."""
    said = "The source carries rounded values on"
    for words in (("why", "a1-pronoun", "O", "1", "2", "--depth", "1"), ("forward", "a1-pronoun")):
        full, carried = (once(*words, *more, COLUMNS=200, ATTNCLI_LANG="en").out for more in ((), ("--carry",)))
        assert "2.679" in full and said in full
        assert "2.680" in carried and said not in carried


def test_a_rounded_equation_says_so_once() -> None:
    text = once("why", "a1-pronoun", "O", "1", "2", COLUMNS=200, ATTNCLI_LANG="en").out
    assert "0.330×0 + 0.670×4 ≈ 2.679" in text and text.count("≈: the numbers shown are rounded") == 1
    plain = once("why", "a1-pronoun", "S", "1", "2", COLUMNS=200, ATTNCLI_LANG="en").out
    assert "≈" not in plain
    ascii = once("why", "a1-pronoun", "O", "1", "2", COLUMNS=200, encoding="ascii").out
    assert "0.330*0 + 0.670*4 ~= 2.679" in ascii
