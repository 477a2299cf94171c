"""Sheets as people write them: without a table, under any name, empty, with whole rows left out, from dumps of a program."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from harness import refused
from sheets import EXERCISE, RIGHT, check, exercise_file, run

import attncli

TOML = "\n".join(f'{name} = "{text}"' for name, text in RIGHT.items())


def verdicts(*argv: object, **how: object) -> dict[str, str]:
    ran = run(*argv, "--format", "json", **how)  # type: ignore[arg-type]
    assert ran.err == "", ran
    return ran.verdicts


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.toml", TOML),
        ("s.toml", 'student = "ann"\nschema = 1\nproblem = "a1-pronoun"\n' + TOML),
        ("s.toml", "[answers]\n" + TOML),
        ("s.toml", "scores = [[1, 2]]\nscaled = [[0.707, 1.414]]\nA = [[0.330, 0.670]]\nO = [0.660, 2.680]\n"),
        ("s.json", json.dumps(RIGHT)),
        ("s.json", '{"scores": [[1, 2]], "scaled": [0.707, 1.414], "A": [[0.330, 0.670]], "O": "0.660 2.680"}'),
        ("s.csv", "student,S,缩放,weights,输出\nann,1 2,0.707 1.414,0.330 0.670,0.660 2.680\n"),
        ("s.csv", "\nStudent,1,2,7,8\nann,1 2,0.707 1.414,0.330 0.670,0.660 2.680\n"),
        ("s.jsonl", json.dumps({"student": "ann", **RIGHT}) + "\n\n"),
    ],
)
def test_every_form_needs_no_table(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    ran = run(EXERCISE, path, "--format", "json")
    assert (ran.status, set(ran.verdicts.values()), ran.data["score"]) == (0, {"correct"}, 6.0), ran


def test_parts_of_a_model_may_stand_in_tables_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text('self.scores = "?"\n[cross]\nA = "?"\n', "utf-8")
    found = verdicts("e9-decoder-block", path)
    assert (found["self.scores"], found["cross.A"]) == ("blank", "blank")


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(
    ("name", "text"),
    [("s.toml", ""), ("s.json", "\n"), ("s.json", "{}"), ("s.csv", ""), ("s.csv", "student,A\n"), ("s.csv", "student,A,O\nann,,\n"), ("s.jsonl", ""), ("s.toml", "[answers]\n")],
)  # fmt: skip
def test_an_empty_sheet_is_all_blank(tmp_path: Path, name: str, text: str, lang: str) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    ran = run(EXERCISE, path, "--format", "json", ATTNCLI_LANG=lang)
    assert (ran.status, set(ran.verdicts.values()), ran.data["score"]) == (0, {"blank"}, 0.0)
    assert run(EXERCISE, path, ATTNCLI_LANG=lang).status == 0


def test_answers_as_arguments(tmp_path: Path) -> None:
    assert verdicts("a1", "S=1 2", "权重=0.330 0.670") == {
        "scores": "correct",
        "scaled": "blank",
        "A": "correct",
        "O": "blank",
    }
    path = tmp_path / "s.json"
    path.write_text(json.dumps(RIGHT), "utf-8")
    over = verdicts(EXERCISE, path, "O=9 9")
    assert over["O"] == "wrong"
    assert verdicts(EXERCISE, "O=9 9", path) == over
    (tmp_path / "a=b.json").write_text(json.dumps(RIGHT), "utf-8")
    assert set(verdicts(EXERCISE, tmp_path / "a=b.json").values()) == {"correct"}
    refused(run(EXERCISE, path, path), "are two files of answers", "attncli grade")
    refused(run(EXERCISE, "A=1 2", "A=1 2"), "A is answered twice")
    refused(run(EXERCISE, "=1 2"), "has no name")
    refused(run(EXERCISE), "nothing to mark", 'A="0.330 0.670"')


def test_an_unknown_name_lists_the_steps() -> None:
    ran = run(EXERCISE, "wieghts=1 2", "--format", "json")
    assert (ran.status, ran.verdicts["wieghts"]) == (1, "malformed")
    said = next(step["message"] for step in ran.data["steps"] if step["id"] == "wieghts")
    assert "scores, scaled, row_max, shifted, exp, row_sum, A, O" in said


@pytest.mark.parametrize(
    "answer",
    [
        "1 2; ?; 3 4",
        "1 2\n?\n3 4",
        "[[1,2],[?],[3,4]]",
        [[1, 2], "?", [3, 4]],
        [[1, 2], ["?"], [3, 4]],
        "1 2; ? ?; 3 4",
    ],
)
def test_a_row_left_out(answer: object) -> None:
    from attncli.problems.answers import answer as read

    matrix = read(answer).matrix
    assert matrix is not None
    assert matrix.blank is not None
    assert matrix.blank.tolist() == [[False, False], [True, True], [False, False]]
    assert matrix.values[[0, 2]].tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    "answer",
    ["1 2; 3 4 | ?", "1 2; 3 4 | ?; ?", [[[1, 2], [3, 4]], "?"], [[[1, 2], [3, 4]], [["?"]]], "[[[1,2],[3,4]],[?]]"],
)
def test_a_head_left_out(answer: object) -> None:
    from attncli.problems.answers import answer as read

    matrix = read(answer).matrix
    assert matrix is not None
    assert matrix.blank is not None
    assert matrix.blank.tolist() == [[[False, False], [False, False]], [[True, True], [True, True]]]


def test_a_row_that_is_only_too_short_is_refused() -> None:
    from attncli.problems.answers import answer as read

    for text in ("1 2; 3", "1 2; ? ? ?", "1 2; 3 4 | 5 6", "1 2 ?; ? 3"):
        assert read(text).matrix is None, text


def test_cells_of_lists_may_be_blank() -> None:
    assert verdicts(EXERCISE, "-", stdin=b'{"A": [["?", 0.670]]}')["A"] == "correct"


def test_an_axis_of_one_is_left_out_with_a_word(tmp_path: Path) -> None:
    exercise = exercise_file(tmp_path)
    trace = attncli.forward(attncli.load(exercise))
    arrays = {"scores": trace["scores"][None], "A": trace["A"][..., None], "O": trace["O"][None, None]}
    np.savez(tmp_path / "dump.npz", **arrays)
    ran = run(exercise, tmp_path / "dump.npz", "--format", "json")
    assert {id: ran.verdicts[id] for id in arrays} == dict.fromkeys(arrays, "correct")
    shown = run(exercise, tmp_path / "dump.npz").out
    assert "A: 2×2×1 read as 2×2" in shown
    assert "O: 1×1×2×2 read as 2×2" in shown
    texts = json.dumps({name: array.tolist() for name, array in arrays.items()}).encode()
    assert {id: run(exercise, "-", "--format", "json", stdin=texts).verdicts[id] for id in arrays} == dict.fromkeys(
        arrays, "correct"
    )
    np.savez(tmp_path / "two.npz", A=np.stack([trace["A"], trace["A"]]))
    assert verdicts(exercise, tmp_path / "two.npz")["A"] == "malformed"  # a batch of two is another thing


@pytest.mark.parametrize("text", ["0,330 0,670", "0,330  0,670", "0,330\t0,670", "０，３３０ ０，６７０"])
def test_a_decimal_comma_where_nothing_else_fits(text: str) -> None:
    ran = run(EXERCISE, f"A={text}", "--format", "json")
    assert (ran.status, ran.verdicts["A"]) == (0, "correct")
    assert "A: its commas are read as decimal commas." in run(EXERCISE, f"A={text}").out


@pytest.mark.parametrize("text", ["0.330,0.670", "0.330, 0.670", "[0.330,0.670]"])
def test_commas_between_numbers_stay_what_they_are(text: str) -> None:
    assert verdicts(EXERCISE, f"A={text}")["A"] == "correct"
    assert "decimal commas" not in run(EXERCISE, f"A={text}").out


def test_commas_that_fit_neither_way_are_no_decimal_commas() -> None:
    for text in ("1,2", "1,2;3,4", "1,2 3,4 5,6"):
        assert "decimal commas" not in run(EXERCISE, f"scores={text}").out, text
    assert verdicts(EXERCISE, "scores=1,2")["scores"] == "correct"


def test_a_list_written_as_a_row_is_nothing_to_speak_of() -> None:
    ran = run("c1", "T=0 1 2")
    assert ran.status == 0
    assert "axis" not in ran.out


def test_names_in_a_class_and_no_files(tmp_path: Path) -> None:
    from attncli.cli.main import main

    exercise = exercise_file(tmp_path)
    trace = attncli.forward(attncli.load(exercise))
    (tmp_path / "class").mkdir()
    np.savez(tmp_path / "class" / "ann.npz", p_ij=trace["A"][None])
    np.save(tmp_path / "class" / "key.npy", trace["A"])
    (tmp_path / "class" / "key.npy").rename(tmp_path / "key.npy")
    (tmp_path / "class" / "bo.toml").write_text('A = "@../key.npy"\n', "utf-8")
    (tmp_path / "class" / "cy.toml").write_text("", "utf-8")
    out = tmp_path / "out.jsonl"
    assert main(["grade", str(exercise), str(tmp_path / "class"), "--map", "p_ij=A", "-o", str(out)]) == 0
    found = {
        line["student"]: {step["id"]: step for step in line["steps"]}
        for line in map(json.loads, out.read_text("utf-8").splitlines())
    }
    assert found["ann"]["A"]["verdict"] == "correct"
    assert found["bo"]["A"]["verdict"] == "malformed"
    assert {step["verdict"] for step in found["cy"].values()} == {"blank"}


def test_names_of_a_dump(tmp_path: Path) -> None:
    exercise = exercise_file(tmp_path)
    trace = attncli.forward(attncli.load(exercise))
    np.savez(tmp_path / "dump.npz", p_ij=trace["A"], z_out=trace["O"])
    found = verdicts(exercise, tmp_path / "dump.npz", "--map", "p_ij=A,z_out=output")
    assert (found["A"], found["O"]) == ("correct", "correct")
    assert verdicts(exercise, tmp_path / "dump.npz", "--map", "p_ij=A", "--map", "z_out=O") == found
    assert verdicts(exercise, tmp_path / "dump.npz")["p_ij"] == "malformed"
    refused(run(exercise, tmp_path / "dump.npz", "--map", "q_ij=A"), "there is no “q_ij”", "It has: p_ij, z_out")
    refused(
        run(exercise, tmp_path / "dump.npz", "--map", "p_ij=B"), "--map: the step “B” does not exist", "scores, scaled"
    )
    refused(run(exercise, tmp_path / "dump.npz", "--map", "p_ij"), "is not FROM=STEP")
    refused(run(exercise, tmp_path / "dump.npz", "--map", "p_ij=A,z_out=A"), "is named twice")
    np.savez(tmp_path / "both.npz", p_ij=trace["A"], A=trace["A"])
    refused(run(exercise, tmp_path / "both.npz", "--map", "p_ij=A"), "has A as well")


def test_files_named_in_a_sheet(tmp_path: Path) -> None:
    exercise = exercise_file(tmp_path)
    trace = attncli.forward(attncli.load(exercise))
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "a.npy", trace["A"].astype(np.float32))
    (tmp_path / "o.txt").write_text("\n".join(" ".join(f"{v:.3f}" for v in row) for row in trace["O"]), "utf-8")
    (tmp_path / "s.toml").write_text('A = "@data/a.npy"\nO = "@o.txt"\n', "utf-8")
    found = verdicts(exercise, tmp_path / "s.toml")
    assert (found["A"], found["O"]) == ("correct", "correct")
    assert verdicts(exercise, f"A=@{tmp_path / 'data' / 'a.npy'}")["A"] == "correct"
    (tmp_path / "data" / "t.toml").write_text('O = "@../o.txt"\n', "utf-8")
    ran = run(exercise, tmp_path / "data" / "t.toml", "--format", "json")
    assert (ran.status, ran.verdicts["O"]) == (1, "malformed")
    assert "leads out of the folder" in ran.out
    (tmp_path / "data" / "link.txt").symlink_to(tmp_path / "o.txt")
    (tmp_path / "data" / "t.toml").write_text('O = "@link.txt"\n', "utf-8")
    assert "leads out of the folder" in run(exercise, tmp_path / "data" / "t.toml", "--format", "json").out
    (tmp_path / "s.toml").write_text(f'O = "@{tmp_path / "o.txt"}"\n', "utf-8")
    assert "leads out of the folder" in run(exercise, tmp_path / "s.toml", "--format", "json").out
    (tmp_path / "s.toml").write_text('O = "@none.txt"\n', "utf-8")
    assert "no such file" in run(exercise, tmp_path / "s.toml", "--format", "json").out
    assert "only a file or the command line can do" in check({"O": "@o.txt"}, exercise=exercise).out


def test_files_named_in_a_problem(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "q.txt").write_text("1 2", "utf-8")
    np.save(tmp_path / "k.npy", np.eye(2))
    (tmp_path / "mask.txt").write_text("0 -inf", "utf-8")
    text = '[inputs]\nQ = "@data/q.txt"\nK = "@k.npy"\nV = "2 0; 0 4"\n'
    path = tmp_path / "p.toml"
    path.write_text(
        'model = "attention"\n' + text + '[settings]\nmask = "@mask.txt"\n[gradient]\nG_O = "@data/q.txt"\n', "utf-8"
    )
    trace = attncli.backward(attncli.load(path))
    assert trace["scores"].tolist() == [[1, 2]]
    assert trace["A"].tolist() == [[1, 0]]
    assert trace["G_O"].tolist() == [[1, 2]]
    (tmp_path / "data" / "p.toml").write_text('model = "attention"\n' + text.replace("data/q.txt", "../k.npy"), "utf-8")
    refused(run(tmp_path / "data" / "p.toml", "A=1 2"), "p.toml: inputs.Q:", "leads out of the folder")
    path.write_text('model = "attention"\n' + text.replace("data/q", "none"), "utf-8")
    refused(run(path, "A=1 2"), "inputs.Q:", "none.txt", "no such file")
    with pytest.raises(attncli.AttnError, match="only a file or the command line"):
        attncli.problem(inputs={"Q": "@q.txt", "K": "1", "V": "1"})


def test_what_stands_beside_the_table_of_answers_is_said() -> None:
    ran = run(EXERCISE, "-", stdin=b'{"A": "1 2", "answers": {"scores": "1 2"}}')
    assert "not read as an answer: A." in ran.out
