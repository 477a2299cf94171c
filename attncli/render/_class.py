"""A class in the terminal: how many made which mistake at which step, the mean, the distribution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from attncli.locale.wrap import columns, wrap
from attncli.marking.explain import Named
from attncli.marking.grade import Picture
from attncli.message import N_, Language, Message
from attncli.mistakes.catalogue import CATALOGUE, did
from attncli.render._glyphs import fitted
from attncli.render._marks import for_the_author, number
from attncli.render._view import printable

#: Kinds of mistakes that are listed; the rest is in the files.
_MOST = 15
#: Different scores that get a line each; more are put together in ten ranges.
_MOST_SCORES = 12
_VERDICTS = (
    ("correct", N_("right")),
    ("route", N_("other way")),
    ("imprecise", N_("imprecise")),
    ("follow_through", N_("followed")),
    ("wrong", N_("wrong")),
    ("first", N_("first wrong")),
    ("malformed", N_("unreadable")),
    ("blank", N_("blank")),
)
_RED = ("wrong", "first")


class ClassView:
    """The picture of a class, laid out for one console."""

    def __init__(
        self,
        picture: Picture,
        language: Language,
        *,
        title: str,
        width: int,
        encoding: str,
        author: Sequence[Named] = (),
    ) -> None:
        self.picture = picture
        self.language = language
        self.title = title
        self.width = width
        self.encoding = encoding
        self.author = author

    def say(self, message: Message | str) -> str:
        text = (message if isinstance(message, Message) else Message(message)).text(self.language)
        return printable(fitted(text, self.encoding))

    def text(self, text: str, style: str = "", first: str = "", rest: str = "") -> Text:
        return Text(wrap(printable(fitted(text, self.encoding)), self.width, first, rest), style, overflow="fold")

    def parts(self) -> Iterator[RenderableType]:
        """From top to bottom."""
        picture = self.picture
        yield self.text(self.title, "bold")
        summary = Message(
            N_("Sheets: {students}, unreadable: {malformed}. Mean: {mean} of {most} points."),
            students=picture.students,
            malformed=picture.malformed,
            mean=number(picture.mean),
            most=number(picture.max_score),
        )
        yield self.text(self.say(summary))
        if picture.students:
            yield Text()
            yield from self._distribution()
        if any(picture.verdicts.values()):
            yield Text()
            yield from self._steps()
        if picture.mistakes:
            yield Text()
            yield from self._mistakes()
        if self.author and picture.students:
            yield Text()
            yield self.text(self.say(for_the_author(self.author)), "dim")

    def _distribution(self) -> Iterator[RenderableType]:
        """Sheets by score, in at most a dozen groups."""
        yield self.text(self.say(N_("How the points are spread")), "bold underline")
        groups = [(fitted(label, self.encoding), count) for label, count in _groups(self.picture)]
        most = max(count for _, count in groups)
        wide = max(len(label) for label, _ in groups)
        room = max(1, min(60, self.width - wide - len(str(most)) - 3))
        bar = "█" if fitted("█", self.encoding) == "█" else "#"
        for label, count in groups:
            # A single sheet shows, however large the class.
            length = max(1, round(count / most * room)) if count else 0
            yield Text(f"{label:>{wide}}  {bar * length}{' ' if length else ''}{count}", overflow="fold")

    def _counts(self, step: str) -> dict[str, int]:
        return {**self.picture.verdicts[step], "first": self.picture.first_wrong[step]}

    def _steps(self) -> Iterator[RenderableType]:
        """A line a step: how many were right, wrong, first wrong there, blank."""
        yield self.text(self.say(N_("Step by step")), "bold underline")
        steps = [step for step, counts in self.picture.verdicts.items() if counts]
        shown = [(key, self.say(name)) for key, name in _VERDICTS if any(self._counts(step).get(key) for step in steps)]
        names = [fitted(step, self.encoding) for step in steps]
        first = max(map(len, names))
        widths = [max(columns(word), len(str(self.picture.students))) for _, word in shown]
        if first + sum(widths) + 2 * len(widths) > self.width:
            yield from self._listed(steps, names, shown)
            return
        headings = "".join(
            f"  {' ' * (wide - columns(word))}{word}" for (_, word), wide in zip(shown, widths, strict=True)
        )
        yield Text(f"{' ' * first}{headings}", "dim", overflow="fold")
        for step, name in zip(steps, names, strict=True):
            line = Text(name.ljust(first), overflow="fold")
            for (key, _), wide in zip(shown, widths, strict=True):
                count = self._counts(step).get(key, 0)
                line.append(f"  {count or '':>{wide}}", style="red" if key in _RED else "")
            yield line

    def _listed(self, steps: list[str], names: list[str], shown: list[tuple[str, str]]) -> Iterator[Text]:
        """The same where the table is wider than the screen."""
        for step, name in zip(steps, names, strict=True):
            counts = self._counts(step)
            words = " · ".join(f"{word} {counts[key]}" for key, word in shown if counts.get(key))
            yield self.text(words, "", f"{name}  ", "  ")

    def _mistakes(self) -> Iterator[RenderableType]:
        yield self.text(self.say(N_("The mistakes, the most frequent first")), "bold underline")
        order = {step: i for i, step in enumerate(self.picture.verdicts)}
        ranked = sorted(
            self.picture.mistakes.items(), key=lambda one: (-one[1], order.get(one[0][0], len(order)), one[0])
        )
        wide = len(str(ranked[0][1]))
        for (step, id), count in ranked[:_MOST]:
            sign = fitted("×", self.encoding)
            first = f"{count:>{wide}} {sign} "
            yield self.text(f"{id} ({step})", "bold", first, " " * len(first))
            if id in CATALOGUE:
                rest = " " * len(first)
                yield self.text(self.say(did(id)), "", rest, rest)
        if len(ranked) > _MOST:
            yield self.text(self.say(Message(N_("… and {count} more kinds."), count=len(ranked) - _MOST)), "dim")


def _groups(picture: Picture) -> list[tuple[str, int]]:
    """Scores and how often they were reached; many different ones are put together in ten equal ranges."""
    scores = sorted(picture.scores.items())
    if len(scores) <= _MOST_SCORES:
        return [(number(score), count) for score, count in scores]
    top = picture.max_score or 1.0
    counts = [0] * 10
    for score, count in scores:
        counts[min(9, int(score / top * 10))] += count
    return [(f"{number(top * i / 10)}–{number(top * (i + 1) / 10)}", count) for i, count in enumerate(counts)]
