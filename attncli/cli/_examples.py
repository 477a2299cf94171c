"""What `attncli examples` does."""

from __future__ import annotations

from typing import Any

from attncli.cli._say import Say
from attncli.message import N_, AttnError, Message
from attncli.problems import library
from attncli.problems.problem import Problem


def listing(say: Say) -> int:
    """Every id with its title."""
    from attncli.cli._terminal import width
    from attncli.locale.wrap import definitions, wrap
    from attncli.render._view import localized

    ids = library.ids()
    rows = [(id, localized(library.load(id).title, say.language.code)) for id in ids]
    lines = list(definitions(rows, width()))
    last = say.text("Look at one: attncli examples show ID. Its solution: attncli examples run ID.")
    lines += ["", wrap(last, width())]
    say.out("\n".join(lines) + "\n")
    return 0


def show(say: Say, *, id: str, hint: bool, **words: Any) -> int:
    """The exercise without its solution."""
    from attncli.cli._terminal import console
    from attncli.render._example import question
    from attncli.render._view import view
    from attncli.render.table import print_parts, trimmed
    from attncli.run import run as calculate

    problem = library.load(id)
    screen, buffer = console()
    result = calculate(problem)
    print_parts(
        question(view(result, say.language, layout=problem.layout, width=screen.width), screen, hint=hint), screen
    )
    say.out(trimmed(buffer.getvalue()))
    return 0


def run(say: Say, *, id: str, **words: Any) -> int:
    """The exercise calculated; in the terminal also its printed numbers and what to notice."""
    from attncli.cli._calculation import arithmetic_of
    from attncli.cli._output import show as show_run
    from attncli.run import run as calculate

    problem = library.load(id)
    if words.get("layout"):
        problem = problem.changed(layout=_turned(problem, words["layout"]))
    options = arithmetic_of(words)
    if options["arithmetic"] == "floating" and "carried" in problem.how.values():
        options["arithmetic"] = "hand"  # as the source did; the summary says what full precision gives
    result = calculate(problem, steps=words.get("step") or (), **options)
    if words.get("output") or (words.get("format") or "table") != "table":
        show_run(say, result, words)
        return 0
    return _print(say, problem, result, words)


def _turned(problem: Problem, layout: str) -> str:
    from attncli.message import InputError, unknown

    if layout not in ("rows", "columns"):
        raise unknown(Message(N_("The layout")), layout, ["rows", "columns"])
    if layout != problem.layout:
        raise InputError(
            "{id} is written with tokens as {layout}; its printed numbers are read that way. Leave out --layout.",
            id=problem.id,
            layout=problem.layout,
        )
    return layout


def _print(say: Say, problem: Problem, result: Any, words: dict[str, Any]) -> int:
    from attncli.cli._terminal import console
    from attncli.problems.contrast import contrast
    from attncli.problems.notice import fill_notice
    from attncli.problems.published import check
    from attncli.render._example import after, before
    from attncli.render._view import view
    from attncli.render.table import print_parts, print_view, trimmed
    from attncli.run import run as calculate

    screen, buffer = console()
    options = {
        "expand": bool(words.get("expand")),
        "layout": problem.layout,
        "width": screen.width,
        "full": bool(words.get("full")),
    }
    shown = view(result, say.language, **options)
    print_parts(before(shown, screen), screen)
    print_view(shown, screen, titled=False)
    other = None if words.get("step") else contrast(problem)
    second = None if other is None else view(calculate(other), say.language, **options)
    checks = check(problem)
    asked = [checked for checked in checks if not words.get("step") or not checked.ok or checked.step in result.shown]
    described = problem.contrast or {}
    changes = ", ".join(
        f"{name} = {_written(value)}"
        for part in ("settings", "inputs")
        for name, value in described.get(part, {}).items()
    )
    notice = fill_notice(problem, say.language.code)
    print_parts(after(shown, asked, notice, second, changes, described.get("steps", ()), screen), screen)
    say.out(trimmed(buffer.getvalue()))
    return 0 if all(checked.ok for checked in checks) else 1


def _written(value: Any) -> str:
    """A value as a problem file writes it: true, not True."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def verify(say: Say, *, ids: list[str] | None, **words: Any) -> int:
    """Every printed digit recomputed: a line an example, and below it every number that does not follow."""
    from attncli.cli._terminal import width
    from attncli.locale.wrap import wrap
    from attncli.problems.published import check

    lines: list[str] = []
    results = wrong = 0
    chosen = ids or library.ids()
    for id in chosen:
        try:
            checks = check(library.load(id))
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
            say.text("{mark} {id}: 1 printed result", mark=mark, id=id)
            if len(checks) == 1
            else say.text("{mark} {id}: {count} printed results", mark=mark, id=id, count=len(checks))
        )
        for checked in off:
            lines.append(f"    {checked.step}: {checked.printed}")
            if checked.message is not None:
                lines.append(wrap(checked.message.text(say.language), width(), "    ", "    "))
    if wrong:
        last = say.text("Printed results that do not follow: {wrong} of {results}.", wrong=wrong, results=results)
    else:
        last = say.text(
            "Every printed result follows from its inputs. Results: {results}; examples: {count}.",
            results=results,
            count=len(chosen),
        )
    say.out("\n".join([*lines, "", wrap(last, width())]) + "\n")
    return 1 if wrong else 0
