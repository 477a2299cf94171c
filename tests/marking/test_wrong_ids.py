"""A wrong T is followed to X, the scores and the table's gradient; one that names no row stops nothing."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import attncli

TABLE = "1 2; 3 5; 7 11"


def exercise(**keys: Any) -> attncli.Problem:
    return attncli.problem(
        "embedding",
        {"E": TABLE, "text": "abc"},
        {"vocabulary": ["a", "b", "c"]},
        {"G_X": "1 2; 3 4; 5 6"},
        **keys,
    )


#: Without what makes the rest trivial (one id throughout, zeros with a single 1), which is not followed.
WRONG = [ids for ids in itertools.product(range(3), repeat=3) if 2 in ids and len(set(ids)) > 1 and ids != (0, 1, 2)]


@pytest.mark.parametrize("ids", WRONG)
def test_every_wrong_t_is_followed(ids: tuple[int, ...]) -> None:
    table, upstream = np.array([[1, 2], [3, 5], [7, 11]]), np.array([[1, 2], [3, 4], [5, 6]])
    gradient = np.zeros((3, 2))
    np.add.at(gradient, list(ids), upstream)
    sheet = {"T": " ".join(map(str, ids)), "X": table[list(ids)].tolist(), "G_E": gradient.tolist()}
    marked = attncli.mark(exercise(), sheet)
    verdicts = {step.id: step.verdict for step in marked.steps}
    assert verdicts["T"] == "wrong"
    assert verdicts["X"] != "wrong" and verdicts["G_E"] != "wrong", verdicts


@pytest.mark.parametrize("ids", ["9 0 1", "-1 0 1", "0.5 1 2", "1 2 3", "1e99 0 0", "0 1/3 2"])
def test_a_t_that_names_no_row_is_only_wrong(ids: str) -> None:
    marked = attncli.mark(exercise(), {"T": ids, "X": "1 2; 3 5; 7 11", "G_E": "1 2; 3 4; 5 6"})
    assert {step.id: step.verdict for step in marked.steps}["T"] == "wrong"
