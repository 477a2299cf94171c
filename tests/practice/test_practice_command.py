"""attncli practice as it is typed: in a pipe, on a terminal, in both languages, and what it refuses."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from harness import command, environment, pieces, refused, run
from syrupy.assertion import SnapshotAssertion

from attncli.practice.log import read

#: Exercises with the lines that somebody types: a wrong one, words in both languages, a short one, right ones.
TRANSCRIPTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "attention": (
        ("attention", "--stage", "2", "--count", "1", "--seed", "1"),
        ("?", "0.3 0.3 0.4; 0.2 0.2 0.6", "提示", "hint", "hint", "0.102 0.05 0.848; 0.023 0.786 0.191", "0.102 0.050 0.848; 0.023 0.786 0.191", "why", "O = -1.056 1.292; 2.861 -2.808"),
    ),
    "first-by-hand": (
        ("a2", "--from-scratch"),
        ("2 2", "h", "0.5 0.5", "4 6"),
    ),
    "embedding": (
        ("embedding", "--stage", "1", "--count", "1", "--seed", "2"),
        ("看过程", "quit"),
    ),
    "row by row": (
        ("softmax", "--stage", "1", "--count", "1", "--seed", "1"),
        ("0.766 0.171 0.063", "0.042", "", "A = 0.766 0.171 0.063", "0.042 0.114 0.844"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("code", ["en", "zh"])
@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_transcripts_in_a_pipe(name: str, code: str, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    words, lines = TRANSCRIPTS[name]
    log = tmp_path / "log.jsonl"
    ran = run(
        "practice", *words, "--log", str(log), "--lang", code, stdin="\n".join(lines).encode() + b"\n", COLUMNS=100
    )
    assert (ran.status, ran.err) == (0, "")
    assert "\x1b" not in ran.out
    assert ran.out == snapshot
    assert [(e.exercise, e.step, e.verdict, e.try_, e.hints) for e in read(log)] == snapshot


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
@pytest.mark.parametrize("code", ["en", "zh"])
@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_the_same_on_a_terminal(name: str, code: str, tmp_path: Path) -> None:
    """Plain input with line editing; on a dumb terminal too. What is said is what a pipe is told."""
    words, lines = TRANSCRIPTS[name]
    written = "\n".join(lines).encode() + b"\n"
    piped = run("practice", *words, "--log", tmp_path / "a", "--lang", code, stdin=written, COLUMNS=100).out
    typed = on_terminal(("practice", *words, "--log", str(tmp_path / "b"), "--lang", code), lines, COLUMNS=100)
    assert said(typed) == said(piped)
    assert "\x1b" not in typed
    assert [vars(e.changed(t=0.0, seconds=0)) for e in read(tmp_path / "a")] == [
        vars(e.changed(t=0.0, seconds=0)) for e in read(tmp_path / "b")
    ]


def said(text: str) -> list[str]:
    """The lines of a transcript."""
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def on_terminal(words: Sequence[str], lines: Sequence[str], **variables: Any) -> str:
    """What a terminal shows when these lines are typed, each once the command waits for it."""
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command(*words),
        env=environment(TERM="dumb", **variables),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        close_fds=True,
    )
    os.close(theirs)
    shown = b""
    for line in lines:
        shown += until(ours, b" > ")
        os.write(ours, line.encode() + b"\n")
        shown += until(ours, b"\n")  # what was typed, as the terminal shows it
    shown += b"".join(pieces(ours))
    os.close(ours)
    assert process.wait(timeout=60) == 0
    return shown.replace(b"\r\n", b"\n").decode()


def until(terminal: int, end: bytes) -> bytes:
    """What a terminal is sent, up to this."""
    shown, limit = b"", time.monotonic() + 60
    while not shown.endswith(end):
        if not select.select([terminal], [], [], max(0, limit - time.monotonic()))[0]:
            raise AssertionError(shown.decode())
        shown += os.read(terminal, 1)
    return shown


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_what_was_answered_survives_a_kill(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    process = subprocess.Popen(
        command("practice", "attention", "--stage", "4", "--log", log),
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"1 2 3; 4 5 6\n")
    process.stdin.flush()
    while b"Not right" not in process.stdout.readline():
        pass
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert [(entry.step, entry.verdict) for entry in read(log)] == [("scores", "wrong")]


def test_the_end_of_the_input_is_the_end_of_the_session(tmp_path: Path) -> None:
    ran = run("practice", "--log", str(tmp_path / "log"), stdin=b"")
    assert (ran.status, ran.err) == (0, "") and "Until next time" in ran.out


def test_what_no_text_is_counts_no_try(tmp_path: Path) -> None:
    log = tmp_path / "log"
    ran = run("practice", "attention", "--log", str(log), stdin=b"\xff\xfe 1\n\x1b[2J\n" + "１ ２；３ ４\n".encode())
    assert (ran.status, ran.err) == (0, "") and "\x1b" not in ran.out
    assert [entry.verdict for entry in read(log)] == ["wrong"], "only what could be read"


def test_what_comes_next_is_remembered_between_sessions(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    words = ("practice", "--log", log, "--student", "s1")
    run(*words, stdin=b"show\nquit\n")
    again = run(*words, stdin=b"quit\n").out
    assert "attention#2" in again and "you were shown a result" in again
    other = run("practice", "--log", log, "--student", "s2", stdin=b"quit\n").out
    assert "attention#1" in other, "each student's own"


def test_status_report_and_forget(tmp_path: Path) -> None:
    log = tmp_path / "s7.jsonl"
    nothing = run("practice", "status", "--log", str(log))
    assert nothing.status == 0 and "Nothing has been practised yet" in nothing.out and str(log) in nothing.out
    run("practice", "attention", "--log", str(log), stdin=b"1 2; 3 4\n")
    assert "weighted averages" in run("practice", "status", "--log", str(log)).out
    table = run("practice", "report", str(log), str(log))
    assert table.status == 0 and "s7" in table.out and "Entries: 2; students: 1." in table.out
    assert (
        run("practice", "report", str(log), "--format", "csv").out.splitlines()[1].startswith("s7,weighted-average,1,")
    )
    assert '"skill": "weighted-average"' in run("practice", "report", str(log), "--format", "jsonl").out
    kept = run("practice", "forget", "--log", str(log), stdin=b"no\n")
    assert kept.status == 0 and "Nothing was deleted" in kept.out and log.exists()
    assert "Entries deleted: 1" in run("practice", "forget", "--log", str(log), stdin="是\n".encode()).out
    assert not log.exists()
    assert "nothing to delete" in run("practice", "forget", "--log", str(log), "--yes").out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("atention",), ("“atention”", "attention")),
        (("attention", "softmax"), ("“softmax”", "one at a time")),
        (("--stage", "5"), ("--stage", "1 to 4")),
        (("--stage", "2", "--from-scratch"), ("--from-scratch", "Keep one")),
        (("--count", "0"), ("--count",)),
        (("--seed", "-1"), ("--seed",)),
        (("--student", "a\nb"), ("--student",)),
        (("--log", ""), ("--log", "empty")),
        (("--log", "."), ("cannot be",)),
        (("--log", "notes.md"), ("notes.md", "not a practice log")),
        (("--format", "csv"), ("--format", "practice")),
        (("status", "--stage", "2"), ("--stage", "status")),
        (("report",), ("Name the practice logs",)),
        (("report", "none.jsonl"), ("none.jsonl", "cannot be read")),
        (("report", "notes.md"), ("notes.md", "not a practice log")),
        (("report", "empty.jsonl", "--format", "xlsx"), ("“xlsx”", "csv")),
        (("forget", "--log", "notes.md", "--yes"), ("notes.md", "not a practice log")),
        (("nothing.toml",), ("nothing.toml",)),
    ],
)
def test_bad_input(
    words: tuple[str, ...], expected: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    Path("notes.md").write_text("# mine\n")
    Path("empty.jsonl").write_text("")
    refused(("practice", *words), *expected)
    assert Path("notes.md").read_text() == "# mine\n"
    assert not Path("data").exists()


def test_closed_input() -> None:
    refused(("practice", "--log", os.devnull), "closed", stdin=None)


def test_arithmetic_that_needs_several_lines_goes_on_under_its_own_beginning(tmp_path: Path) -> None:
    words = ("practice", "softmax", "--seed", "3", "--log", tmp_path / "log")
    out = run(*words, stdin=b"hint\nhint\nhint\nquit\n", COLUMNS=40, ATTNCLI_LANG="en").out
    arithmetic = out[out.index("  A[1,1] = ") :].partition(" = ?")[0].splitlines()
    assert len(arithmetic) > 1 and all(line.startswith("    ") for line in arithmetic[1:])
    assert "= e^(" in arithmetic[0], "a power of e needs no brackets of its own above a fraction line"
