"""Multi-head attention: its ids, what goes where, sharing by numbers, and the mistakes that are named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import CASES, Case, heads, message, some, trace_of

from attncli.core.graph import Graph, Trace
from attncli.core.matrix import as_matrix
from attncli.marking.feedback import Marked
from attncli.marking.mark import Marker
from attncli.models.heads import multi_head
from attncli.models.model import Part
from attncli.models.positions import rotation
from attncli.problems.answers import sheet
from attncli.problems.problem import Problem, arithmetic_called

SOFTMAX = ["row_max", "shifted", "exp", "row_sum", "A"]
FORWARD = ["Q", "K", "V", "Q_heads", "K_heads", "V_heads", "scores", "scaled", *SOFTMAX, "O", "concat", "output"]
BACKWARD = [
    *("G_W_O", "G_concat", "G_O", "G_V_heads", "G_A", "weighted", "row_dot", "deviation", "G_scaled", "G_scores"),
    *("G_Q_heads", "G_K_heads", "G_Q", "G_K", "G_V", "G_W_Q", "G_W_K", "G_W_V", "G_X_Q", "G_X_K", "G_X_V", "G_X"),
]


def ids_of(case: Case) -> list[str]:
    return list(case.with_upstream("multi_head").graph().steps)


def test_the_steps_of_plain_heads() -> None:
    found = ids_of(CASES["multi_head"][0])
    assert found[: len(FORWARD)] == FORWARD
    assert sorted(found[len(FORWARD) :]) == sorted(BACKWARD)


def test_shared_heads_add_their_steps() -> None:
    found = ids_of(CASES["multi_head"][2])
    assert found[found.index("V_heads") + 1 : found.index("scores")] == ["K_shared", "V_shared"]
    for name in "KV":
        assert found.index(f"G_{name}_shared") < found.index(f"G_{name}_heads") < found.index(f"G_{name}")
    assert {"G_b_Q", "G_b_K", "G_b_V", "G_b_O"} <= set(found)


def test_cross_attention_ends_in_two_gradients() -> None:
    found = ids_of(CASES["multi_head"][4])
    assert {"G_X", "G_X_kv", "G_X_kv_K", "G_X_kv_V"} <= set(found)
    assert not {"G_X_Q", "G_X_K"} & set(found)


def test_what_goes_where() -> None:
    trace = trace_of("multi_head", heads(3, 4, 2, 3, 4, 2), heads=2)
    for h in range(2):
        assert np.array_equal(trace["Q_heads"][h], trace["Q"][:, 2 * h : 2 * h + 2])
        assert np.array_equal(trace["V_heads"][h], trace["V"][:, 3 * h : 3 * h + 3])
        assert np.array_equal(trace["concat"][:, 3 * h : 3 * h + 3], trace["O"][h])


def test_each_head_is_an_attention_of_its_own() -> None:
    inputs = heads(3, 4, 2, 3, 4, 2)
    whole = trace_of("multi_head", inputs, heads=2, causal=True)
    for h in range(2):
        q, k, v = (whole[f"{name}_heads"][h] for name in "QKV")
        alone = Case({"Q": q, "K": k, "V": v}, {"causal": True}).problem("attention").graph().evaluate()
        np.testing.assert_allclose(whole["O"][h], alone["O"], rtol=1e-14)


def repeated(inputs: dict[str, Any], kv: int, times: int) -> dict[str, Any]:
    """The same weights with every head of keys and values written out for each of its query heads."""

    def spelled(w: Any) -> Any:
        return np.concatenate([part for part in np.split(w, kv, axis=1) for _ in range(times)], axis=1)

    return inputs | {name: spelled(inputs[name]) for name in ("W_K", "W_V")}


@pytest.mark.parametrize(("h", "kv"), [(4, 1), (4, 2), (6, 3)])
def test_shared_heads_equal_the_same_head_written_out(h: int, kv: int) -> None:
    """kv_heads=1 is MQA: MHA whose heads happen to have equal keys and values; between, GQA."""
    inputs = heads(3, 4, 2, 3, 4, h, kv)
    few = trace_of("multi_head", inputs, heads=h, kv_heads=kv, causal=True)
    many = trace_of("multi_head", repeated(inputs, kv, h // kv), heads=h, causal=True)
    np.testing.assert_allclose(few["output"], many["output"], rtol=1e-12)
    assert np.array_equal(few["K_shared"], many["K_heads"])


def test_as_many_heads_of_keys_as_of_queries_is_plain() -> None:
    inputs = heads(3, 4, 2, 3, 4, 2)
    one, other = trace_of("multi_head", inputs, heads=2, kv_heads=2), trace_of("multi_head", inputs, heads=2)
    assert np.array_equal(one["output"], other["output"]) and "K_shared" not in one


def test_one_head_with_an_identity_at_the_end_is_self_attention() -> None:
    inputs = heads(3, 4, 2, 3, 3, 1) | {"W_O": np.eye(3)}
    own = {name: inputs[name] for name in ("X", "W_Q", "W_K", "W_V")}
    alone = Case(own, {"causal": True}).problem("self_attention").graph().evaluate()
    np.testing.assert_allclose(trace_of("multi_head", inputs, causal=True)["output"], alone["O"], rtol=1e-14)


def test_the_order_of_heads_does_not_matter_if_the_weights_follow() -> None:
    inputs = heads(3, 4, 2, 3, 4, 2)
    turned = {n: np.concatenate(np.split(inputs[n], 2, axis=1)[::-1], axis=1) for n in ("W_Q", "W_K", "W_V")}
    turned["W_O"] = np.concatenate(np.split(inputs["W_O"], 2)[::-1])
    one, other = trace_of("multi_head", inputs, heads=2), trace_of("multi_head", inputs | turned, heads=2)
    np.testing.assert_allclose(one["output"], other["output"], rtol=1e-13)


def test_token_by_token_with_a_cache_is_the_same_as_all_at_once() -> None:
    inputs = heads(4, 3, 2, 2, 3, 4, 2, biases="QKVO")
    settings = {"heads": 4, "kv_heads": 2, "causal": True}
    whole = trace_of("multi_head", inputs, **settings)
    for past in (1, 2, 3):
        part = inputs | {
            "X": inputs["X"][past:],
            "K_past": whole["K_heads"][:, :past],
            "V_past": whole["V_heads"][:, :past],
        }
        np.testing.assert_allclose(
            trace_of("multi_head", part, **settings)["output"], whole["output"][past:], rtol=1e-12
        )


def test_biases_may_be_written_as_a_list_a_row_or_a_column() -> None:
    inputs = heads(2, 3, 2, 2, 3, 2, biases="QO")
    usual = trace_of("multi_head", inputs, heads=2)["output"]
    for shape in ((4,), (4, 1)):
        other = trace_of("multi_head", inputs | {"b_Q": inputs["b_Q"].reshape(shape)}, heads=2)["output"]
        assert np.array_equal(other, usual)


# --- rotary -----------------------------------------------------------------------------------------------------------


def turned(x: Any, start: float = 0.0, base: float = 10000.0) -> Any:
    """Neighbouring columns as complex numbers, turned by p/base^(2i/d)."""
    rows, width = x.shape[-2:]
    theta = (start + np.arange(rows))[:, None] / base ** (np.arange(0, width, 2) / width)
    z = (x[..., ::2] + 1j * x[..., 1::2]) * np.exp(1j * theta)
    return np.stack([z.real, z.imag], -1).reshape(x.shape)


def test_rotary_turns_queries_and_keys_and_nothing_else() -> None:
    inputs = heads(3, 4, 4, 2, 3, 4, 2)
    settings = {"heads": 4, "kv_heads": 2, "causal": True}
    plain, other = (
        trace_of("multi_head", inputs, **settings),
        trace_of("multi_head", inputs, **settings | {"rotary": True, "base": 100}),
    )
    for name in "QK":
        np.testing.assert_allclose(other[f"{name}_rotated"], turned(plain[f"{name}_heads"], base=100), rtol=1e-12)
    shared = other["K_rotated"].repeat(2, 0)
    np.testing.assert_allclose(other["scores"], other["Q_rotated"] @ shared.swapaxes(-1, -2), rtol=1e-12, atol=1e-14)
    assert np.array_equal(plain["V_heads"], other["V_heads"])
    found = [step.id for step in other.steps]
    at = found.index("V_heads") + 1
    assert found[at : at + 6] == ["angle", "cos", "sin", "Q_rotated", "K_rotated", "K_shared"]
    assert np.abs(plain["output"][1:] - other["output"][1:]).max() > 1e-3
    np.testing.assert_allclose(plain["output"][0], other["output"][0], rtol=1e-12)  # alone, and at position 0


def test_rotary_off_is_plain() -> None:
    inputs = heads(3, 4, 2, 2, 3, 2)
    one, other = trace_of("multi_head", inputs, heads=2), trace_of("multi_head", inputs, heads=2, rotary=False)
    assert list(one) == list(other) and np.array_equal(one["output"], other["output"])


def test_only_the_distance_counts() -> None:
    inputs = heads(3, 4, 4, 2, 3, 2)
    asked = {"heads": 2, "rotary": True, "base": 20, "pairing": "half", "rotary_dim": 2}
    one, other = trace_of("multi_head", inputs, **asked), trace_of("multi_head", inputs, **asked | {"start": 11})
    assert np.abs(one["Q_rotated"] - other["Q_rotated"]).max() > 0.1
    np.testing.assert_allclose(one["scores"], other["scores"], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("start", [0, 3, 0.25])
def test_with_a_cache_positions_count_from_its_end(start: float) -> None:
    inputs = heads(4, 3, 2, 2, 3, 4, 2)
    settings = {"heads": 4, "kv_heads": 2, "causal": True, "rotary": True, "start": start}
    whole = trace_of("multi_head", inputs, **settings)
    for past in (1, 2, 3):
        cache = {"K_past": whole["K_rotated"][:, :past], "V_past": whole["V_heads"][:, :past]}
        part = trace_of("multi_head", inputs | {"X": inputs["X"][past:]} | cache, **settings)
        np.testing.assert_allclose(part["angle"], whole["angle"][past:], rtol=1e-15)
        np.testing.assert_allclose(part["output"], whole["output"][past:], rtol=1e-12)


def test_a_start_stays_as_it_was_written() -> None:
    sympy = pytest.importorskip("sympy")
    inputs = heads(2, 3, 2, 2, 3, 1) | {"K_past": some(1, 2, 2), "V_past": some(1, 2, 2)}
    graph = Case(inputs, {"rotary": True, "start": "1/3"}).problem("multi_head").graph()
    exact = graph.evaluate(arithmetic_called("exact"), until="angle")["angle"]
    assert exact.ravel().tolist() == [sympy.Rational(7, 3), sympy.Rational(10, 3)]


def test_layers_share_their_angles_and_other_positions_do_not() -> None:
    graph = Graph("layers")
    x = graph.input("x", as_matrix(some(3, 4)), ("token", "d"))
    whole = Part(graph, {}, {}, {}, set())
    first = rotation(whole.inside("layer1."), x)
    assert first == ("layer1.cos", "layer1.sin")
    assert rotation(whole.inside("layer2."), x) == first
    assert rotation(whole.inside("layer3.", start=as_matrix(2.0)), x) == ("layer3.cos", "layer3.sin")
    assert rotation(whole.inside("layer4."), x, 1) == ("layer4.cos", "layer4.sin")
    assert [id for id in graph.steps if id.endswith("angle")] == ["layer1.angle", "layer3.angle", "layer4.angle"]


def test_across_two_sequences_nothing_is_turned() -> None:
    """As in a decoder block, whose settings hold for its self-attention."""
    inputs = {name: as_matrix(values) for name, values in heads(2, 3, 2, 2, 3, 2).items()}
    graph = Graph("across")
    x = graph.input("X", inputs["X"], ("query", "d_model"))
    other = graph.input("memory", as_matrix(some(4, 3)), ("key", "d_kv"))
    multi_head(Part(graph, inputs, {}, {"heads": 2, "rotary": True}, set()), x, other)
    assert "scores" in graph and "Q_rotated" not in graph and "angle" not in graph


def test_what_rotary_cannot_do_is_said() -> None:
    inputs = heads(2, 3, 2, 2, 3, 2)
    other = heads(2, 3, 2, 2, 3, 2) | {"X_kv": some(4, 3)}
    for name in ("rotary", "alibi"):
        assert message("multi_head", other, heads=2, **{name: True}).endswith(f"Leave {name} out, or leave X_kv out.")
    for name, value in (("base", 100), ("start", 2), ("pairing", "half"), ("rotary_dim", 2)):
        said = f"{name} is given, but nothing is turned. Add rotary = true, or leave {name} out."
        assert message("multi_head", inputs, heads=2, **{name: value}) == said
    odd = heads(2, 3, 3, 2, 3, 2)
    assert message("multi_head", odd, heads=2, rotary=True).startswith(
        "Q_heads is 2×2×3: rotary turns pairs of columns"
    )


# --- what does not fit ------------------------------------------------------------------------------------------------


def test_heads_that_do_not_fit() -> None:
    inputs = heads(3, 4, 2, 2, 4, 2)
    assert message("multi_head", inputs, heads=3) == (
        "W_Q is 4×4: 3 heads cannot share 4 columns evenly. Give W_Q a number of columns that 3 divides, or change heads."
    )
    assert message("multi_head", inputs, heads=2, kv_heads=3) == (
        "2 query heads cannot share 3 heads of keys and values evenly. Give kv_heads a number that divides 2."
    )
    for heads_ in (0, 1.5, True, -2):
        assert message("multi_head", inputs, heads=heads_).startswith("heads: “"), heads_
    assert "Write a whole number of at least 1, like 2." in message("multi_head", inputs, heads=0)


def test_widths_that_do_not_fit_are_named() -> None:
    text = message("multi_head", heads(3, 4, 2, 2, 4, 2) | {"W_O": some(5, 4)}, heads=2)
    assert text == (
        "W_O is 5×4: it has 5 rows, but the axis “heads·d_v” has length 4, set by W_V (4×4). Give W_O 4 rows, or change W_V."
    )
    text = message("multi_head", heads(3, 4, 2, 2, 4, 2) | {"W_K": some(4, 6)}, heads=2)
    assert text.startswith("W_K is 4×6: it has 6 columns, but the axis “kv_heads·d_k” has length 4, set by W_Q (4×4).")
    text = message("multi_head", heads(3, 4, 2, 2, 4, 2) | {"b_Q": some(1, 3)}, heads=2)
    assert text.startswith("b_Q is 1×3: it has 3 columns, but the axis “heads·d_k” has length 4, set by W_Q (4×4).")


# --- mistakes ---------------------------------------------------------------------------------------------------------


def problem(**settings: Any) -> Problem:
    asked: dict[str, Any] = {"heads": 4, "kv_heads": 2, "causal": True} | settings
    return Case(heads(3, 5, 2, 2, 8, 4, 2, biases="QO"), asked).with_upstream("multi_head").changed(decimals=4)


def text(values: Any) -> str:
    blocks = values if values.ndim == 3 else values[None]
    return " | ".join("; ".join(" ".join(f"{v:.4f}" for v in row) for row in block) for block in blocks)


def mark(wrong: dict[str, Any], asked: Problem | None = None) -> Marked:
    return Marker(asked or problem()).mark(sheet({"answers": {id: text(values) for id, values in wrong.items()}}))


def named(wrong: dict[str, Any], asked: Problem | None = None) -> set[tuple[str, str]]:
    """The mistakes that the first wrong step is put down to."""
    marked = mark(wrong, asked)
    (step,) = [step for step in marked.steps if step.id == marked.first_wrong]
    return {(one.step, one.id) for one in step.mistakes}


@pytest.fixture(scope="module")
def right() -> Trace:
    return problem().graph().evaluate()


def test_the_right_sheet_is_right(right: Trace) -> None:
    assert mark({step.id: right[step.id] for step in right.steps if step.id != "masked"}).ok


def test_heads_cut_in_memory_order(right: Trace) -> None:
    wrong = right["Q"].reshape(4, 3, 2)
    assert named({"Q_heads": wrong}) == {("Q_heads", "split-without-transpose")}


def test_everything_cut_in_memory_order_shows_in_a_later_line(right: Trace) -> None:
    q = right["Q"].reshape(4, 3, 2)
    k = right["K"].reshape(2, 3, 2).repeat(2, 0)
    assert ("Q_heads", "split-without-transpose") in named({"scores": q @ k.swapaxes(-1, -2)})


def test_keys_and_values_dealt_out_alike(right: Trace) -> None:
    k, v = (right[f"{name}_heads"][[0, 1, 0, 1]] for name in "KV")
    s = right["Q_heads"] @ k.swapaxes(-1, -2) / np.sqrt(2) + right["M"]
    power = np.exp(s)
    wrong = power / power.sum(-1, keepdims=True) @ v
    assert ("K_shared", "kv-heads-tiled") in named({"O": wrong})


def test_heads_joined_in_memory_order(right: Trace) -> None:
    assert named({"concat": right["O"].reshape(3, 8)}) == {("concat", "merge-without-transpose")}


def test_heads_joined_the_other_way_round(right: Trace) -> None:
    wrong = np.concatenate(list(right["O"][::-1]), -1)
    assert named({"concat": wrong}) == {("concat", "heads-reversed")}
    assert ("concat", "heads-reversed") in named({"output": wrong @ right["W_O"] + right["b_O"]})


def test_the_output_projection_left_out(right: Trace) -> None:
    assert named({"output": right["concat"]}) == {("output", "no-output-projection")}


def test_shared_heads_dealt_out_in_turn(right: Trace) -> None:
    wrong = right["K_heads"][[0, 1, 0, 1]]
    assert named({"K_shared": wrong}) == {("K_shared", "kv-heads-tiled")}
    scores = right["Q_heads"] @ wrong.swapaxes(-1, -2)
    assert ("K_shared", "kv-heads-tiled") in named({"scores": scores})


@pytest.mark.parametrize("width", [5, 8])
def test_the_scale_by_the_width_of_the_model(right: Trace, width: int) -> None:
    assert ("scaled", "scale-by-model-width") in named({"scaled": right["scores"] / np.sqrt(width)})


@pytest.mark.parametrize("past", [0, 2])
def test_values_turned_like_the_keys(past: int) -> None:
    inputs = heads(3, 5, 2, 2, 8, 4, 2)
    if past:
        inputs |= {"K_past": some(2, past, 2), "V_past": some(2, past, 2)}
    settings = {"heads": 4, "kv_heads": 2, "causal": True, "rotary": True}
    asked = Case(inputs, settings).with_upstream("multi_head").changed(decimals=4)
    trace = asked.graph().evaluate()
    new = turned(trace["V_heads"], past)
    v = np.concatenate([inputs["V_past"], new], 1) if past else new
    wrong = trace["A"] @ v.repeat(2, 0)
    assert named({"O": wrong}, asked) == {("O", "value-rotated")}
    concat = np.concatenate(list(wrong), -1)
    assert ("O", "value-rotated") in named({"output": concat @ inputs["W_O"]}, asked)
    plain = problem()
    assert named({"O": wrong}, plain) == set()


def test_the_group_not_summed(right: Trace) -> None:
    for only in (0, 1):
        assert named({"G_K_heads": right["G_K_shared"][only::2]}) == {("G_K_heads", "group-not-summed")}


@pytest.mark.parametrize("bias", ["Q", "O"])
def test_a_bias_gradient_averaged(right: Trace, bias: str) -> None:
    wrong = {f"G_b_{bias}": right[f"G_b_{bias}"] / 3}
    assert named(wrong) == {(f"G_b_{bias}", "mean-for-sum")}


def test_weights_of_the_other_projection(right: Trace) -> None:
    wrong = right["X"] @ right["W_V"]
    assert ("K", "wrong-weight") in named({"K": wrong})
    assert ("Q", "operands-swapped") not in named({"Q": right["X"] @ right["W_Q"] + 1.0})


def test_a_wrong_line_is_followed_through(right: Trace) -> None:
    wrong = np.concatenate(list(right["O"][::-1]), -1)
    marked = mark({"concat": wrong, "output": wrong @ right["W_O"] + right["b_O"]})
    assert [step.verdict for step in marked.steps if step.verdict != "blank"] == ["wrong", "follow_through"]
