"""Sheets that the simulation found marked as they should not be, one of each kind, cut down to the lines that show it."""

from __future__ import annotations

from typing import Any

import pytest

from attncli.marking.mark import Marker
from attncli.problems.answers import sheet
from attncli.problems.matrix_text import parse_matrix
from attncli.problems.problem import Problem


def verdicts(problem: Problem, answers: dict[str, str]) -> dict[str, str]:
    return {step.id: step.verdict for step in Marker(problem).mark(sheet({"answers": answers})).steps}


def problem(model: str, decimals: int, upstream: str, settings: dict[str, Any] | None = None, **inputs: str) -> Problem:
    return Problem(
        model,
        {name: parse_matrix(text) for name, text in inputs.items()},
        settings=settings or {},
        upstream=parse_matrix(upstream),
        decimals=decimals,
    )


CAUSAL = problem(
    "attention",
    1,
    "-1.96 1.51 1.87; 1.08 -1.41 -1.39; 0.09 1.55 -0.96; 0.88 1.24 0.49",
    {"causal": True},
    Q="1.51 2.08; 2.31 -0.29; -0.33 2.48; -0.21 -2.25",
    K="1.84 2.68; 1.04 -1.91; 2.19 -1.35; 1.97 -0.47",
    V="-1.20 -1.24 2.57; -0.35 -1.53 -2.64; 1.75 1.83 -1.02; -0.48 2.54 -0.59",
)
TWO_ROWS = problem("softmax", 1, "1.57 -1.27; 0.93 -1.91", scores="-3.17 -0.89; 1.05 3.55")
FIRST_KEY = problem(
    "self_attention",
    4,
    "-1.70 -0.61 -1.19; -1.17 0.22 0.36; -1.60 -0.62 0.02",
    {"mask": "0 -inf -inf; 0 -inf -inf; 0 -inf -inf"},
    W_Q="-0.1 0.9 -0.6; -0.6 -0.6 1.1; 0.0 0.1 1.1; -1.1 0.8 1.1",
    W_K="0.3 -1.0 -0.5; -0.9 -1.2 -1.0; -0.7 -0.3 -0.5; -0.6 0.4 0.1",
    W_V="-0.6 -0.3 -0.4; -1.2 0.4 0.8; -0.9 -1.1 -0.3; -0.4 0.2 0.6",
    X="-0.4 0.6 0.2 -0.5; -0.6 1.1 -0.2 -0.9; 0.9 0.7 0.4 0.9",
)
NEARLY_ALIKE = problem(
    "layer_norm",
    1,
    "0.7 1.0; -0.6 1.8; -1.8 0.1; 0.6 1.1",
    {"eps": 0.001},
    X="0.12 0.51; -1.71 1.73; 0.99 -0.52; 1.37 -1.35",
    gamma="-1.72 -0.33",
    beta="1.74 1.26",
)
SMALL_GRADIENTS = problem(
    "self_attention",
    1,
    "-0.0 -1.6 -0.7; 0.8 -0.9 -0.8; 1.4 1.6 -0.4",
    {"causal": True},
    W_Q="-0.4 1.4 -2.1; -0.3 -1.8 0.5",
    W_K="1.7 -0.5 -0.8; -2.0 1.1 1.7",
    W_V="2.18 0.09 -1.51; -0.02 1.75 -1.60",
    X="-1.05 2.00; -1.89 -1.20; 2.05 2.21",
)

#: Of people who calculated rightly; by what had gone wrong with them.
RIGHT: dict[str, tuple[Problem, dict[str, str]]] = {
    # e^5.9: a score rounded to a tenth moves it by a twentieth.
    "sums of large e^x, no maximum taken away": (
        CAUSAL,
        {
            "scaled": "5.9 -1.7 0.4 1.4; 2.5 2.1 3.9 3.3; 4.3 -3.6 -2.9 -1.3; -4.5 2.9 1.8 0.5",
            "row_sum": "368.7; 19.7; 71.6; 25.7",
        },
    ),
    # Rounded scores would leave another constant for each line; cut off, it is 1 less for all.
    "a constant of one's own, cut off": (
        TWO_ROWS,
        {"shifted": "-2.1 0.1; 2.0 4.5", "exp": "0.1 1.1; 7.7 94.6", "row_sum": "1.2; 102.4"},
    ),
    # With the maximum every habit comes to 1 here; without it each comes to something else.
    "exact the usual way only": (
        FIRST_KEY,
        {
            "masked": "0.1210 -inf -inf; 0.4227 -inf -inf; -0.4792 -inf -inf",
            "exp": "1.1286 0.0000 0.0000; 1.5262 0.0000 0.0000; 0.6193 0.0000 0.0000",
        },
    ),
    # The root of 0.039 is 0.198 or, from what was written, 0.03.
    "divided by what has nearly rounded to nothing": (
        NEARLY_ALIKE,
        {
            "mean": "0.3; 0.0; 0.2; 0.0",
            "variance": "0.0 3.0 0.6 1.8",
            "std": "0.0; 1.7; 0.8; 1.3",
            "normalised": "-6.3 6.3; -1.0 1.0; 1.0 -1.0; 1.0 -1.0",
        },
    ),
    # Three numbers that rounding has made equal make nothing trivial.
    "a row that rounding made all equal": (
        SMALL_GRADIENTS,
        {
            "K": "-5.8 2.7 4.2; -0.8 -0.4 -0.5; -0.9 1.4 2.1",
            "G_masked": "0.0 0.0 0.0; 0.1 0.0 0.0; 0.0 0.2 0.0",
            "G_Q": "0.1 0.0 -0.1; -0.2 0.1 0.2; -0.1 -0.1 -0.1",
            "G_X_Q": "0.2 -0.1; -0.2 0.0; 0.1 0.2",
        },
    ),
}


@pytest.mark.parametrize("kind", RIGHT)
def test_right_is_never_wrong(kind: str) -> None:
    exercise, answers = RIGHT[kind]
    found = verdicts(exercise, answers)
    assert {found[id] for id in answers} <= {"correct", "route", "imprecise", "follow_through"}, found


LARGE = problem(
    "attention",
    4,
    "-0.7 -1.1; 1.4 -0.4; 1.6 -1.6; 1.2 0.9",
    Q="-3.7 1.8; -2.8 3.2; 5.2 -3.5; 3.1 1.5",
    K="-3.68 2.56; -1.39 -3.81; -0.14 -2.39; -2.84 -3.08",
    V="-2.6 -2.9; 4.6 -2.9; 1.9 1.4; -3.3 -2.0",
)
TWICE = problem(
    "embedded_attention",
    1,
    "1.89 -0.85; 0.29 -1.75",
    {"eta": 0.1},
    W_Q="-1.49 -2.15; 0.69 -1.01",
    W_K="1.3 -0.2; 1.4 -0.2",
    W_V="0.38 1.23; -0.31 0.63",
    E="2.25 0.99; 1.56 0.10; 0.73 2.22; -0.15 -1.31",
    T="1 1",
)


def test_what_lies_between_two_plans_is_neither() -> None:
    """From the page e^−1, from Q and K e^0: nobody comes to 0, however far these lie apart."""
    answers = {
        "Q": "-3.3 -4.5; -3.3 -4.5",
        "K": "1.2 -1.3; 1.2 -1.3",
        "scores": "-4.7 -4.7; -4.7 -4.7",
        "scaled": "-3.6 -3.6; -3.6 -3.6",
        "row_max": "-3.6; -3.6",
        "shifted": "-1.0 -1.0; -1.0 -1.0",
        "exp": "0.0 0.0; 0.0 0.0",
    }
    assert verdicts(TWICE, answers)["exp"] == "wrong"


def test_nobody_goes_on_with_a_sum_that_is_not_of_the_own_line() -> None:
    """The sums are the right ones, e^x is not: A is made from both, or from e^x alone."""
    exp = "0.9999 -0.0101 -0.0101 0.0000; 0.9999 -0.0101 -0.0101 -0.0101; -0.0101 0.3389 0.9999 0.0002; 0.0812 0.0142 0.9999 0.0012"
    sums = "1.0001; 1.0000; 1.3392; 1.0969"
    between = "1.0100 -0.0102 -0.0102 0.0000; 1.0200 -0.0102 -0.0102 -0.0102; -0.0076 0.2542 0.7529 0.0002; 0.0740 0.0129 0.9115 0.0011"
    assert verdicts(LARGE, {"exp": exp, "row_sum": sums, "A": between})["A"] == "wrong"


def test_a_zero_is_no_slip_of_the_decimal_point() -> None:
    """Whatever the point did to 0.0142, four places of 0 show nothing of it."""
    exp = "1.0000 0.0000 0.0000 0.0001; 1.0000 0.0000 0.0000 0.0000; 0.0000 0.3390 1.0000 0.0003; 0.0813 0.0000 1.0000 0.0013"
    marked = Marker(LARGE).mark(sheet({"answers": {"exp": exp}}))
    step = next(step for step in marked.steps if step.id == "exp")
    assert step.verdict == "wrong"
    assert "decimal-point" not in {named.id for named in step.mistakes}


BY_HAND = Problem(
    "attention",
    {name: parse_matrix(text) for name, text in {"Q": "1 2", "K": "1 0; 0 1", "V": "2 0; 0 4"}.items()},
    settings={"scale": "none"},
    id="by-hand",
)


@pytest.mark.parametrize(("maximum", "shifted"), [("5", "0 -3"), ("5.000", "0.000 -3.000"), ("5.0", "0 -3.00")])
def test_a_whole_number_is_whole_however_many_places_it_has(maximum: str, shifted: str) -> None:
    """After a wrong line, too: 5 is all there is of 5.000."""
    marked = Marker(BY_HAND).mark(sheet({"answers": {"scores": "5 2", "row_max": maximum, "shifted": shifted}}))
    assert [(step.verdict, step.points) for step in marked.steps[1:3]] == [("follow_through", 1)] * 2


def test_a_stump_that_is_carried_on_stays_one() -> None:
    """0.3 is not all there is of 0.269: what it leads to is half right at most."""
    marked = Marker(BY_HAND).mark(sheet({"answers": {"A": "0.3 0.7", "O": "0.6 2.8"}}))
    assert sum(step.points for step in marked.steps) <= 1


LONE = problem("attention", 2, "1 1 1; 1 1 1", Q="8 2; -3 -2", K="2 -2; -5 -8; 6 -7", V="2 1 0; 1 -2 -2; 0 0 2")


@pytest.mark.parametrize("exp", ["0 0 5; 0 0.3 0", "0.00 0.00 5.00; 0.00 0.30 0.00"])
def test_one_number_of_a_line_shows_no_constant(exp: str) -> None:
    """Any number is e^x for some constant taken away; that the others come to 0 says nothing."""
    assert verdicts(LONE, {"exp": exp})["exp"] == "wrong"


def test_a_maximum_before_the_mask_may_be_0() -> None:
    exercise = problem(
        "attention", 3, "1 1; 1 1", {"causal": True, "scale": "none"}, Q="-1 0; 0 0", K="1 0; 0 1", V="1 0; 0 1"
    )
    found = verdicts(exercise, {"row_max": "0; 0", "shifted": "-1 -inf; 0 0"})
    assert (found["row_max"], found["shifted"]) == ("route", "correct")
    assert verdicts(exercise, {"scores": "0 0; 0 0", "row_max": "0; 0"})["row_max"] != "correct"


def named(exercise: Problem, answers: dict[str, str]) -> tuple[str | None, set[str], set[str]]:
    """The first wrong step, what it is called, and all that is wrong."""
    marked = Marker(exercise).mark(sheet({"answers": answers}))
    first = next(step for step in marked.steps if step.id == marked.first_wrong)
    wrong = {step.id for step in marked.steps if step.verdict == "wrong"}
    return first.id, {mistake.id for mistake in first.mistakes}, wrong


def test_lines_exchanged_are_named_where_each_use_was_rounded_otherwise() -> None:
    """0.996 − 0.996 is 0.001 where one of them was cut off; e^x is made from more digits than stand there."""
    hidden = "0 0 0 -inf"
    padded = problem(
        "self_attention",
        3,
        "-0.4 -0.4 -1.4; 1.0 -0.1 1.6; 1.8 -0.6 0.3; 1.3 -1.7 0.4",
        {"mask": "; ".join([hidden] * 4)},
        W_Q="-0.38 0.68; 1.34 -0.86",
        W_K="0.83 0.41; 0.57 0.03",
        W_V="1.49 -1.24 1.55; 1.14 1.41 -0.07",
        X="0.88 -1.52; -1.30 -1.00; 1.56 0.05; 0.31 -0.90",
    )
    answers = {
        "masked": "0.653 2.007 -1.355 -inf; 0.076 0.996 -0.803 -inf; 0.278 0.208 -0.031 -inf; 0.347 1.152 -0.792 -inf",
        "row_max": "2.007; 0.996; 0.278; 1.152",
        "shifted": "-0.920 0.000 -1.799 -inf; -1.354 0.001 -3.362 -inf; 0.001 -0.070 -0.309 -inf; -0.805 0.000 -1.944 -inf",
        "exp": "0.398 1.000 0.165 0.000; 0.258 1.001 0.035 0.000; 1.001 0.933 0.735 0.000; 0.447 1.000 0.143 0.000",
    }
    assert named(padded, answers) == ("shifted", {"cells-exchanged"}, {"shifted"})


def test_a_mistake_with_large_numbers_is_named_where_scores_were_rounded() -> None:
    """e^19.9 and not e^19.92: two in a hundred less, or more for somebody who rounds otherwise."""
    far = problem(
        "softmax",
        1,
        "-1.4 -1.8 -0.8 -0.1; -0.1 1.2 1.0 0.3",
        scores="-0.09 -9.54 -11.48 -9.77; -6.44 -3.47 9.12 -10.80",
    )
    answers = {
        "shifted": "0.0 -9.4 -11.4 -9.7; -15.6 -12.6 0.0 -19.9",
        "exp": "1.0 12581.7 87553.0 15835.3; 5956538.0 293607.8 1.0 447863922.6",
        "row_sum": "115971.1; 454114069.4",
    }
    assert named(far, answers) == ("exp", {"exponent-negated"}, {"exp"})


def test_a_mistake_after_lines_that_were_cut_off() -> None:
    """A path left out of the last line, which alone is written; every line before it was cut off at the places asked."""
    two_heads = problem(
        "multi_head",
        4,
        "-1.9 0.7 0.4; -1.7 1.7 0.8; -1.6 0.5 -0.3",
        {"heads": 2, "causal": True},
        X="0.8 1; 0.8 -0.6; -0.8 -0.8",
        W_Q="0.2 0 0.2 -0.9; -0.5 0.4 0.9 -0.6",
        W_K="-0.6 0.4 0.3 -0.2; -0.7 0.2 0.5 -0.2",
        W_V="0.1 -0.9; 0.8 -0.1",
        W_O="-0.8 -0.5 -0.6; 0.1 0.4 0.3",
    )
    cut = sheet({"answers": {"G_X": "-0.4407 0.8762; -0.2973 0.2854; 0.1359 0.4829"}})
    one = next(step for step in Marker(two_heads).mark(cut).steps if step.id == "G_X")
    assert (one.verdict, [named.id for named in one.mistakes]) == ("wrong", ["path-missing"])


def test_nobody_scales_twice_by_two_right_ways() -> None:
    """Q scaled early is a right way, and the mask before the scale; not both of them with a scale each."""
    exercise = problem(
        "attention",
        2,
        "1.2 0.7 0.1; 0.3 0.3 -0.7; 0.5 -1.1 0.2",
        {"mask": "0 0 -inf; 0 0 -inf; 0 0 -inf"},
        Q="-0.46 -0.73 0.29; -0.10 0.25 -1.39; 0.72 -0.90 1.45",
        K="-0.45 -0.76 -0.26; 0.68 1.02 0.64; 1.31 -0.50 -0.37",
        V="1.2 0.7 0.1; 0.7 1.5 -1.1; 0.3 0.3 -0.7",
    )
    answers = {"A": "0.62 0.38 0.00; 0.57 0.43 0.00; 0.46 0.54 0.00"}
    assert named(exercise, answers) == ("A", {"scale-by-d"}, {"A"})


JACOBIAN = problem("softmax", 2, "-2 -2 0 -1", scores="4 1 3 4")
SQUARES = problem("layer_norm", 5, "1 1 1; 1 1 1", X="7 8 1; 2 6 9")


@pytest.mark.parametrize(
    ("exercise", "answers", "way"),
    [
        # a cut off: .41 .01 .15 .41; the last column of J, cut off: −.16 0 −.06 .24; −2·−.16 − 1·.24 = .08.
        (JACOBIAN, {"A": "0.41 0.01 0.15 0.41", "G_scores": "-0.32 0.00 0.18 0.08"}, "by-jacobian"),
        # 38 − 5.33333² and 40.33333 − 5.66667²
        (SQUARES, {"variance": "9.55559; 8.22218"}, "mean-of-squares"),
    ],
)
def test_other_ways_round_in_between_too(exercise: Problem, answers: dict[str, str], way: str) -> None:
    marked = Marker(exercise).mark(sheet({"answers": answers}))
    step = next(step for step in reversed(marked.steps) if step.id in answers)
    assert (step.verdict, step.how) == ("route", way)
    assert marked.ok


def test_one_constant_for_all_lines_though_a_line_shows_one_number() -> None:
    """0.5 taken away everywhere, cut off: the second line shows 1.6 alone, and the first one bears it out."""
    scores = problem("softmax", 1, "-0.19 -1.99 0; 0.72 1.84 -0.8", scores="-1.47 -2.19 0.24; -3.21 1.07 -3.30")
    assert verdicts(scores, {"exp": "0.1 0.0 0.8; 0.0 1.6 0.0"})["exp"] == "route"
    for other in ("1.2", "0.7", "3.1"):
        assert verdicts(scores, {"exp": f"0.1 0.0 0.8; 0.0 {other} 0.0"})["exp"] == "wrong"
