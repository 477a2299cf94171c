"""Grading again: what is the same work stays, what has changed is marked, and nothing else is written over.

Whatever ends a run (a kill, a full disk, a second writer), the file holds whole results, and the next run ends with the bytes of
a run in one go.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace

import pytest
from classroom import NO_SCALE, RIGHT, a_class, grade, json_lines
from harness import Ran, command, environment, refused, run

from attncli.core.message import InputError
from attncli.marking.class_files import Submission
from attncli.marking.grader import Grader
from attncli.marking.ledger import Ledger, SheetKey

FORMATS = ("jsonl", "csv", "xml")
PROBLEM = 'schema = 1\nid = "x"\nmodel = "attention"\n[inputs]\nQ = "1 2"\nK = "1 0; 0 1"\nV = "2 0; 0 4"\n'


def beside(path: Path) -> Path:
    return Path(f"{path}.attncli")


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The students whose sheets are marked, and not just taken over."""
    found: list[str] = []
    results = Grader.results

    def counting(self: Grader, chunk: list[Submission]) -> list[dict[str, object]]:
        done = results(self, chunk)
        found.extend(str(result["student"]) for result in done)
        return done

    monkeypatch.setattr(Grader, "results", counting)
    return found


def save(folder: Path, sheets: dict[str, dict[str, str]]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, answers in sheets.items():
        (folder / f"{name}.json").write_text(json.dumps({"answers": answers}), "utf-8")
    return folder


def same_as_in_one_go(folder: Path, out: Path, *more: object, exercise: str = "a1-pronoun") -> Ran:
    """Grade again into the file; its bytes, and those beside it, are those of a run in one go."""
    ran = grade(folder, "-o", out, *more, exercise=exercise)
    assert ran.status == 0, ran
    fresh = out.with_name(f"fresh{out.suffix}")
    for path in (fresh, beside(fresh)):
        path.unlink(missing_ok=True)
    assert grade(folder, "-o", fresh, *more, exercise=exercise).status == 0
    assert out.read_bytes() == fresh.read_bytes()
    assert beside(out).read_bytes() == beside(fresh).read_bytes()
    return ran


@pytest.mark.parametrize("format", FORMATS)
def test_a_finished_file_is_left_as_it_is(tmp_path: Path, format: str, marked: list[str]) -> None:
    folder, out = save(tmp_path / "class", {"ann": RIGHT, "bob": NO_SCALE}), tmp_path / f"out.{format}"
    assert grade(folder, "-o", out).err == ""
    before, then = out.stat(), out.read_bytes()
    marked.clear()
    ran = grade(folder, "-o", out)
    assert (ran.status, marked) == (0, [])
    assert "nothing has changed since" in ran.err and "earlier run" not in ran.err
    assert (out.stat().st_mtime_ns, out.read_bytes()) == (before.st_mtime_ns, then)


@pytest.mark.parametrize("format", FORMATS)
def test_a_changed_a_new_and_a_renamed_sheet_are_marked_and_no_other(
    tmp_path: Path, format: str, marked: list[str]
) -> None:
    folder, out = save(tmp_path / "class", {"ann": RIGHT, "bob": RIGHT, "dan": RIGHT}), tmp_path / f"out.{format}"
    assert grade(folder, "-o", out).status == 0
    save(folder, {"bob": NO_SCALE, "cyd": RIGHT})
    marked.clear()
    ran = grade(folder, "-o", out)
    assert marked == ["bob", "cyd"]
    assert "What is new or has changed is marked; the rest stays" in ran.err
    same_as_in_one_go(folder, out)
    save(folder, {"aaa": RIGHT, "zed": RIGHT})  # before the first and behind the last
    marked.clear()
    assert grade(folder, "-o", out).status == 0
    assert marked == ["aaa", "zed"]
    same_as_in_one_go(folder, out)


CHANGES: dict[str, Callable[[str], str]] = {
    "a number": lambda text: text.replace('"2 0; 0 4"', '"2 0; 0 5"'),
    "points": lambda text: text + "[marking]\npoints = { O = 50 }\n",
    "a setting": lambda text: text + "[settings]\nscale = 'none'\n",
    "decimals": lambda text: "decimals = 2\n" + text,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_problem_is_another_work(tmp_path: Path, change: str) -> None:
    folder, exercise = save(tmp_path / "class", {"ann": RIGHT, "bob": NO_SCALE}), tmp_path / "p.toml"
    out = tmp_path / "out.csv"
    exercise.write_text(PROBLEM, "utf-8")
    assert grade(folder, "-o", out, exercise=str(exercise)).status == 0
    exercise.write_text(CHANGES[change](PROBLEM), "utf-8")
    ran = same_as_in_one_go(folder, out, exercise=str(exercise))
    assert "Every sheet is marked again" in ran.err


def test_another_language_layout_or_format_is_another_work(tmp_path: Path) -> None:
    folder, out = save(tmp_path / "class", {"ann": RIGHT, "bob": NO_SCALE}), tmp_path / "out.csv"
    assert grade(folder, "-o", out).status == 0
    for how in ({"lang": "zh"}, {"lang": "en"}):
        assert grade(folder, "-o", out, **how).status == 0
        fresh = tmp_path / f"fresh-{how['lang']}.csv"
        assert grade(folder, "-o", fresh, **how).status == 0
        assert out.read_bytes() == fresh.read_bytes()
    assert "marked again" in grade(folder, "-o", out, "--layout", "columns").err
    assert "marked again" in grade(folder, "-o", out, "--format", "jsonl").err
    assert out.read_text("utf-8").startswith("{")


def test_results_of_another_exercise_or_class_are_not_touched(tmp_path: Path) -> None:
    folder, out = save(tmp_path / "class", {"ann": RIGHT, "bob": RIGHT}), tmp_path / "out.csv"
    other = save(tmp_path / "other", {"ann": RIGHT, "zed": RIGHT})
    assert grade(folder, "-o", out).status == 0
    then = out.read_bytes()
    refused(grade(other, "-o", out), "out.csv", "bob", "--force")
    refused(grade(folder, "-o", out, exercise="a2-first-by-hand"), "out.csv", "--force")
    assert out.read_bytes() == then
    same_as_in_one_go(other, out, "--force")


@pytest.mark.parametrize("content", [b"name,mark\nann,1\n", b"no line break", b'{"a": 1}\n', b"student,A\nann,1 2\n"])
def test_a_foreign_file_is_not_touched(tmp_path: Path, content: bytes) -> None:
    folder = save(tmp_path / "class", {"ann": RIGHT})
    for format in ("jsonl", "csv", "junit", "table"):
        out = tmp_path / f"out-{format}"
        out.write_bytes(content)
        refused(grade(folder, "--format", format, "-o", out), f"out-{format}", "attncli did not write", "--force")
        assert out.read_bytes() == content
        assert not beside(out).exists()
        assert grade(folder, "--format", format, "-o", out, "--force").status == 0
        assert content not in out.read_bytes()


def test_a_file_that_somebody_has_edited_is_not_touched(tmp_path: Path) -> None:
    folder, out = save(tmp_path / "class", {"ann": RIGHT, "bob": NO_SCALE}), tmp_path / "out.csv"
    assert grade(folder, "-o", out).status == 0
    for edited in (out.read_text("utf-8").replace("ann,6", "ann,5"), out.read_text("utf-8") + "my own notes\n"):
        out.write_text(edited, "utf-8")
        save(folder, {"cyd": RIGHT})
        refused(grade(folder, "-o", out), "changed after attncli wrote it", "--force")
        assert out.read_text("utf-8") == edited
    beside(out).unlink()
    refused(grade(folder, "-o", out), "--force")


@pytest.mark.parametrize("format", FORMATS)
def test_every_place_to_be_cut_off(tmp_path: Path, format: str) -> None:
    path, out = tmp_path / "class.jsonl", tmp_path / f"out.{format}"
    path.write_text(json_lines(a_class(3)) + "{\n", "utf-8")
    assert grade(path, "-o", out).status == 0
    content, kept = out.read_bytes(), beside(out).read_bytes()
    # Each place with one of three ends of what is beside it, in turn; all three at the end of the file.
    cuts = [*range(0, len(content), 61 if format != "csv" else 7), *[len(content)] * 3]
    for cut, cut_beside in zip(cuts, cycle((len(kept), len(kept) - 5, len(kept) // 2)), strict=False):
        out.write_bytes(content[:cut])
        beside(out).write_bytes(kept[:cut_beside])
        if cut < len(content) and cut_beside < len(kept) - 10:
            out.write_bytes(content)  # results are written before what is beside them
        ran = grade(path, "-o", out)
        assert ran.status == 0, (cut, cut_beside, ran)
        assert (out.read_bytes(), beside(out).read_bytes()) == (content, kept), (cut, cut_beside)


def test_feedback_that_is_asked_for_later_is_filled(tmp_path: Path) -> None:
    folder, out = save(tmp_path / "class", {"ann": RIGHT, "bob": NO_SCALE, "con": RIGHT}), tmp_path / "out.csv"
    assert grade(folder, "-o", out).status == 0
    pages = tmp_path / "pages"
    assert grade(folder, "-o", out, "--feedback", pages).status == 0
    then = {path.name: path.read_bytes() for path in pages.iterdir()}
    assert sorted(then) == ["ann.md", "bob.md", "con_.md"]
    (pages / "bob.md").unlink()
    assert grade(folder, "-o", out, "--feedback", pages).status == 0
    assert {path.name: path.read_bytes() for path in pages.iterdir()} == then
    assert "nothing has changed" in grade(folder, "-o", out, "--feedback", pages).err
    (pages / "ann.md").write_text("A word of my own.", "utf-8")
    save(folder, {"ann": NO_SCALE})
    ran = grade(folder, "-o", out, "--feedback", pages)
    assert ran.status == 2
    assert f"--feedback {pages / 'ann.md'}: a file is there that attncli did not write" in ran.err
    assert (pages / "ann.md").read_text("utf-8") == "A word of my own."


def test_a_stream_is_continued(tmp_path: Path, marked: list[str]) -> None:
    out = tmp_path / "out.jsonl"
    lines = json_lines(a_class(6)).encode().splitlines(keepends=True)
    assert grade("-", "-o", out, stdin=b"".join(lines[:4])).status == 0
    marked.clear()
    assert grade("-", "-o", out, stdin=b"".join(lines)).status == 0
    assert marked == ["s005", "s006"]
    refused(grade("-", "-o", out, stdin=b'{"student": "zed", "answers": {}}\n'), "--force")


def test_a_device_or_a_pipe_keeps_nothing(tmp_path: Path) -> None:
    folder = save(tmp_path / "class", {"ann": RIGHT})
    for _ in range(2):
        assert grade(folder, "-o", "/dev/null", "--format", "csv") == Ran(0, b"")


# Whatever ends it.


@pytest.fixture(scope="module")
def long_class(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("long") / "class.jsonl"
    # Some hand in twice.
    path.write_text(json_lines([{**one, "student": f"s{i % 250}"} for i, one in enumerate(a_class(300))]), "utf-8")
    return path


@pytest.mark.parametrize(("format", "jobs"), [("jsonl", 1), ("csv", 2), ("xml", 1)])
def test_killed_at_random_places(long_class: Path, tmp_path: Path, format: str, jobs: int) -> None:
    out = tmp_path / f"out.{format}"
    rng = random.Random(format)
    for _ in range(3):
        argv = command("grade", "a1-pronoun", long_class, "-o", out, "-j", jobs)
        with subprocess.Popen(argv, env=environment(), stderr=subprocess.DEVNULL) as running:
            until, size = time.monotonic() + 30, rng.randrange(1, 40_000)
            while running.poll() is None and time.monotonic() < until:
                if out.is_file() and out.stat().st_size >= size:
                    break
                time.sleep(0.001)
            running.kill()
    same_as_in_one_go(long_class, out)


@contextlib.contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """No file of this process grows beyond this size; Python overlooks the signal that comes with the error."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("format", FORMATS)
def test_a_full_disk(long_class: Path, tmp_path: Path, format: str) -> None:
    """No file may grow beyond a limit: the error of a disk that is full, for every file that is written."""
    out = tmp_path / f"out.{format}"
    for limit in (0, 100, 5_000, 20_000):
        with files_up_to(limit):
            ran = grade(long_class, "-o", out)
        assert ran.status == 2, ran
        assert ran.out == ""
        assert "cannot be written" in ran.err.splitlines()[-1]
        assert "Traceback" not in ran.err
    same_as_in_one_go(long_class, out)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 KB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root may mount a small disk; test_a_full_disk limits the size of files instead")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], check=False, capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"no disk may be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_small_disk_that_is_full_and_then_is_larger(long_class: Path, small_disk: Path) -> None:
    out, calculation = small_disk / "out.jsonl", small_disk / "run.json"
    assert run("forward", "a1-pronoun", "-o", calculation).status == 0
    before = calculation.read_bytes()
    refused(grade(long_class, "-o", out), "cannot be written (the disk is full)")
    refused(run("forward", "b6-full-backward", "-o", calculation), "run.json: cannot be written (the disk is full)")
    assert calculation.read_bytes() == before
    assert sorted(path.name for path in small_disk.iterdir()) == ["out.jsonl", "out.jsonl.attncli", "run.json"]
    subprocess.run(["mount", "-o", "remount,size=8m", small_disk], check=True)
    same_as_in_one_go(long_class, out)


def test_two_writers_exclude_each_other_on_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As there: no fcntl, and a lock on a byte that must not lie in what others read."""
    flock, exclusive = fcntl.flock, fcntl.LOCK_EX | fcntl.LOCK_NB

    def locking(handle: int, mode: int, count: int) -> None:
        assert (mode, count) == (2, 1)
        assert os.lseek(handle, 0, os.SEEK_CUR) > 10**9
        try:
            flock(handle, exclusive)
        except BlockingIOError:
            raise OSError(errno.EACCES, "Permission denied") from None

    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(LK_NBLCK=2, locking=locking))
    out = str(tmp_path / "out.csv")
    first = Ledger(out, "work", "a1-pronoun", "head\n", (), force=False)
    for force in (False, True):
        with pytest.raises(InputError, match="another attncli is writing"):
            Ledger(out, "work", "a1-pronoun", "head\n", (), force=force)
    assert Path(f"{out}.attncli").exists()
    first.close()
    Ledger(out, "work", "a1-pronoun", "head\n", (), force=False).close()


def test_two_writers_exclude_each_other(long_class: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    argv = command("grade", "a1-pronoun", "-", "-o", out)
    lines = long_class.read_bytes().splitlines(keepends=True)
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment()) as running:
        assert running.stdin is not None
        running.stdin.write(lines[0])
        running.stdin.flush()
        until = time.monotonic() + 30
        while time.monotonic() < until and not (out.is_file() and out.read_bytes().count(b"\n") == 2):
            time.sleep(0.01)
        refused(grade("-", "-o", out, stdin=b"".join(lines)), "out.csv", "another attncli is writing")
        refused(grade("-", "-o", out, "--force", stdin=b"".join(lines)), "another attncli is writing")
        running.kill()
    # A lock that a dead process has left is none.
    assert grade("-", "-o", out, stdin=b"".join(lines)).status == 0
    assert out.read_bytes().count(b"\n") == len(lines) + 1


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)])
def test_told_to_end_it_takes_its_processes_along(long_class: Path, tmp_path: Path, number: int) -> None:
    out = tmp_path / f"out-{number}.jsonl"
    argv = command("grade", "a1-pronoun", "-", "-o", out, "-j", "2")
    with subprocess.Popen(argv, stdin=subprocess.PIPE, env=environment(), start_new_session=True) as running:
        assert running.stdin is not None
        running.stdin.write(long_class.read_bytes()[:-1])
        running.stdin.flush()
        until = time.monotonic() + 60
        while time.monotonic() < until and not (out.is_file() and out.stat().st_size):
            time.sleep(0.01)
        assert len(members(running.pid)) >= 3  # itself, and two that mark
        running.send_signal(number)
        running.wait()
        while time.monotonic() < until and members(running.pid):
            time.sleep(0.01)
        assert members(running.pid) == []


def members(session: int) -> list[int]:
    """The processes of a session that are alive, as Linux tells it."""
    if not Path("/proc/self/stat").is_file():
        pytest.skip("needs /proc")
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            after = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(after[3]) == session and after[0] != "Z":
            found.append(int(path.parent.name))
    return found


# Inputs are never outputs.


def test_an_input_is_never_written_over(tmp_path: Path) -> None:
    exercise, one = tmp_path / "p.toml", tmp_path / "one.jsonl"
    exercise.write_text(PROBLEM, "utf-8")
    one.write_text(json.dumps({"student": "ann", "answers": RIGHT}), "utf-8")
    (tmp_path / "soft.jsonl").symlink_to(one)
    os.link(one, tmp_path / "hard.jsonl")
    here = shutil.copy(one, tmp_path / "copy.jsonl")
    for target in (
        one,
        tmp_path / "soft.jsonl",
        tmp_path / "hard.jsonl",
        f"{tmp_path}/../{tmp_path.name}/one.jsonl",
        exercise,
    ):
        for format in ("jsonl", "csv", "junit", "table"):
            for force in ([], ["--force"]):
                ran = grade(one, "-o", target, "--format", format, *force, exercise=str(exercise))
                refused(ran, "this is one of the inputs")
                assert (one.read_bytes(), exercise.read_text("utf-8")) == (here.read_bytes(), PROBLEM)
    folder = save(tmp_path / "class", {"ann": RIGHT})
    refused(grade(folder, "-o", folder, "--format", "gradescope"), "one of the inputs")
    refused(grade(folder, "--feedback", folder), "--feedback", "one of the inputs")
    refused(grade(folder, "-o", folder / "ann.json", "--format", "csv"), "attncli did not write")


def test_old_results_that_wait_to_be_copied_are_not_held_in_memory(tmp_path: Path) -> None:
    """Whatever an earlier run has left: a class of a hundred thousand with long results is more than memory should hold."""
    out, sheets, size = str(tmp_path / "out.jsonl"), [SheetKey(f"sheet {i}", "ada", i) for i in range(60)], 1_000_000

    def ledger() -> Ledger:
        return Ledger(out, "work", "a1-pronoun", '{"schema": 1, "problem": "a1-pronoun"}\n', (), force=False)

    with contextlib.closing(ledger()) as first:
        first.no_more()
        for sheet in sheets:
            first.add(b"%d" % sheet.number * (size // len(str(sheet.number))), sheet)
        first.finish("")
    before = Path(out).read_bytes()
    tracemalloc.start()
    try:
        with contextlib.closing(ledger()) as again:
            assert again.take(SheetKey("new", "ada", 61)) is None
            again.add(b"new", SheetKey("new", "ada", 61))
            for sheet in sheets:
                kept = again.take(sheet)
                assert kept is not None
                again.keep(kept)
            again.finish("")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    head, whole = before.partition(b"\n")[::2]
    assert Path(out).read_bytes() == head + b"\nnew" + whole
    assert peak < 45_000_000
