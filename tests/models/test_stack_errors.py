"""What does not fit in a block or a stack is named: which sublayer, which operand, which axis, and what set its size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from cases import CASES, Case

from attncli.core.message import InputError

#: A case of every model: two heads, every weight and bias there; a memory three wide; two layers.
MODELS = {
    "encoder_block": CASES["encoder_block"][1],
    "decoder_block": CASES["decoder_block"][1],
    "transformer": CASES["transformer"][1],
    "gpt": CASES["gpt"][3],
    "bare gpt": CASES["gpt"][0],
    "adam": CASES["gpt"][4],
}


def message(which: str, inputs: Mapping[str, Any], **settings: Any) -> str:
    case = MODELS[which]
    model = {"bare gpt": "gpt", "adam": "gpt"}.get(which, which)
    changed = Case({**case.inputs, **inputs}, {**case.settings, **settings})
    with pytest.raises(InputError) as error:
        changed.with_upstream(model).graph()
    return str(error.value)


def misfit(name: str, shape: str, found: str, axis: str, length: int, setter: str, setter_shape: str, fix: str) -> str:
    return (
        f"{name} is {shape}: it has {found}, but the axis “{axis}” has length {length}, set by {setter} ({setter_shape})."
        f" Give {name} {fix}, or change {setter}."
    )


ENCODER = [
    ("self.W_Q", (3, 4), "self-attention: ", "3 rows", "d_model", 4, "X", "3×4", "4 rows"),
    ("self.W_K", (4, 6), "self-attention: ", "6 columns", "kv_heads·d_k", 4, "self.W_Q", "4×4", "4 columns"),
    ("self.W_V", (5, 6), "self-attention: ", "5 rows", "d_model", 4, "X", "3×4", "4 rows"),
    ("self.W_O", (4, 4), "self-attention: ", "4 rows", "heads·d_v", 6, "self.W_V", "4×6", "6 rows"),
    ("self.W_O", (6, 3), "self-attention: ", "3 columns", "d_model", 4, "X", "3×4", "4 columns"),
    ("self.b_Q", (1, 3), "self-attention: ", "3 columns", "heads·d_k", 4, "self.W_Q", "4×4", "4 columns"),
    ("self.b_V", (1, 4), "self-attention: ", "4 columns", "kv_heads·d_v", 6, "self.W_V", "4×6", "6 columns"),
    ("self.b_O", (1, 3), "self-attention: ", "3 columns", "d_model", 4, "X", "3×4", "4 columns"),
    ("norm1.gamma", (1, 3), "norm 1: ", "3 columns", "d_model", 4, "X", "3×4", "4 columns"),
    ("norm2.beta", (1, 1), "norm 2: ", "1 column", "d_model", 4, "X", "3×4", "4 columns"),
    ("ffn.W_1", (3, 3), "the feed-forward sublayer: ", "3 rows", "d_model", 4, "X", "3×4", "4 rows"),
    ("ffn.W_2", (4, 4), "the feed-forward sublayer: ", "4 rows", "d_ff", 3, "ffn.W_1", "4×3", "3 rows"),
    ("ffn.W_2", (3, 5), "the feed-forward sublayer: ", "5 columns", "d_model", 4, "X", "3×4", "4 columns"),
    ("ffn.b_1", (1, 4), "the feed-forward sublayer: ", "4 columns", "d_ff", 3, "ffn.W_1", "4×3", "3 columns"),
]
DECODER = [
    ("cross.W_Q", (3, 4), "cross-attention: ", "3 rows", "d_model", 4, "X", "3×4", "4 rows"),
    ("cross.W_K", (4, 4), "cross-attention: ", "4 rows", "d_memory", 3, "memory", "2×3", "3 rows"),
    ("cross.W_V", (2, 6), "cross-attention: ", "2 rows", "d_memory", 3, "memory", "2×3", "3 rows"),
    ("cross.W_O", (5, 4), "cross-attention: ", "5 rows", "heads·d_v", 6, "cross.W_V", "3×6", "6 rows"),
    ("cross.b_K", (1, 3), "cross-attention: ", "3 columns", "kv_heads·d_k", 4, "cross.W_Q", "4×4", "4 columns"),
    ("norm3.gamma", (1, 2), "norm 3: ", "2 columns", "d_model", 4, "X", "3×4", "4 columns"),
    ("ffn.W_1", (5, 3), "the feed-forward sublayer: ", "5 rows", "d_model", 4, "X", "3×4", "4 rows"),
]
E1, E2, D2 = "the encoder: layer 1: ", "the encoder: layer 2: ", "the decoder: layer 2: "
TRANSFORMER = [
    ("Y", (3, 5), "", "5 columns", "d_model", 4, "X", "2×4", "4 columns"),
    (
        "encoder.layer1.ffn.W_1",
        (2, 3),
        f"{E1}the feed-forward sublayer: ",
        "2 rows",
        "d_model",
        4,
        "X",
        "2×4",
        "4 rows",
    ),
    ("encoder.layer2.self.W_Q", (3, 4), f"{E2}self-attention: ", "3 rows", "d_model", 4, "X", "2×4", "4 rows"),
    ("decoder.layer2.cross.W_V", (5, 6), f"{D2}cross-attention: ", "5 rows", "d_model", 4, "X", "2×4", "4 rows"),
    ("decoder.layer2.norm2.beta", (1, 3), f"{D2}norm 2: ", "3 columns", "d_model", 4, "X", "2×4", "4 columns"),
    ("encoder.norm.gamma", (1, 2), "the encoder: the last norm: ", "2 columns", "d_model", 4, "X", "2×4", "4 columns"),
    ("W_out", (3, 5), "", "3 rows", "d_model", 4, "X", "2×4", "4 rows"),
    ("b_out", (1, 4), "", "4 columns", "vocabulary", 5, "W_out", "4×5", "5 columns"),
]
GPT = [
    ("P", (5, 3), "", "3 columns", "d_model", 4, "E", "5×4", "4 columns"),
    ("layer2.self.W_V", (3, 6), "layer 2: self-attention: ", "3 rows", "d_model", 4, "E", "5×4", "4 rows"),
    ("layer1.ffn.W_1", (5, 3), "layer 1: the feed-forward sublayer: ", "5 rows", "d_model", 4, "E", "5×4", "4 rows"),
    ("final.gamma", (1, 5), "the last norm: ", "5 columns", "d_model", 4, "E", "5×4", "4 columns"),
    ("b_out", (1, 4), "", "4 columns", "vocabulary", 5, "E", "5×4", "5 columns"),
]
BARE = [
    ("W_Q", (3, 2), "", "3 rows", "d_model", 4, "E", "5×4", "4 rows"),
    ("W_K", (4, 3), "", "3 columns", "d_k", 2, "W_Q", "4×2", "2 columns"),
    ("W_out", (3, 5), "", "3 rows", "d_v", 4, "W_V", "4×4", "4 rows"),
    ("W_out", (4, 6), "", "6 columns", "vocabulary", 5, "E", "5×4", "5 columns"),
]
ADAM = [
    ("E_m_past", (5, 3), "", "3 columns", "d_model", 4, "E", "5×4", "4 columns"),
    ("W_out_v_past", (5, 5), "", "5 rows", "d_model", 4, "E", "5×4", "4 rows"),
    ("layer1.self.W_Q_v_past", (4, 2), "", "2 columns", "heads·d_k", 4, "layer1.self.W_Q", "4×4", "4 columns"),
]
EACH = [
    (which, *row)
    for which, rows in [
        ("encoder_block", ENCODER),
        ("decoder_block", DECODER),
        ("transformer", TRANSFORMER),
        ("gpt", GPT),
        ("bare gpt", BARE),
        ("adam", ADAM),
    ]
    for row in rows
]


@pytest.mark.parametrize(
    ("which", "name", "shape", "where", "found", "axis", "length", "setter", "setter_shape", "fix"),
    EACH,
    ids=[f"{row[0]}-{row[1]}-{'x'.join(map(str, row[2]))}" for row in EACH],
)
def test_the_sublayer_the_operand_the_axis_and_what_set_it_are_named(
    which: str,
    name: str,
    shape: tuple[int, ...],
    where: str,
    found: str,
    axis: str,
    length: int,
    setter: str,
    setter_shape: str,
    fix: str,
) -> None:
    shown = "×".join(map(str, shape))
    text = message(which, {name: np.ones(shape)})
    assert text == where + misfit(name, shown, found, axis, length, setter, setter_shape, fix)


def test_tokens_of_another_width() -> None:
    text = message("encoder_block", {"X": np.ones((3, 5))})
    assert text == "norm 1: " + misfit("norm1.gamma", "1×4", "4 columns", "d_model", 5, "X", "3×5", "5 columns")
    text = message("decoder_block", {"memory": np.ones((2, 4))})
    assert text == "cross-attention: " + misfit("cross.W_K", "3×4", "3 rows", "d_memory", 4, "memory", "2×4", "4 rows")
    text = message("gpt", {"E": np.ones((5, 3))})
    assert text == misfit("P", "5×4", "4 columns", "d_model", 3, "E", "5×3", "3 columns")


def test_a_vector_of_several_rows() -> None:
    assert message("gpt", {"layer1.norm1.gamma": np.ones((2, 4))}) == (
        "layer 1: norm 1: layer1.norm1.gamma is 2×4, but it is a vector: all rows share it. Write one row of 4."
    )
    assert message("encoder_block", {"ffn.b_1": np.ones((2, 2))}).endswith("Write one row of 3.")


def test_a_weight_with_a_head_axis() -> None:
    assert message("encoder_block", {"self.W_Q": np.ones((2, 4, 2))}) == (
        "self-attention: self.W_Q has shape 2×4×2, but it needs 2 axes: d_model × heads·d_k. Write rows separated by “;”,"
        " like “1 2; 3 4”."
    )


def test_heads_that_cannot_share() -> None:
    text = (
        "self.W_Q is 4×4: 3 heads cannot share 4 columns evenly. Give self.W_Q a number of columns that 3 divides, or"
    )
    assert message("encoder_block", {}, heads=3) == f"self-attention: {text} change heads."
    text = "2 query heads cannot share 3 heads of keys and values evenly. Give kv_heads a number that divides 2."
    assert message("decoder_block", {}, kv_heads=3) == f"self-attention: {text}"
    text = message("decoder_block", {"cross.W_V": np.ones((3, 5))})
    assert text.startswith("cross-attention: cross.W_V is 3×5: 2 heads cannot share 5 columns evenly.")


def test_masks_are_called_what_they_were_called() -> None:
    fix = "one row per query and one column per key ({}), or a single row of {} that holds for every query."
    assert message("decoder_block", {}, cross_hide=[[True, False, False]]) == (
        "cross-attention: cross_hide is 1×3, but the scores are 2×3×2. Give cross_hide " + fix.format("3×2", 2)
    )
    assert message("decoder_block", {}, mask=[[0.5, 0.5]]) == (
        "self-attention: mask is 1×2, but the scores are 2×3×3. Give mask " + fix.format("3×3", 3)
    )
    assert message("transformer", {}, cross_keep=[[True] * 5]) == (
        "the encoder: layer 1: self-attention: cross_keep is 1×5, but the scores are 2×2×2. Give cross_keep "
        + fix.format("2×2", 2)
    )
    assert message("transformer", {}, cross_mask=[[0.5, 0.25, 1.0]] * 3).startswith(
        "the decoder: layer 1: cross-attention: cross_mask is 3×3, but the scores are 2×3×2."
    )


def test_positions_for_fewer_places_than_tokens() -> None:
    assert message("gpt", {"P": np.ones((3, 4))}) == (
        "P is 3×4: it has vectors for 3 places, but there are 4 tokens. Give P a row for each token."
    )


def test_what_adam_remembers_has_sense() -> None:
    text = message("adam", {"E_v_past": -np.ones((5, 4))})
    assert text == "E_v_past has a negative number, but it is a mean of squares. Give numbers from 0."
    for name in ("beta1", "beta2"):
        assert message("adam", {}, **{name: 1}).startswith(f"{name} is 1, but it is the share of the old mean")
    assert message("adam", {}, beta2=-0.5).startswith("beta2 is -0.5")
