"""Command lines, problem files and sheets with anything in them: a result or one message, never a fault of ours, none that waits.

These are many, drawn from fixed seeds: 1,600 command lines, 1,200 problem files, 2,400 sheets. ATTNCLI_FUZZ=N asks for N times as many.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import Ran, one_message, run, within
from test_fuzz import COMMANDS, COMPLETE, NUMBERS, OPTIONS, REPORTS, VALUES, WORDS

from attncli.problems import library

pytestmark = pytest.mark.slow

TIMES = int(os.environ.get("ATTNCLI_FUZZ", "1"))
#: Parts that each kind is drawn in, so that several processes share them.
PARTS = 4
#: Seconds after which a run counts as one that never ends. None of these has as much to do.
TOO_LONG = 20
#: What only Python and its libraries say.
PYTHON = re.compile(
    r"'(?:str|int|float|dict|list|tuple|set|bool|bytes|complex)'|NoneType|ndarray|<class|object at|\b0x[0-9a-f]{6,}|[a-z]Error\b|Exception\b"
    r"|Traceback|unhashable|subscriptable|positional argument|magic string|zip file"
)
#: Pieces that stand where something else was.
PIECES = (
    "", "[", "]", "{", "}", '"', "\\", "\x00", "\n", "=", "nan", "inf", "-inf", "1e400", "0", "-1", "99999999999999999999", "1/0", "√-1", "？", "１",
    "true", "[[[1]]]", "[]", '""', "null", "[inputs]", "[marking]\npoints = { O = -1 }\n", "causal = 3", "decimals = 99", "\ud7ff", "名", "| ", "; ;",
    "scale = 0", "heads = 0", "eps = -1", "@p.toml", "G_O", "loss = 'sum('", "model = 'gpt'", "answers", "student = 7", "?", "_", "1979-05-27", "{a=1}",
)  # fmt: skip


def in_order(ran: Ran, given: object) -> None:
    """Assert a result or one message, in words of ours."""
    status, out, err = ran
    assert status in (0, 1, 2), (given, ran)
    assert "fault of attncli" not in err and "attncli itself" not in out + err, (given, ran)
    assert "\x1b" not in out + err, (given, ran)
    found = PYTHON.search(err)
    assert found is None, (given, err)
    if status == 2:
        assert out == "", (given, ran)
        if "zh" not in str(given):
            one_message(err)


def ran(*argv: str, stdin: bytes = b"1 2") -> Ran:
    with within(TOO_LONG):
        return run(*argv, stdin=stdin)


def drawn(strategy: object) -> Callable[[random.Random], str]:
    """One of the words that a strategy samples from."""
    elements: tuple[str, ...] = tuple(strategy.elements)  # type: ignore[attr-defined]
    return lambda rng: rng.choice(elements)


value, option, command, number, word = map(drawn, (VALUES, OPTIONS, COMMANDS, NUMBERS, WORDS))
#: Where output would go: only where nothing is kept.
NOWHERE = ("/dev/null", "/dev/full", "/", "nowhere/x.npz", "")
FIRST = {
    "compare": ((),),
    "train": (("abcab", "--steps", "2"), ("a b a b", "--split=words", "--step", "1"), ("--steps=1",)),
    "generate": (("nowhere.npz", "a"), ()),
    "lab": (("scaling", "--samples=20"), ("softmax",), ("overflow",), ("heads",), ("rank", "--size=8"), ()),
    "check": (("a1-pronoun",), ("b6-full-backward",), ()),
    "grade": (("a1-pronoun", "-"), ("a1-pronoun",), ()),
    "worksheet": (("a1-pronoun",), ("softmax",), ("--list",), ()),
    "practice": (("status", "--log", "nowhere.jsonl"), ("report",), ("forget", "--log", "nowhere.jsonl"), ("a1", "--log", "/dev/null")),
}  # fmt: skip
MORE = {
    **REPORTS,
    "check": ("--answer", "--map", "--hint", "--reveal", "--layout", "--format"),
    "grade": ("--map", "--layout", "--format", "-j"),
    "worksheet": ("--key", "--seed", "--decimals", "--ask", "--explain", "--list"),
    "practice": ("--stage", "--from-scratch", "--seed", "--count", "--student", "--format", "--yes"),
}
ANSWERS = (
    "A=0.330 0.670",
    "O=0.66 2.68",
    "a=1",
    "A=?",
    "A=@nowhere.npz:A",
    "A",
    "scores=[[1,2]]",
    "G_Q=1;2",
    "=1",
    "A=",
    "A=1e999 nan",
    "answers.json",
)


def line(rng: random.Random) -> list[str]:
    """A command line."""
    if rng.random() < 0.4:
        argv = command(rng).split()
        if rng.random() < 0.5 and argv[0] in ("forward", "backward", "why"):
            argv += COMPLETE
        draws: tuple[Callable[[random.Random], str], ...] = (option, value)
    else:
        name = rng.choice(sorted(FIRST))
        argv = [name, *rng.choice(FIRST[name])]
        own = (*MORE[name], "--lang", "--help")
        draws = (lambda rng: rng.choice(own), number, word, lambda rng: rng.choice(ANSWERS))
        if rng.random() < 0.2 and name not in ("practice", "grade"):
            argv += ["-o", rng.choice(NOWHERE)]
    for _ in range(rng.randrange(6)):
        argv.append(rng.choice(draws)(rng))
    # What follows such an option would be written where the tests run.
    return [argv[i] if i == 0 or argv[i - 1] not in ("--save", "--feedback") else "/" for i in range(len(argv))]


@pytest.mark.parametrize("part", range(PARTS))
def test_any_command_line(part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = random.Random(f"lines {part}")
    refused = 0
    for _ in range(400 * TIMES):
        argv = line(rng)
        found = ran(*argv)
        in_order(found, argv)
        refused += found.status == 2
    assert 0 < refused < 400 * TIMES
    assert not list(tmp_path.iterdir())


def spoiled(text: str, rng: random.Random) -> str:
    """The text with a few places written over, taken out, doubled or moved."""
    for _ in range(rng.randint(1, 4)):
        start = rng.randrange(len(text) + 1)
        end = min(len(text), start + rng.choice((0, 1, 1, 3, 20)))
        text = text[:start] + rng.choice((*PIECES, text[start:end] * 2)) + text[end:]
    return text


@pytest.mark.parametrize("part", range(PARTS))
def test_any_problem_file(part: int, tmp_path: Path) -> None:
    rng = random.Random(f"problems {part}")
    ids = [id for id in library.ids() if library.path(id).stat().st_size < 5000]
    path = tmp_path / "p.toml"
    refused = 0
    for _ in range(300 * TIMES):
        path.write_text(spoiled(library.path(rng.choice(ids)).read_text("utf-8"), rng), "utf-8", "replace")
        what = rng.choice(
            (("forward",), ("forward", "--carry"), ("examples", "verify"), ("examples", "show"), ("check",))
        )
        found = ran(*what, str(path), *(["A=1 2"] if what == ("check",) else []))
        in_order(found, (what, path.read_text("utf-8")))
        refused += found.status == 2
    assert 0 < refused < 300 * TIMES


#: A sheet in each way to write one.
SHEETS = {
    ".json": json.dumps({"student": "ann", "answers": {"A": "0.330 0.670", "scores": [[1, 2]], "O": "0.660 2.680"}}),
    ".toml": 'student = "ann"\nproblem = "a1-pronoun"\n[answers]\nA = "0.330 0.670"\nscores = [[1, 2]]\nO = "0.660 2.680"\n',
    ".csv": 'student,scores,A,O\nann,1 2,0.330 0.670,"0.660 2.680"\nbob,1 2,,\n',
    ".jsonl": '{"student": "ann", "answers": {"A": "0.330 0.670"}}\n{"student": "bob", "answers": {"O": [[0.66, 2.68]]}}\n',
}


@pytest.mark.parametrize("ending", sorted(SHEETS))
def test_any_sheet(ending: str, tmp_path: Path) -> None:
    rng = random.Random(f"sheets {ending}")
    path = tmp_path / f"sheet{ending}"
    for _ in range(600 * TIMES):
        path.write_text(spoiled(SHEETS[ending], rng), "utf-8", "replace")
        what = rng.choice((("check",), ("grade", "--format", "jsonl"), ("grade", "--format", "csv")))
        found = ran(what[0], "a1-pronoun", str(path), *what[1:])
        in_order(found, (what, path.read_text("utf-8")))
