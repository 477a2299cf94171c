"""Sheets that mean harm: nothing stops the run, nothing leaves its folder, nothing reaches a terminal or spreadsheet raw."""

from __future__ import annotations

import csv
import io
import json
import pickle
import re
import time
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from classroom import RIGHT, grade, json_lines
from harness import Ran, refused

NAMES = [
    "../../etc/x",
    "/etc/passwd",
    "C:\\Windows\\x",
    "..",
    ".",
    "a\x00b",
    '=HYPERLINK("http://evil")',
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1+1",
    "＝1+1",
    "\x1b[2J\x1b]0;owned\x07",
    "\x9b31m",
    "\u202egnp.exe",
    "\u2028line",
    "\ud800",
    "[bold red]x[/]",
    "![x](http://evil) <script>alert(1)</script> `x` | #",
    "]]> <!-- & \"'",
    "n" * 5000,
    "名" * 300,
    "𝒳" * 300,
    "con",
    "CON",
    "",
    " ",
]


def sheets() -> list[dict[str, Any]]:
    """Each hostile name as a student, as a step, and inside an answer."""
    return [
        {"student": name, "answers": {**RIGHT, name: "1 2", "A": f"0.330 {name}", "O": "0.660 2.7"}} for name in NAMES
    ]


LINES = json_lines(sheets()).encode()
#: The same as the only, and so the first wrong, step of a sheet.
STEPS = json_lines([{"student": "s", "answers": {name: "1 2"}} for name in NAMES]).encode()


def hostile(*argv: object, **how: Any) -> Ran:
    ran = grade("-", *argv, stdin=LINES, **how)
    assert ran.status == 0, ran
    return ran


def harmless(text: str) -> None:
    """Only line breaks beside what can be printed."""
    strange = {sign for sign in text if not sign.isprintable() and sign not in "\n\u3000"}
    assert not strange, strange


@pytest.mark.parametrize("format", ["jsonl", "csv", "junit", "table"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_no_control_character_is_written(format: str, lang: str) -> None:
    ran = hostile("--format", format, ATTNCLI_LANG=lang)
    harmless(ran.out)
    assert ran.err == ""


def test_json_keeps_every_name() -> None:
    results = hostile().results()
    assert [result["student"] for result in results[:-2]] == [name.strip() for name in NAMES[:-2]]
    assert [result["student"] for result in results[-2:]] == [f"#{len(NAMES) - 1}", f"#{len(NAMES)}"]


@pytest.mark.parametrize("lines", [LINES, STEPS], ids=["names", "steps"])
def test_a_spreadsheet_gets_no_formula(lines: bytes) -> None:
    rows = list(csv.reader(io.StringIO(grade("-", "--format", "csv", stdin=lines).out)))
    assert len(rows) == len(NAMES) + 1
    assert {len(row) for row in rows} == {len(rows[0])}
    for row in rows:
        for cell in row:
            assert not cell.lstrip().startswith(("=", "+", "-", "@", "＝", "\t", "\r")), cell


@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_a_file_gets_the_bytes_of_the_screen(tmp_path: Path, format: str) -> None:
    hostile("-o", tmp_path / f"out.{format}")
    assert (tmp_path / f"out.{format}").read_text("utf-8") == hostile("--format", format).out


def test_junit_is_well_formed() -> None:
    root = ET.fromstring(hostile("--format", "junit").out)
    assert len(root) == len(NAMES)


@pytest.mark.parametrize("format", ["gradescope", "jsonl"])
def test_files_of_students_stay_in_their_folder(tmp_path: Path, format: str) -> None:
    inside = tmp_path / "deep" / "er" / "out"
    output = inside if format == "gradescope" else tmp_path / "deep" / "out.jsonl"
    inside.mkdir(parents=True)
    hostile("--format", format, "-o", output, "--feedback", inside / "feedback")
    own = (output, Path(f"{output}.attncli"))
    found = [path for path in tmp_path.rglob("*") if path.is_file() and path not in own]
    assert all(path.is_relative_to(inside) for path in found)
    feedback = [path for path in found if path.suffix == ".md"]
    assert len(feedback) == len(NAMES)
    assert len({path.name.casefold() for path in feedback}) == len(NAMES)
    if format == "gradescope":
        for path in inside.glob("*/results.json"):
            harmless(path.read_text("utf-8"))
            json.loads(path.read_text("utf-8"))
        assert len(list(inside.glob("*/results.json"))) == len(NAMES)
    for path in feedback:
        text = path.read_text("utf-8")
        harmless(text)
        outside = re.sub(r"`[^`]*`", "", text)
        assert "<script>" not in outside.replace("\\<", "")
        assert "![x](" not in outside


def save_npz(path: Path, name: str, header: bytes, body: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}.npy", header + body)


def npy_header(shape: tuple[int, ...], dtype: str = "<f8") -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": dtype, "fortran_order": False, "shape": shape})
    return out.getvalue()


class Run:
    """Leaves a file behind if it is ever unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (self.path, "w")


def test_hostile_files_are_one_malformed_result_each(tmp_path: Path) -> None:
    folder = tmp_path / "sheets"
    folder.mkdir()
    size = 9_000_000
    save_npz(folder / "bomb.npz", "A", npy_header((size,)), bytes(size * 8))  # 70 kB, 72 MB unpacked
    save_npz(folder / "liar.npz", "A", npy_header((1 << 40,)), b"")
    trap = tmp_path / "trap"
    np.savez(folder / "pickle.npz", A=np.array([Run(str(trap))], dtype=object))
    (folder / "pickle2.npz").write_bytes(pickle.dumps(Run(str(trap))))
    (folder / "text.npz").write_bytes(b"PK\x03\x04" + b"\x00" * 100)
    (folder / "deep.json").write_text('{"student":' + "[" * 50_000, "utf-8")
    (folder / "many.json").write_text('{"answers": {"A": "' + "? " * 900_000 + '"}}', "utf-8")
    (folder / "keys.json").write_text(json.dumps({"answers": {f"k{i}": "1" for i in range(3000)}}), "utf-8")
    (folder / "huge.json").write_text(
        '{"answers": {"A": "1e999999999 9", "O": 1' + "0" * 5000 + ', "scores": "1e308 1e308"}}', "utf-8"
    )
    (folder / "power.json").write_text('{"answers": {"A": "9^9^9^9 1", "O": "' + "(" * 5000 + '1 2"}}', "utf-8")
    (folder / "zz.json").write_text(json.dumps({"answers": RIGHT}), "utf-8")
    results = {result["student"]: result for result in grade(folder).results()}
    assert len(results) == 11
    assert "64,000,000" in results["bomb"]["malformed"]
    for name in ("liar", "pickle"):
        assert results[name]["steps"][2]["verdict"] == "malformed", name
    for name in ("pickle2", "text", "deep"):
        assert "malformed" in results[name]
    assert results["many"]["steps"][2]["verdict"] == "malformed"
    assert results["keys"]["score"] == 0
    assert results["huge"]["score"] == results["power"]["score"] == 0
    assert results["zz"]["score"] == 6
    assert not trap.exists()


def test_ten_million_blanks() -> None:
    line = b'{"student": "ann", "answers": {"A": "' + b"? " * 10_000_000 + b'"}}\n'
    broken, good = grade("-", stdin=line + json_lines([{"student": "bob", "answers": RIGHT}]).encode()).results()
    assert "too many for one sheet" in broken["malformed"]
    assert good["score"] == 6


def test_a_fault_of_ours_costs_one_student(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from attncli.marking.mark import Marker

    mark_many = Marker.mark_many

    def failing(self: Marker, sheets: Any, layout: str) -> Any:
        if any(sheet.student == "bob" for sheet in sheets):
            raise ZeroDivisionError("by hand")
        return mark_many(self, sheets, layout)

    monkeypatch.setattr(Marker, "mark_many", failing)
    lines = json_lines([{"student": name, "answers": RIGHT} for name in ("ann", "bob", "cyd")])
    ran = grade("-", stdin=lines.encode())
    assert ran.status == 2
    assert ran.err.startswith(
        "attncli: attncli itself failed on 1 of the sheets (bob). There are no points for them yet;"
    )
    ann, bob, cyd = map(json.loads, ran.out.splitlines())
    assert ann["score"] == cyd["score"] == 6
    assert bob["score"] is None
    assert "attncli itself failed on this sheet (ZeroDivisionError: by hand at test_grade_hostile.py:" in bob["fault"]
    table = grade("-", "--format", "table", stdin=lines.encode()).out
    assert "Mean: 6 of 6 points" in table and "bob: attncli itself failed" in table and "\nbob  –\n" in table
    row = list(csv.DictReader(io.StringIO(grade("-", "--format", "csv", stdin=lines.encode()).out)))[1]
    assert (row["student"], row["score"]) == ("bob", "") and "itself failed" in row["remarks"]
    suite = ET.fromstring(grade("-", "--format", "junit", stdin=lines.encode()).out)[1]
    assert suite.get("errors") == "1" and suite.find("properties/property[@name='score']") is None
    grade("-", "--format", "gradescope", "-o", tmp_path / "out", stdin=lines.encode())
    failed = json.loads((tmp_path / "out" / "bob" / "results.json").read_text("utf-8"))
    assert "score" not in failed and "tests" not in failed and "itself failed" in failed["output"]
    # The next run tries again, and only there.
    out = tmp_path / "out.csv"
    assert grade("-", "-o", out, stdin=lines.encode()).status == 2
    monkeypatch.undo()
    assert grade("-", "-o", out, stdin=lines.encode()).status == 0
    assert [float(row["score"]) for row in csv.DictReader(io.StringIO(out.read_text("utf-8")))] == [6, 6, 6]


def test_a_sheet_that_takes_too_long_costs_one_student(monkeypatch: pytest.MonkeyPatch) -> None:
    from attncli.marking.mark import Marker

    mark_many = Marker.mark_many

    def endless(self: Marker, sheets: Any, layout: str) -> Any:
        while any(sheet.student == "bob" for sheet in sheets):
            pass
        return mark_many(self, sheets, layout)

    monkeypatch.setattr(Marker, "mark_many", endless)
    monkeypatch.setattr("attncli.marking.grader.MOST_SECONDS", 0.3)
    lines = json_lines([{"student": name, "answers": RIGHT} for name in ("ann", "bob", "cyd")])
    ran = grade("-", stdin=lines.encode())
    ann, bob, cyd = map(json.loads, ran.out.splitlines())
    assert (ran.status, ann["score"], bob["score"], cyd["score"]) == (2, 6, None, 6)
    assert "more than 0.3 seconds" in bob["fault"]


def test_time_that_others_take_costs_no_student(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy with something else is slow, and the marks are the same."""
    from attncli.marking.mark import Marker

    mark_many = Marker.mark_many

    def kept_waiting(self: Marker, sheets: Any, layout: str) -> Any:
        time.sleep(0.6)
        return mark_many(self, sheets, layout)

    monkeypatch.setattr(Marker, "mark_many", kept_waiting)
    monkeypatch.setattr("attncli.marking.grader.MOST_SECONDS", 0.5)
    ran = grade("-", stdin=json_lines([{"student": "ann", "answers": RIGHT}]).encode())
    assert (ran.status, json.loads(ran.out)["score"]) == (0, 6)


def test_a_device_is_no_class() -> None:
    refused(grade("/dev/zero"), "/dev/zero", "this is a device", "a folder of sheets")


def test_an_empty_format_is_no_format(tmp_path: Path) -> None:
    (tmp_path / "class.jsonl").write_text("")
    refused(grade(tmp_path / "class.jsonl", "--format", ""), "The format", "jsonl")
