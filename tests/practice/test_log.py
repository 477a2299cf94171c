"""The practice log: appended at once, read back whole, merged by cat, and never anybody else's file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attncli.core.message import InputError
from attncli.practice.log import LogEntry, default_path, entry_of, forget, read, writer
from attncli.practice.progress import Progress, by_student, csv_text, jsonl_text, mistakes, rows

ONE = LogEntry(1_000_000.0, "小明", "attention#3", "A", "softmax", 2, "0.3 0.7", "wrong", ("no-scale",), 1, 2, 41)

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)


@given(
    st.builds(
        LogEntry,
        st.integers(0, 4_000_000_000).map(float), TEXTS, TEXTS, TEXTS, TEXTS, st.integers(1, 4), TEXTS,
        st.sampled_from(["correct", "wrong", "shown", "skipped", "done"]), st.lists(TEXTS, max_size=2).map(tuple),
        st.integers(0, 3), st.integers(0, 99), st.integers(0, 10**6),
    )
)  # fmt: skip
def test_an_entry_is_read_back_as_it_was_written(entry: LogEntry) -> None:
    line = entry.line()
    assert "\n" not in line
    again = entry_of(line)
    assert again is not None and vars(again) == vars(entry)


def test_the_fields_are_those_that_others_rely_on() -> None:
    data = json.loads(ONE.line())
    assert data == {
        "t": "1970-01-12T13:46:40Z", "kind": "entry", "student": "小明", "exercise": "attention#3", "step": "A", "skill": "softmax",
        "stage": 2, "answer": "0.3 0.7", "verdict": "wrong", "mistakes": ["no-scale"], "hints": 1, "try": 2, "seconds": 41,
    }  # fmt: skip


@pytest.mark.parametrize("cut", [1, 20, 100, -1])
def test_a_torn_last_line_is_skipped_and_the_next_entry_stands_on_its_own_line(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "log.jsonl"
    writer(path)(ONE)
    torn = ONE.line().encode()[:cut]
    path.write_bytes(path.read_bytes() + torn)
    assert len(read(path)) == 1
    writer(path)(ONE)
    assert len(read(path)) == 2
    assert path.read_bytes().count(b"\n") == 3


def test_logs_of_two_machines_are_merged_by_writing_one_behind_the_other(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for path, times in ((here, (5.0, 9.0)), (there, (3.0, 7.0))):
        for t in times:
            writer(path)(ONE.changed(t=t))
    (tmp_path / "both").write_bytes(here.read_bytes() + there.read_bytes())
    assert [entry.t for entry in read(tmp_path / "both")] == [3.0, 5.0, 7.0, 9.0]


def test_lines_of_another_kind_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text('{"kind": "future", "t": 1}\n[]\n1\nnull\n' + ONE.line() + "\n", "utf-8")
    assert len(read(path)) == 1


@pytest.mark.parametrize("content", ["# My notes\n", '{"schema": 1}\n', "a\nb\n"])
def test_a_file_that_is_no_log_is_neither_read_nor_written_nor_forgotten(tmp_path: Path, content: str) -> None:
    path = tmp_path / "notes"
    path.write_text(content)
    for use in (read, writer, forget):
        with pytest.raises(InputError, match=r"practice log|cannot"):
            use(path)
    assert path.read_text() == content


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {}, "/home/x/.local/share/attncli/practice.jsonl"),
        ("linux", {"XDG_DATA_HOME": "/data"}, "/data/attncli/practice.jsonl"),
        ("linux", {"XDG_DATA_HOME": "relative"}, "/home/x/.local/share/attncli/practice.jsonl"),
        ("linux", {"XDG_DATA_HOME": ""}, "/home/x/.local/share/attncli/practice.jsonl"),
        ("darwin", {"XDG_DATA_HOME": "/data"}, "/home/x/Library/Application Support/attncli/practice.jsonl"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/attncli/practice.jsonl"),
        ("win32", {}, "/home/x/AppData/Local/attncli/practice.jsonl"),
    ],
)
def test_where_the_log_is(platform: str, environment: dict[str, str], expected: str) -> None:
    assert default_path(environment, platform, Path("/home/x")).as_posix() == expected


@pytest.mark.skipif(os.name == "nt", reason="modes of files")
def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "log.jsonl"
    writer(path)(ONE)
    assert path.stat().st_mode & 0o077 == 0


def test_one_student_is_forgotten_and_the_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for name in ("小明", "s2", "小明"):
        writer(path)(ONE.changed(student=name))
    assert forget(path, "小明") == 2
    assert [entry.student for entry in read(path)] == ["s2"]
    assert forget(path) == 1
    assert not path.exists()
    assert forget(path) == 0


def test_the_replay_is_the_same_whole_or_entry_by_entry() -> None:
    entries = [
        ONE.changed(t=float(t), verdict=verdict, try_=1, hints=0)
        for t, verdict in enumerate(["wrong", "correct", "shown", "correct", "correct", "done", "correct"])
    ]
    one, other = Progress(entries, "小明"), Progress(student="小明")
    for entry in entries:
        other.add(entry)
    assert vars(one.skills["softmax"]) == vars(other.skills["softmax"])
    assert [vars(each) for each in one.exercises] == [vars(each) for each in other.exercises]
    assert Progress(entries, "somebody else").skills == {}


def test_a_report_counts_by_student_and_skill_and_is_safe_in_a_spreadsheet() -> None:
    entries = [ONE, ONE.changed(student="=1+1", verdict="correct", mistakes=(), try_=1, hints=0), ONE.changed(t=2.0)]
    found = rows(by_student(entries).values(), ONE.t)
    assert [(row.student, row.tries, row.first_try, row.wrong) for row in found] == [
        ("=1+1", 1, 1, 0),
        ("小明", 2, 0, 2),
    ]
    assert "'=1+1," in csv_text(found)
    assert [json.loads(line)["student"] for line in jsonl_text(found).splitlines()] == ["=1+1", "小明"]
    assert mistakes(entries) == [("no-scale", 2, 1)]
