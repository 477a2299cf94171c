"""Sizes of published models, as their public config.json files give them.

`config` holds the entries that concern attention, under the names and with the values of the file; what a file
leaves to the model's code (GPT-2's biases) stands beside it.
"""

from __future__ import annotations

from collections.abc import Mapping

from attncli.core.message import Message, unknown
from attncli.core.record import Record


class Preset(Record):
    """A published model.

    Parameters
    ----------
    name : what --preset takes
    title : what its authors call it
    source : the address of its config.json
    config : entries of that file
    variant : the attention it uses
    bias : its projections have biases
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


#: What an entry of a config.json is called here; GPT-2 has names of its own.
_MEANING = {
    "hidden_size": "d_model",
    "n_embd": "d_model",
    "num_attention_heads": "heads",
    "n_head": "heads",
    "num_key_value_heads": "kv_heads",
    "head_dim": "d_head",
    "qk_nope_head_dim": "d_head",
    "num_hidden_layers": "layers",
    "n_layer": "layers",
    "kv_lora_rank": "d_c",
    "q_lora_rank": "d_c_q",
    "qk_rope_head_dim": "d_rope",
    "max_position_embeddings": "context",
    "n_positions": "context",
    "sliding_window": "window",
}


def _source(place: str) -> str:
    return f"https://huggingface.co/{place}/blob/main/config.json"


def _entries(hidden_size: int, heads: int, kv_heads: int, layers: int, **more: int) -> dict[str, int]:
    """Entries under the names that all but GPT-2 use."""
    return {
        "hidden_size": hidden_size,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "num_hidden_layers": layers,
        **more,
    }


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
