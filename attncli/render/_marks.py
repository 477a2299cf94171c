"""A marked sheet: for a student in the terminal, as Markdown, and as JSON (FORMATS)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from attncli.locale.wrap import wrap
from attncli.marking.explain import Named
from attncli.marking.mark import Marked, StepMark
from attncli.marking.report import data, json_text
from attncli.message import N_, Language, Listed, Message
from attncli.mistakes.catalogue import look, varies, without_vaguer
from attncli.record import Record
from attncli.render._arithmetic import cell_term, term_text
from attncli.render._equals import ABOUT, WHY_ABOUT_IN_MARKS, sign
from attncli.render._glyphs import fitted
from attncli.render._names import cell_name
from attncli.render._numbers import constant_text, number_text, padded
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
_WRONG = ("wrong", "malformed")


#: Lines or columns a matrix may have to be shown whole; of a larger one the wrong cells are listed.
_MOST = 16
_MOST_CELLS = 8
#: Cells that the arithmetic of a cell may refer to and still be shown.
_MOST_TERMS = 12
#: Pairs that an exercise's author is told of.
_MOST_PAIRS = 6


def as_json(marked: Marked, language: Language) -> str:
    """One line (FORMATS): verdicts, points, mistakes by name, wrong cells."""
    return json_text(data(marked, language))


def number(value: float) -> str:
    """Points without needless zeros: 2, 0.5, 1.33."""
    text = f"{value:.2f}"
    return text.rstrip("0").rstrip(".")


class Line(Record):
    """One line of a step that is opened up.

    Parameters
    ----------
    pieces : texts and their styles
    numbers : a line of a matrix, which is never broken
    """

    pieces: tuple[tuple[str, str], ...]
    numbers: bool = False

    @property
    def plain(self) -> str:
        return "".join(text for text, _ in self.pieces)


class Sheet:
    """One marked sheet as a student sees it.

    Parameters
    ----------
    reveal : "first" (open up the first wrong step), "hint" (no right number at all), or "all"
    author : mistakes that the exercise cannot tell from the right answer, for whom that concerns
    """

    def __init__(
        self,
        marked: Marked,
        language: Language,
        *,
        reveal: str,
        width: int = 80,
        encoding: str = "utf-8",
        author: Sequence[Named] = (),
    ) -> None:
        self.marked = marked
        self.language = language.with_columns() if marked.layout == "columns" else language
        self.reveal = reveal
        self.width = width
        self.encoding = encoding
        self.author = author

    def say(self, message: Message | str) -> str:
        return _clean((message if isinstance(message, Message) else Message(message)).text(self.language))

    def text(self, text: str, style: str = "", indent: str = "") -> Text:
        """A paragraph, its lines broken here: Chinese has no spaces, and an indented one stays indented."""
        return Text(wrap(fitted(text, self.encoding), self.width, indent, indent), style=style, overflow="fold")

    def parts(self) -> Iterator[RenderableType]:
        """From top to bottom: whose sheet, a line a step, the first wrong one opened up, the score."""
        marked = self.marked
        yield self.text(self.title(), "bold")
        yield Text()
        for step in marked.steps:
            if step.verdict != "blank":
                yield self._heading(step)
                for line in self.lines(step):
                    yield self._shown(line)
        yield from self._blank()
        yield Text()
        yield self.text(self.score(), "bold")
        for note in self.notes():
            yield self.text(note, "yellow")
        yield from self._for_the_author()

    def title(self) -> str:
        title = localized(self.marked.problem.title, self.language.code) or self.marked.problem.id
        return _clean(f"{title} · {self.marked.student}" if self.marked.student else title)

    def score(self) -> str:
        score, most = number(float(self.marked.score)), number(float(self.marked.max_score))
        return self.say(Message(N_("Points: {score} of {most}"), score=score, most=most))

    def notes(self) -> Iterator[str]:
        """Remarks on the whole sheet, and what is left to be opened up."""
        yield from map(self.say, self.marked.notes)
        if self.reveal != "all" and any(
            step.verdict in _WRONG and step.id != self.marked.first_wrong for step in self.marked.steps
        ):
            yield self.say(N_("Only the first wrong line is explained. Correct it, then check again."))

    def verdict(self, step: StepMark) -> tuple[str, str, str]:
        """A sign, its style, and the verdict in words with the points."""
        mark, style, words = _MARKS[step.verdict]
        points = f"  {number(float(step.points))}/{number(float(step.max_points))}" if step.max_points else ""
        return mark, style, f"{self.say(words)}{points}"

    def lines(self, step: StepMark) -> Iterator[Line]:
        """What there is to say about a step: a wrong one as far as was asked for."""
        if step.verdict not in _WRONG:
            yield from (self._line(message) for message in step.said if message.kind != "followed")
        elif self.reveal == "all" or step.id == self.marked.first_wrong:
            yield from self._nudge(step) if self.reveal == "hint" else self._opened(step)

    def _heading(self, step: StepMark) -> Text:
        mark, style, words = self.verdict(step)
        heading = Text(overflow="fold")
        heading.append(fitted(f"{mark} ", self.encoding), style=style)
        heading.append(fitted(_clean(step.id), self.encoding), style="bold")
        return heading.append(fitted(f"  {words}", self.encoding), style=style)

    def _shown(self, line: Line) -> Text:
        if not line.numbers:
            return self.text(line.plain, line.pieces[0][1], "  ")
        shown = Text("   ", overflow="fold")
        for text, style in line.pieces:
            shown.append(fitted(text, self.encoding), style=style)
        return shown

    def _blank(self) -> Iterator[Text]:
        """The steps that were asked for and not written, in one paragraph."""
        blank = [step.id for step in self.marked.steps if step.verdict == "blank"]
        if blank:
            yield self.text(self.say(Message(N_("· left blank: {steps}"), steps=Listed(blank))), "dim")

    def _line(self, message: Message | str, style: str = "") -> Line:
        return Line(((self.say(message), style),))

    def _nudge(self, step: StepMark) -> Iterator[Line]:
        """Where to look, without any right number."""
        if step.mistakes:
            yield self._line(self._look(step))
        elif step.verdict == "wrong":
            yield self._line(N_("Work this line out once more from your own lines above it."))
        else:
            yield from map(self._line, step.said)

    def _opened(self, step: StepMark) -> Iterator[Line]:
        """What was written and what follows from the learner's own lines, what was done, and where to look again."""
        about = [message for message in step.said if message.kind == "about"]
        yield from map(self._line, about)
        if step.verdict == "wrong" and step.written is not None:
            yield from self._side_by_side(step)
        for message in step.said:
            if message.kind != "about":
                yield self._line(message)
        yield from self._arithmetic(step)
        earlier = sorted({named.step for named in step.mistakes if named.step != step.id})
        if earlier:
            yield self._line(Message(self._when(step), steps=Listed(earlier)))
        if step.mistakes:
            yield self._line(self._look(step), "italic")

    def _when(self, step: StepMark) -> str:
        """How the mistakes of earlier lines go with those of this one: all there, one of two, or one way or the other."""
        if all(named.step != step.id for named in step.mistakes):
            return N_("This happened at {steps}, which you did not write down.")
        if any(message.kind == "two" for message in step.said):
            return N_("One of them happened at {steps}, which you did not write down.")
        return N_("Here, or already at {steps}, which you did not write down.")

    def _look(self, step: StepMark) -> Message:
        """Where to look again, in the words of the step that the likeliest mistake was made at."""
        told = without_vaguer([named.id for named in step.mistakes if named.step == step.mistakes[0].step])
        likeliest = next(named for named in step.mistakes if named.id == told[0])
        graph = self.marked.problem.graph() if varies(likeliest.id) else None
        return look(likeliest.id, graph, likeliest.step)

    def _arithmetic(self, step: StepMark) -> Iterator[Line]:
        """How the first wrong cell comes about from the learner's own numbers, where no known mistake explains it."""
        if not step.operands or not step.cells or step.own is None:
            return
        graph, index = self.marked.problem.graph(), tuple(i - 1 for i in step.cells[0])
        term = cell_term(graph.steps[step.id], index, graph, step.operands)
        if len(list(term.cells())) > _MOST_TERMS:
            return
        places = self.marked.problem.decimals_of

        def show(id: str, place: tuple[int, ...]) -> str:
            return number_text(float(step.operands[id][place]), places(id))

        name, result = ",".join(map(str, step.cells[0])), number_text(float(step.own[index]), places(step.id))
        if term.kind == "cell":  # a number taken over as it is
            (source, place), *_ = term.cells()
            yield self._line(f"[{name}] = {cell_name(source, place, self.marked.layout)} = {result}")
            return
        relation = sign(term, show, result, places(step.id))
        yield self._line(f"[{name}] = {term_text(term, show, constant_text)} {relation} {result}")
        if relation == ABOUT:
            yield self._line(WHY_ABOUT_IN_MARKS, "italic dim")

    def _side_by_side(self, step: StepMark) -> Iterator[Line]:
        """What was written, wrong cells between > and <, and what follows from the learner's previous line."""
        turned = self.marked.layout == "columns" and step.written.ndim > 1
        written, own = (
            values if values is None or not turned or values.ndim < 2 else values.swapaxes(-1, -2)
            for values in (step.written, step.own)
        )
        wrong = np.zeros(written.shape, dtype=np.bool_)
        for cell in step.cells:
            index = tuple(i - 1 for i in cell)
            wrong[(*index[:-2], *reversed(index[-2:])) if turned else index] = True
        same = own is not None and own.shape == written.shape
        places = self._places(step, written, own if same else None, wrong)
        if same and max(written.shape[-2:], default=0) > _MOST:
            yield from self._wrong_cells(written, own, wrong, places)
            return
        if max((*written.shape[-2:], *(own.shape[-2:] if own is not None else ())), default=0) > _MOST:
            return
        yield self._line(N_("You wrote:"))
        yield from self._matrix(written, wrong, places, "?")
        if own is not None:
            yield self._line(
                N_("From your own lines above, this follows:")
                if self._written_above(step)
                else N_("From what is given, this follows:")
            )
            yield from self._matrix(own, np.zeros(own.shape, dtype=np.bool_), places, "0/0")

    def _written_above(self, step: StepMark) -> bool:
        """Whether any earlier line was written, which this one can follow from."""
        above = itertools.takewhile(lambda other: other.id != step.id, self.marked.steps)
        return any(other.written is not None for other in above)

    def _places(self, step: StepMark, written: Any, own: Any, wrong: Any) -> int:
        """Decimals that tell every wrong cell from what follows; those of the exercise, if they do."""
        places = self.marked.problem.decimals_of(step.id)
        while (
            own is not None
            and places < 15
            and any(
                number_text(w, places) == number_text(o, places)
                for w, o in zip(written[wrong], own[wrong], strict=True)
            )
        ):
            places += 1
        return places

    def _wrong_cells(self, written: Any, own: Any, wrong: Any, places: int) -> Iterator[Line]:
        """The first wrong cells of a matrix that is too large to be shown."""
        cells = np.argwhere(wrong)
        for cell in map(tuple, cells[:_MOST_CELLS]):
            yield self._line(
                Message(
                    N_("[{cell}]: you wrote {written}; {own} follows from your own lines above."),
                    cell=",".join(str(i + 1) for i in cell),
                    written=number_text(written[cell], places),
                    own=number_text(own[cell], places),
                )
            )
        if len(cells) > _MOST_CELLS:
            yield self._line(Message(N_("… and {count} more cells."), count=len(cells) - _MOST_CELLS))

    def _matrix(self, values: Any, wrong: Any, decimals: int, blank: str) -> Iterator[Line]:
        """A matrix line by line; with heads, one below the other with a line between them."""
        shown = values.reshape(-1, *values.shape[-2:]) if values.ndim > 2 else [np.atleast_2d(values)]
        marks = wrong.reshape(-1, *wrong.shape[-2:]) if wrong.ndim > 2 else [np.atleast_2d(wrong)]
        for head, (block, marked) in enumerate(zip(shown, marks, strict=True), start=1):
            if len(shown) > 1:
                yield self._line(Message(N_("Head {number}"), number=head), "dim")
            yield from self._block(block, marked, decimals, blank)

    def _block(self, block: Any, marked: Any, decimals: int, blank: str) -> Iterator[Line]:
        """As many columns side by side as the width has room for."""
        columns = []
        for j in range(block.shape[1]):
            texts = padded([blank if np.isnan(v) else number_text(v, decimals) for v in block[:, j]])
            wide = max(map(len, texts))
            columns.append(
                [f">{t.rjust(wide)}<" if m else f" {t.rjust(wide)} " for t, m in zip(texts, marked[:, j], strict=True)]
            )
        start = 0
        while start < len(columns):
            stop, room = start, self.width - 3
            while stop < len(columns) and (stop == start or room >= len(columns[stop][0]) + 1):
                room -= len(columns[stop][0]) + 1
                stop += 1
            if start or stop < len(columns):
                words = Message(N_("{Columns} {first} to {last}:"), first=start + 1, last=stop)
                yield self._line(words, "dim")
            for i in range(block.shape[0]):
                yield Line(
                    tuple((f" {columns[j][i]}", "bold red" if marked[i, j] else "") for j in range(start, stop)), True
                )
            start = stop

    def _for_the_author(self) -> Iterator[RenderableType]:
        if self.author:
            yield Text()
            yield self.text(self.say(for_the_author(self.author)), "dim")


def for_the_author(author: Sequence[Named]) -> Message:
    """Which mistakes an exercise cannot tell from the right answer."""
    pairs = ", ".join(f"{named.id} ({named.step})" for named in author[:_MOST_PAIRS])
    return Message(
        N_("For the author of this exercise: its numbers cannot tell these mistakes from the right answer: {pairs}."),
        pairs=pairs + (", …" if len(author) > _MOST_PAIRS else ""),
    )


def as_markdown(marked: Marked, language: Language, *, reveal: str = "first") -> str:
    """The same for a page: feedback that can be sent to a student."""
    sheet = Sheet(marked, language, reveal=reveal)
    lines = [f"# {_escaped(sheet.title())}", "", f"**{_escaped(sheet.score())}**", ""]
    for step in marked.steps:
        mark, _, words = sheet.verdict(step)
        lines.append(f"- {mark} `{_clean(step.id).replace('`', '')}`: {_escaped(words)}")
        numbers = False
        for line in sheet.lines(step):
            if not (line.numbers and numbers):
                lines.append("")
            lines.append(f"      {line.plain.rstrip()}" if line.numbers else f"  {_escaped(line.plain)}")
            numbers = line.numbers
        if lines[-1].startswith("  "):
            lines.append("")
    for note in sheet.notes():
        lines += ["", _escaped(note)]
    return "\n".join(lines).rstrip("\n") + "\n"


def unreadable_as_markdown(student: str, why: str) -> str:
    """What a student gets whose sheet could not be read."""
    return f"# {_escaped(student)}\n\n{_escaped(why)}\n"


def note_as_markdown(note: Message, language: Language) -> str:
    """A remark at the end of a student's page."""
    return f"\n{_escaped(note.text(language))}\n"


def _clean(text: str) -> str:
    return printable(" ".join(text.split("\n")))


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is."""
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>#|&~!$" else sign for sign in _clean(text))
