"""A marked sheet as blocks: for a student on a screen, and as a page of feedback."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from attncli.arithmetic import Value
from attncli.arithmetic.expression import entry_text
from attncli.core.matrix import BoolArray, FloatArray, Matrix
from attncli.core.message import N_, Language, Listed, Message
from attncli.marking.explain import Named
from attncli.marking.feedback import Marked, StepMark
from attncli.mistakes import look, varies, without_vaguer
from attncli.problems.problem import UNNAMED, Problem
from attncli.render.arithmetic import ABOUT, WHY_ABOUT_IN_MARKS, cell_term, sign, term_text
from attncli.render.document import Block, Gap, Heading, Marks, Paragraph, Sentences, StepVerdict, StepVerdicts
from attncli.render.text import cell_name, constant_text, number_text, points_text, printable, title_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MARKS = {
    "correct": ("✓", "right", N_("right")),
    "route": ("✓", "right", N_("right, by another way")),
    "imprecise": ("~", "remark", N_("right, but not precise enough")),
    "follow_through": ("✓", "followed", N_("right from your own earlier values")),
    "wrong": ("✗", "wrong", N_("not right")),
    "blank": ("·", "aside", N_("left blank")),
    "malformed": ("✗", "wrong", N_("cannot be read")),
}
_WRONG = ("wrong", "malformed")


#: Lines or columns a matrix may have to be shown whole; of a larger one the wrong cells are listed.
_MOST = 16
_MOST_CELLS = 8
#: Cells that the arithmetic of a cell may refer to and still be shown.
_MOST_TERMS = 12
#: Wrong cells that are named beside a matrix that shows them.
_MOST_NAMED = 6
#: Units from which on a distance is given without decimals.
_WHOLE_UNITS = 100


def page(marked: Marked, language: Language, *, reveal: str = "first", score_first: bool = False) -> Iterator[Block]:
    """From top to bottom: whose sheet, a line a step, the first wrong one opened up, the score.

    Parameters
    ----------
    reveal : "first" (open up the first wrong step), "hint" (no right number at all), or "all"
    score_first : the score stands below the title
    """
    sheet = _Sheet(marked, language, reveal)
    score = Paragraph(sheet.score(), "strong")
    yield Heading(sheet.title(), 1)
    if score_first:
        yield score
    departure = tuple(sheet.departure())
    if departure:
        yield Gap()
        yield Sentences(departure)
    yield Gap()
    yield StepVerdicts(tuple(sheet.verdict(step) for step in marked.steps if step.verdict != "blank"))
    yield from (Paragraph(text, "aside") for text in (sheet.blank(), sheet.names()) if text)
    if not score_first:
        yield Gap()
        yield score
    yield from (Paragraph(note, "remark") for note in sheet.notes())


def title_of_exercise(problem: Problem, language: Language) -> str:
    """What stands above a sheet or a class: the title, else the id."""
    return title_of(problem, language, "" if problem.id == UNNAMED else problem.id)


def language_of(marked: Marked, language: Language) -> Language:
    """The language for a sheet, in which rows are columns where its tokens stand side by side."""
    return language.with_columns() if marked.layout == "columns" else language


class _Sheet:
    """One marked sheet in one language."""

    def __init__(self, marked: Marked, language: Language, reveal: str) -> None:
        self.marked = marked
        self.language = language_of(marked, language)
        self.reveal = reveal

    def say(self, message: Message | str) -> str:
        return _clean((message if isinstance(message, Message) else Message(message)).text(self.language))

    def title(self) -> str:
        title = title_of_exercise(self.marked.problem, self.language)
        return _clean(f"{title} · {self.marked.student}" if self.marked.student else title)

    def score(self) -> str:
        score, most = points_text(float(self.marked.score)), points_text(float(self.marked.max_score))
        return self.say(Message("Points: {score} of {most}", score=score, most=most))

    def notes(self) -> Iterator[str]:
        """Remarks on the whole sheet, and what is left to be opened up."""
        yield from map(self.say, self.marked.notes)
        if self.reveal != "all" and any(
            step.verdict in _WRONG and step.id != self.marked.first_wrong for step in self.marked.steps
        ):
            yield self.say(N_("Only the first wrong line is opened up. Correct it, then check again."))

    def verdict(self, step: StepMark) -> StepVerdict:
        """A sign, the verdict in words with the points, and what there is to say."""
        mark, tone, words = _MARKS[step.verdict]
        points = f"  {points_text(float(step.points))}/{points_text(float(step.max_points))}" if step.max_points else ""
        return StepVerdict(mark, tone, _clean(step.id), f"{self.say(words)}{points}", tuple(self.lines(step)))

    def lines(self, step: StepMark) -> Iterator[Paragraph | Marks]:
        """What there is to say about a step: a wrong one as far as was asked for."""
        if step.verdict not in _WRONG:
            yield from self._said(step)
        elif self.reveal == "all" or step.id == self.marked.first_wrong:
            yield from self._nudge(step) if self.reveal == "hint" else self._opened(step)
        elif self.reveal != "hint":
            yield from self._said(step)

    def departure(self) -> Iterator[Paragraph]:
        """Of a program's arrays, before anything else: the first step that departs, its worst cell, how far, and why."""
        step = next((step for step in self.marked.steps if step.id == self.marked.first_wrong), None)
        if step is None or step.verdict != "wrong" or not _is_dumped(step) or self.reveal == "hint":
            return
        words = Message(
            "{step} is the first step that differs. Wrong numbers: {count} of {all}.",
            step=step.id,
            count=len(step.cells),
            all=int(step.written.size),
        )
        yield self._line(words, "wrong")
        yield from self._said(step)
        shown = Shown(step, self.marked.layout, self.marked.problem.decimals_of(step.id))
        if not shown.worst or not shown.same:
            return
        cell = shown.worst[0]
        words = Message(
            "Farthest off: [{cell}], {written} instead of {own}.",
            cell=shown.name(cell),
            written=shown.texts[cell],
            own=shown.right(cell),
        )
        yield self._line(words)
        if step.off is not None:
            yield self._line(
                Message(
                    "Distance from the nearest right number: {off} units of the last place asked ({unit}).",
                    off=constant_text(float(round(step.off) if step.off >= _WHOLE_UNITS else f"{step.off:.3g}")),
                    unit=number_text(10.0**-shown.decimals, shown.decimals),
                )
            )

    def blank(self) -> str:
        """The steps that were asked for and not written, in one paragraph; empty where there are none."""
        blank = [step.id for step in self.marked.steps if step.verdict == "blank"]
        return self.say(Message("· left blank: {steps}", steps=Listed(blank))) if blank else ""

    def _said(self, step: StepMark) -> Iterator[Paragraph]:
        """What is said of a step, but for what the verdict says already and what is said once for all steps."""
        return (self._line(message) for message in step.said if message.kind not in ("followed", "name"))

    def names(self) -> str:
        """By which names the sheet calls steps, where these are not their own, in one paragraph; else empty."""
        names = (
            f"{message.fields['name']} = {step.id}"
            for step in self.marked.steps
            for message in step.said
            if message.kind == "name"
        )
        named = Listed(names)
        return self.say(Message("· your names for these steps: {names}", names=named)) if named.fields["things"] else ""

    def _line(self, message: Message | str, tone: str = "") -> Paragraph:
        return Paragraph(self.say(message), tone)

    def _nudge(self, step: StepMark) -> Iterator[Paragraph]:
        """Where to look, without any right number."""
        if step.mistakes:
            yield self._line(self._look(step))
        elif step.verdict == "wrong":
            yield self._line(N_("Work this line out once more from your own lines above it."))
        else:
            yield from self._said(step)

    def _opened(self, step: StepMark) -> Iterator[Paragraph | Marks]:
        """What was done and where to look again; the cells; what was written and what follows from the lines above."""
        yield from self._said(step)
        earlier = sorted({named.step for named in step.mistakes if named.step != step.id})
        if earlier:
            yield self._line(Message(self._when(step), steps=Listed(earlier)))
        if step.mistakes:
            yield self._line(self._look(step), "advice")
        if step.verdict == "wrong" and step.written is not None:
            yield from self._numbers(step)

    def _when(self, step: StepMark) -> str:
        """How the mistakes of earlier lines go with those of this one: all there, one of two, or one way or the other."""
        if all(named.step != step.id for named in step.mistakes):
            return N_("This happened at {steps}, which you did not write down.")
        if any(message.kind == "two" for message in step.said):
            return N_("One of them happened at {steps}, which you did not write down.")
        if any(
            one.id == named.step and one.written is not None
            for named in step.mistakes
            for one in self.marked.steps
            if one is not step
        ):
            return N_("Here, or already at {steps}, where it makes no difference to the numbers.")
        return N_("Here, or already at {steps}, which you did not write down.")

    def _look(self, step: StepMark) -> Message:
        """Where to look again, in the words of the step that the likeliest mistake was made at."""
        told = without_vaguer([named.id for named in step.mistakes if named.step == step.mistakes[0].step])
        likeliest = next(named for named in step.mistakes if named.id == told[0])
        graph = self.marked.graph if varies(likeliest.id) else None
        return look(likeliest.id, graph, likeliest.step)

    def _numbers(self, step: StepMark) -> Iterator[Paragraph | Marks]:
        """The wrong cells, how the first of them comes about, and the matrices, if these can be taken in at a glance."""
        shown = Shown(step, self.marked.layout, self.marked.problem.decimals_of(step.id))
        sizes = [*shown.written.shape[-2:], *(shown.own.shape[-2:] if shown.own is not None else ())]
        large = max(sizes, default=0) > _MOST
        if large and shown.same:
            yield from self._wrong_cells(shown)
        elif step.mistakes and step.cells and shown.written.size > 1:
            yield self._line(self._which(shown))
        yield from self._arithmetic(step)
        if large:
            return
        yield self._line(N_("You wrote:"))
        yield from self._matrix(shown.texts, shown.wrong)
        if shown.own is not None:
            yield self._line(self._what_follows(step))
            yield from self._matrix(shown.own_texts(), np.zeros(shown.own.shape, dtype=np.bool_))

    def _which(self, shown: Shown) -> Message:
        if shown.wrong.all():
            return Message("It shows in every cell.")
        names = [f"[{shown.name(cell)}]" for cell in map(tuple, np.argwhere(shown.wrong)[:_MOST_NAMED].tolist())]
        cells = Listed([*names, *(["…"] if np.count_nonzero(shown.wrong) > _MOST_NAMED else [])])
        return Message("It shows in these cells: {cells}.", cells=cells)

    def _what_follows(self, step: StepMark) -> str:
        if step.id in self.marked.graph.inputs:
            return N_("This was given:")
        above = itertools.takewhile(lambda other: other.id != step.id, self.marked.steps)
        undefined = any(message.kind == "undefined" for message in step.said)
        if not undefined and any(other.written is not None for other in above):
            return N_("From your own lines above, this follows:")
        return N_("From what is given, this follows:")

    def _arithmetic(self, step: StepMark) -> Iterator[Paragraph]:
        """How the first wrong cell comes about from the learner's own numbers, where no known mistake explains it."""
        if not step.operands or not step.cells or step.own is None:
            return
        graph, index = self.marked.graph, tuple(i - 1 for i in step.cells[0])
        written = {one.id for one in self.marked.steps if one.written is not None}
        term = cell_term(graph.steps[step.id], index, graph, step.operands, written=written)
        if len(list(term.cells())) > _MOST_TERMS:
            return
        places = self.marked.problem.decimals_of
        typed = {one.id: (one.written, _texts(one.written, one.typed)) for one in self.marked.steps if one.typed}
        for id, source in graph.inputs.items():
            typed.setdefault(id, (source.matrix.values, _texts(source.matrix.values, source.matrix)))

        def show(id: str, place: tuple[int, ...]) -> str:
            """The number as it stands on the page, if it was taken from there."""
            number = float(step.operands[id][place])
            values, texts = typed.get(id, (None, None))
            if (
                values is not None
                and texts is not None
                and values.shape == step.operands[id].shape
                and values[place] == number
            ):
                return str(texts[place])
            return number_text(number, places(id))

        layout = self.marked.layout
        name = cell_name("", index, layout)
        result = number_text(float(step.own[index]), places(step.id))
        if term.kind == "cell":  # a number taken over as it is
            (source_id, place), *_ = term.cells()
            yield self._line(f"{name} = {cell_name(source_id, place, layout)} = {result}")
            return
        relation = sign(term, show, result, places(step.id))
        yield self._line(f"{name} = {term_text(term, show)} {relation} {result}")
        if relation == ABOUT:
            yield self._line(WHY_ABOUT_IN_MARKS, "reason")

    def _wrong_cells(self, shown: Shown) -> Iterator[Paragraph]:
        """The worst cells of a matrix that is too large to be shown."""
        for cell in shown.worst[:_MOST_CELLS]:
            yield self._line(
                Message(
                    "[{cell}]: you wrote {written}; {own} follows from your own lines above.",
                    cell=shown.name(cell),
                    written=shown.texts[cell],
                    own=shown.right(cell),
                )
            )
        if len(shown.worst) > _MOST_CELLS:
            yield self._line(Message("… and {count} more cells.", count=len(shown.worst) - _MOST_CELLS))

    def _matrix(self, texts: NDArray[np.object_], wrong: BoolArray) -> Iterator[Paragraph | Marks]:
        """A matrix; with heads, one below the other with a line between them."""
        shown = texts.reshape(-1, *texts.shape[-2:]) if texts.ndim > 2 else [np.atleast_2d(texts)]
        marks = wrong.reshape(-1, *wrong.shape[-2:]) if wrong.ndim > 2 else [np.atleast_2d(wrong)]
        for head, (block, marked) in enumerate(zip(shown, marks, strict=True), start=1):
            if len(shown) > 1:
                yield self._line(Message("Head {number}", number=head), "aside")
            cells = tuple(tuple(str(text) for text in row) for row in block)
            yield Marks(cells, tuple(map(tuple, marked.tolist())))


class Shown:
    """A wrong step's numbers, with tokens the way the sheet has them.

    Attributes
    ----------
    texts : what was written, as it was written
    own : what should have come out, or None
    same : whether that has the shape of what was written
    wrong : which cells are wrong
    """

    def __init__(self, step: StepMark, layout: str, decimals: int) -> None:
        self.decimals = decimals
        wrong = np.zeros(step.written.shape, dtype=np.bool_)
        for cell in step.cells:
            wrong[tuple(i - 1 for i in cell)] = True
        own = step.own
        if own is not None and own.shape != step.written.shape and own.size == step.written.size == max(own.shape):
            own = own.reshape(step.written.shape)  # a vector the way round it was written
        self.same = own is not None and own.shape == step.written.shape
        self.places = _places(step.written, own if self.same else None, wrong, decimals)
        turned = layout == "columns"

        def as_shown(cells: Value) -> Value:
            return cells.swapaxes(-1, -2) if turned and cells is not None and cells.ndim > 1 else cells

        self.written, self.own = as_shown(step.written), as_shown(own)
        self.texts: NDArray[np.object_] = as_shown(_texts(step.written, step.typed, self.places))
        self.wrong: BoolArray = as_shown(wrong)

    @property
    def worst(self) -> list[tuple[int, ...]]:
        """The wrong cells, the farthest off first."""
        cells = [tuple(cell) for cell in np.argwhere(self.wrong).tolist()]
        if not self.same:
            return cells
        with np.errstate(invalid="ignore"):
            off = np.abs(self.written - self.own)
        return sorted(cells, key=lambda cell: -float(f"{np.nan_to_num(off[cell], nan=np.inf, posinf=np.inf):.3g}"))

    @staticmethod
    def name(cell: tuple[int, ...]) -> str:
        return ",".join(str(i + 1) for i in cell)

    def right(self, cell: tuple[int, ...]) -> str:
        return number_text(self.own[cell], self.places)

    def own_texts(self) -> NDArray[np.object_]:
        texts = np.empty(self.own.shape, dtype=object)
        for cell, value in np.ndenumerate(self.own):
            texts[cell] = "0/0" if np.isnan(value) else number_text(value, self.places)
        return texts


def _texts(values: FloatArray, typed: Matrix | None, places: int | None = None) -> NDArray[np.object_]:
    """A matrix as it was written, cell by cell; a program's numbers with so many places, which show how far they are off."""
    texts = np.empty(values.shape, dtype=object)
    if typed is not None and typed.entries is not None and len(typed.entries) == values.size:
        each = [entry_text(entry) for entry in typed.entries]
    elif places is None:
        each = [constant_text(value) for value in values.flat]
    else:
        each = [number_text(value, places) for value in values.flat]
    for index, text in zip(np.ndindex(values.shape), each, strict=True):
        texts[index] = "?" if np.isnan(values[index]) else text
    return texts


def _places(written: FloatArray, own: FloatArray | None, wrong: BoolArray, decimals: int) -> int:
    """Decimals that tell every wrong cell from what follows; those of the exercise, if they do."""
    places = decimals
    while (
        own is not None
        and places < 15
        and any(
            number_text(w, places) == number_text(o, places) for w, o in zip(written[wrong], own[wrong], strict=True)
        )
    ):
        places += 1
    return places


def _is_dumped(step: StepMark) -> bool:
    """Whether a step's numbers come out of a program."""
    return step.typed is not None and step.typed.entries is None and step.typed.decimals is None


def for_the_author(author: Sequence[Named]) -> Message:
    """Which mistakes an exercise cannot tell from the right answer: each with the steps it may be made at."""
    steps: dict[str, list[str]] = {}
    for one in author:
        steps.setdefault(one.id, []).append(one.step)
    return Message(
        "For the author of this exercise: its numbers cannot tell these mistakes from the right answer: {mistakes}.",
        mistakes=Listed([f"{id} ({', '.join(at)})" for id, at in steps.items()]),
    )


def _clean(text: str) -> str:
    return printable(" ".join(text.split("\n")))
