"""What comes next, and why: one function, `next_exercise`, so that another rule can take its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial

import numpy as np

from attncli.core.message import N_, InputError, Listed, Message, unknown
from attncli.core.record import Record
from attncli.marking.mark import Marker
from attncli.practice.log import LogEntry
from attncli.practice.progress import DAY, SKILLS, Progress, SkillState, asked_at, skill_of, stage_of
from attncli.problems import library
from attncli.problems.problem import Problem
from attncli.problems.request import problem_named
from attncli.worksheets import recipes
from attncli.worksheets.generator import draw, redrawn
from attncli.worksheets.outcomes import by_hand, is_told_apart, right_lines, sheet_of, wrong_sheets

#: Recipes in the order in which they are taken up; others follow.
CURRICULUM = (
    "attention", "attention-causal", "self-attention", "self-attention-causal", "softmax-backward", "attention-backward",
    "self-attention-backward", "embedding", "embedded-backward", "multi-head", "layer-norm", "layer-norm-backward",
)  # fmt: skip
#: Recipes that repeat a part of others, for whoever asks for them.
_ON_REQUEST = frozenset({"softmax"})
#: Draws that are tried to find numbers on which a mistake shows alone.
_MOST_TRIES = 6
_ASKED_FOR = N_("Why this one: you asked for it.")
#: Exercises of one recipe that may follow one another once there are others that are known.
_MOST_ALIKE = 2


class NextExercise(Record):
    """An exercise, at a stage, and why it was chosen.

    Parameters
    ----------
    name : as the log calls it: "attention#3", or the id of a worked example
    """

    name: str
    problem: Problem
    stage: int
    reason: Message


#: A rule for what comes next, from what the learner did so far and the time.
Choose = Callable[[Progress, float], NextExercise]


class Recipes:
    """The recipes of the worksheets, in the order of the curriculum.

    Parameters
    ----------
    first : the number of a recipe's first draw; the next ones follow
    """

    def __init__(self, first: int = 1) -> None:
        self.first = first
        self._drawn: dict[tuple[str, int], Problem] = {}

    @cached_property
    def names(self) -> Sequence[str]:
        every = recipes.names()
        known = [name for name in CURRICULUM if name in every]
        return [*known, *(name for name in every if name not in known)]

    def draw(self, name: str, seed: int) -> Problem:
        """The exercise of a recipe with the numbers of a seed."""
        if (name, seed) not in self._drawn:
            self._drawn[name, seed], _ = draw(recipes.load(name), seed)
        return self._drawn[name, seed]

    def next_seed(self, log: Progress, name: str) -> int:
        """The number of the next draw."""
        return max(self.first, log.seeds.get(name, 0) + 1)

    def next(self, log: Progress, name: str, reason: Message) -> NextExercise:
        """The next draw of a recipe, at the stage at which it goes on."""
        seed = self.next_seed(log, name)
        return NextExercise(f"{name}#{seed}", self.draw(name, seed), log.stage(name), reason)


def next_exercise(log: Progress, now: float, known: Recipes) -> NextExercise:
    """What went wrong, first; then what is due; then the next of the curriculum.

    Parameters
    ----------
    log : what the learner did so far
    now : seconds since 1970
    """
    failed = [(state.failed, skill, state) for skill, state in log.skills.items() if state.open and state.failed]
    for entry, skill, state in sorted(failed, key=lambda found: -found[0].t):
        if entry.recipe in known.names:
            return _again(log, skill, state, entry, known)
    due = [(skill, state) for skill, state in log.skills.items() if state.box and state.due <= now]
    for skill, state in sorted(due, key=lambda pair: pair[1].due):
        name = _longest_ago(log, [recipe for recipe in known.names if skill in log.seen.get(recipe, ())])
        if name:
            return known.next(log, name, _due_reason(skill, max(1, round((now - state.last) / DAY))))
    name = _next_of_curriculum(log, known.names)
    others = [recipe for recipe in known.names if log.is_known(recipe) and recipe != name]
    if others and [done.recipe for done in log.exercises[-_MOST_ALIKE:]] == [name] * _MOST_ALIKE:
        name = _longest_ago(log, others)
        reason = Message("Why this one: something you know, in between, so that you have to tell the two apart.")
    elif log.is_known(name):
        reason = Message("Why this one: you know them all. This is the one you did longest ago.")
    elif any(done.recipe == name for done in log.exercises):
        reason = Message("Why this one: you are learning it.")
    else:
        reason = Message("Why this one: it is the next of the curriculum.")
    return known.next(log, name, reason)


def _longest_ago(log: Progress, names: Sequence[str]) -> str:
    """Of some recipes the one that was done longest ago; "" of none."""
    last = {done.recipe: number for number, done in enumerate(log.exercises)}
    return min(names, key=lambda name: last.get(name, -1), default="")


def _next_of_curriculum(log: Progress, names: Sequence[str]) -> str:
    wanted = [name for name in names if name not in _ON_REQUEST]
    return next((name for name in wanted if not log.is_known(name)), "") or _longest_ago(log, wanted)


def _again(log: Progress, skill: str, state: SkillState, failed: LogEntry, known: Recipes) -> NextExercise:
    """New numbers for what went wrong; after a mistake with a name such numbers that it would show alone."""
    first, was_shown, named = (
        known.next_seed(log, failed.recipe),
        failed.verdict == "shown",
        Message(SKILLS.get(skill, skill)),
    )
    plain = N_("Why this one: something went wrong ({skill}). Here are new numbers for it.")
    sharp = N_(
        "Why this one: something went wrong ({skill}). On these numbers that mistake cannot hide behind another."
    )

    def drawn(seed: int, reason: Message) -> NextExercise:
        problem = known.draw(failed.recipe, seed)
        stage = _stage_for(problem, skill, log.stage(failed.recipe))
        return NextExercise(f"{failed.recipe}#{seed}", problem, stage, reason)

    if state.mistakes and not was_shown:
        for seed in range(first, first + _MOST_TRIES):
            choice = drawn(seed, Message(sharp, skill=named))
            if shows_alone(choice.problem, state.mistakes[0], choice.stage):
                return choice
    return drawn(first, shown_reason([skill]) if was_shown else Message(plain, skill=named))


def _stage_for(problem: Problem, skill: str, least: int) -> int:
    """The first stage, no lower than this one, at which a line of a skill is asked for."""
    graph = problem.graph()
    every = list(problem.points())
    return max(
        least, min((stage_of(graph, every, line) for line in every if skill_of(graph, line) == skill), default=least)
    )


def shows_alone(problem: Problem, mistake: str, stage: int) -> bool:
    """Whether a mistake, made anywhere, is marked wrong at a line that is asked for, and named, and nothing else with it
    but what always comes to the same numbers."""
    marker = Marker(problem)
    every = [step for step in marker.graph.steps if step in marker.points]
    asked, shown = asked_at(marker.graph, every, stage)
    right = right_lines(by_hand(marker), every)
    given = {step: right[step] for step in shown}
    found = False
    for wrong in wrong_sheets(marker):
        lines = wrong.lines
        if lines is None or wrong.id != mistake or wrong.step in given:
            continue
        first = next((step for step in asked if step in lines and not np.array_equal(lines[step], right[step])), None)
        if first is None:
            continue
        own = {step: lines[step] for step in asked[: asked.index(first) + 1]}
        mark = marker.mark(sheet_of(marker, {**given, **own}))
        named = {each.id for step in mark.steps if step.id == first for each in step.mistakes}
        if not named or any(is_told_apart(other, mistake) for other in named):
            return False
        found = True
    return found


def _due_reason(skill: str, days: int) -> Message:
    named = Message(SKILLS[skill])
    if days == 1:
        return Message("Why this one: time to repeat {skill}. The last time was a day ago.", skill=named)
    return Message("Why this one: time to repeat {skill}. The last time was {days} days ago.", skill=named, days=days)


def shown_reason(skills: Sequence[str]) -> Message:
    """Why an exercise comes whose result was looked at before."""
    named = Listed([Message(SKILLS.get(skill, skill)) for skill in skills])
    return Message("Why this one: you were shown a result ({skill}). Here are new numbers for it.", skill=named)


def chooser(name: str, stage: int | None, seed: int) -> tuple[Choose, bool]:
    """How exercises are chosen, and whether a worked example (or a problem file) was named.

    Parameters
    ----------
    name : a recipe, a skill, a worked example, a problem file; nothing: what comes next
    stage : which lines are the learner's; None: as the log says
    seed : the number of the first draw
    """
    known = Recipes(seed)
    is_example = bool(name) and name not in known.names and name not in SKILLS
    choose: Choose = partial(next_exercise, known=known)
    if name:
        choose = _example(name, known) if is_example else _by_name(name, known)

    def at_stage(log: Progress, now: float) -> NextExercise:
        choice = choose(log, now)
        return choice if stage is None else choice.changed(stage=stage)

    return at_stage, is_example


def _by_name(name: str, known: Recipes) -> Choose:
    """Of a recipe, or of all recipes with a skill the one that was done least often."""

    def has_skill(recipe: str) -> bool:
        problem = known.draw(recipe, known.first)
        graph = problem.graph()
        return any(skill_of(graph, line) == name for line in problem.points())

    only = [name] if name in known.names else list(filter(has_skill, known.names))
    if not only:
        raise InputError("No recipe practises the skill {skill}.", skill=name)

    def choose(log: Progress, now: float) -> NextExercise:
        recipe = min(only, key=lambda recipe: sum(done.recipe == recipe for done in log.exercises))
        choice = known.next(log, recipe, Message(_ASKED_FOR))
        return choice.changed(stage=_stage_for(choice.problem, name, choice.stage)) if name in SKILLS else choice

    return choose


def _example(name: str, known: Recipes) -> Choose:
    """A worked example, or a problem file. What was done comes back with new numbers: a recipe's, or others in the example itself."""
    if library.find(name) is None and not ("." in name or "/" in name or "\\" in name):
        raise unknown(Message("The exercise"), name, list(dict.fromkeys([*known.names, *SKILLS, *library.ids()])))
    problem = problem_named(name)
    called = problem.id or name
    problem.graph()

    def choose(log: Progress, now: float) -> NextExercise:
        own = NextExercise(called, problem, log.stage(called), Message(_ASKED_FOR))
        if not any(last.recipe == called and last.done for last in log.exercises[-1:]):
            return own
        recipe = _recipe_of(problem, known)
        if recipe:
            return _by_name(recipe, known)(log, now)
        number = known.next_seed(log, called)
        other = redrawn(problem, number)
        if other is problem:
            return own
        reason = Message("Why this one: the same exercise once more, with new numbers.")
        return own.changed(name=f"{called}#{number}", problem=other, reason=reason)

    return choose


def _recipe_of(problem: Problem, known: Recipes) -> str:
    """The recipe whose exercises are like a problem: of its model, with gradients or without, causal or not."""
    wanted = problem.model, problem.has_gradient, bool(problem.settings.get("causal"))
    for recipe in map(recipes.load, known.names):
        if (recipe.model, bool(recipe.gradient), bool(recipe.settings.get("causal"))) == wanted:
            return recipe.name
    return ""
