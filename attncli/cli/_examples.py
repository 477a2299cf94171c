"""What `attncli examples` does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from attncli.cli._say import Say
from attncli.core.message import N_, AttnError, InputError, Message
from attncli.problems import library
from attncli.problems.problem import Problem

#: Parts of the worked examples, by the letter that their ids begin with; what other people published has none.
_PARTS = {
    "a": N_("A. Attention, from the scores to the output"),
    "b": N_("B. The way back: gradients of attention"),
    "c": N_("C. Tokens and their embeddings"),
    "d": N_("D. Many heads, shared and compressed"),
    "e": N_("E. The Transformer around it"),
    "f": N_("F. A small GPT: loss and learning"),
    "": N_("Printed by others, and calculated again"),
}
_OURS = re.compile(r"([a-z])[0-9]+-")
#: Where somebody new may begin, and go on: ids as they may be typed.
PATH = (("a2", "a1", "a8", "a9", "a11"), ("b1", "b2", "b4", "b6"), ("c3", "c6", "d1", "e3", "e6", "f1"))


def listing(say: Say) -> int:
    """Every id with its title, part by part, and a way through them."""
    from itertools import groupby

    from attncli.cli._terminal import width
    from attncli.locale.wrap import columns, definitions, wrap
    from attncli.render.names import localized

    ids = library.ids()
    longest = max(map(columns, ids))
    lines: list[str] = []
    for part, group in groupby(ids, _part):
        rows = [(id, localized(library.load(id).title, say.language.code)) for id in group]
        lines += ["", wrap(say.text(_PARTS[part]), width()), *definitions(rows, width(), least=longest)]
    first, back, on = (", ".join(ids) for ids in PATH)
    last = [
        say.text("New here? First {first}; then the way back: {back}; then on to {on}.", first=first, back=back, on=on),
        say.text(
            "Look at one: attncli examples show ID. Its solution: attncli examples run ID. The beginning is enough: a2 is a2-first-by-hand."
        ),
    ]
    lines += ["", *(wrap(text, width()) for text in last)]
    say.out("\n".join(lines[1:]) + "\n")
    return 0


def _part(id: str) -> str:
    """The letter of an example's part."""
    found = _OURS.match(id)
    return found[1] if found is not None and found[1] in _PARTS else ""


def show(say: Say, *, id: str, hint: bool, **words: Any) -> int:
    """The exercise without its solution."""
    from attncli.cli._terminal import console
    from attncli.problems.question import question_of
    from attncli.problems.run import run as calculate
    from attncli.render.exercise import how_to_hand_in, question
    from attncli.render.terminal import print_parts, trimmed
    from attncli.render.view import view

    problem = named(id)
    id = library.find(id) or id
    screen, buffer = console()
    try:
        asked = question_of(problem)
        result = calculate(problem, steps=asked.given)  # nothing but what is given
    except AttnError as error:
        raise error.at(id) from None
    shown = view(result, say.language, layout=problem.layout, width=screen.width)
    print_parts(question(asked, id, shown, screen, hint=hint), screen)
    say.out(trimmed(buffer.getvalue()) + how_to_hand_in(asked, id, shown, screen.width))
    return 0


def named(name: str) -> Problem:
    """The worked example of this id, or the problem in a file.

    Raises
    ------
    InputError
        There is none.
    """
    from attncli.cli._calculation import Stdin, problem_named

    return problem_named(name, Stdin())


def run(say: Say, *, id: str, **words: Any) -> int:
    """The exercise calculated, with its question, its printed numbers and what to notice; 1 if a number is off."""
    from attncli.cli._calculation import arithmetic_of
    from attncli.cli._output import show as show_run
    from attncli.problems.lesson import lesson_of
    from attncli.problems.run import run as calculate

    if words.get("step_by_step") and (words.get("output") is not None or words.get("format") not in (None, "table")):
        raise InputError("--step-by-step is for the screen. Leave out -o and --format.")
    problem = named(id)
    if words.get("layout"):
        problem = problem.changed(layout=_turned(problem, words["layout"]))
    options = arithmetic_of(words)
    if options["arithmetic"] == "floating" and "carried" in problem.how.values():
        options["arithmetic"] = "hand"  # as the source did; the summary says what full precision gives
    result = calculate(problem, steps=words.get("step") or (), **options)
    lesson = lesson_of(problem, result.shown if words.get("step") else ())
    if words.get("step_by_step"):
        _one_after_another(say, result, words, lesson)
    else:
        show_run(say, result, words, lesson)
    return 0 if lesson.ok else 1


def _one_after_another(say: Say, result: Any, words: Mapping[str, Any], lesson: Any) -> None:
    """The run, one step a screen: Enter goes on, q stops."""
    from attncli.cli._output import view_of
    from attncli.cli._terminal import console
    from attncli.cli._typed import Lines
    from attncli.render.terminal import Page, print_parts, trimmed

    typed = Lines(say)
    view = view_of(say, result, words, "table", lesson, to_file=False)
    screen, buffer = console()
    screens = list(Page(view, screen).screens())
    for number, parts in enumerate(screens, start=1):
        print_parts(parts, screen)
        say.out(trimmed(buffer.getvalue()))
        buffer.seek(0)
        buffer.truncate()
        if number == len(screens):
            return
        line = typed(say.text("[{number}/{count}] Enter: next, q: stop ", number=number, count=len(screens)))
        if line is not None and line.strip().casefold() in _STOP:
            return


#: What stops a walk through the steps.
_STOP = ("q", "quit", "退出")


def _turned(problem: Problem, layout: str) -> str:
    from attncli.core.message import unknown

    if layout not in ("rows", "columns"):
        raise unknown(Message(N_("The layout")), layout, ["rows", "columns"])
    if layout != problem.layout:
        raise InputError(
            "{id} is written with tokens as {layout}, and so are its published numbers. Leave out --layout.",
            id=problem.id,
            layout=problem.layout,
        )
    return layout


def verify(say: Say, *, ids: list[str] | None, **words: Any) -> int:
    """Every printed digit recomputed: a line an example, and below it every number that does not follow."""
    from attncli.cli._terminal import width
    from attncli.locale.wrap import wrap
    from attncli.problems.published import check

    lines: list[str] = []
    results = wrong = 0
    chosen = ids or library.ids()
    remarks: list[str] = []
    for id in chosen:
        try:
            problem = named(id)
            checks = check(problem)
        except AttnError as error:
            if ids:
                raise
            wrong += 1
            lines.append(f"✗ {id}: {error.message.text(say.language)}")
            continue
        off = [checked for checked in checks if not checked.ok]
        results, wrong = results + len(checks), wrong + len(off)
        mark = "✗" if off else "✓"
        lines.append(
            say.text("{mark} {id}: 1 published result", mark=mark, id=id)
            if len(checks) == 1
            else say.text("{mark} {id}: {count} published results", mark=mark, id=id, count=len(checks))
        )
        for checked in off:
            lines.append(f"    {checked.step}: {checked.printed}")
            if checked.message is not None:
                lines.append(wrap(checked.message.text(say.language), width(), "    ", "    "))
        if ids:
            remarks += _for_the_author(say, problem)
    if wrong:
        last = say.text(
            "Published results that the inputs do not give: {wrong} of {results}.", wrong=wrong, results=results
        )
    else:
        last = say.text(
            "Every published result follows from its inputs. Results: {results}; examples: {count}.",
            results=results,
            count=len(chosen),
        )
    say.out("\n".join([*lines, "", wrap(last, width()), *remarks]) + "\n")
    return 1 if wrong else 0


def _for_the_author(say: Say, problem: Problem) -> list[str]:
    """What an exercise cannot tell from the right answer, for whoever is about to give it."""
    from attncli.cli._terminal import width
    from attncli.locale.wrap import wrap
    from attncli.marking.mark import Marker
    from attncli.render.sheet import for_the_author

    found = Marker(problem).undetectable()
    if not found:
        return []
    return ["", wrap(f"{problem.id}: {for_the_author(found).text(say.language)}", width())]
