"""The marker held against simulated learners; the large run is `python tests/marking/simulation.py`."""

from __future__ import annotations

import pytest
from simulation import run, totals


@pytest.fixture(scope="module")
def results():  # type: ignore[no-untyped-def]
    return run(right=600, wrong=280, seed=20)


def test_no_right_sheet_is_rejected(results) -> None:  # type: ignore[no-untyped-def]
    rejected, _, count = results
    assert count == 600
    assert rejected == []


def test_mistakes_are_found_named_and_followed_through(results) -> None:  # type: ignore[no-untyped-def]
    sums = totals(results[1])
    assert sums["kinds"] >= 40
    assert sums["distinguishable"] >= 200
    assert sums["found"] >= 0.995
    assert sums["named"] >= 0.99
    assert sums["alone"] >= 0.93
    assert sums["followed"] >= 0.99
