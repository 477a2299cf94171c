"""No digit is lost: whatever the width, the encoding or the format, every number of the run is there."""

from __future__ import annotations

import json
import math
import random
import re
from itertools import chain
from typing import Any

import pytest
from harness import once, process
from tables_read import tables
from typed import A1, SELF, WIDTHS

MATRICES = random.Random(12)


def matrix(rows: int, columns: int) -> str:
    return "; ".join(" ".join(f"{MATRICES.uniform(-12, 12):.3f}" for _ in range(columns)) for _ in range(rows))


WIDE = ("-Q", matrix(3, 12), "-K", matrix(12, 12), "-V", matrix(12, 12), "--upstream", matrix(3, 12))
TALL = ("-Q", matrix(12, 3), "-K", matrix(12, 3), "-V", matrix(12, 3), "--upstream", matrix(12, 3))
RUNS = {
    "wide": WIDE,
    "tall": TALL,
    "self": (*SELF, "--causal", "--upstream", "1 2; 3 -4; 0 1"),
    "a1": (*A1, "--loss", "sum(O)"),
}


def values(*words: str) -> dict[str, list[list[float]]]:
    """The numbers of every step, from the JSON, as matrices."""
    steps = json.loads(once(*words, "--format", "json").out)["steps"]
    return {step["id"]: _rows(step["value"]) for step in steps}


def _rows(value: Any) -> list[list[float]]:
    rows = value if isinstance(value[0], list) else [value]
    return [[float(number) for number in row] for row in rows]


def number(text: str) -> float:
    return float(text.replace("∞", "inf").replace("−", "-"))


def assert_shows(text: str, expected: dict[str, list[list[float]]], decimals: int = 3) -> None:
    """Every step is in the text with every one of its numbers in its place."""
    found = tables(text)
    assert set(found) == set(expected)
    for id, rows in expected.items():
        cells = found[id]
        assert [len(row) for row in cells] == [len(row) for row in rows], id
        for shown, true in zip(chain(*cells), chain(*rows), strict=True):
            value = number(shown)
            assert value == true or math.isclose(value, true, rel_tol=0, abs_tol=0.5 * 10**-decimals + 1e-12), id
            # What was given is shown as it was written, whatever the decimals.
            # Beyond 15 significant digits there is nothing to show.
            places = f"1,{decimals}" if decimals >= 12 else decimals
            assert id == "G_O" or re.fullmatch(rf"[-−]?(?:\d+(?:\.\d{{{places}}})?|∞|inf)", shown), (id, shown)
            assert len(re.sub(r"^[-−0.]+|\.", "", shown)) <= 15 or "." not in shown


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", RUNS)
def test_tables(name: str, width: int) -> None:
    words = ("backward", *RUNS[name])
    assert_shows(once(*words, COLUMNS=width).out, values(*words))


@pytest.mark.parametrize("decimals", [0, 7, 15])
def test_decimals(decimals: int) -> None:
    words = ("backward", *RUNS["tall"], "--decimals", str(decimals))
    for width in (40, 80):
        assert_shows(once(*words, COLUMNS=width).out, values(*words), decimals)


@pytest.mark.parametrize("encoding", ["ascii", "gbk", "latin-1", "cp1252", "big5"])
@pytest.mark.parametrize("name", ["wide", "self"])
def test_encodings(name: str, encoding: str) -> None:
    words = ("backward", *RUNS[name])
    done = once(*words, COLUMNS=40, encoding=encoding)
    text = done.out
    assert "?" not in text and "\\" not in text and "\N{REPLACEMENT CHARACTER}" not in text
    assert_shows(text, values(*words))


@pytest.mark.parametrize("encoding", ["ascii", "gbk"])
@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--help",),
        ("models",),
        ("examples", "list"),
        ("examples", "run", "a1-pronoun"),
        ("why", "a1-pronoun", "A", "1", "2"),
    ],
)
def test_other_commands_in_encodings(words: tuple[str, ...], encoding: str) -> None:
    for language in ("en", "zh"):
        done = once(*words, ATTNCLI_LANG=language, encoding=encoding)
        text = done.out
        assert done.status == 0 and done.err == ""
        if language == "zh" and encoding == "gbk":
            assert re.search(r"[一-鿿]", text)


def test_an_encoding_of_a_process_is_the_same() -> None:
    """The other tests write into a stream of that encoding; here Python itself opens it."""
    for words in (("backward", *RUNS["a1"]), ("--help",), ("why", "a1-pronoun", "A", "9", "9")):
        for encoding in ("ascii", "gbk"):
            own = process(*words, ATTNCLI_LANG="zh", PYTHONUTF8=None, PYTHONIOENCODING=encoding)
            assert own == once(*words, ATTNCLI_LANG="zh", encoding=encoding)


def test_a_message_in_an_encoding_without_its_signs() -> None:
    done = once("forward", "-Q", "1 2 3", "-K", "1 0; 0 1", "-V", "1 0; 0 1", encoding="ascii")
    assert done.status == 2
    assert "K is 2" in done.err


@pytest.mark.parametrize("width", WIDTHS)
def test_exact_results_are_whole(width: int) -> None:
    """Broken over lines where they must, but never cut: put together again they are what a very wide screen shows."""
    words = (
        "backward",
        *SELF,
        "--causal",
        "--upstream",
        "1 2; 3 -4; 0 1",
        "--exact",
        "--step",
        "A",
        "--step",
        "G_K",
        "--step",
        "O",
    )
    wide = tables(once(*words, COLUMNS=1000).out)
    narrow = re.sub(r"\s", "", once(*words, COLUMNS=width).out)
    assert wide.keys() == {"A", "O", "G_O", "G_K"}
    for rows in wide.values():
        for cell in chain(*rows):
            assert re.sub(r"\s", "", cell) in narrow, cell


def test_json_is_one_line_at_any_width() -> None:
    words = ("backward", *RUNS["wide"], "--format", "json")
    texts = {once(*words, COLUMNS=width).out for width in WIDTHS}
    assert len(texts) == 1
    text = texts.pop()
    assert text.count("\n") == 1 and text.endswith("\n")
    json.loads(text)
