"""A session without a terminal: verdicts, the ladder of hints, the learner's own numbers, words in both languages."""

from __future__ import annotations

import re

import numpy as np
import pytest
from learners import RECIPES, Bench, mistaken, only, right, written

from attncli.core.message import Message
from attncli.locale import language
from attncli.mistakes import did, look
from attncli.practice.schedule import NextExercise, chooser
from attncli.practice.session import WORDS, CellArithmetic, LineFormula, LineNumbers, Reply, Sentence, Wanted
from attncli.problems.file import parse
from attncli.render.document import say_in
from attncli.render.exercise import part_blocks
from attncli.render.terminal import plain_text

NUMBER = re.compile(r"\d+\.\d+")


def text_of(bench: Bench, parts: list[Reply], code: str = "en") -> str:
    """What a terminal shows of them."""
    own = language(code)
    blocks = (block for part in parts for block in part_blocks(part, bench.exercise, own))
    return plain_text(blocks, say_in(own), width=80)


def test_right_wrong_and_the_order_of_help() -> None:
    """First the verdict and the cells; then where to look; the name third, never first."""
    bench = Bench(only("attention", 2))
    wrong = mistaken(bench.exercise, "softmax-over-columns")
    assert wrong is not None and bench.exercise.step == "A"
    name, where = did("softmax-over-columns").text(), look("softmax-over-columns").text()
    bench.type(wrong)
    assert "Not right" in bench.said() and name not in bench.said() and where not in bench.said()
    bench.type(wrong)
    assert where in bench.said() and name not in bench.said()
    bench.type(wrong)
    assert name in bench.said()
    assert [(e.try_, e.verdict, e.mistakes[0]) for e in bench.entries] == [
        (n, "wrong", "softmax-over-columns") for n in (1, 2, 3)
    ]
    bench.type(right(bench.exercise))
    assert "Right" in bench.said() and bench.exercise.step == "O"


def test_the_wrong_cells_are_named_as_long_as_some_are_right() -> None:
    bench = Bench(only("attention", 1))
    values = np.array(bench.exercise.values()["O"])
    values[1, 0] += 1
    bench.type(written(values, 3))
    assert "[2,1]" in bench.said() and "[1,1]" not in bench.said()


def test_too_few_digits_are_asked_for_and_count_no_try() -> None:
    text = 'model = "attention"\n[inputs]\nQ = "1 2"\nK = "1 0; 0 1"\nV = "0.0701 0; 0.0701 4"\n'
    bench = Bench(lambda log, now: NextExercise("own", parse(text), 1, Message("because")))
    assert written(bench.exercise.values()["O"], 3).startswith("0.070 ")
    second = written(bench.exercise.values()["O"], 3).split()[1]
    bench.type(f"0.07 {second}")
    assert "3 decimals" in bench.said() and "not counted" in bench.said()
    assert bench.entries == [] and bench.exercise.tries == 0
    bench.type(f"0.070 {second}")
    assert bench.entries[0].is_clean


def test_a_number_that_is_all_there_needs_no_zeros() -> None:
    text = 'model = "attention"\n[inputs]\nQ = "1 1"\nK = "2 0; 0 2"\nV = "2 4; 6 8.5"\n'
    bench = Bench(lambda log, now: NextExercise("own", parse(text), 2, Message("because")))
    bench.type("0.5 1/2")
    bench.type("4 6.25")
    assert [entry.verdict for entry in bench.entries[:2]] == ["correct", "correct"]


@pytest.mark.parametrize("line", ["", "1 2; 3", "abc", "1 2 3; 4 5 6; 7 8 9", "? ?; ? ?", "1 ?; 2 3", "@/no/such/file", "B = 1 2", "K = 1 2"])  # fmt: skip
def test_what_cannot_be_an_answer_counts_no_try(line: str) -> None:
    bench = Bench(only("attention", 1))
    parts = bench.type(line)
    assert bench.exercise.tries == 0 and bench.entries == []
    assert parts and all(isinstance(part, Sentence) for part in parts)


def test_an_answer_may_name_its_line() -> None:
    bench = Bench(only("attention", 2))
    bench.type("O = 1 2; 3 4")
    assert "comes later" in bench.said() and not bench.entries
    for name in ("权重", "A", "weights"):
        bench = Bench(only("attention", 2))
        bench.type(f"{name} = {right(bench.exercise)}")
        assert bench.entries[0].is_clean, name


def test_the_learners_own_numbers_are_followed() -> None:
    bench = Bench(only("attention", 4))
    wrong = mistaken(bench.exercise, "key-not-transposed") or "1 2 3; 4 5 6"
    bench.type(wrong)
    bench.type("skip")
    assert bench.exercise.step == "scaled" and "your own numbers" in bench.said()
    bench.type(right(bench.exercise))  # of the learner's own scores
    assert bench.entries[-1].verdict == "follow_through" and "your own" in bench.said()


def test_skipped_without_a_number_stays_blank_and_later_lines_can_still_be_right() -> None:
    bench = Bench(only("attention", 4))
    for _ in range(6):
        bench.type("跳过")
    assert bench.exercise.step == "A"
    bench.type(right(bench.exercise))
    assert bench.entries[-1].verdict == "correct"


def test_the_ladder_ends_with_the_result_which_comes_back_with_new_numbers() -> None:
    bench = Bench(count=1)
    first = bench.exercise.choice.name
    kinds = [type(next(iter(bench.type(word)))) for word in ("hint", "提示", "hint")]
    assert kinds == [Sentence, LineFormula, CellArithmetic]
    assert bench.entries == []
    parts = bench.type("hint")
    assert any(isinstance(part, LineNumbers) for part in parts)
    assert [entry.verdict for entry in bench.entries] == ["shown", "done"]
    assert not bench.session.ended, "one exercise was wanted, but the line comes back"
    assert bench.exercise.choice.name != first and "shown a result" in bench.said()
    bench.type(right(bench.exercise))
    assert bench.session.ended


@pytest.mark.parametrize("name", RECIPES.names)
@pytest.mark.parametrize("stage", [2, 4])
def test_no_rung_below_the_last_has_a_right_number_of_the_line(name: str, stage: int) -> None:
    """Nor any other number that does not stand on the screen."""
    bench = Bench(only(name, stage), count=1)
    while not bench.session.ended:
        exercise, step = bench.exercise, bench.exercise.step
        shown = " ".join(
            written(exercise.values()[id], exercise.problem.decimals_of(id))
            for id in (*exercise.graph.inputs, *exercise.lines)
        )
        allowed = {*NUMBER.findall(shown), *(str(value) for value in exercise.problem.settings.values()), "0.5"}
        for _ in range(3):
            hint = text_of(bench, bench.type("hint"))
            assert set(NUMBER.findall(hint)) <= allowed, (step, hint)
        assert hint.rstrip().endswith("= ?"), "the last rung below the result: everything but the result"
        bench.type(right(exercise))


@pytest.mark.parametrize("name", RECIPES.names)
def test_right_answers_to_whole_recipes_are_right(name: str) -> None:
    bench = Bench(only(name, 4), count=1)
    while not bench.session.ended:
        bench.type(right(bench.exercise))
    assert [entry for entry in bench.entries if not entry.is_clean and entry.verdict != "done"] == []


def test_hints_speak_of_the_last_try() -> None:
    bench = Bench(only("attention", 2))
    bench.type(mistaken(bench.exercise, "softmax-over-columns") or "")
    bench.type("hint")
    assert look("softmax-over-columns").text() in bench.said()
    bench.type(mistaken(bench.exercise, "no-normalisation") or "")
    bench.exercise.hints = 0
    bench.type("hint")
    assert look("no-normalisation").text() in bench.said()


def test_words_in_both_languages_do_the_same() -> None:
    for words in (
        ("hint", "提示"),
        ("show", "看过程"),
        ("why", "为什么"),
        ("skip", "跳过"),
        ("quit", "退出"),
        ("?", "？"),
    ):
        assert len({WORDS[word] for word in words}) == 1
    for word in ("why", "为什么", "WHY "):
        bench = Bench(only("attention", 1))
        bench.type(word)
        assert bench.exercise.graph.steps["O"].why.text() in bench.said()
    bench.type("退出")
    assert bench.session.ended


def test_tokens_as_columns() -> None:
    text = 'model = "attention"\nlayout = "columns"\n[inputs]\nQ = "1; 2"\nK = "1 0 2; 0 1 1"\nV = "2 0 1; 0 4 3"\n'
    bench = Bench(lambda log, now: NextExercise("own", parse(text), 2, Message("because")))
    wanted = bench.shown[-1]
    assert isinstance(wanted, Wanted) and wanted.shape == (3, 1)
    bench.type("; ".join(right(bench.exercise).split()))
    assert bench.entries[-1].is_clean
    bench.type("; ".join(right(bench.exercise).split()))
    assert [entry.verdict for entry in bench.entries[:2]] == ["correct", "correct"]


def test_masks_and_heads_can_be_practised() -> None:
    for name in ("a9-causal-mask", "d1-two-heads", "b6-full-backward", "e3-layer-norm", "c7-repeated-token"):
        from attncli.problems.library import load

        bench = Bench(lambda log, now, name=name: NextExercise(name, load(name), 4, Message("because")), count=1)  # type: ignore[misc]
        while not bench.session.ended:
            assert text_of(bench, bench.shown, "zh")
            bench.type(right(bench.exercise))
        assert {entry.verdict for entry in bench.entries} <= {"correct", "route", "done"}, name


def test_a_matrix_may_be_typed_one_row_after_another() -> None:
    for code, first in (("en", "Row 1 of 2"), ("zh", "第 1 行记下了，共 2 行")):
        bench = Bench(only("attention", 1))
        one, other = right(bench.exercise).split("; ")
        assert first in text_of(bench, bench.type(f"O = {one}"), code)
        assert bench.exercise.prompt == "O[2] > " and bench.entries == []
        bench.type("hint")
        bench.type(f"{other} 9")
        assert bench.exercise.tries == 0 and bench.exercise.rows == (one,), "a row of another length is no answer"
        bench.type(f"[{other.replace(' ', ', ')}]")
        assert bench.entries[0].verdict == "correct" and bench.entries[0].answer == f"{one}; {other.replace(' ', ', ')}"


def test_nothing_ends_the_rows_and_a_whole_matrix_takes_their_place() -> None:
    bench = Bench(only("attention", 1))
    bench.type("1 2")
    bench.type("")
    assert "2×2" in bench.said() and bench.entries == [] and bench.exercise.prompt == "O > "
    bench.type("1 2")
    bench.type(right(bench.exercise))
    assert bench.entries[0].is_clean


def test_rows_of_heads_of_columns_and_of_single_numbers() -> None:
    for name in ("multi-head", "attention", "softmax-backward"):
        bench = Bench(only(name, 4), count=1)
        while not bench.session.ended:
            for row in right(bench.exercise).replace(" | ", "; ").split("; "):
                bench.type(row)
        assert {entry.verdict for entry in bench.entries} == {"correct", "done"}, name


def test_what_was_asked_for_by_name_comes_back_because_it_was_shown() -> None:
    bench = Bench(chooser("softmax", 1, 1)[0], count=1)
    assert "you asked for it" in bench.said()
    bench.type("show")
    assert "you asked for it" not in bench.said() and "you were shown a result (softmax, row by row)" in bench.said()
