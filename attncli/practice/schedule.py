"""What comes next, and why: one function, `next_exercise`, so that another rule can take its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from attncli.core.graph import Graph
from attncli.core.matrix import EXACT, Matrix
from attncli.core.message import N_, InputError, Listed, Message, unknown
from attncli.core.record import Record
from attncli.practice.log import DAY, Progress, Skill
from attncli.practice.skills import LAST_STAGE, SKILLS, asked_at, skill_of, stage_of
from attncli.problems import library
from attncli.problems.answers import Answer, Sheet
from attncli.problems.problem import Problem
from attncli.problems.question import points_of
from attncli.problems.request import problem_named

#: Recipes in the order in which they are taken up; others follow.
CURRICULUM = (
    "attention", "attention-causal", "self-attention", "self-attention-causal", "softmax-backward", "attention-backward",
    "self-attention-backward", "embedding", "embedded-backward", "multi-head", "layer-norm", "layer-norm-backward",
)  # fmt: skip
#: Recipes that repeat a part of others, for whoever asks for them.
_ON_REQUEST = frozenset({"softmax"})
#: Draws that are tried to find numbers on which a mistake shows alone.
_MOST_TRIES = 6
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


class Exercises(Protocol):
    """What can be practised: recipes by name, each of which gives a problem for every number."""

    @property
    def names(self) -> Sequence[str]: ...

    def draw(self, name: str, seed: int) -> Problem: ...


class Recipes:
    """The recipes of the worksheets, in the order of the curriculum."""

    def __init__(self) -> None:
        self._drawn: dict[tuple[str, int], Problem] = {}

    @cached_property
    def names(self) -> Sequence[str]:
        from attncli.worksheets import recipes

        every = recipes.names()
        known = [name for name in CURRICULUM if name in every]
        return [*known, *(name for name in every if name not in known)]

    def draw(self, name: str, seed: int) -> Problem:
        """The exercise of a recipe with the numbers of a seed."""
        from attncli.worksheets.generator import draw
        from attncli.worksheets.recipes import load

        if (name, seed) not in self._drawn:
            self._drawn[name, seed] = draw(load(name), seed)
        return self._drawn[name, seed]


def next_exercise(log: Progress, now: float, exercises: Exercises, first_seed: int = 1) -> NextExercise:
    """What went wrong, first; then what is due; then the next of the curriculum.

    Parameters
    ----------
    log : what the learner did so far
    now : seconds since 1970
    first_seed : the number of a recipe's first draw; the next ones follow
    """
    for skill, state in _open(log):
        name = state.failed.recipe if state.failed is not None else ""
        if name in exercises.names:
            return _again(log, skill, state, name, exercises, first_seed)
    for skill, state in _due(log, now):
        name = _longest_ago(log, [one for one in exercises.names if skill in log.seen.get(one, ())])
        if name:
            days = max(1, round((now - state.last) / DAY))
            return _drawn(log, name, exercises, first_seed, _due_reason(skill, days))
    name = _next_of_curriculum(log, exercises.names)
    others = [one for one in exercises.names if log.is_known(one) and one != name]
    last = [one.recipe for one in log.exercises[-_MOST_ALIKE:]]
    if others and last == [name] * _MOST_ALIKE:
        other = _longest_ago(log, others)
        return _drawn(
            log,
            other,
            exercises,
            first_seed,
            Message(N_("Why this one: something you know, in between, so that you have to tell the two apart.")),
        )
    if log.is_known(name):
        reason = Message(N_("Why this one: you know them all. This is the one you did longest ago."))
    elif any(one.recipe == name for one in log.exercises):
        reason = Message(N_("Why this one: you are learning it."))
    else:
        reason = Message(N_("Why this one: it is the next of the curriculum."))
    return _drawn(log, name, exercises, first_seed, reason)


def _open(log: Progress) -> list[tuple[str, Skill]]:
    """Skills in which something went wrong and was not made good since, the last one first."""
    found = [(skill, state) for skill, state in log.skills.items() if state.open]
    return sorted(found, key=lambda pair: -(pair[1].failed.t if pair[1].failed is not None else 0.0))


def _due(log: Progress, now: float) -> list[tuple[str, Skill]]:
    """Skills that are to come again by now, the longest overdue first."""
    found = [(skill, state) for skill, state in log.skills.items() if state.box and state.due <= now]
    return sorted(found, key=lambda pair: pair[1].due)


def _longest_ago(log: Progress, names: Sequence[str]) -> str:
    """Of some recipes the one that was done longest ago; "" of none."""
    order = [one.recipe for one in log.exercises]
    return min(names, key=lambda name: len(order) - order[::-1].index(name) if name in order else 0, default="")


def _next_of_curriculum(log: Progress, names: Sequence[str]) -> str:
    if not names:
        raise InputError("There are no recipes to practise. Name a worked example.")
    wanted = [name for name in names if name not in _ON_REQUEST] or list(names)
    return next((name for name in wanted if not log.is_known(name)), "") or _longest_ago(log, wanted)


def _seed(log: Progress, name: str, first_seed: int) -> int:
    return max(first_seed, log.seeds.get(name, 0) + 1)


def _drawn(
    log: Progress, name: str, exercises: Exercises, first_seed: int, reason: Message, stage: int | None = None
) -> NextExercise:
    seed = _seed(log, name, first_seed)
    return NextExercise(f"{name}#{seed}", exercises.draw(name, seed), stage or log.stage(name), reason)


def _again(log: Progress, skill: str, state: Skill, name: str, exercises: Exercises, first_seed: int) -> NextExercise:
    """New numbers for what went wrong; after a mistake with a name such numbers that it would show alone."""
    seed = _seed(log, name, first_seed)
    problem = exercises.draw(name, seed)
    alone = False
    mistake = (
        state.mistakes[0] if state.mistakes and state.failed is not None and state.failed.verdict != "shown" else ""
    )
    for one in range(seed, seed + _MOST_TRIES if mistake else seed):
        found = exercises.draw(name, one)
        if shows_alone(found, mistake, _stage_for(found.graph(), found, skill, log.stage(name))):
            problem, seed, alone = found, one, True
            break
    stage = _stage_for(problem.graph(), problem, skill, log.stage(name))
    return NextExercise(f"{name}#{seed}", problem, stage, _again_reason(skill, state, alone))


def _stage_for(graph: Graph, problem: Problem, skill: str, least: int) -> int:
    """The first stage, no lower than this one, at which a line of a skill is asked for."""
    every = list(points_of(problem, graph.steps))
    return max(least, min((stage_of(graph, every, id) for id in every if skill_of(graph, id) == skill), default=least))


def shows_alone(problem: Problem, mistake: str, stage: int) -> bool:
    """Whether a mistake, made anywhere, is marked wrong at a line that is asked for, and named, and nothing else with it
    but what always comes to the same numbers."""
    from attncli.marking.mark import Marker
    from attncli.mistakes.mistake import Mistake
    from attncli.worksheets.certificate import ALWAYS_SAME, by_hand, wrong_sheets

    marker = Marker(problem)
    every = [id for id in marker.graph.steps if id in marker.points]
    asked, hidden = asked_at(marker.graph, every, stage)
    right = by_hand(marker)
    lines = {id: right.carried(id)[0] for id in every if id not in asked and id not in hidden}
    made = [one for one in wrong_sheets(marker) if not isinstance(one, Mistake) and one.id == mistake]
    found = False
    for one in made:
        first = next(
            (
                id
                for id in asked
                if id in one.lines
                and (one.lines[id].shape != marker.shapes[id] or (one.lines[id] != right.carried(id)[0]).any())
            ),
            None,
        )
        if first is None or one.step in lines:
            continue
        before = {id: one.lines[id] for id in asked[: asked.index(first)]}
        mark = marker.mark(_sheet(marker, {**lines, **before, first: one.lines[first]}))
        named = {each.id for step in mark.steps if step.id == first for each in step.mistakes}
        if not named or any(id != mistake and frozenset((id, mistake)) not in ALWAYS_SAME for id in named):
            return False
        found = True
    return found


def _sheet(marker: Any, lines: Mapping[str, Any]) -> Sheet:
    """A sheet of numbers written with the places asked for."""
    return Sheet(
        None,
        {
            id: Answer(Matrix(value, np.where(np.isfinite(value), marker.setting.places[id], EXACT)))
            for id, value in lines.items()
        },
    )


def _due_reason(skill: str, days: int) -> Message:
    named = Message(SKILLS[skill])
    if days == 1:
        return Message(N_("Why this one: {skill} are due. You last did them a day ago."), skill=named)
    return Message(N_("Why this one: {skill} are due. You last did them {days} days ago."), skill=named, days=days)


def shown_reason(skills: Sequence[str]) -> Message:
    """Why an exercise comes whose result was looked at before."""
    named = Listed([Message(SKILLS.get(skill, skill)) for skill in skills])
    return Message(N_("Why this one: you were shown a result ({skill}). Here are new numbers for it."), skill=named)


def _again_reason(skill: str, state: Skill, alone: bool) -> Message:
    named = Message(SKILLS.get(skill, skill))
    if state.failed is not None and state.failed.verdict == "shown":
        return shown_reason([skill])
    if alone:
        return Message(
            N_(
                "Why this one: something went wrong ({skill}). On these numbers that mistake cannot hide behind another."
            ),
            skill=named,
        )
    return Message(N_("Why this one: something went wrong ({skill}). Here are new numbers for it."), skill=named)


def by_name(
    name: str, exercises: Exercises, *, stage: int | None, first_seed: int
) -> Callable[[Progress, float], NextExercise]:
    """How to choose among what a name means: a recipe, or all recipes with a skill. A worked example is for the caller.

    Raises
    ------
    InputError
        There is no recipe and no skill of this name.
    """
    if name in exercises.names:
        only = [name]
    elif name in SKILLS:
        only = [one for one in exercises.names if name in _skills(exercises.draw(one, first_seed))]
    else:
        raise unknown(Message(N_("The exercise")), name, list(dict.fromkeys([*exercises.names, *SKILLS])))
    if not only:
        raise InputError("No recipe has lines of the skill {skill}.", skill=name)
    reason = Message(N_("Why this one: you asked for it."))

    def choose(log: Progress, now: float) -> NextExercise:
        chosen = min(only, key=lambda one: sum(done.recipe == one for done in log.exercises))
        problem = exercises.draw(chosen, _seed(log, chosen, first_seed))
        at = stage or (
            _stage_for(problem.graph(), problem, name, log.stage(chosen)) if name in SKILLS else log.stage(chosen)
        )
        return NextExercise(f"{chosen}#{_seed(log, chosen, first_seed)}", problem, at, reason)

    return choose


def _skills(problem: Problem) -> set[str]:
    graph = problem.graph()
    return {skill_of(graph, id) for id in points_of(problem, graph.steps)}


def chooser(name: str, stage: int | None, seed: int) -> tuple[Callable[[Progress, float], NextExercise], bool]:
    """How exercises are chosen, and whether a worked example (or a problem file) was named.

    Parameters
    ----------
    name : a recipe, a skill, a worked example, a problem file; nothing: what comes next
    stage : which lines are the learner's; None: as the log says
    seed : the number of the first draw

    Raises
    ------
    InputError
        There is nothing of this name.
    """
    recipes = Recipes()
    if not name:
        return lambda log, now: _at(next_exercise(log, now, recipes, seed), stage), False
    if name in recipes.names or name in SKILLS:
        return by_name(name, recipes, stage=stage, first_seed=seed), False
    if library.find(name) is None and not ("." in name or "/" in name or "\\" in name):
        likely = list(dict.fromkeys([*recipes.names, *SKILLS, *library.ids()]))
        raise unknown(Message(N_("The exercise")), name, likely)
    problem = problem_named(name)
    id = problem.id or name
    problem.graph()

    def choose(log: Progress, now: float) -> NextExercise:
        # What was done comes back with new numbers: a recipe's, or others in the example itself.
        if any(one.recipe == id and one.done for one in log.exercises[-1:]):
            again = _recipe_of(problem, recipes)
            if again:
                return by_name(again, recipes, stage=stage, first_seed=seed)(log, now)
            from attncli.worksheets.redraw import redrawn

            number = _seed(log, id, seed)
            other = redrawn(problem, number)
            if other is not problem:
                reason = Message(N_("Why this one: the same exercise once more, with new numbers."))
                return NextExercise(f"{id}#{number}", other, stage or log.stage(id), reason)
        return NextExercise(id, problem, stage or log.stage(id), Message(N_("Why this one: you asked for it.")))

    return choose, True


def _recipe_of(problem: Problem, recipes: Recipes) -> str:
    """The recipe whose exercises are like a problem: of its model, with gradients or without, causal or not."""
    from attncli.worksheets.recipes import load

    for name in recipes.names:
        recipe = load(name)
        if (
            recipe.model == problem.model
            and bool(recipe.gradient) == problem.has_gradient
            and bool(recipe.settings.get("causal")) == bool(problem.settings.get("causal"))
        ):
            return name
    return ""


def _at(choice: NextExercise, stage: int | None) -> NextExercise:
    return choice if stage is None else choice.changed(stage=stage)


__all__ = ["LAST_STAGE", "Exercises", "NextExercise", "Recipes", "by_name", "chooser", "next_exercise", "shows_alone"]
