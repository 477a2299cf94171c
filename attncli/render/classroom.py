r"""A class as blocks: how many made which mistake at which step, the mean, the distribution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attncli.core.message import N_, Language, Listed, Message
from attncli.marking.explain import Named
from attncli.marking.grading import MOST_LISTED, Picture
from attncli.mistakes import CATALOGUE, did
from attncli.problems.problem import Problem
from attncli.render.document import Bars, Block, Counts, Gap, Heading, ListEntry, Listing, Paragraph
from attncli.render.sheet import for_the_author, title_of_exercise
from attncli.render.text import points_text

#: Kinds of mistakes that are listed; the rest is in the files.
_MOST = 15
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


def page(picture: Picture, problem: Problem, language: Language, author: Sequence[Named] = ()) -> Iterator[Block]:
    """From top to bottom; `author`: mistakes that the exercise cannot tell from the right answer."""
    yield Heading(title_of_exercise(problem, language), 1)
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
        yield from (Paragraph(f"{student}: {why}", "false", hanging=2) for student, why in picture.unreadable[:_MOST])
        yield from _more(picture.malformed + picture.faults, _MOST)
    if picture.several:
        yield Gap()
        names = Listed(f"{student} ({count})" for student, count in list(picture.several.items())[:_MOST])
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
    for (step, mistake_id), count in ranked[:_MOST]:
        yield Paragraph(f"{count:>{wide}} × {mistake_id} ({step})", "strong", hanging=wide + 3)
        if mistake_id in CATALOGUE:
            yield Paragraph(did(mistake_id), indent=wide + 3)
    if len(ranked) > _MOST:
        yield Paragraph(Message("… and {count} more kinds.", count=len(ranked) - _MOST), "aside")


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
