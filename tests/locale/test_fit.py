"""Lines of Latin and Chinese text: their width, and where they may end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attncli.cli.main import COMMANDS
from attncli.locale.fit import columns, definitions, padded, wrap


@pytest.mark.parametrize(
    ("text", "width"),
    [("", 0), ("abc", 3), ("苹果", 4), ("Q Kᵀ", 4), ("“它”，", 6), ("e\N{COMBINING ACUTE ACCENT}", 1)],
)
def test_columns(text: str, width: int) -> None:
    assert columns(text) == width


def test_padded() -> None:
    assert padded("苹果", 6) == "苹果  "
    assert padded("苹果", 3) == "苹果"


def test_latin_words_stay_whole() -> None:
    assert wrap("one two three", 8) == "one two\nthree"


def test_chinese_ends_anywhere_but_before_a_closing_sign() -> None:
    assert wrap("每行都减去最大值。", 8) == "每行都减\n去最大\n值。"
    assert wrap("先做（再做）", 6) == "先做\n（再\n做）"
    assert wrap("用 softmax，再乘", 10) == "用\nsoftmax，\n再乘"


def test_a_long_word_is_cut() -> None:
    assert wrap("abcdefgh", 4) == "abcd\nefgh"


def test_indents() -> None:
    assert wrap("一二三四", 6, "- ", "  ") == "- 一二\n  三四"
    # A word that does not fit behind the beginning, but below it, goes there.
    assert wrap("Subtracting", 14, "a long name  ", "  ") == "a long name\n  Subtracting"


def test_definitions_beside_and_below() -> None:
    rows = [("Q", "查询"), ("K_past", "缓存的键")]
    assert list(definitions(rows, 60, "  ")) == ["  Q       查询", "  K_past  缓存的键"]
    assert list(definitions(rows, 30, "  ")) == ["  Q", "      查询", "  K_past", "      缓存的键"]


@given(st.text("ab 苹果，。（）“”1", max_size=60), st.integers(4, 30))
def test_no_line_is_too_wide_and_nothing_is_lost(text: str, width: int) -> None:
    lines = wrap(text, width).split("\n")
    assert all(columns(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_a_space_that_does_not_break_keeps_words_together_and_is_printed_as_a_space() -> None:
    assert wrap("S\N{NO-BREAK SPACE}1×2 → z\N{NO-BREAK SPACE}1×1", 9) == "S 1×2 →\nz 1×1"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "Carry on with: attncli train --load 'my file.npz' --steps 497",
            ["Carry on with:", "attncli train --load 'my file.npz' --steps 497"],
        ),
        ("Like: attncli why A 1 2 (row 1, column 2).", ["Like: attncli why A 1 2", "(row 1, column 2)."]),
        ("看一道题：attncli examples show ID。看解答", ["看一道题：", "attncli examples show ID。", "看解答"]),
        ("It is (attncli examples list).", ["It is", "(attncli examples list)."]),
        ("Install it: pip install 'attncli[exact]'", ["Install it:", "pip install 'attncli[exact]'"]),
        ("Nothing: attncli practice forget deletes it", ["Nothing:", "attncli practice forget deletes it"]),
        ("Nothing is sent; attncli practice forget deletes it", ["Nothing is sent;", "attncli practice forget", "deletes it"]),
        ("≈: attncli goes on with more digits than shown", ["≈: attncli goes on with", "more digits than shown"]),
    ],
)  # fmt: skip
def test_a_command_stays_on_one_line(text: str, lines: list[str]) -> None:
    assert wrap(text, 24).split("\n") == lines


def test_every_command_stays_on_one_line() -> None:
    for name in COMMANDS:
        assert wrap(f"attncli {name}", 9) == f"attncli {name}"
