"""ALiBi: the paper's slopes, what distance costs, masks beside it, a cache, and the mistakes that are named."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from cases import Case, cached, heads, message, qkv, some, tokens, trace_of

import attncli
from attncli.arithmetic.expression import FLOATS, evaluate
from attncli.arithmetic.interval import IntervalArithmetic
from attncli.marking.mark import Marker
from attncli.models.masks import slopes_of
from attncli.problems.answers import sheet
from attncli.problems.problem import Problem, arithmetic_called


def of_the_authors(n: int) -> list[float]:
    """`get_slopes` of github.com/ofirpress/attention_with_linear_biases, as published."""

    def power_of_2(n: int) -> list[float]:
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(n).is_integer():
        return power_of_2(n)
    closest = 2 ** math.floor(math.log2(n))
    return power_of_2(closest) + of_the_authors(2 * closest)[0::2][: n - closest]


@pytest.mark.parametrize("count", [*range(1, 21), 32, 40, 64])
def test_slopes_are_those_of_the_paper(count: int) -> None:
    found = [evaluate(slope, FLOATS) for slope in slopes_of(count)]
    np.testing.assert_allclose(found, of_the_authors(count), rtol=1e-14)
    assert len(found) == count


def test_eight_heads_have_halves_of_halves() -> None:
    assert [evaluate(slope, FLOATS) for slope in slopes_of(8)] == [1 / 2**h for h in range(1, 9)]


@pytest.mark.parametrize("count", [2, 3])
def test_what_distance_costs(count: int) -> None:
    inputs = qkv(4, 4, 2, 3, heads=count)
    trace = trace_of("attention", inputs, alibi=True)
    for h, slope in enumerate(of_the_authors(count)):
        for i in range(4):
            for j in range(4):
                assert trace["M"][h, i, j] == -slope * abs(i - j)
    np.testing.assert_allclose(trace["masked"], trace["scaled"] + trace["M"], rtol=1e-15)
    causal = trace_of("attention", inputs, alibi=True, causal=True)
    assert np.array_equal(causal["M"], np.where(np.tri(4) > 0, trace["M"], -np.inf))


def test_one_head_without_an_axis_for_it() -> None:
    alone = trace_of("attention", qkv(3, 3, 2, 2), alibi=True)
    assert alone["M"].tolist() == [[0, -1 / 256, -2 / 256], [-1 / 256, 0, -1 / 256], [-2 / 256, -1 / 256, 0]]
    own = trace_of("self_attention", tokens(3, 4, 2, 2), alibi="0.5", causal=True)
    assert own["M"][2].tolist() == [-1, -0.5, 0] and np.isneginf(own["M"][0, 1:]).all()


def test_slopes_may_be_given() -> None:
    inputs = heads(3, 4, 2, 2, 3, 2)
    for written in ("1/2 1/4", [0.5, 0.25], [[0.5], [0.25]]):
        trace = trace_of("multi_head", inputs, heads=2, alibi=written)
        assert trace["M"][:, 0].tolist() == [[0, -0.5, -1], [0, -0.25, -0.5]]
    off = trace_of("multi_head", inputs, heads=2, alibi=False)
    assert "M" not in off and "masked" not in off


def test_it_is_the_same_mask_written_out() -> None:
    inputs = heads(3, 4, 2, 2, 3, 4, 2)
    biased = trace_of("multi_head", inputs, heads=4, kv_heads=2, alibi=True, causal=True)
    written = np.where(np.isneginf(biased["M"]), "-inf", biased["M"].astype(str)).tolist()
    spelled = trace_of("multi_head", inputs, heads=4, kv_heads=2, mask=written)
    assert np.array_equal(spelled["output"], biased["output"])


def test_other_masks_stand_beside_it() -> None:
    inputs = qkv(3, 3, 2, 2, heads=2)
    numbers = [[0.5, -1.0, 0.25], [0.0, 2.0, -0.75], [1.5, 0.0, -2.0]]
    bias = trace_of("attention", inputs, alibi="1 2")["M"]
    np.testing.assert_allclose(trace_of("attention", inputs, alibi="1 2", mask=numbers)["M"], bias + np.array(numbers))
    hidden = trace_of("attention", inputs, alibi="1 2", hide=[[False, True, False]], window=[1, -1])["M"]
    gone = np.broadcast_to(np.array([False, True, False]) | (np.tri(3, k=-2) > 0), (2, 3, 3))
    assert np.array_equal(hidden, np.where(gone, -np.inf, bias))


@pytest.mark.parametrize("window", [[-1, -1], [2, -1]])
def test_with_a_cache_distances_count_from_it(window: list[int]) -> None:
    whole = qkv(5, 5, 2, 3, heads=2)
    asked = {"alibi": True, "causal": True, "window": window}
    at_once = trace_of("attention", whole, **asked)
    for past in range(1, 5):
        q, k, v = (values[:, past:] for values in whole.values())
        inputs = {"Q": q, "K": k, "V": v, "K_past": whole["K"][:, :past], "V_past": whole["V"][:, :past]}
        trace = trace_of("attention", inputs, **asked)
        np.testing.assert_allclose(trace["O"], at_once["O"][:, past:], rtol=1e-13)


def test_every_score_may_be_moved_alike() -> None:
    """The paper: −m·(i − j) and m·j differ by a constant along each row, which softmax does not notice."""
    inputs = qkv(4, 4, 2, 2, heads=2)
    slopes = np.array([1 / 2, 1 / 4])[:, None, None]
    forward = np.where(np.tri(4) > 0, slopes * np.arange(4)[None, None, :], -np.inf)
    written = np.where(np.isneginf(forward), "-inf", forward.astype(str)).tolist()
    one, other = (
        trace_of("attention", inputs, alibi="1/2 1/4", causal=True),
        trace_of("attention", inputs, mask=written),
    )
    np.testing.assert_allclose(one["A"], other["A"], rtol=1e-13, atol=1e-16)


# --- number systems ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", ["1/3 0.1", "sqrt(2) 3"])
def test_slopes_stay_as_they_were_written(asked: str) -> None:
    pytest.importorskip("sympy")
    graph = Case(qkv(2, 2, 1, 1, heads=2), {"alibi": asked, "causal": True}).problem("attention").graph()
    exact = graph.evaluate(arithmetic_called("exact"), until="M")["M"]
    first = {"1/3 0.1": ["-1/3", "-1/10"], "sqrt(2) 3": ["-sqrt(2)", "-3"]}[asked]
    assert [str(exact[h, 1, 0]) for h in (0, 1)] == first and str(exact[0, 0, 1]) == "-oo"
    bounds, plain = graph.evaluate(IntervalArithmetic(None))["M"], graph.evaluate()["M"]
    assert (bounds.contains(plain)).all()


def test_sixteen_heads_have_roots_of_two() -> None:
    sympy = pytest.importorskip("sympy")
    graph = Case(qkv(2, 2, 1, 1, heads=16), {"alibi": True, "mask": [["1/3", "0"], ["0", "0.1"]]})
    exact = graph.problem("attention").graph().evaluate(arithmetic_called("exact"), until="M")["M"]
    assert exact[0, 1, 0] == -sympy.sqrt(2) / 2 and exact[15, 0, 1] == -sympy.Rational(1, 256)
    assert exact[3, 0, 0] == sympy.Rational(1, 3) and exact[3, 1, 1] == sympy.Rational(1, 10)


# --- what does not fit ------------------------------------------------------------------------------------------------


def test_a_slope_for_each_head() -> None:
    assert message("attention", qkv(3, 3, 2, 2, heads=3), alibi="0.5 0.25") == (
        "alibi has 2 slopes, but there are 3 heads. Give one for each head, or write alibi = true for the usual ones."
    )
    for wrong in ("0 1", "-1 2", "inf 1", "1 2; 3 4"):
        assert message("attention", qkv(3, 3, 2, 2, heads=2), alibi=wrong).startswith(
            "alibi: Slopes are numbers above 0"
        ), wrong
    for wrong in ("maybe", "1 2; 3", {"a": 1}):
        text = message("attention", qkv(3, 3, 2, 2, heads=2), alibi=wrong)
        assert text.startswith("alibi: ") and "Here true stands, or a slope for each head" in text, text


# --- mistakes ---------------------------------------------------------------------------------------------------------


def problem(**more: Any) -> Problem:
    asked = {"alibi": "1/2 1/8", "causal": True} | more
    return Case(qkv(4, 4, 2, 3, heads=2), asked).problem("attention").changed(decimals=4)


def text(values: Any) -> str:
    return " | ".join("; ".join(" ".join(f"{v:.4f}" for v in row) for row in block) for block in values)


def named(wrong: dict[str, Any], asked: Problem) -> set[tuple[str, str]]:
    """The mistakes that the first wrong step is put down to."""
    marked = Marker(asked).mark(sheet({"answers": {id: text(values) for id, values in wrong.items()}}))
    (step,) = [step for step in marked.steps if step.id == marked.first_wrong]
    return {(one.step, one.id) for one in step.mistakes}


def test_mistakes_with_the_bias() -> None:
    asked = problem()
    t = asked.graph().evaluate()
    s, m = t["scaled"], t["M"]
    hidden = np.isneginf(m)
    bias = np.where(hidden, 0.0, m)
    wrong = {
        "bias-left-out": np.where(hidden, -np.inf, s),
        "bias-sign": np.where(hidden, -np.inf, s - bias),
        "bias-of-another-head": np.where(hidden, -np.inf, s + bias[::-1]),
        "mask-as-zero": np.where(hidden, 0.0, s + bias),
        "mask-added-as-01": s + bias + hidden,
        "no-mask": s,
    }
    for name, values in wrong.items():
        found = named({"masked": values}, asked)
        # At four decimals a tiny number is 0.
        assert found - {("masked", "mask-tiny")} == {("masked", name)}, name
    power = np.exp(wrong["bias-sign"] - wrong["bias-sign"].max(-1, keepdims=True))
    assert named({"A": power / power.sum(-1, keepdims=True)}, asked) == {("masked", "bias-sign")}


def test_the_right_sheet_is_right() -> None:
    for asked in (problem(), problem(causal=False), problem(mask=some(4, 4))):
        trace = asked.graph().evaluate()
        answers = {step.id: text(trace[step.id]) for step in trace.steps}
        assert Marker(asked).mark(sheet({"answers": answers})).ok


def test_a_cached_head_may_be_shared() -> None:
    trace = trace_of("attention", cached(2, 3, 2, 2, heads=4, kv=2), alibi=True, causal=True)
    assert trace["M"].shape == (4, 2, 5) and trace["M"][0, 0].tolist() == [-0.75, -0.5, -0.25, 0, -np.inf]


@pytest.mark.parametrize(
    "settings",
    [
        {"mask": "1/3 0"},
        {"mask": "1/3 0; 1/7 0", "causal": True},
        {"mask": "1/3 0", "alibi": True},
        {"mask": "1/3 0; 1/7 0", "hide": [[False, True], [False, False]], "alibi": "1/3"},
    ],
)
def test_fractions_of_a_mask_stay_fractions(settings: dict[str, Any]) -> None:
    """Whatever is laid over a mask, and however it is spread out, 1/3 stays 1/3."""
    sympy = pytest.importorskip("sympy")
    problem = attncli.problem("attention", inputs=qkv(2, 2, 2, 2), settings=settings)
    exact = problem.graph().evaluate(arithmetic_called("exact"), until="M")["M"]
    distance = {"1/3": sympy.Rational(1, 3), True: sympy.Rational(1, 256), None: 0}[settings.get("alibi")]
    assert exact[0, 0] == sympy.Rational(1, 3)
    assert exact[1, 0] == (sympy.Rational(1, 7) if "1/7" in settings["mask"] else sympy.Rational(1, 3)) - distance
