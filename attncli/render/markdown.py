"""Markdown with LaTeX blocks, as GitHub, Jupyter, Obsidian and KaTeX show it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from attncli.core.message import N_, Message
from attncli.render import lesson
from attncli.render.equations import about, arithmetic, equation
from attncli.render.formula import as_latex
from attncli.render.run import (
    GRADIENT,
    INPUTS,
    NOTES,
    VERDICT,
    VERIFICATION,
    WORST,
    clean,
    ending,
    head,
    is_named,
    parts,
    verified,
)
from attncli.render.view import Block, Item, View

#: Characters up to which an equation stands on one line.
_WIDTH = 96
_SPECIAL = re.compile(r"[\\`*\[\]|~]|(?<![^\W_])_|_(?![^\W_])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"}
_AT_START = re.compile(r"^([#+=-]|\d+(?=[.)]))")


def document(view: View) -> str:
    """The run as a Markdown document."""
    return "\n\n".join(_blocks(view)) + "\n"


def _blocks(view: View) -> Iterator[str]:
    yield f"# {escaped(view.title())}"
    for message in (lesson.prompt(view), lesson.source(view)):
        if message is not None:
            yield escaped(view.say(message))
    if view.inputs:
        yield f"## {view.say(INPUTS)}"
        for item in view.inputs:
            yield from _item(view, item)
    for title, items in parts(view):
        yield f"## {view.say(title)}"
        for item in items:
            yield from _item(view, item)
    lines = [view.say(message) for message in (*ending(view), *about(view, _WIDTH))]
    if lines:
        yield f"## {view.say(NOTES)}"
        yield "\n".join(f"- {escaped(line)}" for line in lines)
    yield from _verification(view)
    yield from _lesson(view)


def _lesson(view: View) -> Iterator[str]:
    """The printed numbers of a worked example, its second run, and what to notice."""
    lines = [view.say(message) for _, message in lesson.printed(view)]
    if lines:
        yield f"## {view.say(lesson.PRINTED)}"
        yield "\n".join(f"- {escaped(line)}" for line in lines)
    compared = lesson.compared(view)
    if compared is not None and view.contrast is not None:
        changes, steps, said = compared
        yield f"## {view.say(lesson.COMPARISON)}"
        yield escaped(view.say(changes))
        for item in steps:
            yield from _item(view.contrast, item)
        yield from (escaped(view.say(line)) for line in said)
    notice = lesson.notice(view)
    if notice is not None:
        yield f"## {view.say(lesson.NOTICE)}"
        yield escaped(view.say(notice))


def _item(view: View, item: Item) -> Iterator[str]:
    id = "" if item.id == item.symbol else f" · {code(item.id)}"
    yield f"### ${as_latex(item.symbol)}${id} · {item.shape}"
    if item.why is not None:
        yield escaped(view.say(item.why))
    for block in item.blocks:
        if block.head is not None:
            yield f"#### {view.say(head(block))}"
        yield f"$$\n{equation(view, item, block, _WIDTH)}\n$$"
        if is_named(view, item):
            yield _table(view, item, block)
        if view.expand and item.step is not None:
            yield "\n".join(f"- ${line}$" for line in arithmetic(view, item, block))


def _table(view: View, item: Item, block: Block) -> str:
    """The numbers with the names of their rows and columns."""
    named = any(block.rows)
    lines = [_row(([""] if named else []) + [escaped(name) for name in block.columns])]
    lines.append(_row((["---"] if named else []) + ["---:"] * len(block.columns)))
    for name, row in zip(block.rows, block.values, strict=True):
        numbers = [item.text(value) for value in row]
        lines.append(_row([f"**{escaped(name)}**" if name else "", *numbers] if named else numbers))
    return "\n".join(lines)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _verification(view: View) -> Iterator[str]:
    rows = list(verified(view))
    if not rows:
        return
    yield f"## {view.say(VERIFICATION)}"
    yield view.say(Message(N_("Every input number was moved a little both ways, and the slope of the loss measured.")))
    lines = [_row([view.say(word) for word in (GRADIENT, WORST, VERDICT)]), _row(["---", "---:", "---"])]
    lines += [_row([f"${as_latex(symbol)}$", worst, view.say(verdict)]) for symbol, worst, verdict in rows]
    yield "\n".join(lines)


def escaped(text: str) -> str:
    """Text in which nothing is Markdown, HTML or the start of a formula."""
    text = re.sub("[&<>$]", lambda found: _ENTITIES[found[0]], clean(text))
    text = _SPECIAL.sub(lambda found: f"\\{found[0]}", text)
    return _AT_START.sub(lambda found: found[1] + "\\" if found[1].isdigit() else f"\\{found[1]}", text)


def code(text: str) -> str:
    """Text as it is, in a code span."""
    ticks = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    return f"{ticks} {text} {ticks}" if "`" in text else f"{ticks}{text}{ticks}"
