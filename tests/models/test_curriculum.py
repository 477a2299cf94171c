"""The numbers of the curriculum, parts A, B and C, digit for digit as their sources print them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attncli.arithmetic import Arithmetic
from attncli.arithmetic.floating import FLOATING
from attncli.arithmetic.hand import Hand
from attncli.core.graph import Trace
from attncli.core.matrix import as_matrix
from attncli.core.message import InputError
from attncli.problems.problem import Problem

INF = np.inf
FRUIT = {"Q": [[1, 2]], "K": [[1, 0], [0, 1]], "V": [[2, 0], [0, 4]]}
FIRST = {"Q": [[1, 1]], "K": [[2, 0], [0, 2]], "V": [[2, 4], [6, 8]]}
TABLE = [[0.2, 0.5, -0.1], [0.8, -0.3, 0.6], [-0.4, 0.9, 0.2], [0.1, 0.7, -0.5]]


def trace_of(
    model: str,
    inputs: dict[str, Any],
    settings: dict[str, Any] | None = None,
    *,
    arithmetic: Arithmetic = FLOATING,
    upstream: Any = None,
    **more: Any,
) -> Trace:
    matrices = {name: as_matrix(values) for name, values in inputs.items()}
    given = None if upstream is None else as_matrix(upstream)
    return Problem(model, matrices, settings=settings or {}, upstream=given, **more).graph().evaluate(arithmetic)


def printed(values: np.ndarray, decimals: int) -> list[Any]:
    """Rounded to the digits that are printed."""
    return np.round(values, decimals).tolist()  # type: ignore[no-any-return]


def test_a1_pronoun_in_full_precision() -> None:
    trace = trace_of("attention", FRUIT)
    assert trace["scores"].tolist() == [[1, 2]]
    assert printed(trace["scaled"], 3) == [[0.707, 1.414]]
    assert printed(trace["A"], 3) == [[0.330, 0.670]]
    assert printed(trace["O"], 4) == [[0.6605, 2.6790]]


def test_a1_pronoun_by_hand_with_rounded_numbers_carried_on() -> None:
    trace = trace_of("attention", FRUIT, arithmetic=Hand(3))
    assert trace["scaled"].tolist() == [[0.707, 1.414]]
    assert trace["A"].tolist() == [[0.330, 0.670]]
    assert trace["O"].tolist() == [[0.660, 2.680]]


def test_a2_first_hand_exercise() -> None:
    trace = trace_of("attention", FIRST)
    assert trace["scores"].tolist() == [[2, 2]]
    assert trace["A"].tolist() == [[0.5, 0.5]]
    assert trace["O"].tolist() == [[4, 6]]
    assert np.array_equal(np.array(FIRST["K"]).T, FIRST["K"])


def test_a3_queries_meet_rows_of_keys_and_weights_mix_rows_of_values() -> None:
    trace = trace_of("attention", FIRST)
    q, k, v, a = (trace[id] for id in ("Q", "K", "V", "A"))
    assert trace["scores"][0, 1] == sum(q[0, c] * k[1, c] for c in range(2))
    assert trace["O"].tolist() == [[sum(a[0, r] * v[r, c] for r in range(2)) for c in range(2)]]
    products = {id: trace.graph.steps[id] for id in ("scores", "O")}
    assert products["scores"].formula() == r"#1 #2^{\top}"
    assert products["O"].formula() == "#1 #2"


def test_a4_scores_are_queries_by_keys() -> None:
    q, k = np.arange(6.0).reshape(3, 2), np.arange(6.0, 12.0).reshape(3, 2)
    trace = trace_of("attention", {"Q": q, "K": k, "V": k})
    assert trace["scores"].shape == (3, 3)
    assert trace["scores"][1, 2] == q[1] @ k[2]
    assert [axis.name for axis in trace.graph.axes("scores")] == ["query", "key"]


def test_a5_the_variance_of_a_dot_product_is_d_k() -> None:
    r = np.random.default_rng(64)
    trace = trace_of("dot_variance", {"q": r.normal(size=(4000, 64)), "k": r.normal(size=(4000, 64))})
    assert trace["expected_variance"].tolist() == [[64]]
    assert trace["expected_std"].tolist() == [[8]]
    assert trace["expected_scaled_variance"].tolist() == [[1]]
    np.testing.assert_allclose(trace["variance"], 64, rtol=0.1)
    np.testing.assert_allclose(trace["scaled_variance"], 1, rtol=0.1)


@pytest.mark.parametrize("c", [-1000.0, 0.5, 700.0])
def test_a6_a7_rows_add_up_to_1_and_a_constant_changes_nothing(c: float) -> None:
    scores = np.array([[1.0, 2.0, 3.0], [-4.0, 0.0, 0.25]])
    weights = trace_of("softmax", {"scores": scores})["A"]
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-15)
    np.testing.assert_allclose(trace_of("softmax", {"scores": scores - c})["A"], weights, rtol=1e-12)


def test_a8_max_subtraction() -> None:
    trace = trace_of("softmax", {"scores": [[1, -INF, -INF], [4, 5, -INF], [7, 8, 9]]})
    e = np.exp(1)
    assert trace["row_max"].ravel().tolist() == [1, 5, 9]
    assert trace["shifted"].tolist() == [[0, -INF, -INF], [-1, 0, -INF], [-2, -1, 0]]
    np.testing.assert_allclose(trace["exp"], [[1, 0, 0], [1 / e, 1, 0], [1 / e**2, 1 / e, 1]], rtol=1e-15)


def test_a9_the_causal_mask_of_three_tokens() -> None:
    x = np.ones((3, 2))
    trace = trace_of("attention", {"Q": x, "K": x, "V": x}, {"causal": True})
    assert trace["M"].tolist() == [[0, -INF, -INF], [0, 0, -INF], [0, 0, 0]]
    assert np.array_equal(np.isneginf(trace["M"]), np.triu(np.ones((3, 3)), k=1) == 1)
    assert (trace["A"][np.triu_indices(3, 1)] == 0).all()


@pytest.mark.parametrize("max_over", ["visible", "all"])
def test_a10_max_before_or_after_the_mask(max_over: str) -> None:
    inputs = {"Q": [[1.0], [1.0]], "K": [[1.0], [801.0]], "V": [[3.0], [5.0]]}
    trace = trace_of("attention", inputs, {"causal": True, "max_over": max_over})
    if max_over == "visible":
        assert trace["A"][0].tolist() == [1, 0]
    else:
        assert trace["exp"][0].tolist() == [0, 0]
        assert np.isnan(trace["A"][0]).all()


def test_a11_causal_self_attention() -> None:
    eye = np.eye(2)
    inputs = {"X": [[1, 0], [0, 1], [1, 1]], "W_Q": eye, "W_K": eye, "W_V": eye}
    trace = trace_of("self_attention", inputs, {"causal": True})
    assert printed(trace["A"], 3) == [[1, 0, 0], [0.33, 0.67, 0], [0.248, 0.248, 0.503]]
    assert printed(trace["O"], 3) == [[1, 0], [0.33, 0.67], [0.752, 0.752]]


WEIGHTED = {"A": [[0.3, 0.7]], "V": [[2, 4], [6, 8]]}


def test_b1_output() -> None:
    assert printed(trace_of("product", WEIGHTED)["O"], 12) == [[4.8, 6.8]]


def test_b2_upstream_gradient_of_a_loss() -> None:
    trace = trace_of("product", WEIGHTED, loss="O[1,1] + 2*O[1,2]")
    assert trace["G_O"].tolist() == [[1, 2]]
    assert printed(trace["L"], 12) == [[18.4]]


def test_b3_b4_b5_gradients_of_weights_and_values() -> None:
    trace = trace_of("product", WEIGHTED, upstream=[[1, 2]])
    assert trace["G_A"].tolist() == [[10, 22]]
    assert trace["G_V"].tolist() == [[0.3, 0.6], [0.7, 1.4]]
    rule = trace.graph.steps["G_A"]
    assert rule.inputs == ("G_O", "V")
    assert rule.formula() == r"#1 #2^{\top}"


def test_b_goes_the_whole_way_in_the_setting_of_the_source() -> None:
    """Vocabulary 6, 3 tokens, d_model 4, d_k = d_v = 2."""
    r = np.random.default_rng(0)
    inputs = {"E": r.normal(size=(6, 4)), "T": [4, 0, 2]}
    inputs |= {name: r.normal(size=(4, 2)) for name in ("W_Q", "W_K", "W_V")}
    trace = trace_of("embedded_attention", inputs, {"causal": True}, loss="sum(O)")
    shapes = {"X": (3, 4), "Q": (3, 2), "K": (3, 2), "V": (3, 2), "scores": (3, 3), "A": (3, 3), "O": (3, 2)}
    assert {id: trace[id].shape for id in shapes} == shapes
    for id in ("E", "W_Q", "W_K", "W_V"):
        assert trace[f"G_{id}"].shape == trace[id].shape
    assert (trace["G_E"][[1, 3, 5]] == 0).all()


def ids_of(text: str, **settings: Any) -> list[int]:
    trace = Problem("tokens", texts={"text": text}, settings=settings).graph().evaluate()
    return [int(id) for id in trace["T"]]


def test_c1_encode_with_a_vocabulary() -> None:
    assert ids_of("我爱你", vocabulary=["我", "爱", "你"]) == [0, 1, 2]


def test_c2_build_a_vocabulary() -> None:
    problem = Problem("tokens", texts={"text": "我爱你"}, settings={"corpus": "我爱你你爱我"})
    assert problem.graph().labels["vocabulary"] == ("我", "爱", "你")


def test_c_an_unknown_character_is_an_error_or_an_explicit_token() -> None:
    with pytest.raises(InputError) as error:
        ids_of("我爱她", vocabulary=["我", "爱", "你"])
    assert str(error.value).startswith("“她” (token 3 of the text) is not in the vocabulary: 我 爱 你.")
    assert ids_of("我爱她", vocabulary=["我", "爱", "你"], unknown="?") == [0, 1, 3]


def test_c3_c4_look_up() -> None:
    assert trace_of("embedding", {"E": TABLE, "T": [2]})["X"].tolist() == [[-0.4, 0.9, 0.2]]
    assert trace_of("embedding", {"E": TABLE, "T": [2, 3, 0]})["X"].tolist() == [TABLE[2], TABLE[3], TABLE[0]]


def test_c5_shapes() -> None:
    trace = trace_of("embedding", {"E": np.zeros((100, 64)), "T": [1, 2, 3, 4, 5]})
    assert trace["X"].shape == (5, 64)


def test_c6_embedding_gradient() -> None:
    inputs = {"E": [[0.2, 0.5], [0.8, 0.3], [0.4, 0.9]], "T": [0, 2]}
    trace = trace_of("embedding", inputs, upstream=[[0.6, -0.2], [0.1, 0.4]])
    assert trace["G_E"].tolist() == [[0.6, -0.2], [0, 0], [0.1, 0.4]]


def test_c7_a_repeated_token_accumulates() -> None:
    inputs = {"E": [[0.2, 0.5], [0.8, 0.3], [0.4, 0.9]], "T": [0, 0, 2]}
    trace = trace_of("embedding", inputs, upstream=[[0.2, 0.3], [0.5, -0.1], [0.1, 0.4]])
    assert printed(trace["G_E"], 12)[0] == [0.7, 0.2]


def test_c8_update() -> None:
    inputs = {"E": [[0.2, 0.5], [0.8, 0.3], [0.4, 0.9]], "T": [0, 2]}
    trace = trace_of("embedding", inputs, {"eta": 0.1}, upstream=[[0.6, -0.2], [0.1, 0.4]])
    assert printed(trace["E_new"], 12) == [[0.14, 0.52], [0.8, 0.3], [0.39, 0.86]]
