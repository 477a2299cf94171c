r"""One number traced back to the inputs: a tree of arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attncli.core.message import N_, Message
from attncli.core.terms import Index
from attncli.render.document import Block, Branch, Code, Paragraph
from attncli.render.summary import in_full
from attncli.render.text import cell_name
from attncli.render.view import View

#: Lines after which the rest is left out; a cell of a long chain refers to hundreds.
MOST_LINES = 400
#: Places that a level goes in by, and those that have to be left for its arithmetic.
_INDENT, _ROOM = 4, 16


def page(
    view: View,
    step_id: str,
    index: Index,
    depth: int | None,
    *,
    width: int,
    further: Callable[[str], str] | None = None,
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
        term = view.term(step_id, index, open_weights=False)
        self.is_about = self.is_about or view.sign(step_id, index, term) != "="
        arithmetic = view.cell_arithmetic(step_id, index, open_weights=False)
        return Branch(name, f" = {arithmetic}", tuple(self.below(step_id, index, levels)))

    def below(self, step_id: str, index: Index, levels: int) -> Iterator[Branch]:
        if levels == 0:
            self.deeper = self.deeper or (step_id, index)
            return
        self.opened.add((step_id, index))
        step = self.graph.steps[step_id]
        for cell in dict.fromkeys(step.terms(self.view.run.trace.numbers)[index].cells()):
            self.lines += 1
            if self.lines > MOST_LINES:
                return
            yield self.branch(*cell, levels - 1)
