"""Sheets are judged side by side in every worked example, and come to what each comes to alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from every_step import Example, every_example
from habits import page

from attncli.core.message import ENGLISH
from attncli.marking.feedback import Marked
from attncli.marking.mark import Marker
from attncli.marking.right_pass import RightPass
from attncli.problems.answers import Sheet, sheet
from attncli.problems.matrix_text import parse_matrix
from attncli.problems.problem import Problem

EXAMPLES = every_example(published=True)


def sheets(example: Example) -> list[Sheet]:
    """A right one, one all of whose lines are a unit too small, one without its first digits, one of odd shapes, and one
    with a single wrong line."""
    full = {id: np.atleast_2d(example.full[id]) for id in example.asked}
    places = {id: example.places(id) for id in full}
    right = {id: example.text(id) for id in full}
    first, last = next(iter(full)), list(full)[-1]
    below = {id: page(v - 10.0 ** -places[id], places[id]) for id, v in full.items()}
    short = {id: page(v, max(0, places[id] - 1)) for id, v in full.items()}
    odd = {**right, first: page(np.concatenate([full[first], full[first]], -1), places[first])}
    wrong = {**right, last: page(1.3 * full[last] + 0.7, places[last])}
    return [sheet({"student": str(i), "answers": one}) for i, one in enumerate((right, below, short, odd, wrong))]


def told(marked: Marked) -> tuple[object, ...]:
    return marked.data(ENGLISH), marked.layout


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * (path.stem == "e10-transformer"))
        for path in EXAMPLES
    ],
)
def test_every_example_is_marked_side_by_side(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example, together = Example.of(path), []
    begin = RightPass.__init__

    def counting(self, marker, papers, *others):  # type: ignore[no-untyped-def]
        together.append(len(papers))
        begin(self, marker, papers, *others)

    monkeypatch.setattr(RightPass, "__init__", counting)
    given = sheets(example)
    marked = [told(one) for one in example.marker.mark_many(given)]
    assert max(together) == len(given)
    assert marked == [told(example.marker.mark(one)) for one in given]


def test_a_blank_on_one_sheet_closes_no_way_to_another() -> None:
    """0.7 is taken away from all scores in place of the maximum; beside it somebody has left a cell open."""
    marker = Marker(Problem("softmax", {"scores": parse_matrix("1.3 0.4 2.2; 0.6 -0.5 1.7")}, decimals=3))
    own = {"shifted": "0.600 -0.300 1.500; -0.100 -1.200 1.000"}
    together = marker.mark_many([sheet({"answers": own}), sheet({"answers": {"shifted": "? -1.8 0; -1.1 -2.2 0"}})])
    assert told(together[0]) == told(marker.mark(sheet({"answers": own})))
    assert next(step.how for step in together[0].steps if step.id == "shifted") == "other-constant"
