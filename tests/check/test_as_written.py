"""decimals = "as written": each printed cell is judged at its own places, to proofread what somebody printed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sheets import run

import attncli
from attncli.arithmetic.hand import round_decimal
from attncli.core.message import InputError
from attncli.problems.file import parse

# A in full: 0.3302384507, 0.6697615493
TOML = (
    'model = "attention"\ndecimals = {}\n[inputs]\nQ = "1 2"\nK = "1 0; 0 1"\nV = "2 0; 0 4"\n'
    '[marking]\nrounding = "printed"\npoints = {{ A = 1 }}\n'
)
AS_WRITTEN = TOML.format('"as written"')


def exercise(folder: Path, text: str) -> Path:
    path = folder / "p.toml"
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("A=0.33 0.6698", "correct"),
        ("A=0.3 0.670", "correct"),
        ("A=0.330238 0.66976", "correct"),
        ("A=0.330239 0.66976", "wrong"),  # right at three places, and printed with six
        ("A=0.34 0.670", "wrong"),
        ("A=0.33 0.6699", "wrong"),
        ("A=0 1", "wrong"),  # a number without a point is judged at the places asked
        ("A=0.0 1.0", "wrong"),
        ("scaled=0.71 1.41421", "correct"),
        ("scaled=0.71 1.41424", "wrong"),
        ("scores=1 2", "correct"),
    ],
)
def test_each_cell_at_its_own_places(tmp_path: Path, answer: str, verdict: str) -> None:
    ran = run(exercise(tmp_path, AS_WRITTEN), answer, "--format", "json")
    assert ran.err == ""
    assert ran.verdicts[answer.split("=")[0]] == verdict


def test_the_same_with_places_asked_for_is_imprecise_or_right(tmp_path: Path) -> None:
    path = exercise(tmp_path, TOML.format("3"))
    assert run(path, "A=0.3 0.670", "--format", "json").verdicts["A"] == "imprecise"
    assert run(path, "A=0.3302 0.6698", "--format", "json").verdicts["A"] == "correct"


def test_by_hand_what_is_carried_has_the_places_of_the_sheet(tmp_path: Path) -> None:
    path = exercise(tmp_path, AS_WRITTEN.replace("printed", "hand"))
    assert run(path, "A=0.3302 0.670", "--format", "json").verdicts["A"] == "correct"
    assert run(path, "A=0.330238 0.669762", "--format", "json").verdicts["A"] == "correct"
    assert (
        run(path, "A=0.330300 0.669762", "--format", "json").verdicts["A"] == "wrong"
    )  # 0.3303 would do at three places


def test_by_step(tmp_path: Path) -> None:
    path = exercise(tmp_path, TOML.format('{ default = 3, A = "as written" }'))
    found = run(path, "scaled=0.71 1.41", "A=0.3 0.67", "--format", "json").verdicts
    assert (found["scaled"], found["A"]) == ("imprecise", "correct")
    other = exercise(tmp_path, TOML.format('{ default = "as written", A = 3 }'))
    found = run(other, "scaled=0.71 1.41", "A=0.3 0.67", "--format", "json").verdicts
    assert (found["scaled"], found["A"]) == ("correct", "imprecise")


@given(st.integers(1, 8), st.integers(1, 8), st.integers(-3, 3).filter(bool))
def test_law(first: int, second: int, units: int) -> None:
    """The full numbers rounded at any places are right; a few units off in a last place they are not."""
    problem = parse(AS_WRITTEN)
    a = attncli.forward(problem)["A"][0]
    one, two = (f"{float(round_decimal(v, p)):.{p}f}" for v, p in zip(a, (first, second), strict=True))
    found = {step.id: step.verdict for step in attncli.mark(problem, {"A": f"{one} {two}"}).steps}
    assert found["A"] == "correct"
    if abs(units) > 1:
        off = f"{float(two) + units * 10.0**-second:.{second}f}"
        found = {step.id: step.verdict for step in attncli.mark(problem, {"A": f"{one} {off}"}).steps}
        assert found["A"] == "wrong"


@pytest.mark.parametrize("value", ['"as printed"', '""', "-1", "16", "2.5", "true", '{ A = "three" }'])
def test_other_words_are_refused(value: str) -> None:
    with pytest.raises(InputError, match=r"^decimals"):
        parse(TOML.format(value))
