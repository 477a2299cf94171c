"""Random words on the command line: an exit status of 0, 1 or 2, and never a traceback."""

from __future__ import annotations

import pytest
from harness import one_message, run
from hypothesis import example, given, settings
from hypothesis import strategies as st

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


def in_order(argv: list[str], status: int, out: str, err: str) -> None:
    """Assert that there is a result or one message, never both, and nothing that drives the terminal."""
    assert "Traceback" not in err and "Warning" not in err
    assert "\x1b" not in out
    if status == 2:
        assert out == "", argv
        if "--lang" not in argv and "zh" not in argv:
            one_message(err)
    else:
        assert err == "", argv
        assert out or "/dev/null" in argv, argv


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
    in_order(argv, status, out, err)


#: Options of the newer commands; a training has few steps, whatever else it is told.
REPORTS = {
    "compare": ("--preset", "--config", "--d-model", "--heads", "--kv-heads", "--d-head", "--d-c", "--d-c-q", "--d-rope", "--layers", "--context", "--window", "--bytes", "--bias", "--prefill", "--expand"),
    "train": ("--eta", "--optimizer", "--split", "--context", "--d-model", "--d-k", "--d-v", "--heads", "--kv-heads", "--layers", "--d-ff", "--positions", "--rotary", "--norm", "--normalisation", "--activation", "--tied", "--seed", "--load", "--save", "--decimals", "--full"),
    "generate": ("--length", "--temperature", "--top", "--seed", "--trace", "--verify", "--decimals"),
    "lab": ("--seed", "--d-k", "--samples", "--keys", "--logits", "--factors", "--hidden", "--text", "--heads", "--d-model", "--causal", "--matrix", "--ranks", "--size", "--width", "--rank"),
}  # fmt: skip
NUMBERS = st.sampled_from(
    ["1", "2", "3", "4", "0", "-1", "1.5", "nan", "inf", "-inf", "1e400", "1e308", "5e-324", "1_000", "９", "²", "", "1 2", "1 2; 3 4", "2 4 8", "x", "99999999999999999999"]
)  # fmt: skip
WORDS = st.sampled_from(
    ["abab", "我爱我", "a b a", "a\x1b[31mb", "a\u200db", "\udcff", "@", "@nowhere", "@/dev/null", "mha", "mla", "gqa", "gpt2", "deepseek-v2", "config.json", "scaling", "softmax", "overflow", "heads", "rank", "adam", "sgd", "words", "characters", "learned", "none", "post", "rms", "relu", "swiglu", "fp8", "full", "causal", "json", "csv", "markdown", "svg", "nowhere/x.npz", "mine", "/", "/dev/null", "/dev/full", "d1-two-heads"]
)  # fmt: skip


@settings(max_examples=250, deadline=None, derandomize=True, database=None)
@given(st.data())
def test_any_words_for_a_report(data: st.DataObject) -> None:
    command = data.draw(st.sampled_from(sorted(REPORTS)))
    option = st.sampled_from([*REPORTS[command], "--format", "-o", "--lang", "--help"])
    first = {
        "compare": st.just(()),
        "train": st.sampled_from(
            [("abcab", "--steps", "2"), ("a b a b", "--split=words", "--step", "1"), ("--steps=1",)]
        ),
        "generate": st.sampled_from([("nowhere.npz", "a"), ()]),
        "lab": st.sampled_from(
            [("scaling", "--samples=20"), ("softmax",), ("overflow",), ("heads",), ("rank", "--size=8"), ()]
        ),
    }[command]
    argv = [command, *data.draw(first)]
    for word in data.draw(st.lists(option | NUMBERS | WORDS | st.tuples(option, NUMBERS | WORDS), max_size=4)):
        argv += [word] if isinstance(word, str) else word
    files = [argv[i + 1 : i + 2] for i, word in enumerate(argv) if word in ("-o", "--output", "--save")]
    if any(name[:1] not in ([], ["/"], ["/dev/null"], ["/dev/full"], ["nowhere/x.npz"], [""]) for name in files):
        return  # it would write where the tests run
    status, out, err = run(*argv, stdin=b"1 2")
    assert status in (0, 2), argv
    in_order(argv, status, out, err)


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(st.lists(st.text(max_size=10), max_size=4))
def test_any_text(argv: list[str]) -> None:
    status, _, err = run(*argv)
    assert status in (0, 2)
    assert "Traceback" not in err


@pytest.mark.parametrize("columns", ["1", "0", "-5", "x", "1" * 5000, ""])
def test_any_width(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from attncli.cli.output import width

    monkeypatch.setenv("COLUMNS", columns)
    assert 20 <= width() <= 1000
