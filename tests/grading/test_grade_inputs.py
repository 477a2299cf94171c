"""Sheets from a folder, JSON Lines, CSV and a stream: each one result, in a fixed order, and none lost."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from classroom import NO_SCALE, RIGHT, a_class, grade, json_lines
from harness import command, environment, process, refused, run

from attncli.core.message import InputError
from attncli.marking import class_files


def names(results: list[dict[str, Any]]) -> list[str]:
    return [result["student"] for result in results]


def save(path: Path, sheet: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(sheet), encoding="utf-8")


def csv_of(rows: list[list[str]], **how: Any) -> str:
    text = io.StringIO()
    csv.writer(text, **how).writerows(rows)
    return text.getvalue()


HEADER = ["student", "scores", "scaled", "A", "O"]
ROW = list(RIGHT.values())


def test_a_folder_of_files_of_every_form(tmp_path: Path) -> None:
    save(tmp_path / "ann.json", {"answers": RIGHT})
    (tmp_path / "bob.toml").write_text('student = "Bob B."\n[answers]\nscores = "1 2"\n', encoding="utf-8")
    np.savez(tmp_path / "cyd.npz", scores=np.array([[1.0, 2.0]]))
    (tmp_path / "dan.JSONL").write_text(json_lines(a_class(2)), encoding="utf-8")
    (tmp_path / "eve.csv").write_text(csv_of([HEADER, ["eve", *ROW]]), encoding="utf-8")
    save(tmp_path / "fay" / "homework.json", {"answers": RIGHT})
    results = grade(tmp_path).results()
    assert names(results) == ["ann", "bob", "cyd", "s001", "s002", "eve", "fay"]
    assert [result["score"] for result in results] == [6, 1, 1, 6, 5, 6, 6]


def test_the_exercise_and_the_results_may_lie_among_the_sheets(tmp_path: Path) -> None:
    exercise = tmp_path / "exercise.toml"
    exercise.write_text(
        'schema = 1\nid = "x"\nmodel = "attention"\n[inputs]\nQ = "1 2"\nK = "1 0; 0 1"\nV = "2 0; 0 4"\n', "utf-8"
    )
    save(tmp_path / "ann.json", {"answers": RIGHT})
    (tmp_path / "README.md").write_text("Hand in here.", "utf-8")
    for _ in range(2):
        ran = grade(tmp_path, "-o", tmp_path / "out.jsonl", "--feedback", tmp_path / "back", exercise=str(exercise))
        assert ran.status == 0
        assert len((tmp_path / "out.jsonl").read_text("utf-8").splitlines()) == 1


def test_a_folder_a_student(tmp_path: Path) -> None:
    save(tmp_path / "ann" / "answers.json", {"answers": RIGHT})
    save(tmp_path / "ann" / "package.json", {"name": "a repository of hers"})
    save(tmp_path / "bob" / "one.json", {"answers": RIGHT})
    save(tmp_path / "bob" / "two.json", {"answers": RIGHT})
    (tmp_path / "cyd").mkdir()
    results = grade(tmp_path).results()
    assert names(results) == ["ann", "bob", "cyd"]
    assert results[0]["score"] == 6
    assert "several sheets in this folder: one.json, two.json" in results[1]["malformed"]
    assert "no sheet in this folder" in results[2]["malformed"]


def test_what_is_no_sheet_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    save(tmp_path / "ann.json", {"answers": RIGHT})
    (tmp_path / "bob.docx").write_bytes(b"PK")
    (tmp_path / "class.csv").write_text("name,A\nann,1 2\n", "utf-8")
    (tmp_path / "cyd.json").symlink_to(tmp_path / "ann.json")
    (tmp_path / "dan").symlink_to(tmp_path)
    save(tmp_path / "eve" / "real.txt", {})
    (tmp_path / "eve" / "answers.json").symlink_to(tmp_path / "ann.json")
    os.mkfifo(tmp_path / "fay.json")
    results = grade(tmp_path).results()
    assert names(results) == ["ann", "bob", "class", "cyd", "dan", "eve", "fay"]
    assert ["malformed" in result for result in results] == [False, True, True, True, True, True, True]
    assert "no column “student”" in results[2]["malformed"]
    assert "links are not followed" in results[3]["malformed"]


def test_whose_sheet_it_is_the_place_says(tmp_path: Path) -> None:
    save(tmp_path / "alice" / "answers.json", {"student": "alice", "answers": RIGHT})
    save(tmp_path / "mallory" / "answers.json", {"student": "alice", "answers": NO_SCALE})
    (tmp_path / "bob.toml").write_text('student = "alice"\n[answers]\nscores = "1 2"\n', encoding="utf-8")
    save(tmp_path / "cyd.json", {"student": " Cyd ", "answers": RIGHT})
    results = grade(tmp_path).results()
    assert [(result["student"], result["score"]) for result in results] == [
        ("alice", 6), ("bob", 1), ("cyd", 6), ("mallory", 5),
    ]  # fmt: skip
    assert ["notes" in result for result in results] == [False, True, False, True]
    assert results[3]["notes"] == [
        "This sheet is signed “alice”, but it was handed in for mallory. It counts for mallory."
    ]
    # A single file that is named is no place: it may say whose it is.
    (one,) = grade(tmp_path / "mallory" / "answers.json").results()
    assert (one["student"], "notes" in one) == ("alice", False)


@pytest.mark.parametrize("format", ["table", "jsonl", "csv", "junit", "gradescope"])
def test_two_sheets_of_a_student_are_said_and_both_kept(tmp_path: Path, format: str) -> None:
    sheets = [
        {"student": "ann", "answers": RIGHT},
        {"student": "bob", "answers": RIGHT},
        {"student": "ann", "answers": NO_SCALE},
    ]
    (tmp_path / "class.jsonl").write_text(json_lines(sheets), "utf-8")
    out, pages = tmp_path / "out", tmp_path / "pages"
    ran = grade(tmp_path / "class.jsonl", "--format", format, "-o", out, "--feedback", pages)
    assert ran.status == 0
    second = "This is sheet 2 from ann; the earlier ones are kept and marked too."
    if format == "table":
        assert "handed in more than one sheet" in out.read_text("utf-8")
        assert "ann (2)" in out.read_text("utf-8")
    else:
        assert "These students handed in more than one sheet; all are kept and marked: ann." in ran.err
        texts = [path.read_text("utf-8") for path in (out.rglob("*.json") if out.is_dir() else [out])]
        assert sum(text.count(second) for text in texts) == 1
    if format == "gradescope":
        assert sorted(path.parent.name for path in out.rglob("*.json")) == ["ann", "ann-2", "bob"]
    assert sorted(path.name for path in pages.iterdir()) == ["ann-2.md", "ann.md", "bob.md"]
    assert second in (pages / "ann-2.md").read_text("utf-8").replace("\\", "")


def test_students_of_any_name(tmp_path: Path) -> None:
    for name in ("readme", "license", "CON", "nul", "..."):
        save(tmp_path / "class" / f"{name}x" / "answers.json", {"answers": RIGHT})
        save(tmp_path / "class" / f"{name}.json", {"answers": RIGHT})
    save(tmp_path / "class" / "readme" / "answers.json", {"answers": RIGHT})
    (tmp_path / "class" / "README.md").write_text("Hand in here.", "utf-8")
    (tmp_path / "class" / "LICENSE").write_text("", "utf-8")
    results = grade(tmp_path / "class", "--feedback", tmp_path / "pages").results()
    assert names(results).count("readme") == 2
    assert {"license", "CON", "nul"} <= set(names(results))
    assert all(result["score"] == 6 for result in results)
    pages = {path.stem.casefold() for path in (tmp_path / "pages").iterdir()}
    assert len(pages) == len(results)
    assert not pages & {"con", "nul"}


def test_a_sheet_of_thousands_of_strange_names_stalls_nobody(tmp_path: Path) -> None:
    save(tmp_path / "class" / "ann.json", {"answers": {f"scored{i}": "1 2" for i in range(2000)}})
    save(tmp_path / "class" / "bob.json", {"answers": RIGHT})
    ann, bob = grade(tmp_path / "class").results()
    assert "2,000 names that are no steps of the exercise, like “scored0”; the limit is 50" in ann["malformed"]
    assert bob["score"] == 6
    refused(run("check", "a1-pronoun", tmp_path / "class" / "ann.json"), "2,000 names", "limit is 50")
    path = tmp_path / "wide.csv"
    path.write_text("student," + ",".join(f"c{i}" for i in range(5000)) + "\nann,1\n", "utf-8")
    refused(grade(path), "5,001 columns", "limit is 5,000")


def test_csv_with_quotes_line_breaks_and_a_bom(tmp_path: Path) -> None:
    rows = [
        HEADER,
        ["Ann, A.", *ROW],
        ['Bob "B" B.', "1 2", "0.707\n1.414", "", ""],
        ["王小明", "[[1, 2]]", "", "?, 0.670", ""],
        ["", "", "", "", ""],
        ["", *ROW],
        ["", " ", "", "", ""],
    ]
    path = tmp_path / "class.csv"
    path.write_bytes(b"\xef\xbb\xbf" + csv_of(rows).encode())
    results = grade(path).results()
    assert names(results) == ["Ann, A.", 'Bob "B" B.', "王小明", "#4"]
    assert results[0]["score"] == results[3]["score"] == 6
    assert results[2]["score"] == 2  # one cell of two is blank: half of A's points


def test_csv_as_people_type_it(tmp_path: Path) -> None:
    path = tmp_path / "class.csv"
    path.write_text('Student , scores, A\nann, "1 2", "0.330, 0.670"\nbob, 1 2, 0.330, 0.670\n', "utf-8")
    ann, bob = grade(path).results()
    assert ann["score"] == 3
    assert "4 cells for 3 columns" in bob["malformed"]
    assert bob["student"] == "bob"


def test_columns_that_are_no_steps_are_named_once_and_left_out(tmp_path: Path) -> None:
    path = tmp_path / "class.csv"
    path.write_text("Timestamp,student,S,scald\n1.1.,ann,1 2,1 2\n1.1.,bob,1 2,1 2\n", "utf-8")
    ran = grade(path)
    assert [[s["verdict"] for s in r["steps"]] for r in ran.results()] == [["correct"] + ["blank"] * 3] * 2
    assert ran.err.count("\n") == 1
    assert "ignored: Timestamp, scald. Did you mean “scaled”?" in ran.err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("学生,scores\n王,1 2\n".encode("gbk"), ["class.csv", "not UTF-8", "CSV UTF-8"]),
        ("student\tA\n".encode("utf-16"), ["class.csv", "not UTF-8"]),
        (b"student;A;O\nann;1 2;3\n", ["student;A;O", "commas"]),
        (b"name,A\nann,1 2\n", ["no column “student”"]),
        (b"student,A,A\nann,1 2,1 2\n", ["“A” occurs twice"]),
        (b"", ["empty"]),
        (b'"student,A\nann,1 2\n', ["quote that is not closed"]),
    ],
)
def test_a_csv_without_a_readable_header_is_refused(tmp_path: Path, content: bytes, words: list[str]) -> None:
    path = tmp_path / "class.csv"
    path.write_bytes(content)
    refused(grade(path), *words)


def test_a_broken_row_costs_no_other_student_the_marks(tmp_path: Path) -> None:
    lines = ["student,scores,A", "ann,1 2,0.330 0.670"]
    lines += ['bob,"1 2,0.330 0.670', 'cyd,1 2,"0.330 0.670"', 'dan,"1 2,0.330', 'eve,"1 2",0.330 0.670', 'fay,"1"2,']
    path = tmp_path / "class.csv"
    path.write_bytes("\n".join(lines).encode() + "\n王,1 2,\n".encode("gbk") + b"gus,1 2,0.330 0.670\n")
    results = grade(path).results()
    assert names(results) == ["ann", "#2", "cyd", "#4", "eve", "#6", "#7", "gus"]
    assert [result["score"] for result in results] == [3, 0, 3, 0, 3, 0, 0, 3]
    assert "UTF-8" in results[6]["malformed"]


def test_json_lines_with_broken_ones(tmp_path: Path) -> None:
    good = json.dumps({"student": "ann", "answers": RIGHT}).encode()
    lines = [
        good, b"", b"{", b"[1]", b"3", b'"x"', b"null", b'{"student": "bob"}', b'{"student": "cyd", "answers": []}',
        b'{"student": "dan", "answers": {"A": {"x": 1}}}', b'{"answers": {"A": "1 2"}, "answers": {}}',
        "{\"student\": \"王\"}".encode("gbk"), b"\xff\xfe", b'{"student": ["x"], "answers": {}}', good,
    ]  # fmt: skip
    path = tmp_path / "class.jsonl"
    path.write_bytes(b"\r\n".join(lines))
    results = grade(path).results()
    assert names(results) == [
        "ann", "#3", "#4", "#5", "#6", "#7", "bob", "cyd", "dan", "#11", "#12", "#13", "#14", "ann",
    ]  # fmt: skip
    assert [i for i, r in enumerate(results) if "malformed" not in r] == [0, 6, 8, 12, 13]
    assert {step["verdict"] for step in results[6]["steps"]} == {"blank"}
    assert {step["id"]: step["verdict"] for step in results[8]["steps"]}["A"] == "malformed"


def test_each_broken_sheet_says_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[" * 100_000, "utf-8")
    (tmp_path / "b.toml").write_text("answers = [", "utf-8")
    (tmp_path / "c.npz").write_bytes(b"not a zip")
    (tmp_path / "d.json").write_bytes(b"{" + b" " * 2_000_001)
    (tmp_path / "e.toml").write_text("a = " + "[" * 100_000, "utf-8")
    words = [result["malformed"] for result in grade(tmp_path).results()]
    assert "too deep" in words[0]
    assert "not valid TOML" in words[1]
    assert ".npz" in words[2]
    assert "2,000,000" in words[3]
    assert "too deep" in words[4]


def test_places_that_do_not_exist_are_refused_before_anything_is_marked(tmp_path: Path) -> None:
    save(tmp_path / "ann.json", {"answers": RIGHT})
    refused(grade(tmp_path / "ann.json", tmp_path / "bob.json"), "bob.json", "no such file")
    refused(grade("-", "-"), "twice")
    refused(grade("-", exercise="-"), "Only one input")
    refused(run("grade", "a1-pronoun"), "SUBMISSIONS")
    refused(grade(tmp_path, "--format", "xml"), "“xml”", "jsonl")
    refused(grade(tmp_path, "-j", "0", "--format", "csv"), "-j")


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_stream_answers_line_by_line(jobs: int) -> None:
    """The result of a line is there before the next line is: engines may map the command over their data."""
    with subprocess.Popen(
        command("grade", "a1-pronoun", "-", "--format", "jsonl", "-j", jobs),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
    ) as running:
        assert running.stdin is not None and running.stdout is not None
        give_up = threading.Timer(30, running.kill)
        give_up.start()
        for sheet in a_class(3):
            line = json_lines([sheet]).encode()
            running.stdin.write(line[:20])
            running.stdin.flush()
            running.stdin.write(line[20:])
            running.stdin.flush()
            assert json.loads(running.stdout.readline())["student"] == sheet["student"]
        running.stdin.close()
        assert running.stdout.read() == b""
        assert running.wait() == 0
        give_up.cancel()


def test_a_stream_without_a_last_line_break() -> None:
    text = json_lines(a_class(2))[:-1]
    assert names(grade("-", stdin=text.encode()).results()) == ["s001", "s002"]


class Endless(io.RawIOBase):
    """A line of a gigabyte between two sheets, made while it is read."""

    def __init__(self, before: bytes, size: int, after: bytes) -> None:
        self.parts = [before, size, after]
        self.block = b"9" * 65536

    def read1(self, most: int = -1) -> bytes:
        while self.parts:
            first = self.parts[0]
            if isinstance(first, int):
                if first > 0:
                    self.parts[0] = first - len(self.block)
                    return self.block
                self.parts.pop(0)
                continue
            self.parts.pop(0)
            return bytes(first)
        return b""


def test_a_line_of_a_gigabyte_is_one_broken_sheet() -> None:
    import tracemalloc

    good = json_lines([{"student": "ann", "answers": RIGHT}]).encode()
    stream: Any = Endless(good, 1_000_000_000, b"\n" + good)
    tracemalloc.start()
    try:
        found = [one for one in class_files.submissions(["-"], stdin=stream) if one is not None]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [one.kind for one in found] == ["line", "broken", "line"]
    assert peak < 8_000_000
    assert found[1].fault is not None


def test_tokens_as_columns(tmp_path: Path) -> None:
    turned = {"scores": "1; 2", "scaled": "0.707; 1.414", "A": "0.330; 0.670", "O": "0.660; 2.680"}
    save(tmp_path / "ann.json", {"answers": turned})
    (result,) = grade(tmp_path, "--layout", "columns").results()
    assert result["score"] == 6
    assert "notes" not in result


def test_the_exit_status_is_0_whatever_the_marks(tmp_path: Path) -> None:
    save(tmp_path / "ann.json", {"answers": NO_SCALE})
    assert process("grade", "a1-pronoun", tmp_path).status == 0


def test_a_submission_can_be_read_where_its_file_is_not(tmp_path: Path) -> None:
    """Other machines of a cluster need not see the folder."""
    save(tmp_path / "ann.json", {"answers": RIGHT})
    (tmp_path / "bob.toml").write_text('student = "Bob B."\n[answers]\nscores = "1 2"\n', "utf-8")
    np.savez(tmp_path / "cyd.npz", scores=np.array([[1.0, 2.0]]))
    (tmp_path / "dan.json").write_bytes(b" " * 3_000_000)
    carried = [one.carried() for one in class_files.submissions([str(tmp_path)], io.BytesIO()) if one is not None]
    for path in tmp_path.iterdir():
        path.unlink()
    assert [one.student() for one in carried] == ["ann", "bob", "cyd", "dan"]
    assert [list(one.read().answers) for one in carried[:3]] == [list(RIGHT), ["scores"], ["scores"]]
    with pytest.raises(InputError, match="2,000,000"):
        carried[3].read()
