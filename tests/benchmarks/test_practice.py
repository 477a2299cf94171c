"""Practice answers within 100 ms, and its log of 10,000 lines is replayed within a second.

pytest tests/benchmarks/test_practice.py --benchmark-enable -s; with benchmarks switched off nothing is held to a limit.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import pytest
from learners import RECIPES, Bench, only, right

from attncli.practice.log import LogEntry, read
from attncli.practice.progress import Progress

LINES = 10_000


def test_ten_thousand_lines_are_replayed_within_a_second(benchmark, request, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    enabled = request.config.getoption("--benchmark-enable")
    path = tmp_path / "log"
    one = LogEntry(1e9, "s", "attention#3", "A", "softmax", 2, "0.330 0.670; 0.5 0.5", "correct", (), 0, 1, 41)
    path.write_text("".join(f"{one.changed(t=1e9 + i).line()}\n" for i in range(LINES if enabled else 10)))
    state = benchmark(lambda: Progress(read(path), "s"))
    assert state.skills["softmax"].clean == (LINES if enabled else 10)
    if enabled:
        assert benchmark.stats.stats.median < 1


@pytest.mark.parametrize("name", RECIPES.names)
def test_an_answer_is_marked_within_a_tenth_of_a_second(name: str, request: pytest.FixtureRequest) -> None:
    enabled = request.config.getoption("--benchmark-enable")
    bench = Bench(only(name, 4), count=1)
    took = []
    while not bench.session.ended:
        answer = right(bench.exercise)
        for line in (answer.replace("1", "3"), answer):
            start = time.perf_counter()
            bench.type(line)
            took.append(time.perf_counter() - start)
            if not enabled:
                return
            if bench.session.ended:
                break
    print(f"\n{name}: median {statistics.median(took) * 1e3:.0f} ms, largest {max(took) * 1e3:.0f} ms of {len(took)}")
    assert statistics.median(took) < 0.1
