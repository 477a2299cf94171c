"""A run as blocks: its inputs, its steps, what to take away, the check of its gradients, and what a worked example says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from attncli.core.graph import gradient_id, part_of
from attncli.core.message import N_, Listed, Localized, Message
from attncli.core.terms import Index
from attncli.locale.fit import NO_BREAK
from attncli.render.arithmetic import ABOUT
from attncli.render.document import (
    Block,
    Branch,
    Code,
    Gap,
    Heading,
    ListEntry,
    Listing,
    Paragraph,
    ShownStep,
    Steps,
    Symbol,
    Tabular,
    TabularColumn,
)
from attncli.render.summary import in_full, remarks, summary
from attncli.render.text import cell_name
from attncli.render.view import Item, View

if TYPE_CHECKING:
    from attncli.core.gradient import Verification
    from attncli.problems.lesson import PrintedCheck

INPUTS = Message("Inputs")
NOTES = Message("Notes")

_PHASES = {
    "forward": N_("Forward: from the inputs to the result"),
    "backward": N_("Backward: from the loss back to every input"),
    "update": N_("Update: one step of learning"),
}


def page(view: View, *own: Message) -> Iterator[Block]:
    """A run for a format that is read as a page.

    Parameters
    ----------
    own : of the format, on its layout; behind the notes
    """
    yield Heading(view.title(), 1)
    for said in (prompt(view), source(view)):
        if said is not None:
            yield Paragraph(said)
    for title, items in parts(view):
        yield Heading(title)
        yield Steps(shown_steps(view, items), aside=title is INPUTS)
    notes = [*ending(view), *own]
    if notes:
        yield Heading(NOTES)
        yield Listing(tuple(map(ListEntry, notes)))
    yield from _verification(view)
    yield from lesson(view)


def parts(view: View) -> Iterator[tuple[Message, list[Item]]]:
    """The inputs, and the steps by part: a heading and its steps, in order."""
    if view.inputs:
        yield INPUTS, list(view.inputs)
    for phase, items in groupby(view.steps, _phase):
        yield Message(_PHASES[phase]), list(items)


def _phase(item: Item) -> str:
    """The part a step belongs to; a given array among them, to the part that uses it."""
    return {"upstream": "backward", "target": "forward"}.get(item.phase, item.phase)


def shown_steps(view: View, items: Iterable[Item]) -> tuple[ShownStep, ...]:
    """Steps or inputs with their meaning, numbered as they stand among the steps of the run."""
    counted = [item.id for item in view.steps if item.step is not None]
    numbers = {step_id: number for number, step_id in enumerate(counted, start=1)}
    return tuple(ShownStep(view, item, numbers.get(item.id), item.why) for item in items)


def ending(view: View) -> tuple[Message, ...]:
    """Notes, what to take away, and warnings of the check."""
    found = view.run.verification
    return (*remarks(view.run), *(found.warnings if found else ()))


# The same run on a screen, where every line counts.

#: Cells from which on it is said how many lines of arithmetic there will be.
_MANY_CELLS = 100
#: Steps whose shapes are listed; of a longer calculation the last one of each part.
_MOST_SHAPES = 40
#: Characters from which a reason is long enough not to be given twice.
_LONG = 120


def screen(view: View, *, titled: bool = True) -> Iterator[Block]:
    """A run for a screen, from top to bottom; without the title where something else has said it."""
    for piece in screens(view, titled=titled):
        yield from piece


def screens(view: View, *, titled: bool = True) -> Iterator[Iterator[Block]]:
    """The same in pieces that can be shown one after another: the beginning, every step, the ending."""
    yield _beginning(view, titled=titled)
    given: dict[str, str] = {}
    opened = opened_parts(view.steps) if view.is_whole else {}
    for phase, steps in groupby(shown_steps(view, view.steps), lambda step: _phase(step.item)):
        heading: Message | None = Message(_PHASES[phase])
        for step in steps:
            yield _one_step(step.changed(why=_reason(step, given)), heading, opened.get(step.item.id))
            heading = None
    yield _closing(view)


def _beginning(view: View, *, titled: bool) -> Iterator[Block]:
    if titled:
        yield Heading(view.title(), 1)
    asked = prompt(view)
    if asked is not None:
        yield Paragraph(asked)
    if view.inputs and view.is_whole:
        yield Gap()
        yield Steps(tuple(ShownStep(view, item) for item in view.inputs), aside=True)
        yield Paragraph(_shapes(view), "aside")
    if view.expand:
        if any(map(view.is_about, view.steps)):
            yield Paragraph(view.why_about(), "reason")
        cells = sum(item.values.size for item in view.steps if item.step is not None)
        if cells > _MANY_CELLS:
            many = N_("The arithmetic of {count} cells follows. For one step only: --step ID.")
            yield Paragraph(Message(many, count=f"{cells:,}"), "aside")


def _shapes(view: View) -> Message:
    steps = [item for item in view.steps if item.phase == "forward"]
    results = " → ".join(_with_parts(steps if len(steps) <= _MOST_SHAPES else _last_of_parts(steps)))
    inputs = ", ".join(_with_parts(view.inputs))
    return Message("Shapes: {inputs} → {results}", inputs=inputs, results=results)


def _with_parts(items: Sequence[Item]) -> Iterator[str]:
    """Names and shapes; where a part of the model begins (self., norm1.) it is named."""
    part = ""
    for item in items:
        own = item.id.rpartition(".")[0]
        name = f"{own}: {item.name}" if own and own != part else item.name
        part = own
        yield f"{name}{NO_BREAK}{item.shape}"


def _last_of_parts(items: Sequence[Item]) -> list[Item]:
    parts = [item.id.rpartition(".")[0] for item in items]
    return [item for item, part, following in zip(items, parts, [*parts[1:], None], strict=True) if part != following]


def _one_step(step: ShownStep, part: Message | None, opened: Message | None) -> Iterator[Block]:
    """A step below what begins with it: a part of the calculation, a part of the model."""
    if part is not None:
        yield Heading(part)
    if opened is not None:
        yield Gap()
        yield Paragraph(opened, "part")
    yield Steps((step,))


def _reason(step: ShownStep, given: dict[str, str]) -> Message | None:
    """Why a step is there: the first time in full; a long reason that comes again points to where it was given."""
    if step.why is None or len(step.why.template) < _LONG:
        return step.why
    first = given.setdefault(step.why.template, step.item.id)
    return step.why if first == step.item.id else Message("For the same reason as at {step}.", step=first)


def _closing(view: View) -> Iterator[Block]:
    found = view.run.verification
    lines = tuple(remarks(view.run))
    if lines or found is not None:
        yield Gap()
    for line in lines:
        yield Paragraph(line, "strong" if line.kind in ("result", "loss") else "")
    if found is not None:
        yield from _errors(found, expand=view.expand)
    yield from lesson(view)
    where = source(view)
    if where is not None:
        yield Gap()
        yield Paragraph(where, "aside")


def _errors(found: Verification, *, expand: bool) -> Iterator[Block]:
    """Every gradient beside its finite difference: the worst relative error by input, and entry by entry."""
    checked = N_("Checked against finite differences (every input moved a little both ways):")
    yield Paragraph(Message(checked), "strong")
    for entry in found.checked:
        fields = {"mark": "✓" if entry.ok else "✗", "id": f"G_{entry.id}", "worst": f"{entry.worst:.1e}"}
        line = Message("{mark} {id}: largest relative error {worst}", **fields)
        yield Paragraph(line, "right" if entry.ok else "wrong")
        if expand or not entry.ok:
            for index, error in np.ndenumerate(entry.error):
                yield Paragraph(f"  {cell_name(f'G_{entry.id}', index)}  {error:.1e}")
    yield from (Paragraph(warning, "remark") for warning in found.warnings)


def _verification(view: View) -> Iterator[Block]:
    """Every checked gradient: the largest relative error, and whether it agrees."""
    found = view.run.verification
    if found is None or not found.checked:
        return
    yield Heading(Message("Checked against finite differences"))
    yield Paragraph(Message("Every input number was moved a little both ways, and the slope of the loss measured."))
    heads = (N_("Gradient"), N_("Largest relative error"), N_("Verdict"))
    yield Tabular(
        tuple(TabularColumn((Message(head),), is_number=i == 1) for i, head in enumerate(heads)),
        tuple(
            (
                Symbol(view.run.graph.symbol(gradient_id(entry.id))),
                f"{entry.worst:.1e}",
                Message("agrees") if entry.ok else Message("differs"),
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
    "final": N_("{part}: one more normalisation after the blocks, before the logits"),
    "loss": N_("{part}: how far the result is from what it should be"),
}


def opened_parts(items: tuple[Item, ...]) -> dict[str, Message]:
    """By step id: what to say above it, because a part of the model begins there on the way forward."""
    forward = [item for item in items if item.phase in ("forward", "target")]
    out: dict[str, Message] = {}
    for own, (first, *_) in groupby(forward, lambda item: part_of(item.id).removesuffix(".")):
        kind = own.rpartition(".")[2].rstrip("0123456789")
        if kind in _KNOWN:
            out[first.id] = Message(_KNOWN[kind], part=own)
    return out


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
    return Message("Source: {source}", source=Localized(texts)) if texts else None


def lesson(view: View) -> Iterator[Block]:
    """The printed numbers of a worked example, its second run for comparison, and what to notice."""
    lines = tuple(printed(view))
    if lines:
        yield Heading(Message("The numbers in the source"))
        yield Listing(lines)
    items = compared(view)
    if items is not None and view.lesson is not None and view.contrast is not None:
        yield Heading(Message("For comparison"))
        yield Paragraph(Message("The same with {changes}:", changes=view.lesson.changes))
        yield Steps(tuple(ShownStep(view.contrast, item, why=item.why) for item in items))
        yield from (Paragraph(line) for line in summary(view.contrast.run) if line.kind != "result")
    remark = notice(view)
    if remark is not None:
        yield Heading(Message("What to notice"))
        yield Paragraph(remark)


def printed(view: View) -> Iterator[ListEntry]:
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
        yield ListEntry(Message("✓ all {count} exactly as in the source", count=len(same)), tone="right")
    elif same:
        steps = Listed(one.step for one in same)
        yield ListEntry(Message("✓ exactly as in the source: {steps}", steps=steps), tone="right")
    for checked in checks:
        if checked not in same:
            yield from _checked(checked)


def _digits(item: Item) -> str:
    """A step's numbers as they are shown, written as a problem file writes a matrix."""
    heads = ["; ".join(" ".join(map(item.text, row)) for row in block.values) for block in item.panels]
    return " | ".join(heads).replace("−∞", "-inf").replace("∞", "inf")


def _checked(checked: PrintedCheck) -> Iterator[ListEntry]:
    numbers = "; ".join(line.strip() for line in checked.printed.strip().splitlines())
    line = f"{'✓' if checked.ok else '✗'} {checked.step}: {numbers}"
    tone = "right" if checked.ok else "wrong"
    how = Message(_HOW.get(checked.how, _WRONG))
    is_plain = checked.how == "rounded" and checked.ok
    yield ListEntry(line if is_plain else Message("{line}  ({how})", line=line, how=how), tone=tone)
    if checked.message is not None:
        yield ListEntry(checked.message)


def compared(view: View) -> Sequence[Item] | None:
    """The steps of the second run."""
    if view.lesson is None or view.contrast is None:
        return None
    return [item for item in view.contrast.steps if not view.lesson.steps or item.id in view.lesson.steps]


def notice(view: View) -> Message | None:
    """What to notice."""
    return Localized(view.lesson.observations) if view.lesson is not None and view.lesson.observations else None


# One number traced back to the inputs.

#: Lines after which the rest is left out; a cell of a long chain refers to hundreds.
MOST_LINES = 400
#: Places that a level goes in by, and those that have to be left for its arithmetic.
_INDENT, _ROOM = 4, 16


def tree(
    view: View, step_id: str, index: Index, depth: int | None, width: int, further: Callable[[str], str] | None = None
) -> Iterator[Block]:
    """The tree of one cell, why there is a ≈ in it, and what was left out.

    Parameters
    ----------
    depth : how many steps to go back; None: all
    width : of the screen, which says how many levels it has room for
    further : the command for another cell, where nobody has said how deep; so say how to go deeper, where there is more
    """
    room = max(1, (width - _ROOM) // _INDENT)
    levels = room if depth is None else min(depth, room)
    tree = _Tree(view)
    yield tree.branch(step_id, index, levels)
    if tree.is_about:
        yield Paragraph(view.why_about(), "reason")
    yield from (Paragraph(message, "aside") for message in in_full(view.run))
    if tree.deeper is not None:
        cell = cell_name(*tree.deeper, view.layout)
        if levels != depth:
            narrow = N_("… and more, but the screen is too narrow. Go on from {cell}, or widen the window.")
            yield Paragraph(Message(narrow, cell=cell))
        elif further is not None:
            said = N_("{depth} steps back. Further: --depth {deeper} (or all), or go on from a cell:")
            yield Paragraph(Message(said, depth=depth, deeper=2 * (depth or 1)), "aside")
            yield Code(f"  {further(cell)}", "aside")
    if tree.lines > MOST_LINES:
        yield Paragraph(Message("… and more. Look at fewer steps with --depth, or at a cell nearer to the inputs."))


class _Tree:
    """The tree of one cell. A cell that was opened before is not opened again."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.graph = view.run.graph
        self.opened: set[tuple[str, Index]] = set()
        self.lines = 0
        #: The first cell that was not opened because it is too deep.
        self.deeper: tuple[str, Index] | None = None
        self.is_about = False

    def branch(self, step_id: str, index: Index, levels: int) -> Branch:
        """A cell with its arithmetic, or for an input the number itself, and the cells it comes from."""
        view = self.view
        name, value = cell_name(view.symbol(step_id), index, view.layout), view.show_cell(step_id, index)
        if step_id not in self.graph.steps:
            return Branch(name, f" = {value}  ({view.say(N_('given'))})")
        if (step_id, index) in self.opened:
            return Branch(name, f" = {value}  ({view.say(N_('see above'))})")
        arithmetic, relation = view.cell_arithmetic(step_id, index, open_weights=False)
        self.is_about = self.is_about or relation == ABOUT
        return Branch(name, f" = {arithmetic}", tuple(self.below(step_id, index, levels)))

    def below(self, step_id: str, index: Index, levels: int) -> Iterator[Branch]:
        if levels == 0:
            self.deeper = self.deeper or (step_id, index)
            return
        self.opened.add((step_id, index))
        step = self.graph.steps[step_id]
        for below in dict.fromkeys(step.terms(self.view.run.trace.numbers)[index].cells()):
            self.lines += 1
            if self.lines > MOST_LINES:
                return
            yield self.branch(*below, levels - 1)
