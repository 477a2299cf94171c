"""What is counted is what the models compute: against the graphs, and against what others have published."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from comparing import hidden_pairs, latent, multi_head, multiply_adds, parameters
from hypothesis import given, settings
from hypothesis import strategies as st

from attncli.cost import published
from attncli.cost.count import VARIANTS, Count, Sizes, complete, count


def some_sizes() -> st.SearchStrategy[Sizes]:
    """Small sizes of every shape."""
    small = st.integers(1, 4)
    given: dict[str, st.SearchStrategy[Any]] = {
        "d_model": st.integers(1, 7),
        "groups": small,
        "shared": st.integers(1, 3),
        "d_head": small,
        "d_c": small,
        "d_c_q": st.integers(0, 4),
        "d_rope": st.sampled_from([0, 2, 4]),
        "layers": st.integers(1, 3),
        "context": st.integers(1, 6),
        "bias": st.booleans(),
        "causal": st.booleans(),
    }

    def made(groups: int, shared: int, **others: Any) -> Sizes:
        return complete({"heads": groups * shared, "kv_heads": groups, **others})[0]

    return st.builds(made, **given)


def kv_heads(variant: str, sizes: Sizes) -> int:
    return {"mha": sizes.heads, "mqa": 1, "gqa": sizes.kv_heads}[variant]


def one_layer(found: Count, part: str) -> int:
    layers = found.sizes.layers
    assert found.total(part) % layers == 0
    return found.total(part) // layers


@settings(max_examples=50, deadline=None)
@given(some_sizes())
@pytest.mark.parametrize("variant", ["mha", "mqa", "gqa"])
def test_shared_heads_as_the_graph_computes_them(variant: str, sizes: Sizes) -> None:
    found = count(variant, sizes)
    groups = kv_heads(variant, sizes)
    graph = multi_head(sizes, groups, tokens=sizes.context)
    assert one_layer(found, "weights") == parameters(graph)
    # The graph multiplies all pairs and masks some afterwards; a hidden pair costs a score and a share of the values.
    unseen = hidden_pairs(graph) * sizes.heads * 2 * sizes.d_head
    assert one_layer(found, "prefill") == multiply_adds(graph) - unseen
    step = multi_head(sizes, groups, tokens=1, past=sizes.context - 1)
    assert one_layer(found, "decode") == multiply_adds(step)
    cached = (
        graph.shape("K_heads")[0] * graph.shape("K_heads")[2] + graph.shape("V_heads")[0] * graph.shape("V_heads")[2]
    )
    assert found.cache.value == cached * sizes.layers
    assert "absorbed" not in found.parts


@settings(max_examples=50, deadline=None)
@given(some_sizes())
def test_latent_as_the_graph_computes_it(sizes: Sizes) -> None:
    found = count("mla", sizes)
    graph = latent(sizes, tokens=sizes.context)
    assert one_layer(found, "weights") == parameters(graph)
    unseen = hidden_pairs(graph) * sizes.heads * (2 * sizes.d_head + sizes.d_rope)
    assert one_layer(found, "prefill") == multiply_adds(graph) - unseen
    for part, absorbed in (("decode", False), ("absorbed", True)):
        step = latent(sizes, tokens=1, past=sizes.context - 1, absorbed=absorbed)
        assert one_layer(found, part) == multiply_adds(step), part


@settings(max_examples=50, deadline=None)
@given(some_sizes())
def test_one_group_is_mqa_and_a_group_for_every_head_is_mha(sizes: Sizes) -> None:
    for groups, variant in ((1, "mqa"), (sizes.heads, "mha")):
        as_groups = count("gqa", sizes.changed(kv_heads=groups))
        other = count(variant, sizes)
        for part in ("weights", "prefill", "decode"):
            assert as_groups.total(part) == other.total(part)
        assert as_groups.cache.value == other.cache.value


@settings(max_examples=50, deadline=None)
@given(some_sizes(), st.integers(1, 6))
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_window_cuts_what_it_hides(variant: str, sizes: Sizes, window: int) -> None:
    sizes = sizes.changed(causal=True)
    free, cut = count(variant, sizes), count(variant, sizes.changed(window=window))
    seen = [min(i, window) for i in range(1, sizes.context + 1)]
    assert cut.sizes.pairs == sum(seen)
    assert cut.full_cache_bytes == cut.cache_bytes * seen[-1]
    assert cut.total("weights") == free.total("weights")
    assert cut.total("prefill") <= free.total("prefill")
    # A token that sees w others decodes as if there were no more than w.
    assert cut.total("decode") == count(variant, sizes.changed(context=seen[-1])).total("decode")


@settings(max_examples=40, deadline=None)
@given(some_sizes())
@pytest.mark.parametrize("variant", VARIANTS)
def test_layers_multiply_everything_and_bytes_only_the_cache(variant: str, sizes: Sizes) -> None:
    once, twice = count(variant, sizes), count(variant, sizes.changed(layers=2 * sizes.layers, bytes=2 * sizes.bytes))
    for part in once.parts:
        assert twice.total(part) == 2 * once.total(part)
    assert twice.cache.value == 2 * once.cache.value
    assert twice.full_cache_bytes == 4 * once.full_cache_bytes


#: The whole model's parameters as published, and what of them is not attention, from the same config.json:
#: embeddings, feed-forward, norms. Totals: GPT-2's, Llama's and Mistral's are those their released weights sum to
#: (also in the metadata of the files on the hub); DeepSeek-V2's is its total on the hub, 236B in the paper.
TOTALS: dict[str, tuple[int, int]] = {
    # Token and position embeddings (tied), 12 × (4·d feed-forward with biases, two LayerNorms), the last LayerNorm.
    "gpt2": (
        124_439_808,
        50257 * 768 + 1024 * 768 + 12 * (2 * 768 * 3072 + 3072 + 768 + 2 * 2 * 768) + 2 * 768,
    ),
    # Embeddings in and out, the three matrices of SwiGLU, two RMSNorms a layer and the last one.
    "llama-2-7b": (6_738_415_616, 2 * 32000 * 4096 + 32 * (3 * 4096 * 11008 + 2 * 4096) + 4096),
    "llama-2-70b": (68_976_648_192, 2 * 32000 * 8192 + 80 * (3 * 8192 * 28672 + 2 * 8192) + 8192),
    "llama-3-8b": (8_030_261_248, 2 * 128256 * 4096 + 32 * (3 * 4096 * 14336 + 2 * 4096) + 4096),
    "mistral-7b": (7_241_732_096, 2 * 32000 * 4096 + 32 * (3 * 4096 * 14336 + 2 * 4096) + 4096),
    # 160 routed and 2 shared experts with their router in 59 layers, a dense first layer; beside the two norms of
    # a layer there is one behind each latent, which is no projection and not counted.
    "deepseek-v2": (
        235_741_434_880,
        2 * 102400 * 5120
        + 59 * (3 * 5120 * 1536 * (160 + 2) + 160 * 5120)
        + 3 * 5120 * 12288
        + 60 * (2 * 5120 + 512 + 1536)
        + 5120,
    ),
}


@pytest.mark.parametrize("name", published.names())
def test_parameters_complete_the_published_total(name: str) -> None:
    """Attention as counted and everything else make up the model, to the last parameter."""
    total, elsewhere = TOTALS[name]
    model = published.completed(published.get(name), {})
    assert count(model.preset.variant, model.sizes).total("weights") == total - elsewhere


def test_llama_2_7b_attention_of_one_layer() -> None:
    """Four matrices of 4096 × 4096."""
    model = published.completed(published.get("llama-2-7b"), {})
    assert one_layer(count("mha", model.sizes), "weights") == 67_108_864


#: Bytes per token in 16 bits, as they are commonly stated.
PER_TOKEN = {
    "gpt2": 36 * 1024,
    "llama-2-7b": 512 * 1024,
    "llama-2-70b": 320 * 1024,
    "llama-3-8b": 128 * 1024,
    "mistral-7b": 128 * 1024,
    "deepseek-v2": 69_120,
}


@pytest.mark.parametrize("name", published.names())
def test_cache_of_published_models(name: str) -> None:
    model = published.completed(published.get(name), {})
    assert count(model.preset.variant, model.sizes).cache_bytes == PER_TOKEN[name]


def test_deepseek_v3_from_its_sizes() -> None:
    """61 layers instead of 60: 70,272 bytes per token."""
    sizes, assumed = complete({"d_model": 7168, "heads": 128, "d_head": 128, "d_c": 512, "d_rope": 64, "layers": 61})
    assert count("mla", sizes).cache_bytes == 70_272
    assert set(assumed) == {"kv_heads", "d_c_q", "context", "bytes"}


@pytest.mark.parametrize("preset", published.PRESETS, ids=lambda preset: preset.name)
def test_presets_name_their_source(preset: published.Preset) -> None:
    assert preset.source.startswith("https://huggingface.co/") and preset.source.endswith("/config.json")
    assert preset.variant in VARIANTS
    assert preset.sizes()["d_model"] in preset.config.values()


def test_what_is_taken_where_nothing_is_said() -> None:
    sizes, _ = complete({"d_model": 4096, "heads": 32})
    assert (sizes.d_head, sizes.kv_heads, sizes.d_c, sizes.d_rope, sizes.d_c_q) == (128, 8, 512, 64, 0)
    assert sizes.bytes == Fraction(2)
    odd, _ = complete({"d_model": 21, "heads": 7})
    assert (odd.d_head, odd.kv_heads, odd.d_c, odd.d_rope) == (3, 1, 12, 2)
