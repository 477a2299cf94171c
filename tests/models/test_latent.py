"""Multi-head latent attention: its ids, the paper's equations, the absorbed form, the cache, and its mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import CASES, Case, latents, message, some, trace_of
from hypothesis import given, settings
from hypothesis import strategies as st

from attncli.core.matrix import as_matrix
from attncli.marking.mark import Marker
from attncli.problems.answers import sheet
from attncli.problems.problem import Problem

SOFTMAX = ["row_max", "shifted", "exp", "row_sum", "A"]
TURNED = ["Q_R", "Q_R_heads", "K_R", "angle", "cos", "sin", "Q_R_rotated", "K_R_rotated"]
PLAIN = [
    *("c_KV", "c_Q", "Q_C", "K_C", "V_C", "Q_C_heads", "K_C_heads", "V_heads", *TURNED),
    *("Q_heads", "K_R_heads", "K_R_shared", "K_heads", "scores", "scaled", "masked", *SOFTMAX),
    *("O", "concat", "output"),
]
ABSORBED = [
    *("c_KV", "c_Q", "Q_C", "Q_C_heads", "W_UK_heads", "Q_absorbed", *TURNED, "Q_heads", "K_latent"),
    *("K_heads", "V_heads", "K_shared", "V_shared", "scores", "scaled", "masked", *SOFTMAX),
    *("O_latent", "W_UV_heads", "O", "concat", "output"),
]


def forward_ids(case: Case) -> list[str]:
    return list(case.problem("latent").graph().steps)


def test_the_steps_of_both_forms() -> None:
    case = CASES["latent"][2]
    assert forward_ids(case) == PLAIN
    assert forward_ids(Case(case.inputs, {**case.settings, "absorbed": True})) == ABSORBED


def test_steps_that_are_not_needed_are_left_out() -> None:
    plain = forward_ids(Case(latents(3, 4, 2, 2, 3, 3, 2), {"heads": 2}))
    assert plain == [
        *("c_KV", "Q_C", "K_C", "V_C", "Q_heads", "K_heads", "V_heads", "scores", "scaled", *SOFTMAX),
        *("O", "concat", "output"),
    ]
    one_head = forward_ids(Case(latents(3, 4, 2, 2, 3, 3, 1, d_r=2)))
    assert "K_R_heads" in one_head and "K_R_shared" not in one_head


def test_every_parameter_has_a_gradient() -> None:
    for number in (2, 3):
        case = CASES["latent"][number]
        found = case.with_upstream("latent").graph().steps
        assert {f"G_{name}" for name in case.inputs} <= set(found)


# --- the paper's equations ----------------------------------------------------------------------------------------


def rope(x: Any, start: int, base: float) -> Any:
    """Neighbouring columns as complex numbers, turned by p/base^(2i/d)."""
    rows, width = x.shape
    theta = (start + np.arange(rows))[:, None] / base ** (np.arange(0, width, 2) / width)
    z = (x[:, ::2] + 1j * x[:, 1::2]) * np.exp(1j * theta)
    return np.stack([z.real, z.imag], -1).reshape(x.shape)


def by_the_paper(w: dict[str, Any], heads: int, base: float) -> Any:
    """Equations 9 to 19 and 37 to 47 of arXiv 2405.04434 with tokens as rows, head by head, token by token."""
    x = w["X"]
    c_q, c_kv = x @ w["W_DQ"], x @ w["W_DKV"]
    q_c, k_c, v_c = c_q @ w["W_UQ"], c_kv @ w["W_UK"], c_kv @ w["W_UV"]
    k_r = rope(x @ w["W_KR"], 0, base)
    d_h, d_v, d_r = q_c.shape[1] // heads, v_c.shape[1] // heads, k_r.shape[1]
    out = []
    for i in range(heads):
        q_r = rope((c_q @ w["W_QR"])[:, i * d_r : (i + 1) * d_r], 0, base)
        q = np.concatenate([q_c[:, i * d_h : (i + 1) * d_h], q_r], 1)
        k = np.concatenate([k_c[:, i * d_h : (i + 1) * d_h], k_r], 1)
        rows = []
        for t in range(len(x)):
            e = np.exp([q[t] @ k[j] / np.sqrt(d_h + d_r) for j in range(t + 1)])
            rows.append((e / e.sum()) @ v_c[: t + 1, i * d_v : (i + 1) * d_v])
        out.append(np.array(rows))
    return np.concatenate(out, 1) @ w["W_O"]


@pytest.mark.parametrize("absorbed", [False, True])
@pytest.mark.parametrize(("heads", "d_h", "d_r"), [(1, 2, 2), (2, 3, 2), (3, 1, 4)])
def test_the_output_is_the_papers(absorbed: bool, heads: int, d_h: int, d_r: int) -> None:
    w = latents(4, 5, 3, d_h, 2, 3, heads, d_cq=2, d_r=d_r)
    trace = trace_of("latent", w, heads=heads, causal=True, absorbed=absorbed, base=30)
    np.testing.assert_allclose(trace["output"], by_the_paper(w, heads, 30), rtol=1e-11)


def test_without_a_latent_of_queries_they_come_straight_from_x() -> None:
    w = latents(3, 4, 3, 2, 2, 3, 2, d_r=2)
    np.testing.assert_allclose(trace_of("latent", w, heads=2)["Q_C"], w["X"] @ w["W_UQ"], rtol=1e-14)
    square = w | {"W_DQ": np.eye(4)}
    one, other = trace_of("latent", w, heads=2), trace_of("latent", square, heads=2)
    np.testing.assert_allclose(one["output"], other["output"], rtol=1e-13)


def test_a_latent_as_wide_as_the_tokens_is_multi_head_attention() -> None:
    """With W_DKV = I nothing is pressed together: W_UK and W_UV are W_K and W_V."""
    w = latents(3, 4, 4, 2, 3, 5, 2) | {"W_DKV": np.eye(4)}
    names = {"W_UQ": "W_Q", "W_UK": "W_K", "W_UV": "W_V", "W_O": "W_O", "X": "X"}
    usual = Case({names[name]: w[name] for name in names}, {"heads": 2, "causal": True})
    for absorbed in (False, True):
        trace = trace_of("latent", w, heads=2, causal=True, absorbed=absorbed)
        np.testing.assert_allclose(
            trace["output"], usual.problem("multi_head").graph().evaluate()["output"], rtol=1e-12
        )


def test_only_the_distance_counts() -> None:
    w = latents(3, 4, 3, 2, 2, 3, 2, d_r=4)
    for absorbed in (False, True):
        one, other = (trace_of("latent", w, heads=2, absorbed=absorbed, start=start) for start in (0, 9))
        assert np.abs(one["K_R_rotated"] - other["K_R_rotated"]).max() > 0.1
        np.testing.assert_allclose(one["scores"], other["scores"], rtol=1e-11, atol=1e-13)


# --- the absorbed form ------------------------------------------------------------------------------------------------

SIZES = st.integers(1, 4)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    heads, n = draw(st.integers(1, 3)), draw(SIZES)
    d_r = draw(st.sampled_from([0, 2, 4]))
    sizes = [n, *(draw(SIZES) for _ in range(5)), heads]
    extras = {"d_cq": draw(st.sampled_from([0, 2, 3])), "d_r": d_r, "past": draw(st.sampled_from([0, 0, 2]))}
    shapes = latents(*sizes, **extras, bias=draw(st.booleans()))
    r = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    w = {name: r.normal(size=values.shape) for name, values in shapes.items()}
    asked: dict[str, Any] = {"heads": heads, "causal": draw(st.booleans())}
    if draw(st.booleans()):
        asked["softcap"] = 2.0
    if d_r:
        asked |= {"pairing": draw(st.sampled_from(["adjacent", "half"])), "base": draw(st.sampled_from([10, 10000]))}
    return Problem(
        "latent",
        {name: as_matrix(values) for name, values in w.items()},
        settings=asked,
        upstream=as_matrix(r.normal(size=(n, sizes[5]))),
    )


def assert_same(one: Any, other: Any, what: str) -> None:
    """Equal to 1e-12 of the largest entry."""
    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12 * max(1.0, np.abs(other).max()), err_msg=what)


@given(problems())
@settings(max_examples=120, deadline=None)
def test_both_forms_give_the_same_numbers_and_the_same_gradients(problem: Problem) -> None:
    plain = problem.graph().evaluate()
    absorbed = problem.changed(settings={**problem.settings, "absorbed": True}).graph().evaluate()
    assert "K_C" not in absorbed and "V_C" not in absorbed
    for id in ("scores", "A", "O", "output", *(f"G_{name}" for name in problem.inputs), "G_c_KV", "G_A", "G_scores"):
        assert_same(absorbed[id], plain[id], id)


# --- the cache --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("absorbed", [False, True])
@pytest.mark.parametrize("d_r", [0, 2])
def test_token_by_token_with_a_cache_is_the_same_as_all_at_once(absorbed: bool, d_r: int) -> None:
    w = latents(4, 3, 2, 2, 2, 3, 2, d_cq=2, d_r=d_r)
    asked = {"heads": 2, "causal": True, "absorbed": absorbed}
    whole = trace_of("latent", w, **asked)
    for past in (1, 2, 3):
        cache = {"c_KV_past": whole["c_KV"][:past]}
        if d_r:
            cache["K_R_past"] = whole["K_R_rotated"][:past]
        part = trace_of("latent", w | {"X": w["X"][past:]} | cache, **asked)
        np.testing.assert_allclose(part["output"], whole["output"][past:], rtol=1e-12)
        assert part["c_KV_all"].shape == (4, 2)


# --- what does not fit ------------------------------------------------------------------------------------------------


def without(inputs: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: values for name, values in inputs.items() if name not in names}


def test_half_of_something() -> None:
    w = latents(2, 3, 2, 1, 2, 3, 2, d_r=2, past=1)
    both = "Give both, or leave both out."
    assert message("latent", without(w, "W_KR"), heads=2) == f"W_QR is given, but W_KR is missing. {both}"
    assert message("latent", without(w, "W_QR"), heads=2) == f"W_KR is given, but W_QR is missing. {both}"
    assert message("latent", without(w, "K_R_past"), heads=2) == f"c_KV_past is given, but K_R_past is missing. {both}"
    assert message("latent", without(w, "c_KV_past"), heads=2) == f"K_R_past is given, but c_KV_past is missing. {both}"
    assert message("latent", without(w, "W_QR", "W_KR"), heads=2) == f"K_R_past is given, but W_KR is missing. {both}"


def test_settings_of_a_rotation_that_turns_nothing() -> None:
    w = latents(2, 3, 2, 1, 2, 3, 2)
    for name, value in (("base", 100), ("start", 1), ("pairing", "half")):
        said = f"{name} is given, but nothing is turned. Add W_QR and W_KR, or leave {name} out."
        assert message("latent", w, heads=2, **{name: value}) == said


def test_widths_that_do_not_fit_are_named() -> None:
    w = latents(2, 3, 2, 1, 2, 3, 2, d_r=2)
    assert message("latent", w | {"W_UK": some(2, 3)}, heads=2).startswith(
        "W_UK is 2×3: 2 heads cannot share 3 columns evenly."
    )
    assert message("latent", w | {"W_UV": some(3, 2)}, heads=2) == (
        "W_UV is 3×2: it has 3 rows, but the axis “d_c” has length 2, set by W_DKV (3×2). Give W_UV 2 rows, or change W_DKV."
    )
    assert message("latent", w | {"W_UK": some(2, 4)}, heads=2).startswith(
        "W_UK is 2×4: it has 4 columns, but the axis “heads·d_h”"
    )
    assert message("latent", w | {"W_KR": some(3, 3)}, heads=2) == (
        "W_KR is 3×3: rotary turns pairs of columns, and 3 columns cannot be paired. Give W_KR an even number of columns."
    )
    assert message("latent", w | {"W_QR": some(3, 8)}, heads=2) == (
        "W_QR is 3×8 and W_KR is 3×2: each of 2 heads turns 2 columns. Give W_QR 4 columns, or change W_KR."
    )
    assert "W_KR" in message("latent", w | {"W_KR": some(3)}, heads=2)
    assert message("latent", w | {"c_KV_past": some(2), "K_R_past": some(1, 2)}, heads=2).startswith(
        "c_KV_past has shape 2, but it needs"
    )
    assert "“past_key”" in message("latent", w | {"c_KV_past": some(2, 2), "K_R_past": some(1, 2)}, heads=2)


# --- mistakes ---------------------------------------------------------------------------------------------------------


def problem(absorbed: bool = False) -> Problem:
    w = latents(3, 7, 3, 2, 3, 5, 2, d_cq=4, d_r=4, bias=True)
    case = Case(
        {name: np.round(values * 0.6, 2) for name, values in w.items()},
        {"heads": 2, "causal": True, "absorbed": absorbed, "base": 20},
    )
    return case.with_upstream("latent").changed(decimals=4)


def text(values: Any) -> str:
    blocks = values if values.ndim == 3 else values[None]
    return " | ".join("; ".join(" ".join(f"{v:.4f}" for v in row) for row in block) for block in blocks)


def named(wrong: dict[str, Any], asked: Problem) -> set[tuple[str, str]]:
    """The mistakes that the first wrong step is put down to."""
    marked = Marker(asked).mark(sheet({"answers": {id: text(values) for id, values in wrong.items()}}))
    (step,) = [step for step in marked.steps if step.id == marked.first_wrong]
    return {(one.step, one.id) for one in step.mistakes}


@pytest.mark.parametrize("absorbed", [False, True])
def test_the_right_sheet_is_right(absorbed: bool) -> None:
    asked = problem(absorbed)
    trace = asked.graph().evaluate()
    answers = {step.id: text(trace[step.id]) for step in trace.steps if step.id != "masked"}
    assert Marker(asked).mark(sheet({"answers": answers})).ok


@pytest.mark.parametrize("absorbed", [False, True])
def test_the_scale_by_another_width(absorbed: bool) -> None:
    asked = problem(absorbed)
    scores = asked.graph().evaluate()["scores"]
    for width, name in [(2, "scale-by-part"), (4, "scale-by-part"), (7, "scale-by-model-width"), (36, "scale-by-d")]:
        assert named({"scaled": scores / np.sqrt(width)}, asked) == {("scaled", name)}, width
    if absorbed:
        assert named({"scaled": scores / np.sqrt(3)}, asked) == {("scaled", "scale-by-part")}
    else:
        assert named({"scaled": scores / np.sqrt(3)}, asked) == set()


def test_the_rotary_part_of_one_head_only() -> None:
    asked = problem()
    trace = asked.graph().evaluate()
    for only in (0, 1):
        wrong = {"G_K_R_heads": trace["G_K_R_shared"][only : only + 1]}
        assert named(wrong, asked) == {("G_K_R_heads", "group-not-summed")}


def test_turned_the_other_way_and_other_pairs() -> None:
    asked = problem()
    w = {name: matrix.values for name, matrix in asked.inputs.items()}
    k = w["X"] @ w["W_KR"]
    assert named({"K_R_rotated": rope(k[::-1], -2, 20)[::-1]}, asked) == {("K_R_rotated", "rotation-reversed")}
    halves = rope(k[:, [0, 2, 1, 3]], 0, 20)[:, [0, 2, 1, 3]]
    assert named({"K_R_rotated": halves}, asked) == {("K_R_rotated", "half-split-pairs")}


def test_weights_of_another_latent() -> None:
    """W_UK instead of W_UV, and the weights folded in without the transpose."""
    asked = problem(absorbed=True)
    square = latents(3, 4, 2, 2, 2, 3, 2)
    trace = asked.graph().evaluate()
    plain = Case(square, {"heads": 2}).with_upstream("latent").changed(decimals=4)
    c = plain.graph().evaluate()["c_KV"]
    assert ("V_C", "wrong-weight") in named({"V_C": c @ square["W_UK"]}, plain)
    folded = Case(square, {"heads": 2, "absorbed": True}).with_upstream("latent").changed(decimals=4)
    t = folded.graph().evaluate()
    assert named({"Q_absorbed": t["Q_C_heads"] @ t["W_UK_heads"]}, folded) == {("Q_absorbed", "weight-transposed")}
    assert named({"O_latent": trace["scaled"] @ trace["V_shared"]}, asked) == {("O_latent", "scores-for-weights")}
