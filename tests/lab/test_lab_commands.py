"""attncli lab as it is typed: other formats, other encodings, bad input."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from pathlib import Path

import pytest
from harness import Ran, elsewhere, on_terminal, once, refused
from rich.cells import cell_len
from saved import SAVED
from typed import EVERYWHERE

from attncli import lab

NAMES = lab.names()
#: Their snapshots, at several widths and in both languages, are with those of the other commands.
SHOWN = {name: words for name, words in EVERYWHERE.items() if words[:1] == ("lab",) and SAVED not in words}


@pytest.mark.parametrize("name", SHOWN)
def test_english_has_no_chinese(name: str) -> None:
    assert not re.search(r"[一-鿿]", once(*SHOWN[name], COLUMNS=80).out)


@pytest.mark.parametrize("name", SHOWN)
def test_ascii_and_gbk_terminals_can_show_it(name: str) -> None:
    for encoding, language in (("ascii", "en"), ("gbk", "zh"), ("gbk", "en")):
        done = once(*SHOWN[name], COLUMNS=50, ATTNCLI_LANG=language, encoding=encoding)
        assert done.status == 0
        text = done.out
        assert "\\u" not in text
        # Block and box signs are two columns wide in a GBK terminal.
        assert not re.search(r"[█▌░▒▓│┤└─]", text)
        for line in text.splitlines():
            assert cell_len(line) <= 50, line


@pytest.mark.parametrize("name", NAMES)
def test_a_terminal_and_a_pipe_see_the_same(name: str) -> None:
    assert on_terminal("lab", name, columns=80).out == once("lab", name, COLUMNS=80).out


SEEDED = [("lab", name, "--seed", "5", "--format", format) for name in NAMES for format in ("table", "json", "csv", "markdown")]  # fmt: skip


@pytest.fixture(scope="module")
def of_another_process() -> dict[tuple[str, ...], Ran]:
    return dict(zip(SEEDED, elsewhere(*SEEDED), strict=True))


@pytest.mark.parametrize("words", SEEDED, ids=lambda words: f"{words[1]}-{words[-1]}")
def test_the_same_seed_gives_the_same_bytes(
    words: tuple[str, ...], of_another_process: dict[tuple[str, ...], Ran], tmp_path: Path
) -> None:
    first = once(*words)
    assert first.status == 0
    assert first == of_another_process[words]
    target = tmp_path / "found.txt"
    assert once(*words, "-o", str(target)).stdout == b""
    assert target.read_bytes() == first.stdout


@pytest.mark.parametrize("name", NAMES)
def test_json_is_one_line_with_the_numbers_in_full(name: str) -> None:
    text = once("lab", name, "--format", "json", COLUMNS=40).out
    assert text.count("\n") == 1
    found = json.loads(text)
    assert (found["schema"], found["experiment"], found["seed"]) == (1, name, 0)
    assert found["said"]
    for table in found["tables"]:
        assert len(set(table["columns"])) == len(table["columns"])
        assert all(len(row) == len(table["columns"]) for row in table["rows"])


@pytest.mark.parametrize("name", NAMES)
def test_csv_says_what_json_says(name: str) -> None:
    tables = json.loads(once("lab", name, "--format", "json").out)["tables"]
    listed = list(csv.DictReader(io.StringIO(once("lab", name, "--format", "csv").out)))
    for table in tables:
        mine = [row for row in listed if row["table"] == table["id"]]
        cells = [cell for row in table["rows"] for cell in row]
        assert [row["column"] for row in mine] == table["columns"] * len(table["rows"])
        for row, cell in zip(mine, cells, strict=True):
            assert row["value"] == str(cell)


def test_a_file_is_written_as_its_name_ends(tmp_path: Path) -> None:
    for ending, beginning in ((".json", "{"), (".csv", "table,"), (".md", "# "), (".txt", "Softmax")):
        target = tmp_path / f"found{ending}"
        assert once("lab", "softmax", "-o", str(target)).status == 0
        assert target.read_text("utf-8").startswith(beginning)


def test_the_numbers_in_the_text_are_those_of_the_table() -> None:
    found = json.loads(once("lab", "scaling", "--seed", "7", "--d-k", "4 25", "--format", "json").out)
    last = dict(zip(found["tables"][0]["columns"], found["tables"][0]["rows"][-1], strict=True))
    assert f"At d_k = 25 theory says 25, and {last['variance']:.4g} was measured" in found["said"][1]
    assert f"typically {math.sqrt(last['variance']):.3f} away from 0" in found["said"][1]
    assert "(seed 7)" in found["said"][0]


def test_settings_that_another_one_replaces_are_not_claimed() -> None:
    found = json.loads(once("lab", "rank", "--matrix", "1 2; 3 4", "--format", "json").out)["settings"]
    assert (found["size"], found["d_k"], found["matrix"]) == (None, None, [[1, 2], [3, 4]])
    assert json.loads(once("lab", "heads", "d1-two-heads", "--format", "json").out)["settings"]["text"] is None


def test_completion_knows_experiments_and_examples() -> None:
    for words, offered in (("attncli lab s", {"scaling", "softmax"}), ("attncli lab heads d1", {"d1-two-heads"})):
        done = once(_ATTNCLI_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=len(words.split()) - 1)
        assert set(done.out.split()) == offered


def test_a_seed_changes_what_is_seen() -> None:
    assert once("lab", "scaling", "--seed", "1").stdout != once("lab", "scaling", "--seed", "2").stdout
    assert once("lab", "scaling", "--seed", "0").stdout == once("lab", "scaling").stdout


def test_the_group_lists_its_experiments() -> None:
    done = once("lab", "--help", COLUMNS=80)
    assert re.findall(r"^  ([a-z]+)  ", done.out, re.MULTILINE) == NAMES
    assert once("lab").out == done.out
    assert "  --d-k LIST" in once("lab", "scaling", "--help").out


def test_a_matrix_and_a_problem_may_come_from_standard_input() -> None:
    assert "3×2" in once("lab", "rank", "--matrix", "-", stdin=b"1 2\n3 4\n5 6\n").out
    problem = b'model = "multi_head"\n[inputs]\nX = "1 0; 0 1"\nW_Q = "1 0; 0 1"\nW_K = "1 0; 0 1"\nW_V = "1 0; 0 1"\nW_O = "1 0; 0 1"\n[settings]\nheads = 2\n[labels]\ntoken = ["I", "see"]\n'
    assert "2 see" in once("lab", "heads", "-", stdin=problem).out


def test_a_trained_model_shows_its_heads(tmp_path: Path) -> None:
    """The map is the one that attncli train itself shows, token by token."""
    saved, other = tmp_path / "model.npz", tmp_path / "no.npz"
    other.write_bytes(b"no archive")
    trained = once("train", "abcab", "--heads", "2", "--steps", "20", "--save", str(saved), "--format", "json")
    assert trained.status == 0
    mine = json.loads(once("lab", "heads", str(saved), "--format", "json").out)
    theirs = json.loads(trained.out)
    assert len(mine["maps"]) == 3
    for one, expected in zip(mine["maps"][:2], theirs["maps"], strict=True):
        for row, shown in zip(one["values"], expected["values"], strict=True):
            assert row == pytest.approx(shown, rel=1e-12)
    assert [row[0] for row in mine["tables"][0]["rows"]] == ["a", "b", "c", "a"]
    refused(once("lab", "heads", str(other)), "no.npz")


WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "no such experiment": (("scalings",), "“scalings” does not exist. Did you mean scaling?"),
    "a seed that is none": (("softmax", "--seed", "x"), "--seed: “x” is not allowed here. Write a whole number from 0 to"),
    "a seed below 0": (("softmax", "--seed=-1"), "from 0 to 4294967295"),
    "a seed above the last": (("softmax", "--seed", "4294967296"), "from 0 to 4294967295"),
    "a rank above the width": (("rank", "--rank", "5", "--width", "3"), "--rank: 5 is too much. At a width of 3 the rank is at most 3"),
    "a format that is none": (("softmax", "--format", "html"), "Choose from: table, json, markdown, csv."),
    "a fraction of a width": (("scaling", "--d-k", "1 2.5"), "--d-k: “2.5” is not allowed here. Write whole numbers from 1 to 8192."),
    "a width of 0": (("scaling", "--d-k", "0"), "--d-k: “0” is not allowed here"),
    "widths that are words": (("scaling", "--d-k", "wide"), "--d-k: row 1, column 1: “wide” is not a number"),
    "too many widths": (("scaling", "--d-k", " ".join(map(str, range(1, 40)))), "39 numbers are too many. Write at most 16."),
    "too much": (("scaling", "--d-k", "8192", "--samples", "20000"), "163,840,000 random numbers; the limit is 8,000,000"),
    "too few keys": (("scaling", "--keys", "1"), "--keys: “1” is not allowed here. Write a whole number from 2 to 64."),
    "one logit": (("softmax", "--logits", "5"), "softmax needs at least two numbers"),
    "an infinite logit": (("softmax", "--logits", "1 inf"), "--logits: “inf” is not allowed here"),
    "logits twice": (("softmax", "--logits", "1 2", "--keys", "3"), "--logits already settles what --keys would set"),
    "a negative factor": (("softmax", "--factors", "-1 2"), "--factors: “-1” is not allowed here. Write numbers from 0.0001 to 10000."),
    "no float16": (("overflow", "--logits", "1e5 2"), "--logits: 100000 is too large for float16, which ends at 65504."),
    "two hidden scores": (("overflow", "--hidden", "5 6"), "--hidden: one number is expected, but 2 were given."),
    "one token": (("heads", "--text", "a"), "--text: tokens found: 1, needed: 2 to 16."),
    "a terminal escape": (("heads", "--text", "a \x1b[31mb"), "--text: Character 3 of the text is U+001B"),
    "heads that do not divide": (("heads", "--heads", "3"), "--heads 3 does not divide --d-model 16: every head gets the same number of columns. Write --d-model 18."),
    "a problem without heads": (("heads", "a1-pronoun"), "has no weights with heads here"),
    "a problem that is none": (("heads", "d1-two-head"), "Did you mean “d1-two-heads”?"),
    "a problem and a text": (("heads", "d1-two-heads", "--text", "a b"), "PROBLEM already settles what --text would set"),
    "a problem and a flag": (("heads", "d1-two-heads", "--causal"), "PROBLEM already settles what --causal would set"),
    "a matrix of zeros": (("rank", "--matrix", "0 0; 0 0"), "all of its numbers are 0"),
    "a matrix with infinity": (("rank", "--matrix", "1 -inf"), "one matrix of finite numbers"),
    "numbers whose singular values are none": (("rank", "--matrix", "1e301 1"), "--matrix: 1e+301 is too large here. Write numbers up to 1e+300."),
    "a matrix with heads": (("rank", "--matrix", "1 2 | 3 4"), "one matrix of finite numbers"),
    "a rank that is too much": (("rank", "--matrix", "1 2; 3 4", "--ranks", "3"), "so its rank is at most 2"),
    "d_k beyond the size": (("rank", "--size", "4"), "--d-k 8 is larger than --size 4"),
    "an option of another experiment": (("rank", "--samples", "3"), "the option --samples does not exist"),
    "a folder": (("rank", "-o", "/"), "this is a folder"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_bad_input_is_one_message_in_both_languages(name: str) -> None:
    words, message = WRONG[name]
    refused(once("lab", *words), message)
    assert re.search(r"[一-鿿]", refused(once("lab", *words, ATTNCLI_LANG="zh")))
