"""Published models: those known by name, and what a config.json says, under the keys of Hugging Face's transformers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from attncli.core.message import InputError, Message, placed, unknown
from attncli.core.record import Record
from attncli.cost.count import DIMENSIONS, Assumed, GivenSizes, Sizes, complete

if TYPE_CHECKING:
    from pydantic import BaseModel

#: What a number in a config.json is called here; GPT-2 has names of its own.
_MEANING = {
    "hidden_size": "d_model",
    "n_embd": "d_model",
    "num_attention_heads": "heads",
    "n_head": "heads",
    "num_key_value_heads": "kv_heads",
    "num_hidden_layers": "layers",
    "n_layer": "layers",
    "head_dim": "d_head",
    "kv_lora_rank": "d_c",
    "q_lora_rank": "d_c_q",
    "qk_nope_head_dim": "d_head",
    "qk_rope_head_dim": "d_rope",
    "v_head_dim": "d_head",
    "max_position_embeddings": "context",
    "n_positions": "context",
    "sliding_window": "window",
}


class Preset(Record):
    """A published model.

    Parameters
    ----------
    name : what --preset takes
    title : what its authors call it
    source : the address of its config.json
    config : entries of that file which concern attention, under its names and with its values
    variant : the attention it uses
    bias : its projections have biases, which GPT-2's code says and not its file
    """

    name: str
    title: str
    source: str
    config: Mapping[str, int]
    variant: str
    bias: bool = False

    def sizes(self) -> dict[str, int]:
        """Its entries under the names of `attncli.cost.count.Sizes`; what it does not say is left out."""
        found = {name: self.config[key] for key, name in _MEANING.items() if key in self.config}
        if self.variant != "gqa":
            # As many heads of keys and values as queries: that says nothing on how groups would be made.
            found.pop("kv_heads", None)
        return {"bias": self.bias, **found}


def _entries(hidden_size: int, heads: int, kv_heads: int, layers: int, **more: int) -> dict[str, int]:
    """Entries under the names that all but GPT-2 use."""
    return {
        "hidden_size": hidden_size,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "num_hidden_layers": layers,
        **more,
    }


def _source(place: str) -> str:
    return f"https://huggingface.co/{place}/blob/main/config.json"


PRESETS = (
    Preset("gpt2", "GPT-2", _source("openai-community/gpt2"), {"n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024}, "mha", bias=True),
    Preset("llama-2-7b", "Llama-2-7B", _source("meta-llama/Llama-2-7b-hf"), _entries(4096, 32, 32, 32, max_position_embeddings=4096), "mha"),
    Preset("llama-2-70b", "Llama-2-70B", _source("meta-llama/Llama-2-70b-hf"), _entries(8192, 64, 8, 80, max_position_embeddings=4096), "gqa"),
    Preset("llama-3-8b", "Llama-3-8B", _source("meta-llama/Meta-Llama-3-8B"), _entries(4096, 32, 8, 32, max_position_embeddings=8192), "gqa"),
    Preset("mistral-7b", "Mistral-7B", _source("mistralai/Mistral-7B-v0.1"), _entries(4096, 32, 8, 32, max_position_embeddings=32768, sliding_window=4096), "gqa"),
    Preset("deepseek-v2", "DeepSeek-V2", _source("deepseek-ai/DeepSeek-V2"), _entries(
        5120, 128, 128, 60, kv_lora_rank=512, q_lora_rank=1536, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, max_position_embeddings=163840,
    ), "mla"),
)  # fmt: skip


def names() -> list[str]:
    """What --preset takes."""
    return [preset.name for preset in PRESETS]


def get(name: str) -> Preset:
    """The preset of this name, in capitals or not.

    Raises
    ------
    InputError
        There is none; the likely one is suggested.
    """
    for preset in PRESETS:
        if preset.name == name.casefold():
            return preset
    raise unknown(Message("The preset"), name, names())


#: In the place of a published model where the sizes are one's own.
NONE = Preset("", "", "", {}, "")


class ComparedModel(Record):
    """A model's sizes and where they come from.

    Parameters
    ----------
    sizes : complete
    given : sizes that were given by hand
    assumed : sizes that nobody gave, and the rule each was taken by
    """

    preset: Preset
    sizes: Sizes
    given: tuple[str, ...]
    assumed: Assumed


def completed(preset: Preset, given: GivenSizes) -> ComparedModel:
    """A published model, with the sizes that were given by hand in the place of its own."""
    sizes, assumed = complete({**preset.sizes(), **given})
    return ComparedModel(preset, sizes, tuple(given), assumed)


# A config.json.

#: Bytes of a config.json; real ones have a few thousand.
_MOST_BYTES = 1_000_000
#: Signs of a title.
_LONGEST_TITLE = 24
#: Keys of which one must be there.
_NEEDED = (("hidden_size", "n_embd"), ("num_attention_heads", "n_head"), ("num_hidden_layers", "n_layer"))
#: Models whose layers see a window in turns, without a key that says so.
_IN_TURNS = {"gemma2", "gemma3", "gemma3_text", "cohere2", "gpt_oss"}
#: Models whose code, not whose file, gives the projections biases.
_WITH_BIAS = {"gpt2"}

#: What concerns attention in a config.json, by key; what it does not say is not there.
Config = Mapping[str, Any]


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
    from attncli.problems.reading import decoded, plain_json, read_bounded

    where: Message | str = Message("standard input") if path == "-" else path
    with placed(where or "“”"):
        data = read_stdin() if path == "-" else read_bounded(path, _MOST_BYTES)
        return _preset(path, _read(plain_json(decoded(data))), given)


def _read(data: object) -> Config:
    from pydantic import ValidationError

    from attncli.problems.reading import complaint

    # A model of pictures and text keeps what concerns its text apart.
    inner = data.get("text_config") if isinstance(data, dict) else None
    if isinstance(inner, dict) and isinstance(data, dict) and not any(key in data for key in _NEEDED[0]):
        data = inner
    try:
        return _schema().model_validate(data).model_dump(exclude_none=True)
    except ValidationError as error:
        raise complaint(error, "JSON", lambda _: []) from None


def _schema() -> type[BaseModel]:
    """What may stand under a key; a config.json holds much else."""
    from pydantic import Field, create_model

    def whole(key: str) -> object:
        least = 0 if key == "qk_rope_head_dim" else 1
        return Annotated[int, Field(ge=least, le=DIMENSIONS[_MEANING[key]].most, strict=True)]

    flag = Annotated[bool, Field(strict=True)]
    kinds: dict[str, Any] = {
        "model_type": str, **{key: whole(key) for key in _MEANING}, "multi_query": flag, "use_sliding_window": flag,
        "sliding_window_pattern": Any, "layer_types": list[str], "attention_bias": flag,
    }  # fmt: skip
    fields: dict[str, Any] = {key: (kind | None, None) for key, kind in kinds.items()}
    return create_model("Config", **fields)


def _preset(path: str, config: Config, given: GivenSizes) -> Preset:
    _check(config, given)
    idle = {"v_head_dim"}
    if "kv_lora_rank" not in config:  # what belongs to MLA says nothing about another attention
        idle |= {"q_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim"}
    if config.get("use_sliding_window") is False or "window" in given:
        idle.add("sliding_window")
    found = {key: config[key] for key in _MEANING if key in config and key not in idle}
    bias = config.get("attention_bias", False) or config.get("model_type") in _WITH_BIAS
    source = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in path)
    return Preset(source, _title(source), source, found, _variant(config), bias)


def _title(source: str) -> str:
    """What stands above its column: the file as it was named, or the end of that, where the folder often names the model."""
    if source == "-":
        return "config.json"
    return source if len(source) <= _LONGEST_TITLE else "/".join(Path(source).parts[-2:])[-_LONGEST_TITLE:]


def _variant(config: Config) -> str:
    """The attention it uses, by its heads of keys and values, or its latent."""
    heads = config.get("num_attention_heads") or config["n_head"]
    shared = config.get("num_key_value_heads", heads)
    if "kv_lora_rank" in config:
        return "mla"
    if config.get("multi_query") or (shared == 1 and heads != 1):
        return "mqa"
    return "mha" if shared == heads else "gqa"


def _check(config: Config, given: GivenSizes) -> None:
    """What the counts here need and cannot do without."""
    for keys in _NEEDED:
        found = [key for key in keys if key in config]
        if not found:
            raise InputError(
                "the key {key} is missing, so this is not a transformer's config.json as Hugging Face writes it. Give the sizes by hand: --d-model N --heads N --layers N.",
                key=keys[0],
            )
        if len({config[key] for key in found}) > 1:
            raise InputError("{first} and {second} say different things. Keep one.", first=found[0], second=found[1])
    if "kv_lora_rank" in config:
        for key in ("qk_nope_head_dim", "qk_rope_head_dim"):
            if key not in config:
                raise InputError("the key {key} is missing, which goes with kv_lora_rank. Add it.", key=key)
        key_width = config["qk_nope_head_dim"]
        if config.get("v_head_dim", key_width) != key_width:
            raise InputError(
                "qk_nope_head_dim is {key_width} and v_head_dim is {value_width}; here keys and values of a head are equally"
                " wide. Give the sizes by hand, once with --d-head {key_width} and once with --d-head {value_width}.",
                key_width=key_width,
                value_width=config["v_head_dim"],
            )
    if _in_turns(config) and "window" not in given:
        raise InputError(
            "sliding_window {window} holds for some of its layers only; here all layers are alike. Write --window {window}"
            " for those, or --window 0 for the others.",
            window=config["sliding_window"],
        )


def _in_turns(config: Config) -> bool:
    """Whether some layers see a window and some see everything."""
    if "sliding_window" not in config or config.get("use_sliding_window") is False:
        return False
    kinds = set(config.get("layer_types", ()))
    has_turns = "sliding_window_pattern" in config or (not kinds and config.get("model_type") in _IN_TURNS)
    return len(kinds) > 1 or has_turns
