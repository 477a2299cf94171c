"""What comes next, and why: simulated learners."""

from __future__ import annotations

import numpy as np
import pytest
from learners import RECIPES, Bench, exercises, mistaken, right

from attncli.practice.log import LogEntry
from attncli.practice.progress import BOXES, DAY, SKILLS, Progress, asked_at, skill_of, stage_of
from attncli.practice.schedule import chooser, next_exercise, shows_alone
from attncli.problems import library
from attncli.worksheets.generator import redrawn


def test_who_is_always_right_reaches_the_last_stage_within_six_exercises() -> None:
    bench = Bench()
    while len(bench.state.exercises) < 6:
        bench.type(right(bench.exercise))
    done = list(exercises(bench.entries))
    first = done[0][0]
    assert [stage for recipe, stage in done if recipe == first][:4] == [1, 2, 3, 4]
    assert all(entry.is_clean for entry in bench.entries if entry.verdict != "done")
    assert bench.state.is_known(first)
    assert done[5][0] != first, "and then goes on"


@pytest.mark.parametrize(
    "mistake",
    [
        "no-scale",
        "scale-by-d",
        "softmax-over-columns",
        "no-exponential",
        "no-normalisation",
        "operands-swapped",
        "mask-inverted",
        "mask-diagonal",
    ],
)
def test_who_always_makes_a_mistake_meets_it_until_three_rights_in_a_row(mistake: str) -> None:
    bench = Bench()
    skill, made, rights, asked = None, 0, 0, 0
    while len(bench.state.exercises) < 30:
        step = skill_of(bench.exercise.graph, bench.exercise.step)
        wrong = mistaken(bench.exercise, mistake) if made < 3 and bench.exercise.tries == 0 else None
        name = bench.exercise.choice.name
        bench.type(wrong or right(bench.exercise))
        if wrong is not None:
            entry = bench.entries[-1]
            assert entry.verdict == "wrong" and mistake in entry.mistakes, entry
            made, skill, rights = made + 1, entry.skill, 0
            continue
        if step == skill and bench.entries[-1 if bench.entries[-1].verdict != "done" else -2].is_clean:
            rights += 1
        if skill is not None and rights < 3 and bench.exercise.choice.name != name:
            asked += 1
            graph = bench.exercise.graph
            assert skill in {skill_of(graph, id) for id in bench.exercise.asked}, "the skill comes again"
            assert "something went wrong" in bench.exercise.choice.reason.text()
        if rights >= 3:
            break
    assert made == 3 and rights == 3 and asked >= 3
    assert bench.state.skills[str(skill)].open == 0


def entry(t: float, exercise: str, skill: str, verdict: str = "correct", **changes: object) -> LogEntry:
    plain = LogEntry(t, "", exercise, "A", skill, 4, "1", verdict, (), 0, 1, 5)
    return plain.changed(**changes)


def done(t: float, exercise: str, stage: int = 4) -> LogEntry:
    return LogEntry(t, "", exercise, "", "", stage, "", "done", (), 0, 0, 0)


def test_boxes() -> None:
    """A right answer that was due moves a skill up; one that was not moves nothing; a wrong one sends it to the first."""
    now, state = 0.0, Progress()
    for box, days in enumerate(BOXES[1:], start=1):
        state.add(entry(now, "attention#1", "softmax"))
        assert (state.skills["softmax"].box, state.skills["softmax"].due) == (box, now + days * DAY)
        state.add(entry(now + 1, "attention#1", "softmax"))
        assert state.skills["softmax"].box == box
        now += days * DAY
    state.add(entry(now, "attention#1", "softmax", "wrong", mistakes=("no-exponential",)))
    assert (state.skills["softmax"].box, state.skills["softmax"].open) == (0, 3)


def test_what_went_wrong_comes_before_what_is_due_and_that_before_what_is_new() -> None:
    entries = [entry(0, "attention#1", "softmax"), done(1, "attention#1")]
    new = next_exercise(Progress(entries), 10, RECIPES)
    assert (new.name, new.stage) == ("attention-causal#1", 1) and "curriculum" in new.reason.text()
    due = next_exercise(Progress(entries), 2.5 * DAY, RECIPES)
    assert due.name == "attention#2" and "2 days ago" in due.reason.text() and SKILLS["softmax"] in due.reason.text()
    entries += [entry(20, "attention-causal#1", "mask", "shown", stage=1)]
    wrong = next_exercise(Progress(entries), 2.5 * DAY, RECIPES)
    assert wrong.name == "attention-causal#2" and "shown" in wrong.reason.text()


def test_never_three_of_one_recipe_in_a_row_once_another_is_known() -> None:
    entries = [entry(0, "attention#1", "softmax"), done(1, "attention#1")]
    for t, name in ((2.0, "attention-causal#1"), (3.0, "attention-causal#2")):
        entries += [entry(t, name, "mask", stage=1), done(t, name, 1)]
    between = next_exercise(Progress(entries), 10, RECIPES)
    assert between.name == "attention#2" and "tell the two apart" in between.reason.text()


def test_left_in_the_middle_is_not_done() -> None:
    state = Progress([entry(0, "attention#1", "softmax", stage=1)])
    assert state.stage("attention") == 1
    state.add(done(1, "attention#1", 1))
    assert state.stage("attention") == 2


def test_down_after_two_wrong() -> None:
    state = Progress([entry(t, "attention#1", "softmax", "wrong", stage=3) for t in (0, 1)])
    assert state.stage("attention") == 2


def test_stages_of_attention_ask_from_the_end() -> None:
    problem = RECIPES.draw("attention", 1)
    graph = problem.graph()
    every = list(problem.points())
    assert [asked_at(graph, every, stage)[0] for stage in (1, 2, 3)] == [("O",), ("A", "O"), ("scaled", "A", "O")]
    assert asked_at(graph, every, 4)[0] == tuple(graph.steps)
    assert asked_at(graph, every, 2)[1] == ("scores", "scaled"), "nothing that gives A away is shown"
    assert [stage_of(graph, every, id) for id in ("O", "A", "exp")] == [1, 2, 4]


@pytest.mark.parametrize("name", RECIPES.names)
def test_every_line_of_every_recipe_has_a_skill_with_a_name(name: str) -> None:
    problem = RECIPES.draw(name, 1)
    graph = problem.graph()
    skills = [skill_of(graph, id) for id in problem.points()]
    assert set(skills) <= set(SKILLS) and "other" not in skills, dict(zip(graph.steps, skills, strict=False))


def test_numbers_that_show_a_mistake_alone() -> None:
    from attncli.problems.library import load

    assert shows_alone(RECIPES.draw("attention", 1), "no-scale", 3)
    # K equals its own transpose here: nobody can see that it was not transposed.
    assert not shows_alone(load("a2-first-by-hand"), "key-not-transposed", 4)
    assert not shows_alone(RECIPES.draw("attention", 1), "no-scale", 1), "not where nobody can make it"


def test_same_log_same_choice() -> None:
    entries = [entry(0, "attention#1", "softmax", "wrong", mistakes=("softmax-over-columns",), stage=2)]
    one, other = (next_exercise(Progress(entries), 5, RECIPES) for _ in range(2))
    assert (one.name, one.stage, one.reason) == (other.name, other.stage, other.reason)


@pytest.mark.parametrize("name", ["b1", "e4", "e6", "e7", "d4"])
def test_an_example_that_no_recipe_is_like_comes_back_with_other_numbers(name: str) -> None:
    from attncli.problems.library import load

    first = load(name)
    choose, is_example = chooser(name, 1, 1)
    bench = Bench(choose, count=1)
    assert is_example and bench.exercise.choice.name == first.id
    bench.type("show")
    again = bench.exercise
    assert again.choice.name == f"{first.id}#1" and "new numbers" in again.choice.reason.text()
    assert {id: one.values.shape for id, one in again.problem.inputs.items()} == {
        id: one.values.shape for id, one in first.inputs.items()
    }
    assert any(not np.array_equal(again.problem.inputs[id].values, one.values) for id, one in first.inputs.items())
    bench.type(right(again))
    assert bench.session.ended and bench.entries[-2].is_clean
    assert bench.entries[-1].exercise == again.choice.name


@pytest.mark.parametrize("name", library.ids())
def test_other_numbers_of_an_example_can_be_worked_out(name: str) -> None:
    """Of the same shapes, the same from the same seed; ids and weights that add up to 1 stay."""
    problem = library.load(name)
    one, other, again = (redrawn(problem, seed) for seed in (1, 2, 1))
    assert list(one.graph().steps) == list(problem.graph().steps)
    for id, matrix in problem.inputs.items():
        assert one.inputs[id].values.shape == matrix.values.shape
        assert np.array_equal(one.inputs[id].values, again.inputs[id].values)
    with np.errstate(all="ignore"):
        numbers, before = (each.graph().evaluate() for each in (one, problem))
        for step in one.graph().steps:
            assert np.isnan(numbers[step]).any() <= np.isnan(before[step]).any(), step
    changed = {id for id in problem.inputs if not np.array_equal(one.inputs[id].values, other.inputs[id].values)}
    assert "T" not in changed
