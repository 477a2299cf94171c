"""What is said about a wrong step: the mistake, the cell, the pair of mistakes, or how the cell comes about."""

from __future__ import annotations

import pytest

from attncli.core.message import ENGLISH
from attncli.marking.mark import Marker
from attncli.problems.answers import sheet
from attncli.problems.matrix_text import parse_matrix
from attncli.problems.problem import Marking, Problem
from attncli.render.markdown import feedback

Q, K, V = "1 2; 3 -1", "2 1; -1 0.5; 0.3 1.2", "1 4; 2 -3; 0.5 1"


def exercise(**more):  # type: ignore[no-untyped-def]
    inputs = {name: parse_matrix(text) for name, text in zip("QKV", (Q, K, V), strict=True)}
    return Problem("attention", inputs, upstream=parse_matrix("1 -1; 0.5 2"), decimals=3, id="words", **more)


def step(id: str, **answers: str):  # type: ignore[no-untyped-def]
    marked = Marker(exercise()).mark(sheet({"answers": answers}))
    return next(one for one in marked.steps if one.id == id)


# Right: scores = 4 0 2.7; 5 -3.5 -0.3
@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ("2 0 2.7; 5 -3.5 -0.3", "Cell [1,1]: the part Q[1,1]·K[1,1] or Q[1,2]·K[1,2] is missing from the sum."),
        ("4 0 2.7; 6 -3.5 -0.3", "Cell [2,1]: the part Q[2,2]·K[1,2] is missing from the sum."),
        ("4 0 2.7; 11 -3.5 -0.3", "Cell [2,1]: the part Q[2,1]·K[1,1] is counted twice."),
        ("4 0 2.7; 7 -3.5 -0.3", "Cell [2,1]: the part Q[2,2]·K[1,2] has the wrong sign."),
    ],
)
def test_one_product_wrong_is_named_with_its_cell(scores: str, words: str) -> None:
    one = step("scores", scores=scores)
    assert one.verdict == "wrong"
    assert [str(message) for message in one.said] == [words]


def test_slips_are_named_with_their_cells() -> None:
    assert step("scores", scores="4 0 -2.7; 5 -3.5 -0.3").mistakes[0].id == "sign"
    assert step("scores", scores="4 0 0.27; 5 -3.5 -0.3").mistakes[0].id == "decimal-point"
    one = step("scores", scores="4 2.7 0; 5 -3.5 -0.3")
    assert (one.mistakes[0].id, one.cells) == ("cells-exchanged", ((1, 2), (1, 3)))


def test_the_point_slipped_in_a_rounded_number() -> None:
    # Right: 2.8284… 0 1.9091…
    one = step("scaled", scaled="28.284 0 1.909; 3.536 -2.475 -0.212")
    assert (one.mistakes[0].id, one.cells) == ("decimal-point", ((1, 1),))


def test_too_few_digits_from_the_own_line_earn_what_too_few_digits_earn() -> None:
    one = step("scaled", scores="-4 0 2.7; 5 -3.5 -0.3", scaled="-2.83 0 1.91; 3.54 -2.47 -0.21")
    assert (one.verdict, one.points) == ("follow_through", one.max_points / 2)


def test_more_digits_than_asked_for_are_held_to_all_of_them() -> None:
    assert step("scores", scores="3.9991 0 2.7; 5 -3.5 -0.3").verdict == "wrong"
    assert step("scores", scores="3.9996 0 2.7; 5 -3.5 -0.3").verdict == "correct"


def test_a_line_with_one_visible_score_shows_no_constant() -> None:
    """e^0 = 1 alone in its line: another number there is no other way, unless other lines show the same habit."""
    marked = Marker(exercise(settings={"causal": True})).mark(sheet({"answers": {"exp": "2 0 0; 1 0.002 0"}}))
    assert marked.first_wrong == "exp"
    other = Marker(exercise(settings={"causal": True})).mark(sheet({"answers": {"exp": "2 0 0; 2 0.005 0"}}))
    assert other.steps[8].verdict == "route" or other.ok


def test_what_nothing_explains_is_worked_out_from_the_own_numbers() -> None:
    marked = Marker(exercise()).mark(sheet({"answers": {"scores": "9.1 0 2.7; 5 -3.5 -0.3"}}))
    text = feedback(marked, ENGLISH)
    assert "No known mistake gives these numbers" in text
    assert "1×2 + 2×1 = 4" in text


def test_an_equation_is_made_of_the_numbers_that_were_used() -> None:
    """Divided by the row sum on the sheet, not by the powers of e that it should be the sum of."""
    marked = Marker(exercise()).mark(sheet({"answers": {"row_sum": "2; 2", "A": "0.3 0.3 0.4; 0.9 0.1 0"}}))
    text = feedback(marked, ENGLISH, reveal="all")
    assert "[1,1] = e^0 / 2 = 0.500" in text.replace("\\", "")
    powers = {"exp": "1 0.05 0.4; 1 0 0", "row_sum": "2; 2", "A": "0.3 0.3 0.4; 0.9 0.1 0"}
    text = feedback(Marker(exercise()).mark(sheet({"answers": powers})), ENGLISH, reveal="all")
    assert "[1,1] = 1 / 2 = 0.500" in text.replace("\\", "")


def test_where_nothing_follows_from_infinite_lines_the_right_numbers_are_shown() -> None:
    infinite = {"scores": "inf inf inf; inf inf inf", "A": "0.3 0.3 0.4; 0.9 0.1 0"}
    marked = Marker(exercise()).mark(sheet({"answers": infinite}))
    one = next(one for one in marked.steps if one.id == "A")
    assert (one.verdict, [str(said) for said in one.said]) == (
        "wrong",
        ["Your lines above lead to 0/0 or ∞ − ∞ here, so nothing follows from them. Mend them first."],
    )
    text = feedback(marked, ENGLISH, reveal="all")
    assert text.count("From what is given, this follows:") == 2
    assert "0.686" in text
    assert "From your own lines above" not in text


def test_a_mistake_that_changes_nothing_is_not_named() -> None:
    """Of a program, whose lines are rounded only to be printed: V is its own transpose, and 2.680 is 4 × the rounded 0.670."""
    inputs = {"Q": parse_matrix("1 2"), "K": parse_matrix("1 0; 0 1"), "V": parse_matrix("2 0; 0 4")}
    problem = Problem("attention", inputs, decimals=3, marking=Marking(rounding="printed"))
    marked = Marker(problem).mark(sheet({"answers": {"A": "0.330 0.670", "O": "0.660 2.680"}}))
    one = marked.steps[-1]
    assert (one.verdict, one.mistakes) == ("wrong", ())
    assert one.own.round(3).tolist() == [[0.660, 2.679]]  # what follows is what is right


def test_a_mistake_at_an_earlier_line_that_was_not_written() -> None:
    # Without the scale: softmax of the bare scores.
    one = step("A", A="0.774 0.014 0.211; 0.995 0.000 0.005")
    assert ("scaled", "no-scale") in {(named.step, named.id) for named in one.mistakes}


def test_two_mistakes_at_once() -> None:
    """No scale, and softmax down the columns; no scale, and two cells exchanged."""
    import numpy as np

    s = np.array([[4, 0, 2.7], [5, -3.5, -0.3]])
    down = np.exp(s) / np.exp(s).sum(0)
    text = "; ".join(" ".join(f"{v:.3f}" for v in row) for row in down)
    assert [(n.step, n.id) for n in step("A", A=text).mistakes] == [
        ("scaled", "no-scale"),
        ("A", "softmax-over-columns"),
    ]
    one = step("A", A="0.014 0.774 0.211; 0.995 0.000 0.005")
    assert ("scaled", "no-scale") in {(n.step, n.id) for n in one.mistakes}
    assert ("A", "cells-exchanged") in {(n.step, n.id) for n in one.mistakes}


@pytest.mark.parametrize("text", ("1 2; 3", "1 x", "nan 1", "1 2 3 4 5; 1 2 3 4 5", "[[[[1]]]]", "1 2 " * 60_000))
def test_what_cannot_be_read_is_malformed(text: str) -> None:
    marked = Marker(exercise()).mark(sheet({"answers": {"scores": text, "O": "0 0; 0 0"}}))
    assert marked.steps[0].verdict == "malformed"
    assert marked.first_wrong == "scores"
    assert marked.steps[0].said


def test_hint_gives_no_right_number() -> None:
    marked = Marker(exercise()).mark(sheet({"answers": {"scores": "9.1 0 2.7; 5 -3.5 -0.3"}}))
    assert "= 4" not in feedback(marked, ENGLISH, reveal="hint")
