"""Ratios measured in one run: ours and what it is held against take turns, so a busy machine slows both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import pytest

Work = Callable[[], object]


def seconds(work: Work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@pytest.fixture
def ratio(benchmark, request):  # type: ignore[no-untyped-def]
    """`ratio(ours, theirs, limit)`: how many times as long ours takes; kept in the benchmark's record.

    With benchmarks switched off (the ordinary tests) both run once and nothing is timed or held to a limit.
    """

    def measure(ours: Work, theirs: Work, *, limit: float, rounds: int) -> None:
        if not request.config.getoption("--benchmark-enable"):
            theirs()
            benchmark(ours)
            return
        ours(), theirs()
        pairs = [(seconds(theirs), seconds(ours)) for _ in range(rounds)]
        base, own = (statistics.median(column) for column in zip(*pairs, strict=True))
        found = min(own / base, min(pair[1] for pair in pairs) / min(pair[0] for pair in pairs))
        benchmark.extra_info.update(ratio=round(found, 3), limit=limit, base_ms=base * 1e3, own_ms=own * 1e3)
        benchmark.pedantic(ours, rounds=1)
        print(
            f"\n{request.node.name}: {found:.3f} of the base ({own * 1e3:.2f} ms to {base * 1e3:.2f} ms), limit {limit}"
        )
        assert found <= limit

    return measure
