"""How much is worked out for one wrong line: bounded by a count of steps, the same on every machine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attncli.marking.chain import Chain
from attncli.marking.explain import within_budget
from attncli.marking.mark import Marker
from attncli.problems import library
from attncli.problems.answers import Sheet, answer

#: Steps worked out at the most for a wrong line at the end of a stack, whatever the machine.
MOST = 100_000


@given(st.lists(st.tuples(st.floats(0, 10), st.integers(1, 9)), max_size=12), st.integers(0, 40))
def test_the_nearest_are_looked_into_first(ways: list[tuple[float, int]], most: int) -> None:
    distances, costs = [near for near, _ in ways], [cost for _, cost in ways]
    chosen = within_budget(distances, costs, most)
    assert chosen == sorted(set(chosen))
    assert sum(costs[i] for i in chosen) <= most
    left_out = [i for i in range(len(ways)) if i not in chosen]
    if left_out:
        nearest = min(left_out, key=lambda i: distances[i])
        assert all(distances[i] <= distances[nearest] for i in chosen)
        assert sum(costs[i] for i in chosen) + costs[nearest] > most


@pytest.mark.parametrize(
    "example", ["e8-encoder-block", "e9-decoder-block", pytest.param("e10-transformer", marks=pytest.mark.slow)]
)
def test_a_wrong_line_at_the_end_of_a_stack_takes_so_many_steps(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = Marker(library.load(example))
    last = list(marker.graph.steps)[-1]
    computed, counted = Chain._computed, [0]

    def counting(chain: Chain, id: str) -> object:
        counted[0] += 1
        return computed(chain, id)

    monkeypatch.setattr(Chain, "_computed", counting)
    sheet = Sheet("s", {last: answer(np.round(marker.full[last] * 1.37 + 0.011, 3).tolist())})
    assert marker.mark(sheet).steps[-1].verdict == "wrong"
    assert 0 < counted[0] <= MOST
