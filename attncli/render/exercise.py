r"""A worked example: its question, and after the calculation its printed numbers and what to notice, for every format."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from attncli.arithmetic import Value
from attncli.core.graph import Trace, show_shape
from attncli.core.message import N_, Language, Listed, Localized, Message
from attncli.locale.fit import wrap
from attncli.practice.parts import CellArithmetic, Formula, Part, Result, Text, Wanted, WholeExercise
from attncli.practice.session import Exercise
from attncli.problems.problem import Run
from attncli.problems.question import Question, question_of
from attncli.render.arithmetic import ABOUT, WHY_ABOUT_IN_MARKS, sign, term_text
from attncli.render.formula import as_text
from attncli.render.names import cell_name, printable
from attncli.render.numbers import constant_text, number_text
from attncli.render.run import source_line
from attncli.render.terminal import RunScreen
from attncli.render.view import View, items, view
from attncli.render.worksheet import decimals, points

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


def question(asked: Question, name: str, view: View, console: Console, *, hint: bool) -> Iterator[RenderableType]:
    """What is given and what is asked; the hint only where it was asked for. How to hand in comes after it.

    Parameters
    ----------
    name : how the problem is called on the command line
    view : of a run of the problem, of which only what is given is shown
    """
    from rich.text import Text

    from attncli.render.terminal import RunScreen
    from attncli.render.view import items

    page = RunScreen(view, console)
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
    yield _asked_list(asked, page)
    if hint and problem.hint:
        yield Text()
        yield page.say(Message(N_("Hint")), "bold underline")
        yield page.say(Localized(problem.hint))
    yield Text()
    where = source_line(problem.source)
    if where is not None:
        yield page.say(where, "dim")
    if problem.hint and not hint:
        yield page.say(Message(N_("A hint: attncli examples show {id} --hint"), id=shlex.quote(name)), "dim")
    yield page.say(Message(N_("The solution, step by step: attncli examples run {id}"), id=shlex.quote(name)), "dim")


def _to_hand_in(asked: Question) -> Message:
    places = asked.decimals
    if len(places) != 1:
        return Message(N_("To hand in"))
    if places[0] is None:
        return Message(N_("To hand in, each number judged at the decimals it is written with"))
    if places[0] == 1:
        return Message(N_("To hand in, with 1 decimal"))
    return Message(N_("To hand in, with {places} decimals"), places=places[0])


def _asked_list(asked: Question, page: RunScreen) -> RenderableType:
    """A line for each thing to hand in: its id, symbol, shape, points, and decimals where they differ."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0))
    for one in asked.asked:
        symbol = as_text(one.symbol)
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


_PART_STYLES = {"title": "bold", "right": "green", "wrong": "bold red", "remark": "yellow", "aside": "dim"}


class ExerciseScreen:
    """Lays out the parts of one exercise for one console."""

    def __init__(self, exercise: Exercise, language: Language, console: Console) -> None:
        self.exercise = exercise
        self.problem = exercise.problem
        self.graph = exercise.graph
        run = self._run(exercise.values())
        self.view = view(run, language, layout=self.problem.layout, width=console.width)
        self.page = RunScreen(self.view, console)
        self.about = False

    def _run(self, values: Mapping[str, Value]) -> Run:
        return Run(self.problem, self.graph, Trace(self.graph, "floating", dict(values)), tuple(self.graph.steps))

    def renderables(self, part: Part) -> Iterator[RenderableType]:
        """The part, from top to bottom."""
        match part:
            case Text():
                yield self.page.lines(part.message, _PART_STYLES.get(part.kind, ""))
            case WholeExercise():
                yield from self._question(part)
            case Result():
                yield from self._matrices((part.id,))
            case Formula():
                for item in items(self.view.run, part.ids, turned=self.view.layout == "columns"):
                    yield self.page.text(f"  {item.name} = {item.formula_text or '…'}")
            case CellArithmetic():
                yield from self._arithmetic(part)
            case Wanted() if not part.again:
                yield self.page.text("")
                yield self.page.lines(self._wanted(part))

    def _matrices(self, ids: tuple[str, ...]) -> Iterator[RenderableType]:
        run = self._run(self.exercise.values())
        yield from self.page.side_by_side(items(run, ids, turned=self.view.layout == "columns"))

    def _question(self, part: WholeExercise) -> Iterator[RenderableType]:
        asked = question_of(self.problem)
        yield self.page.text("")
        if self.problem.prompt:
            yield self.page.lines(Localized(self.problem.prompt))
            yield self.page.text("")
        yield from self._matrices(asked.given)
        yield from (self.page.text(f"{id} = {text}") for id, text in asked.texts.items())
        if asked.settings:
            settings = ", ".join(f"{id} = {value}" for id, value in asked.settings.items())
            yield self.page.lines(Message(N_("Settings: {settings}"), settings=settings))
        if asked.loss is not None:
            yield self.page.lines(Message(N_("Loss: L = {loss}"), loss=asked.loss))
        if part.shown:
            yield self.page.text("")
            yield self.page.lines(Message(N_("Worked out already:")))
            yield from self._matrices(part.shown)

    def _wanted(self, part: Wanted) -> Message:
        symbol = as_text(part.symbol)
        name = part.id if symbol == part.id else f"{part.id} ({symbol})"
        if part.decimals == 1:
            return Message(N_("Your turn: {name}, {shape}, with 1 decimal."), name=name, shape=show_shape(part.shape))
        return Message(
            N_("Your turn: {name}, {shape}, with {places} decimals."),
            name=name,
            shape=show_shape(part.shape),
            places=part.decimals,
        )

    def _arithmetic(self, part: CellArithmetic) -> Iterator[RenderableType]:
        values = self.exercise.values()
        layout = self.view.layout

        def show(id: str, index: tuple[int, ...]) -> str:
            if id not in part.on_screen:
                return cell_name(as_text(self.graph.symbol(id)), index, layout)
            return number_text(float(values[id][index]), self.view.run.places(id))

        name = cell_name(as_text(self.graph.symbol(part.id)), part.index, layout)
        if part.term.kind == "cell":  # a number taken over as it is: to print it would be the result
            (source, place), *_ = part.term.cells()
            text = cell_name(as_text(self.graph.symbol(source)), place, layout)
        else:
            text = printable(term_text(part.term, show, constant_text))
        if not part.solved:
            yield self.page.text(f"  {name} = {text} = ?")
            return
        places = self.problem.decimals_of(part.id)
        result = number_text(float(np.asarray(values[part.id])[part.index]), places)
        relation = sign(part.term, show, result, places)
        yield self.page.text(f"  {name} = {text} {relation} {result}")
        if relation == ABOUT:
            yield self.page.lines(WHY_ABOUT_IN_MARKS, "italic dim")
