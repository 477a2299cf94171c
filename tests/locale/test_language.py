"""Whole commands in Chinese: which language is chosen, what every kind of terminal gets, and nothing left in English."""

from __future__ import annotations

import gettext
import os
import re
from collections.abc import Sequence

import catalogue
import pytest
from harness import Ran, run
from saved import SAVED, with_file

from attncli import lab
from attncli.cli import output
from attncli.core.message import Language
from attncli.locale.fit import columns
from attncli.problems import library


def said(*words: str, encoding: str = "utf-8", **variables: str) -> Ran:
    """What a terminal of this encoding is sent; no language is chosen but by what is given here."""
    return run(*with_file(words), encoding=encoding, **{"LANG": None, **variables})


FORWARD = ("forward", "-Q", "1 2", "-K", "1 0; 0 1", "-V", "2 0; 0 4")
BACKWARD = ("backward", *FORWARD[1:], "--causal", "--upstream", "1 2", "--expand", "--verify")
COMMANDS: Sequence[tuple[str, ...]] = (
    (),
    FORWARD,
    ("forward", "-Q", "1; 2", "-K", "1 0; 0 1", "-V", "2 0; 0 4", "--carry", "--layout", "columns"),
    (*FORWARD, "--set", "softcap=2", "--scale", "0.5", "--decimals", "1"),
    BACKWARD,
    ("backward", *FORWARD[1:], "--loss", "mse(O, t)", "--set", "t=1 1"),
    ("backward", *FORWARD[1:], "--loss", "O[1,1] + 2*O[1,2]"),
    ("backward", "b6-full-backward", "--verify"),
    ("backward", "c8-update"),
    ("forward", "candle-three-heads"),
    ("forward", "c5-shapes"),
    ("why", "b6-full-backward", "G_E", "3", "1"),
    ("examples", "list"),
    ("examples", "show", "a1-pronoun"),
    ("examples", "show", "a1-pronoun", "--hint"),
    ("examples", "verify", "a1-pronoun"),
    ("check", "a1-pronoun", "--answer", "A=0.330 0.670", "--answer", "O=0.66 2.68"),
    ("check", "--help"),
    ("models",),
    ("models", "embedded_attention"),
    ("models", "softmax"),
    ("--help",),
    ("forward", "--help"),
    ("backward", "--help"),
    ("why", "--help"),
    ("compare",),
    ("compare", "mla", "--preset", "deepseek-v2", "--expand"),
    ("compare", "--preset", "gpt2,mistral-7b", "--context", "512"),
    ("train", "我喜欢数学", "--steps", "20"),
    ("train", "我 喜欢 数学 我 喜欢 你", "--split", "words", "--steps", "5", "--layers", "1", "--d-ff", "4"),
    ("train", "abcab", "--steps", "0"),
    ("train", "abcab", "--step", "2"),
    ("generate", SAVED, "我", "--length", "6", "--verify"),
    ("generate", SAVED, "我", "--length", "2", "--trace"),
    *(("lab", name) for name in lab.names()),
    ("lab", "heads", SAVED),
    ("lab", "overflow", "--logits", "2 1", "--hidden", "5"),
    ("lab", "rank", "--matrix", "1 2; 3 4; 5 6"),
    ("compare", "--help"),
    ("train", "--help"),
    ("generate", "--help"),
    ("lab", "--help"),
    *(("lab", name, "--help") for name in lab.names()),
    ("examples",),
    ("examples", "run", "--help"),
    ("examples", "verify", "--help"),
    ("models", "--help"),
)
ERRORS: Sequence[tuple[str, ...]] = (
    ("forward",),
    ("forwrd",),
    ("forward", "--cusal"),
    ("forward", "--causal=3"),
    ("forward", "-Q"),
    ("forward", "-Q", "1", "2", "3"),
    ("forward", "-Q", "1 2", "-K", "1 0 3", "-V", "2"),
    ("forward", "-Q", "1 x", "-K", "1 0", "-V", "2"),
    ("forward", "-K", "1 0"),
    ("forward", "a1-pronon"),
    ("forward", "nothing.toml"),
    ("backward", "a1-pronoun"),
    ("forward", *FORWARD[1:], "--set", "colour=3"),
    ("forward", *FORWARD[1:], "--decimals", "99"),
    ("forward", *FORWARD[1:], "--layout", "diagonal"),
    ("forward", *FORWARD[1:], "--format", "pdf"),
    ("why",),
    ("why", "A", "1"),
    ("why", "a1-pronoun", "A", "9", "9"),
    ("why", "a1-pronoun", "G_A", "1", "1"),
    ("examples", "show"),
    ("examples", "show", "a0"),
    ("examples", "shw"),
    ("models", "atention"),
    ("compare", "gpt2"),
    ("compare", "--preset", "gpt3"),
    ("compare", "--kv-heads", "5"),
    ("compare", "--bytes", "fp17"),
    ("compare", "--config", "nothing.json"),
    ("compare", "--config", ""),
    ("train",),
    ("train", "a"),
    ("train", "a\u200db"),
    ("train", "ab", "--heads", "3", "--kv-heads", "2"),
    ("train", "ab", "--eta", "0"),
    ("train", "abcab", "--eta", "1e6", "--optimizer", "sgd"),
    ("train", "ab" * 4000, "--context", "4096"),
    ("train", "ab", "--save", "mine"),
    ("train", "ab", "-o", "mine.html"),
    ("train", "ab", "--save", "nowhere/mine.npz"),
    ("train", "--load", "nothing.npz"),
    ("train", "--load", "/dev/null"),
    ("train", "--load", SAVED, "--seed", "1"),
    ("generate", SAVED, "猫"),
    ("generate", SAVED, "我", "--temperature", "-1"),
    ("generate", SAVED, "我", "--trace", "--length", "51"),
    ("lab", "softmx"),
    ("lab", "scaling", "--d-k", "0"),
    ("lab", "rank", "--matrix", "1e301 1"),
    ("lab", "heads", "--text", "a"),
)
EXAMPLES = [("examples", "run", id) for id in library.ids()]


def name_of(words: Sequence[str]) -> str:
    return " ".join(words)[:50] or "nothing"


# Which language


@pytest.mark.parametrize(
    ("words", "environment", "language"),
    [
        ((), {}, "en"),
        (("--lang", "zh"), {}, "zh"),
        (("--lang=zh",), {}, "zh"),
        (("--lang", "en"), {"ATTNCLI_LANG": "zh"}, "en"),
        ((), {"ATTNCLI_LANG": "zh"}, "zh"),
        ((), {"ATTNCLI_LANG": "en", "LANG": "zh_CN.UTF-8"}, "en"),
        ((), {"ATTNCLI_LANG": " ", "LANG": "zh_CN.UTF-8"}, "zh"),
        ((), {"LANG": "zh_CN.UTF-8"}, "zh"),
        ((), {"LANG": "zh_TW.UTF-8"}, "zh"),
        ((), {"LANG": "zh_HK"}, "zh"),
        ((), {"LC_MESSAGES": "zh_CN.UTF-8", "LANG": "en_US.UTF-8"}, "zh"),
        ((), {"LC_MESSAGES": "en_US.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ((), {"LC_ALL": "C.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, "en"),
        ((), {"LC_ALL": "zh_CN.GB18030", "LANG": "en_US.UTF-8"}, "zh"),
        ((), {"LC_ALL": "", "LANG": "zh_CN.UTF-8"}, "zh"),
        ((), {"LANG": "de_DE.UTF-8"}, "en"),
    ],
)
def test_language(words: tuple[str, ...], environment: dict[str, str], language: str) -> None:
    told = said(*words, **environment)
    assert told.out.startswith("attncli 像你用笔算那样" if language == "zh" else "attncli shows attention")


def test_lang_after_a_command() -> None:
    assert "前向：从输入到结果" in said(*FORWARD, "--lang", "zh").out
    assert "前向：从输入到结果" in said("--lang", "zh", *FORWARD).out


def test_unknown_language() -> None:
    told = said("--lang", "zn")
    assert told.status == 2 and told.out == ""
    assert told.err == "attncli: The language “zn” does not exist. Choose from: en, zh.\n"
    assert said(ATTNCLI_LANG="klingon").status == 2
    # Who works in Chinese reads about the slip in Chinese.
    assert said("--lang", "cn", LANG="zh_CN.UTF-8").err == "attncli: 语言“cn”不存在。可选：en、zh。\n"


# What a terminal can show


def test_ascii_terminal_gets_english() -> None:
    told = said("--lang", "zh", *FORWARD, encoding="ascii")
    assert told.status == 0
    assert "Forward: from the inputs to the result" in told.out


@pytest.mark.parametrize("words", COMMANDS, ids=name_of)
@pytest.mark.parametrize("encoding", ["gbk", "ascii", "latin-1"])
def test_every_terminal_shows_every_command(words: tuple[str, ...], encoding: str) -> None:
    told = said("--lang", "zh", *words, encoding=encoding)
    assert told.status == 0 and told.out
    if encoding == "gbk":
        assert "\\u" not in told.out and "\\x" not in told.out
        assert re.search(r"[\u4e00-\u9fff]", told.out)
    elif not any(word in library.ids() or word == SAVED or not word.isascii() for word in words):
        # Examples and texts hold Chinese words, which have no sign here.
        assert "\\u" not in told.out and "\\x" not in told.out


@pytest.mark.parametrize("words", EXAMPLES, ids=name_of)
@pytest.mark.parametrize("encoding", ["gbk", "ascii"])
def test_every_example_in_every_terminal(words: tuple[str, ...], encoding: str) -> None:
    told = said(*words, "--lang", "zh", encoding=encoding)
    assert told.status == 0, told.err
    if encoding == "gbk":
        assert "\\u" not in told.out and "\\x" not in told.out
        assert "值得注意" in told.out


def test_gbk_bytes_are_chinese() -> None:
    told = said("--lang", "zh", encoding="gbk")
    assert told.stdout.decode("gbk").startswith("attncli 像你用笔算那样")


# Nothing left in English

#: What stands in Chinese output as it is: commands, options, symbols, ids in a row, quoted input.
KEPT = re.compile(
    r"attncli(?: [a-z][\w-]*)+|--?[\w-]+(?:[ =][\w|]+)?|“[^”]*”|\"[^\"]*\"|[\w.-]*_[\w.-]*|pip install '[^']*'"
    r"|Hugging Face|[a-z]+-[\w-]+|\w+\([^)]*\)|\[[^\]]*\]|可选：.*|没有填：.*|\([a-z_]+(?:, [a-z_]+)*\)|改为 [^：]*"
)
ENGLISH = re.compile(r"\b[A-Za-z]?[a-z]{2,}[,;:]? (?:[A-Za-z]?[a-z]{2,}|a|I)\b")
#: Names of people, works and programs in the line of the source stay as they are, up to the next Chinese line.
SOURCE = re.compile(r"^出处：[^\u4e00-\u9fff]*", re.MULTILINE)
#: Why a source's number is wrong stands in the problem file in one language only.
REMARKED = {id for id in library.ids() if any(how.startswith("wrong:") for how in library.load(id).how.values())}


def english_in(text: str) -> list[str]:
    return [line for line in SOURCE.sub("", text).splitlines() if ENGLISH.search(KEPT.sub("·", line))]


def test_english_is_recognised() -> None:
    assert english_in("Show every step from the inputs")
    assert english_in("步骤：add up each row")
    assert not english_in("看一道题：attncli examples show ID。形状：Q 1×2, K 2×2 → S 1×2")


@pytest.fixture
def untranslated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that the commands of a test say in Chinese and that the catalogue does not hold."""
    with catalogue.po_path("zh").with_suffix(".mo").open("rb") as file:
        known = gettext.GNUTranslations(file)
    missing: list[str] = []

    def translate(text: str) -> str:
        found = known.gettext(text)
        if found == text and re.search(r"[A-Za-z]{2}", re.sub(r"{\w+}", "", text)):
            missing.append(text)
        return found

    monkeypatch.setattr(output, "language", lambda code: Language(code, translate))
    return missing


@pytest.mark.parametrize("words", [*COMMANDS, *EXAMPLES], ids=name_of)
def test_output_is_chinese(untranslated: list[str], words: tuple[str, ...]) -> None:
    told = said("--lang", "zh", *words)
    assert told.status == 0, told.err
    # A text that reaches a reader by a way that extraction does not see would be missing here.
    assert untranslated == []
    if not REMARKED.intersection(words):
        assert english_in(told.out) == []


@pytest.mark.parametrize("words", ERRORS, ids=name_of)
def test_errors_are_chinese(untranslated: list[str], words: tuple[str, ...]) -> None:
    told = said(*words, ATTNCLI_LANG="zh")
    assert told.status == 2 and told.out == ""
    assert untranslated == []
    assert re.search(r"[\u4e00-\u9fff]", told.err)
    assert english_in(told.err.removeprefix("attncli: ")) == []


# Width

#: A command and a line of a sheet stay whole, so that they can be copied.
COPIED = re.compile(r" *attncli \w|\w+ = \"[? ;]+\"$")


@pytest.mark.parametrize("words", [*COMMANDS, ("examples", "run", "b6-full-backward")], ids=name_of)
@pytest.mark.parametrize("width", [80, 50, 40])
def test_no_line_is_wider_than_the_screen(words: tuple[str, ...], width: int) -> None:
    told = said("--lang", "zh", *words, COLUMNS=str(width))
    assert [line for line in told.out.splitlines() if columns(line) > width and not COPIED.match(line)] == []


def test_the_environment_is_left_alone() -> None:
    before = dict(os.environ)
    said("--lang", "zh")
    assert dict(os.environ) == before
