"""Losses as people write them: factors, sums, ½Σ(O−T)², −ln A[1,2], an L2 term, soft targets, logits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attncli.core.gradient import verify
from attncli.core.matrix import as_matrix
from attncli.core.message import AttnError, InputError
from attncli.problems.problem import Problem, arithmetic_called

Q = np.array([[1.0, 2.0], [0.5, -1.0]])
K = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]])
V = np.array([[2.0, 0.0], [0.0, 4.0], [1.0, 1.0]])
T = np.array([[1.0, 2.0], [0.0, 1.0]])
U = np.array([[-1.0, 0.5], [2.0, 3.0]])
SOFT = np.array([[0.2, 0.5, 0.3], [0.0, 0.9, 0.1]])
CLASSES = np.array([[1.0, 2.0]])
EXTRAS = {"T": as_matrix(T), "U": as_matrix(U), "Y": as_matrix(SOFT), "C": as_matrix(CLASSES)}
STACKED = np.array([Q, Q[::-1] + 0.25])


def attention(text: str, q: np.ndarray = Q, k: np.ndarray = K, v: np.ndarray = V) -> Problem:
    inputs = {"Q": as_matrix(q), "K": as_matrix(k), "V": as_matrix(v)}
    return Problem("attention", inputs, loss=text, extras=EXTRAS)


def softmax(s: np.ndarray) -> np.ndarray:
    power = np.exp(s - s.max(-1, keepdims=True))
    return np.asarray(power / power.sum(-1, keepdims=True))


S = Q @ K.T / np.sqrt(2)
A = softmax(S)
O = A @ V  # noqa: E741

VALUES: dict[str, float] = {
    "0.5*mse(O, T)": 0.5 * np.mean((O - T) ** 2),
    "2*sum(O) + mse(O, T)": 2 * O.sum() + np.mean((O - T) ** 2),
    "mse(O, T) + 3*mse(O, U)": np.mean((O - T) ** 2) + 3 * np.mean((O - U) ** 2),
    "1/2*sum((O-T)^2)": 0.5 * np.sum((O - T) ** 2),
    "sum((O - T)^2)/2": 0.5 * np.sum((O - T) ** 2),
    "½Σ(O−T)²": 0.5 * np.sum((O - T) ** 2),
    "½ Σ_ij (O − T)²".replace("_ij", "_{ij}"): 0.5 * np.sum((O - T) ** 2),
    "½‖O−T‖²": 0.5 * np.sum((O - T) ** 2),
    "1/2 ||O - T||^2": 0.5 * np.sum((O - T) ** 2),
    r"\frac12 \sum_{i,j} (O - T)^2": 0.5 * np.sum((O - T) ** 2),
    r"\frac{1}{2}\lVert O - T\rVert^{2}": 0.5 * np.sum((O - T) ** 2),
    "mean((O-T)^2)": float(np.mean((O - T) ** 2)),
    "mean(O)": O.mean(),
    "0.5*sum(O)": 0.5 * O.sum(),
    "(1 + 1)*O[1,1] + (-1)*sum(O)": 2 * O[0, 0] - O.sum(),
    "(O[1,1] + O[1,2])/2": (O[0, 0] + O[0, 1]) / 2,
    "2(O[1,1] - 3 O[2,2])": 2 * (O[0, 0] - 3 * O[1, 1]),
    "-ln A[1,2]": -np.log(A[0, 1]),
    "-log(A[1,2])": -np.log(A[0, 1]),
    "−ln(A[1,2]) − 2·ln A[2,3]": -np.log(A[0, 1]) - 2 * np.log(A[1, 2]),
    r"-\ln A_{1,2}": -np.log(A[0, 1]),
    "nll(A, C)": -(np.log(A[0, 1]) + np.log(A[1, 2])) / 2,
    "nll(A, C, sum)": -(np.log(A[0, 1]) + np.log(A[1, 2])),
    "3*nll(A, C)": -1.5 * (np.log(A[0, 1]) + np.log(A[1, 2])),
    "nll(A, Y)": -np.sum(SOFT * np.log(A)) / 2,
    "cross_entropy(scaled, C)": -(np.log(A[0, 1]) + np.log(A[1, 2])) / 2,
    "cross_entropy(scaled, Y)": -np.sum(SOFT * np.log(A)) / 2,
    "0.1*cross_entropy(scaled, C) + sum(O)": -0.05 * (np.log(A[0, 1]) + np.log(A[1, 2])) + O.sum(),
    "mse(O, T) + 0.01*sum(Q^2)": np.mean((O - T) ** 2) + 0.01 * np.sum(Q**2),
    "mse(O, T) + 0.01*‖Q‖² + 0.01*‖K‖²": np.mean((O - T) ** 2) + 0.01 * np.sum(Q**2) + 0.01 * np.sum(K**2),
    "sum(O) - ln A[1,1] + 0.5*A[2,2] + mean(scores^2)": O.sum()
    - np.log(A[0, 0])
    + 0.5 * A[1, 1]
    + np.mean((Q @ K.T) ** 2),
}


@pytest.mark.parametrize("text", VALUES)
def test_the_value_and_every_gradient(text: str) -> None:
    """The value by NumPy, the gradients by finite differences of the loss itself."""
    problem = attention(text)
    graph = problem.graph()
    assert graph.evaluate()["L"] == pytest.approx(VALUES[text], rel=1e-12)
    assert verify(graph).ok
    assert problem.graph(backward=False).evaluate()["L"] == pytest.approx(VALUES[text], rel=1e-12)


@pytest.mark.parametrize("text", VALUES)
def test_the_gradients_by_closed_formulas(text: str) -> None:
    """∂L/∂O, ∂L/∂A and ∂L/∂S by central differences of a NumPy function of Q, K, V: nothing of the tool's graph."""
    values = attention(text).graph().evaluate()
    for name, place in (("Q", 0), ("K", 1), ("V", 2)):
        if f"G_{name}" not in values:
            assert name == "V" and "O" not in text  # the weights do not depend on V
            continue
        given_arrays = [Q, K, V]
        expected = np.zeros_like(given_arrays[place])
        for cell in np.ndindex(expected.shape):
            ends = []
            for h in (1e-5, -1e-5):
                moved = [array.copy() for array in given_arrays]
                moved[place][cell] += h
                ends.append(attention(text, *moved).graph(backward=False).evaluate()["L"].item())
            expected[cell] = (ends[0] - ends[1]) / 2e-5
        np.testing.assert_allclose(values[f"G_{name}"], expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("text", ["sum(O)", "½Σ(O−T)²", "-ln A[1,1,2]", "mean(O^2) - 3 ln A[2,2,1] + O[1,1,2]"])
def test_heads(text: str) -> None:
    inputs = {"Q": as_matrix(STACKED), "K": as_matrix(np.array([K, K + 0.5])), "V": as_matrix(np.array([V, V - 1]))}
    extras = {"T": as_matrix(np.array([T, T + 1]))}
    assert verify(Problem("attention", inputs, loss=text, extras=extras).graph()).ok


def test_cross_entropy_of_logits_not_of_weights() -> None:
    """−ln softmax of the scores 2 1 1 is 0.5514; with a softmax of the softmax it would be 0.8711."""
    scores = np.array([[2.0, 1.0, 1.0]])
    problem = Problem(
        "softmax", {"scores": as_matrix(scores)}, loss="cross_entropy(scores, T)", extras={"T": as_matrix([[0.0]])}
    )
    values = problem.graph().evaluate()
    assert f"{values['L'].item():.4f}" == "0.5514"
    np.testing.assert_allclose(values["G_scores"], softmax(scores) - [[1, 0, 0]])
    # No second softmax: the one that stands there is used.
    assert not [id for id in values.graph.steps if id.endswith("loss.P")]


def test_minus_the_logarithm_alone_gives_the_same_gradient_through_softmax() -> None:
    scores = np.array([[0.3, 1.2, -0.4]])

    def gradient(text: str) -> np.ndarray:
        problem = Problem("softmax", {"scores": as_matrix(scores)}, loss=text, extras={"T": as_matrix([[1.0]])})
        return np.asarray(problem.graph().evaluate()["G_scores"])

    for text in ("nll(A, T)", "-ln A[1,2]", "-log(A[1,2])"):
        np.testing.assert_allclose(gradient(text), softmax(scores) - [[0, 1, 0]], rtol=1e-12)


def test_factors_stay_exact() -> None:
    sympy = pytest.importorskip("sympy")
    values = (
        attention("1/3*sum(O^2) - 1/7*ln A[1,1]").graph().evaluate(arithmetic_called("exact"), until=["G_O", "G_A_nll"])
    )
    assert values["G_A_nll"][0, 0] == sympy.nsimplify(-sympy.Rational(1, 7) / values["A"][0, 0])


def test_one_half_takes_the_two_away() -> None:
    """½Σ(O−T)²: the gradient is the error itself, and no step multiplies by 1."""
    step = attention("½Σ(O−T)²").graph().steps["G_O"]
    assert (step.op.name, step.inputs) == ("identity", ("error",))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cross_entropy(A, C)", "softmax would be taken twice. Write cross_entropy(scaled, C)"),
        ("cross_entropy(A, C)", "or nll(A, C)"),
        ("cross_entropy(A, C)", "-ln A[1,2]"),
        ("0.5*cross_entropy(A, Y)", "softmax would be taken twice"),
        ("sum(O - T)", "Write sum((O - T)^2)."),
        ("sum(O-T)^2", "Write sum((O - T)^2)."),
        ("sum(O)^2", "would square the sum"),
        ("mean(O)^2", "would square the sum"),
        ("O[1,1]^2", "cannot be read from “^2” on"),
        ("sum(Q^2)", "The loss names “Q”, but the output here is O."),
        ("-ln Q[1,1]", "The loss names “Q”, but the output here is O."),
        ("sum(O) + sum(W^2)", "The loss names “W”, but the output here is O."),
        ("ln O", "cannot be read from"),
        ("-ln A[0,1]", "rows and columns are counted from 1"),
        ("sum(O) + 1", "cannot be read from “+ 1” on"),
        ("1/sum(O)", "cannot be read from “/sum(O)” on"),
        ("sum(O)*mse(O, T)", "cannot be read from “*mse(O, T)” on"),
        ("sum(O) +", "stops in the middle"),
        ("(sum(O)", "stops in the middle"),
        ("sum(O))", "cannot be read from “)” on"),
        ("(" * 300 + "sum(O)" + ")" * 300, "cannot be read"),
        ("3", "cannot be read from “3” on"),
        ("1/0*sum(O)", "not finite"),
        ("nll(A, D)", "the targets “D”, which are not given"),
        ("nll(A, C, most)", "most"),
        ("sum(O); import os", "cannot be read from “; import os” on"),
        ("½Σ(O−V)²", "part of this calculation already"),
        ("sum((O - Y)^2)", "The target Y is 2×3"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, said: str) -> None:
    with pytest.raises(AttnError) as error:
        attention(text).graph()
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([[0.2, 0.5, 0.2], [0.0, 0.9, 0.1]], "Y, row 1 adds up to 0.9"),
        ([[0.2, 1.0, -0.2], [0.0, 0.9, 0.1]], "negative"),
    ],
)
def test_soft_targets_are_probabilities(rows: list[list[float]], said: str) -> None:
    problem = attention("cross_entropy(scaled, Y)").changed(extras={"Y": as_matrix(rows)})
    with pytest.raises(InputError, match=said):
        problem.graph()


@settings(deadline=None)
@given(st.text(alphabet="O[]()12,+-*/^. AlnsumΣ½²T‖", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        attention(text).graph()
    except AttnError as error:
        assert str(error)


NAMES: Callable[[str], list[str]] = lambda text: list(attention(text).graph().steps)  # noqa: E731


def test_the_names_of_steps_stay() -> None:
    """What FORMATS and others' files rely on."""
    assert {"error", "L", "G_O"} <= set(NAMES("mse(O, T)"))
    assert {"error", "loss.mse", "loss2.linear", "L", "G_O_mse", "G_O_linear", "G_O"} <= set(
        NAMES("mse(O, T) + sum(O)")
    )
    assert {"loss.picked", "loss.surprise", "loss.error", "L", "G_scaled"} <= set(NAMES("cross_entropy(scaled, C)"))
    assert {"L", "G_A", "weighted", "G_scaled"} <= set(NAMES("-ln A[1,2]"))


def test_a_logarithm_to_another_base_is_named() -> None:
    """Of −ln A[1,2] too."""
    from attncli.api import mark

    marked = mark(attention("-ln A[1,2]"), {"L": f"{-np.log2(A[0, 1]):.3f}"})
    assert [mistake.id for step in marked.steps for mistake in step.mistakes] == ["log-base"]


def test_a_visible_score_beside_hidden_ones_is_a_loss() -> None:
    inputs = {"Q": as_matrix(Q), "K": as_matrix(K[:2]), "V": as_matrix(V[:2])}
    run = Problem("attention", inputs, settings={"causal": True}, loss="2*masked[1,1]").graph().evaluate()
    np.testing.assert_allclose(run["L"], 2 * S[:1, :1])
