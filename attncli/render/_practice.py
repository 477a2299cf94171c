"""What a practice session shows, as a terminal or a pipe takes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.core.graph import Trace, show_shape
from attncli.core.message import N_, Language, Localized, Message
from attncli.locale.wrap import wrap
from attncli.practice.parts import Arithmetic, Formula, Part, Question, Result, Text, Wanted
from attncli.practice.session import Exercise
from attncli.problems.question import question_of
from attncli.problems.run import Run
from attncli.render._arithmetic import term_text
from attncli.render._equals import ABOUT, WHY_ABOUT_IN_MARKS, sign
from attncli.render._math import latex_text
from attncli.render._names import cell_name
from attncli.render._numbers import constant_text, number_text
from attncli.render._view import items, printable, view
from attncli.render.table import Page

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_STYLES = {"title": "bold", "right": "green", "wrong": "bold red", "remark": "yellow", "aside": "dim"}


class Screen:
    """Lays out the parts of one exercise for one console."""

    def __init__(self, exercise: Exercise, language: Language, console: Console) -> None:
        self.exercise = exercise
        self.problem = exercise.problem
        self.graph = exercise.graph
        run = self._run(exercise.values())
        self.view = view(run, language, layout=self.problem.layout, width=console.width)
        self.page = Page(self.view, console)
        self.about = False

    def _run(self, values: Mapping[str, Any]) -> Run:
        return Run(self.problem, self.graph, Trace(self.graph, "floating", dict(values)), tuple(self.graph.steps))

    def renderables(self, part: Part) -> Iterator[RenderableType]:
        """The part, from top to bottom."""
        match part:
            case Text():
                yield self.page.paragraph(part.message, _STYLES.get(part.kind, ""))
            case Question():
                yield from self._question(part)
            case Result():
                yield from self._matrices((part.id,))
            case Formula():
                for item in items(self.view.run, part.ids, turned=self.view.layout == "columns"):
                    yield self.page.text(f"  {item.name} = {item.formula_text or '…'}")
            case Arithmetic():
                yield from self._arithmetic(part)
            case Wanted() if not part.again:
                yield self.page.text("")
                yield self.page.paragraph(self._wanted(part))

    def _matrices(self, ids: tuple[str, ...]) -> Iterator[RenderableType]:
        run = self._run(self.exercise.values())
        yield from self.page.side_by_side(items(run, ids, turned=self.view.layout == "columns"))

    def _question(self, part: Question) -> Iterator[RenderableType]:
        asked = question_of(self.problem)
        yield self.page.text("")
        if self.problem.prompt:
            yield self.page.paragraph(Localized(self.problem.prompt))
            yield self.page.text("")
        yield from self._matrices(asked.given)
        yield from (self.page.text(f"{id} = {text}") for id, text in asked.texts.items())
        if asked.settings:
            settings = ", ".join(f"{id} = {value}" for id, value in asked.settings.items())
            yield self.page.paragraph(Message(N_("Settings: {settings}"), settings=settings))
        if asked.loss is not None:
            yield self.page.paragraph(Message(N_("Loss: L = {loss}"), loss=asked.loss))
        if part.shown:
            yield self.page.text("")
            yield self.page.paragraph(Message(N_("Worked out already:")))
            yield from self._matrices(part.shown)

    def _wanted(self, part: Wanted) -> Message:
        symbol = latex_text(part.symbol)
        name = part.id if symbol == part.id else f"{part.id} ({symbol})"
        if part.decimals == 1:
            return Message(N_("Your turn: {name}, {shape}, with 1 decimal."), name=name, shape=show_shape(part.shape))
        return Message(
            N_("Your turn: {name}, {shape}, with {places} decimals."),
            name=name,
            shape=show_shape(part.shape),
            places=part.decimals,
        )

    def _arithmetic(self, part: Arithmetic) -> Iterator[RenderableType]:
        values = self.exercise.values()
        layout = self.view.layout

        def show(id: str, index: tuple[int, ...]) -> str:
            if id not in part.on_screen:
                return cell_name(latex_text(self.graph.symbol(id)), index, layout)
            return number_text(float(values[id][index]), self.view.run.places(id))

        name = cell_name(latex_text(self.graph.symbol(part.id)), part.index, layout)
        if part.term.kind == "cell":  # a number taken over as it is: to print it would be the result
            (source, place), *_ = part.term.cells()
            text = cell_name(latex_text(self.graph.symbol(source)), place, layout)
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
            yield self.page.paragraph(WHY_ABOUT_IN_MARKS, "italic dim")


def prompt(part: Wanted) -> str:
    """What stands before the place to type at."""
    return f"{part.id} > "


def wrapped(message: Message, language: Language, width: int) -> str:
    """A sentence outside any exercise."""
    return wrap(message.text(language), width) + "\n"
