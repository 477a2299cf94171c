r"""What is to be shown of a run, before any format: names, formulas and texts, but no layout of characters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from attncli.arithmetic import Number, Value
from attncli.core.axes import Axis, show_shape
from attncli.core.graph import Input, Step, first_not_finite
from attncli.core.message import ENGLISH, N_, Language, Listed, Message
from attncli.core.record import Record
from attncli.core.terms import Index, Term
from attncli.problems.problem import Run
from attncli.render.formula import as_text, put_in
from attncli.render.text import (
    SIGNIFICANT,
    cell_name,
    is_cut,
    localized,
    names,
    number_latex,
    number_text,
    operands,
    printable,
)

if TYPE_CHECKING:
    from attncli.problems.lesson import Lesson


class Panel(Record):
    """One matrix to show: a step's, or one head of it.

    Parameters
    ----------
    values : 2-D array as shown (with tokens as columns it is turned already)
    rows, columns : names
    head : its number, counted from 1, or None
    indices : for a cell (i, j) of `values`, its index in the step's array
    """

    values: Value
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    head: int | None
    turned: bool
    ndim: int

    @property
    def title(self) -> Message | None:
        """“Head 2”, where there are heads."""
        return None if self.head is None else Message("Head {number}", number=self.head)

    def index(self, i: int, j: int) -> Index:
        """The index in the step's own array of cell (i, j) as shown."""
        if self.ndim == 1:
            return (j,)
        pair = (j, i) if self.turned else (i, j)
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
        turned = self.panels[0].turned and self.values.ndim > 1
        return np.swapaxes(self.values, -1, -2) if turned else self.values

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
    notes, summary : sentences
    language : of the texts
    expand : every cell's arithmetic is to be shown
    layout : "rows" or "columns": which way tokens run
    width : characters a line may have, or None
    lesson, contrast : of a worked example: what it says beside its steps, and its second run
    """

    run: Run
    inputs: tuple[Item, ...]
    steps: tuple[Item, ...]
    notes: tuple[Message, ...]
    summary: tuple[Message, ...]
    language: Language
    expand: bool = False
    layout: str = "rows"
    width: int | None = None
    full: bool = False
    lesson: Lesson | None = None
    contrast: View | None = None

    def say(self, message: Message | str) -> str:
        """A message in the view's language."""
        text = (message if isinstance(message, Message) else Message(message)).text(self.language)
        return "\n".join(map(printable, text.split("\n")))

    @property
    def is_whole(self) -> bool:
        """Whether every step is shown."""
        return len(self.run.shown) == len(self.run.graph.steps)

    def title(self) -> str:
        """The problem's title, or the model's description."""
        from attncli import models

        own = localized(self.run.problem.title, self.language.code)
        return printable(" ".join(own.split())) or self.say(models.get(self.run.problem.model).text)

    def symbol(self, step_id: str) -> str:
        """The symbol of a step or an input as text."""
        return as_text(self.run.graph.symbol(step_id))

    def arithmetic(self, item: Item) -> Iterator[tuple[str, str]]:
        """Every cell's name and arithmetic: ("S[1,2]", "1×0 + 2×1 = 2")."""
        if item.step is None:
            return
        for block in item.panels:
            for i, j in np.ndindex(*block.values.shape):
                index = block.index(i, j)
                yield cell_name(item.name, index, self.layout), self.cell_arithmetic(item.id, index)

    def cell_arithmetic(self, id: str, index: Index, *, open_weights: bool = True) -> str:
        """The arithmetic of one cell with its numbers and result; attention weights down to the powers of e."""
        from attncli.render.arithmetic import term_text

        term, result = self.term(id, index, open_weights=open_weights), self.show_cell(id, index)
        left = printable(term_text(term, self.show_cell))
        if left != result:
            return f"{left} {self.sign(id, index, term)} {result}"
        if term.kind != "cell":
            return left
        source, place = term.place  # a number taken over from another step: 1.7321 = 1.7321 would say nothing
        return f"{cell_name(self.symbol(source), place, self.layout)} = {result}"

    def term(self, id: str, index: Index, *, open_weights: bool = True) -> Term:
        """The arithmetic of one cell: that of its own step, or with attention weights down to the powers of e."""
        from attncli.render.arithmetic import cell_term

        step, numbers = self.run.graph.steps[id], self.run.trace.numbers
        by_hand = not open_weights or self.run.trace.arithmetic == "hand"
        return cell_term(step, index, self.run.graph, numbers, by_hand=by_hand)

    def sign(self, id: str, index: Index, term: Term) -> str:
        """= where the numbers printed in `term` give the printed cell, else ≈."""
        from attncli.render.arithmetic import sign

        return sign(term, self.show_cell, self.show_cell(id, index), self.run.places(id))

    def is_about(self, item: Item, *, open_weights: bool = True) -> bool:
        """Whether the arithmetic of any cell of a step is true only with digits that are not printed."""
        if item.step is None or self.run.trace.arithmetic == "exact":
            return False
        return any(
            self.sign(item.id, index, self.term(item.id, index, open_weights=open_weights)) != "="
            for index in np.ndindex(*item.values.shape)
        )

    def why_about(self) -> Message:
        """Why there is a ≈ on the screen."""
        from attncli.render.arithmetic import WHY_ABOUT, WHY_ABOUT_BY_HAND

        return WHY_ABOUT_BY_HAND if self.run.trace.arithmetic == "hand" else WHY_ABOUT

    def show_cell(self, id: str, index: Index) -> str:
        """One number of a step as text."""
        return number_text(self.run.trace.numbers[id][index], self.run.places(id))

    def in_language(self, language: Language) -> View:
        """The same view in another language."""
        return self.changed(
            language=language.with_columns() if self.layout == "columns" else language,
            contrast=None if self.contrast is None else self.contrast.in_language(language),
        )


def view(
    run: Run,
    language: Language = ENGLISH,
    *,
    expand: bool = False,
    layout: str = "rows",
    width: int | None = None,
    full: bool = False,
    lesson: Lesson | None = None,
) -> View:
    """What is to be shown of `run`; with a lesson, of a worked example."""
    turned = layout == "columns"
    graph, trace = run.graph, run.trace
    operand = operands(graph)
    inputs = tuple(
        _item(run, graph.inputs[id], turned, operand)
        for id in graph.inputs
        if id in trace.numbers and graph.inputs[id].phase == "input"
    )
    late = {
        id: _item(run, graph.inputs[id], turned, operand)
        for id in graph.inputs
        if graph.inputs[id].phase != "input" and id in trace.numbers
    }
    steps = _with_late_inputs(run, late, turned, operand)
    return View(
        run,
        inputs,
        steps,
        tuple(graph.notes),
        tuple(summary(run)),
        language.with_columns() if turned else language,
        expand,
        layout,
        width,
        full,
        lesson,
        None
        if lesson is None or lesson.contrast is None
        else view(lesson.contrast, language, expand=expand, layout=layout, width=width, full=full),
    )


def items(run: Run, ids: Sequence[str], *, turned: bool) -> tuple[Item, ...]:
    """Steps or inputs of a run, ready to be shown."""
    operand = operands(run.graph)
    return tuple([_item(run, run.graph.node(id), turned, operand) for id in ids])


def _with_late_inputs(
    run: Run, late: dict[str, Item], turned: bool, operand: Callable[[str, str], str]
) -> tuple[Item, ...]:
    """The steps shown, a target put before the first step that uses it, an upstream gradient before the backward part."""
    items: list[Item] = []
    waiting = dict(late)
    for id in run.shown:
        step = run.graph.steps[id]
        for name, item in list(waiting.items()):
            if step.phase == "backward" or (name in step.inputs and item.phase == "target"):
                items.append(waiting.pop(name))
        items.append(_item(run, step, turned, operand))
    return tuple([*items, *waiting.values()] if len(run.shown) == len(run.graph.steps) else items)


def _item(run: Run, node: Step | Input, turned: bool, operand: Callable[[str, str], str]) -> Item:
    values = run.trace.numbers[node.id]
    step = node if isinstance(node, Step) else None
    formula = numbers = ""
    if step is not None:
        symbols = [operand(id, step.id) for id in step.inputs]
        formula = put_in(step.formula(turned), symbols)
        with_numbers = put_in(step.numbers() or "", symbols)
        numbers = with_numbers if with_numbers != formula else ""
    return Item(
        node.id,
        node.symbol,
        node.phase,
        formula,
        numbers,
        step.inputs if step else (),
        values,
        tuple(panels_of(values, node.axes, run.graph.labels, turned)),
        node.why,
        run.places(node.id),
        bool(step and step.is_attention),
        step,
    )


def panels_of(
    values: Value, axes: tuple[Axis, ...], labels: Mapping[str, tuple[str, ...]], turned: bool
) -> Iterator[Panel]:
    if values.ndim == 1:
        yield Panel(values[None, :], ("",), names(axes[0], labels), None, False, 1)
        return
    rows, columns = names(axes[-2], labels), names(axes[-1], labels)
    heads = values if values.ndim == 3 else [values]
    for number, head in enumerate(heads, start=1):
        own = number if values.ndim == 3 else None
        if turned:
            yield Panel(np.swapaxes(head, 0, 1), columns, rows, own, True, values.ndim)
        else:
            yield Panel(head, rows, columns, own, False, values.ndim)


def summary(run: Run) -> Iterator[Message]:
    """What to take away, from the numbers of the run."""
    output = run.graph.output
    if output in run.shown and run.trace.numbers[output].ndim == 2 and run.trace.numbers[output].size <= 24:
        cells = [[number_text(v, run.places(output)) for v in row] for row in run.trace.numbers[output]]
        # Exact numbers have spaces inside: “1 - √2 1” could be two numbers or three.
        between = ", " if any(" " in cell for row in cells for cell in row) else " "
        rows = "; ".join(between.join(row) for row in cells)
        yield Message("Result: {output} = {rows}", output=output, rows=rows).of("result")
    loss = run.graph.loss
    if loss is not None and loss in run.shown and len(run.shown) > 1:
        value = number_text(run.trace.numbers[loss][0, 0], run.places(loss))
        yield Message("Loss: {id} = {value}", id=loss, value=value).of("loss")
    yield from _carried(run)
    lost = list(_lost(run))
    yield from lost or _not_finite(run)
    yield from _beyond(run)
    yield from _tiny(run)


def in_full(run: Run) -> Iterator[Message]:
    """That the source of these numbers carries rounded ones on, and this run does not."""
    carried = any(run.problem.how.get(id) == "carried" for id in run.shown)
    if carried and run.full is None and run.trace.arithmetic == "floating":
        yield Message(
            "Worked out here with all digits. The source carries rounded values on: --carry gives its digits."
        )


def _carried(run: Run) -> Iterator[Message]:
    """Where carrying rounded values changes a printed digit."""
    if run.full is None:
        yield from in_full(run)
        return
    for id in run.shown:
        carried, full = run.trace.numbers[id], run.full.numbers[id]
        for index in np.ndindex(carried.shape):
            ours, theirs = (number_text(v[index], run.places(id)) for v in (carried, full))
            if _filled(ours) != _filled(theirs):
                yield Message(
                    "{cell} is {carried} here because rounded values were carried on; in full precision it is {full}."
                    " Both are right answers on paper.",
                    cell=cell_name(id, index, run.problem.layout),
                    carried=ours,
                    full=theirs,
                )
                return


def _filled(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _lost(run: Run) -> Iterator[Message]:
    """Rows without a value, and how they lost it: 0/0, or ∞/∞."""
    for id in run.shown:
        step = run.graph.steps[id]
        values = run.trace.numbers[id]
        if not step.is_attention or values.dtype != np.float64 or not np.isnan(values).any():
            continue
        totals = run.trace.numbers[step.inputs[1]]
        without = np.isnan(values).any(axis=-1, keepdims=True)
        for lost, why in (
            (
                without & (totals == 0),
                N_(
                    "{Row} {which}: lost. Every e^x there became 0, so the sum is 0, and 0/0 has no value (NaN)."
                    " The maximum that was subtracted is far above everything visible."
                ),
            ),
            (
                without & np.isinf(totals),
                N_(
                    "{Row} {which}: lost. e^x has grown to ∞ there, and ∞/∞ has no value (NaN)."
                    " Subtracting each {row}'s maximum first prevents it."
                ),
            ),
        ):
            rows = sorted({int(index[-2]) + 1 for index in np.argwhere(lost)})
            if rows:
                yield Message(why, which=Listed(rows))


def _not_finite(run: Run) -> Iterator[Message]:
    """Where the numbers stop being finite, and why."""
    lost = first_not_finite(run.trace)
    if lost is None:
        return
    cell = cell_name(lost.step.id, lost.index, run.problem.layout)
    value = number_text(lost.value, 0)
    if lost.overflow:
        text = N_(
            "{cell} = {value} is the first number that is not finite. It is larger than a float64 can be (about 1.8·10^308)"
            " or was divided by 0, and nothing that follows from it can be relied on."
        )
    else:
        text = N_(
            "{cell} = {value} is the first number that is not finite: 0/0, ∞ − ∞ and the like have no value. Nothing that"
            " follows from it can be relied on."
        )
    yield Message(text, cell=cell, value=value)


def _beyond(run: Run) -> Iterator[Message]:
    """More decimals asked for than a float64 holds."""
    for id in run.shown:
        values = run.trace.numbers[id]
        if values.dtype == np.float64 and is_cut(values, run.places(id)):
            yield Message(
                "Numbers are shown to {digits} significant digits: a float64 holds no more, and rounding on the way may"
                " have cost some of those. For exact results: --exact.",
                digits=SIGNIFICANT,
            )
            return


def _tiny(run: Run) -> Iterator[Message]:
    """Numbers that are not 0 but look like it."""
    for id in run.shown:
        values = run.trace.numbers[id]
        if values.dtype != np.float64 or not values.size:
            continue
        small = np.abs(values[(values != 0) & np.isfinite(values)])
        if small.size and small.max() < 0.5 * 10.0 ** -run.places(id) and run.is_not_zero(id):
            yield Message(
                "{id} is not 0, only too small for {places} decimals. See more with --decimals {more}.",
                id=id,
                places=run.places(id),
                more=min(15, int(np.ceil(-np.log10(small.max()))) + 3),
            )
            return
