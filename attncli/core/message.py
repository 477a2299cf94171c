"""Text for people, kept apart from the language it will be read in.

A :class:`Message` is an English template and its fields. It becomes a sentence only when
a language is known (``attncli.locale``), so nothing below the renderers speaks a language.
"""

from __future__ import annotations

import errno
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self


def N_(text: str) -> str:
    """Mark a text for the message catalogues and return it unchanged."""
    return text


class Language:
    """A language to say messages in: a translation and the words that depend on the layout.

    With tokens as columns, what a text calls a row is a column; so texts say ``{row}`` where they
    mean one token's line of a matrix, and the language fills it in.
    """

    __slots__ = ("code", "columns", "translate", "words")

    def __init__(self, code: str, translate: Callable[[str], str], *, columns: bool = False) -> None:
        self.code = code
        self.translate = translate
        self.columns = columns
        row, rows, column, columns_ = (translate(word) for word in _LINES)
        if columns:
            row, rows, column, columns_ = column, columns_, row, rows
        self.words = {"row": row, "rows": rows, "column": column, "columns": columns_}
        self.words |= {name.capitalize(): word.capitalize() for name, word in self.words.items()}

    def in_layout(self, layout: str) -> Language:
        """The same language for a layout: "rows", or "columns" with tokens as columns."""
        return Language(self.code, self.translate, columns=True) if layout == "columns" else self


_LINES = (N_("row"), N_("rows"), N_("column"), N_("columns"))

ENGLISH = Language("en", str)


def figure(value: float, digits: int = 4) -> str:
    """A number to so many significant digits: 0.9917, 63.21, 1.200e-05, ∞; one that needs fewer stays as it is: 12, 0.1."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    if isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e6):
        return str(int(value))
    if not 1e-4 <= abs(value) < 1e6:
        return f"{value:.{digits - 1}e}"
    short = repr(float(value))
    if len(short.lstrip("-0.").replace(".", "")) <= digits:
        return short
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:.{max(0, digits - 1 - math.floor(math.log10(abs(rounded))))}f}"


class Message:
    """An English template with named fields; a field may be a Message itself, and a number is written as a `figure`.

    What a screen does with it depends on its `kind`, never on its wording: "result" and "loss" stand out; on a sheet,
    "name" (a step was called by another one) is said once for all steps, "followed" says no more than the verdict, "two"
    begins what two mistakes at once did.
    """

    __slots__ = ("fields", "kind", "template")

    def __init__(self, template: str, **fields: object) -> None:
        self.template = template
        self.fields = fields
        self.kind = ""

    def of(self, kind: str) -> Self:
        """The same message, of a kind."""
        self.kind = kind
        return self

    def text(self, language: Language = ENGLISH) -> str:
        """The sentence in `language`."""
        fields = {name: _field(value, language) for name, value in self.fields.items()}
        return language.translate(self.template).format(**{**language.words, **fields})

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"Message({self.text()!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and (self.template, self.fields) == (other.template, other.fields)

    def __hash__(self) -> int:
        return hash(self.template)


def _field(value: object, language: Language) -> object:
    if isinstance(value, Message):
        return value.text(language)
    # By what it has, since to import fractions costs a start 5 ms.
    is_fraction = getattr(value, "denominator", 1) != 1
    return figure(float(value)) if is_fraction or isinstance(value, float) else value  # type: ignore[arg-type]


class Cell(Message):
    """Where a number of a matrix stands, counted from 1: 2,1. With tokens as columns, row and column change places."""

    __slots__ = ("place",)

    def __init__(self, place: Iterable[int]) -> None:
        self.place = tuple(place)
        super().__init__(",".join(map(str, self.place)))

    def text(self, language: Language = ENGLISH) -> str:
        place = self.place
        if language.columns and len(place) > 1:
            place = (*place[:-2], place[-1], place[-2])
        return ",".join(map(str, place))


class Localized(Message):
    """A text that comes with its translations, as files give it, instead of through a catalogue."""

    __slots__ = ("texts",)

    def __init__(self, texts: Mapping[str, str]) -> None:
        super().__init__(texts.get("en") or next(iter(texts.values()), ""))
        self.texts = texts

    def text(self, language: Language = ENGLISH) -> str:
        return self.texts.get(language.code) or self.template


class Listed(Message):
    """Several things in a row, with the language's own comma between them, or what `pair` puts there."""

    __slots__ = ()

    def __init__(self, things: Iterable[object], pair: str = N_("{one}, {another}")) -> None:
        super().__init__(pair, things=tuple(things))

    @classmethod
    def first(cls, things: Iterable[object], most: int) -> Listed:
        """The first of several, and … where there are more."""
        some = list(islice(things, most + 1))
        return cls(some if len(some) <= most else [*some[:most], "…"])

    def text(self, language: Language = ENGLISH) -> str:
        things = self.fields["things"]
        assert isinstance(things, tuple)
        texts = [thing.text(language) if isinstance(thing, Message) else str(thing) for thing in things]
        pair = language.translate(self.template)
        return reduce(lambda one, another: pair.format(one=one, another=another), texts) if texts else ""


def counted(count: int, one: str, several: str) -> Message:
    """“1 row”, “3 rows”."""
    return Message(one) if count == 1 else Message(several, count=count)


class AttnError(Exception):
    """Something the user can put right: what was given, where, what was expected, what to write."""

    def __init__(self, template: str, **fields: object) -> None:
        self.message = Message(template, **fields)
        super().__init__(template)

    def __str__(self) -> str:
        return self.message.text()

    def at(self, where: Message | str) -> AttnError:
        """The same error with the place it happened in front (a file, a key, an option)."""
        return type(self)(N_("{where}: {what}"), where=where, what=self.message)


@contextmanager
def placed(where: Message | str) -> Iterator[None]:
    """`with placed(where):` an error inside says the place it happened in."""
    try:
        yield
    except AttnError as error:
        raise error.at(where) from None


class InputError(AttnError):
    """What was given cannot be read or does not make sense."""


class ShapeError(InputError):
    """Two operands do not fit together."""


class NoSuchRow(InputError):
    """An id that names no row of a table.

    Attributes
    ----------
    positions : where such ids stand, index by index; in an array of many sheets its sheet first
    """

    positions: tuple[tuple[int, ...], ...] = ()

    def at(self, where: Message | str) -> NoSuchRow:
        error = NoSuchRow("{where}: {what}", where=where, what=self.message)
        error.positions = self.positions
        return error


class LimitError(InputError):
    """What was asked for is larger than this tool takes on."""


#: Known words that an error lists.
MOST_CHOICES = 30


def closest(word: str, known: Sequence[str]) -> str | None:
    """The known word that `word` was probably meant to be, or None."""
    from difflib import get_close_matches

    folded = {name.casefold(): name for name in reversed(known)}
    near = get_close_matches(word.casefold()[:100], list(folded), n=1, cutoff=0.6)
    if near:
        return folded[near[0]]
    # The beginning of a longer one: a1 for a1-pronoun.
    return next((name for name in known if len(word) > 1 and name.casefold().startswith(word.casefold())), None)


def unknown(what: Message, word: str, known: Sequence[str], most: int = MOST_CHOICES) -> InputError:
    """The error for a word that is not among the known ones, with the likely one suggested."""
    likely, choices = closest(word, known), Listed.first(known, most)
    if likely is None:
        return InputError(
            "{what} “{word}” does not exist. Choose from: {choices}.", what=what, word=word, choices=choices
        )
    return InputError(
        "{what} “{word}” does not exist. Did you mean “{likely}”? Choose from: {choices}.",
        what=what,
        word=word,
        likely=likely,
        choices=choices,
    )


# --- Why something failed: the words of the system and of other libraries are English only -----------------------------

#: What the system says by number.
_SYSTEM = {
    errno.EACCES: N_("you do not have permission"),
    errno.EPERM: N_("you do not have permission"),
    errno.ENOENT: N_("there is no such file or folder"),
    errno.ENOTDIR: N_("part of the path is not a folder"),
    errno.EISDIR: N_("it is a folder"),
    errno.ENOSPC: N_("the disk is full"),
    errno.EROFS: N_("the disk can only be read"),
    errno.ENAMETOOLONG: N_("the name is too long"),
    errno.EEXIST: N_("a file of that name is there already"),
    errno.EMFILE: N_("too many files are open"),
}


def of_system(error: Exception) -> Message:
    """Why the system refused to read or write."""
    number = getattr(error, "errno", None)
    if number in _SYSTEM:
        return Message(_SYSTEM[number])
    return untranslated(getattr(error, "strerror", None) or str(error))


def of_library(error: Exception) -> Message:
    """What another library says, where it says anything; never the address of an object."""
    words = re.sub(r"<[^<>]*\b0x[0-9a-f]+>|\bat 0x[0-9a-f]+", "", str(error))[:120].strip()
    return untranslated(words) if words else Message("no reason is given")


def where_it_failed(error: BaseException) -> str:
    """Of an error that is our own fault: its kind, its words, and the place in the code.

    Nowhere else do Python's names stand in a message: here they are what whoever mends it needs.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f" at {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
    words = re.sub(r" at 0x[0-9a-f]+", "", f"{error}")[:150]
    return f"{type(error).__name__}: {words}{place}"


def untranslated(text: str) -> Message:
    """Words that nobody has translated, as they are."""
    return Message("{words}", words=text)
