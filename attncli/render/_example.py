"""A worked example in the terminal: its question, and after the calculation its printed numbers and what to notice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, RenderableType
from rich.text import Text

from attncli.message import N_, Listed, Message
from attncli.problems.published import Checked
from attncli.render._view import Item, View, localized
from attncli.render.table import Page

#: The source of the exercises that were made here.
_OWN = N_("Our own numbers, calculated by attncli, whose steps are tested against PyTorch")

_HOW = {
    "carried": N_("rounded values carried on"),
    "truncated": N_("cut off, not rounded"),
    "shape": N_("shape"),
}
_WRONG = N_("wrong in the source")


def question(view: View, console: Console, *, hint: bool) -> Iterator[RenderableType]:
    """What is given and what is asked; the hint only where it was asked for."""
    page = Page(view, console)
    problem, code = view.run.problem, view.language.code
    yield page.text(f"{problem.id}: {view.title()}", "bold")
    yield page.text(localized(problem.prompt, code))
    yield Text()
    yield from page.inputs()
    if problem.source:
        source = Message(_OWN) if problem.source == _OWN else problem.source
        yield page.say(Message(N_("Source: {source}"), source=source), "dim")
    if hint:
        yield page.say(Message(N_("Hint: {hint}"), hint=localized(problem.hint, code)))
    else:
        yield page.say(Message(N_("A hint: attncli examples show {id} --hint"), id=problem.id), "dim")
    yield page.say(Message(N_("The solution, step by step: attncli examples run {id}"), id=problem.id), "dim")


def before(view: View, console: Console) -> Iterator[RenderableType]:
    """The question above a solution, whose own title comes first."""
    page = Page(view, console)
    yield page.text(view.title(), "bold")
    yield page.text(localized(view.run.problem.prompt, view.language.code))


def after(
    view: View,
    checks: Sequence[Checked],
    notice: str,
    contrast: View | None,
    changes: str,
    steps: Sequence[str],
    console: Console,
) -> Iterator[RenderableType]:
    """The printed numbers with a tick or a cross, the second run for comparison, and what to notice."""
    page = Page(view, console)
    if checks:
        yield Text()
        yield page.say(N_("The printed numbers"), "bold underline")
        yield from _printed(page, checks)
    if contrast is not None:
        yield Text()
        yield page.say(N_("For comparison"), "bold underline")
        yield page.say(Message(N_("The same with {changes}:"), changes=changes))
        other = Page(contrast, console)
        for item in contrast.steps:
            if not steps or item.id in steps:
                yield Text()
                yield from other.item(item, None)
        for line in contrast.summary:
            if line.kind != "result":
                yield other.say(line)
    if notice:
        yield Text()
        yield page.say(N_("What to notice"), "bold underline")
        yield page.text(notice)


def _printed(page: Page, checks: Sequence[Checked]) -> Iterator[RenderableType]:
    """The steps that were printed digit for digit as they stand above, in one line; the others one by one."""
    shown = {item.id: _digits(item) for item in (*page.view.inputs, *page.view.steps)}
    same = [
        one
        for one in checks
        if one.ok and one.how == "rounded" and " ".join(one.printed.split()) == shown.get(one.step)
    ]
    if len(same) == len(checks):
        yield page.paragraph(Message(N_("✓ every one of them as it stands above ({count})"), count=len(same)), "green")
    elif same:
        steps = Listed(one.step for one in same)
        yield page.paragraph(Message(N_("✓ printed just as it stands above: {steps}"), steps=steps), "green")
    for checked in checks:
        if checked not in same:
            yield from _checked(page, checked)


def _digits(item: Item) -> str:
    """A step's numbers as they are shown, written as a problem file writes a matrix."""
    heads = ["; ".join(" ".join(map(item.text, row)) for row in block.values) for block in item.blocks]
    return " | ".join(heads).replace("−∞", "-inf").replace("∞", "inf")


def _checked(page: Page, checked: Checked) -> Iterator[RenderableType]:
    mark, style = ("✓", "green") if checked.ok else ("✗", "bold red")
    printed = "; ".join(line.strip() for line in checked.printed.strip().splitlines())
    line = f"{mark} {checked.step}: {printed}"
    if checked.how != "rounded" or not checked.ok:
        line += f"  ({page.view.say(_HOW.get(checked.how, _WRONG))})"
    yield page.text(line, style)
    if checked.message is not None:
        yield page.say(checked.message)
