"""The operator tests of ONNX (onnx/index.json says where they come from; licence Apache-2.0), met by our models.

Every test case that was gathered is met: Attention, Softmax, LayerNormalization, RMSNormalization, RotaryEmbedding. Not
compared: `softmax_precision`, which no case sets.

What ONNX does differently is put into our words here: a batch is a loop; inputs of three axes are cut into heads; a mask
shorter than the keys hides the rest; `nonpad_kv_seqlen` (a cache of fixed size of which only so many keys are filled) is a
`keep`, and then the causal triangle ends at the last filled key. Without a cache ONNX lays the causal triangle at the top
left, and after `past_key` it counts from the end of it, as we do.
A norm from `axis` on is a norm of rows, after what stands before the axis has been laid out as rows and the rest as columns.
The cosines and sines of a rotary case are random numbers, no angle's; they stand in for our steps `cos` and `sin`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attncli.core.graph import Trace
from attncli.core.matrix import as_matrix
from attncli.problems.problem import Problem

FOLDER = Path(__file__).with_name("onnx")
INDEX = json.loads((FOLDER / "index.json").read_text(encoding="utf-8"))
CASES = {case["case"]: case for case in INDEX["cases"]}
ATTENTION = [name for name, case in CASES.items() if case["op"] == "Attention"]
SOFTMAX = [name for name, case in CASES.items() if case["op"] == "Softmax"]

NORMS = [name for name, case in CASES.items() if case["op"] in ("LayerNormalization", "RMSNormalization")]
ROTARY = [name for name, case in CASES.items() if case["op"] == "RotaryEmbedding"]

#: The step that `qk_matmul_output` holds, by `qk_matmul_output_mode`; the last of these that was written.
MODES = {
    0: ["scores", "scaled"],
    1: ["scores", "scaled", "capped"],
    2: ["scores", "scaled", "capped", "masked"],
    3: ["A"],
}
#: bfloat16 has 8 bits: its numbers lie 2⁻⁸ apart (relative), more than the tolerance of the index. Scores,
#: weights, products and output were each rounded to it there; up to 2.4 such steps are seen in one entry.
PRECISION = {"bfloat16(as float32)": 4 * 2.0**-8}


def load(name: str) -> dict[str, np.ndarray]:
    """Inputs by slot and outputs by slot, of one case."""
    case = CASES[name]
    with np.load(FOLDER / case["file"], allow_pickle=False) as arrays:
        return {part["slot"]: arrays[part["key"]] for part in (*case["inputs"], *case["outputs"])}


def heads_of(values: np.ndarray, heads: int | None) -> np.ndarray:
    """batch × head × row × width, from that or from batch × row × (head · width)."""
    if values.ndim == 4:
        return values
    batch, rows, width = values.shape
    assert heads is not None
    return values.reshape(batch, rows, heads, width // heads).swapaxes(1, 2)


def mask_of(mask: np.ndarray, batch: int, shape: tuple[int, int, int]) -> np.ndarray:
    """The mask of one batch entry, head × query × key; keys it does not reach are hidden."""
    missing = shape[-1] - mask.shape[-1]
    fill = False if mask.dtype == np.bool_ else -np.inf
    padded = np.pad(mask, [(0, 0)] * (mask.ndim - 1) + [(0, missing)], constant_values=fill)
    own = padded[min(batch, len(padded) - 1)] if padded.ndim == 4 else padded
    return np.broadcast_to(own, shape)


def filled(case: dict[str, Any], n: int, m: int, length: int) -> np.ndarray:
    """`keep` for a cache of m keys of which `length` are filled, the last n of them by the queries' own tokens."""
    asked = case["attributes"]
    i, j = np.arange(n)[:, None] + length - n, np.arange(m)[None, :]
    keep = np.broadcast_to(j < length, (n, m))
    if asked.get("is_causal"):
        keep = keep & (j <= i)
    if asked.get("left_window_size", -1) >= 0:
        keep = keep & (j >= i - asked["left_window_size"])
    return keep


def settings_of(case: dict[str, Any], data: dict[str, np.ndarray], batch: int, shape: tuple[int, int, int]) -> Any:
    asked = case["attributes"]
    settings: dict[str, Any] = {name: float(asked[name]) for name in ("scale", "softcap") if name in asked}
    if "attn_mask" in data:
        mask = mask_of(data["attn_mask"], batch, shape)
        settings["keep" if mask.dtype == np.bool_ else "mask"] = mask
    if "nonpad_kv_seqlen" in data:
        settings["keep"] = filled(case, *shape[1:], int(data["nonpad_kv_seqlen"][batch]))
        return settings
    settings["causal"] = bool(asked.get("is_causal"))
    if {"left_window_size", "right_window_size"} & set(asked):
        settings["window"] = [asked.get("left_window_size", -1), asked.get("right_window_size", -1)]
    return settings


def trace_of(name: str, data: dict[str, np.ndarray], batch: int) -> Trace:
    """Our attention of one batch entry."""
    case = CASES[name]
    asked = case["attributes"]
    q = heads_of(data["Q"], asked.get("q_num_heads"))[batch]
    k, v = (heads_of(data[slot], asked.get("kv_num_heads"))[batch] for slot in "KV")
    inputs = {"Q": q, "K": k, "V": v}
    past = 0
    if "past_key" in data:
        inputs |= {"K_past": data["past_key"][batch], "V_past": data["past_value"][batch]}
        past = inputs["K_past"].shape[-2]
    settings = settings_of(case, data, batch, (len(q), q.shape[1], k.shape[1] + past))
    matrices = {id: as_matrix(values) for id, values in inputs.items()}
    return Problem("attention", matrices, settings=settings).graph().evaluate()


def assert_equal(ours: np.ndarray, theirs: np.ndarray, case: dict[str, Any], slot: str) -> None:
    """Within the tolerance of the index, or the precision of the format the case was computed in."""
    (dtype,) = [part["dtype"] for part in case["outputs"] if part["slot"] == slot]
    close, near = INDEX["tolerances"]["rtol"], INDEX["tolerances"]["atol"]
    close = max(close, PRECISION.get(dtype, 0.0))
    np.testing.assert_allclose(ours, theirs.astype(np.float64), rtol=close, atol=near, err_msg=slot)


@pytest.mark.parametrize("name", ATTENTION)
def test_attention_meets_the_operator_test(name: str) -> None:
    case, data = CASES[name], load(name)
    outputs = heads_of(data["Y"], case["attributes"].get("q_num_heads"))
    mode = MODES[case["attributes"].get("qk_matmul_output_mode", 0)]
    for batch, expected in enumerate(outputs):
        trace = trace_of(name, data, batch)
        assert_equal(trace["O"], expected, case, "Y")
        if "present_key" in data:
            assert np.array_equal(trace["K_all"], data["present_key"][batch])
            assert np.array_equal(trace["V_all"], data["present_value"][batch])
        if "qk_matmul_output" in data:
            step = [id for id in mode if id in trace][-1]
            assert_equal(trace[step], data["qk_matmul_output"][batch], case, "qk_matmul_output")


@pytest.mark.parametrize("name", SOFTMAX)
def test_softmax_meets_the_operator_test(name: str) -> None:
    case, data = CASES[name], load(name)
    assert case["attributes"].get("axis", -1) in (-1, data["input"].ndim - 1)
    trace = Problem("softmax", {"scores": as_matrix(data["input"])}).graph().evaluate()
    assert_equal(trace["A"], data["output"], case, "output")


def rows_of(values: np.ndarray, axis: int) -> np.ndarray:
    """What stands before the axis as rows, the rest as columns."""
    return values.reshape(int(np.prod(values.shape[:axis])), -1)


@pytest.mark.parametrize("name", NORMS)
def test_a_norm_meets_the_operator_test(name: str) -> None:
    case, data = CASES[name], load(name)
    layer = case["op"] == "LayerNormalization"
    axis = case["attributes"].get("axis", -1) % data["X"].ndim
    inputs = {"X": as_matrix(rows_of(data["X"], axis)), "gamma": as_matrix(data["Scale" if layer else "scale"].ravel())}
    if layer:
        inputs["beta"] = as_matrix(data["B"].ravel())
    settings = {"eps": float(case["attributes"].get("epsilon", 1e-5))}
    trace = Problem("layer_norm" if layer else "rms_norm", inputs, settings=settings).graph().evaluate()
    assert_equal(trace["Y"], rows_of(data["Y"], axis), case, "Y")
    if layer:
        # A mean of numbers that nearly cancel is held against their size; single precision keeps no more of it.
        near = 1e-6 * np.abs(data["X"]).max()
        np.testing.assert_allclose(
            trace["mean"], rows_of(data["Mean"], axis), rtol=INDEX["tolerances"]["rtol"], atol=near
        )
        assert_equal(1 / trace["std"], rows_of(data["InvStdDev"], axis), case, "InvStdDev")


@pytest.mark.parametrize("name", ROTARY)
def test_rotary_meets_the_operator_test(name: str) -> None:
    case, data = CASES[name], load(name)
    asked = case["attributes"]
    settings: dict[str, Any] = {"pairing": "adjacent" if asked.get("interleaved") else "half"}
    if asked.get("rotary_embedding_dim"):
        settings["rotary_dim"] = asked["rotary_embedding_dim"]
    for batch, x in enumerate(data["X"]):
        graph = Problem("rotary", {"X": as_matrix(x)}, settings=settings).graph()
        rows = data["position_ids"][batch] if "position_ids" in data else batch
        waves = {id: data[f"{id}_cache"][rows].astype(np.float64) for id in ("cos", "sin")}
        assert_equal(graph.evaluate(given=waves)["rotated"], data["Y"][batch], case, "Y")


def test_every_file_is_tested_and_its_licence_is_named() -> None:
    assert {path.name for path in FOLDER.glob("*.npz")} == {case["file"] for case in CASES.values()}
    assert set(CASES) == {*ATTENTION, *SOFTMAX, *NORMS, *ROTARY} and len(CASES) == 59
    assert INDEX["license"] == "Apache-2.0"
    attributes = {name for case in CASES.values() for name in case["attributes"]}
    assert "softmax_precision" not in attributes


def test_the_causal_triangle_sits_at_the_top_left_without_a_cache() -> None:
    data = load("test_attention_3d_causal")
    weights = trace_of("test_attention_3d_causal", data, 0)["A"]
    assert weights.shape[1:] == (4, 6)
    assert np.array_equal(weights > 0, np.broadcast_to(np.tri(4, 6) > 0, weights.shape))
