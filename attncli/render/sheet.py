"""Marked sheets as blocks: one for a student, on a screen and as a page of feedback; and a class, with what many did wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np

from attncli.arithmetic import Value
from attncli.arithmetic.expression import entry_text
from attncli.core.matrix import BoolArray, FloatArray, Matrix
from attncli.core.message import N_, Language, Listed, Message
from attncli.core.terms import Index
from attncli.marking.explain import Named, where_to_look
from attncli.marking.feedback import Marked, StepMark
from attncli.marking.grading import MOST_LISTED, Picture
from attncli.mistakes import CATALOGUE, did
from attncli.problems.problem import UNNAMED, Problem
from attncli.render.arithmetic import ABOUT, WHY_ABOUT_IN_MARKS, cell_term, equation
from attncli.render.document import (
    Bars,
    Block,
    Counts,
    Gap,
    Heading,
    ListEntry,
    Listing,
    Marks,
    Paragraph,
    Sentences,
    StepVerdict,
    StepVerdicts,
)
from attncli.render.text import cell_name, constant_text, number_text, points_text, printable, title_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MARKS = {
    "correct": ("✓", "right", N_("right")),
    "route": ("✓", "right", N_("right, by another way")),
    "imprecise": ("~", "remark", N_("right, but not precise enough")),
    "follow_through": ("✓", "followed", N_("right from your own earlier values")),
    "wrong": ("✗", "wrong", N_("not right")),
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
#: Places that tell any two numbers apart.
_ALL_PLACES = 15


def page(marked: Marked, language: Language, *, reveal: str = "first", score_first: bool = False) -> Iterator[Block]:
    """From top to bottom: whose sheet, a line a step, the first wrong one opened up, the score.

    Parameters
    ----------
    reveal : "first" (open up the first wrong step), "hint" (no right number at all), or "all"
    score_first : the score stands below the title
    """
    return _Sheet(marked, language, reveal).blocks(score_first=score_first)


def _title_of(problem: Problem, language: Language) -> str:
    return title_of(problem, language, "" if problem.id == UNNAMED else problem.id)


def language_of(marked: Marked, language: Language) -> Language:
    """The language for a sheet, in which rows are columns where its tokens stand side by side."""
    return language.in_layout(marked.layout)


class _Sheet:
    """One marked sheet in one language."""

    def __init__(self, marked: Marked, language: Language, reveal: str) -> None:
        self.marked = marked
        self.language = language_of(marked, language)
        self.reveal = reveal

    def line(self, words: Message | str, tone: str = "") -> Paragraph:
        return Paragraph(self.say(words), tone)

    def say(self, words: Message | str) -> str:
        """Words on one line: what somebody else has written may have several."""
        text = (words if isinstance(words, Message) else Message(words)).text(self.language)
        return _clean(text)

    def blocks(self, *, score_first: bool) -> Iterator[Block]:
        marked = self.marked
        title = _title_of(marked.problem, self.language)
        points, most = points_text(marked.score), points_text(marked.max_score)
        score = self.line(Message("Points: {score} of {most}", score=points, most=most), "strong")
        yield Heading(_clean(f"{title} · {marked.student}" if marked.student else title), 1)
        if score_first:
            yield score
        departure = tuple(self.departure())
        if departure:
            yield Gap()
            yield Sentences(departure)
        yield Gap()
        yield StepVerdicts(tuple(self.verdict(step) for step in marked.steps if step.verdict != "blank"))
        yield from self.asides()
        if not score_first:
            yield Gap()
            yield score
        yield from (self.line(note, "remark") for note in marked.notes)
        others = (step for step in marked.steps if step.verdict in _WRONG and step.id != marked.first_wrong)
        if self.reveal != "all" and any(others):
            yield self.line(N_("Only the first wrong line is opened up. Correct it, then check again."), "remark")

    def asides(self) -> Iterator[Paragraph]:
        """The steps that were asked for and not written; and by which names the sheet calls steps that have others."""
        steps = self.marked.steps
        blank = [step.id for step in steps if step.verdict == "blank"]
        if blank:
            yield self.line(Message("· left blank: {steps}", steps=Listed(blank)), "aside")
        said = ((step.id, message) for step in steps for message in step.said)
        names = [f"{message.fields['name']} = {step_id}" for step_id, message in said if message.kind == "name"]
        if names:
            yield self.line(Message("· your names for these steps: {names}", names=Listed(names)), "aside")

    def departure(self) -> Iterator[Paragraph]:
        """Of a program's arrays, before anything else: the first step that departs, its worst cell, how far, and why."""
        step = next((step for step in self.marked.steps if step.id == self.marked.first_wrong), None)
        if step is None or step.verdict != "wrong" or not _is_dumped(step) or self.reveal == "hint":
            return
        words = N_("{step} is the first step that differs. Wrong numbers: {count} of {all}.")
        yield self.line(Message(words, step=step.id, count=len(step.cells), all=int(step.written.size)), "wrong")
        yield from self.said(step)
        shown = Shown(step, self.marked)
        if not shown.worst or not shown.same:
            return
        yield self.line(shown.beside(N_("Farthest off: [{cell}], {written} instead of {own}."), shown.worst[0]))
        if step.off is not None:
            off = constant_text(float(round(step.off) if step.off >= _WHOLE_UNITS else f"{step.off:.3g}"))
            words = N_("Distance from the nearest right number: {off} units of the last place asked ({unit}).")
            yield self.line(Message(words, off=off, unit=number_text(10.0**-shown.decimals, shown.decimals)))

    def verdict(self, step: StepMark) -> StepVerdict:
        """A sign, the verdict in words with the points, and what there is to say."""
        mark, tone, words = _MARKS[step.verdict]
        points = f"  {points_text(step.points)}/{points_text(step.max_points)}" if step.max_points else ""
        return StepVerdict(mark, tone, _clean(step.id), f"{self.say(words)}{points}", tuple(self.body(step)))

    def body(self, step: StepMark) -> Iterator[Paragraph | Marks]:
        """What there is to say about a step: a wrong one as far as was asked for."""
        if step.verdict not in _WRONG:
            yield from self.said(step)
        elif self.reveal == "all" or step.id == self.marked.first_wrong:
            yield from self.nudge(step) if self.reveal == "hint" else self.opened(step)
        elif self.reveal != "hint":
            yield from self.said(step)

    def said(self, step: StepMark) -> Iterator[Paragraph]:
        """What is said of a step, but for what the verdict says already and what is said once for all steps."""
        return (self.line(message) for message in step.said if message.kind not in ("followed", "name"))

    def nudge(self, step: StepMark) -> Iterator[Paragraph]:
        """Where to look, without any right number."""
        if step.mistakes:
            yield self.line(where_to_look(step.mistakes, self.marked.graph))
        elif step.verdict == "wrong":
            yield self.line(N_("Work this line out once more from your own lines above it."))
        else:
            yield from self.said(step)

    def opened(self, step: StepMark) -> Iterator[Paragraph | Marks]:
        """What was done and where to look again; the cells; what was written and what follows from the lines above."""
        yield from self.said(step)
        earlier = sorted({named.step for named in step.mistakes if named.step != step.id})
        if earlier:
            yield self.line(Message(self.when(step), steps=Listed(earlier)))
        if step.mistakes:
            yield self.line(where_to_look(step.mistakes, self.marked.graph), "advice")
        if step.verdict == "wrong" and step.written is not None:
            yield from self.numbers(step)

    def when(self, step: StepMark) -> str:
        """How the mistakes of earlier lines go with those of this one: all there, one of two, or one way or the other."""
        made_at = {named.step for named in step.mistakes}
        if step.id not in made_at:
            return N_("This happened at {steps}, which you did not write down.")
        if any(message.kind == "two" for message in step.said):
            return N_("One of them happened at {steps}, which you did not write down.")
        others = (one for one in self.marked.steps if one is not step)
        if any(one.id in made_at and one.written is not None for one in others):
            return N_("Here, or already at {steps}, where it makes no difference to the numbers.")
        return N_("Here, or already at {steps}, which you did not write down.")

    def numbers(self, step: StepMark) -> Iterator[Paragraph | Marks]:
        """The wrong cells, how the first of them comes about, and the matrices, if these can be taken in at a glance."""
        shown = Shown(step, self.marked)
        sizes = [*shown.written.shape[-2:], *(shown.own.shape[-2:] if shown.own is not None else ())]
        large = max(sizes, default=0) > _MOST
        if large and shown.same:
            yield from self.wrong_cells(shown)
        elif step.mistakes and step.cells and shown.written.size > 1:
            yield self.line(shown.which())
        yield from self.arithmetic(step)
        if large:
            return
        yield self.line(N_("You wrote:"))
        yield from self.matrix(shown.texts, shown.wrong)
        if shown.own is not None:
            yield self.line(self.what_follows(step))
            yield from self.matrix(shown.own_texts(), np.zeros(shown.own.shape, dtype=np.bool_))

    def wrong_cells(self, shown: Shown) -> Iterator[Paragraph]:
        """The worst cells of a matrix that is too large to be shown."""
        words = N_("[{cell}]: you wrote {written}; {own} follows from your own lines above.")
        yield from (self.line(shown.beside(words, cell)) for cell in shown.worst[:_MOST_CELLS])
        if len(shown.worst) > _MOST_CELLS:
            yield self.line(Message("… and {count} more cells.", count=len(shown.worst) - _MOST_CELLS))

    def what_follows(self, step: StepMark) -> str:
        if step.id in self.marked.graph.inputs:
            return N_("This was given:")
        above = takewhile(lambda other: other.id != step.id, self.marked.steps)
        undefined = any(message.kind == "undefined" for message in step.said)
        if not undefined and any(other.written is not None for other in above):
            return N_("From your own lines above, this follows:")
        return N_("From what is given, this follows:")

    def arithmetic(self, step: StepMark) -> Iterator[Paragraph]:
        """How the first wrong cell comes about from the learner's own numbers, where no known mistake explains it."""
        if not step.operands or not step.cells or step.own is None:
            return
        marked, graph, index = self.marked, self.marked.graph, tuple(i - 1 for i in step.cells[0])
        written = {one.id for one in marked.steps if one.written is not None}
        term = cell_term(graph.steps[step.id], index, graph, step.operands, written)
        if len(list(term.cells())) > _MOST_TERMS:
            return
        places = marked.problem.decimals_of
        on_page = {input_id: (given.matrix.values, given.matrix) for input_id, given in graph.inputs.items()}
        on_page |= {one.id: (one.written, one.typed) for one in marked.steps if one.typed}

        def show(step_id: str, place: Index) -> str:
            """The number as it stands on the page, if it was taken from there."""
            numbers = step.operands[step_id]
            values, typed = on_page.get(step_id, (None, None))
            if values is not None and values.shape == numbers.shape and values[place] == numbers[place]:
                return _text(values, typed, int(np.ravel_multi_index(place, values.shape)))
            return number_text(float(numbers[place]), places(step_id))

        name, result = cell_name("", index, marked.layout), number_text(float(step.own[index]), places(step.id))
        named = partial(cell_name, layout=marked.layout)
        text, relation = equation(term, show, named, result, places(step.id))
        yield self.line(f"{name} = {text}")
        if relation == ABOUT:
            yield self.line(WHY_ABOUT_IN_MARKS, "reason")

    def matrix(self, texts: NDArray[np.object_], wrong: BoolArray) -> Iterator[Paragraph | Marks]:
        """A matrix; with heads, one below the other with a line between them."""
        heads = (-1, *np.atleast_2d(texts).shape[-2:])
        blocks, marks = texts.reshape(heads).tolist(), wrong.reshape(heads).tolist()
        for head, (cells, marked) in enumerate(zip(blocks, marks, strict=True), start=1):
            if len(blocks) > 1:
                yield self.line(Message("Head {number}", number=head), "aside")
            yield Marks(tuple(map(tuple, cells)), tuple(map(tuple, marked)))


class Shown:
    """A wrong step's numbers, with tokens the way the sheet has them.

    Attributes
    ----------
    texts : what was written, as it was written
    own : what should have come out, or None
    same : whether that has the shape of what was written
    wrong : which cells are wrong
    """

    def __init__(self, step: StepMark, marked: Marked) -> None:
        self.decimals = marked.problem.decimals_of(step.id)
        written, own = step.written, step.own
        wrong = np.zeros(written.shape, dtype=np.bool_)
        for cell in step.cells:
            wrong[tuple(i - 1 for i in cell)] = True
        if own is not None and own.shape != written.shape and own.size == written.size == max(own.shape):
            own = own.reshape(written.shape)  # a vector the way round it was written
        self.same = own is not None and own.shape == written.shape
        self.places = _places(written[wrong], own[wrong], self.decimals) if self.same else self.decimals
        texts = [_text(written, step.typed, place, self.places) for place in range(written.size)]

        def as_shown(cells: Value) -> Value:
            as_columns = marked.layout == "columns" and cells is not None and cells.ndim > 1
            return cells.swapaxes(-1, -2) if as_columns else cells

        self.written, self.own = as_shown(written), as_shown(own)
        self.texts: NDArray[np.object_] = as_shown(_in_shape(texts, written.shape))
        self.wrong: BoolArray = as_shown(wrong)

    @property
    def worst(self) -> list[Index]:
        """The wrong cells, the farthest off first."""
        cells = [tuple(cell) for cell in np.argwhere(self.wrong).tolist()]
        if not self.same:
            return cells
        with np.errstate(invalid="ignore"):
            off = np.abs(self.written - self.own)
        return sorted(cells, key=lambda cell: -float(f"{np.nan_to_num(off[cell], nan=np.inf, posinf=np.inf):.3g}"))

    def which(self) -> Message:
        """Where a mistake shows."""
        if self.wrong.all():
            return Message("It shows in every cell.")
        cells = Listed.first((cell_name("", tuple(cell)) for cell in np.argwhere(self.wrong)), _MOST_NAMED)
        return Message("It shows in these cells: {cells}.", cells=cells)

    def beside(self, words: str, cell: Index) -> Message:
        """What was written in a cell beside what follows."""
        name = ",".join(str(i + 1) for i in cell)
        return Message(words, cell=name, written=self.texts[cell], own=number_text(self.own[cell], self.places))

    def own_texts(self) -> NDArray[np.object_]:
        texts = ["0/0" if np.isnan(value) else number_text(value, self.places) for value in self.own.flat]
        return _in_shape(texts, self.own.shape)


def _in_shape(texts: list[str], shape: tuple[int, ...]) -> NDArray[np.object_]:
    return np.array(texts, dtype=object).reshape(shape)


def _text(values: FloatArray, typed: Matrix | None, place: int, places: int | None = None) -> str:
    """A cell as it was written, counted through; a program's number with so many places, which show how far it is off."""
    value = values.flat[place]
    if np.isnan(value):
        return "?"
    if typed is not None and typed.entries is not None and len(typed.entries) == values.size:
        return entry_text(typed.entries[place])
    return constant_text(value) if places is None else number_text(value, places)


def _places(written: FloatArray, own: FloatArray, decimals: int) -> int:
    """Decimals that tell every wrong cell from what follows; those of the exercise, if they do."""

    def tell_apart(places: int) -> bool:
        return all(number_text(w, places) != number_text(o, places) for w, o in zip(written, own, strict=True))

    return next(filter(tell_apart, range(decimals, _ALL_PLACES)), max(decimals, _ALL_PLACES))


def _is_dumped(step: StepMark) -> bool:
    """Whether a step's numbers come out of a program."""
    return step.typed is not None and step.typed.entries is None and step.typed.decimals is None


def _clean(text: str) -> str:
    return printable(" ".join(text.split("\n")))


def for_the_author(author: Sequence[Named]) -> Message:
    """Which mistakes an exercise cannot tell from the right answer: each with the steps it may be made at."""
    steps: dict[str, list[str]] = {}
    for one in author:
        steps.setdefault(one.id, []).append(one.step)
    return Message(
        "For the author of this exercise: its numbers cannot tell these mistakes from the right answer: {mistakes}.",
        mistakes=Listed([f"{mistake} ({', '.join(at)})" for mistake, at in steps.items()]),
    )


# A class: how many made which mistake at which step, the mean, the distribution.

#: Kinds of mistakes that are listed; the rest is in the files.
_MOST_KINDS = 15
#: Different scores that get a line each; more are put together in ten ranges.
_MOST_SCORES = 12
_VERDICTS = {
    "correct": (Message("right"), ""),
    "route": (Message("other way"), ""),
    "imprecise": (Message("imprecise"), ""),
    "follow_through": (Message("followed"), ""),
    "wrong": (Message("wrong"), "false"),
    "malformed": (Message("unreadable"), ""),
    "first": (Message("first wrong"), "false"),
    "blank": (Message("blank"), ""),
}


def class_page(picture: Picture, problem: Problem, language: Language, author: Sequence[Named] = ()) -> Iterator[Block]:
    """From top to bottom; `author`: mistakes that the exercise cannot tell from the right answer."""
    yield Heading(_title_of(problem, language), 1)
    summary = Message(
        "Sheets: {sheets}, unreadable: {malformed}. Mean: {mean} of {most} points.",
        sheets=picture.sheets,
        malformed=picture.malformed,
        mean=points_text(picture.mean),
        most=points_text(picture.max_score),
    )
    yield Paragraph(summary)
    if picture.unreadable:  # a sheet that nobody has marked must be looked for by somebody
        yield Heading(Message("Not marked"))
        yield from (
            Paragraph(f"{student}: {why}", "false", hanging=2) for student, why in picture.unreadable[:_MOST_KINDS]
        )
        yield from _more(picture.malformed + picture.faults, _MOST_KINDS)
    if picture.several:
        yield Gap()
        names = Listed(f"{student} ({count})" for student, count in list(picture.several.items())[:_MOST_KINDS])
        several = N_("These students handed in more than one sheet; all are kept and marked: {names}.")
        yield Paragraph(Message(several, names=names), "remark")
    if picture.scores:
        yield Heading(Message("How the points are spread"))
        yield Bars(tuple((label, float(count), str(count)) for label, count in _groups(picture)), is_framed=False)
    if picture.students:
        yield Heading(Message("The students and their points"))
        scores = (
            (name, "–" if score is None else points_text(score)) for name, score in picture.students[:MOST_LISTED]
        )
        yield Listing(tuple(ListEntry(points, name) for name, points in scores), indent=0)
        yield from _more(picture.sheets, MOST_LISTED)
    if any(picture.verdicts.values()):
        yield Heading(Message("Step by step"))
        yield _counts(picture)
    if picture.mistakes:
        yield Heading(Message("The mistakes, the most frequent first"))
        yield from _mistakes(picture)
    if author and picture.sheets:
        yield Gap()
        yield Paragraph(for_the_author(author), "aside")


def _more(count: int, shown: int) -> Iterator[Block]:
    if count > shown:
        more = N_("… and {count} more; to have all of them in a file: -o class.csv")
        yield Paragraph(Message(more, count=count - shown), "aside")


def _counts(picture: Picture) -> Counts:
    """A line a step: how many were right, wrong, first wrong there, blank."""
    lines = {
        step: {**verdicts, "first": picture.first_wrong[step]}
        for step, verdicts in picture.verdicts.items()
        if verdicts
    }
    kinds = [kind for kind in _VERDICTS if any(line.get(kind) for line in lines.values())]
    rows = ((step, tuple(line.get(kind, 0) for kind in kinds)) for step, line in lines.items())
    return Counts(tuple(_VERDICTS[kind] for kind in kinds), tuple(rows))


def _mistakes(picture: Picture) -> Iterator[Block]:
    order = {step: i for i, step in enumerate(picture.verdicts)}
    ranked = sorted(picture.mistakes.items(), key=lambda one: (-one[1], order.get(one[0][0], len(order)), one[0]))
    wide = len(str(ranked[0][1]))
    for (step, mistake_id), count in ranked[:_MOST_KINDS]:
        yield Paragraph(f"{count:>{wide}} × {mistake_id} ({step})", "strong", hanging=wide + 3)
        if mistake_id in CATALOGUE:
            yield Paragraph(did(mistake_id), indent=wide + 3)
    if len(ranked) > _MOST_KINDS:
        yield Paragraph(Message("… and {count} more kinds.", count=len(ranked) - _MOST_KINDS), "aside")


def _groups(picture: Picture) -> list[tuple[str, int]]:
    """Scores and how often they were reached; many different ones are put together in ten equal ranges."""
    scores = sorted(picture.scores.items())
    if len(scores) <= _MOST_SCORES:
        return [(points_text(score), count) for score, count in scores]
    top = picture.max_score or 1.0
    counts = [0] * 10
    for score, count in scores:
        counts[min(9, int(score / top * 10))] += count
    return [(f"{points_text(top * i / 10)}–{points_text(top * (i + 1) / 10)}", count) for i, count in enumerate(counts)]
