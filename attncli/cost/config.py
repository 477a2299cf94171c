"""Sizes of a model's attention from its config.json, under the keys of Hugging Face's transformers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from attncli.core.message import InputError, Message, placed
from attncli.cost.count import GivenSizes
from attncli.cost.presets import Preset
from attncli.problems.reading import complaint, decoded, plain_json, read_bounded

#: Bytes of a config.json; real ones have a few thousand.
MOST_BYTES = 1_000_000
#: Signs of a title.
_LONGEST_TITLE = 24

Width = Annotated[int, Field(ge=1, le=1_000_000, strict=True)] | None
Heads = Annotated[int, Field(ge=1, le=100_000, strict=True)] | None
Tokens = Annotated[int, Field(ge=1, le=100_000_000, strict=True)] | None
Flag = Annotated[bool, Field(strict=True)] | None

#: Keys of which one must be there.
_NEEDED = (("hidden_size", "n_embd"), ("num_attention_heads", "n_head"), ("num_hidden_layers", "n_layer"))
#: Models whose layers see a window in turns, without a key that says so.
_IN_TURNS = {"gemma2", "gemma3", "gemma3_text", "cohere2", "gpt_oss"}
#: Models whose code, not whose file, gives the projections biases.
_WITH_BIAS = {"gpt2"}


class _Config(BaseModel):
    """What concerns attention; a config.json holds much else."""

    model_config = ConfigDict(extra="ignore")

    model_type: str | None = None
    hidden_size: Width = None
    n_embd: Width = None
    num_attention_heads: Heads = None
    n_head: Heads = None
    num_key_value_heads: Heads = None
    multi_query: Flag = None
    num_hidden_layers: Heads = None
    n_layer: Heads = None
    head_dim: Width = None
    kv_lora_rank: Width = None
    q_lora_rank: Width = None
    qk_nope_head_dim: Width = None
    qk_rope_head_dim: Annotated[int, Field(ge=0, le=1_000_000, strict=True)] | None = None
    v_head_dim: Width = None
    max_position_embeddings: Tokens = None
    n_positions: Tokens = None
    sliding_window: Tokens = None
    use_sliding_window: Flag = None
    sliding_window_pattern: Any = None
    layer_types: list[str] | None = None
    attention_bias: Flag = None


def configured(path: str, given: GivenSizes, read_stdin: Callable[[], bytes]) -> Preset:
    """The model that a config.json describes.

    Parameters
    ----------
    path : of the file, or "-"
    given : sizes that are given by hand, which settle what the file leaves open
    read_stdin : gives the bytes of standard input

    Raises
    ------
    InputError
        Names the file, the key, what stands there and what was expected.
    """
    where: Message | str = Message("standard input") if path == "-" else path
    with placed(where or "“”"):
        data = read_stdin() if path == "-" else read_bounded(path, MOST_BYTES)
        return _preset(path, _read(plain_json(decoded(data))), given)


def _read(data: Any) -> _Config:
    # A model of pictures and text keeps what concerns its text apart.
    inner = data.get("text_config") if isinstance(data, dict) else None
    if isinstance(inner, dict) and not any(key in data for key in _NEEDED[0]):
        data = inner
    try:
        return _Config.model_validate(data)
    except ValidationError as error:
        raise complaint(error, "JSON", lambda _: list(_Config.model_fields)) from None


def _preset(path: str, config: _Config, given: GivenSizes) -> Preset:
    _check(config, given)
    idle = {"v_head_dim"}
    if config.kv_lora_rank is None:  # what belongs to MLA says nothing about another attention
        idle |= {"q_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim"}
    if config.use_sliding_window is False or "window" in given:
        idle.add("sliding_window")
    found = {name: value for name, value in config if type(value) is int and name not in idle}
    bias = bool(config.attention_bias) or config.model_type in _WITH_BIAS
    source = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in path)
    return Preset(source, _title(source), source, found, _variant(config), bias)


def _title(source: str) -> str:
    """What stands above its column: the file as it was named, or the end of that, where the folder often names the model."""
    if source == "-":
        return "config.json"
    return source if len(source) <= _LONGEST_TITLE else "/".join(Path(source).parts[-2:])[-_LONGEST_TITLE:]


def _variant(config: _Config) -> str:
    """The attention it uses, by its heads of keys and values, or its latent."""
    heads = config.num_attention_heads or config.n_head
    shared = config.num_key_value_heads or heads
    if config.kv_lora_rank is not None:
        return "mla"
    if config.multi_query or (shared == 1 and heads != 1):
        return "mqa"
    return "mha" if shared == heads else "gqa"


def _check(config: _Config, given: GivenSizes) -> None:
    """What the counts here need and cannot do without."""
    for keys in _NEEDED:
        found = [key for key in keys if getattr(config, key) is not None]
        if not found:
            raise InputError(
                "the key {key} is missing, so this is not a transformer's config.json as Hugging Face writes it. Give the sizes by hand: --d-model N --heads N --layers N.",
                key=keys[0],
            )
        if len(found) > 1 and len({getattr(config, key) for key in found}) > 1:
            raise InputError("{first} and {second} say different things. Keep one.", first=found[0], second=found[1])
    if config.kv_lora_rank is not None:
        for key in ("qk_nope_head_dim", "qk_rope_head_dim"):
            if getattr(config, key) is None:
                raise InputError("the key {key} is missing, which goes with kv_lora_rank. Add it.", key=key)
        if config.v_head_dim not in (None, config.qk_nope_head_dim):
            raise InputError(
                "qk_nope_head_dim is {key_width} and v_head_dim is {value_width}; here keys and values of a head are equally"
                " wide. Give the sizes by hand, once with --d-head {key_width} and once with --d-head {value_width}.",
                key_width=config.qk_nope_head_dim,
                value_width=config.v_head_dim,
            )
    if _in_turns(config) and "window" not in given:
        raise InputError(
            "sliding_window {window} holds for some of its layers only; here all layers are alike. Write --window {window}"
            " for those, or --window 0 for the others.",
            window=config.sliding_window,
        )


def _in_turns(config: _Config) -> bool:
    """Whether some layers see a window and some see everything."""
    if config.sliding_window is None or config.use_sliding_window is False:
        return False
    kinds = set(config.layer_types or ())
    return len(kinds) > 1 or config.sliding_window_pattern is not None or (not kinds and config.model_type in _IN_TURNS)
