r"""One number traced back to the inputs: a tree of arithmetic."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from attncli.core.message import N_, Message
from attncli.core.terms import Index
from attncli.locale.fit import fitted, wrap
from attncli.render.names import cell_name
from attncli.render.terminal import Lines
from attncli.render.view import View, in_full

#: Lines after which the rest is left out; a cell of a long chain refers to hundreds.
MOST_LINES = 400
#: Places that a level goes in by, and those that have to be left for its arithmetic.
_INDENT, _ROOM = 4, 16


class Why:
    """The tree of one cell. A cell that was opened before is not opened again."""

    def __init__(self, view: View, console: Console) -> None:
        self.view = view
        self.graph = view.run.graph
        self.encoding = console.encoding
        self.opened: set[tuple[str, Index]] = set()
        self.lines = 0
        self.levels = max(1, (console.width - _ROOM) // _INDENT)
        self.narrow: tuple[str, Index] | None = None
        self.below: tuple[str, Index] | None = None
        self.about = False

    def tree(self, id: str, index: Index, depth: int | None) -> Tree:
        """The tree, as deep as was asked for and as the screen is wide enough for."""
        root = Tree(self._label(id, index), guide_style="dim")
        if depth is None or depth > self.levels:
            self._open(root, id, index, self.levels)
            return root
        self._open(root, id, index, depth)
        self.below, self.narrow = self.narrow, None  # as deep as was asked for
        return root

    def _open(self, tree: Tree, id: str, index: Index, depth: int | None) -> None:
        if id not in self.graph.steps:
            return
        if depth == 0:
            self.narrow = self.narrow or (id, index)
            return
        self.opened.add((id, index))
        step = self.graph.steps[id]
        seen: set[tuple[str, Index]] = set()
        for cell in step.op.terms(step, index, self.view.run.trace.numbers).cells():
            if cell in seen:
                continue
            seen.add(cell)
            self.lines += 1
            if self.lines > MOST_LINES:
                return
            again = cell in self.opened
            branch = tree.add(self._label(*cell, again=again and cell[0] in self.graph.steps))
            if not again:
                self._open(branch, *cell, None if depth is None else depth - 1)

    def _label(self, id: str, index: Index, *, again: bool = False) -> Text:
        """S[1,2] = 1×0 + 2×1 = 2, or for an input the number itself."""
        view = self.view
        name = cell_name(fitted_name(view, id), index, view.layout)
        label = Text(overflow="fold")
        label.append(fitted(name, self.encoding), style="bold")
        if id not in self.graph.steps:
            given = view.say(Message(N_("given")))
            label.append(fitted(f" = {view.show_cell(id, index)}  ({given})", self.encoding))
        elif again:
            shown = view.say(Message(N_("see above")))
            label.append(fitted(f" = {view.show_cell(id, index)}  ({shown})", self.encoding))
        else:
            label.append(fitted(f" = {self._own_arithmetic(id, index)}", self.encoding))
        return label

    def _own_arithmetic(self, id: str, index: Index) -> str:
        view = self.view
        self.about = self.about or view.sign(id, index, view.term(id, index, open_weights=False)) != "="
        return view.cell_arithmetic(id, index, open_weights=False)


def fitted_name(view: View, id: str) -> str:
    """The symbol of a step as text."""
    from attncli.render.formula import as_text

    return as_text(view.run.graph.symbol(id))


def print_why(
    view: View,
    id: str,
    index: Index,
    depth: int | None,
    console: Console,
    further: Callable[[str], str] | None = None,
) -> None:
    """Print the tree of one cell, why there is a ≈ in it, and what was left out.

    Parameters
    ----------
    further : the command for another cell, where nobody has said how deep; so say how to go deeper, where there is more
    """
    why = Why(view, console)
    tree = why.tree(id, index, depth)
    console.print(tree, markup=False, highlight=False)
    if why.about:
        console.print(
            Lines(wrap(fitted(view.say(view.why_about()), why.encoding), console.width).split("\n"), "italic dim")
        )
    for message in in_full(view.run):
        console.print(Lines(wrap(fitted(view.say(message), why.encoding), console.width).split("\n"), "dim"))
    if why.narrow is not None:
        cell = cell_name(why.narrow[0], why.narrow[1], view.layout)
        text = Message(
            N_("… and more, but the screen is too narrow. Go on from {cell}, or widen the window."), cell=cell
        )
        console.print(Text(fitted(view.say(text), why.encoding)), highlight=False)
    if further is not None and why.below is not None:
        text = Message(
            N_("{depth} steps back. Further: --depth {deeper} (or all), or go on from a cell:"),
            depth=depth,
            deeper=2 * (depth or 1),
        )
        console.print(Text(fitted(view.say(text), why.encoding), style="dim"), highlight=False)
        cell = cell_name(why.below[0], why.below[1], view.layout)
        # A command stays on one line, to be copied.
        console.print(Text(f"  {further(cell)}", style="dim"), highlight=False, soft_wrap=True)
    if why.lines > MOST_LINES:
        console.print(
            Text(
                view.say(
                    Message(N_("… and more. Look at fewer steps with --depth, or at a cell nearer to the inputs."))
                )
            ),
            highlight=False,
        )
