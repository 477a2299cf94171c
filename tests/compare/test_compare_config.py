"""attncli compare --config: the sizes of a model from its config.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from comparing import compare, data, shown
from harness import refused

from attncli.cost import published

#: Entries of published config.json files that concern attention.
DEEPSEEK_V3 = {
    "model_type": "deepseek_v3", "hidden_size": 7168, "num_attention_heads": 128, "num_key_value_heads": 128, "num_hidden_layers": 61,
    "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "max_position_embeddings": 163840, "intermediate_size": 18432, "vocab_size": 129280, "attention_bias": False,
}  # fmt: skip
QWEN = {"hidden_size": 8192, "num_attention_heads": 64, "num_key_value_heads": 8, "num_hidden_layers": 80, "sliding_window": 131072, "use_sliding_window": False}  # fmt: skip
LLAMA = {"hidden_size": 16384, "num_attention_heads": 128, "num_key_value_heads": 8, "num_hidden_layers": 126}


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(config: Any, name: str = "config.json") -> str:
    Path(name).write_text(config if isinstance(config, str) else json.dumps(config), "utf-8")
    return name


@pytest.mark.parametrize(
    ("config", "variant", "bytes"), [(DEEPSEEK_V3, "mla", 70_272), (QWEN, "gqa", 327_680), (LLAMA, "gqa", 516_096)]
)
def test_the_cache_of_published_models(config: dict[str, Any], variant: str, bytes: int) -> None:
    """Bytes per token in BF16 by table 1 of Insights into DeepSeek-V3 (arXiv 2505.09343)."""
    found = data("--config", written(config))
    assert found["models"][0]["variant"] == variant
    (own,) = [entry for entry in found["entries"] if entry["variant"] == variant]
    assert own["cache_bytes_per_token"] == bytes


@pytest.mark.parametrize("name", published.names())
def test_a_file_with_a_presets_entries_is_that_preset(name: str) -> None:
    preset = published.get(name)
    config = {**preset.config, "model_type": "gpt2" if name == "gpt2" else "other"}
    mine, theirs = data("--config", written(config)), data("--preset", name)
    assert mine["models"][0]["variant"] == preset.variant
    assert [{**one, "model": ""} for one in mine["entries"]] == [{**one, "model": ""} for one in theirs["entries"]]


def test_files_and_presets_stand_side_by_side_and_sizes_by_hand_stand_above() -> None:
    name = written(DEEPSEEK_V3)
    found = data("--preset", "llama-3-8b", "--config", name, "--context", "2048")
    assert [(one["model"], one["variant"]) for one in found["entries"]] == [("llama-3-8b", "gqa"), (name, "mla")]
    assert data("--config", name, "--heads", "64")["models"][0]["sizes"]["heads"] == 64
    assert "config.json itself uses MLA." in shown("--config", name)


def test_a_model_of_pictures_and_text_keeps_its_text_apart() -> None:
    assert data("--config", written({"text_config": LLAMA, "vision_config": {}}))["models"][0]["sizes"]["layers"] == 126


def test_a_name_never_drives_the_terminal() -> None:
    name = written(LLAMA, "\x1b[31mred\n.json")
    for format in ("table", "json", "markdown", "csv"):
        assert "\x1b" not in shown("--config", name, "--format", format)


TURNS = {**LLAMA, "sliding_window": 4096, "layer_types": ["full_attention", "sliding_attention"]}
WRONG: dict[str, tuple[Any, str]] = {
    "a size below 1": ({**LLAMA, "hidden_size": -1}, "hidden_size: -1 is out of range: it must be ≥ 1"),
    "a size beyond all bounds": ({**LLAMA, "hidden_size": 10**30}, "hidden_size: 1000000000000000000000000000000 is out of range"),
    "a fraction": ({**LLAMA, "hidden_size": 8192.0}, "hidden_size: found “8192.0”, expected a whole number"),
    "a number in quotes": ({**LLAMA, "hidden_size": "8192"}, "hidden_size: found “8192”, expected a whole number"),
    "true": ({**LLAMA, "num_hidden_layers": True}, "num_hidden_layers: found “true”, expected a whole number"),
    "no heads": ({**LLAMA, "num_attention_heads": None}, "the key num_attention_heads is missing"),
    "another file": ({"name": "x"}, "the key hidden_size is missing, so this is not a transformer's config.json"),
    "two widths": ({**LLAMA, "n_embd": 5}, "hidden_size and n_embd say different things"),
    "heads that do not divide": ({**LLAMA, "num_key_value_heads": 3}, "--config config.json: 128 query heads cannot share 3 heads"),
    "a rotary part that is missing": ({**DEEPSEEK_V3, "qk_rope_head_dim": None}, "the key qk_rope_head_dim is missing, which goes with kv_lora_rank"),
    "values of another width": ({**DEEPSEEK_V3, "v_head_dim": 64}, "once with --d-head 128 and once with --d-head 64"),
    "a window in turns": (TURNS, "Write --window 4096 for those, or --window 0 for the others"),
    "a list": ("[]", "expected a table of keys"),
    "nothing": ("", "is not valid JSON at line 1"),
    "a key twice": ('{"hidden_size": 1, "hidden_size": 2}', "the key “hidden_size” occurs twice"),
    "NaN": ('{"hidden_size": NaN}', "NaN is not a number in JSON"),
    "a number of 5000 digits": ('{"hidden_size": ' + "9" * 5000 + "}", "a whole number there has 5000 digits"),
    "100,000 brackets": ("[" * 100_000, "nested too deep"),
    "a megabyte": (" " * 1_000_001, "the limit here is 1,000,000"),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_file_is_refused_in_one_message(kind: str) -> None:
    config, words = WRONG[kind]
    assert refused(compare("--config", written(config)), "config.json", words).startswith("attncli: --config")


def test_a_window_in_turns_is_settled_by_hand() -> None:
    name = written(TURNS)
    free, bound = (data("gqa", "--config", name, "--window", window)["entries"][0] for window in ("0", "4096"))
    assert free["cached_tokens"] == data("gqa", "--config", name, "--window", "0")["models"][0]["sizes"]["context"]
    assert bound["cached_tokens"] == min(4096, free["cached_tokens"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("config.json",), "“config.json” is a file. Write it as: attncli compare --config config.json"),
        (("--config", ""), "--config: “”: the name is empty"),
        (("--config", "."), "this is a folder"),
        (("--config", "/dev/zero"), "has more than 1,000,000 bytes"),
        (
            tuple(word for i in range(21) for word in ("--config", f"{i}.json")),
            "21 files are too many. Give at most 20",
        ),
    ],
)
def test_files_that_are_none(words: tuple[str, ...], message: str) -> None:
    refused(compare(*words), message)
