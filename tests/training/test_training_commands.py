"""attncli train and attncli generate as they are typed: files, one step, bad input; their screens are with those of the other commands."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import elsewhere, on_terminal, once, refused
from typed import EVERYWHERE

TEXT = "我喜欢数学"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A training of 500 steps in a file."""
    file = tmp_path_factory.mktemp("saved") / "cat.npz"
    done = once("train", TEXT, "--save", str(file))
    assert (done.status, done.err) == (0, "")
    return str(file)


@pytest.mark.parametrize(("encoding", "language"), [("ascii", "en"), ("gbk", "zh"), ("gbk", "en")])
def test_ascii_and_gbk_terminals_can_show_it(encoding: str, language: str) -> None:
    done = once(*EVERYWHERE["train-words"], COLUMNS=50, ATTNCLI_LANG=language, encoding=encoding)
    assert (done.status, done.err) == (0, "")
    assert not re.search(r"[█▌░▒▓│┤└─]", done.out)


@pytest.mark.parametrize("words", [("train", TEXT, "--steps", "30"), ("train", TEXT, "--step", "2")])
def test_the_same_seed_gives_the_same_bytes(words: tuple[str, ...], tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.npz", "b.npz")]
    saving = [(*words, "--format", "json", "--save", str(file)) for file in files]
    first, (second,) = once(*saving[0]), elsewhere(saving[1])
    assert first.status == 0
    assert first.stdout == second.stdout
    assert files[0].read_bytes() == files[1].read_bytes()
    assert once(*words, "--format", "json", "--seed", "1").stdout != first.stdout


def test_training_in_two_parts_equals_training_at_once(tmp_path: Path) -> None:
    whole, half, both = (str(tmp_path / name) for name in ("whole.npz", "half.npz", "both.npz"))
    one = once("train", TEXT, "--steps", "30", "--save", whole, "--format", "json")
    once("train", TEXT, "--steps", "12", "--save", half)
    other = once("train", "--load", half, "--steps", "18", "--save", both, "--format", "json")
    assert one.stdout == other.stdout
    assert Path(whole).read_bytes() == Path(both).read_bytes()


def test_a_step_in_full_is_what_the_training_then_has(tmp_path: Path) -> None:
    """The numbers of --step 4 in JSON are those of a training of 4 steps, its loss the fourth."""
    file = tmp_path / "four.npz"
    report = json.loads(once("train", TEXT, "--steps", "4", "--save", str(file), "--format", "json").out)
    trace = json.loads(once("train", TEXT, "--step", "4", "--format", "json").out)
    values = {step["id"]: step["value"] for step in trace["steps"]}
    assert np.ravel(values["L"])[0] == pytest.approx(report["settings"]["losses"][3], rel=1e-12)
    with np.load(file, allow_pickle=False) as arrays:
        for name in ("E", "W_Q", "W_K", "W_V", "W_out"):
            np.testing.assert_allclose(values[f"{name}_new"], arrays[name], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("format", ["table", "json", "markdown", "html", "latex", "csv", "svg"])
def test_a_step_comes_in_every_format(format: str) -> None:
    done = once("train", "abcab", "--step", "2", "--format", format)
    assert (done.status, done.err) == (0, "")
    assert "2" in done.out


def test_a_saved_training_is_shown_without_a_step(saved: str) -> None:
    assert once("train", "--load", saved, "--steps", "0").stdout == once("train", TEXT).stdout


def test_json_is_one_line_and_csv_says_the_same() -> None:
    done = once("train", TEXT, "--format", "json", COLUMNS=40)
    assert done.out.count("\n") == 1
    found = json.loads(done.out)
    assert found["settings"]["loss"] < 0.1
    assert len(found["settings"]["losses"]) == 500
    rows = list(csv.DictReader(io.StringIO(once("train", TEXT, "--format", "csv").out)))
    for table in found["tables"]:
        mine = [row["value"] for row in rows if row["table"] == table["id"]]
        assert mine == [str(cell) for row in table["rows"] for cell in row]


def test_the_last_row_of_the_table_stands_before_the_update_that_the_sentence_counts() -> None:
    text = once("train", TEXT, "--steps", "9", ATTNCLI_LANG="en", COLUMNS=200).out
    sentence = re.search(r"from (\S+) before step 1 to (\S+) after step 9;", text)
    rows = re.findall(r"^ *(\d+) +([\d.]+)$", text, re.MULTILINE)
    assert sentence is not None and "The loss before some of the steps" in text
    assert rows[0] == ("1", sentence[1]) and rows[-1][0] == "9" and rows[-1][1] != sentence[2]


def test_the_live_curve_is_only_on_a_terminal() -> None:
    words = ("train", TEXT, "--steps", "1500")
    assert once(*words).err == ""
    live = on_terminal(*words).out
    assert live.endswith(once(*words, COLUMNS=80).out)
    running = live[: -len(once(*words, COLUMNS=80).out)]
    assert "1500" in running
    # A loss that has become small is still a number, not 0.
    losses = re.findall(r"\d+: loss (\S+)", running)
    assert losses and all(float(loss) > 0 for loss in losses) and float(losses[-1]) < 1e-4
    plain = on_terminal(*words, NO_COLOR="1").out
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", plain)


def test_generating_writes_the_text_on(saved: str) -> None:
    found = json.loads(once("generate", saved, "我", "--format", "json").out)
    assert found["settings"]["continuation"] == "喜欢数学"
    done = once("generate", saved, "我喜", "--length", "9", "--verify")
    assert done.status == 0
    assert "trained on 4 tokens at a time" in done.out.replace("\n", " ")
    hot = ("generate", saved, "我", "--temperature", "30", "--length", "12", "--format", "json")
    assert [once(*hot, "--seed", "1")] == elsewhere((*hot, "--seed", "1"))
    assert once(*hot, "--seed", "1").stdout != once(*hot, "--seed", "2").stdout
    assert json.loads(once(*hot, "--top", "1").out)["settings"]["continuation"][:4] == "喜欢数学"
    trace = once("generate", saved, "我", "--trace", "--length", "2").out
    assert "1 tokens are in the cache" in trace
    assert "K_past" in trace


WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "no text": (("train",), "There is no text to learn"),
    "an empty text": (("train", " "), "The text is empty"),
    "one token": (("train", "a"), "a single token"),
    "a text that is too long": (("train", "ab" * 60_000), "120000 characters; the limit is 100000. Give the beginning"),
    "a missing file": (("train", "@nothing"), "there is no such file"),
    "a terminal escape": (("train", "a\x1b[31mb"), "Character 2 of the text is U+001B, which cannot be shown"),
    "signs without width": (("train", "ab\u200dc"), "Character 3 of the text is U+200D"),
    "text from right to left by force": (("train", "a\u202eb"), "Character 2 of the text is U+202E"),
    "bytes that are no text": (("train", "a\udcffb"), "Character 2 of the text is the byte 0xff, which is not UTF-8"),
    "a context that takes too much memory": (("train", "ab" * 4000, "--context", "4096"), "numbers at once; the limit is 50,000,000"),
    "a training under another ending": (("train", "ab", "--save", "mine.md"), "Write --save mine.md.npz"),
    "a training without an ending": (("train", "ab", "--save", "mine"), "Write --save mine.npz"),
    "two things in one file": (("train", "ab", "--save", "x.npz", "-o", "./x.npz", "--format", "json"), "--save and -o are the same file"),
    "a report as html": (("train", "ab", "-o", "x.html"), "this ending means html, which does not exist here"),
    "a report in a folder that is not there": (("train", "ab", "-o", "nowhere/x.md"), "-o nowhere/x.md: you cannot write to the folder"),
    "a saved training without a name": (("train", "ab", "--save", ""), "--save “”: the name is empty. Give a file name, like training.npz"),
    "a number with a stroke": (("train", "ab", "--steps", "1_000"), "--steps: “1_000” is not allowed here"),
    "a number beyond float64": (("train", "ab", "--eta", "1e400"), "--eta: “1e400” is too large"),
    "more steps than a training makes": (("train", "ab", "--steps", "9" * 30), "Write a whole number from 0 to 1000000"),
    "eta 0": (("train", "ab", "--eta", "0"), "with a learning rate of 0 nothing is learned"),
    "eta below 0": (("train", "ab", "--eta=-1"), "--eta: -1 is out of range"),
    "eta without end": (("train", "ab", "--eta", "inf"), "--eta: inf is out of range"),
    "eta that is none": (("train", "ab", "--eta", "fast"), "--eta: "),
    "steps beyond all bounds": (("train", "abcab", "--eta", "1e6", "--optimizer", "sgd"), "the loss is no longer a number: the steps were too large"),
    "sizes beyond the limit": (("train", "ab", "--layers", "48", "--d-model", "1024", "--d-ff", "4096"), "the limit is 2,000,000"),
    "too many blocks": (("train", "ab", "--layers", "49"), "--layers: “49” is not allowed here"),
    "heads that do not divide": (("train", "ab", "--heads", "3", "--kv-heads", "2"), "3 query heads cannot share 2 heads"),
    "a feed-forward without a block": (("train", "ab", "--d-ff", "3"), "--d-ff belongs to a block"),
    "rotary of an odd width": (("train", "ab", "--rotary", "--d-k", "3"), "Write an even --d-k, like 4"),
    "a choice that is none": (("train", "ab", "--positions", "some"), "--positions: “some” does not exist"),
    "an option of one step": (("train", "ab", "--expand"), "--expand belongs to a single step"),
    "step and steps": (("train", "ab", "--step", "1", "--steps", "3"), "Leave one of them out"),
    "step 0": (("train", "ab", "--step", "0"), "--step: “0” is not allowed here"),
    "a format that is none": (("train", "ab", "--format", "html"), "Choose from: table, json, markdown, csv"),
    "a folder that is not there": (("train", "ab", "--save", "nowhere/x.npz"), "you cannot write to the folder"),
    "a folder as file": (("train", "ab", "--save", "/"), "this is a folder. Give a file name in it, like /training.npz"),
    "temperature below 0": (("generate", "SAVED", "我", "--temperature", "-1"), "--temperature: -1 is out of range"),
    "no temperature": (("generate", "SAVED", "我", "--temperature", "nan"), "--temperature: "),
    "top 0": (("generate", "SAVED", "我", "--top", "0"), "--top: “0” is not allowed here"),
    "an unknown token": (("generate", "SAVED", "我爱"), "PROMPT: “爱” is not one of the tokens that this training knows: 我 喜 欢 数 学"),
    "more tokens than are traced": (("generate", "SAVED", "我", "--trace", "--length", "51"), "--length (--trace): “51” is not allowed here. Write a whole number from 1 to 50"),
    "more tokens than are verified": (("generate", "SAVED", "我", "--verify", "--length", "201"), "from 1 to 200"),
    "more tokens than are written": (("generate", "SAVED", "我", "--length", "2001"), "from 1 to 2000"),
    "a prompt that takes too much memory": (("generate", "SAVED", "我喜" * 1000), "A prompt of 2000 tokens needs about"),
    "a trace in a file": (("generate", "SAVED", "我", "--trace", "-o", "x.txt"), "--trace goes to the screen"),
    "no name of a training": (("generate", "", "我"), "“”: the name is empty"),
    "an empty prompt": (("generate", "SAVED", ""), "PROMPT is empty"),
    "decimals without a trace": (("generate", "SAVED", "我", "--decimals", "2"), "belong to --trace"),
    "a trace as json": (("generate", "SAVED", "我", "--trace", "--format", "json"), "--trace shows tables only"),
    "sizes of a saved training": (("train", "--load", "SAVED", "--d-model", "8"), "The saved training fixes --d-model"),
    "the seed of a saved training": (("train", "--load", "SAVED", "--seed", "1"), "The saved training fixes --seed"),
    "another optimiser": (("train", "--load", "SAVED", "--optimizer", "sgd"), "The saved training fixes --optimizer"),
    "a step that was made": (("train", "--load", "SAVED", "--step", "3"), "has made 500 steps already"),
    "another text": (("train", "--load", "SAVED", "猫狗"), "“猫” is not one of the tokens that this training knows"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_bad_input_is_one_message(name: str, saved: str) -> None:
    words, message = WRONG[name]
    typed = tuple(saved if word == "SAVED" else word for word in words)
    refused(once(*typed), message)
    assert re.search(r"[一-鿿]", refused(once(*typed, ATTNCLI_LANG="zh")).replace(TEXT, ""))


def test_a_binary_file_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "bytes"
    file.write_bytes(bytes(range(256)))
    refused(once("train", f"@{file}"), "is not UTF-8 text")


def altered(saved: str, file: Path, **changes: Any) -> str:
    """The saved training with other arrays, in a file; None leaves one out. Where it stands."""
    with np.load(saved, allow_pickle=False) as arrays:
        kept = {**dict(arrays), **changes}
    np.savez(file, **{name: values for name, values in kept.items() if values is not None})
    return str(file)


def text_of(json_text: bytes) -> np.ndarray:
    """A text as a file holds it."""
    return np.frombuffer(json_text, dtype=np.uint8)


def meta(saved: str, **changes: Any) -> np.ndarray:
    with np.load(saved, allow_pickle=False) as arrays:
        data = json.loads(arrays["meta"].tobytes())
    for name, value in changes.items():
        (data if name in data else data["spec"])[name] = value
    return text_of(json.dumps(data).encode())


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "another shape": ({"W_Q": np.ones((3, 3))}, "the array “W_Q” is 3×3, but meta says that it is 4×2"),
    "a missing array": ({"W_Q": None}, "the array “W_Q” is missing"),
    "half a memory": ({"E_v_past": None}, "the array “E_v_past” is missing"),
    "squares below 0": ({"E_v_past": -np.ones((5, 4))}, "E_v_past"),
    "an array too many": ({"other": np.ones(2)}, "“other” that belongs to no training"),
    "NaN": ({"E": np.full((5, 4), np.nan)}, "E: holds NaN"),
    "complex numbers": ({"E": np.ones((5, 4)) + 1j}, "not real numbers"),
    "objects": ({"E": np.array([[1, "a"]], dtype=object)}, "Python objects, which are never loaded"),
    "losses that are words": ({"losses": np.array(["a"] * 500)}, "not real numbers"),
    "no losses": ({"losses": np.ones(3)}, "says 500 steps, but holds 3 losses"),
    "losses in a column": ({"losses": np.ones((500, 1))}, "but holds 500×1 losses"),
    "losses without end": ({"losses": np.full(500, np.inf)}, "a number that no loss can be"),
    "losses below 0": ({"losses": np.full(500, -1.0)}, "a number that no loss can be"),
    "infinity": ({"E": np.full((5, 4), np.inf)}, "“E” holds a number that is not finite"),
    "numbers that grow beyond all bounds": ({"E": np.full((5, 4), 1e308)}, "its logits overflow"),
    "meta of another type": ({"meta": np.array([-1.5, 1e300])}, "meta: holds 2 numbers of type float64"),
    "meta that is deep": ({"meta": text_of(b"[" * 100_000)}, "nested too deep"),
    "meta that is a list": ({"meta": text_of(b"[]")}, "expected a table of keys"),
    "meta with a key twice": (
        {"meta": text_of(b'{"step": 1, "step": 2}')},
        "“step” occurs twice",
    ),
    "meta with a number of 5000 digits": (
        {"meta": text_of(b'{"step": ' + b"9" * 5000 + b"}")},
        "a whole number there has 5000 digits",
    ),
    "meta with NaN": ({"meta": text_of(b'{"step": NaN}')}, "NaN is not a number in JSON"),
    "meta with an unknown key": (
        {"meta": text_of(b'{"steps": 1}')},
        "The key “steps” does not exist. Did you mean “step”?",
    ),
    "no meta": ({"meta": None}, "is not a saved training: meta is missing"),
    "meta that is no JSON": ({"meta": text_of(b"{")}, "meta: is not valid JSON at line 1"),
}
LIES: dict[str, tuple[dict[str, Any], str]] = {
    "another width": ({"d_model": 8}, "says that it is 5×8"),
    "another count of steps": ({"step": 7}, "says 7 steps, but holds 500 losses"),
    "sizes beyond the limit": ({"layers": 48, "d_model": 1024, "d_ff": 4096}, "the limit is 2,000,000"),
    "sizes beyond all bounds": ({"layers": 10**9}, "meta: spec.layers: 1000000000 is out of range: it must be ≤ 48"),
    "another text": ({"text": "abc"}, "“a” is not one of the tokens that this training knows"),
    "one token": ({"text": "我"}, "a single token"),
    "a token twice": ({"tokens": ["我", "我", "欢", "数", "学"]}, "occurs twice"),
    "a terminal escape": (
        {"tokens": ["我", "\x1b[31m", "欢", "数", "学"], "text": "我欢"},
        "meta.spec.tokens.1: Character 1 of the text is U+001B",
    ),
    "another optimiser": ({"optimizer": "sgd"}, "belongs to no training of this kind"),
    "a learning rate in quotes": ({"eta": "0.05"}, "meta: spec.eta: found “0.05”, expected a number"),
    "a token of two characters": (
        {"tokens": ["我", "喜欢", "欢", "数", "学"]},
        "“喜欢” cannot be a token where split is characters",
    ),
    "a setting of another kind": (
        {"tied": "perhaps"},
        "meta: spec.tied: found “perhaps”, expected true or false",
    ),
}


@pytest.mark.parametrize("name", [*BROKEN, *LIES])
def test_a_file_that_is_broken_or_lies_is_refused(name: str, saved: str, tmp_path: Path) -> None:
    changes, message = BROKEN[name] if name in BROKEN else LIES[name]
    arrays = changes if name in BROKEN else {"meta": meta(saved, **changes)}
    refused(once("generate", altered(saved, tmp_path / "broken.npz", **arrays), "我"), message)


def test_files_that_are_no_training_are_refused(saved: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "plain.npz", x=np.ones(3))
    refused(once("generate", str(tmp_path / "plain.npz"), "我"), "is not a saved training")
    (tmp_path / "short.npz").write_bytes(Path(saved).read_bytes()[:3000])
    refused(once("generate", str(tmp_path / "short.npz"), "我"), "is not a readable .npz file")
    (tmp_path / "pickle.npz").write_bytes(b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01a\x94K\x01s.")
    refused(once("train", "--load", str(tmp_path / "pickle.npz")), "is not a readable .npz file")
