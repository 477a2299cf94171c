"""A worksheet as blocks: a question with boxes to fill in, or with its key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from attncli.arithmetic import Number, Value
from attncli.core.axes import show_shape
from attncli.core.graph import Trace
from attncli.core.message import N_, Language, Listed, Localized, Message
from attncli.problems.problem import Run
from attncli.problems.question import Asked, Question
from attncli.render.document import Block, Fields, Gap, Grid, Grids, Heading, Page, Paragraph, Said, Speaker
from attncli.render.text import clean, number_text, title_of
from attncli.render.view import Panel, items, panels_of
from attncli.worksheets.key import KeyLine, Powers

GIVEN = Message("Given")
TO_FILL_IN = Message("To fill in")
TO_LOOK_UP = Message("to look up")
_MORE = Message("Others by multiplying: e^(-5) = e^(-4) · e^(-1).")
KEY = Message("Answer key")
_NAME = Message("Name")
_CLASS = Message("Class")
_CARRY_ON = N_(
    "Write {decimals} in every box, and carry on what you have written: your next line is judged from your own numbers."
)
_RANGE = N_("Right too, depending on where one rounds: from {least} to {most}.")
_AS_ASKED = Message("the decimals asked for")
_HEAD = N_("head {number}")
#: A hidden score in a setting, as problem files write it.
_HIDDEN = re.compile(r"(?<!\S)-inf\b")
#: Places that are taken where a step is judged as written.
_PLACES = 3


def page(
    question: Question,
    language: Language,
    key: Mapping[str, KeyLine] | None = None,
    student: str = "",
    powers: Sequence[Powers] = (),
) -> Page:
    """A worksheet; with a key, the same with its answers.

    Parameters
    ----------
    student : whose sheet it is, where that is known
    powers : a table of e^−x to print on it
    """
    own = language.with_columns() if question.problem.layout == "columns" else language

    def say(words: Said) -> str:
        return clean(words.text(own) if isinstance(words, Message) else words)

    return Page(language.code, tuple(_blocks(question, say, own, key, student, powers)), key is not None)


def _blocks(
    question: Question,
    say: Speaker,
    language: Language,
    key: Mapping[str, KeyLine] | None,
    student: str,
    powers: Sequence[Powers],
) -> Iterator[Block]:
    title = _title(question, language)
    yield Heading(f"{say(KEY)}: {title}" if key is not None else title, 1)
    if key is None:
        yield Gap()
        yield Fields((f"{say(_NAME)}: {clean(student)}" if student else say(_NAME), say(_CLASS)))
    yield from _told(question, say, is_key=key is not None)
    given, under = tuple(_given(question, say)), tuple(beside(question))
    if given or under:
        yield Heading(say(GIVEN))
        yield Grids(given)
    if under:
        yield Gap()
        yield from (Paragraph(say(words) if isinstance(words, Message) else words) for words in under)
    if powers:
        yield Grids((_table(powers, max(one or _PLACES for one in question.decimals), say),))
    yield Heading(say(TO_FILL_IN if key is None else KEY))
    asked = [
        grid
        for one in question.asked
        for grid in _asked(one, question, say, None if key is None else key.get(one.step))
    ]
    yield Grids(tuple(asked), asked=True)


def _table(powers: Sequence[Powers], places: int, say: Speaker) -> Grid:
    """e^−x with two places more than are asked for: e^−6 is 0.00248, which from 0.0025 would be rounded up to 0.003.

    x has as many, so that what is printed is true: e^−0.70711 is 0.49307, e^−0.707 is not.
    """
    cells: list[tuple[str, ...]] = []
    for line in powers:
        cells.append(tuple(f"{one:g}" if (2 * one).is_integer() else number_text(one, places + 2) for one in line.x))
        cells.append(tuple(f"{one:.{places + 2}f}" for one in line.power))
    names = ("x", "e^(-x)") * len(powers)
    return Grid("e^(-x)", "e^{-x}", say(TO_LOOK_UP), names, ("",) * len(cells[0]), tuple(cells), (say(_MORE),))


def _title(question: Question, language: Language) -> str:
    title = title_of(question.problem, language)
    return f"{title} ({question.problem.id})" if question.problem.id else title


def _told(question: Question, say: Speaker, *, is_key: bool) -> Iterator[Block]:
    """The exercise in words, and how to write the numbers."""
    if question.problem.prompt:
        yield Gap()
        yield Paragraph(say(Localized(question.problem.prompt)))
    places = question.decimals
    if not is_key and places:
        shown = decimals(places[0]) if len(places) == 1 and places[0] is not None else _AS_ASKED
        yield Gap()
        yield Paragraph(say(Message(_CARRY_ON, decimals=shown)))


def _given(question: Question, say: Speaker) -> Iterator[Grid]:
    graph = question.graph
    values = {id: given.matrix.values for id, given in graph.inputs.items()}
    shown = Run(question.problem, graph, Trace(graph, "floating", values), ())  # nothing is worked out
    for item in items(shown, question.given, turned=question.problem.layout == "columns"):
        yield from _grids(item.id, item.symbol, item.shape, item.panels, item.text, say)


def beside(question: Question) -> Iterator[Said]:
    """What is given besides matrices: texts, settings, a loss."""
    yield from (f"{input_id} = {clean(text)}" for input_id, text in question.texts.items())
    if question.settings:
        settings = Listed(f"{name} = {_HIDDEN.sub('−∞', value)}" for name, value in question.settings.items())
        yield Message("Settings: {settings}", settings=settings)
    if question.loss is not None:
        yield Message("Loss: L = {loss}", loss=question.loss)


def _grids(
    name: str, symbol: str, note: str, blocks: Sequence[Panel], text: Callable[[Number], str] | None, say: Speaker
) -> Iterator[Grid]:
    for block in blocks:
        head = "" if block.head is None else f" · {say(Message(_HEAD, number=block.head))}"
        cells = tuple(tuple(None if text is None else text(value) for value in row) for row in block.values)
        yield Grid(name, symbol, note + head, block.rows, block.columns, cells)


def _asked(one: Asked, question: Question, say: Speaker, key: KeyLine | None) -> Iterator[Grid]:
    """The boxes of a step, or its answer with what belongs to it."""
    graph, turned = question.graph, question.problem.layout == "columns"
    places = question.problem.decimals_of(one.step)
    values = np.zeros(graph.shape(one.step)) if key is None else key.values
    blocks = list(panels_of(values, graph.axes(one.step), graph.labels, turned))
    note = f"{show_shape(one.shape)} · {say(points(one.points))}"
    if len(question.decimals) > 1:
        note += f" · {say(decimals(one.decimals))}"

    def text(value: Number) -> str:
        return number_text(value, places)

    grids = list(_grids(one.step, one.symbol, note, blocks, None if key is None else text, say))
    if key is None:
        yield from grids
        return
    yield from grids[:-1]
    yield grids[-1].changed(below=tuple(_below(key, text, turned, say)))


def _below(key: KeyLine, text: Callable[[Number], str], turned: bool, say: Speaker) -> Iterator[str]:
    def shown(values: Value) -> str:
        return _one_line(np.swapaxes(values, -1, -2) if turned and np.ndim(values) > 1 else values, text)

    if not key.is_sharp:
        yield say(Message(_RANGE, least=shown(key.least), most=shown(key.most)))
    for one in key.wrong:
        yield f"{', '.join(one.ids)}: {shown(one.values)} ({say(Listed(one.said, N_('{one} {another}')))})"


def _one_line(values: Value, text: Callable[[Number], str]) -> str:
    """A matrix as it is written on a sheet."""
    blocks = values if values.ndim == 3 else [np.atleast_2d(values)]
    return " | ".join("; ".join(" ".join(map(text, row)) for row in block) for block in blocks)


def points(count: Fraction) -> Message:
    """“2 points”."""
    if count == 0:
        return Message("no points")
    return Message("1 point") if count == 1 else Message("{count} points", count=f"{float(count):g}")


def decimals(places: int | None) -> Message:
    """“3 decimals”."""
    if places is None:
        return Message("as written")
    return Message("1 decimal") if places == 1 else Message("{count} decimals", count=places)
