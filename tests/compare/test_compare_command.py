"""The command as it is typed."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from comparing import compare, data, shown
from harness import refused

from attncli.cost import published
from attncli.locale.fit import columns as columns_of

ALL = ["mha", "mqa", "gqa", "mla"]


def test_nothing_said_is_llama_2_7b_in_all_variants() -> None:
    found = data()
    assert [model["name"] for model in found["models"]] == ["llama-2-7b"]
    assert [entry["variant"] for entry in found["entries"]] == ALL
    assert shown() == shown("mha", "mqa", "gqa", "mla") == shown("--preset", "llama-2-7b")


def test_variants_in_the_order_they_are_named() -> None:
    assert [entry["variant"] for entry in data("mla", "MHA", "mla")["entries"]] == ["mla", "mha"]
    assert {claim["id"] for claim in data("gqa")["claims"]} == {"gqa-cache"}


def test_table_says_what_the_data_say() -> None:
    text = shown("mha", "gqa", "--preset", "gpt2")
    for entry in data("mha", "gqa", "--preset", "gpt2")["entries"]:
        for number in (entry["parameters"], entry["cache_elements_per_token"], entry["decode_multiply_adds"]):
            assert f"{number:,}" in text
    assert "GPT-2 itself uses MHA." in text
    assert "https://huggingface.co/openai-community/gpt2/blob/main/config.json" in text


def test_several_presets_show_what_each_uses_at_one_context() -> None:
    found = data("--preset", "llama-2-7b,deepseek-v2", "--preset", "Llama-3-8B")
    assert [(entry["model"], entry["variant"]) for entry in found["entries"]] == [
        ("llama-2-7b", "mha"),
        ("deepseek-v2", "mla"),
        ("llama-3-8b", "gqa"),
    ]
    assert {model["sizes"]["context"] for model in found["models"]} == {4096}
    both = data("mqa", "mla", "--preset", "gpt2,mistral-7b", "--context", "2048")
    assert [(entry["model"], entry["variant"]) for entry in both["entries"]] == [
        ("gpt2", "mqa"),
        ("gpt2", "mla"),
        ("mistral-7b", "mqa"),
        ("mistral-7b", "mla"),
    ]
    assert {model["sizes"]["context"] for model in both["models"]} == {2048}


def test_sizes_by_hand_stand_in_for_the_presets() -> None:
    found = data("gqa", "--preset", "llama-3-8b", "--kv-heads", "4", "--context", "8192", "--bytes", "fp8")
    (entry,) = found["entries"]
    assert entry["cache_bytes"] == 2 * 4 * 128 * 32 * 8192
    assert found["models"][0]["given"] == ["kv_heads", "context", "bytes"]
    # With other groups it is no longer the model.
    assert "itself uses" not in shown("gqa", "--preset", "llama-3-8b", "--kv-heads", "4")
    assert "Given by you instead: n_g." in shown("gqa", "--preset", "llama-3-8b", "--kv-heads", "4")


def test_the_window_of_mistral_bounds_its_cache() -> None:
    (entry,) = data("gqa", "--preset", "mistral-7b")["entries"]
    assert (entry["cached_tokens"], entry["cache_bytes"]) == (4096, 512 * 2**20)
    (free,) = data("gqa", "--preset", "mistral-7b", "--window", "0")["entries"]
    assert free["cache_bytes"] == 8 * entry["cache_bytes"]


def test_the_pairs_of_a_window_are_said_as_they_are_counted() -> None:
    windowed, plain = "the first w tokens meet 1 to w keys", "token i meets i keys"
    text = shown("gqa", "--preset", "mistral-7b", "--expand", COLUMNS=400)
    assert windowed in text and plain not in text
    assert text.count("w(w+1)/2 + (n−w)·w") == 3  # scores, values, and the sentence
    # A window as long as the context hides nothing.
    free = shown("gqa", "--preset", "mistral-7b", "--context", "4096", COLUMNS=400)
    assert windowed not in free and plain in free
    both = shown("--preset", "mistral-7b,llama-2-7b", "--context", "8192", COLUMNS=400)
    assert windowed in both and plain in both


def test_shares_are_those_of_the_numbers_beside_them() -> None:
    parts = ("parameters", "prefill_multiply_adds", "decode_multiply_adds")
    mha, mqa, gqa, mla = data()["entries"]
    for entry in (mha, mqa, gqa, mla):
        for name in parts:
            assert entry[f"{name}_share_of_mha"] == pytest.approx(entry[name] / mha[name], rel=1e-15)
        caches = entry["cache_elements_per_token"] / mha["cache_elements_per_token"]
        assert entry["cache_share_of_mha"] == pytest.approx(caches, rel=1e-15)
    absorbed = mla["decode_absorbed_multiply_adds"] / mha["decode_multiply_adds"]
    assert mla["decode_absorbed_multiply_adds_share_of_mha"] == pytest.approx(absorbed, rel=1e-15)
    assert mqa["decode_absorbed_multiply_adds_share_of_mha"] is None
    assert (mqa["cache_share_of_mha"], gqa["cache_share_of_mha"]) == (1 / 32, 1 / 4)


@pytest.mark.parametrize(
    ("word", "bytes"), [("fp32", 4), ("FP16", 2), ("bf16", 2), ("fp8", 1), ("int4", 0.5), ("2", 2), ("0.75", 0.75)]
)
def test_bytes_by_word_and_number(word: str, bytes: float) -> None:
    (entry,) = data("mqa", "--bytes", word)["entries"]
    assert entry["cache_bytes_per_token"] == 8192 * bytes


def test_full_prefill_counts_all_pairs() -> None:
    words = ("mha", "--d-model", "4", "--heads", "2", "--context", "3")
    (causal,), (full,) = data(*words)["entries"], data(*words, "--prefill", "full")["entries"]
    pair = 2 * 2 * 2  # heads, a score and a value of width 2
    assert causal["prefill_multiply_adds"] == 3 * 4 * 4 * 4 + 6 * pair
    assert full["prefill_multiply_adds"] == 3 * 4 * 4 * 4 + 9 * pair
    assert "n²" in shown(*words, "--prefill", "full", "--expand")


def test_expand_shows_every_product() -> None:
    text = shown("mla", "--preset", "deepseek-v2", "--expand")
    for line in data("mla", "--preset", "deepseek-v2")["entries"][0]["products"]["parameters"]:
        assert f"{line['formula']} = {line['numbers']} = {line['per_layer']:,}" in text
    assert "Every product" not in shown("mla", "--preset", "deepseek-v2")


def test_csv_holds_a_row_for_every_entry() -> None:
    words = ("--preset", "gpt2,deepseek-v2")
    rows = list(csv.DictReader(io.StringIO(shown(*words, "--format", "csv"))))
    entries = data(*words)["entries"]
    assert [row["model"] for row in rows] == ["gpt2", "deepseek-v2"]
    for row, entry in zip(rows, entries, strict=True):
        assert {name: "" if entry[name] is None else str(entry[name]) for name in row} == row


def test_markdown_has_one_table_of_equal_lines() -> None:
    text = shown("--format", "markdown")
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) > 8 and {line.count("|") for line in lines} == {6}
    assert text.startswith("# MHA · MQA · GQA · MLA at the sizes of Llama-2-7B\n")
    assert "`(d_c + d_h^R)·l = (512 + 64)·32 = 18,432`" in text


@pytest.mark.parametrize("ending", ["json", "md", "csv", "txt"])
def test_files(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"compared.{ending}"
    assert shown("-o", str(path), "--preset", "gpt2") == ""
    format = {"md": "markdown", "txt": "table"}.get(ending, ending)
    assert path.read_text("utf-8") == shown("--format", format, "--preset", "gpt2")


def test_a_file_is_chinese_where_the_screen_cannot_be(tmp_path: Path) -> None:
    path = tmp_path / "compared.md"
    shown("-o", str(path), ATTNCLI_LANG="zh", encoding="ascii")
    assert "键和值" in path.read_text("utf-8")
    assert "heads of keys and values" in shown(ATTNCLI_LANG="zh", encoding="ascii")


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("columns", [30, 50, 80, 120])
def test_fits_the_screen(columns: int, lang: str) -> None:
    for words in ((), ("--preset", ",".join(published.names())), ("--expand", "mla")):
        text = shown(*words, COLUMNS=columns, ATTNCLI_LANG=lang)
        assert [line for line in text.splitlines() if columns_of(line) > columns] == []
        assert "…" not in text


def test_chinese_is_chinese() -> None:
    text = shown("--expand", ATTNCLI_LANG="zh")
    plain = re.sub(r"https?://\S+|--[\w-]+", "", text)
    assert re.findall(r"\b(?:the|and|of|with|heads|cache|layers)\b", plain) == []


@pytest.mark.parametrize("encoding", ["ascii", "gbk"])
def test_poor_terminals(encoding: str) -> None:
    text = shown("--expand", encoding=encoding)
    assert "\\u" not in text and "\\x" not in text
    assert "10^9" in text and "^1^" not in text


WRONG = {
    "a variant that does not exist": (["mhaa"], ("The variant “mhaa” does not exist. Did you mean “mha”?",)),
    "a model for a variant": (["gpt2"], ("attncli compare --preset gpt2",)),
    "a preset that does not exist": (["--preset", "llama-3-80b"], ("Did you mean “llama-3-8b”?",)),
    "no preset": (["--preset", ""], ("The preset “” does not exist",)),
    "no heads": (["--d-model", "8"], ("For sizes of your own, --heads is missing",)),
    "no width": (["--heads", "8"], ("For sizes of your own, --d-model is missing",)),
    "heads that do not divide": (["--d-model", "8", "--heads", "3"], ("d_model 8 cannot be shared by 3 heads", "--d-head 2")),
    "groups that do not divide": (["--kv-heads", "5"], ("32 query heads cannot share 5 heads", "--kv-heads")),
    "an odd rotary part": (["--d-rope", "3"], ("--d-rope is 3", "even")),
    "a context of nothing": (["--context", "0"], ("--context: “0” is not allowed here", "from 1 to 100000000")),
    "a negative size": (["--heads", "-4"], ("--heads: “-4” is not allowed here",)),
    "a size of letters": (["--layers", "many"], ("--layers: “many” is not allowed here",)),
    "a huge size": (["--d-model", "9" * 400], ("--d-model", "from 1 to 1000000")),
    "bytes of letters": (["--bytes", "fp17"], ("--bytes: “fp17” is not allowed here", "fp32, fp16, bf16")),
    "bytes of a power": (["--bytes", "1e999999999"], ("--bytes",)),
    "no bytes": (["--bytes", "0"], ("--bytes: “0” is not allowed here",)),
    "a point for bytes": (["--bytes", "."], ("--bytes",)),
    "a prefill that does not exist": (["--prefill", "half"], ("The prefill “half” does not exist", "causal, full")),
    "a format that does not exist": (["--format", "latex"], ("The format “latex” does not exist", "table, json, markdown, csv")),
    "a folder that does not exist": (["-o", "nowhere/compared.md"], ("-o nowhere/compared.md: cannot be written",)),
    "an option twice": (["--heads", "8", "--heads", "4"], ("--heads is given twice",)),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_bad_input_is_refused_in_one_message(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    argv, words = WRONG[kind]
    refused(compare(*argv), *words)


def test_largest_sizes_are_counted_exactly() -> None:
    sizes = {"d-model": 10**6, "heads": 10**5, "d-head": 10**6, "layers": 10**5, "context": 10**8}
    words = [word for name, size in sizes.items() for word in (f"--{name}", str(size))]
    entry = data("mha", *words)["entries"][0]
    assert entry["parameters"] == 4 * 10**6 * 10**5 * 10**6 * 10**5
    assert shown("mha", *words)
