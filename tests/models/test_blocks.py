"""Positions, rotary, feed-forward and residual: ids, laws, and the mistakes that are named."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import CASES, Case, layers, message, some, trace_of

from attncli.marking.feedback import Marked
from attncli.marking.mark import Marker
from attncli.problems.answers import sheet
from attncli.problems.problem import Problem


@pytest.mark.parametrize(
    ("model", "number", "expected"),
    [
        ("positions", 0, ["angle", "PE"]),
        ("rotary", 0, ["angle", "cos", "sin", "rotated", "G_X"]),
        (
            "rotary",
            2,
            ["angle", "cos", "sin", "rotated", "K_rotated", "scores", "G_rotated", "G_K_rotated", "G_K", "G_X"],
        ),
        ("feed_forward", 0, ["hidden", "activated", "Y", "G_W_2", "G_activated", "slope", "G_hidden", "G_W_1", "G_X"]),
        ("residual", 0, ["Y", "G_F", "G_X"]),
    ],
)
def test_the_steps(model: str, number: int, expected: list[str]) -> None:
    case = CASES[model][number]
    problem = case.problem(model) if model == "positions" else case.with_upstream(model)
    assert sorted(problem.graph().steps) == sorted(expected)


def test_the_steps_of_a_gate() -> None:
    found = list(CASES["feed_forward"][-1].with_upstream("feed_forward").graph().steps)
    assert found[:5] == ["gate", "swish", "hidden", "activated", "Y"]
    assert {"G_W_gate", "G_swish", "G_gate", "G_X_gate", "G_X_hidden", "G_X", "G_b_2"} <= set(found)


# --- positions --------------------------------------------------------------------------------------------------------


def test_the_formula_of_the_paper() -> None:
    pe = trace_of("positions", {}, n=7, d_model=6)["PE"]
    for p in range(7):
        for i in range(3):
            theta = p / 10000 ** (2 * i / 6)
            assert pe[p, 2 * i] == pytest.approx(math.sin(theta), abs=1e-15)
            assert pe[p, 2 * i + 1] == pytest.approx(math.cos(theta), abs=1e-15)


def test_the_concatenated_layout_has_the_same_columns() -> None:
    one = trace_of("positions", {}, n=4, d_model=6)["PE"]
    other = trace_of("positions", {}, n=4, d_model=6, arrangement="concatenated")["PE"]
    assert np.array_equal(other, one[:, [0, 2, 4, 1, 3, 5]])


def test_an_odd_width_ends_in_a_sine() -> None:
    five = trace_of("positions", {}, n=4, d_model=5)
    assert five["angle"].shape == (4, 3)
    np.testing.assert_allclose(five["PE"][:, 4], np.sin(np.arange(4) / 10000 ** (4 / 5)), rtol=1e-14)


def test_what_positions_need() -> None:
    assert message("positions", {}, d_model=4) == "The setting n is missing. Give it like this: --set n=4"
    assert "too many" in message("positions", {}, n=100000, d_model=512)
    assert message("positions", {}, n=2, d_model=4, base=0).startswith("base: “0” is not allowed here.")


def waves(n: int, d: int, exponent: Callable[[int], float], scale: float = 1.0, base: float = 10000.0) -> np.ndarray:
    """sin, cos, sin, … of scale·p / base^exponent(column): written down once more, entry by entry."""
    return np.array(
        [[(np.cos if j % 2 else np.sin)(scale * p / base ** exponent(j)) for j in range(d)] for p in range(n)]
    )


def test_other_exponents() -> None:
    by_column = trace_of("positions", {}, n=4, d_model=6, exponents="columns")
    np.testing.assert_allclose(by_column["PE"], waves(4, 6, lambda j: 2 * j / 6), rtol=1e-12)
    assert by_column["angle"].shape == (4, 6)
    minus_one = trace_of("positions", {}, n=4, d_model=6, exponents="pairs-minus-one", base=100)["PE"]
    np.testing.assert_allclose(minus_one, waves(4, 6, lambda j: (j // 2) / 2, base=100), rtol=1e-12)
    pairs = trace_of("positions", {}, n=4, d_model=6, exponents="pairs")["PE"]
    np.testing.assert_array_equal(pairs, trace_of("positions", {}, n=4, d_model=6)["PE"])


def test_scaled_positions() -> None:
    scaled = trace_of("positions", {}, n=4, d_model=6, position_scale="1/5", start=2)["PE"]
    np.testing.assert_allclose(scaled, waves(6, 6, lambda j: j // 2 * 2 / 6, scale=0.2)[2:], rtol=1e-12, atol=1e-16)
    x = {"X": some(3, 4)}
    np.testing.assert_allclose(
        trace_of("rotary", x, start=15, position_scale="1/5")["angle"][0], trace_of("rotary", x, start=3)["angle"][0]
    )


# --- rotary -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pairing", ["adjacent", "half"])
def test_scores_depend_on_the_distance_only(pairing: str) -> None:
    inputs = {"X": some(3, 4), "K": some(3, 4)[::-1] * 1.4}
    here = trace_of("rotary", inputs, pairing=pairing)
    there = trace_of("rotary", inputs, pairing=pairing, start=17)
    np.testing.assert_allclose(there["scores"], here["scores"], rtol=1e-12, atol=1e-13)
    assert not np.allclose(there["rotated"], here["rotated"])
    assert len(Case(inputs).problem("rotary").graph().notes) == 1


def test_a_rotation_keeps_the_length_of_every_pair() -> None:
    x = some(3, 6)
    for pairing, pairs in (("adjacent", [(0, 1), (2, 3), (4, 5)]), ("half", [(0, 3), (1, 4), (2, 5)])):
        y = trace_of("rotary", {"X": x}, pairing=pairing, start=3)["rotated"]
        for a, b in pairs:
            np.testing.assert_allclose(np.hypot(y[:, a], y[:, b]), np.hypot(x[:, a], x[:, b]), rtol=1e-14)


def test_the_gradient_is_turned_back() -> None:
    trace = Case({"X": some(3, 4)}).with_upstream("rotary").graph().evaluate()
    turned = trace_of("rotary", {"X": trace["G_X"]})["rotated"]
    np.testing.assert_allclose(turned, trace["G_rotated"], rtol=1e-13)


def test_angles_of_ones_own() -> None:
    x = some(3, 4)
    usual = trace_of("rotary", {"X": x, "K": x[::-1]})
    own = trace_of("rotary", {"X": x, "K": x[::-1], "angle": usual["angle"]})
    table = trace_of("rotary", {"X": x, "K": x[::-1], "cos": usual["cos"], "sin": usual["sin"]})
    for id in ("rotated", "K_rotated", "scores"):
        np.testing.assert_allclose(own[id], usual[id], rtol=1e-12)
        np.testing.assert_allclose(table[id], usual[id], rtol=1e-12)
    part = trace_of("rotary", {"X": x, "angle": usual["angle"][:, :1]})["rotated"]
    np.testing.assert_array_equal(part[:, 2:], x[:, 2:])  # fewer pairs: the rest stays


def test_columns_beyond_the_rotary_part_stay() -> None:
    x = some(3, 6)
    trace = trace_of("rotary", {"X": x}, rotary_dim=4, pairing="half")
    assert np.array_equal(trace["rotated"][:, 4:], x[:, 4:])
    np.testing.assert_allclose(trace["rotated"][:, :4], trace_of("rotary", {"X": x[:, :4]}, pairing="half")["rotated"])


def test_columns_that_cannot_be_paired() -> None:
    assert message("rotary", {"X": some(2, 3)}).startswith("X is 2×3: rotary turns pairs of columns, and 3 columns")
    assert "and 6 columns cannot be paired" in message("rotary", {"X": some(2, 4)}, rotary_dim=6)


# --- feed-forward -----------------------------------------------------------------------------------------------------


def test_the_curves() -> None:
    x = np.array([[-2.0, -0.5, 0.0, 0.3, 4.0]])
    inputs = {"X": x, "W_1": np.eye(5), "W_2": np.eye(5)}
    found = {
        kind: trace_of("feed_forward", inputs, activation=kind)["Y"] for kind in ("relu", "gelu", "gelu_tanh", "silu")
    }
    np.testing.assert_array_equal(found["relu"], np.maximum(x, 0))
    np.testing.assert_allclose(found["gelu"], [[v * 0.5 * math.erfc(-v / math.sqrt(2)) for v in x[0]]], rtol=1e-12)
    np.testing.assert_allclose(found["silu"], x / (1 + np.exp(-x)), rtol=1e-14)
    assert 1e-5 < np.abs(found["gelu_tanh"] - found["gelu"]).max() < 1e-3


def test_a_gate_is_asked_for_or_refused() -> None:
    inputs = layers(2, 3, 4, 3)
    assert message("feed_forward", inputs, activation="swiglu").startswith("swiglu needs a gate: give W_gate")
    text = message("feed_forward", inputs | {"W_gate": some(3, 4)})
    assert text == "W_gate is given, but relu has no gate. Leave it out, or write activation = swiglu."


# --- mistakes ---------------------------------------------------------------------------------------------------------


def text(values: Any) -> str:
    return "; ".join(" ".join(f"{v:.5f}" for v in row) for row in values)


def mark(problem: Problem, answers: dict[str, Any]) -> Marked:
    written = {id: text(values) for id, values in answers.items()}
    return Marker(problem.changed(decimals=5)).mark(sheet({"answers": written}))


def named(problem: Problem, id: str, values: Any) -> set[str]:
    marked = mark(problem, {id: values})
    assert marked.first_wrong == id
    (step,) = [step for step in marked.steps if step.id == id]
    return {one.id for one in step.mistakes}


POSITIONS = Case({}, {"n": 4, "d_model": 6}).problem("positions")


def code(angle: Any) -> Any:
    """Sine and cosine in turn, of angles by column."""
    columns = np.arange(6)
    theta = np.array([[angle(p, c) for c in columns] for p in range(4)])
    return np.where(columns % 2 == 0, np.sin(theta), np.cos(theta))


def pair(c: int) -> int:
    return c - c % 2


def test_the_right_code_is_right() -> None:
    pe = code(lambda p, c: p / 10000 ** (pair(c) / 6))
    assert mark(POSITIONS, {"PE": pe}).ok
    assert mark(POSITIONS, {"angle": np.arange(4)[:, None] / 10000 ** (np.array([0, 2, 4]) / 6)}).ok


@pytest.mark.parametrize(
    ("id", "angle"),
    [
        ("exponent-doubled", lambda p, c: p / 10000 ** (2 * c / 6)),
        ("exponent-doubled", lambda p, c: p / 10000 ** (2 * pair(c) / 6)),
        ("cos-exponent-odd", lambda p, c: p / 10000 ** (c / 6)),
        ("positions-from-one", lambda p, c: (p + 1) / 10000 ** (pair(c) / 6)),
        ("base-changed", lambda p, c: p / 1000 ** (pair(c) / 6)),
    ],
)
def test_a_mistake_in_the_code_is_named(id: str, angle: Any) -> None:
    assert id in named(POSITIONS, "PE", code(angle))


def test_all_sines_first() -> None:
    pe = code(lambda p, c: p / 10000 ** (pair(c) / 6))
    assert named(POSITIONS, "PE", pe[:, [0, 2, 4, 1, 3, 5]]) == {"sin-cos-concatenated"}


@pytest.mark.parametrize(
    ("id", "angle"),
    [
        ("exponent-doubled", lambda p, i: p / 10000 ** (4 * i / 6)),
        ("positions-from-one", lambda p, i: (p + 1) / 10000 ** (2 * i / 6)),
        ("base-changed", lambda p, i: p / 1000 ** (2 * i / 6)),
    ],
)
def test_a_mistake_in_the_angles_is_named(id: str, angle: Any) -> None:
    assert named(POSITIONS, "angle", [[angle(p, i) for i in range(3)] for p in range(4)]) == {id}


@pytest.mark.parametrize(("right", "id"), [("adjacent", "half-split-pairs"), ("half", "adjacent-pairs")])
def test_other_pairs(right: str, id: str) -> None:
    other = {"adjacent": "half", "half": "adjacent"}[right]
    wrong = trace_of("rotary", {"X": some(3, 4)}, pairing=other)["rotated"]
    assert named(Case({"X": some(3, 4)}, {"pairing": right}).problem("rotary"), "rotated", wrong) == {id}


def test_turned_the_other_way() -> None:
    case = Case({"X": some(3, 4)})
    back = trace_of("rotary", {"X": some(3, 4)[::-1]}, start=-2)["rotated"][::-1]
    assert named(case.problem("rotary"), "rotated", back) == {"rotation-reversed"}
    trace = case.with_upstream("rotary").graph().evaluate()
    on = trace_of("rotary", {"X": trace["G_rotated"]})["rotated"]
    assert "rotation-reversed" in named(case.with_upstream("rotary"), "G_X", on)


def test_another_base_of_rotary() -> None:
    wrong = trace_of("rotary", {"X": some(3, 4)}, base=1000)["rotated"]
    assert named(Case({"X": some(3, 4)}).problem("rotary"), "rotated", wrong) == {"base-changed"}


def test_a_residual_without_its_other_half() -> None:
    x, f = some(3, 2), some(2, 3).T
    problem = Case({"X": x, "F": f}).problem("residual")
    assert named(problem, "Y", f) == {"residual-missing"}
    assert named(problem, "Y", 2 * f) == {"residual-doubled"}


def test_an_averaged_bias() -> None:
    problem = CASES["feed_forward"][4].with_upstream("feed_forward")
    trace = problem.graph().evaluate()
    assert named(problem, "G_b_1", trace["G_b_1"] / 2) == {"mean-for-sum"}
