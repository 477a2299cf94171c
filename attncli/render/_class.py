"""A class in the terminal: how many made which mistake at which step, the mean, the distribution."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from attncli.marking.catalogue import CATALOGUE, did
from attncli.marking.grade import Picture
from attncli.message import N_, Language, Message
from attncli.render._glyphs import fitted
from attncli.render._marks import number

#: Mistakes and bars that are listed; the rest is in the files.
_MOST = 15
_VERDICTS = (
    ("correct", N_("right")),
    ("route", N_("other way")),
    ("imprecise", N_("imprecise")),
    ("follow_through", N_("followed")),
    ("wrong", N_("wrong")),
    ("malformed", N_("unreadable")),
    ("blank", N_("blank")),
)


class ClassView:
    """The picture of a class, laid out for one console."""

    def __init__(self, picture: Picture, language: Language, *, width: int, encoding: str) -> None:
        self.picture = picture
        self.language = language
        self.width = width
        self.encoding = encoding

    def say(self, message: Message | str, style: str = "") -> Text:
        text = (message if isinstance(message, Message) else Message(message)).text(self.language)
        return Text(fitted(text, self.encoding), style=style, overflow="fold")

    def parts(self) -> Iterator[RenderableType]:
        """From top to bottom."""
        picture = self.picture
        yield self.say(
            Message(
                N_("{students} sheets, {malformed} unreadable. Mean {mean} of {most} points."),
                students=picture.students,
                malformed=picture.malformed,
                mean=number(picture.mean),
                most=number(picture.max_score),
            ),
            "bold",
        )
        if not picture.students:
            return
        yield Text(overflow="fold")
        yield from self._distribution()
        if picture.verdicts:
            yield Text(overflow="fold")
            yield from self._steps()
        if picture.mistakes:
            yield Text(overflow="fold")
            yield from self._mistakes()

    def _distribution(self) -> Iterator[RenderableType]:
        """Sheets by score, in at most ten groups."""
        yield self.say(N_("How the points are spread"), "bold underline")
        groups = _groups(self.picture)
        most = max(count for _, count in groups)
        wide = max(len(label) for label, _ in groups)
        room = max(5, self.width - wide - 12)
        bar = "█" if fitted("█", self.encoding) == "█" else "#"
        for label, count in groups:
            length = round(count / most * room)
            yield Text(f"{label:>{wide}}  {bar * length}{' ' if length else ''}{count}", overflow="fold")

    def _steps(self) -> Iterator[RenderableType]:
        """A line a step: how many were right, wrong, blank."""
        yield self.say(N_("Step by step"), "bold underline")
        shown = [
            (key, name) for key, name in _VERDICTS if any(counts[key] for counts in self.picture.verdicts.values())
        ]
        table = Table(box=box.SIMPLE_HEAD if self.encoding.startswith("utf") else box.ASCII, pad_edge=False)
        table.add_column(self.say(N_("step")))
        for _, name in shown:
            table.add_column(self.say(name), justify="right")
        for step, counts in self.picture.verdicts.items():
            cells = [
                Text(str(counts[key]) if counts[key] else "", style="red" if key == "wrong" else "") for key, _ in shown
            ]
            table.add_row(Text(fitted(step, self.encoding)), *cells)
        yield table

    def _mistakes(self) -> Iterator[RenderableType]:
        yield self.say(N_("The mistakes, the most frequent first"), "bold underline")
        ranked = sorted(self.picture.mistakes.items(), key=lambda entry: (-entry[1], entry[0]))
        for (step, id), count in ranked[:_MOST]:
            line = Text(f"{count:>5} × ", overflow="fold")
            line.append(fitted(f"{id} ({step})", self.encoding), style="bold")
            if id in CATALOGUE:
                line.append(f"  {self.say(did(id)).plain}")
            yield line
        if len(ranked) > _MOST:
            yield self.say(Message(N_("… and {count} more kinds."), count=len(ranked) - _MOST), "dim")


def _groups(picture: Picture) -> list[tuple[str, int]]:
    """Scores and how often they were reached; many different ones are put together in ten equal ranges."""
    scores = sorted(picture.scores.items())
    if len(scores) <= 12:
        return [(number(score), count) for score, count in scores]
    top = picture.max_score or 1.0
    counts = [0] * 10
    for score, count in scores:
        counts[min(9, int(score / top * 10))] += count
    return [(f"{number(top * i / 10)}–{number(top * (i + 1) / 10)}", count) for i, count in enumerate(counts)]
