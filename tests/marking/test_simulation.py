"""The marker held against simulated learners; the large run is `python tests/marking/simulation.py`."""

from __future__ import annotations

import random

import pytest
from results import totals
from simulation import BY_ID, FAMILIES, run, wrong_side

#: Right and wrong sheets of each family, and the kinds of mistakes that must be among them.
SIZES = {"attention": (300, 160, 40), "layers": (200, 180, 80), "blocks": (24, 30, 20)}


@pytest.fixture(scope="module", params=[*SIZES])
def results(request):  # type: ignore[no-untyped-def]
    right, _, _ = SIZES[request.param]
    return request.param, run(right, 0, 20, request.param)


def test_no_right_sheet_is_rejected(results) -> None:  # type: ignore[no-untyped-def]
    family, (rejected, _, count) = results
    assert count == SIZES[family][0]
    assert rejected == []


@pytest.mark.parametrize(
    "family", [pytest.param(name, marks=[pytest.mark.slow] * (name == "blocks")) for name in SIZES]
)
def test_mistakes_are_found_named_and_followed_through(family: str) -> None:
    _, count, least = SIZES[family]
    sums = totals(wrong_side(random.Random("wrong 20"), FAMILIES[family], count, family in BY_ID).tallies)
    assert sums["kinds"] >= least
    assert sums["distinguishable"] >= 0.75 * count
    assert sums["found"] >= 0.998
    assert sums["named"] >= 0.995
    assert sums["alone"] >= 0.98
    assert sums["followed"] >= 0.995
