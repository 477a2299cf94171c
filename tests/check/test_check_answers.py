"""Answers in every form, in any order and any subset; what cannot be read is refused in one message."""

from __future__ import annotations

import io
import itertools
import json
import pickle
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import refused
from sheets import EXERCISE, RIGHT, WRONG, as_json, check, exercise_file, run, sheet

import attncli


def toml_of(answers: dict[str, str]) -> str:
    return 'student = "ann"\n[answers]\n' + "".join(f'{name} = "{text}"\n' for name, text in answers.items())


def csv_of(answers: dict[str, str]) -> str:
    return "student," + ",".join(answers) + "\nann," + ",".join(f'"{text}"' for text in answers.values()) + "\n"


FORMS = {
    "sheet.toml": toml_of,
    "sheet.json": lambda answers: sheet(answers).decode(),
    "sheet.JSON": lambda answers: sheet(answers).decode(),
    "sheet.jsonl": lambda answers: sheet(answers).decode() + "\n",
    "sheet.csv": csv_of,
    "sheet.CSV": csv_of,
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_every_form_of_a_sheet_is_the_same_sheet(tmp_path: Path, name: str, bom: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(bom + FORMS[name](WRONG).encode())
    ran = run(EXERCISE, path, "--format", "json")
    assert ran.status == 1
    assert ran == as_json(WRONG)


def test_answers_on_the_command_line_and_over_a_file(tmp_path: Path) -> None:
    words = list(itertools.chain(*(("--answer", f"{name}={text}") for name, text in RIGHT.items())))
    ran = run(EXERCISE, *words, "--format", "json")
    assert ran.status == 0
    assert set(ran.verdicts.values()) == {"correct"}
    path = tmp_path / "sheet.json"
    path.write_bytes(sheet(WRONG))
    ran = run(EXERCISE, path, "--answer", "O=0.538 2.924", "--format", "json")
    assert ran.verdicts == {"scores": "correct", "scaled": "wrong", "A": "follow_through", "O": "follow_through"}


def test_toml_on_standard_input() -> None:
    ran = run(EXERCISE, "-", "--format", "json", stdin=toml_of(WRONG).encode())
    assert ran == as_json(WRONG)


def test_any_order_and_any_subset() -> None:
    for answers in itertools.permutations(RIGHT.items()):
        assert as_json(dict(answers)).data["score"] == 6
    for size in range(len(RIGHT) + 1):
        for part in itertools.combinations(RIGHT.items(), size):
            ran = as_json(dict(part))
            assert ran.status == 0
            names = [name for name, _ in part]
            assert [id for id, verdict in ran.verdicts.items() if verdict == "correct"] == names
            assert [id for id, verdict in ran.verdicts.items() if verdict == "blank"] == [
                id for id in RIGHT if id not in names
            ]


@pytest.mark.parametrize(
    ("step", "text"),
    [
        ("scaled", "√2/2 √2"),
        ("scaled", "1/sqrt(2) 2/sqrt(2)"),
        ("scaled", "[[0.7071, 1.4142]]"),
        ("scaled", r"\begin{bmatrix}0.707 & 1.414\end{bmatrix}"),
        ("scaled", "０．７０７，１．４１４"),
        ("A", "0.3302 0.6698"),
        ("A", "1/(1+e^(√2/2)) 1-1/(1+e^(√2/2))"),
    ],
)
def test_notations(step: str, text: str) -> None:
    ran = as_json({step: text})
    assert (ran.status, ran.verdicts[step]) == (0, "correct"), ran


def test_lists_of_numbers_and_of_texts() -> None:
    ran = as_json({"scores": [[1, 2]], "scaled": [["√2/2", "√2"]], "A": [0.330, 0.670], "O": "0.660, 2.680"})
    assert ran.status == 0
    assert ran.data["score"] == 6


def test_blanks() -> None:
    data = as_json({"scores": "", "scaled": "? _", "A": "0.330 ?"}).data
    assert [step["verdict"] for step in data["steps"]] == ["blank", "blank", "correct", "blank"]
    assert [step["points"] for step in data["steps"]] == [0, 0, 1, 0]
    assert "blank" in data["steps"][2]["message"]


def test_symbols_of_the_field_are_understood_and_said() -> None:
    ran = as_json({"S": "1 2", "P": "0.330 0.670"})
    assert (ran.verdicts["scores"], ran.verdicts["A"]) == ("correct", "correct")
    assert "written as S" in ran.data["steps"][0]["message"]
    assert "written as P" in ran.data["steps"][2]["message"]
    twice = as_json({"scores": "1 2", "S": "1 2"})
    assert twice.verdicts["S"] == "malformed"
    assert twice.status == 1


def test_names_of_ones_own_are_said_once() -> None:
    for reveal in ((), ("--hint",), ("--reveal",)):
        out = check({"S": "1 2", "S_scaled": "1 2", "A": "0.269 0.731"}, *reveal).out
        assert out.count("S_scaled") == 1 and "written as" not in out
        assert "· your names for these steps: S = scores, S_scaled = scaled\n" in out
    assert "your names" not in check(RIGHT).out


def test_a_step_that_does_not_exist_is_malformed_and_the_likely_one_named() -> None:
    ran = as_json({"scroes": "1 2", "A": "0.330 0.670"})
    assert ran.status == 1
    assert ran.verdicts["scroes"] == "malformed"
    assert "Did you mean “scores”?" in ran.out


def test_tokens_as_columns(tmp_path: Path) -> None:
    path = exercise_file(tmp_path)
    trace = attncli.forward(attncli.load(str(path)))
    rows = {id: "; ".join(" ".join(f"{v:.3f}" for v in row) for row in trace[id]) for id in ("scaled", "A", "O")}
    columns = {id: "; ".join(" ".join(f"{v:.3f}" for v in row) for row in trace[id].T) for id in ("scaled", "A", "O")}
    for ran in (as_json(rows, exercise=path), as_json(columns, "--layout", "columns", exercise=path)):
        assert ran.status == 0
        assert "notes" not in ran.data
    recognised = as_json(columns, exercise=path)
    assert recognised.status == 0
    assert "tokens as columns" in recognised.data["notes"][0]
    for way in (("--layout", "columns"), ()):
        wrong = {**columns, "O": columns["O"].replace(columns["O"].split("; ")[1], "8.5 7.5")}
        out = check(wrong, *way, exercise=path).out
        assert way == () or "Work out [2,1], [2,2] once more" in out  # as the sheet has them
        assert way == () or re.search(r"You wrote:\n .*\n +>8.5< +>7.5<\n", out), out
    refused(check(columns, "--layout", "diagonal", exercise=path), "“diagonal”", "columns")


# A program's intermediates


def dump(path: Path, arrays: dict[str, Any]) -> Path:
    np.savez(path, **arrays)
    return path


def program(x: Any, w_q: Any, w_k: Any, w_v: Any, kind: Any, slip: str = "") -> dict[str, Any]:
    """Causal self-attention as one writes it in NumPy, with its intermediates."""
    x, w_q, w_k, w_v = (np.asarray(m, dtype=kind) for m in (x, w_q, w_k, w_v))
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    scores = q @ k.T
    scaled = (scores / np.sqrt(kind(k.shape[1]))).astype(kind)
    if slip == "scale":
        scaled = (scores / kind(k.shape[1])).astype(kind)
    masked = np.where(np.tri(len(x), dtype=bool), scaled, -np.inf).astype(kind)
    axis = 0 if slip == "axis" else -1
    exp = np.exp(masked - masked.max(axis, keepdims=True))
    a = exp / exp.sum(axis, keepdims=True)
    return {"Q": q, "K": k, "V": v, "scores": scores, "scaled": scaled, "masked": masked, "A": a, "O": a @ v}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    generator = np.random.RandomState(7)
    matrices = [np.round(generator.standard_normal(shape), 4) for shape in ((5, 8), (8, 4), (8, 4), (8, 4))]
    inputs = "".join(
        f'{name} = "{"; ".join(" ".join(f"{v:.4f}" for v in row) for row in m)}"\n'
        for name, m in zip(("X", "W_Q", "W_K", "W_V"), matrices, strict=True)
    )
    path = tmp_path_factory.mktemp("model") / "model.toml"
    path.write_text(
        f'schema = 1\nid = "m"\nmodel = "self_attention"\n[inputs]\n{inputs}[settings]\ncausal = true\n', "utf-8"
    )
    return path, matrices


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize(("slip", "first"), [("", None), ("scale", "scaled"), ("axis", "A")])
def test_a_code_dump_finds_the_first_step_that_departs(
    tmp_path: Path, model: tuple[Path, list[Any]], kind: Any, slip: str, first: str | None
) -> None:
    path, matrices = model
    ran = run(path, dump(tmp_path / "dump.npz", program(*matrices, kind, slip)), "--format", "json")
    assert ran.data["first_wrong"] == first
    assert ran.status == (0 if first is None else 1)
    if first is not None:
        named = next(step for step in ran.data["steps"] if step["id"] == first)["mistakes"]
        assert named[0]["id"] == {"scale": "scale-by-d", "axis": "softmax-over-columns"}[slip]


@pytest.mark.parametrize(("kind", "least"), [(np.float32, 1e-3), (np.float64, 1e-10)])
def test_a_small_departure_is_seen_and_shown_with_enough_digits(
    tmp_path: Path, model: tuple[Path, list[Any]], kind: Any, least: float
) -> None:
    path, matrices = model
    arrays = program(*matrices, kind)
    arrays["V"][2, 1] += least
    ran = run(path, dump(tmp_path / "dump.npz", arrays))
    assert ran.status == 1
    lines = [line for line in ran.out.splitlines() if ">" in line]
    assert len(lines) == 1
    shown = lines[0].split(">")[1].split("<")[0].strip()
    assert abs(float(shown) - float(arrays["V"][2, 1])) < least
    farthest = next(line for line in ran.out.splitlines() if line.startswith("Farthest off: [3,2], "))
    assert f" {shown} instead of " in farthest
    assert shown not in ran.out.replace(lines[0], "").replace(farthest, "")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_first_ten_lines_say_where_a_program_departs_and_why(
    tmp_path: Path, model: tuple[Path, list[Any]], lang: str
) -> None:
    path, matrices = model
    arrays = program(*matrices, np.float64, "axis")
    file = dump(tmp_path / "dump.npz", arrays)
    top = "\n".join(run(path, file, ATTNCLI_LANG=lang).out.splitlines()[:10])
    right = attncli.forward(attncli.load(str(path)))["A"]
    row, column = np.unravel_index(np.abs(arrays["A"] - right).argmax(), right.shape)
    off = round(float(np.abs(arrays["A"] - right).max()) * 1000)
    for word in ("A ", f"[{row + 1},{column + 1}]", f" {off} "):
        assert word in top
    said = next(
        step["message"]
        for step in run(path, file, "--format", "json", ATTNCLI_LANG=lang).data["steps"]
        if step["id"] == "A"
    )
    assert "".join(said.split()) in "".join(top.split())
    assert "instead of" not in run(path, file, "--hint").out  # that would be a right number


def test_a_persons_sheet_has_no_such_lines() -> None:
    assert "first step that differs" not in check(WRONG).out
    assert "first step that differs" not in check({**WRONG, "scaled": [[1, 2]]}).out


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        ((np.float64, np.float64), []),
        ((np.float32, np.float32), ["These numbers are float32: about seven digits."]),
        ((np.float16, np.float16), ["These numbers are float16: about three digits."]),
        ((np.float16, np.float64), ["Float16, which holds about three digits: A."]),
        (
            (np.float32, np.float16),
            ["Float16, which holds about three digits: O.", "Float32, which holds about seven digits: A."],
        ),
    ],
)
def test_what_arrays_hold_is_said_once(
    tmp_path: Path, model: tuple[Path, list[Any]], kinds: tuple[Any, Any], said: list[str]
) -> None:
    path, matrices = model
    right = program(*matrices, np.float64)
    arrays = {id: right[id].astype(kind) for id, kind in zip(("A", "O"), kinds, strict=True)}
    ran = run(path, dump(tmp_path / "dump.npz", arrays), "--format", "json")
    assert ran.status == 0
    assert ran.data.get("notes", []) == said


@pytest.mark.parametrize("rounding", ["hand", "printed", "float32", "float16"])
def test_float16_is_no_excuse_where_the_problem_says_what_its_numbers_come_from(
    tmp_path: Path, model: tuple[Path, list[Any]], rounding: str
) -> None:
    path, matrices = model
    strict = tmp_path / "strict.toml"
    strict.write_text(path.read_text("utf-8") + f'[marking]\nrounding = "{rounding}"\n', "utf-8")
    right = program(*matrices, np.float64)
    loose = {"scores": right["scores"].astype(np.float16)}
    ran = run(strict, dump(tmp_path / "loose.npz", loose), "--format", "json")
    assert ran.status == (1 if rounding in ("printed", "float32") else 0)
    fine = run(strict, dump(tmp_path / "fine.npz", program(*matrices, np.float32)), "--format", "json")
    assert fine.status == 0, fine.data


def test_a_large_dump_shows_the_wrong_cells_only(tmp_path: Path) -> None:
    path = tmp_path / "large.toml"
    generator = np.random.RandomState(1)
    q, k = (np.round(generator.standard_normal((40, 3)), 2) for _ in range(2))
    for name, m in (("q", q), ("k", k)):
        np.save(tmp_path / f"{name}.npy", m)
    text = {n: "; ".join(" ".join(f"{v:.2f}" for v in row) for row in m) for n, m in (("Q", q), ("K", k), ("V", k))}
    inputs = "".join(f'{name} = "{value}"\n' for name, value in text.items())
    path.write_text(f'schema = 1\nid = "l"\nmodel = "attention"\n[inputs]\n{inputs}', "utf-8")
    scores = q @ k.T
    scores[3, :12] += 0.5
    out = run(path, dump(tmp_path / "dump.npz", {"scores": scores})).out
    assert "[4,1]: you wrote" in out
    assert "… and 4 more cells." in out
    assert len(out.splitlines()) < 30


# What is refused


def npz(path: Path, name: str, content: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return path


def header(shape: tuple[int, ...]) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return out.getvalue()


class Trap:
    """Leaves a file behind if it is ever unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (self.path, "w")


def test_hostile_archives(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    np.savez(tmp_path / "objects.npz", A=np.array([Trap(str(trap))], dtype=object))
    ran = run(EXERCISE, tmp_path / "objects.npz", "--format", "json")
    assert (ran.status, ran.verdicts["A"]) == (1, "malformed")
    ran = run(EXERCISE, npz(tmp_path / "bomb.npz", "A.npy", header((1 << 33,)) + bytes(50_000_000)), "--format", "json")
    assert (ran.status, ran.verdicts["A"]) == (1, "malformed")
    (tmp_path / "pickle.npz").write_bytes(pickle.dumps(Trap(str(trap))))
    refused(run(EXERCISE, tmp_path / "pickle.npz"), "pickle.npz", ".npz")
    np.savez(tmp_path / "many.npz", **{f"a{i}": np.zeros(1) for i in range(1001)})
    refused(run(EXERCISE, tmp_path / "many.npz"), "1001")
    assert not trap.exists()


BAD = {
    "list.json": (b"[1, 2]", ["names its steps", "1, 2"]),
    "broken.json": (b'{"answers": ', ["not valid JSON", "line 1"]),
    "table.json": (b'{"student": "ann", "answers": "1 2"}', ["answers: this is “1 2”"]),
    "twice.json": (b'{"answers": {"A": "1 2", "A": "1 2"}}', ["“A” occurs twice"]),
    "deep.json": (b"[" * 100_000, ["too deep"]),
    "broken.toml": (b"answers = [", ["not valid TOML"]),
    "gbk.json": ('{"student": "王"}'.encode("gbk"), ["not UTF-8"]),
    "long.csv": (b'student,A\nann,"' + b"1 " * 70_000 + b'"\n', ["long.csv", "not a CSV that can be read"]),
    "two.csv": (b"student,A\nann,1 2\nbob,1 2\n", ["2 sheets", "attncli grade"]),
    "two.jsonl": (sheet(RIGHT) + b"\n" + sheet(RIGHT) + b"\n", ["2 sheets", "attncli grade"]),
    "big.json": (b" " * 16_000_001, ["limit"]),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_is_no_sheet_is_refused(tmp_path: Path, name: str) -> None:
    content, words = BAD[name]
    (tmp_path / name).write_bytes(content)
    refused(run(EXERCISE, tmp_path / name), name, *words)


def test_bad_usage(tmp_path: Path) -> None:
    refused(run(EXERCISE, tmp_path / "none.json"), "none.json", "no such file")
    refused(run(EXERCISE, tmp_path), "folder")
    refused(run(EXERCISE), "nothing to mark")
    refused(run(EXERCISE, "--answer", "0.330 0.670"), "has no name")
    refused(run(EXERCISE, "--answer", "=1"), "has no name")
    refused(run("a1-pronuon", "--answer", "A=1 2"), "a1-pronoun")
    refused(run("-", "-", stdin=sheet(RIGHT)), "standard input")
    refused(check(RIGHT, "--hint", "--reveal"), "one of them")
    refused(check(RIGHT, "--format", "xml"), "“xml”", "markdown")
    refused(check(RIGHT, "-o", tmp_path), "folder")


@pytest.mark.parametrize(
    "text", ["1 2; 3", "one two", "1 2 3 4", "1e999 2", "9^9^9^9 1", "(" * 3000, "[" * 3000, "nan 1"]
)
def test_an_answer_that_cannot_be_read_is_malformed_and_the_rest_is_marked(text: str) -> None:
    ran = as_json({**RIGHT, "A": text})
    assert ran.status == 1
    assert ran.verdicts == {"scores": "correct", "scaled": "correct", "A": "malformed", "O": "correct"}, text
    assert ran.data["first_wrong"] == "A"


def test_ten_million_blanks() -> None:
    ran = as_json({**RIGHT, "A": "?" * 300_000})
    assert ran.verdicts["A"] == "malformed"
    refused(as_json({"A": "? " * 10_000_000}), "bytes")


def test_output_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "marks.json"
    assert as_json(RIGHT, "-o", path).out == ""
    assert json.loads(path.read_text("utf-8"))["score"] == 6


def test_a_step_answered_twice_is_refused() -> None:
    refused(run("a1-pronoun", "--answer", "A=1 2", "--answer", "A=3 4"), "A is answered twice", "Keep one")


def test_an_empty_format_is_no_format() -> None:
    refused(run("a1-pronoun", "--answer", "A=1 2", "--format", ""), "The format", "table, json, markdown")
