"""The published table and the claims, with numbers from outside."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from comparing import data, shown
from hypothesis import given, settings
from hypothesis import strategies as st

from attncli.cost.claims import (
    HEADS,
    claims,
    largest_difference,
    on_same_weights,
    one_by_one,
    seeded_weights,
    together,
)
from attncli.cost.count import VARIANTS, Sizes, complete, count
from attncli.cost.published import NONE, ComparedModel


def found(sizes: Sizes) -> dict[str, list[tuple[Fraction, bool]]]:
    """Every claim's ratios and whether it holds."""
    examined = claims({variant: [ComparedModel(NONE, sizes, (), {})] for variant in VARIANTS})
    return {claim.id: [(one.ratio.value, one.holds) for one in claim.findings] for claim in examined}


widths = st.integers(1, 200)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), widths, widths, st.integers(1, 90))
def test_factors_of_mqa_and_gqa_hold_at_all_sizes(
    groups: int, shared: int, d_head: int, d_model: int, layers: int
) -> None:
    heads = groups * shared
    sizes, _ = complete({"d_model": d_model, "heads": heads, "kv_heads": groups, "d_head": d_head, "layers": layers})
    assert found(sizes)["mqa-cache"] == [(heads, True)]
    assert found(sizes)["gqa-cache"] == [(shared, True)]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 300), st.integers(1, 50), st.integers(1, 90))
def test_a_tenth_is_a_matter_of_heads(heads: int, quarter: int, layers: int) -> None:
    """With DeepSeek-V2's proportions the share is 2.25 over the heads."""
    sizes, _ = complete({"d_model": 64, "heads": heads, "d_head": 4 * quarter, "layers": layers})
    ((ratio, holds),) = found(sizes)["mla-cache"]
    assert ratio == Fraction(9, 4) / heads
    assert holds == (15 <= heads <= 45)


@pytest.mark.parametrize(
    ("preset", "holds"),
    [("gpt2", False), ("llama-2-7b", True), ("llama-2-70b", False), ("deepseek-v2", False)],
)
def test_a_tenth_at_published_sizes(preset: str, holds: bool) -> None:
    (claim,) = [one for one in data("mla", "--preset", preset)["claims"] if one["id"] == "mla-cache"]
    assert [one["holds"] for one in claim["findings"]] == [holds]


@settings(max_examples=40, deadline=None)
@given(widths, widths, st.sampled_from([0, 2, 64]))
def test_rank_in_every_reading(heads: int, d_head: int, d_rope: int) -> None:
    width = heads * d_head
    sizes, _ = complete({"d_model": width, "heads": heads, "d_head": d_head, "d_rope": d_rope})
    ratios = [Fraction(width, 64), Fraction(2 * width, 64), Fraction(2 * width, 64 + d_rope), Fraction(width, 2 * 64)]
    expected = ratios if d_rope else [ratios[0], ratios[1], ratios[3]]
    assert found(sizes)["rank"] == [(ratio, ratio == 16) for ratio in expected]


@pytest.mark.parametrize(
    ("d_model", "holding"),
    [(1024, {0}), (512, {1}), (2048, {3}), (4096, set())],
    ids=["keys", "both", "weights", "none"],
)
def test_where_rank_64_is_16_fold(d_model: int, holding: set[int]) -> None:
    words = ("mla", "--d-model", str(d_model), "--heads", "8", "--d-rope", "0")
    findings = next(one for one in data(*words)["claims"] if one["id"] == "rank")["findings"]
    places = {0: 0, 1: 1, 2: 3}  # without a rotary part the third reading is left out
    assert {places[i] for i, one in enumerate(findings) if one["holds"]} == holding


def test_published_table_in_symbols_and_numbers() -> None:
    """CURRICULUM's table: MHA 2·n_h·d_h·l, GQA 2·n_g·d_h·l, MQA 2·d_h·l, MLA (d_c + d_h^R)·l = 4.5·d_h·l, 2.25 groups."""
    entries = {one["variant"]: one for one in data()["entries"]}
    assert {name: one["cache_formula"] for name, one in entries.items()} == {
        "mha": "2·n_h·d_h·l",
        "gqa": "2·n_g·d_h·l",
        "mqa": "2·d_h·l",
        "mla": "(d_c + d_h^R)·l",
    }
    n_h, n_g, d_h, layers = 32, 8, 128, 32
    assert {name: one["cache_elements_per_token"] for name, one in entries.items()} == {
        "mha": 2 * n_h * d_h * layers,
        "gqa": 2 * n_g * d_h * layers,
        "mqa": 2 * d_h * layers,
        "mla": 4.5 * d_h * layers,
    }
    assert data()["mla_as_gqa"] == [{"model": "llama-2-7b", "head_widths": 4.5, "groups": 2.25}]
    text = " ".join(shown().split())
    assert "MLA (d_c + d_h^R)·l = (512 + 64)·32 = 18,432" in text
    assert "caches 4.5·d_h·l (18,432 / 4,096 = 4.5), as much as GQA with 2.25 groups (18,432 / 8,192 = 2.25)" in text


def test_other_proportions_are_told_from_the_papers() -> None:
    sizes, _ = complete({"d_model": 8, "heads": 2, "d_c": 3, "d_rope": 2})
    latent = count("mla", sizes)
    assert (latent.widths.value, latent.groups.value) == (Fraction(5, 4), Fraction(5, 8))
    text = " ".join(shown("mla", "--d-model", "8", "--heads", "2", "--d-c", "3", "--d-rope", "2").split())
    assert "The paper's proportions, 4 and 0.5, give 4.5·d_h·l and 2.25 groups." in text


@pytest.mark.parametrize("seed", range(5))
def test_same_weights_same_numbers(seed: int) -> None:
    result = on_same_weights(seed)
    assert [row[:2] for row in result.rows] == [("mqa", 1), ("gqa", 2), ("mha", HEADS)]
    assert all(difference < 1e-14 for _, _, difference in result.rows)
    assert result.absorbed < 1e-14
    assert result.apart > 0.01


def test_heads_one_by_one_in_plain_numpy() -> None:
    """The comparison's own second way, against a third without any of our models."""
    weights = seeded_weights(7)
    x, d = weights["X"], weights["W_Q"].shape[1] // HEADS
    hidden = np.triu(np.full((len(x), len(x)), -np.inf), 1)
    for kv_heads in (1, 2, HEADS):
        heads = []
        for h in range(HEADS):
            g = h // (HEADS // kv_heads)
            q, k, v = (x @ weights[name][:, i * d : (i + 1) * d] for name, i in (("W_Q", h), ("W_K", g), ("W_V", g)))
            scores = np.exp(q @ k.T / np.sqrt(d) + hidden)
            heads.append(scores / scores.sum(1, keepdims=True) @ v)
        expected = np.hstack(heads) @ weights["W_O"]
        assert largest_difference(one_by_one(weights, kv_heads), expected) < 1e-14
        assert largest_difference(together(weights, kv_heads), expected) < 1e-14
