"""Random words on the command line: an exit status of 0, 1 or 2, and never a traceback."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from running import one_message, run

VALUES = st.sampled_from(
    [
        "1 2", "1 0; 0 1", "2 0; 0 4", "1 2; 3", "1,,2", "x", "", "-", "-1", "-1.5 2", "0 -inf", "0 1", "@nowhere.txt", "@/dev/null", "[[1,2],[3,4]]",
        "9^9^9^9", "nan", "1/3", "√2", "sum(O)", "O[1,1]", "mse(O, Y)", "A", "O", "G_Q", "scores", "json", "csv", "latex", "markdown", "html", "svg",
        "table", "zh", "en", "fr", "rows", "columns", "3", "0", "99", "sqrt", "none", "even", "attention", "softmax", "self_attention", "embedding",
        "a1-pronoun", "b6-full-backward", "a11-causal-self-attention", "a99", "X=1 2", "Y=1 2", "E=1 2; 3 4", "T=0 1", "keep=1 0", "hide=true false",
        "softcap=2", "window=1 0", "eta=0.1", "causal=true", "text=我", "vocabulary=我爱", "=", "Q=", "\x1b[31m", "[bold]", "--", "²", "1" * 5000,
    ]
)  # fmt: skip
OPTIONS = st.sampled_from(
    [
        "-Q", "-K", "-V", "--set", "--model", "--causal", "--mask", "--scale", "--upstream", "--loss", "--verify", "--step", "--expand", "--decimals",
        "--carry", "--rounding", "--exact", "--format", "--layout", "--full", "--lang", "--depth", "--hint", "--help", "--version", "--causl", "-x", "--set=X=1",
    ]
)  # fmt: skip
COMMANDS = st.sampled_from(
    ["forward", "backward", "why", "examples", "models", "examples show", "examples run", "forwrd"]
)
COMPLETE = ["-Q", "1 2", "-K", "1 0; 0 1", "-V", "2 0; 0 4"]


@settings(max_examples=250, deadline=None, derandomize=True, database=None)
@given(COMMANDS, st.booleans(), st.lists(st.one_of(OPTIONS, VALUES, st.tuples(OPTIONS, VALUES)), max_size=5))
@example("why", True, ["A", "1", "²"])
@example("examples", False, [])
def test_any_words(command: str, complete: bool, words: list[str | tuple[str, str]]) -> None:
    argv = command.split()
    if complete and argv[0] in ("forward", "backward", "why"):
        argv += COMPLETE
    for word in words:
        argv += [word] if isinstance(word, str) else word
    status, out, err = run(*argv, stdin=b"1 2")
    assert status in (0, 1, 2), argv
    assert "Traceback" not in err
    if status == 2:
        assert out == "", argv
        if "--lang" not in argv and "zh" not in argv:
            one_message(err)
    else:
        assert err == "", argv
        assert out, argv


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(st.lists(st.text(max_size=10), max_size=4))
def test_any_text(argv: list[str]) -> None:
    status, _, err = run(*argv)
    assert status in (0, 2)
    assert "Traceback" not in err


@pytest.mark.parametrize("columns", ["1", "0", "-5", "x", "1" * 5000, ""])
def test_any_width(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from attncli.cli._terminal import width

    monkeypatch.setenv("COLUMNS", columns)
    assert 20 <= width() <= 1000
