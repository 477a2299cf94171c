"""What is written down by hand with a mistake is marked wrong, and the mistake is named."""

from __future__ import annotations

import numpy as np
import pytest

from attncli.arithmetic import Value
from attncli.arithmetic.hand import Hand
from attncli.marking.mark import Marker
from attncli.mistakes import mistakes_at, without_vaguer
from attncli.problems.answers import sheet
from attncli.problems.matrix_text import parse_matrix
from attncli.problems.problem import Problem

EXERCISE = Problem(
    "attention",
    {
        "Q": parse_matrix("1.3 0.2; -0.4 2.1; 0.7 0.9"),
        "K": parse_matrix("0.6 -1.1; 1.7 0.3; -0.2 0.8"),
        "V": parse_matrix("1 4; 2 -3; 0.5 1"),
    },
    settings={"causal": True, "keep": [[True, True, False]]},
    decimals=3,
)


def text(value: Value) -> str:
    return "; ".join(" ".join(str(cell) if np.isinf(cell) else f"{cell:.3f}" for cell in row) for row in value)


@pytest.mark.parametrize("step", ["scaled", "masked", "A"])
def test_one_line_by_hand(step: str) -> None:
    graph, hand = EXERCISE.graph(), Hand(3)
    marker, right = Marker(EXERCISE), graph.evaluate(hand)[step]
    for mistake in mistakes_at(graph, step):
        value = graph.evaluate(hand, swap=mistake.swap)[step]
        if np.isnan(value).any() or np.allclose(value, right, atol=2e-3):
            continue
        marked = marker.mark(sheet({"answers": {step: text(value)}}))
        one = next(found for found in marked.steps if found.id == step)
        assert one.verdict == "wrong", (mistake.id, text(value))
        assert mistake.id in {named.id for named in one.mistakes}, (mistake.id, text(value))


@pytest.mark.parametrize("hidden", ["0", "0.5", "5", "-40", "inf", "1e-9"])
def test_no_number_passes_for_what_is_hidden(hidden: str) -> None:
    """−∞ is right, and a number as large as −10⁹ that stands for it; nothing else is near −∞."""
    masked = text(EXERCISE.graph().evaluate()["masked"]).split("; ")
    for number, wrong in ((hidden, True), ("-1e9", False), ("-inf", False)):
        rows = [row.replace("-inf", number, 1) if i == 0 else row for i, row in enumerate(masked)]
        marked = Marker(EXERCISE).mark(sheet({"answers": {"masked": "; ".join(rows)}}))
        one = next(found for found in marked.steps if found.id == "masked")
        assert (one.verdict == "wrong") is wrong, (number, one.verdict)


#: −ln of a cross-entropy and half a squared error, weighted; and what they come to if a factor is left out.
PARTS = "1/2*mse(A, T) + 3*nll(A, Y)"


def of_parts() -> Problem:
    extras = {"T": parse_matrix("0.2 0.9"), "Y": parse_matrix("0")}
    return Problem("softmax", {"scores": parse_matrix("1 3")}, loss=PARTS, extras=extras)


def marked_with(problem: Problem, answers: dict[str, Value]) -> dict[str, tuple[str, set[str]]]:
    full = {id: "; ".join(" ".join(f"{cell:.6f}" for cell in row) for row in value) for id, value in answers.items()}
    marks = Marker(problem.changed(decimals=6)).mark(sheet({"answers": full}))
    return {step.id: (step.verdict, {named.id for named in step.mistakes}) for step in marks.steps}


@pytest.mark.parametrize("left_out", [("loss.mse",), ("loss2.nll",), ("loss.mse", "loss2.nll")])
def test_a_factor_of_a_loss_left_out(left_out: tuple[str, ...]) -> None:
    problem = of_parts()
    trace = problem.graph().evaluate()
    factors = {id: 1.0 if id in left_out else factor for id, factor in (("loss.mse", 0.5), ("loss2.nll", 3.0))}
    loss = sum(factor * trace[id] for id, factor in factors.items())
    assert marked_with(problem, {"L": loss})["L"] == ("wrong", {"loss-factor-missing"})
    # The same learner forgets it in the gradient: one mistake, charged once.
    sizes = {"loss.mse": ("G_A_mse", 0.5), "loss2.nll": ("G_A_nll", 3.0)}
    back = {gradient: trace[gradient] / size for id, (gradient, size) in sizes.items() if id in left_out}
    found = marked_with(problem, {"L": loss, **back})
    assert found["L"] == ("wrong", {"loss-factor-missing"})
    assert {found[gradient][0] for gradient in back} == {"follow_through"}
    alone = marked_with(problem, back)
    for gradient in back:
        verdict, names = alone[gradient]
        assert verdict == "wrong"
        assert "loss-factor-missing" in names
        assert without_vaguer(sorted(names)) == ["loss-factor-missing"]  # the one that a learner reads about


NORMS = {
    "layer_norm": ("variance", "std", "5 -1 1 2; 2 -6 2 1; 2 2 -4 -2"),
    "rms_norm": ("mean_square", "rms", "5 -1 1 2; 2 -6 2 1; 2 2 -4 -2"),
}


@pytest.mark.parametrize("model", NORMS)
@pytest.mark.parametrize("root_written", [False, True])
@pytest.mark.parametrize("inner", [0.0, 1.0])
@pytest.mark.parametrize("outer", [0.0, 1.0])
def test_a_root_of_the_root(model: str, root_written: bool, inner: float, outer: float) -> None:
    """√(σ + ε) with the σ of the page, √σ, and √(√σ² + ε), of a LayerNorm and of an RMS norm."""
    square, root, text_of_x = NORMS[model]
    problem = Problem(model, {"X": parse_matrix(text_of_x)}, settings={"eps": 0.01}, decimals=3)
    trace = problem.graph().evaluate()
    source = trace["centred"] if "centred" in trace else trace["X"]
    sigma = np.sqrt(np.round(trace[square], 3) + inner * 0.01)
    value = source / np.sqrt((np.round(sigma, 3) if root_written else sigma) + outer * 0.01)
    if not inner and not outer:
        return  # no ε at all: two things at once
    if root_written and not inner:
        return  # σ is written, and is another
    written = {root: text(np.round(trace[root], 3))} if root_written else {}
    marks = Marker(problem).mark(sheet({"answers": {**written, "normalised": text(value)}}))
    one = next(step for step in marks.steps if step.id == "normalised")
    assert one.verdict == "wrong"
    assert {named.id for named in one.mistakes} == {"rooted-twice"}


def test_n_minus_1_in_an_rms_norm() -> None:
    problem = Problem("rms_norm", {"X": parse_matrix("1 2 2; 3 0 6")}, decimals=3)
    marks = Marker(problem).mark(sheet({"answers": {"mean_square": "4.5; 22.5"}}))
    one = next(step for step in marks.steps if step.id == "mean_square")
    assert [named.id for named in one.mistakes] == ["sample-variance"]
    assert "mean of the squares" in str(one.said[0])


def test_a_sum_of_logits_is_that_of_the_shifted_ones() -> None:
    """Where every score is the largest of its row, nothing is left to be added up, and nothing to divide by."""
    equal = Problem("softmax", {"scores": parse_matrix("1.4142 1.4142")}, decimals=3)
    # e^0 / (1.4142 + 1.4142) is about 0.4, as 0.5 is about 0.4 too.
    assert marked_at(equal, "A", "0.4 0.4") == ("wrong", set())
    assert marked_at(equal, "row_sum", "2.828") == ("wrong", set())
    other = equal.changed(inputs={"scores": parse_matrix("1 4")})
    assert marked_at(other, "row_sum", "-3") == ("wrong", {"sum-of-logits"})
    assert marked_at(other, "row_sum", "5")[1] == set()


def marked_at(problem: Problem, step: str, answer: str) -> tuple[str, set[str]]:
    one = next(one for one in Marker(problem).mark(sheet({"answers": {step: answer}})).steps if one.id == step)
    return one.verdict, {named.id for named in one.mistakes}
