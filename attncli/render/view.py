r"""What is to be shown of a run, before any format: names, formulas and texts, but no layout of characters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from attncli.arithmetic import Number, Value
from attncli.core.axes import Axis, show_shape
from attncli.core.graph import Input, Step
from attncli.core.message import ENGLISH, Language, Message
from attncli.core.record import Record
from attncli.core.terms import Index, Term
from attncli.problems.problem import Run
from attncli.render.arithmetic import ABOUT, WHY_ABOUT, WHY_ABOUT_BY_HAND, cell_term, equation, sign
from attncli.render.formula import as_text, put_in
from attncli.render.text import cell_name, names, number_latex, number_text, operands, printable, title_of

if TYPE_CHECKING:
    from attncli.problems.lesson import Lesson


class Panel(Record):
    """One matrix to show: a step's, or one head of it.

    Parameters
    ----------
    values : 2-D array as shown (with tokens as columns transposed already)
    rows, columns : names
    head : its number, counted from 1, or None
    ndim : of the step's own array
    """

    values: Value
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    head: int | None
    as_columns: bool
    ndim: int

    @property
    def title(self) -> Message | None:
        """“Head 2”, where there are heads."""
        return None if self.head is None else Message("Head {number}", number=self.head)

    def index(self, i: int, j: int) -> Index:
        """The index in the step's own array of cell (i, j) as shown."""
        if self.ndim == 1:
            return (j,)
        pair = (j, i) if self.as_columns else (i, j)
        return pair if self.head is None else (self.head - 1, *pair)


class Item(Record):
    """A step or an input, ready to be shown."""

    id: str
    symbol: str
    phase: str
    formula: str
    numbers: str
    inputs: tuple[str, ...]
    values: Value
    panels: tuple[Panel, ...]
    why: Message | None
    decimals: int
    weights: bool
    step: Step | None

    @property
    def name(self) -> str:
        """The symbol as text."""
        return as_text(self.symbol)

    @property
    def formula_text(self) -> str:
        """The formula as text, with the numbers put in where that says more."""
        text = as_text(self.formula)
        return f"{text} = {as_text(self.numbers)}" if self.numbers else text

    @property
    def formula_latex(self) -> str:
        return f"{self.formula} = {self.numbers}" if self.numbers else self.formula

    @property
    def array(self) -> Value:
        """The numbers as shown: with tokens as columns, the last two axes exchanged."""
        as_columns = self.panels[0].as_columns and self.values.ndim > 1
        return np.swapaxes(self.values, -1, -2) if as_columns else self.values

    @property
    def shape(self) -> str:
        """3×2, as shown."""
        return show_shape(self.array.shape)

    def text(self, value: Number) -> str:
        return number_text(value, self.decimals)

    def latex(self, value: Number) -> str:
        return number_latex(value, self.decimals)


class View(Record):
    """A run, ready to be laid out in any format.

    Parameters
    ----------
    inputs, steps : in order
    language : of the texts
    expand : every cell's arithmetic is to be shown
    width : characters a line may have, or None
    full : all lines of a long matrix
    lesson, contrast : of a worked example: what it says beside its steps, and its second run
    """

    run: Run
    inputs: tuple[Item, ...]
    steps: tuple[Item, ...]
    language: Language
    expand: bool = False
    width: int | None = None
    full: bool = False
    lesson: Lesson | None = None
    contrast: View | None = None

    def say(self, message: Message | str) -> str:
        """A message in the view's language."""
        text = (message if isinstance(message, Message) else Message(message)).text(self.language)
        return "\n".join(map(printable, text.split("\n")))

    @property
    def layout(self) -> str:
        """Which way tokens run: "rows" or "columns"."""
        return self.run.problem.layout

    @property
    def is_whole(self) -> bool:
        """Whether every step is shown."""
        return len(self.run.shown) == len(self.run.graph.steps)

    def title(self) -> str:
        """The problem's title, or the model's description."""
        return title_of(self.run.problem, self.language)

    def symbol(self, step_id: str) -> str:
        """The symbol of a step or an input as text."""
        return as_text(self.run.graph.symbol(step_id))

    def arithmetic(self, item: Item) -> Iterator[tuple[str, str]]:
        """Every cell's name and arithmetic: ("S[1,2]", "1×0 + 2×1 = 2")."""
        if item.step is None:
            return
        for panel in item.panels:
            for i, j in np.ndindex(*panel.values.shape):
                index = panel.index(i, j)
                yield self.cell_name(item.id, index), self.cell_arithmetic(item.id, index)[0]

    def cell_arithmetic(self, step_id: str, index: Index, *, open_weights: bool = True) -> tuple[str, str]:
        """The arithmetic of one cell with its numbers and result; and whether they are equal, or about equal."""
        term = self.term(step_id, index, open_weights=open_weights)
        return equation(term, self.show_cell, self.cell_name, self.show_cell(step_id, index), self.run.places(step_id))

    def term(self, step_id: str, index: Index, *, open_weights: bool = True) -> Term:
        """The arithmetic of one cell: that of its own step, or with attention weights down to the powers of e."""
        step, numbers = self.run.graph.steps[step_id], self.run.trace.numbers
        if not open_weights or self.run.trace.arithmetic == "hand":
            return step.terms(numbers)[index]
        return cell_term(step, index, self.run.graph, numbers)

    def sign(self, step_id: str, index: Index, term: Term) -> str:
        """= where the numbers printed in `term` give the printed cell, else ≈."""
        return sign(term, self.show_cell, self.show_cell(step_id, index), self.run.places(step_id))

    def is_about(self, item: Item) -> bool:
        """Whether the arithmetic of any cell of a step is true only with digits that are not printed."""
        if item.step is None or self.run.trace.arithmetic == "exact":
            return False
        cells = np.ndindex(*item.values.shape)
        return any(self.sign(item.id, index, self.term(item.id, index)) == ABOUT for index in cells)

    def why_about(self) -> Message:
        """Why there is a ≈ on the screen."""
        return WHY_ABOUT_BY_HAND if self.run.trace.arithmetic == "hand" else WHY_ABOUT

    def cell_name(self, step_id: str, index: Index) -> str:
        """What one number of a step is called: S[1,2]."""
        return cell_name(self.symbol(step_id), index, self.layout)

    def show_cell(self, step_id: str, index: Index) -> str:
        """One number of a step as text."""
        return number_text(self.run.trace.numbers[step_id][index], self.run.places(step_id))

    def in_language(self, language: Language) -> View:
        """The same view in another language."""
        return self.changed(
            language=language.in_layout(self.layout),
            contrast=None if self.contrast is None else self.contrast.in_language(language),
        )


def view(
    run: Run,
    language: Language = ENGLISH,
    *,
    expand: bool = False,
    width: int | None = None,
    full: bool = False,
    lesson: Lesson | None = None,
) -> View:
    """What is to be shown of `run`; with a lesson, of a worked example."""
    given = items(run, [input_id for input_id in run.graph.inputs if input_id in run.trace.numbers])
    inputs = tuple(item for item in given if item.phase == "input")
    late = [item for item in given if item.phase != "input"]
    own, other = language.in_layout(run.problem.layout), None if lesson is None else lesson.contrast
    contrast = None if other is None else view(other, language, expand=expand, width=width, full=full)
    return View(run, inputs, tuple(_steps(run, late)), own, expand, width, full, lesson, contrast)


def _steps(run: Run, late: Sequence[Item]) -> Iterator[Item]:
    """The steps shown, a target put before the first step that uses it, an upstream gradient before the backward part."""
    waiting = {item.id: item for item in late}
    for step in items(run, run.shown):
        is_back = step.phase == "backward"
        due = [one.id for one in waiting.values() if is_back or (one.phase == "target" and one.id in step.inputs)]
        yield from map(waiting.pop, due)
        yield step
    if len(run.shown) == len(run.graph.steps):
        yield from waiting.values()


def items(run: Run, ids: Sequence[str]) -> tuple[Item, ...]:
    """Steps or inputs of a run, ready to be shown."""
    operand = operands(run.graph)
    return tuple([_item(run, run.graph.node(node_id), operand) for node_id in ids])


def _item(run: Run, node: Step | Input, operand: Callable[[str, str], str]) -> Item:
    values, as_columns = run.trace.numbers[node.id], run.problem.layout == "columns"
    step = node if isinstance(node, Step) else None
    formula = numbers = ""
    if step is not None:
        symbols = [operand(input_id, step.id) for input_id in step.inputs]
        formula, numbers = put_in(step.formula(as_columns), symbols), put_in(step.numbers() or "", symbols)
    return Item(
        node.id,
        node.symbol,
        node.phase,
        formula,
        numbers if numbers != formula else "",
        step.inputs if step else (),
        values,
        tuple(panels_of(values, node.axes, run.graph.labels, as_columns=as_columns)),
        node.why,
        run.places(node.id),
        bool(step and step.is_attention),
        step,
    )


def panels_of(
    values: Value, axes: tuple[Axis, ...], labels: Mapping[str, tuple[str, ...]], *, as_columns: bool
) -> Iterator[Panel]:
    """The matrices of an array, one for each head; `as_columns`: with tokens as columns."""
    if values.ndim == 1:
        yield Panel(values[None, :], ("",), names(axes[0], labels), None, False, 1)
        return
    rows, columns = names(axes[-2], labels), names(axes[-1], labels)
    for number, head in enumerate(values if values.ndim == 3 else [values], start=1):
        own = number if values.ndim == 3 else None
        if as_columns:
            yield Panel(np.swapaxes(head, 0, 1), columns, rows, own, True, values.ndim)
        else:
            yield Panel(head, rows, columns, own, False, values.ndim)
