"""What a class's results look like: table, JSON Lines, CSV, Gradescope, JUnit, feedback; the same whoever did the work."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from classroom import ANSWERS, NO_SCALE, OVER_COLUMNS, RIGHT, a_class, grade, json_lines
from harness import Ran, command, environment, on_terminal, pieces, process, refused, run

from attncli.locale.fit import columns as columns_of
from attncli.marking.grading import Picture
from attncli.problems import library


@pytest.fixture(scope="module")
def class_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty sheets, each kind eight times."""
    path = tmp_path_factory.mktemp("class") / "class.jsonl"
    path.write_text(json_lines(a_class(40)), "utf-8")
    return path


@pytest.fixture(scope="module")
def results(class_file: Path) -> list[dict[str, Any]]:
    return grade(class_file).results()


# JSON Lines and CSV


def test_json_lines_have_the_fields_of_the_formats(results: list[dict[str, Any]]) -> None:
    for result in results:
        assert list(result) == ["schema", "problem", "student", "score", "max_score", "first_wrong", "steps"]
        assert result["schema"] == 1
        assert result["problem"] == "a1-pronoun"
        assert result["max_score"] == 6
        for step in result["steps"]:
            assert list(step) == ["id", "verdict", "how", "points", "max_points", "mistakes", "cells", "off", "message"]
    assert [r["first_wrong"] for r in results[:5]] == [None, "scaled", "A", None, "scaled"]
    assert [r["score"] for r in results[:5]] == [6, 5, 2, 1, 3]  # weights of 1 make the rest trivial: no credit


def test_csv_is_a_row_a_student_and_a_column_a_step(class_file: Path, results: list[dict[str, Any]]) -> None:
    rows = list(csv.DictReader(io.StringIO(grade(class_file, "--format", "csv").out)))
    assert list(rows[0]) == [
        "student", "score", "max_score", "first_wrong", "scores", "scaled", "A", "O", "mistakes", "remarks",
    ]  # fmt: skip
    for row, result in zip(rows, results, strict=True):
        assert (row["student"], float(row["score"])) == (result["student"], result["score"])
        assert row["first_wrong"] == (result["first_wrong"] or "")
        for step in result["steps"]:
            assert row[step["id"]] == step["verdict"]
    assert rows[1]["mistakes"] == "scaled:no-scale"
    assert "A:softmax-over-columns" in rows[2]["mistakes"]


def test_the_ending_says_the_format(class_file: Path, tmp_path: Path) -> None:
    for ending, start in ((".jsonl", "{"), (".csv", "student,"), (".xml", "<?xml"), (".txt", "What does")):
        path = tmp_path / f"out{ending}"
        assert grade(class_file, "-o", path).out == ""
        assert path.read_text("utf-8").startswith(start)


# Gradescope


def gradescope_valid(data: dict[str, Any]) -> None:
    """What the specification of results.json allows (gradescope-autograders.readthedocs.io/en/latest/specs)."""
    visibility = {"hidden", "after_due_date", "after_published", "visible"}
    assert set(data) <= {
        "score", "execution_time", "output", "output_format", "test_output_format", "test_name_format", "visibility",
        "stdout_visibility", "extra_data", "tests", "leaderboard",
    }  # fmt: skip
    assert isinstance(data["score"], float)
    assert isinstance(data["output"], str)
    assert {data["visibility"], data["stdout_visibility"]} <= visibility
    for test in data["tests"]:
        assert set(test) <= {
            "score", "max_score", "status", "name", "name_format", "number", "output", "output_format", "tags",
            "visibility", "extra_data",
        }  # fmt: skip
        if "blank" in test["tags"]:  # without a score and a status it has no colour
            assert not {"score", "max_score", "status"} & set(test)
        else:
            assert isinstance(test["score"], float) and isinstance(test["max_score"], float)
            assert test["status"] in ("passed", "failed")
        assert all(isinstance(test[name], str) for name in ("name", "number", "output"))
        assert all(isinstance(tag, str) for tag in test["tags"])
        assert test["visibility"] in visibility


def test_gradescope_gets_a_file_a_student(class_file: Path, tmp_path: Path, results: list[dict[str, Any]]) -> None:
    assert grade(class_file, "--format", "gradescope", "-o", tmp_path / "out").status == 0
    for result in results:
        data = json.loads((tmp_path / "out" / result["student"] / "results.json").read_text("utf-8"))
        gradescope_valid(data)
        assert data["score"] == result["score"] == sum(test.get("score", 0) for test in data["tests"])
        worth = {step["id"]: step["max_points"] for step in result["steps"]}
        assert all(test["max_score"] == worth[test["name"]] for test in data["tests"] if "max_score" in test)
        assert data["output"] == f"Points: {result['score']:g} of 6"
        assert [test["number"] for test in data["tests"]] == ["1", "2", "3", "4"]
    slip = json.loads((tmp_path / "out" / "s002" / "results.json").read_text("utf-8"))["tests"]
    assert [test["status"] for test in slip] == ["passed", "failed", "passed", "passed"]
    assert slip[1]["tags"] == ["wrong", "no-scale"]
    assert slip[1]["output"] == "You left out the division by √d_k."
    assert slip[2]["tags"] == ["follow_through"]


@pytest.mark.parametrize("output", ["out", "out/results.json"])
def test_gradescope_alone(tmp_path: Path, output: str) -> None:
    one = json_lines([{"student": "ann", "answers": RIGHT}]).encode()
    assert grade("-", "--format", "gradescope", "-o", tmp_path / output, stdin=one).status == 0
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.json")] == ["out/results.json"]


def test_gradescope_of_an_unreadable_sheet_is_one_failed_test(tmp_path: Path) -> None:
    assert grade("-", "--format", "gradescope", "-o", tmp_path, stdin=b"{\n").status == 0
    data = json.loads((tmp_path / "results.json").read_text("utf-8"))
    gradescope_valid(data)
    assert data["score"] == 0
    assert "not valid JSON" in data["output"]
    (test,) = data["tests"]
    assert (test["status"], test["max_score"]) == ("failed", 6)


def test_gradescope_needs_a_folder(class_file: Path, tmp_path: Path) -> None:
    refused(grade(class_file, "--format", "gradescope"), "-o")
    refused(grade(class_file, "--format", "gradescope", "-o", tmp_path / "r.json"), "several sheets")
    (tmp_path / "file").write_text("", "utf-8")
    refused(grade(class_file, "--format", "gradescope", "-o", tmp_path / "file"), "cannot be created")


# JUnit

#: The facts of junit-10.xsd of Jenkins' xUnit plugin that this file relies on: for every element its children, and its
#: attributes (True: required). Children may come in any order and number; text only where "text" stands.
JUNIT: dict[str, tuple[set[str], dict[str, bool]]] = {
    "testsuites": ({"testsuite"}, dict.fromkeys(("name", "time", "tests", "failures", "errors"), False)),
    "testsuite": (
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
        {
            **dict.fromkeys(("name", "tests", "failures", "errors"), True),
            **dict.fromkeys(
                ("group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url"), False
            ),
        },
    ),
    "properties": ({"property"}, {}),
    "property": (set(), {"name": True, "value": True}),
    "testcase": (
        {"skipped", "error", "failure", "system-out", "system-err"},
        {"name": True, "time": False, "classname": False, "group": False},
    ),
    "skipped": ({"text"}, {"type": False, "message": False}),
    "error": ({"text"}, {"type": False, "message": False}),
    "failure": ({"text"}, {"type": False, "message": False}),
}
#: SUREFIRE_TIME, the only restricted type.
TIME = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?")


def junit_valid(element: ET.Element) -> None:
    children, attributes = JUNIT[element.tag]
    assert set(element.attrib) <= set(attributes), element.attrib
    assert all(name in element.attrib for name, required in attributes.items() if required)
    if element.tag in ("testsuites", "testsuite"):
        assert TIME.fullmatch(element.get("time", ""))
    if "text" not in children:
        assert not (element.text or "").strip()
    for child in element:
        assert child.tag in children, (element.tag, child.tag)
        assert not (child.tail or "").strip()
        junit_valid(child)


def test_junit_is_valid_and_counts_right(class_file: Path, results: list[dict[str, Any]]) -> None:
    root = ET.fromstring(grade(class_file, "--format", "junit").out)
    assert root.tag == "testsuites"
    junit_valid(root)
    kinds = {"wrong": "failure", "malformed": "error", "blank": "skipped"}
    for suite, result in zip(root, results, strict=True):
        assert suite.get("name") == result["student"]
        # The older schema (Ant's) wants properties before the cases.
        assert [child.tag for child in suite] == ["properties"] + ["testcase"] * 4
        cases = suite.findall("testcase")
        for case, step in zip(cases, result["steps"], strict=True):
            assert case.get("name") == step["id"]
            assert case.get("classname") == f"a1-pronoun.{result['student']}"
            assert [inside.tag for inside in case] == ([kinds[step["verdict"]]] if step["verdict"] in kinds else [])
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert suite.get(name) == str(len(suite.findall(f"testcase/{tag}")))
        assert suite.get("tests") == "4"
        given = {p.get("name"): p.get("value") for p in suite.iter("property")}
        assert float(given["score"] or "") == result["score"]
        for step in result["steps"]:
            assert float(given[f"points.{step['id']}"] or "") == step["points"]
            assert float(given[f"max_points.{step['id']}"] or "") == step["max_points"]
    failure = root[1].find("testcase/failure")
    assert failure is not None
    assert failure.get("type") == "no-scale"
    assert failure.get("message") == failure.text == "You left out the division by √d_k."


def test_junit_of_an_unreadable_sheet_is_one_error() -> None:
    root = ET.fromstring(grade("-", "--format", "junit", stdin=b"{\n").out)
    junit_valid(root)
    (case,) = root[0].findall("testcase")
    assert [child.tag for child in case] == ["error"]


# Feedback


@pytest.mark.parametrize(("lang", "words"), [("en", ["not right", "Points: 5 of 6"]), ("zh", ["不对", "成绩：5 / 6"])])
def test_feedback_is_a_page_a_student(tmp_path: Path, lang: str, words: list[str]) -> None:
    lines = json_lines([*a_class(5), {"student": "s001", "answers": RIGHT}]) + "{\n"
    ran = grade("-", "--feedback", tmp_path / "out", stdin=lines.encode(), ATTNCLI_LANG=lang)
    assert "feedback" not in ran.out
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["7.md", "s001-2.md", "s001.md", "s002.md", "s003.md", "s004.md", "s005.md"]
    page = (tmp_path / "out" / "s002.md").read_text("utf-8")
    assert page.startswith("# ")
    for word in words:
        assert word in page
    assert "       >1< >2<" in page.splitlines()


def test_pages_of_the_same_name_are_numbered(tmp_path: Path) -> None:
    names = ["ann", "ann-2", "ann", "Ann", "ann-2", "ann"]
    lines = json_lines([{"student": name, "answers": RIGHT} for name in names])
    assert grade("-", "--feedback", tmp_path, stdin=lines.encode()).status == 0
    pages = {path.stem: path.read_text("utf-8").splitlines()[0].rpartition(" ")[2] for path in tmp_path.iterdir()}
    assert pages == {"ann": "ann", "ann-2": "ann-2", "ann-3": "ann", "Ann-4": "Ann", "ann-2-2": "ann-2", "ann-5": "ann"}


def test_feedback_needs_a_place(class_file: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    refused(grade(class_file, "--feedback", tmp_path / "file"), "--feedback", "cannot be created")


# The class picture


def picture(class_file: Path, **how: Any) -> str:
    return grade(class_file, "-", "--format", "table", stdin=b"{\n", **how).out


def test_the_class_picture(class_file: Path) -> None:
    out = picture(class_file, COLUMNS=65)
    lines = out.splitlines()
    assert lines[:3] == ["What does “it” look at?", "Sheets: 41, unreadable: 1. Mean: 3.32 of 6 points.", ""]
    assert lines[3:5] == ["Not marked", "#1: is not valid JSON at line 1, column 2: a name in double"]
    at = lines.index("How the points are spread")
    assert [line.split()[0] for line in lines[at + 1 : at + 7]] == ["0", "1", "2", "3", "5", "6"]
    assert [line.split()[-1] for line in lines[at + 1 : at + 7]] == ["1", "8", "8", "8", "8", "8"]
    at = lines.index("The students and their points")
    assert lines[at + 1 : at + 4] == ["s001  6", "s002  5", "s003  2"]
    at = lines.index("Step by step")
    assert lines[at + 1].split() == ["right", "followed", "wrong", "unreadable", "first", "wrong", "blank"]
    assert [line.split() for line in lines[at + 2 : at + 6]] == [
        ["scores", "40"],
        ["scaled", "16", "8", "8", "16", "8"],
        ["A", "16", "8", "8", "8", "8"],
        ["O", "8", "8", "8", "16"],
    ]
    at = lines.index("The mistakes, the most frequent first")
    assert lines[at + 1 : at + 3] == ["8 × no-scale (scaled)", "    You left out the division by √d_k."]
    assert lines[at + 3] == "8 × softmax-over-columns (A)"


def test_the_author_of_an_exercise_of_ones_own_is_told_once_and_completely(tmp_path: Path) -> None:
    """Scores of 30 and 0: whatever was done to them, the softmax is 1 and 0, so O alone tells little."""
    path = tmp_path / "one.toml"
    path.write_text(
        'schema = 1\nid = "one"\nmodel = "attention"\n[marking]\npoints = { O = 1 }\n'
        '[inputs]\nQ = "30 0"\nK = "1 0; 0 1"\nV = "2 5; 7 1"\n',
        "utf-8",
    )
    lines = json_lines([{"student": "ann", "answers": {"O": "2 5"}}, {"student": "bob", "answers": {"O": "2 5"}}])
    names = [
        f"{id} ({step})"
        for step, id in (
            ("scores", "key-not-transposed"),
            ("scaled", "no-scale"),
            ("scaled", "scale-by-d"),
            ("scaled", "scale-inverted"),
            ("A", "softmax-over-all"),
            ("A", "no-exponential"),
        )
    ]
    table = " ".join(run("grade", path, "-", stdin=lines.encode()).out.split())
    assert "For the author of this exercise" in table
    assert "…" not in table
    for format in ("jsonl", "csv", "junit"):
        ran = run("grade", path, "-", "--format", format, stdin=lines.encode())
        assert ran.err.count("\n") == 1 and ran.err.startswith("attncli: For the author of this exercise")
        assert "key-not-transposed" not in ran.out
        assert all(name in ran.err for name in names)
    assert all(name in table for name in names)
    assert all(name in " ".join(run("examples", "verify", path).out.split()) for name in names)
    assert grade("-", stdin=lines.encode()).err == ""  # nobody here wrote a worked example


def test_of_several_mistakes_that_fit_the_likeliest_is_counted() -> None:
    counted = Picture(["A"])
    step = {"id": "A", "verdict": "wrong", "mistakes": [{"step": "A", "id": "no-scale"}, {"step": "A", "id": "sign"}]}
    for _ in range(2):
        counted.add({"student": "s", "score": 0.0, "max_score": 1.0, "first_wrong": "A", "steps": [step]})
    assert counted.mistakes == {("A", "no-scale"): 2}
    assert counted.first_wrong == {"A": 2}


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("columns", [20, 40, 50, 80, 120])
def test_the_class_picture_fits_its_screen(class_file: Path, lang: str, columns: int) -> None:
    out = picture(class_file, ATTNCLI_LANG=lang, COLUMNS=columns)
    for line in out.splitlines():
        assert columns_of(line) <= columns, line
        assert line == line.rstrip()
    for word in ("scores", "scaled", "40", "16"):
        assert word in out


def test_the_class_picture_on_a_narrow_screen_is_a_list(class_file: Path) -> None:
    lines = picture(class_file, COLUMNS=40).splitlines()
    assert "scores  right 40" in lines
    at = lines.index("A  right 16 · followed 8 · wrong 8 ·")
    assert lines[at + 1] == "  first wrong 8 · blank 8"


def test_the_rare_is_seen_and_the_frequent_comes_first() -> None:
    sheets = [{"student": "s", "answers": answers} for answers in [RIGHT] * 60 + [OVER_COLUMNS] * 3 + [NO_SCALE]]
    lines = grade("-", "--format", "table", stdin=json_lines(sheets).encode(), COLUMNS=25).out.splitlines()
    # To scale: 3 and 1 of 60 on 19 characters are 7.6 and 2.5 eighths.
    bars = [line[3:] for line in lines if re.match(r"\d  [█▏▎▍▌▋▊▉]", line)]
    assert bars == ["█ 3", "▍ 1", f"{'█' * 19} 60"]
    assert lines.index("3 × softmax-over-columns") < lines.index("1 × no-scale (scaled)")


def test_the_class_picture_without_unicode(class_file: Path) -> None:
    out = picture(class_file, encoding="ascii")
    assert "#####" in out
    assert "8 * no-scale" in out


@pytest.mark.parametrize("format", ["table", "jsonl", "csv", "junit"])
def test_a_class_of_nobody_is_refused(tmp_path: Path, format: str) -> None:
    refused(grade("-", "--format", format), "no sheet in standard input", "a folder of sheets")
    refused(grade(tmp_path, "--format", format), f"no sheet in {tmp_path}")
    out = tmp_path / "out.csv"
    (tmp_path / "class.csv").write_text("student,A\n", "utf-8")
    refused(grade(tmp_path / "class.csv", "--format", format, "-o", out), "no sheet in")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["class.csv"]


def test_many_different_scores_are_put_together() -> None:
    path = library.path("b6-full-backward")
    published = tomllib.loads(path.read_text("utf-8"))["published"]
    steps = list(published.items())
    sheets = [{"student": f"s{n}", "answers": dict(steps[:n])} for n in range(0, 33, 2)]
    ran = grade("-", "--format", "table", exercise="b6-full-backward", stdin=json_lines(sheets).encode())
    rows = [line.split() for line in ran.out.splitlines() if re.match(r"[\d.]+–[\d.]+ ", line.strip())]
    assert [row[0] for row in rows][:2] == ["0–3.3", "3.3–6.6"]
    assert sum(int(row[-1]) for row in rows) == len(sheets)


# The same whoever does the work


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sheets for three chunks, the last of them broken."""
    path = tmp_path_factory.mktemp("big") / "big.jsonl"
    path.write_text(json_lines(a_class(140)) + "{\n", "utf-8")
    return path


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attncli.marking.mark._MOST_TOGETHER", 50)


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("format", ["csv", "junit", "table"])
def test_processes_change_no_byte(big: Path, format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = grade(big, "--format", format)
    assert alone.status == 0
    monkeypatch.setattr("attncli.marking.grader.WORTH", 0.0)
    assert grade(big, "--format", format, "-j", "2") == alone


@pytest.mark.usefixtures("in_parts")
def test_chunks_wait_in_order(big: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attncli.marking.grader.WORTH", 0.0)
    monkeypatch.setattr("attncli.marking.grader._AHEAD", 1)
    assert grade(big, "-j", "2") == grade(big)


def test_processes_of_a_process(big: Path) -> None:
    stream = big.read_bytes()  # how many come in a stream nobody knows, so the processes start at once
    assert process("grade", "a1-pronoun", "-", "--format", "jsonl", "-j", "2", stdin=stream) == grade("-", stdin=stream)


def test_processes_that_are_not_worth_their_start_are_not_started(big: Path) -> None:
    ran = grade(big, "-j", "2")
    assert ran.out == grade(big).out
    assert ran.err == "attncli: -j 2: one process is as quick for 141 sheets, so one marks them all.\n"


def test_sheet_by_sheet_or_side_by_side(big: Path) -> None:
    lines = big.read_bytes().splitlines(keepends=True)[:30]
    assert "".join(grade("-", stdin=line).out for line in lines) == grade("-", stdin=b"".join(lines)).out


def test_feedback_from_processes(class_file: Path, tmp_path: Path) -> None:
    for jobs in (1, 2):
        ran = process(
            "grade", "a1-pronoun", "-", "--format", "csv", "-j", jobs, "--feedback", tmp_path / str(jobs),
            stdin=class_file.read_bytes(),
        )  # fmt: skip
        assert ran.status == 0, ran
    pages = [{path.name: path.read_bytes() for path in (tmp_path / jobs).iterdir()} for jobs in "12"]
    assert pages[0] == pages[1]
    assert len(pages[0]) == 40


CLUSTER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster of two worker processes."""
    pytest.importorskip("distributed")
    script = tmp_path_factory.mktemp("dask") / "cluster.py"
    script.write_text(CLUSTER, "utf-8")
    # The workers stand in another folder than the sheets.
    with subprocess.Popen(
        [sys.executable, script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=script.parent,
        env=environment(DASK_DISTRIBUTED__WORKER__DAEMON="True"),
    ) as running:
        assert running.stdin is not None and running.stdout is not None
        yield running.stdout.readline().strip()
        running.stdin.close()


@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_a_dask_cluster_changes_no_byte(cluster: str, tmp_path: Path, format: str) -> None:
    import numpy as np

    (tmp_path / "a.jsonl").write_text(json_lines(a_class(140)) + "{\n", "utf-8")
    (tmp_path / "b.json").write_text(json.dumps({"answers": NO_SCALE}), "utf-8")
    (tmp_path / "c.toml").write_text('[answers]\nscores = "1 2"\n', "utf-8")
    (tmp_path / "e.json").write_bytes(b" " * 3_000_000)
    np.savez(tmp_path / "d.npz", scores=np.array([[1.0, 2.0]]))
    alone = process("grade", "a1-pronoun", tmp_path, "--format", format)
    assert alone.status == 0
    assert alone.out.count("\n") == 145 + (format == "csv")
    assert process("grade", "a1-pronoun", tmp_path, "--format", format, "--dask", cluster) == alone


def test_no_cluster_there(class_file: Path) -> None:
    pytest.importorskip("distributed")
    for address in ("nonsense://x", "", "127.0.0.1"):
        refused(grade(class_file, "--dask", address), "no cluster answers", "tcp://")


def test_without_the_extra(class_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    refused(grade(class_file, "--dask", "tcp://127.0.0.1:8786"), "pip install 'attncli[dask]'")


# Interruption


def interrupted(argv: list[str], output: Path, lines: int) -> None:
    """Start the command, kill it dead once some lines are there."""
    with subprocess.Popen(argv, env=environment(), stderr=subprocess.DEVNULL) as running:
        until = time.monotonic() + 60
        while running.poll() is None and time.monotonic() < until:
            if output.is_file() and output.read_bytes().count(b"\n") >= lines:
                break
            time.sleep(0.002)
        running.send_signal(signal.SIGKILL)
        assert running.wait() == -signal.SIGKILL, "it was done before it could be killed"


@pytest.fixture(scope="module")
def long_class(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("long")
    # Some hand in twice: their second page must not take the name of the first.
    sheets = [{**sheet, "student": f"s{i % 50}"} for i, sheet in enumerate(a_class(240))]
    (folder / "a.jsonl").write_text(json_lines(sheets), "utf-8")
    rows = io.StringIO()
    csv.writer(rows).writerows([["student", *RIGHT], *([f"=c{i}", *ANSWERS[i % 2].values()] for i in range(60))])
    (folder / "b.csv").write_text(rows.getvalue(), "utf-8")
    return folder


@pytest.mark.parametrize("format", ["jsonl", "csv", "xml"])
def test_killed_in_the_middle_and_continued(long_class: Path, tmp_path: Path, format: str) -> None:
    whole, part = tmp_path / f"whole.{format}", tmp_path / f"part.{format}"
    assert grade(long_class, "-o", whole, "--feedback", tmp_path / "f1").status == 0
    interrupted(command("grade", "a1-pronoun", long_class, "-o", part, "--feedback", tmp_path / "f2"), part, 70)
    kept = part.read_bytes()
    assert b"" != kept != whole.read_bytes()
    with part.open("ab") as file:
        file.write(b'{"schema": 1, "stu' if format == "jsonl" else b"s9")  # a line cut off in the middle
    ran = grade(long_class, "-o", part, "--feedback", tmp_path / "f2")
    assert ran.status == 0
    assert "results of an earlier run" in ran.err
    assert part.read_bytes() == whole.read_bytes()
    pages = [{path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("f1", "f2")]
    assert pages[0] == pages[1]


# On a terminal


def graded_on_terminal(*words: object, **how: Any) -> tuple[str, str]:
    """What a terminal is sent, and what goes into a pipe on standard output if it is piped."""
    ran = on_terminal("grade", "a1-pronoun", *words, TERM="xterm", **how)
    assert ran.status == 0, ran
    return (ran.err, ran.out) if how.get("piped") else (ran.out, "")


def test_progress_on_a_terminal_and_silence_in_a_pipe(class_file: Path) -> None:
    seen, out = graded_on_terminal(class_file, "--format", "csv", piped=True)
    assert "0/40" in seen  # how many there are is known from the beginning
    assert "\x1b[?25h" in seen  # the cursor is shown again
    assert grade(class_file, "--format", "csv") == Ran(0, out.encode())


def test_the_bar_is_gone_before_the_table_is_written(class_file: Path) -> None:
    seen, _ = graded_on_terminal(class_file)
    bar, _, table = seen.rpartition("\x1b[?25h")
    assert "/40" in bar and "/40" not in table
    assert "no-scale" in table and "no-scale" not in bar


@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_lines_that_run_over_the_screen_have_no_bar_between_them(class_file: Path, format: str) -> None:
    seen, _ = graded_on_terminal(class_file, "--format", format)
    assert "/40" not in seen and len(seen.splitlines()) >= 40


def test_progress_of_a_stream_has_no_end(class_file: Path) -> None:
    """Nobody knows how many sheets a pipe brings; none of them may be read to find out."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    through = ["sh", "-c", 'cat "$0" | "$@"', str(class_file), *command("grade", "a1-pronoun", "-", "--format", "csv")]
    with subprocess.Popen(
        through, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs, env=environment()
    ) as running:
        os.close(theirs)
        assert running.stdout is not None
        out = running.stdout.read()
        seen = b"".join(pieces(ours))
        os.close(ours)
    assert running.returncode == 0
    assert b"/?" in seen
    assert out == grade(class_file, "--format", "csv").stdout


def test_colour_only_on_a_terminal(class_file: Path) -> None:
    seen, _ = graded_on_terminal(class_file)
    assert "\x1b[31m" in seen
    assert "\x1b" not in run("grade", "a1-pronoun", class_file).out
