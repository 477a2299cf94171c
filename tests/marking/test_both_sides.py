"""The marker held against right people and against sheets that deserve nothing: a small part of `simulation.py`.

What is asked is nothing wrong and nothing given for nothing. On the one side that is reached; on the other a few in a
thousand are left (RESULTS.md): the shares below are those that have been reached, so that they do not rise again.
"""

from __future__ import annotations

import random

import pytest
from every_step import Example, every_example, faults_of_answers, faults_of_floor
from simulation import FAMILIES, cheating_side, right_side

pytestmark = pytest.mark.slow

#: Right and cheating sheets of each family.
SIZES = {"attention": (400, 120), "wide": (200, 60), "layers": (200, 60), "blocks": (20, 6)}
#: Right sheets with a line marked wrong, and points that cheating sheets get for what is not so: shares.
MARKED_WRONG, UNDESERVED = 0.0, 0.003
#: Share of their points that right sheets get; one sheet of these few hundred weighs more than in RESULTS.md.
THEIRS = 0.998

#: Small enough that every answer to every step takes a moment.
SMALL = ("a1", "a2", "a8", "a9", "a11", "b1", "b4", "b5", "c1", "c4", "c6", "c7", "e2", "e3", "e7")
#: Whole lines that are one unit too small, and that mixed habits come to.
REACHED = {"a2": "√2 and e^x rounded otherwise at each use make 3.999 of 4"}


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_right_is_marked_wrong(family: str) -> None:
    count, _ = SIZES[family]
    side = right_side(random.Random(f"right {family}"), FAMILIES[family], count)
    marked_wrong = [str(failure) for failure in side.failures if failure.what != "right loses points"]
    assert len(marked_wrong) <= MARKED_WRONG * count, marked_wrong
    assert side.points["all"] >= THEIRS * side.most["all"]


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_wrong_earns_points(family: str) -> None:
    side = cheating_side(random.Random(f"cheating {family}"), FAMILIES[family], SIZES[family][1])
    assert side.points["all"] <= UNDESERVED * side.most["all"], [str(failure) for failure in side.failures]


def _small_examples():  # type: ignore[no-untyped-def]
    for path in every_example():
        part = path.stem.partition("-")[0]
        if part in SMALL:
            marks = [pytest.mark.xfail(reason=REACHED[part], strict=True)] if part in REACHED else []
            yield pytest.param(path, id=path.stem, marks=marks)


@pytest.mark.parametrize("path", list(_small_examples()))
def test_every_step_of_the_examples(path) -> None:  # type: ignore[no-untyped-def]
    example = Example.of(path)
    assert faults_of_answers(example)[0] == []
    assert faults_of_floor(example)[0] == []
