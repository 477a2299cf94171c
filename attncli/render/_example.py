"""A worked example: its question, and after the calculation its printed numbers and what to notice, for every format."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from attncli.core.graph import show_shape
from attncli.core.message import N_, Listed, Localized, Message
from attncli.locale.wrap import wrap
from attncli.problems.published import Checked
from attncli.problems.question import Question, quoted
from attncli.render._math import latex_text
from attncli.render._view import Item, View

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


def _checked(checked: Checked) -> Iterator[tuple[str, Message]]:
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
    return Localized(view.lesson.notice) if view.lesson is not None and view.lesson.notice else None


def before(view: View, console: Console) -> Iterator[RenderableType]:
    """The question above a solution, below its title."""
    from attncli.render.table import Page

    page = Page(view, console)
    asked = prompt(view)
    if asked is not None:
        yield page.say(asked)


def after(view: View, console: Console) -> Iterator[RenderableType]:
    """The printed numbers, the second run for comparison, what to notice, the source."""
    from rich.text import Text

    from attncli.render.table import Page

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


def question(asked: Question, name: str, view: View, console: Console, *, hint: bool) -> Iterator[RenderableType]:
    """What is given and what is asked; the hint only where it was asked for. How to hand in comes after it.

    Parameters
    ----------
    name : how the problem is called on the command line
    view : of a run of the problem, of which only what is given is shown
    """
    from rich.text import Text

    from attncli.render._view import items
    from attncli.render.table import Page

    page = Page(view, console)
    problem = asked.problem
    yield page.text(f"{problem.id}: {view.title()}" if problem.id else view.title(), "bold")
    if problem.prompt:
        yield page.say(Localized(problem.prompt))
    yield Text()
    yield from page.side_by_side(items(view.run, asked.given, turned=view.layout == "columns"))
    yield from (page.text(f"{id} = {text}") for id, text in asked.texts.items())
    if asked.settings:
        settings = Listed(f"{id} = {value}" for id, value in asked.settings.items())
        yield page.say(Message(N_("Settings: {settings}"), settings=settings))
    if asked.loss is not None:
        yield page.say(Message(N_("Loss: L = {loss}"), loss=asked.loss))
    yield Text()
    yield page.say(_to_hand_in(asked), "bold underline")
    yield _list(asked, page)
    if hint and problem.hint:
        yield Text()
        yield page.say(Message(N_("Hint")), "bold underline")
        yield page.say(Localized(problem.hint))
    yield Text()
    where = source_line(problem.source)
    if where is not None:
        yield page.say(where, "dim")
    if problem.hint and not hint:
        yield page.say(Message(N_("A hint: attncli examples show {id} --hint"), id=quoted(name)), "dim")
    yield page.say(Message(N_("The solution, step by step: attncli examples run {id}"), id=quoted(name)), "dim")


def _to_hand_in(asked: Question) -> Message:
    places = asked.decimals
    if len(places) != 1:
        return Message(N_("To hand in"))
    if places[0] is None:
        return Message(N_("To hand in, each number judged at the decimals it is written with"))
    if places[0] == 1:
        return Message(N_("To hand in, with 1 decimal"))
    return Message(N_("To hand in, with {places} decimals"), places=places[0])


def _list(asked: Question, page: Any) -> RenderableType:
    """A line for each thing to hand in: its id, symbol, shape, points, and decimals where they differ."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0))
    for one in asked.asked:
        symbol = latex_text(one.symbol)
        cells = [
            one.step,
            symbol if symbol != one.step else "",
            show_shape(one.shape),
            page.view.say(points(one.points)),
        ]
        if len(asked.decimals) > 1:
            cells.append(page.view.say(decimals(one.decimals)))
        table.add_row(*[page.text(cell) for cell in cells])
    return table


def points(count: Fraction) -> Message:
    """“2 points”."""
    if count == 0:
        return Message(N_("no points"))
    return Message(N_("1 point")) if count == 1 else Message(N_("{count} points"), count=f"{float(count):g}")


def decimals(places: int | None) -> Message:
    """“3 decimals”."""
    if places is None:
        return Message(N_("as written"))
    return Message(N_("1 decimal")) if places == 1 else Message(N_("{count} decimals"), count=places)


def how_to_hand_in(asked: Question, name: str, view: View, width: int) -> str:
    """A sheet to copy, and as the last line the command that marks the answers: lines that nothing breaks."""
    sheet, command = (
        wrap(view.say(Message(sentence)), width)
        for sentence in (
            N_("Write the numbers over the question marks, in a sheet (answers.toml) …"),
            N_("… or on the command line:"),
        )
    )
    return f"\n{sheet}\n{asked.sheet()}\n{command}\n{asked.command(name)}\n"


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
