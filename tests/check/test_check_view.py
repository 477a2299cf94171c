"""What a student sees: ticks and crosses, the first wrong line opened up, hints without numbers; JSON and Markdown too."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
from harness import once
from sheets import EXERCISE, RIGHT, WRONG, as_json, check, exercise_file

from attncli import api
from attncli.locale.fit import columns as columns_of

VIEW = """\
What does “it” look at? · ann

✓ scores  right  1/1
✗ scaled  not right  0/1
  You left out the division by √d_k.
  Look again at the scale: divide every score by √d_k.
  It shows in every cell.
  You wrote:
    >1.000< >2.000<
  From your own lines above, this follows:
     0.707   1.414
✓ A  right from your own earlier values  2/2
✗ O  not right  0/2
  No known mistake gives these numbers. Work out [1,1], [1,2] once more.

Points: 3 of 6
Only the first wrong line is opened up. Correct it, then check again.
"""


def test_the_view_of_a_wrong_sheet() -> None:
    ran = check(WRONG)
    assert (ran.status, ran.err) == (1, "")
    assert ran.out == VIEW


def test_the_view_of_a_right_sheet() -> None:
    ran = check(RIGHT)
    assert ran.status == 0
    lines = ran.out.splitlines()
    assert lines[2:6] == ["✓ scores  right  1/1", "✓ scaled  right  1/1", "✓ A  right  2/2", "✓ O  right  2/2"]
    assert lines[-1] == "Points: 6 of 6"
    assert "✗" not in ran.out


CASES: dict[str, dict[str, Any]] = {
    "right": RIGHT,
    "wrong": WRONG,
    "unreadable": {**RIGHT, "A": "a b"},
    "shape": {**RIGHT, "A": "1 2 3"},
    "names": {"S": "1 2", "P": "1 1", "nonsense": "3"},
    "blank": {"A": "0.330 ?"},
    "imprecise": {"A": "0.3 0.7"},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("columns", [20, 40, 50, 80])
@pytest.mark.parametrize("how", [(), ("--hint",), ("--reveal",)])
def test_every_view_fits_its_screen(case: str, lang: str, columns: int, how: tuple[str, ...]) -> None:
    out = check(CASES[case], *how, ATTNCLI_LANG=lang, COLUMNS=columns).out
    for line in out.splitlines():
        assert columns_of(line) <= columns, line
        assert line == line.rstrip()
    signs = [line[0] for line in out.splitlines() if line[:2] in ("✓ ", "✗ ", "~ ")]
    verdicts = [step["verdict"] for step in as_json(CASES[case]).data["steps"] if step["verdict"] != "blank"]
    sign = {"wrong": "✗", "malformed": "✗", "imprecise": "~"}
    assert signs == [sign.get(verdict, "✓") for verdict in verdicts]


def test_wrong_cells_are_marked_without_colour() -> None:
    assert ">1.000< >2.000<" in check(WRONG).out
    assert ">" not in check(RIGHT).out


def test_a_wide_matrix_is_shown_in_parts(tmp_path: Path) -> None:
    path = exercise_file(tmp_path)
    wide = "; ".join(["1 2", "3 4", "5 6", "7 8", "9 1", "2 3"])
    path.write_text(re.sub(r"K = .*\nV = .*\n", f'K = "{wide}"\nV = "{wide}"\n', path.read_text("utf-8")), "utf-8")
    out = check({"scores": "5.25 11.5 17 23 11 8; -1.5 -2.5 -3.5 -4.5 3.5 -2"}, exercise=path, COLUMNS=40).out
    lines = [line.rstrip() for line in out.splitlines()]
    at = lines.index("  You wrote:")
    assert lines[at + 1] == "  Columns 1 to 5:"
    assert re.findall(r"[-\d.]+", lines[at + 2]) == ["5.25", "11.5", "17", "23", "11"]
    assert lines[at + 4] == "  Columns 6 to 6:"
    assert all(columns_of(line) <= 40 for line in lines)


def test_only_the_first_wrong_line_is_opened_up_unless_asked() -> None:
    first, all_ = check(WRONG).out, check(WRONG, "--reveal").out
    assert first.count("You wrote:") == 1
    assert first.count("✗") == all_.count("✗") == 2
    assert all_.count("You wrote:") == 2
    assert "2.924" in all_  # what follows from the learner's own weights
    assert "2.924" not in first and "2.680" not in first
    assert "Only the first" not in all_


def numbers(text: str) -> set[str]:
    """Numbers with a decimal point."""
    return set(re.findall(r"\d+\.\d+", text))


@pytest.mark.parametrize("format", ["table", "markdown"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_hint_gives_no_number_away(tmp_path: Path, format: str, lang: str) -> None:
    """Whatever is wrong: none of the right numbers stands in the hint, nor any other number of a matrix."""
    path = exercise_file(tmp_path)
    right = as_json({}, exercise=path)
    steps = [step["id"] for step in right.data["steps"]]
    for step in steps:
        for text in ("0.123 0.456; 0.789 0.111", "7.5 7.5 7.5", "x", "0.123; 0.456", "1 0; 0 1"):
            out = check({step: text}, "--hint", "--format", format, exercise=path, ATTNCLI_LANG=lang).out
            assert numbers(out) <= ({"0.5"} if text == "x" else set()), out  # how numbers are written, in words on an x
    for answers in CASES.values():
        out = check(answers, "--hint", "--format", format, ATTNCLI_LANG=lang).out
        assert not numbers(out) & {"0.707", "1.414", "0.330", "0.670", "0.33", "0.67", "0.660", "2.680", "2.924"}, out


def test_a_hint_says_where_to_look() -> None:
    out = check(WRONG, "--hint").out
    assert "Look again at the scale" in out
    assert "You left out" not in out


def test_the_author_of_an_exercise_is_told_what_it_cannot_tell_and_the_student_is_not(tmp_path: Path) -> None:
    path = exercise_file(tmp_path)
    path.write_text(path.read_text("utf-8").replace('"1 0.5; 0 1"', '"1 0.5; 0.5 1"'), "utf-8")
    assert {"step": "scores", "id": "key-not-transposed"} in as_json({}, exercise=path).data["undetectable"]
    for how in ((), ("--hint",), ("--reveal",), ("--format", "markdown")):
        assert "key-not-transposed" not in check({}, *how, exercise=path).out


def test_mistakes_that_only_an_unasked_step_would_show_are_told_too(tmp_path: Path) -> None:
    """Scores of 30 and 0: every softmax is 1 and 0, whatever was done to the scores before."""
    path = tmp_path / "one.toml"
    path.write_text(
        'schema = 1\nid = "one"\nmodel = "attention"\n[marking]\npoints = { O = 1 }\n'
        '[inputs]\nQ = "30 0"\nK = "1 0; 0 1"\nV = "2 5; 7 1"\n',
        "utf-8",
    )
    found = {(one["step"], one["id"]) for one in as_json({}, exercise=path).data["undetectable"]}
    assert {("scaled", "no-scale"), ("scaled", "scale-by-d"), ("scores", "key-not-transposed")} <= found
    assert ("O", "value-transposed") not in found


def test_json_is_as_the_formats_say() -> None:
    data = as_json(WRONG).data
    assert list(data) == ["schema", "problem", "student", "score", "max_score", "first_wrong", "steps", "undetectable"]
    assert (data["schema"], data["problem"], data["student"]) == (1, EXERCISE, "ann")
    assert (data["score"], data["max_score"], data["first_wrong"]) == (3.0, 6.0, "scaled")
    for step in data["steps"]:
        assert list(step) == ["id", "verdict", "how", "points", "max_points", "mistakes", "cells", "off", "message"]
    assert data["steps"][1] == {
        "id": "scaled",
        "verdict": "wrong",
        "how": None,
        "points": 0.0,
        "max_points": 1.0,
        "mistakes": [{"step": "scaled", "id": "no-scale"}],
        "cells": [[1, 1], [1, 2]],
        "off": pytest.approx(585.8, abs=0.5),  # 2 for √2, in thousandths
        "message": "You left out the division by √d_k.",
    }
    assert [step["verdict"] for step in data["steps"]] == ["correct", "wrong", "follow_through", "wrong"]
    assert [step["how"] for step in data["steps"]] == ["full", None, "carried", None]


def test_what_a_step_should_have_come_to_stands_in_the_json_on_request_only() -> None:
    """With all digits; infinities by name; after a wrong line from the learner's own."""
    assert all("right" not in step for step in as_json(WRONG).data["steps"])
    right = {step["id"]: step["right"] for step in as_json(WRONG, "--reveal").data["steps"]}
    assert right["scores"] == [[1, 2]]
    assert right["scaled"] == [[pytest.approx(1 / 2**0.5, rel=1e-15), pytest.approx(2**0.5, rel=1e-15)]]
    assert right["A"] == [[pytest.approx(1 / (1 + math.e)), pytest.approx(math.e / (1 + math.e))]]
    assert right["O"] == [[pytest.approx(0.538), pytest.approx(2.924)]]
    masked = as_json({"masked": "1 2; 3 4"}, "--reveal", exercise="a11-causal-self-attention").data["steps"]
    assert "-inf" in str(next(step for step in masked if step["id"] == "masked")["right"])


def test_a_distance_is_told_where_there_is_one() -> None:
    steps = {step["id"]: step for step in as_json({"scaled": "a b", "A": "1 2 3", "O": "∞ 2.680"}).data["steps"]}
    assert [steps[id]["off"] for id in ("scores", "scaled", "A", "O")] == [None] * 4
    steps = {step["id"]: step for step in as_json({"scaled": "0.707 1.413"}).data["steps"]}
    assert steps["scaled"]["off"] == pytest.approx(1.2, abs=0.05)


def test_json_is_one_line_in_the_language_of_the_run() -> None:
    ran = as_json(WRONG, ATTNCLI_LANG="zh")
    assert ran.out.count("\n") == 1
    assert "√d_k" in ran.data["steps"][1]["message"]
    assert ran.data["steps"][1]["message"] != as_json(WRONG).data["steps"][1]["message"]


def test_markdown() -> None:
    out = check(WRONG, "--format", "markdown").out
    assert out.startswith("# What does “it” look at? · ann\n\n**Points: 3 of 6**\n\n- ✓ `scores`: right  1/1\n")
    assert "\n  You wrote:\n\n       >1.000< >2.000<\n" in out
    assert "√d_k" in out
    assert not out.endswith("\n\n")


def test_markdown_by_the_ending_of_the_file(tmp_path: Path) -> None:
    """Blank steps are one paragraph, not a line each."""
    path = tmp_path / "marks.md"
    assert check({"scores": "1 2"}, "-o", path).out == ""
    text = path.read_text("utf-8")
    assert text.startswith("# What does “it” look at? · ann\n\n**Points: 1 of 6**\n\n- ✓ `scores`: right  1/1\n")
    assert text.endswith("\n\n· left blank: scaled, A, O\n")
    assert text.count("blank") == 1
    assert check({"scores": "1 2"}, "--format", "markdown").out == text


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("1.5 1.414", ">1.5<  1.414"),
        ("1/3 √2/2", ">1/3< >√2/2<"),
        ("2√2 -e^-1", ">2√2< >-e^-1<"),
        ("0.70 1.50", "0.70  >1.50<"),  # 0.70 is right as far as it goes
        ("0.5 1", ">0.5< >1<"),  # the 1 is near 1.414, but of d_k, not of √d_k
        ("０．５, 1.00000", ">0.5< >1.00000<"),
        ("(1+2)/7 exp(2)", ">(1 + 2)/7< >exp(2)<"),
        ("? 3", "?  >3<"),
        ("0.123456789012345678 inf", ">0.123456789012345678< >∞<"),
    ],
)
def test_what_was_written_is_shown_as_it_was_written(written: str, shown: str) -> None:
    out = check({"scaled": written}).out
    lines = out.splitlines()
    assert lines[lines.index("  You wrote:") + 1].strip() == shown, out


def test_a_long_number_is_folded_and_loses_nothing() -> None:
    digits = "0." + "123456789" * 6
    out = check({"scaled": f"{digits} 1.414"}, COLUMNS=30).out
    assert digits in "".join(out.split())
    assert all(columns_of(line) <= 30 for line in out.splitlines())


def test_what_was_given_is_no_result() -> None:
    out = check({"Q": "1 3"}).out
    assert "This was given, so copy it unchanged" in out
    assert ">3<\n  This was given:\n     1   2\n" in out


def test_the_first_words_on_a_wrong_line_are_its_mistake() -> None:
    """Then the cells, then the matrices; also where no known mistake explains it."""
    for answers in (WRONG, {"scores": "1 2", "scaled": "0.707 1.5"}, {"scaled": "0.708 1.414"}):
        lines = [line.strip() for line in check(answers).out.splitlines()]
        at = next(i for i, line in enumerate(lines) if line.startswith("✗"))
        step = next(step for step in as_json(answers).data["steps"] if step["verdict"] == "wrong")
        assert step["message"].startswith(lines[at + 1])
        assert lines.index("You wrote:") > at + 1


def test_the_arithmetic_of_a_cell_is_made_of_what_stands_on_the_sheet() -> None:
    out = check({"A": "0.3302 0.6698", "O": "0.9 2.679"}).out
    assert "[1,1] = 0.3302×2 + 0.6698×0 = 0.660\n" in out
    out = check({"A": "0.330 0.670", "O": "0.9 2.679"}).out
    assert "[1,1] = 0.330×2 + 0.670×0 = 0.660\n" in out
    out = check({"O": "0.9 2.679"}).out  # A in full: the printed 0.330 times 2 is not 0.6605
    assert "[1,1] = 0.330×2 + 0.670×0 = 0.660\n" in out


HOSTILE = ["\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x9b2J", "a\rb", "a\x00b", "\u202eabc", "\ud800", "\x7f"]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("format", ["table", "markdown", "json"])
def test_no_escape_reaches_the_terminal(text: str, format: str) -> None:
    answers = {**RIGHT, "A": text, text: "1 2", "O": f"0.660 {text}"}
    import json

    from sheets import run

    stdin = json.dumps({"student": text, "answers": answers}).encode()
    ran = run(EXERCISE, "-", "--format", format, stdin=stdin)
    assert ran.status == 1
    assert {sign for sign in ran.out if not sign.isprintable()} <= {"\n"}
    if format == "json":
        assert ran.data["student"] == text


def test_square_brackets_are_no_markup() -> None:
    import json

    from sheets import run

    stdin = json.dumps({"student": "[bold]x[/bold] [/]", "answers": {"[red]": "1", "A": "[link=http://x]y"}}).encode()
    out = run(EXERCISE, "-", stdin=stdin).out
    assert "[bold]x[/bold] [/]" in out
    assert "[red]" in out


def test_a_terminal_without_unicode() -> None:
    out = check(WRONG, encoding="ascii").out
    assert "ok scores" in out
    assert "x scaled" in out


def test_nothing_of_a_sheet_is_markdown_or_the_start_of_a_formula() -> None:
    exercise = api.problem(inputs={"Q": "1 2", "K": "1 0; 0 1", "V": "2 0; 0 4"})
    marked = api.mark(exercise, {"scores": "1 2"}, student="$x$ *y* <b>")
    assert str(marked).startswith("# ") and "· &#36;x&#36; \\*y\\* &lt;b&gt;\n" in str(marked)
    assert "$" not in str(marked)


def test_where_nothing_is_rounded_nobody_is_sent_to_look_at_the_rounding() -> None:
    for words in (("c1-encode", "T=0 0 1"), ("f1-bare-gpt", "T=1 3 2")):
        assert "rounding" not in once("check", *words, ATTNCLI_LANG="en").out
