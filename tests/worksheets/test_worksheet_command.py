"""`attncli worksheet` as a teacher types it: sheets without answers, keys, folders of variants, and a class graded with them."""

import csv
import hashlib
import io
import json
import re
import shutil
import tomllib

import numpy as np
import pytest
from harness import assert_fits, run

import attncli
from attncli.marking.mark import Marker
from attncli.mistakes import mistakes_at
from attncli.worksheets.outcomes import by_hand


@pytest.fixture(scope="module")
def a_set(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class") / "set"
    names = folder.parent / "names.csv"
    names.write_text("student,room\nAda,1\n李雷,2\nBob,1\n", encoding="utf-8")
    assert run("worksheet", "attention", "--students", names, "--seed", "s", "-o", folder).status == 0
    return folder


def right_answers(path):
    """The sheet of somebody who rounds every line and carries it on."""
    problem = attncli.load(path)
    marker = Marker(problem)
    chain = by_hand(marker)
    return {id: chain.carried(id)[0].tolist() for id in marker.points}


def rows_of(folder):
    return list(csv.DictReader(io.StringIO((folder / "students.csv").read_text(encoding="utf-8"))))


def files_of(folder):
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_folder_holds_what_the_contract_names(a_set):
    found = tomllib.loads((a_set / "set.toml").read_text(encoding="utf-8"))
    assert found["recipe"] == "attention" and found["seed"] == "s" and len(found["ids"]) == 3
    assert found["decimals"] == 3 and found["generator"] == 1
    rows = rows_of(a_set)
    assert [row["student"] for row in rows] == ["Ada", "李雷", "Bob"]
    assert [row["sheet"] for row in rows] == found["ids"]
    wanted = {"set.toml", "students.csv", "sheets.html", "sheets.tex", "sheets.md", "teacher/key.html"}
    wanted |= {
        "teacher/certificate.json",
        *(f"{kind}/{id}.toml" for kind in ("problems", "answers") for id in found["ids"]),
    }
    assert set(files_of(a_set)) == wanted


def test_the_same_seed_gives_the_same_bytes_and_a_student_the_same_sheet_in_another_class(a_set, tmp_path):
    names = tmp_path / "one.csv"
    names.write_text("student\n李雷\n", encoding="utf-8")
    again = tmp_path / "again"
    words = ["worksheet", "attention", "--students", str(names), "--seed", "s", "-o", str(again)]
    assert run(*words).status == 0
    (problem,) = (again / "problems").iterdir()
    assert problem.read_bytes() == (a_set / "problems" / problem.name).read_bytes()
    before = files_of(again)
    assert run(*words).status == 0
    assert files_of(again) == before
    words[5] = "t"
    status, out, err = run(*words)
    assert (status, out) == (2, "") and "--force" in err
    assert files_of(again) == before


def test_no_answer_stands_in_what_students_get(a_set):
    """Numbers with a fraction stand in no sheet but in the table of e^−x; here the problem has only whole ones."""
    for name in ("sheets.html", "sheets.tex", "sheets.md"):
        text = re.sub(r"<style>.*?</style>", "", (a_set / name).read_text(encoding="utf-8"), flags=re.DOTALL)
        tables = re.findall(r"to look up.*?To fill in", text, re.DOTALL)
        assert len(tables) == 3 and len(set(tables)) == 1, "what is to be looked up is the same on every sheet"
        assert "0.49307" in tables[0]
        text = re.sub(r"to look up.*?To fill in", "", text, flags=re.DOTALL)
        text = re.sub(r"\\usepackage.*|\\set.*|\\newcommand.*|\\begin\{tabular\}.*|.*\\rule.*|<meta.*", "", text)
        assert not re.search(r"\d\.\d", text), name
    for path in (a_set / "answers").iterdir():
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        assert set("".join(given["answers"].values())) <= set("? ;")
    key = (a_set / "teacher" / "key.html").read_text(encoding="utf-8")
    for id in tomllib.loads((a_set / "set.toml").read_text(encoding="utf-8"))["ids"]:
        for row in right_answers(a_set / "problems" / f"{id}.toml")["A"]:
            assert all(f"<td>{value:.3f}</td>" in key for value in row)


def test_every_student_is_marked_by_the_own_variant(a_set, tmp_path):
    rows = rows_of(a_set)
    sheets = [
        {"student": row["student"], "answers": right_answers(a_set / "problems" / f"{row['sheet']}.toml")}
        for row in rows
    ]
    sheets.append({"student": "somebody", "problem": rows[1]["sheet"], "answers": sheets[1]["answers"]})
    sheets.append({"student": "Ada", "problem": rows[1]["sheet"], "answers": sheets[0]["answers"]})
    sheets.append({"student": "nobody", "answers": sheets[0]["answers"]})
    handed_in = tmp_path / "in.jsonl"
    handed_in.write_text("".join(json.dumps(sheet) + "\n" for sheet in sheets), encoding="utf-8")
    status, out, _ = run("grade", str(a_set), str(handed_in), "--format", "jsonl")
    results = [json.loads(line) for line in out.splitlines()]
    assert status == 0
    assert [result["score"] == result["max_score"] for result in results] == [True] * 4 + [False] * 2
    assert [result["problem"] for result in results[:5]] == [
        *(row["sheet"] for row in rows),
        rows[1]["sheet"],
        rows[1]["sheet"],
    ]
    assert "nobody" in results[5]["malformed"]
    table = tmp_path / "in.csv"
    table.write_text(
        "student,problem,A\nx,"
        + rows[2]["sheet"]
        + ',"'
        + "; ".join(" ".join(map(str, row)) for row in sheets[2]["answers"]["A"])
        + '"\n',
        encoding="utf-8",
    )
    status, out, err = run("grade", str(a_set), str(table), "--format", "jsonl")
    (result,) = map(json.loads, out.splitlines())
    assert (status, err) == (0, "")
    assert next(step for step in result["steps"] if step["id"] == "A")["verdict"] == "correct"
    status, out, _ = run("grade", str(a_set), str(handed_in))
    assert status == 0 and "6" in out


def test_a_folder_of_the_empty_sheets_filled_in(a_set, tmp_path):
    """Named as they were handed out, each is its student's, whose name it holds."""
    rows = rows_of(a_set)
    for row in rows:
        text = (a_set / "answers" / f"{row['sheet']}.toml").read_text(encoding="utf-8")
        answers = right_answers(a_set / "problems" / f"{row['sheet']}.toml")
        (tmp_path / f"{row['sheet']}.toml").write_text(
            text.partition("[answers]")[0]
            + "[answers]\n"
            + "".join(f"{id} = {value}\n" for id, value in answers.items()),
            encoding="utf-8",
        )
    marks = tmp_path.parent / "marks.csv"
    for _ in range(2):  # the second time nothing is marked again, and nothing changes
        status, _, _ = run("grade", str(a_set), str(tmp_path), "-o", str(marks))
        assert status == 0
        found = list(csv.DictReader(io.StringIO(marks.read_text(encoding="utf-8"))))
        assert sorted(one["student"] for one in found) == sorted(row["student"] for row in rows)
        assert all(one["score"] == one["max_score"] for one in found)


def test_every_mistake_of_a_variant_is_marked_first_wrong_and_named(a_set):
    """Made here by the graph with another op in the step's place, every line rounded; not by what the certificate uses."""
    from attncli.arithmetic.hand import Hand
    from attncli.problems.answers import Sheet, answer

    problem = attncli.load(next((a_set / "problems").iterdir()))
    marker, graph = Marker(problem), problem.graph()
    certified = json.loads((a_set / "teacher" / "certificate.json").read_text(encoding="utf-8"))["sheets"][problem.id]
    verdicts = {(one["step"], one["id"]): one["verdict"] for one in certified}
    made = 0
    for step in graph.steps:
        for mistake in mistakes_at(graph, step):
            try:
                with np.errstate(all="ignore"):
                    wrong = graph.evaluate(Hand(problem.decimals), swap={**mistake.swap, **mistake.alike}, until=step)[
                        step
                    ]
            except (ValueError, IndexError):
                continue
            text = "; ".join(" ".join(f"{value:.3f}" for value in row) for row in wrong)
            marked = marker.mark(Sheet("s", {step: answer(text)}))
            assert marked.first_wrong == step, mistake.id
            (line,) = [one for one in marked.steps if one.id == step]
            assert (step, mistake.id) in {(one.step, one.id) for one in line.mistakes}
            assert verdicts[step, mistake.id] in ("alone", "shared")
            made += 1
    assert made >= 12


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", ["a1", "b6-full-backward", "d1-two-heads"])
def test_a_sheet_and_its_key_in_every_format(name, lang, tmp_path):
    for ending in (".html", ".tex", ".md", ".txt"):
        for key in ([], ["--key"]):
            place = tmp_path / f"{len(key)}{ending}"
            status, out, err = run("worksheet", name, *key, "-o", str(place), "--lang", lang)
            assert (status, out, err) == (0, "", "")
    sheet, key = (tmp_path / "0.html").read_text(encoding="utf-8"), (tmp_path / "1.html").read_text(encoding="utf-8")
    assert "http" not in re.sub(r'http-equiv="[^"]*"', "", sheet) and "A4" in sheet and "CJK" in sheet
    if name == "a1":
        assert "0.330" not in sheet and "0.330" in key and "no-scale" in key
        tex = (tmp_path / "0.tex").read_text(encoding="utf-8")
        assert tex.count("\\begin") == tex.count("\\end") and "0.330" not in tex
    assert ("姓名" in sheet) == (lang == "zh")


@pytest.mark.parametrize("width", [30, 50, 120])
def test_a_sheet_is_as_wide_as_the_screen_and_in_a_file_as_wide_as_paper(width, tmp_path):
    assert_fits(run("worksheet", "attention", "--seed", 3, COLUMNS=width), width)
    shown = run("worksheet", "attention", "--seed", 3, "--key", COLUMNS=width)
    assert_fits(shown, width)
    (tmp_path / "key.txt").unlink(missing_ok=True)
    assert run("worksheet", "attention", "--seed", 3, "--key", "-o", tmp_path / "key.txt", COLUMNS=width).status == 0
    written = (tmp_path / "key.txt").read_text("utf-8")
    assert max(map(len, written.splitlines())) in range(70, 79)
    assert shown.out.split() == written.split()


def test_an_empty_sheet_is_marked_as_blank(tmp_path):
    place = tmp_path / "a1.toml"
    assert run("worksheet", "a1", "-o", str(place)).status == 0
    status, out, _ = run("check", "a1", str(place), "--format", "json")
    assert status == 0
    assert {step["verdict"] for step in json.loads(out)["steps"]} == {"blank"}


def test_list_and_explain():
    status, out, err = run("worksheet", "--list")
    assert (status, err) == (0, "") and "self-attention-causal" in out
    status, out, err = run("worksheet", "softmax", "--explain")
    assert (status, err) == (0, "") and "A: softmax-over-columns" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["worksheet"], "--list"),
        (["worksheet", "no-such-thing"], "no-such-thing"),
        (["worksheet", "a1", "--variants", "3", "-o", "x"], "--variants"),
        (["worksheet", "a1", "--seed", "3"], "--seed"),
        (["worksheet", "a1", "-o", "sheet.docx"], "sheet.docx"),
        (["worksheet", "a1", "-o", "sheet.toml", "--key"], "key"),
        (["worksheet", "softmax", "--variants", "0", "-o", "x"], "--variants"),
        (["worksheet", "softmax", "--variants", "2"], "-o"),
        (["worksheet", "softmax", "--variants", "2", "--key", "-o", "x"], "teacher/key.html"),
        (["worksheet", "softmax", "--variants", "2", "--students", "no.csv", "-o", "x"], "--students"),
        (["worksheet", "softmax", "--students", "no.csv", "-o", "x"], "no.csv"),
        (["worksheet", "softmax", "--decimals", "9"], "--decimals"),
        (["worksheet", "softmax", "--ask", "O"], "O"),
    ],
)
def test_refused(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert err.startswith("attncli: ") and said in err and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["name\nAda\n", "student\n", "student\nAda\nAda\n", ""])
def test_lists_of_students_that_say_nothing_clear_are_refused(text, tmp_path):
    (tmp_path / "names.csv").write_text(text, encoding="utf-8")
    words = ["worksheet", "softmax", "--students", str(tmp_path / "names.csv"), "-o", str(tmp_path / "x")]
    status, out, err = run(*words)
    assert (status, out) == (2, "") and "names.csv" in err
    assert not (tmp_path / "x").exists()


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    status, out, _ = run("worksheet", "softmax", "--variants", "1", "-o", str(tmp_path))
    assert (status, out) == (2, "") and [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("set.toml", b"ids = [1"),
        ("set.toml", b"schema = 1\n"),
        ("set.toml", b"ids = []\n"),
        ("set.toml", b"\xff\xfe"),
        ("students.csv", b"student,sheet\nAda,nothing\n"),
        ("students.csv", b"student,sheet\n\xff,x\n"),
        ("students.csv", b'student,sheet\n"Ada,x\n'),
        ("problems", None),
    ],
)
def test_a_spoiled_set_is_refused(name, text, a_set, tmp_path):
    folder = tmp_path / "set"
    shutil.copytree(a_set, folder)
    if text is None:
        shutil.rmtree(folder / name)
    else:
        (folder / name).write_bytes(text)
    (tmp_path / "in.jsonl").write_text('{"student": "Ada"}\n', encoding="utf-8")
    status, out, err = run("grade", str(folder), str(tmp_path / "in.jsonl"))
    assert (status, out) == (2, "")
    assert err.startswith("attncli: ") and err.count("\n") == 1 and "set" in err


@pytest.mark.slow
def test_two_processes_write_the_same_bytes(tmp_path):
    words = ["worksheet", "softmax", "--variants", "3", "--seed", "j", "-o"]
    assert run(*words, str(tmp_path / "one")).status == 0
    assert run(*words, str(tmp_path / "two"), "-j", "2").status == 0
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")
