"""Laws of blocks and stacks: shared heads, who sees whom, what residuals carry, tied tables, losses and updates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from block_cases import ONE_HEAD, PLAIN, TWO_HEADS, weights
from cases import Case
from hypothesis import given, settings
from hypothesis import strategies as st

from attncli.core.graph import Trace
from attncli.core.matrix import as_matrix
from attncli.core.message import InputError
from attncli.marking.mark import Marker
from attncli.problems import file, library
from attncli.problems.answers import sheet

FEW = settings(max_examples=15, deadline=None)


def forward(model: str, inputs: Mapping[str, Any], **asked: Any) -> Trace:
    return Case(inputs, asked).problem(model).graph().evaluate()


def backward(model: str, inputs: Mapping[str, Any], loss: str, targets: Any = None, **asked: Any) -> Trace:
    extras = {} if targets is None else {"goal": as_matrix(targets)}
    return Case(inputs, asked).problem(model, loss=loss, extras=extras).graph().evaluate()


def result(trace: Trace) -> np.ndarray:
    return np.asarray(trace[trace.graph.output])


def block(model: str, sizes: Mapping[str, int] = TWO_HEADS, leave_out: Any = PLAIN, **given_: Any) -> dict[str, Any]:
    return weights(model, {}, leave_out=leave_out, sizes=sizes, **given_)


# --- heads ------------------------------------------------------------------------------------------------------------


def spelled(inputs: dict[str, Any], kv: int, times: int) -> dict[str, Any]:
    """The same weights with every head of keys and values written out for each of its query heads."""

    def repeated(w: Any) -> Any:
        return np.concatenate([part for part in np.split(w, kv, axis=1) for _ in range(times)], axis=1)

    return {name: repeated(w) if name.endswith((".W_K", ".W_V", ".b_K", ".b_V")) else w for name, w in inputs.items()}


@pytest.mark.parametrize("model", ["encoder_block", "decoder_block"])
@pytest.mark.parametrize(("heads", "kv"), [(4, 2), (4, 1), (2, 1)])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_shared_heads_in_a_block_equal_the_same_heads_written_out(model: str, heads: int, kv: int, norm: str) -> None:
    sizes = {"heads·d_k": 2 * heads, "kv_heads·d_k": 2 * kv, "kv_heads·d_v": 3 * kv, "heads·d_v": 3 * heads}
    inputs = block(model, sizes, ("W_gate",))
    shared = forward(model, inputs, heads=heads, kv_heads=kv, norm=norm)
    whole = forward(model, spelled(inputs, kv, heads // kv), heads=heads, norm=norm)
    np.testing.assert_allclose(result(shared), result(whole), rtol=1e-13, atol=1e-14)
    assert np.array_equal(result(whole), result(forward(model, spelled(inputs, kv, heads // kv), heads=heads, kv_heads=heads, norm=norm)))  # fmt: skip


# --- who sees whom ----------------------------------------------------------------------------------------------------


def stack(layers: int, norm: str, leave_out: Any = (*PLAIN, "b_out")) -> tuple[dict[str, Any], dict[str, Any]]:
    asked = {"layers": layers, "heads": 2, "norm": norm}
    inputs = weights("transformer", asked, leave_out=leave_out, sizes={**TWO_HEADS, "token": 4, "source": 3})
    return inputs, asked


@FEW
@given(layers=st.integers(1, 2), norm=st.sampled_from(["pre", "post"]), j=st.integers(0, 3), seed=st.integers(0, 99))
def test_the_decoder_does_not_see_the_future(layers: int, norm: str, j: int, seed: int) -> None:
    inputs, asked = stack(layers, norm)
    changed = inputs["Y"].copy()
    changed[j] = np.random.default_rng(seed).normal(size=4)
    one, other = forward("transformer", inputs, **asked), forward("transformer", {**inputs, "Y": changed}, **asked)
    assert np.array_equal(one["logits"][:j], other["logits"][:j])
    assert not np.allclose(one["logits"][j], other["logits"][j])


@FEW
@given(j=st.integers(0, 2), norm=st.sampled_from(["pre", "post"]))
def test_every_token_of_the_target_sees_the_whole_source(j: int, norm: str) -> None:
    inputs, asked = stack(1, norm)
    changed = inputs["X"].copy()
    changed[j] += [1.0, -0.5, 0.25, 2.0]
    one, other = forward("transformer", inputs, **asked), forward("transformer", {**inputs, "X": changed}, **asked)
    assert (np.abs(one["logits"] - other["logits"]).max(axis=1) > 1e-6).all()


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_padding_of_the_source_is_seen_by_nobody(norm: str) -> None:
    inputs, asked = stack(2, norm)
    asked["cross_hide"] = [[False, True, False]]
    changed = inputs["X"].copy()
    changed[1] = [3.0, -2.0, 1.0, 5.0]
    one = backward("transformer", inputs, "cross_entropy(logits, goal)", [0, 4, 2, 1], **asked)
    other = forward("transformer", {**inputs, "X": changed}, **asked)
    assert np.array_equal(one["logits"], other["logits"])
    assert not one["G_X"][1].any() and one["G_X"][0].any()


def test_a_mask_for_each_token_of_the_target_leaves_the_encoder_alone() -> None:
    inputs, asked = stack(1, "post")
    hide = [[False, True, True], [False, False, True], [False, False, False], [True, False, False]]
    plain, masked = forward("transformer", inputs, **asked), forward("transformer", inputs, **asked, cross_hide=hide)
    memory = "encoder.layer1.norm2.Y"
    assert np.array_equal(plain[memory], masked[memory])
    assert np.array_equal(masked["decoder.layer1.cross.A"] == 0, [hide, hide])


@FEW
@given(layers=st.integers(0, 2), j=st.integers(0, 3), id=st.integers(0, 4), norm=st.sampled_from(["pre", "post"]))
def test_a_gpt_does_not_see_the_future(layers: int, j: int, id: int, norm: str) -> None:
    asked = {"layers": layers, "positions": "sinusoidal"} | ({"norm": norm} if layers else {})
    inputs = weights("gpt", asked, leave_out=(*PLAIN, "P", "b_out"), without=("W_O",), sizes=ONE_HEAD, T=[3, 1, 1, 0])
    if layers:
        inputs = {name: x for name, x in inputs.items() if name not in ("W_Q", "W_K", "W_V")}
    else:
        inputs["W_V"] = inputs["W_V"][:, [0, 1, 0, 1]] * [1, 1, -1, 0.5]
    changed = [*inputs["T"][:j], id, *inputs["T"][j + 1 :]]
    one, other = forward("gpt", inputs, **asked), forward("gpt", {**inputs, "T": changed}, **asked)
    assert np.array_equal(one["logits"][:j], other["logits"][:j])


# --- what residuals carry ---------------------------------------------------------------------------------------------


def silent(inputs: dict[str, Any]) -> dict[str, Any]:
    """The same block with sublayers that hand nothing on."""
    return {name: 0 * w if name.endswith((".W_O", ".W_2")) else w for name, w in inputs.items()}


@pytest.mark.parametrize("kind", ["layer", "rms", "none"])
@pytest.mark.parametrize("model", ["encoder_block", "decoder_block"])
def test_pre_norm_with_silent_sublayers_is_the_identity(model: str, kind: str) -> None:
    inputs = silent(block(model))
    assert np.array_equal(result(forward(model, inputs, heads=2, norm="pre", normalisation=kind)), inputs["X"])


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_in_pre_norm_a_sublayer_sees_what_is_normed(kind: str) -> None:
    inputs = block("encoder_block")
    asked = {"heads": 2, "norm": "pre", "normalisation": kind, "eps": 0}
    one, other = (
        forward("encoder_block", inputs, **asked),
        forward("encoder_block", {**inputs, "X": 8 * inputs["X"]}, **asked),
    )
    np.testing.assert_allclose(one["self.output"], other["self.output"], rtol=1e-12)
    assert not np.allclose(one["self.residual"], other["self.residual"])


def test_post_norm_with_silent_sublayers_is_the_norm_again_and_again() -> None:
    inputs = silent(block("decoder_block"))
    expected = inputs["X"]
    for _ in range(3):
        expected = forward("layer_norm", {"X": expected})["Y"]
    np.testing.assert_allclose(result(forward("decoder_block", inputs, heads=2)), expected, rtol=1e-13)


@pytest.mark.parametrize("model", ["encoder_block", "decoder_block"])
def test_without_a_norm_its_place_makes_no_difference(model: str) -> None:
    inputs = block(model)
    one, other = (forward(model, inputs, heads=2, normalisation="none", norm=norm) for norm in ("pre", "post"))
    assert list(one) == list(other) and np.array_equal(result(one), result(other))


def test_a_silent_second_layer_of_a_gpt_changes_nothing() -> None:
    asked = {"heads": 2, "norm": "pre", "tied": True}
    left_out = {"leave_out": (*PLAIN, "P", "W_out", "b_out"), "without": ("W_Q", "W_K", "W_V", "W_O")}
    inputs = weights("gpt", {"layers": 2}, **left_out, sizes=TWO_HEADS, T=[3, 1, 0])
    inputs |= silent({name: w for name, w in inputs.items() if name.startswith("layer2.")})
    first = {name: w for name, w in inputs.items() if not name.startswith("layer2.")}
    one, two = forward("gpt", first, layers=1, **asked), forward("gpt", inputs, layers=2, **asked)
    assert np.array_equal(one["logits"], two["logits"])


# --- the loss ---------------------------------------------------------------------------------------------------------


@FEW
@given(rows=st.integers(1, 4), classes=st.integers(2, 7), level=st.floats(-3, 3), seed=st.integers(0, 99))
def test_equal_logits_cost_the_logarithm_of_the_vocabulary(rows: int, classes: int, level: float, seed: int) -> None:
    targets = np.random.default_rng(seed).integers(0, classes, rows)
    inputs = {"A": np.ones((rows, 1)), "V": np.full((1, classes), level)}
    trace = backward("product", inputs, "cross_entropy(O, goal)", targets)
    assert trace["L"].item() == pytest.approx(math.log(classes), rel=1e-13)
    summed = backward("product", inputs, "cross_entropy(O, goal, sum)", targets)
    assert summed["L"].item() == pytest.approx(rows * math.log(classes), rel=1e-13)


def bare(**given_: Any) -> dict[str, Any]:
    without = ("P", "W_O", "b_out", "final.gamma", "final.beta")
    return weights("gpt", {}, without=without, **{"T": [0, 3, 3, 1], **given_})


def test_the_text_itself_asks_for_the_next_tokens() -> None:
    own = backward("gpt", bare(), "cross_entropy(logits, T)", eta=0.1)
    written = backward("gpt", bare(), "cross_entropy(logits, goal)", [3, 3, 1, -1], eta=0.1)
    assert list(own) == list(written)
    assert all(np.array_equal(own[id], written[id]) for id in own)
    assert not own["G_logits"][3].any() and own["G_logits"][:3].all()


def test_a_token_that_does_not_count_has_no_say() -> None:
    one = backward("gpt", bare(), "cross_entropy(logits, goal)", [-1, 2, -100, -1])
    assert not one["G_logits"][[0, 2, 3]].any()
    assert one["L"].item() == pytest.approx(-math.log(one["loss.P"][1, 2]), rel=1e-13)
    np.testing.assert_allclose(one["G_logits"].sum(axis=1), 0, atol=1e-15)


# --- a table used twice -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["cross_entropy(logits, T)", "sum(logits)"])
def test_a_tied_table_gets_both_parts(loss: str) -> None:
    inputs = bare()
    del inputs["W_out"]
    tied = backward("gpt", inputs, loss, tied=True)
    untied = backward("gpt", {**inputs, "W_out": inputs["E"].T}, loss)
    np.testing.assert_allclose(tied["logits"], untied["logits"], rtol=1e-14)
    np.testing.assert_allclose(tied["G_E_X"], untied["G_E"], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(tied["G_E_logits"], untied["G_W_out"].T, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(tied["G_E"], tied["G_E_X"] + tied["G_E_logits"], rtol=1e-15)
    assert tied["G_E_logits"].any() and tied["G_E_X"].any()


# --- updates ----------------------------------------------------------------------------------------------------------


def after(inputs: Mapping[str, Any], trace: Trace) -> dict[str, Any]:
    """The parameters as the update left them, and what it remembers."""
    new = {name: trace[f"{name}_new"] for name in inputs if f"{name}_new" in trace}
    if any(id.endswith("_m") for id in trace):
        new |= {f"{name}_{kind}_past": trace[f"{name}_{kind}"] for name in list(new) for kind in "mv"}
    return {**inputs, **new}


@FEW
@given(seed=st.integers(0, 999), tied=st.booleans(), optimizer=st.sampled_from(["sgd", "adam"]))
def test_the_loss_falls_after_a_small_step(seed: int, tied: bool, optimizer: str) -> None:
    r = np.random.default_rng(seed)
    inputs = {name: x if name == "T" else r.normal(size=x.shape) for name, x in bare().items()}
    if tied:
        del inputs["W_out"]
    inputs["T"] = list(r.integers(0, 5, 4))
    asked = {"tied": tied, "optimizer": optimizer}
    eta, later = 1e-5, {"t": 2} if optimizer == "adam" else {}
    first = backward("gpt", inputs, "cross_entropy(logits, T)", eta=eta, **asked)
    second = backward("gpt", after(inputs, first), "cross_entropy(logits, T)", eta=eta, **asked, **later)
    fall = first["L"].item() - second["L"].item()
    gradients = [first[id] for id in first if id in {f"G_{name}" for name in inputs}]
    sizes = [np.sum(g**2) if optimizer == "sgd" else np.abs(g).sum() for g in gradients]
    assert fall == pytest.approx(eta * sum(sizes), rel=0.02)


def test_adams_first_step_looks_at_the_sign_only() -> None:
    trace = backward("gpt", bare(), "cross_entropy(logits, T)", eta=0.1, optimizer="adam")
    step = bare()["W_V"] - trace["W_V_new"]
    np.testing.assert_allclose(step, 0.1 * np.sign(trace["G_W_V"]), rtol=1e-4)
    assert not (bare()["E"] - trace["E_new"])[[2, 4]].any()


def test_adam_step_by_step_is_the_algorithm_of_the_paper() -> None:
    inputs, x = bare(), bare()["W_Q"]
    m, v = np.zeros_like(x), np.zeros_like(x)
    asked = {"eta": 0.2, "optimizer": "adam", "beta1": 0.7, "beta2": 0.9, "adam_eps": 0.001}
    for t in range(1, 5):
        trace = backward("gpt", inputs, "cross_entropy(logits, T)", t=t, **asked)
        g = trace["G_W_Q"]
        m, v = 0.7 * m + 0.3 * g, 0.9 * v + 0.1 * g**2
        x = x - 0.2 * (m / (1 - 0.7**t)) / (np.sqrt(v / (1 - 0.9**t)) + 0.001)
        np.testing.assert_allclose(trace["W_Q_new"], x, rtol=1e-12)
        inputs = after(inputs, trace)


# --- mistakes in a loss -----------------------------------------------------------------------------------------------


def named(step: str, value: float) -> list[tuple[str, str]]:
    problem = library.load("f4-cross-entropy")
    marked = Marker(problem).mark(sheet({"answers": {step: f"{value:.3f}"}}))
    (one,) = [one for one in marked.steps if one.id == step]
    assert marked.first_wrong == step
    return [(mistake.step, mistake.id) for mistake in one.mistakes]


def test_a_loss_added_up_where_the_mean_was_asked_for() -> None:
    trace = library.load("f4-cross-entropy").graph().evaluate()
    assert named("L", trace["loss.surprise"].sum()) == [("L", "batch-factor-missing")]


def test_the_logarithm_of_what_is_negative_explains_nothing() -> None:
    # Logits over their sum are negative in part, and their logarithm is no number: it would fit whatever is written.
    assert named("L", 123.456) == []


# --- problem files and losses that name an output inside a part ---------------------------------------------------------


BLOCK = """
schema = 1
id = "a-block"
model = "encoder_block"
[inputs]
X = "1 0.5 -1; -1 2 0.5"
[inputs.self]
W_Q = "1 0; 0 1; 1 1"
W_K = "1 0.5; 0 1; -1 1"
W_V = "1 0; 0 1; 1 1"
W_O = "1 0 0.5; 0 1 0"
[inputs.ffn]
W_1 = "1 0; 0 1; 0.5 0"
W_2 = "1 0 0; 0 1 0.5"
[gradient]
"""


@pytest.mark.parametrize("written", ['"norm2.G_Y" = "1 2 3; 4 5 7"', 'norm2.G_Y = "1 2 3; 4 5 7"'])
def test_a_file_gives_the_gradient_of_a_blocks_output(tmp_path: Path, written: str) -> None:
    path = tmp_path / "block.toml"
    path.write_text(BLOCK + written, encoding="utf-8")
    trace = file.load(path).graph().evaluate()
    assert np.array_equal(trace["norm2.G_Y"], [[1, 2, 3], [4, 5, 7]]) and "G_X" in trace


def test_a_loss_names_single_entries_of_a_blocks_output(tmp_path: Path) -> None:
    path = tmp_path / "block.toml"
    path.write_text(BLOCK + 'loss = "norm2.Y[1,1] - 2*norm2.Y[2,3]"', encoding="utf-8")
    trace = file.load(path).graph().evaluate()
    assert np.array_equal(trace["norm2.G_Y"], [[1, 0, 0], [0, 0, -2]])
    assert trace["L"].item() == trace["norm2.Y"][0, 0] - 2 * trace["norm2.Y"][1, 2]


def test_another_gradient_is_told_what_this_one_is_called(tmp_path: Path) -> None:
    path = tmp_path / "block.toml"
    path.write_text(BLOCK + 'G_Y = "1 2 3; 4 5 7"', encoding="utf-8")
    with pytest.raises(InputError) as error:
        file.load(path)
    assert str(error.value).endswith(
        'gradient.G_Y: the output here is norm2.Y, so its gradient is called norm2.G_Y. Write "norm2.G_Y" = …'
    )
