"""attncli examples: list, show, run and verify the worked examples."""

from itertools import groupby
from typing import TYPE_CHECKING

from attncli.cli.options import SHOWN, Command, Group, Word, example_ids, shared
from attncli.cli.output import Output, Say, TypedLines, Words, width
from attncli.core.message import N_, InputError, Listed, Localized, placed
from attncli.locale.fit import columns, definitions, wrap

if TYPE_CHECKING:
    from attncli.problems.lesson import Lesson
    from attncli.problems.problem import Problem, Run


def listed(out: Output, words: Words) -> int:
    """Every id with its title, part by part, and a way through them."""
    from attncli.problems import library

    say, ids = out.say, library.ids()
    longest = max(map(columns, ids))
    lines: list[str] = []
    for part, group in groupby(ids, library.part_of):
        rows = [(example, Localized(library.load(example).title).text(say.language)) for example in group]
        lines += ["", wrap(say.text(library.PARTS[part]), width()), *definitions(rows, width(), least=longest)]
    first, back, on = map(Listed, library.PATH)
    last = [
        say.text("New here? First {first}; then the way back: {back}; then on to {on}.", first=first, back=back, on=on),
        say.text(
            "Look at one: attncli examples show ID. Its solution: attncli examples run ID. The beginning of an id is enough: a2 means a2-first-by-hand."
        ),
    ]
    lines += ["", *(wrap(text, width()) for text in last)]
    say.out("\n".join(lines[1:]) + "\n")
    return 0


def show(out: Output, words: Words) -> int:
    """The exercise without its solution."""
    from attncli.problems import library
    from attncli.problems.problem import run as calculated
    from attncli.problems.question import question_of
    from attncli.problems.request import problem_named
    from attncli.render.exercise import page

    problem = problem_named(words["name"])
    name = library.find(words["name"]) or words["name"]
    with placed(name):
        asked = question_of(problem)
        result = calculated(problem, steps=asked.given)  # nothing but what is given
    view = out.view(result)
    out.say.out(out.text(page(asked, name, view, hint=words["hint"]), view.language))
    return 0


def run(out: Output, words: Words) -> int:
    """The exercise calculated, with its question, its printed numbers and what to notice; 1 if a number is off."""
    from attncli.problems.lesson import arithmetic_of_source, check_layout, lesson_of
    from attncli.problems.problem import run as calculated
    from attncli.problems.request import arithmetic_of, problem_named
    from attncli.problems.settings import layout_of

    step_by_step, steps = words["step_by_step"], words["step"]
    if step_by_step and (words["output"] is not None or words["format"] not in (None, "table")):
        raise InputError("--step-by-step is for the screen. Leave out -o and --format.")
    problem = problem_named(words["name"])
    check_layout(problem, layout_of(words["layout"]))
    options = arithmetic_of(words)
    if options["arithmetic"] == "floating":
        options["arithmetic"] = arithmetic_of_source(problem)  # the summary says what full precision gives
    result = calculated(problem, steps=steps, **options)
    lesson = lesson_of(problem, result.shown if steps else ())
    if step_by_step:
        _one_after_another(out, result, lesson)
    else:
        out.show(result, lesson)
    return 0 if lesson.ok else 1


def _one_after_another(out: Output, result: "Run", lesson: "Lesson") -> None:
    """The run, one step a screen: Enter goes on, q stops."""
    from attncli.render.run import screens

    say = out.say
    typed = TypedLines(say)
    view = out.view(result, lesson)
    pieces = list(screens(view))
    for number, blocks in enumerate(pieces, start=1):
        say.out(out.text(blocks, view.language))
        if number == len(pieces):
            return
        line = typed(say.text("[{number}/{count}] Enter: next, q: stop ", number=number, count=len(pieces)))
        if line is not None and line.strip().casefold() in _STOP:
            return


#: What stops a walk through the steps.
_STOP = ("q", "quit", "退出")


def verify(out: Output, words: Words) -> int:
    """Every printed digit recomputed: a line an example, and below it every number that does not follow."""
    from attncli.problems import library
    from attncli.problems.lesson import check
    from attncli.problems.request import problem_named

    say, names = out.say, words["names"]
    lines: list[str] = []
    remarks: list[str] = []
    results = wrong = 0
    chosen = names or library.ids()
    for name in chosen:
        problem = problem_named(name)
        checks = check(problem)
        off = [checked for checked in checks if not checked.ok]
        results, wrong = results + len(checks), wrong + len(off)
        mark = "✗" if off else "✓"
        lines.append(
            say.text("{mark} {id}: 1 published result", mark=mark, id=name)
            if len(checks) == 1
            else say.text("{mark} {id}: {count} published results", mark=mark, id=name, count=len(checks))
        )
        for checked in off:
            lines.append(f"    {checked.step}: {checked.printed}")
            if checked.message is not None:
                lines.append(wrap(checked.message.text(say.language), width(), "    ", "    "))
        if names:
            remarks += _for_the_author(say, problem)
    last = (
        say.text("Published results that the inputs do not give: {wrong} of {results}.", wrong=wrong, results=results)
        if wrong
        else say.text("Every published result follows from its inputs. Results: {results}; examples: {count}.", results=results, count=len(chosen))
    )  # fmt: skip
    say.out("\n".join([*lines, "", wrap(last, width()), *remarks]) + "\n")
    return 1 if wrong else 0


def _for_the_author(say: Say, problem: "Problem") -> list[str]:
    """What an exercise cannot tell from the right answer, for whoever is about to give it."""
    from attncli.marking.mark import Marker
    from attncli.render.sheet import for_the_author

    found = Marker(problem).undetectable()
    if not found:
        return []
    return ["", wrap(f"{problem.id}: {for_the_author(found).text(say.language)}", width())]


_NAME = {"name": Word("ID|FILE", N_("The id of a worked example, or a problem file."), example_ids)}
_COMMANDS = {
    "list": Command(N_("List all worked examples."), listed, shared("lang")),
    "show": Command(N_("Show an exercise without its solution: what is given, what is asked."), show, {
        **_NAME,
        "hint": Word("--hint", N_("Show the hint too.")),
        **shared("lang"),
    }),
    "run": Command(N_("Work through an exercise, compare it with the published numbers, and point out what to notice."), run, {
        **_NAME,
        "step_by_step": Word("--step-by-step", N_("One step a screen: Enter for the next one.")),
        **shared(*SHOWN),
    }),
    "verify": Command(N_("Recalculate every published digit; exit status 1 if any is off."), verify, {
        "names": Word("[ID|FILE]...", N_("Ids of worked examples, or problem files (all examples, if none is given)."), example_ids),
        **shared("lang"),
    }),
}  # fmt: skip
COMMAND = Group(
    N_("Worked examples: exercises whose published numbers are recalculated."),
    lambda: list(_COMMANDS),
    _COMMANDS.__getitem__,
)
