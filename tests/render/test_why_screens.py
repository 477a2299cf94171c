"""attncli why on narrow screens, with small constants, and without Unicode."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "commands"))
from whole_command import run


def test_a_deep_tree_stops_where_no_room_is_left_and_says_where_to_go_on() -> None:
    words = ("why", "e8-encoder-block", "norm1.Y", "1", "2", "--depth", "all")
    narrow, wide = (run(*words, COLUMNS=width, ATTNCLI_LANG="en").text for width in (50, 300))
    assert "the screen is too narrow. Go on from self." in narrow.replace("\n", " ")
    assert all(len(line) - len(line.lstrip("│├└─ ")) <= 32 for line in narrow.splitlines())
    assert "too narrow" not in wide and "self.W_Q" not in wide


def test_a_small_constant_is_not_shown_as_0() -> None:
    text = run("why", "f3-adam", "E_new", "1", "1", "--depth", "1", COLUMNS=120).text
    assert "√0.543 + 1e-8" in text and "+ 0)" not in text


def test_a_root_in_ascii_has_brackets() -> None:
    text = run(
        "why", "f3-adam", "E_new", "1", "1", "--depth", "1", COLUMNS=120, PYTHONIOENCODING="ascii", PYTHONUTF8=None
    ).text
    assert "sqrt(0.543) + 1e-8" in text
