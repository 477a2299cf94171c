"""Sheets marked a second on one core: pytest tests/benchmarks/test_marking.py --benchmark-enable -s

The exercise is the 3-token causal self-attention with all gradients, at 3 decimals. With benchmarks switched off
(the ordinary tests) a few sheets are marked and nothing is timed or held to a limit.
"""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
from learner import Case, Learner, as_text
from wrongs import kinds

from attncli.marking.mark import Marker
from attncli.problems.answers import sheet
from attncli.problems.matrix_text import parse_matrix
from attncli.problems.problem import Problem

DECIMALS = 3
TEXTS = {
    "X": "1 0.5; -0.5 1; 0.3 -0.8",
    "W_Q": "0.9 -0.4; 0.3 1.1",
    "W_K": "0.7 0.6; -0.5 1.2",
    "W_V": "1.1 0.2; -0.6 0.8",
}
UPSTREAM = "1 -0.5; 0.4 0.9; -1.2 0.3"
RIGHT = {
    "full": (("full",), (1.0,)),
    "rounded": (("rounded",), (1.0,)),
    "mixed": (("by line", "by use"), (1.0,)),
    "lines left out": (("full", "rounded", "by line", "by use"), (0.8, 0.5, 0.3)),
}


def numbers(text: str):  # type: ignore[no-untyped-def]
    return np.array([[float(v) for v in row.split()] for row in text.split(";")])


def exercise():  # type: ignore[no-untyped-def]
    hidden = np.triu(np.ones((3, 3), dtype=bool), 1)
    case = Case("self_attention", {name: numbers(text) for name, text in TEXTS.items()}, TEXTS, hidden, "causal")
    case.upstream = numbers(UPSTREAM)
    problem = Problem(
        "self_attention",
        {name: parse_matrix(text) for name, text in TEXTS.items()},
        settings={"causal": True},
        upstream=parse_matrix(UPSTREAM),
        decimals=DECIMALS,
    )
    return case, problem


def written(case: Case, rng: random.Random, carrying: str, share: float, wrong=None):  # type: ignore[no-untyped-def]
    values = Learner(case, DECIMALS, carrying, rng.getrandbits(32), wrong).run()
    kept = [id for id in values if rng.random() < share and not np.isnan(values[id]).any()] or ["Q"]
    return sheet({"answers": {id: as_text(values[id], DECIMALS) for id in kept}})


def sheets(case: Case, count: int, kind: str):  # type: ignore[no-untyped-def]
    rng = random.Random(4)
    ways, shares = RIGHT.get(kind, RIGHT["lines left out"])
    if kind != "a third wrong":
        return [written(case, rng, rng.choice(ways), rng.choice(shares)) for _ in range(count)]
    made = []
    while len(made) < count:
        share = rng.choice((1.0, 1.0, 0.7, 0.4))
        way = rng.choice(("full", "rounded", "by line", "by use"))
        mistake = rng.choice([one for one in kinds(case, rng.getrandbits(32)) if one.id != "layout-transposed"])
        wrong = {mistake.place: mistake.line} if len(made) % 3 == 0 else None
        try:
            made.append(written(case, rng, way, share, wrong))
        except ValueError:
            continue
    return made


@pytest.mark.parametrize(
    ("kind", "least"), [*((kind, 3000) for kind in RIGHT), ("a third wrong", 500)], ids=lambda value: str(value)
)
def test_sheets_a_second(benchmark, request, kind: str, least: int) -> None:  # type: ignore[no-untyped-def]
    case, problem = exercise()
    timed = request.config.getoption("--benchmark-enable")
    pages = sheets(case, 2048 if timed and kind != "a third wrong" else 900 if timed else 12, kind)
    marker = Marker(problem)
    marker.mark_many(pages[:4])
    if not timed:
        marked = benchmark(marker.mark_many, pages)
        assert kind == "a third wrong" or all(one.ok for one in marked)
        return
    times = []
    for _ in range(3):
        start = time.process_time()
        marked = marker.mark_many(pages)
        times.append(time.process_time() - start)
    assert kind == "a third wrong" or all(one.ok for one in marked)
    rate = len(pages) / min(times)
    benchmark.extra_info.update(sheets_a_second=round(rate), least=least)
    benchmark.pedantic(marker.mark_many, (pages[:4],), rounds=1)
    print(f"\n{kind}: {rate:.0f} sheets a second, at least {least}")
    assert rate >= least
