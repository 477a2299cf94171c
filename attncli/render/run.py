"""A run as blocks: its inputs, its steps, what to take away, the check of its gradients, and what a worked example says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from attncli.core.graph import gradient_id, part_of
from attncli.core.message import N_, Listed, Localized, Message
from attncli.render import document
from attncli.render.document import Entry, Heading, Listing, Paragraph, ShownStep, Steps, Symbol, Tabular, TabularColumn
from attncli.render.view import Item, View

if TYPE_CHECKING:
    from attncli.problems.published import PrintedCheck

INPUTS = Message(N_("Inputs"))
NOTES = Message(N_("Notes"))

_PHASES = {
    "forward": N_("Forward: from the inputs to the result"),
    "backward": N_("Backward: from the loss back to every input"),
    "update": N_("Update: one step of learning"),
}
#: Given arrays that stand among the steps belong to the part that uses them.
_PART = {"upstream": "backward", "target": "forward"}


def page(view: View, *remarks: Message) -> Iterator[document.Block]:
    """A run for a format that is read as a page.

    Parameters
    ----------
    remarks : on the format's own layout, behind the notes
    """
    yield Heading(view.title(), 1)
    for said in (prompt(view), source(view)):
        if said is not None:
            yield Paragraph(said)
    for title, items in parts(view):
        yield Heading(title)
        yield _steps(view, items, aside=title is INPUTS)
    notes = [*ending(view), *remarks]
    if notes:
        yield Heading(NOTES)
        yield Listing(tuple(map(Entry, notes)))
    yield from _verification(view)
    yield from lesson(view)


def parts(view: View) -> Iterator[tuple[Message, list[Item]]]:
    """The inputs, and the steps by part: a heading and its steps, in order."""
    if view.inputs:
        yield INPUTS, list(view.inputs)
    for phase, items in groupby(_with_part(view.steps), key=lambda pair: pair[0]):
        yield Message(_PHASES[phase]), [item for _, item in items]


def _with_part(items: Iterable[Item]) -> Iterator[tuple[str, Item]]:
    for item in items:
        yield _PART.get(item.phase, item.phase), item


def _steps(view: View, items: Iterable[Item], *, aside: bool = False) -> Steps:
    return Steps(tuple(ShownStep(view, item) for item in items), aside)


def ending(view: View) -> tuple[Message, ...]:
    """Notes, what to take away, and warnings of the check."""
    found = view.run.verification
    return (*view.notes, *view.summary, *(found.warnings if found else ()))


def _verification(view: View) -> Iterator[document.Block]:
    """Every checked gradient: the largest relative error, and whether it agrees."""
    found = view.run.verification
    if found is None or not found.checked:
        return
    yield Heading(Message(N_("Checked against finite differences")))
    yield Paragraph(Message(N_("Every input number was moved a little both ways, and the slope of the loss measured.")))
    heads = (N_("Gradient"), N_("Largest relative error"), N_("Verdict"))
    yield Tabular(
        tuple(TabularColumn((Message(head),), is_number=i == 1) for i, head in enumerate(heads)),
        tuple(
            (
                Symbol(view.run.graph.symbol(gradient_id(entry.id))),
                f"{entry.worst:.1e}",
                Message(N_("agrees")) if entry.ok else Message(N_("differs")),
            )
            for entry in found.checked
        ),
        labelled=True,
    )


_KNOWN = {
    "self": N_("{part}: the tokens of one sequence look at one another (self-attention)"),
    "cross": N_("{part}: the tokens being written look at the other sequence (cross-attention)"),
    "ffn": N_("{part}: every token works by itself on what it has gathered (feed-forward)"),
    "norm": N_("{part}: every token is brought to the same size, which the next part can rely on (normalisation)"),
    "final": N_("{part}: one more normalisation behind the blocks, before the logits"),
    "loss": N_("{part}: how far what came out is from what should have come out"),
}


def opened_parts(items: tuple[Item, ...]) -> dict[str, Message]:
    """By step id: what to say above it, because a part of the model begins there on the way forward."""
    out: dict[str, Message] = {}
    part = ""
    for item in items:
        own = part_of(item.id)
        if item.phase not in ("forward", "target") or own == part:
            continue
        part = own
        said = _about(own.removesuffix("."))
        if said is not None:
            out[item.id] = said
    return out


def _about(part: str) -> Message | None:
    kind = re.sub(r"[0-9]+$", "", part.rpartition(".")[2])
    if kind not in _KNOWN:
        return None
    return Message(_KNOWN[kind], part=part)


# A worked example.

_HOW = {
    "carried": N_("rounded values carried on"),
    "truncated": N_("cut off, not rounded"),
    "shape": N_("shape"),
}
_WRONG = N_("wrong in the source")


def prompt(view: View) -> Message | None:
    """The exercise in words."""
    texts = view.run.problem.prompt
    return Localized(texts) if view.lesson is not None and texts else None


def source(view: View) -> Message | None:
    """Where the numbers come from."""
    return None if view.lesson is None else source_line(view.lesson.problem.source)


def source_line(texts: Mapping[str, str]) -> Message | None:
    return Message(N_("Source: {source}"), source=Localized(texts)) if texts else None


def lesson(view: View) -> Iterator[document.Block]:
    """The printed numbers of a worked example, its second run for comparison, and what to notice."""
    lines = tuple(printed(view))
    if lines:
        yield Heading(Message(N_("The numbers in the source")))
        yield Listing(lines)
    items = compared(view)
    if items is not None and view.lesson is not None and view.contrast is not None:
        yield Heading(Message(N_("For comparison")))
        yield Paragraph(Message(N_("The same with {changes}:"), changes=view.lesson.changes))
        yield _steps(view.contrast, items)
        yield from (Paragraph(line) for line in view.contrast.summary if line.kind != "result")
    remark = notice(view)
    if remark is not None:
        yield Heading(Message(N_("What to notice")))
        yield Paragraph(remark)


def printed(view: View) -> Iterator[Entry]:
    """The printed numbers with a tick or a cross; those printed digit for digit as they stand above in one line."""
    checks = view.lesson.checks if view.lesson is not None else ()
    items = {item.id: item for item in (*view.inputs, *view.steps)}
    same = [
        one
        for one in checks
        if one.ok
        and one.how == "rounded"
        and one.step in items
        and " ".join(one.printed.split()) == _digits(items[one.step])
    ]
    if len(same) == len(checks) > 1:
        yield Entry(Message(N_("✓ all {count} exactly as in the source"), count=len(same)), tone="right")
    elif same:
        steps = Listed(one.step for one in same)
        yield Entry(Message(N_("✓ exactly as in the source: {steps}"), steps=steps), tone="right")
    for checked in checks:
        if checked not in same:
            yield from _checked(checked)


def _digits(item: Item) -> str:
    """A step's numbers as they are shown, written as a problem file writes a matrix."""
    heads = ["; ".join(" ".join(map(item.text, row)) for row in block.values) for block in item.panels]
    return " | ".join(heads).replace("−∞", "-inf").replace("∞", "inf")


def _checked(checked: PrintedCheck) -> Iterator[Entry]:
    numbers = "; ".join(line.strip() for line in checked.printed.strip().splitlines())
    line = f"{'✓' if checked.ok else '✗'} {checked.step}: {numbers}"
    tone = "right" if checked.ok else "wrong"
    if checked.how != "rounded" or not checked.ok:
        how = Message(_HOW.get(checked.how, _WRONG))
        yield Entry(Message("{line}  ({how})", line=line, how=how), tone=tone)
    else:
        yield Entry(Message("{line}", line=line), tone=tone)
    if checked.message is not None:
        yield Entry(checked.message)


def compared(view: View) -> Sequence[Item] | None:
    """The steps of the second run."""
    if view.lesson is None or view.contrast is None:
        return None
    return [item for item in view.contrast.steps if not view.lesson.steps or item.id in view.lesson.steps]


def notice(view: View) -> Message | None:
    """What to notice."""
    return Localized(view.lesson.observations) if view.lesson is not None and view.lesson.observations else None
