"""One step a screen, and a start from words."""

from __future__ import annotations

import json

import numpy as np
import pytest
from harness import refused, run


def without_prompts(text: str) -> str:
    """What is shown between the places where Enter is waited for."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("["))


@pytest.mark.parametrize("id", ["a2-first-by-hand", "b6-full-backward"])
def test_step_by_step_shows_the_same_as_all_at_once(id: str) -> None:
    whole, pieces = run("examples", "run", id), run("examples", "run", id, "--step-by-step", stdin=b"")
    assert (pieces.status, pieces.err) == (0, "")
    assert without_prompts(pieces.out) == whole.out
    assert pieces.out.count("Enter") >= 9


def test_enter_goes_on_and_q_stops() -> None:
    some = run("examples", "run", "a2", "--step-by-step", stdin=b"\n\nq\n").out
    assert "2. scaled" in some and "3. row_max" not in some
    assert some.rstrip().endswith("q")
    chinese = run("examples", "run", "a2", "--step-by-step", "--lang", "zh", stdin="退出\n".encode()).out
    assert "1. scores" not in chinese


def test_step_by_step_is_for_the_screen() -> None:
    for words in (("-o", "x.md"), ("--format", "json")):
        refused(("examples", "run", "a2", "--step-by-step", *words), "--step-by-step", "screen")
    refused(("examples", "run", "a2", "--step-by-step"), "closed", stdin=None)


@pytest.mark.parametrize(
    ("text", "tokens"), [("我爱你", 3), ("我 爱 你 爱", 4), ("the cat saw the dog", 5), ("word", 1)]
)
def test_a_start_from_words(text: str, tokens: int) -> None:
    ran = run("forward", "--text", text, "--format", "json")
    assert (ran.status, ran.err) == (0, "")
    steps = {step["id"]: np.array(step["value"]) for step in json.loads(ran.out)["steps"]}
    assert steps["A"].shape == (tokens, tokens)
    np.testing.assert_allclose(steps["A"].sum(-1), 1)


def test_the_weights_are_shown_and_can_be_changed() -> None:
    out = " ".join(run("forward", "--text", "我爱你").out.split())
    for words in ("0 我", "W_Q", "W_K", "W_V", "nobody trained them"):
        assert words in out
    assert "没有训练" in run("forward", "--text", "I love you", "--lang", "zh").out
    zeros = ("--set", "W_V=0 0; 0 0; 0 0; 0 0", "--step", "O")
    changed = json.loads(run("forward", "--text", "我爱你", *zeros, "--format", "json").out)
    assert not np.any(changed["steps"][-1]["value"])


def test_gradients_from_words() -> None:
    ran = run("backward", "--text", "我爱你", "--loss", "sum(O)", "--verify", "--step", "G_E")
    assert ran.status == 0 and "G_E" in ran.out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--text", ""), ("--text", "empty")),
        (("--text", "  "), ("--text", "empty")),
        (("--text", "一二三四五六七八九十百千万"), ("13 tokens", "limit is 12")),
        (("--text", "a\x1bb"), ("U+001B",)),
        (("a1", "--text", "我"), ("a1", "Keep one")),
        (("--text", "我", "-Q", "1 2"), ("-Q", "Keep one")),
        (("--text", "我", "--model", "attention"), ("--model",)),
        (("--text", "我爱", "--set", "E=1 2"), ("E",)),
    ],
)
def test_texts_that_do_not_work(words: tuple[str, ...], expected: tuple[str, ...]) -> None:
    refused(("forward", *words), *expected)
