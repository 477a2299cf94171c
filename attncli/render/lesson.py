r"""A worked example: its question, and after the calculation its printed numbers and what to notice, for every format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from attncli.core.message import N_, Listed, Localized, Message
from attncli.problems.published import PrintedCheck
from attncli.render.view import Item, View

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


_HOW = {
    "carried": N_("rounded values carried on"),
    "truncated": N_("cut off, not rounded"),
    "shape": N_("shape"),
}
_WRONG = N_("wrong in the source")

PRINTED = Message(N_("The numbers in the source"))
COMPARISON = Message(N_("For comparison"))
NOTICE = Message(N_("What to notice"))

#: What a line says of a printed number, for those who show it in colour.
RIGHT, WRONG, PLAIN = "right", "wrong", ""


def prompt(view: View) -> Message | None:
    """The exercise in words."""
    texts = view.run.problem.prompt
    return Localized(texts) if view.lesson is not None and texts else None


def source(view: View) -> Message | None:
    """Where the numbers come from."""
    return None if view.lesson is None else source_line(view.lesson.problem.source)


def source_line(texts: Any) -> Message | None:
    return Message(N_("Source: {source}"), source=Localized(texts)) if texts else None


def printed(view: View) -> Iterator[tuple[str, Message]]:
    """The printed numbers with a tick or a cross; those printed digit for digit as they stand above in one line."""
    checks = view.lesson.checks if view.lesson is not None else ()
    shown = {item.id: _digits(item) for item in (*view.inputs, *view.steps)}
    same = [
        one
        for one in checks
        if one.ok and one.how == "rounded" and " ".join(one.printed.split()) == shown.get(one.step)
    ]
    if same and len(same) == len(checks):
        yield RIGHT, Message(N_("✓ all {count} exactly as in the source"), count=len(same))
    elif same:
        yield RIGHT, Message(N_("✓ exactly as in the source: {steps}"), steps=Listed(one.step for one in same))
    for checked in checks:
        if checked not in same:
            yield from _checked(checked)


def _digits(item: Item) -> str:
    """A step's numbers as they are shown, written as a problem file writes a matrix."""
    heads = ["; ".join(" ".join(map(item.text, row)) for row in block.values) for block in item.blocks]
    return " | ".join(heads).replace("−∞", "-inf").replace("∞", "inf")


def _checked(checked: PrintedCheck) -> Iterator[tuple[str, Message]]:
    numbers = "; ".join(line.strip() for line in checked.printed.strip().splitlines())
    line = f"{'✓' if checked.ok else '✗'} {checked.step}: {numbers}"
    kind = RIGHT if checked.ok else WRONG
    if checked.how != "rounded" or not checked.ok:
        yield kind, Message("{line}  ({how})", line=line, how=Message(_HOW.get(checked.how, _WRONG)))
    else:
        yield kind, Message("{line}", line=line)
    if checked.message is not None:
        yield PLAIN, checked.message


def compared(view: View) -> tuple[Message, list[Item], list[Message]] | None:
    """The second run: what differs in it, its steps, and what its numbers say."""
    other = view.contrast
    if view.lesson is None or other is None:
        return None
    steps = [item for item in other.steps if not view.lesson.steps or item.id in view.lesson.steps]
    said = [line for line in other.summary if line.kind != "result"]
    return Message(N_("The same with {changes}:"), changes=view.lesson.changes), steps, said


def notice(view: View) -> Message | None:
    """What to notice."""
    return Localized(view.lesson.observations) if view.lesson is not None and view.lesson.observations else None


def before(view: View, console: Console) -> Iterator[RenderableType]:
    """The question above a solution, below its title."""
    from attncli.render.terminal import Page

    page = Page(view, console)
    asked = prompt(view)
    if asked is not None:
        yield page.say(asked)


def after(view: View, console: Console) -> Iterator[RenderableType]:
    """The printed numbers, the second run for comparison, what to notice, the source."""
    from rich.text import Text

    from attncli.render.terminal import Page

    page = Page(view, console)
    lines = list(printed(view))
    if lines:
        yield Text()
        yield page.say(PRINTED, "bold underline")
        for kind, line in lines:
            yield page.say(line, _STYLES[kind])
    other = compared(view)
    if other is not None and view.contrast is not None:
        changes, steps, said = other
        yield Text()
        yield page.say(COMPARISON, "bold underline")
        yield page.say(changes)
        second = Page(view.contrast, console)
        for item in steps:
            yield Text()
            yield from second.item(item, None)
        for line in said:
            yield second.say(line)
    remark = notice(view)
    if remark is not None:
        yield Text()
        yield page.say(NOTICE, "bold underline")
        yield page.say(remark)
    where = source(view)
    if where is not None:
        yield Text()
        yield page.say(where, "dim")


_STYLES = {RIGHT: "green", WRONG: "bold red", PLAIN: ""}


def json_data(view: View) -> dict[str, Any]:
    """The fields of a lesson; nothing where there is none."""
    if view.lesson is None:
        return {}
    data: dict[str, Any] = {}
    for key, message in (("prompt", prompt(view)), ("notice", notice(view))):
        if message is not None:
            data[key] = view.say(message)
    if view.lesson.problem.source:
        data["source"] = view.say(Localized(view.lesson.problem.source))
    data["compared"] = [
        {
            "step": one.step,
            "how": one.how,
            "ok": one.ok,
            "printed": one.printed,
            "computed": one.computed,
            "message": None if one.message is None else view.say(one.message),
        }
        for one in view.lesson.checks
    ]
    return data
