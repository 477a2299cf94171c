"""What an exercise asks: everything that is needed, nothing of the answer, and a command that can be copied."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from harness import refused, run

import attncli
from attncli.arithmetic.hand import Hand
from attncli.problems import library
from attncli.problems.question import question_of
from attncli.render.text import number_text

IDS = library.ids()
_NUMBER = re.compile(r"[-−]?\d+\.\d+")


@pytest.mark.parametrize("id", IDS)
def test_a_question_holds_no_number_of_its_answer(id: str) -> None:
    problem = library.load(id)
    question = question_of(problem)
    asked = {one.step for one in question.asked}
    assert asked
    assert not asked & set(question.given)
    assert set(question.given) <= set(question.graph.inputs)
    assert all(step in asked for step in question_points(id))
    status, out, err = run("examples", "show", id)
    assert (status, err) == (0, "")
    below = out.partition("To hand in")[2]
    for step in asked:
        assert re.search(rf"^{re.escape(step)} ", below, re.MULTILINE), step
    words = " ".join(
        [
            problem.title["en"],
            problem.prompt["en"],
            problem.source["en"],
            *question.settings.values(),
            question.loss or "",
            *question.texts.values(),
        ]
    )
    runs = [question.graph.evaluate().numbers, question.graph.evaluate(Hand(problem.decimals)).numbers]
    given = {text for name in question.given for text in numbers(runs[0][name], 12)} | set(_NUMBER.findall(words))
    given = {text.replace("−", "-") for text in given}
    given |= {f"{float(text):.{places}f}" for text in given for places in range(1, 7)}
    answers = {
        text for step in asked for numbered in runs for text in numbers(numbered[step], problem.decimals_of(step))
    }
    plain = [{text.replace("−", "-") for text in texts} for texts in (_NUMBER.findall(out), answers)]
    assert plain[0] & (plain[1] - given) == set()


def question_points(id: str) -> list[str]:
    from attncli.marking.mark import Marker

    return list(Marker(library.load(id)).points)


def numbers(values: object, places: int) -> set[str]:
    return {text for value in values.flat for text in (number_text(value, places),) if "." in text}  # type: ignore[attr-defined]


@pytest.mark.parametrize("id", IDS)
def test_its_last_line_is_a_command_that_runs(id: str) -> None:
    command = run("examples", "show", id).out.rstrip("\n").rpartition("\n")[2]
    name, *words = shlex.split(command)
    assert name == "attncli"
    assert words[:2] == ["check", id]
    assert {word.partition("=")[0] for word in words[2:]} == {one.step for one in question_of(library.load(id)).asked}
    status, out, err = run(*words, "--format", "json")
    assert (status, err) == (0, "")
    assert {step["verdict"] for step in json.loads(out)["steps"]} == {"blank"}


@pytest.mark.parametrize("id", ["a1-pronoun", "a9-causal-mask", "e8-encoder-block", "c1-encode"])
def test_its_sheet_is_one(id: str, tmp_path: Path) -> None:
    question = question_of(library.load(id))
    assert question.sheet() in run("examples", "show", id).out
    (tmp_path / "answers.toml").write_text(question.sheet(), "utf-8")
    status, out, _ = run("check", id, str(tmp_path / "answers.toml"), "--format", "json")
    assert status == 0
    assert {step["id"] for step in json.loads(out)["steps"]} == {one.step for one in question.asked}


@pytest.mark.parametrize(
    ("id", "words"),
    [
        ("c6", ["G_X   2×2", "0.6  -0.2"]),
        (
            "b6",
            ["Loss: L = O[1,1] - O[1,2] + 2*O[2,1] + O[2,2] - O[3,1] + 3*O[3,2]", "text = 我喜欢数学", "causal = true"],
        ),
        ("c8", ["eta = 0.1"]),
        ("d2", ["G_output", "heads = 2, kv_heads = 1, causal = true"]),
        ("e10", ["Loss: L = cross_entropy(logits, goal)", "goal = 2 0"]),
        ("a1", ["2 points", "To hand in, with 3 decimals"]),
    ],
)
def test_what_cannot_be_done_without(id: str, words: list[str]) -> None:
    out = run("examples", "show", id).out
    for word in words:
        assert word in out, word


def test_a_mask_that_is_asked_for_is_not_shown() -> None:
    assert "∞" not in run("examples", "show", "a9").out
    assert question_of(library.load("a9")).asked[0].step == "M"


OWN = """model = "attention"
decimals = { default = 2, A = 4 }
source = "my notes"
[title]
en = "Mine"
zh = "我的题"
[prompt]
en = "Do it by hand."
zh = "动手算一算。"
[hint]
en = "Think of rows."
zh = "想想各行。"
[notice]
en = "The weight is {A[1,1]}."
zh = "权重是 {A[1,1]}。"
[inputs]
Q = "1 2"
K = "1 0; 0 1"
V = "2 0; 0 4"
[gradient]
G_O = "1 2"
[marking]
points = { A = 2, G_V = 0.5 }
"""


@pytest.mark.parametrize(
    ("lang", "prompt", "hint", "notice"),
    [
        ("en", "Do it by hand.", "Think of rows.", "The weight is 0.3302."),
        ("zh", "动手算一算。", "想想各行。", "权重是 0.3302。"),
    ],
)
def test_a_file_of_ones_own(tmp_path: Path, lang: str, prompt: str, hint: str, notice: str) -> None:
    path = tmp_path / "my exercise.toml"
    path.write_text(OWN, "utf-8")
    out = run("examples", "show", str(path), "--hint", "--lang", lang).out
    for word in (prompt, hint, "my notes", "G_O", "1×2", "0.5"):
        assert word in out, word
    assert "0.330" not in out
    assert out.rstrip("\n").endswith(f'attncli check \'{path}\' A="? ?" G_V="? ?; ? ?"')
    assert hint not in run("examples", "show", str(path), "--lang", lang).out
    for ending in ("txt", "md", "tex", "html", "svg", "json"):
        file = tmp_path / f"out.{ending}"
        assert run("examples", "run", str(path), "-o", str(file), "--lang", lang).status == 0
        text = re.sub(r"<[^>]+>|\s|&#160;", "", file.read_text("utf-8"))
        for word in (prompt, notice, "my notes"):
            assert re.sub(r"\s", "", word) in text, (ending, word)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("ending", ["txt", "md", "tex", "html", "svg", "json"])
def test_a_worked_example_keeps_its_words_in_every_format(tmp_path: Path, ending: str, lang: str) -> None:
    file = tmp_path / f"out.{ending}"
    assert run("examples", "run", "a9-causal-mask", "-o", str(file), "--lang", lang).status == 0
    text = re.sub(r"<[^>]+>|\s|&#160;", "", file.read_text("utf-8"))
    words = {
        "en": ["Threetokens,我/喜欢/数学.", "thecausalmaskforthreetokens", "notjustsmall"],
        "zh": ["三个token：我/喜欢/数学。", "博客第5篇，三个token的因果掩码", "而不只是很小"],
    }
    for word in words[lang]:
        assert word in text, word
    if ending == "json":
        data = json.loads(file.read_text("utf-8"))
        assert [one["step"] for one in data["compared"]] == ["M", "scores", "A", "O"]
        assert all(one["ok"] for one in data["compared"])
        assert [step["id"] for step in data["contrast"]["steps"]] == ["A"]
    else:
        assert "causal=false" in text


@pytest.mark.parametrize(
    ("lang", "heading"), [("en", "B. The way back: gradients of attention"), ("zh", "B. 往回走：注意力的梯度")]
)
def test_the_list_has_parts_and_a_way_through_them(lang: str, heading: str) -> None:
    from attncli.problems.library import PATH

    lines = run("examples", "list", "--lang", lang).out.splitlines()
    place = lines.index(heading)
    assert lines[place + 1].startswith("b1-output")
    assert [line.split()[0] for line in lines if line.split() and line.split()[0] in IDS] == IDS
    assert all(library.find(id) for part in PATH for id in part)
    assert {"en": "a2, a1, a8", "zh": "a2、a1、a8"}[lang] in "\n".join(lines[-6:])


def test_how_long_an_expanded_run_will_be_is_said_first() -> None:
    assert "The arithmetic of" not in run("forward", "a1", "--expand").out
    assert "cells follows. For one step only: --step ID." in run("backward", "b6", "--expand").out


def test_a_plain_run_says_nothing_of_an_example(tmp_path: Path) -> None:
    data = json.loads(run("forward", "a1", "--format", "json").out)
    assert not {"prompt", "source", "compared", "notice"} & set(data)


def test_what_is_no_exercise_is_refused(tmp_path: Path) -> None:
    refused(["examples", "show", "none.toml"], "none.toml", "no such file")
    (tmp_path / "p.toml").write_text('model = "attention"\n[inputs]\nQ = "1 2"\n', "utf-8")
    refused(["examples", "show", str(tmp_path / "p.toml")], "p.toml", "K")
    refused(["examples", "show", "zzzz"], "does not exist")


PRINTED = 'model = "attention"\n[inputs]\nQ = "1 2"\nK = "1 0; 0 1"\nV = "2 0; 0 4"\n[published]\nA = "0.330 0.670"\n'


def test_places_as_written_are_said(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text('decimals = "as written"\n' + PRINTED, "utf-8")
    out = run("examples", "show", str(tmp_path / "p.toml")).out
    assert "To hand in, each number judged at the decimals it is written with" in out
    (tmp_path / "p.toml").write_text(
        'decimals = { default = 3, A = "as written" }\n' + PRINTED + 'O = "0.66 2.68"\n', "utf-8"
    )
    out = run("examples", "show", str(tmp_path / "p.toml")).out
    assert re.search(r"A +1×2 +1 point +as written", out), out
    assert re.search(r"O +1×2 +1 point +3 decimals", out), out


def test_a_published_example_of_ones_own_is_verified(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text(PRINTED, "utf-8")
    assert run("examples", "verify", str(path)).status == 0
    path.write_text(PRINTED.replace("0.670", "0.671"), "utf-8")
    ran = run("examples", "verify", str(path))
    assert (ran.status, ran.err) == (1, "")
    assert "cell [1,2] is printed as 0.671, but the calculation gives 0.669762" in ran.out
    assert attncli.load(path).published == {"A": "0.330 0.671"}


def test_several_published_examples_toml_and_json(tmp_path: Path) -> None:
    right, wrong = tmp_path / "right.toml", tmp_path / "wrong.json"
    right.write_text(PRINTED, "utf-8")
    inputs = {"Q": "1 2", "K": "1 0; 0 1", "V": "2 0; 0 4"}
    published = {"A": "0.33 0.6698", "O": "0.660 2.690"}
    wrong.write_text(json.dumps({"model": "attention", "inputs": inputs, "published": published}), "utf-8")
    assert run("examples", "verify", str(right), "a1", str(right)).status == 0
    ran = run("examples", "verify", str(right), str(wrong), "a1")
    assert (ran.status, ran.err) == (1, "")
    assert f"✓ {right}: 1 published result" in ran.out
    assert f"✗ {wrong}: 2 published results\n    O: 0.660 2.690\n" in ran.out
    assert "1 of 7" in ran.out  # each other result of the three follows
    broken = tmp_path / "broken.toml"
    broken.write_text(PRINTED + 'B = "1"\n', "utf-8")
    refused(["examples", "verify", str(right), str(broken)], "broken.toml", "published: the step “B” does not exist")
    refused(["examples", "verify", str(right), str(tmp_path / "none.toml")], "none.toml", "no such file")


def test_a_source_that_carries_is_carried_at_the_places_it_printed(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text(
        'decimals = "as written"\n' + PRINTED.replace("0.330 0.670", "0.33 0.67") + 'O = "0.66 2.68"\n', "utf-8"
    )
    assert run("examples", "verify", str(path)).status == 0
    path.write_text(path.read_text("utf-8") + '[published_how]\nO = "carried"\n', "utf-8")
    assert "not needed" not in run("examples", "verify", str(path)).out


def test_what_is_hidden_looks_the_same_in_a_setting_as_in_a_matrix(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(
        'schema = 1\nid = "own"\nmodel = "attention"\n[inputs]\nQ = "1 2; 0 1"\nK = "1 0; 0 1"\nV = "2 0; 0 4"\n'
        '[settings]\nmask = "0 -inf; 0 0"\n',
        "utf-8",
    )
    asked = run("examples", "show", str(path)).out
    assert "Settings: mask = 0 −∞; 0 0\n" in asked and "-inf" not in asked
