"""A whole class: sheets a second with their reading, linear cost, flat memory.

pytest tests/benchmarks/test_grading.py --benchmark-enable -s takes some minutes; with benchmarks switched off (the
ordinary tests) a few sheets are marked and nothing is held to a limit.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from learner import Case, Learner, as_text
from wrongs import kinds

from attncli.core.message import ENGLISH
from attncli.marking.class_files import Submission
from attncli.marking.grader import Grader, chunks
from attncli.problems.matrix_text import parse_matrix
from attncli.problems.problem import Problem
from attncli.render.data import one_line

RIGHT = {"scores": "1 2", "scaled": "0.707 1.414", "A": "0.330 0.670", "O": "0.660 2.680"}
TEXTS = {
    "X": "1 0.5; -0.5 1; 0.3 -0.8",
    "W_Q": "0.9 -0.4; 0.3 1.1",
    "W_K": "0.7 0.6; -0.5 1.2",
    "W_V": "1.1 0.2; -0.6 0.8",
}
UPSTREAM = "1 -0.5; 0.4 0.9; -1.2 0.3"


def lines(count: int) -> Iterator[bytes]:
    """A class of the first exercise: one in fifty has forgotten to scale."""
    for number in range(count):
        answers = RIGHT if number % 50 else {**RIGHT, "scaled": "1.000 2.000"}
        yield json.dumps({"student": f"s{number}", "answers": answers}).encode() + b"\n"


def graded(count: int) -> tuple[float, int]:
    """Seconds of processor time and the largest resident memory (in KiB) of one process that marks so many sheets."""
    argv = [sys.executable, "-m", "attncli", "grade", "a1-pronoun", "-", "--format", "csv", "-o", os.devnull]
    with subprocess.Popen(argv, stdin=subprocess.PIPE) as running:
        assert running.stdin is not None
        for line in lines(count):
            running.stdin.write(line)
        running.stdin.close()
        _, status, usage = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    assert running.returncode == 0
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="needs the resource use of a child")
def test_cost_grows_linearly_and_memory_stays_flat(request: pytest.FixtureRequest) -> None:
    full = bool(request.config.getoption("--benchmark-enable"))
    empty, _ = graded(1)
    sizes = (1_000, 10_000, 100_000) if full else (20, 60)
    found = [(size, *graded(size)) for size in sizes]
    for size, seconds, memory in found:
        each = (seconds - empty) / size
        print(f"\n{size:>7} sheets: {seconds:6.1f} s, {1 / each:6.0f} a second, {memory / 1024:.0f} MiB at most")
    if full:
        costs = [(seconds - empty) / size for size, seconds, _ in found]
        assert max(costs) < 1.5 * min(costs)
        assert found[-1][2] < found[0][2] + 8 * 1024


def exercise():  # type: ignore[no-untyped-def]
    """The 3-token causal self-attention with all gradients."""
    values = {
        name: np.array([[float(v) for v in row.split()] for row in text.split(";")]) for name, text in TEXTS.items()
    }
    case = Case("self_attention", values, TEXTS, np.triu(np.ones((3, 3), dtype=bool), 1), "causal")
    case.upstream = np.array([[float(v) for v in row.split()] for row in UPSTREAM.split(";")])
    problem = Problem(
        "self_attention",
        {name: parse_matrix(text) for name, text in TEXTS.items()},
        settings={"causal": True},
        upstream=parse_matrix(UPSTREAM),
        decimals=3,
    )
    return case, problem


def sheet(case: Case, rng: random.Random, wrong: bool) -> str:
    """A sheet with every line written, as a JSON line; a third of the ways of carrying numbers on each."""
    while True:
        mistake = rng.choice([one for one in kinds(case, rng.getrandbits(32)) if one.id != "layout-transposed"])
        slip = {mistake.place: mistake.line} if wrong else None
        try:
            values = Learner(case, 3, rng.choice(("full", "rounded", "by line")), rng.getrandbits(32), slip).run()
        except ValueError:
            continue
        answers = {id: as_text(value, 3) for id, value in values.items() if not np.isnan(value).any()}
        return json.dumps({"student": "s", "answers": answers})


@pytest.mark.parametrize(("kind", "least"), [("right", 3400), ("a third wrong", 1000)])
def test_sheets_a_second(kind: str, least: int, request: pytest.FixtureRequest) -> None:
    """Read, marked and reported, on one core."""
    full = bool(request.config.getoption("--benchmark-enable"))
    case, problem = exercise()
    rng = random.Random(5)
    count = 600 if full else 6
    sheets = [Submission("line", f"#{i}", sheet(case, rng, kind != "right" and i % 3 == 0)) for i in range(count)]
    grader = Grader(problem, ENGLISH)
    grader.results(sheets[:256])
    times = []
    for _ in range(3 if full else 1):
        start = time.process_time()
        results = [
            one_line(result)
            for chunk in chunks(iter(sheets), grader.marker.together)
            for result in grader.results(chunk)
        ]
        times.append(time.process_time() - start)
    rate = count / min(times)
    assert len(results) == count
    perfect = sum(json.loads(result)["first_wrong"] is None for result in results)
    assert perfect == count if kind == "right" else perfect < count
    print(f"\n{kind}: {rate:.0f} sheets a second, read, marked and reported (at least {least})")
    if full:
        assert rate >= least


PROBLEM = f"""schema = 1
id = "causal"
model = "self_attention"
[inputs]
{chr(10).join(f'{name} = "{text}"' for name, text in TEXTS.items())}
[settings]
causal = true
[gradient]
G_O = "{UPSTREAM}"
"""


def test_two_processes_are_faster_than_one(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """From 10,000 sheets on, a third of them wrong; and the bytes are the same. It takes two idle cores."""
    full = bool(request.config.getoption("--benchmark-enable"))
    case, _ = exercise()
    rng = random.Random(6)
    drawn = [json.loads(sheet(case, rng, i % 3 == 0)) for i in range(1500 if full else 6)]
    (tmp_path / "causal.toml").write_text(PROBLEM, "utf-8")
    count = 10_000 if full else 6
    answers = ({**drawn[i % len(drawn)], "student": f"s{i}"} for i in range(count))
    (tmp_path / "class.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in answers), "utf-8")
    seconds = {}
    for jobs in ("1", "2"):
        argv = [
            sys.executable,
            "-m",
            "attncli",
            "grade",
            "causal.toml",
            "class.jsonl",
            "-o",
            f"{jobs}.jsonl",
            "-j",
            jobs,
        ]
        start = time.perf_counter()
        subprocess.run(argv, cwd=tmp_path, check=True, capture_output=True)
        seconds[jobs] = time.perf_counter() - start
    print(f"\n{count} sheets: {seconds['1']:.1f} s with one process, {seconds['2']:.1f} s with two")
    assert (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "2.jsonl").read_bytes()
    if full:
        assert seconds["2"] < 0.8 * seconds["1"]
