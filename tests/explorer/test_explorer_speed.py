"""The page of a GPT block: ready within a second, a change on the screen within a tenth of one.

pytest tests/explorer/test_explorer_speed.py --benchmark-enable -s
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from opened import Opened, example

GPT_BLOCK = "f2-gpt-block"
#: Milliseconds from a change to the screen that shows it.
_EDIT = """([name, text]) => new Promise(done => {
  const input = document.querySelector(`[data-cell="${CSS.escape(name)}"]`);
  const start = performance.now();
  input.value = text;
  input.dispatchEvent(new Event("change", {bubbles: true}));
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
})"""
#: Milliseconds until the page is ready.
_LOAD = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"


@pytest.fixture
def held_to(benchmark: Any, request: pytest.FixtureRequest) -> Callable[[list[float], float], None]:
    """Keeps the times in the benchmark's record; holds the best to a limit where benchmarks are switched on."""

    def hold(times: list[float], limit: float) -> None:
        benchmark.extra_info.update(best_ms=min(times), limit_ms=limit)
        benchmark.pedantic(lambda: None)
        print(f"\n{request.node.name}: {min(times):.0f} ms at best of {len(times)}, limit {limit:.0f} ms")
        assert not request.config.getoption("--benchmark-enable") or min(times) <= limit

    return hold


def rounds(request: pytest.FixtureRequest) -> int:
    return 7 if request.config.getoption("--benchmark-enable") else 1


def test_ready_within_a_second(
    open_page: Callable[..., Opened], held_to: Callable[[list[float], float], None], request: pytest.FixtureRequest
) -> None:
    times = [float(open_page(example(GPT_BLOCK)).page.evaluate(_LOAD)) for _ in range(rounds(request))]
    held_to(times, 1000)


def test_a_change_is_shown_within_a_tenth_of_a_second(
    open_page: Callable[..., Opened], held_to: Callable[[list[float], float], None], request: pytest.FixtureRequest
) -> None:
    page = open_page(example(GPT_BLOCK))
    times = [float(page.page.evaluate(_EDIT, ["E[1,1]", str(i + 2)])) for i in range(rounds(request))]
    assert page.text("E[1,1]") != "1"
    held_to(times, 100)
