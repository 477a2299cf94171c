r"""A class in the terminal: how many made which mistake at which step, the mean, the distribution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from attncli.core.message import N_, Language, Listed, Message
from attncli.locale.fit import columns, fitted, wrap
from attncli.marking.explain import Named
from attncli.marking.grading import MOST_LISTED, Picture
from attncli.mistakes import CATALOGUE, did
from attncli.render.names import printable
from attncli.render.numbers import points_text
from attncli.render.sheet import for_the_author

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
    ("malformed", N_("unreadable")),
    ("first", N_("first wrong")),
    ("blank", N_("blank")),
)
_RED = ("wrong", "first")
#: Bars of one to seven eighths of a character.
_EIGHTHS = "▏▎▍▌▋▊▉"


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
            N_("Sheets: {sheets}, unreadable: {malformed}. Mean: {mean} of {most} points."),
            sheets=picture.sheets,
            malformed=picture.malformed,
            mean=points_text(picture.mean),
            most=points_text(picture.max_score),
        )
        yield self.text(self.say(summary))
        if picture.unreadable:
            yield Text()
            yield from self._unreadable()
        if picture.several:
            yield Text()
            yield from self._several()
        if picture.scores:
            yield Text()
            yield from self._distribution()
        if picture.students:
            yield Text()
            yield from self._students()
        if any(picture.verdicts.values()):
            yield Text()
            yield from self._steps()
        if picture.mistakes:
            yield Text()
            yield from self._mistakes()
        if self.author and picture.sheets:
            yield Text()
            yield self.text(self.say(for_the_author(self.author)), "dim")

    def _distribution(self) -> Iterator[RenderableType]:
        """Sheets by score, in at most a dozen groups."""
        yield self.text(self.say(N_("How the points are spread")), "bold underline")
        groups = [(fitted(label, self.encoding), count) for label, count in _groups(self.picture)]
        most = max(count for _, count in groups)
        wide = max(len(label) for label, _ in groups)
        room = max(1, min(60, self.width - wide - len(str(most)) - 3))
        for label, count in groups:
            bar = self._bar(count / most * room)
            yield Text(f"{label:>{wide}}  {bar}{' ' if bar else ''}{count}", overflow="fold")

    def _bar(self, length: float) -> str:
        """A bar of this length, to an eighth of a character where the screen has signs for that; a single sheet shows."""
        if fitted("█", self.encoding) != "█" or fitted(_EIGHTHS[0], self.encoding) != _EIGHTHS[0]:
            return "#" * max(1, round(length)) if length else ""
        eighths = max(1, round(8 * length)) if length else 0
        return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8 - 1] if eighths % 8 else "")

    def _unreadable(self) -> Iterator[RenderableType]:
        """By name: a sheet that nobody has marked must be looked for by somebody."""
        yield self.text(self.say(N_("Not marked")), "bold underline")
        for student, why in self.picture.unreadable[:_MOST]:
            yield self.text(f"{student}: {why}", "red", "", "  ")
        yield from self._more(self.picture.malformed + self.picture.faults, _MOST)

    def _several(self) -> Iterator[RenderableType]:
        said = Message(
            N_("More than one sheet of the same student; all are kept and marked: {names}."),
            names=Listed(f"{student} ({count})" for student, count in list(self.picture.several.items())[:_MOST]),
        )
        yield self.text(self.say(said), "yellow")

    def _students(self) -> Iterator[RenderableType]:
        """Every student with the points, where the class is not too large for that."""
        yield self.text(self.say(N_("The students and their points")), "bold underline")
        shown = self.picture.students[:MOST_LISTED]
        named = [(printable(fitted(student, self.encoding)), score) for student, score in shown]
        wide = min(max(columns(student) for student, _ in named), self.width // 2)
        for student, score in named:
            points = "–" if score is None else points_text(score)
            gap = " " * max(0, wide - columns(student))
            yield self.text(points, "", f"{student}{gap}  ", "  ")
        yield from self._more(self.picture.sheets, MOST_LISTED)

    def _more(self, count: int, shown: int) -> Iterator[RenderableType]:
        if count > shown:
            more = Message(N_("… and {count} more; all of them stand in a file: -o class.csv"), count=count - shown)
            yield self.text(self.say(more), "dim")

    def _counts(self, step: str) -> dict[str, int]:
        return {**self.picture.verdicts[step], "first": self.picture.first_wrong[step]}

    def _steps(self) -> Iterator[RenderableType]:
        """A line a step: how many were right, wrong, first wrong there, blank."""
        yield self.text(self.say(N_("Step by step")), "bold underline")
        steps = [step for step, counts in self.picture.verdicts.items() if counts]
        shown = [(key, self.say(name)) for key, name in _VERDICTS if any(self._counts(step).get(key) for step in steps)]
        names = [fitted(step, self.encoding) for step in steps]
        first = max(map(len, names))
        widths = [max(columns(word), len(str(self.picture.sheets))) for _, word in shown]
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
        return [(points_text(score), count) for score, count in scores]
    top = picture.max_score or 1.0
    counts = [0] * 10
    for score, count in scores:
        counts[min(9, int(score / top * 10))] += count
    return [(f"{points_text(top * i / 10)}–{points_text(top * (i + 1) / 10)}", count) for i, count in enumerate(counts)]
