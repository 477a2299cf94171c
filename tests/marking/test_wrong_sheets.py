"""Wrong sheets of each kind: what is named, what is named beside it, and what follows from the learner's own lines."""

from __future__ import annotations

from typing import Any

import pytest

from attncli.arithmetic.floating import FLOATING
from attncli.core.matrix import FloatArray
from attncli.marking.mark import Marker
from attncli.mistakes import mistakes_at
from attncli.problems.answers import sheet
from attncli.problems.matrix_text import parse_matrix
from attncli.problems.problem import Problem

Q, K, V = "0.9 -0.4; 1.3 0.7", "0.6 -1.1; 1.7 0.3", "1 4; 2 -3"


def attention(decimals: int = 4, **more: Any) -> Problem:
    inputs = {name: parse_matrix(text) for name, text in zip("QKV", (Q, K, V), strict=True)}
    return Problem("attention", inputs, upstream=parse_matrix("1 -1; 0.5 2"), decimals=decimals, **more)


def rms_norm() -> Problem:
    return Problem(
        "rms_norm",
        {"X": parse_matrix("1.3 0.2 -0.7; -0.4 2.1 0.5")},
        settings={"eps": 0.1},
        upstream=parse_matrix("1 -1 0.4; 0.5 2 -0.3"),
        decimals=4,
    )


def text(value: FloatArray, decimals: int = 4) -> str:
    return "; ".join(" ".join(f"{cell:.{decimals}f}" for cell in row) for row in value)


def wrong_numbers(problem: Problem, step: str, id: str) -> dict[str, FloatArray]:
    """Every line of somebody who makes a mistake at one step, and nowhere else."""
    graph = problem.graph()
    mistake = next(one for one in mistakes_at(graph, step) if one.id == id)
    return dict(graph.evaluate(FLOATING, swap=mistake.swap).numbers)


def marks(problem: Problem, answers: dict[str, str]) -> dict[str, tuple[str, list[str]]]:
    """By step, the verdict and the mistakes named."""
    steps = Marker(problem).mark(sheet({"answers": answers})).steps
    return {step.id: (step.verdict, [named.id for named in step.mistakes]) for step in steps if step.id in answers}


def test_a_mask_over_the_last_key_laid_over_the_queries() -> None:
    problem = attention(settings={"keep": [[True, False]]})
    scaled = problem.graph().evaluate(FLOATING)["scaled"][0]
    answers = {"masked": f"{scaled[0]:.4f} {scaled[1]:.4f}; -inf -inf"}
    assert marks(problem, answers)["masked"] == ("wrong", ["mask-query-rows"])


def test_a_mistake_made_forward_only_is_followed_back_too() -> None:
    numbers = wrong_numbers(rms_norm(), "rms", "eps-outside-root")
    found = marks(rms_norm(), {id: text(numbers[id]) for id in ("Y", "G_mean_square", "G_X")})
    assert found["Y"][0] == "wrong"
    assert "eps-outside-root" in found["Y"][1]
    assert [found[id][0] for id in ("G_mean_square", "G_X")] == ["follow_through"] * 2


def test_a_right_line_speaks_against_a_mistake_that_would_show_in_it() -> None:
    """A path counted twice is the same as σ² + ε for σ; but the normalised numbers are right."""
    numbers = wrong_numbers(rms_norm(), "G_X", "path-twice")
    alone = marks(rms_norm(), {"G_X": text(numbers["G_X"])})["G_X"][1]
    beside = marks(rms_norm(), {id: text(numbers[id]) for id in ("normalised", "G_X")})["G_X"][1]
    assert set(beside) <= set(alone)
    assert not {"not-square-rooted", "eps-outside-root"} & set(beside)


def test_mistakes_that_come_to_the_same_are_told_together() -> None:
    """Another exponent, i/(d/2 − 1), and twice the exponent are the same for two pairs."""
    problem = Problem("positions", {}, settings={"n": 3, "d_model": 4}, decimals=5)
    numbers = wrong_numbers(problem, "angle", "exponent-doubled")
    assert {"exponent-doubled", "position-exponents"} <= set(
        marks(problem, {"angle": text(numbers["angle"], 5)})["angle"][1]
    )


@pytest.mark.parametrize(
    ("mended", "slipped", "id"),
    [("-0.60290", "-60.29025", "decimal-point"), ("-0.26795", "0.26795", "sign")],
)
def test_a_slip_is_known_where_the_rest_was_carried_on_by_mixed_habits(mended: str, slipped: str, id: str) -> None:
    """Six units off in one cell, as rounding here and there brings about; and a slip in another."""
    problem = Problem(
        "self_attention",
        {
            "X": parse_matrix("-1.13 -1.04 0.85; 0.64 0.80 -0.70; -0.31 0.27 0.07; 1.17 -0.83 -0.53"),
            "W_Q": parse_matrix("-0.34 0.01 -0.17; -0.83 0.80 -0.38; -0.29 0.59 0.78"),
            "W_K": parse_matrix("-1.0 0.7 0.1; -0.4 0.8 -0.6; 0.0 -1.0 -1.0"),
            "W_V": parse_matrix("0.56 0.54; 0.37 -0.79; -0.35 -0.72"),
        },
        settings={"causal": True},
        upstream=parse_matrix("1.4 0.4; 1.5 -1.7; -0.9 -0.1; -0.2 0.4"),
        decimals=5,
    )
    right = "0.81555 0.07999 -0.90495; -0.02206 2.73870 1.79222; -0.26795 -1.02904 -0.60290; -0.01459 -0.04998 0.01462"
    written = right.replace(mended, slipped)
    assert marks(problem, {"G_X": written})["G_X"] == ("wrong", [id])


def test_who_exchanged_two_rows_goes_on_from_them_with_all_digits() -> None:
    problem = attention(settings={"causal": True})
    graph = problem.graph()
    numbers = graph.evaluate(FLOATING)
    exchanged = numbers["deviation"][::-1]
    gradient = numbers["A"] * exchanged
    answers = {"deviation": text(exchanged), "G_masked": text(gradient)}
    found = marks(problem, answers)
    assert found["deviation"] == ("wrong", ["cells-exchanged"])
    assert found["G_masked"][0] == "follow_through"


def test_a_column_of_one_number_follows_from_the_mean_of_all() -> None:
    numbers = wrong_numbers(rms_norm(), "mean_square", "normalised-over-all")
    found = marks(rms_norm(), {id: text(numbers[id]) for id in ("mean_square", "rms", "normalised")})
    assert found["mean_square"][1] == ["normalised-over-all"]
    assert [found[id][0] for id in ("rms", "normalised")] == ["follow_through"] * 2
