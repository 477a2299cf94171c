r"""An exercise as blocks: its question before anybody has answered, a worksheet of it, and in practice one line after another."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from attncli.arithmetic import Number, Value
from attncli.core.axes import show_shape
from attncli.core.graph import Graph, Trace
from attncli.core.message import N_, Language, Listed, Localized, Message
from attncli.core.terms import Index
from attncli.practice.session import (
    CellArithmetic,
    Exercise,
    LineFormula,
    LineNumbers,
    Reply,
    Sentence,
    Wanted,
    WholeExercise,
)
from attncli.problems.problem import Problem, Run
from attncli.problems.question import Asked, Question, question_of
from attncli.render.arithmetic import ABOUT, WHY_ABOUT_IN_MARKS, equation
from attncli.render.document import (
    Block,
    Code,
    Columns,
    Fields,
    Gap,
    Grid,
    Grids,
    Heading,
    Page,
    Paragraph,
    Said,
    ShownStep,
    Steps,
)
from attncli.render.formula import as_text
from attncli.render.run import source_line
from attncli.render.text import clean, number_text, title_of
from attncli.render.view import Panel, View, items, panels_of, view
from attncli.worksheets.outcomes import KeyLine, Powers

#: A hidden score in a setting, as problem files write it.
_HIDDEN = re.compile(r"(?<!\S)-inf\b")


def page(asked: Question, name: str, view: View, *, hint: bool) -> Iterator[Block]:
    """What is given, what is asked, and how to hand it in; the hint only where it was asked for.

    Parameters
    ----------
    name : how the problem is called on the command line
    view : of a run of the problem, of which only what is given is shown
    """
    problem = asked.problem
    yield Heading(f"{problem.id}: {view.title()}" if problem.id else view.title(), 1)
    if problem.prompt:
        yield Paragraph(Localized(problem.prompt))
    yield Gap()
    yield from _given(asked, view)
    yield Heading(_to_hand_in(asked.decimals))
    yield Columns(tuple(_to_hand_in_of(one, asked) for one in asked.asked))
    if hint and problem.hint:
        yield Heading(Message("Hint"))
        yield Paragraph(Localized(problem.hint))
    yield Gap()
    where = source_line(problem.source)
    if where is not None:
        yield Paragraph(where, "aside")
    if problem.hint and not hint:
        yield Paragraph(Message("A hint: attncli examples show {id} --hint", id=shlex.quote(name)), "aside")
    yield Paragraph(Message("The solution, step by step: attncli examples run {id}", id=shlex.quote(name)), "aside")
    yield Gap()
    yield Paragraph(Message("Write the numbers over the question marks, in a sheet (answers.toml) …"))
    yield Code(asked.sheet())
    yield Paragraph(Message("… or on the command line:"))
    yield Code(asked.command(name))


def _given(asked: Question, view: View) -> Iterator[Block]:
    yield _matrices(view, asked.given)
    yield from map(Paragraph, _beside(asked))


def _matrices(view: View, ids: Iterable[str]) -> Steps:
    shown = items(view.run, tuple(ids))
    return Steps(tuple(ShownStep(view, item) for item in shown), aside=True)


def _beside(question: Question) -> Iterator[Said]:
    """What is given besides matrices: texts, settings, a loss."""
    yield from (f"{input_id} = {clean(text)}" for input_id, text in question.texts.items())
    if question.settings:
        settings = Listed(f"{name} = {_HIDDEN.sub('−∞', value)}" for name, value in question.settings.items())
        yield Message("Settings: {settings}", settings=settings)
    if question.loss is not None:
        yield Message("Loss: L = {loss}", loss=question.loss)


def _to_hand_in(places: tuple[int | None, ...]) -> Message:
    if len(places) != 1:
        return Message("To hand in")
    if places[0] is None:
        return Message("To hand in, each number judged at the decimals it is written with")
    return Message("To hand in, with {decimals}", decimals=_decimals(places[0]))


def _to_hand_in_of(one: Asked, question: Question) -> tuple[Said, ...]:
    """A thing to hand in: its id, symbol, shape, points, and decimals where they differ."""
    symbol = as_text(one.symbol)
    cells = (one.step, symbol if symbol != one.step else "", show_shape(one.shape), _points(one.points))
    return (*cells, _decimals(one.decimals)) if len(question.decimals) > 1 else cells


def _points(count: Fraction) -> Message:
    """“2 points”."""
    if count == 0:
        return Message("no points")
    return Message("1 point") if count == 1 else Message("{count} points", count=f"{float(count):g}")


def _decimals(places: int | None) -> Message:
    """“3 decimals”."""
    if places is None:
        return Message("as written")
    return Message("1 decimal") if places == 1 else Message("{count} decimals", count=places)


# Practice.

_TONES = {"title": "strong"}


def part_blocks(part: Reply, exercise: Exercise, language: Language) -> Iterator[Block]:
    """What a session shows of an exercise."""
    match part:
        case Sentence():
            yield Paragraph(part.message, _TONES.get(part.kind, part.kind))
        case WholeExercise():
            yield from _whole(part, exercise, _view(exercise, language))
        case LineNumbers():
            yield _matrices(_view(exercise, language), (part.id,))
        case LineFormula():
            shown = _view(exercise, language)
            for item in items(shown.run, part.ids):
                yield Paragraph(f"{item.name} = {item.formula_text or '…'}", indent=2, hanging=2)
        case CellArithmetic():
            yield from _arithmetic(part, _view(exercise, language))
        case Wanted():
            yield Gap()
            symbol, words = as_text(part.symbol), N_("Your turn: {name}, {shape}, with {decimals}.")
            name = part.id if symbol == part.id else f"{part.id} ({symbol})"
            yield Paragraph(Message(words, name=name, shape=show_shape(part.shape), decimals=_decimals(part.decimals)))


def _view(exercise: Exercise, language: Language) -> View:
    """Of the numbers that the learner has so far."""
    run = _run(exercise.problem, exercise.graph, exercise.values())
    return view(run, language)


def _run(problem: Problem, graph: Graph, numbers: Mapping[str, Value]) -> Run:
    """A run in which nothing is worked out: it has the numbers that there are."""
    return Run(problem, graph, Trace(graph, "floating", dict(numbers)), tuple(graph.steps))


def _whole(part: WholeExercise, exercise: Exercise, shown: View) -> Iterator[Block]:
    yield Gap()
    if exercise.problem.prompt:
        yield Paragraph(Localized(exercise.problem.prompt))
        yield Gap()
    yield from _given(question_of(exercise.problem), shown)
    if part.shown:
        yield Gap()
        yield Paragraph(Message("Worked out already:"))
        yield _matrices(shown, part.shown)


def _arithmetic(part: CellArithmetic, shown: View) -> Iterator[Block]:
    def show(step_id: str, index: Index) -> str:
        """A number that stands on the screen; another is called by its name."""
        return shown.show_cell(step_id, index) if step_id in part.on_screen else shown.cell_name(step_id, index)

    result = shown.show_cell(part.id, part.index) if part.solved else "?"
    text, relation = equation(part.term, show, shown.cell_name, result, shown.run.places(part.id))
    yield Paragraph(f"{shown.cell_name(part.id, part.index)} = {text}", indent=2, hanging=2)
    if relation == ABOUT:
        yield Paragraph(WHY_ABOUT_IN_MARKS, "reason")


# A worksheet.

_MORE = Message("Others by multiplying: e^(-5) = e^(-4) · e^(-1).")
_CARRY_ON = N_(
    "Write {decimals} in every box, and carry on what you have written: your next line is judged from your own numbers."
)
_RANGE = N_("Right too, depending on where one rounds: from {least} to {most}.")
#: Places that are taken where a step is judged as written.
_PLACES = 3


def worksheet(
    question: Question,
    language: Language,
    key: Mapping[str, KeyLine] | None = None,
    student: str = "",
    powers: Sequence[Powers] = (),
) -> Page:
    """A question with boxes to fill in; with a key, the same with its answers.

    Parameters
    ----------
    student : whose sheet it is, where that is known
    powers : a table of e^−x to print on it
    """
    own = language.in_layout(question.problem.layout)
    blocks = _Worksheet(question, own, key).blocks(student, powers)
    return Page(language.code, tuple(blocks), key is not None)


class _Worksheet:
    """A worksheet in one language."""

    def __init__(self, question: Question, language: Language, key: Mapping[str, KeyLine] | None) -> None:
        self.question = question
        self.problem, self.graph = question.problem, question.graph
        self.language = language
        self.key = key
        self.as_columns = question.problem.layout == "columns"

    def say(self, words: Said) -> str:
        return clean(words.text(self.language) if isinstance(words, Message) else words)

    def blocks(self, student: str, powers: Sequence[Powers]) -> Iterator[Block]:
        title = title_of(self.problem, self.language)
        title = f"{title} ({self.problem.id})" if self.problem.id else title
        if self.key is None:
            name = self.say(Message("Name"))
            yield Heading(title, 1)
            yield Gap()
            yield Fields((f"{name}: {clean(student)}" if student else name, self.say(Message("Class"))))
        else:
            yield Heading(f"{self.say(Message('Answer key'))}: {title}", 1)
        yield from self.told()
        given, under = tuple(self.given()), [self.say(words) for words in _beside(self.question)]
        if given or under:
            yield Heading(self.say(Message("Given")))
            yield Grids(given)
        if under:
            yield Gap()
            yield from map(Paragraph, under)
        if powers:
            yield Grids((self.powers(powers),))
        yield Heading(self.say(Message("To fill in" if self.key is None else "Answer key")))
        yield Grids(tuple(grid for one in self.question.asked for grid in self.asked(one)), asked=True)

    def told(self) -> Iterator[Block]:
        """The exercise in words, and how to write the numbers."""
        if self.problem.prompt:
            yield Gap()
            yield Paragraph(self.say(Localized(self.problem.prompt)))
        places = self.question.decimals
        if self.key is None and places:
            is_one = len(places) == 1 and places[0] is not None
            words = Message(_CARRY_ON, decimals=_decimals(places[0]) if is_one else Message("the decimals asked for"))
            yield Gap()
            yield Paragraph(self.say(words))

    def given(self) -> Iterator[Grid]:
        values = {input_id: given.matrix.values for input_id, given in self.graph.inputs.items()}
        for item in items(_run(self.problem, self.graph, values), self.question.given):
            yield from self.grids(item.id, item.symbol, item.shape, item.panels, item.text)

    def powers(self, powers: Sequence[Powers]) -> Grid:
        """e^−x with two places more than are asked for: e^−6 is 0.00248, which from 0.0025 would be rounded up to 0.003.

        x has as many, so that what is printed is true: e^−0.70711 is 0.49307, e^−0.707 is not.
        """
        places = max(one or _PLACES for one in self.question.decimals) + 2
        cells: list[tuple[str, ...]] = []
        for line in powers:
            cells.append(tuple(f"{x:g}" if (2 * x).is_integer() else number_text(x, places) for x in line.x))
            cells.append(tuple(f"{power:.{places}f}" for power in line.power))
        names, note = ("x", "e^(-x)") * len(powers), self.say(Message("to look up"))
        return Grid("e^(-x)", "e^{-x}", note, names, ("",) * len(cells[0]), tuple(cells), (self.say(_MORE),))

    def asked(self, one: Asked) -> Iterator[Grid]:
        """The boxes of a step, or its answer with what belongs to it."""
        key, places = None if self.key is None else self.key.get(one.step), self.problem.decimals_of(one.step)

        def text(value: Number) -> str:
            return number_text(value, places)

        values = np.zeros(self.graph.shape(one.step)) if key is None else key.values
        panels = panels_of(values, self.graph.axes(one.step), self.graph.labels, as_columns=self.as_columns)
        note = f"{show_shape(one.shape)} · {self.say(_points(one.points))}"
        if len(self.question.decimals) > 1:
            note += f" · {self.say(_decimals(one.decimals))}"
        *grids, last = self.grids(one.step, one.symbol, note, panels, None if key is None else text)
        yield from grids
        yield last if key is None else last.changed(below=tuple(self.below(key, text)))

    def grids(
        self, name: str, symbol: str, note: str, panels: Iterable[Panel], text: Callable[[Number], str] | None
    ) -> Iterator[Grid]:
        """A matrix, head by head; without `text` as boxes."""
        for panel in panels:
            head = "" if panel.head is None else f" · {self.say(Message('head {number}', number=panel.head))}"
            cells = tuple(tuple(None if text is None else text(value) for value in row) for row in panel.values)
            yield Grid(name, symbol, note + head, panel.rows, panel.columns, cells)

    def below(self, key: KeyLine, text: Callable[[Number], str]) -> Iterator[str]:
        """The range of right numbers, and what each mistake would have given."""

        def shown(values: Value) -> str:
            as_shown = np.swapaxes(values, -1, -2) if self.as_columns and np.ndim(values) > 1 else np.atleast_2d(values)
            blocks = as_shown if as_shown.ndim == 3 else [as_shown]
            return " | ".join("; ".join(" ".join(map(text, row)) for row in block) for block in blocks)

        if not key.is_sharp:
            yield self.say(Message(_RANGE, least=shown(key.least), most=shown(key.most)))
        for one in key.wrong:
            yield f"{', '.join(one.ids)}: {shown(one.values)} ({self.say(Listed(one.said, N_('{one} {another}')))})"
