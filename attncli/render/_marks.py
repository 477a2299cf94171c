"""A marked sheet: for a student in the terminal, as Markdown, and as JSON (FORMATS)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from attncli.marking.catalogue import look
from attncli.marking.explain import Named
from attncli.marking.mark import Marked, StepMark
from attncli.marking.report import data
from attncli.message import N_, Language, Message
from attncli.render._glyphs import fitted
from attncli.render._numbers import number_text, padded
from attncli.render._view import localized, printable

_MARKS = {
    "correct": ("✓", "green", N_("right")),
    "route": ("✓", "green", N_("right, by another way")),
    "imprecise": ("~", "yellow", N_("right, but with too few decimals")),
    "follow_through": ("✓", "cyan", N_("right from your own earlier values")),
    "wrong": ("✗", "bold red", N_("not right")),
    "blank": ("·", "dim", N_("left blank")),
    "malformed": ("✗", "bold red", N_("cannot be read")),
}


def as_json(marked: Marked, language: Language) -> str:
    """One line (FORMATS): verdicts, points, mistakes by name, wrong cells."""
    return json.dumps(data(marked, language), ensure_ascii=False, allow_nan=False)


def number(value: float) -> str:
    """Points without needless zeros: 2, 0.5, 1.33."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


class Sheet:
    """One marked sheet as a student sees it.

    Parameters
    ----------
    reveal : "first" (open up the first wrong step), "hint" (no right number at all), or "all"
    """

    def __init__(
        self,
        marked: Marked,
        language: Language,
        *,
        reveal: str,
        encoding: str = "utf-8",
        author: tuple[Named, ...] = (),
    ) -> None:
        self.marked = marked
        self.language = language.with_columns() if marked.layout == "columns" else language
        self.reveal = reveal
        self.encoding = encoding
        self.author = author

    def say(self, message: Message | str, style: str = "") -> Text:
        text = (message if isinstance(message, Message) else Message(message)).text(self.language)
        return self.text(text, style)

    def text(self, text: str, style: str = "") -> Text:
        return Text(fitted(_clean(text), self.encoding), style=style, overflow="fold")

    def parts(self) -> Iterator[RenderableType]:
        """From top to bottom: whose sheet, a line a step, the first wrong one opened up, the score."""
        marked = self.marked
        title = localized(marked.problem.title, self.language.code) or marked.problem.id
        yield self.text(f"{title} · {marked.student}" if marked.student else title, "bold")
        yield Text(overflow="fold")
        for step in marked.steps:
            if step.verdict != "blank":
                yield from self._step(step)
        yield from self._blank()
        yield Text(overflow="fold")
        yield self._score()
        for note in marked.notes:
            yield self.say(note, "yellow")
        yield from self._for_the_author()

    def _blank(self) -> Iterator[Text]:
        """The steps that were asked for and not written, in one line."""
        blank = [step.id for step in self.marked.steps if step.verdict == "blank"]
        if blank:
            yield self.say(Message(N_("· left blank: {steps}"), steps=", ".join(blank)), "dim")

    def _score(self) -> Text:
        return self.say(
            Message(
                N_("Points: {score} of {most}"),
                score=number(float(self.marked.score)),
                most=number(float(self.marked.max_score)),
            ),
            "bold",
        )

    def _step(self, step: StepMark) -> Iterator[RenderableType]:
        mark, style, words = _MARKS[step.verdict]
        heading = Text(overflow="fold")
        heading.append(fitted(f"{mark} ", self.encoding), style=style)
        heading.append(fitted(_clean(step.id), self.encoding), style="bold")
        points = f"  {number(float(step.points))}/{number(float(step.max_points))}" if step.max_points else ""
        heading.append(fitted(f"  {Message(words).text(self.language)}{points}", self.encoding), style=style)
        yield heading
        if step.verdict in ("wrong", "malformed"):
            yield from self._opened(step)
        else:
            for message in step.said:
                yield self._inside(message)

    def _inside(self, message: Message | str, style: str = "") -> Text:
        text = self.say(message, style)
        return Text("  ", overflow="fold").append_text(text)

    def _opened(self, step: StepMark) -> Iterator[RenderableType]:
        """What is wrong with a step: the first one in full, later ones as much as was asked for."""
        first = step.id == self.marked.first_wrong
        if self.reveal == "hint":
            if step.mistakes:
                yield self._inside(look(step.mistakes[0].id))
            elif step.verdict == "wrong":
                yield self._inside(N_("Work this line out once more from your own lines above it."))
            else:
                yield from map(self._inside, step.said)
            return
        if step.verdict == "wrong" and step.written is not None and (first or self.reveal == "all"):
            yield from self._side_by_side(step)
        elif step.cells and step.verdict == "wrong":
            cells = ", ".join(f"[{','.join(map(str, cell))}]" for cell in step.cells[:12])
            yield self._inside(Message(N_("Look at {cells}."), cells=cells))
        for message in step.said:
            yield self._inside(message)
        yield from self._where(step)
        if step.mistakes and (first or self.reveal == "all"):
            yield self._inside(look(step.mistakes[0].id), "italic")

    def _where(self, step: StepMark) -> Iterator[RenderableType]:
        """A mistake that was made earlier, in a line that was not written down."""
        earlier = sorted({named.step for named in step.mistakes if named.step != step.id})
        if earlier:
            yield self._inside(
                Message(N_("This happened at {steps}, which you did not write down."), steps=", ".join(earlier))
            )

    def _side_by_side(self, step: StepMark) -> Iterator[RenderableType]:
        """What was written, wrong cells between > and <, and what follows from the learner's previous line."""
        yield self._inside(N_("You wrote:"))
        wrong = {tuple(i - 1 for i in cell) for cell in step.cells}
        yield from self._lines(step.written, wrong, self.marked.problem.decimals_of(step.id), blank="?")
        if step.own is not None:
            yield self._inside(N_("From your own lines above, this follows:"))
            yield from self._lines(step.own, set(), self.marked.problem.decimals_of(step.id))

    def _lines(self, values: Any, wrong: set[tuple[int, ...]], decimals: int, blank: str = "0/0") -> Iterator[Text]:
        """A matrix line by line; with heads, a blank line between them."""
        turned = self.marked.layout == "columns" and values.ndim > 1
        shown = values.swapaxes(-1, -2) if turned else values
        marked = np.zeros(shown.shape, dtype=np.bool_)
        for cell in wrong:
            marked[(*cell[:-2], *reversed(cell[-2:])) if turned else cell] = True
        for block, marks in ((shown, marked),) if shown.ndim < 3 else zip(shown, marked, strict=True):
            block, marks = np.atleast_2d(block), np.atleast_2d(marks)
            texts = [[blank if np.isnan(v) else number_text(v, decimals) for v in row] for row in block]
            columns = [padded([row[j] for row in texts]) for j in range(block.shape[1])]
            widths = [max(map(len, column)) for column in columns]
            for i in range(block.shape[0]):
                yield self._line([columns[j][i].rjust(widths[j]) for j in range(len(columns))], marks[i])

    def _line(self, cells: list[str], marks: Any) -> Text:
        line = Text("   ", overflow="fold")
        for cell, wrong in zip(cells, marks, strict=True):
            text = fitted(f">{cell}<" if wrong else f" {cell} ", self.encoding)
            line.append(f" {text}", style="bold red" if wrong else "")
        return line

    def _for_the_author(self) -> Iterator[RenderableType]:
        if self.author:
            pairs = ", ".join(f"{named.id} ({named.step})" for named in self.author)
            yield Text(overflow="fold")
            yield self.say(
                Message(
                    N_(
                        "For the author of this exercise: its numbers cannot tell these mistakes from the right answer: {pairs}."
                    ),
                    pairs=pairs,
                ),
                "dim",
            )


def as_markdown(marked: Marked, language: Language, *, reveal: str = "first", author: tuple[Named, ...] = ()) -> str:
    """The same for a page: feedback that can be sent to a student."""
    sheet = Sheet(marked, language, reveal=reveal, author=author)
    lines = []
    title = localized(marked.problem.title, language.code) or marked.problem.id
    lines.append(f"# {_escaped(title)}" + (f" · {_escaped(marked.student)}" if marked.student else ""))
    lines.append("")
    lines.append(f"**{sheet._score().plain}**")
    for step in marked.steps:
        mark, _, words = _MARKS[step.verdict]
        points = f" ({number(float(step.points))}/{number(float(step.max_points))})" if step.max_points else ""
        lines += ["", f"- {mark} `{_clean(step.id).replace('`', '')}`: {Message(words).text(language)}{points}"]
        body = (
            list(sheet._opened(step))
            if step.verdict in ("wrong", "malformed")
            else [sheet._inside(said) for said in step.said]
        )
        for part in body:
            plain = getattr(part, "plain", "").rstrip()
            lines.append(f"      {plain.strip()}" if plain.startswith("   ") else f"\n  {_escaped(plain.strip())}\n")
    for note in marked.notes:
        lines += ["", _escaped(note.text(language))]
    return "\n".join(lines) + "\n"


def _clean(text: str) -> str:
    return printable(text)


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is."""
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>#|" else sign for sign in _clean(text))
