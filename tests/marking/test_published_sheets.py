"""Published numbers handed in as sheets: the wrong ones are found, and named where the slip is known; the rest is right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from attncli.marking.mark import Marker
from attncli.problems.answers import sheet
from attncli.problems.file import load
from attncli.problems.matrix_text import parse_matrix
from attncli.problems.problem import Marking, Problem

EXAMPLES = sorted((Path(__file__).parents[2] / "worked_examples").rglob("*.toml"))
PRINTED = Marking(rounding="printed")


def mark(problem: Problem, **answers: str):  # type: ignore[no-untyped-def]
    return Marker(problem).mark(sheet({"answers": answers}))


def wrong(one):  # type: ignore[no-untyped-def]
    return {step.id: step.cells for step in one.steps if step.verdict in ("wrong", "malformed")}


def matrices(**texts: str):  # type: ignore[no-untyped-def]
    return {name: parse_matrix(text) for name, text in texts.items()}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_worked_examples_are_right_where_their_sources_are(path: Path) -> None:
    problem = load(path)
    if not problem.published:
        pytest.skip("nothing published")
    given = sheet({"answers": dict(problem.published)})
    if problem.layout == "columns":
        given = given.changed(answers={id: one.transposed() for id, one in given.answers.items()})
    known = {id for id, how in problem.how.items() if str(how).startswith("wrong")}
    found = {step.id for step in Marker(problem).mark(given).steps if step.verdict in ("wrong", "malformed")}
    assert found <= known
    # A program does not round in between; then, to the last digit it prints, what is off is wrong.
    if known and all(str(how).startswith(("wrong", "rounded")) for how in problem.how.values()):
        places = max(int(given.answers[id].matrix.decimals.max()) for id in known)
        printed = Marker(problem.changed(marking=PRINTED, decimals=places, step_decimals={})).mark(given)
        assert set(wrong(printed)) & known


def test_toyai_weights_step_by_step_is_right_when_carried() -> None:
    """Example 2 multiplies printed numbers; seven of eight cells differ from the full ones, all are right by hand."""
    problem = Problem("product", matrices(A="0.0498; 0.0502", V="0.250 0.249 -0.749 0.249"), decimals=5)
    one = mark(problem, O="0.01245 0.01240 -0.03730 0.01240; 0.01255 0.01250 -0.03760 0.01250")
    assert one.ok


def test_toyai_new_probabilities() -> None:
    """Example 2: two of the new probabilities were not worked out anew."""
    problem = Problem("softmax", matrices(scores="0.00493 0.0 0.00522 0.0"), decimals=4)
    assert wrong(mark(problem, A="0.2505 0.2492 0.2506 0.2492")) == {"A": ((1, 2), (1, 4))}


def test_toyai_backward_by_hand() -> None:
    """Example 3 carries rounded numbers on, which is right; one entry of G_V was made with the other weight."""
    keys = "0.1 0; 0 0.1"
    problem = Problem(
        "attention",
        matrices(Q=keys, K=keys, V=keys),
        upstream=parse_matrix("0 0; 0.025 -0.0749"),
        decimals=6,
        step_decimals={"A": 3},
    )
    one = mark(
        problem,
        A="? ?; 0.498 0.502",
        G_A="? ?; 0.0025 -0.00749",
        row_dot="?; -0.002515",
        G_scaled="? ?; 0.002497 -0.002497",
        G_scores="? ?; 0.001765 -0.001765",
        G_Q="? ?; 0.0001765 -0.0001765",
        G_K="0.0 0.0001765; ? ?",
        G_V="0.01245 -0.0376; ? ?",
    )
    assert wrong(one) == {"G_V": ((1, 2),)}


def test_toyai_layer_norm_is_named() -> None:
    """Example 6 divides by the standard deviation over n − 1."""
    problem = Problem("layer_norm", matrices(X="1.0498 0.0502; 0.0498 1.0502"), settings={"eps": "0"}, decimals=3)
    one = mark(problem, Y="0.707 -0.707; -0.707 0.707")
    assert one.first_wrong == "Y"
    assert [(named.step, named.id) for named in one.steps[-1].mistakes][:1] == [("variance", "sample-variance")]


def test_keras_multi_head_in_half_precision() -> None:
    """The heads of Keras' test add up to A times the row sums of V; calculated in half precision, five rows are off."""
    eye = "; ".join(" ".join(str(int(i == j)) for j in range(8)) for i in range(8))
    sums = "; ".join(f"{0.28 + 0.64 * i:.2f}" for i in range(8))
    problem = Problem("attention", matrices(Q=eye, K=eye, V=sums), settings={"scale": "1/sqrt(8)"}, decimals=3)
    page = "2.406; 2.440; 2.473; 2.504; 2.535; 2.568; 2.602; 2.633"
    assert wrong(mark(problem.changed(marking=PRINTED), O=page)) == {"O": ((1, 1), (2, 1), (3, 1), (5, 1), (7, 1))}


def test_burn_softmax_gradient_in_single_precision() -> None:
    """Differences of nearly equal numbers keep five digits in single precision: right for such a program, else wrong."""
    from attncli.problems.answers import sheet_from_arrays

    problem = Problem(
        "attention",
        matrices(Q="0 1; 3 4", K="6 9; 7 10", V="6 7; 9 10"),
        settings={"scale": "none"},
        upstream=parse_matrix("1 1; 1 1"),
        decimals=6,
        marking=PRINTED,
    )
    found = wrong(mark(problem, G_Q="1.179665 1.179661; 0.005462 0.005463"))
    assert list(found) == ["G_Q"] and len(found["G_Q"]) >= 3
    dump = sheet_from_arrays({"G_Q": np.array([[1.179665, 1.179661], [0.005462, 0.005463]], dtype=np.float32)})
    assert Marker(problem).mark(dump).ok
