"""What stands on a page or a screen, before any format: blocks in reading order.

Data become blocks by a builder (run.py, exercise.py, sheet.py, comparison.py, report.py), which knows neither a console nor
a file, and blocks become text by the printer of a format (terminal.py, markdown.py, latex.py, html.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from attncli.core.message import Language, Message
from attncli.core.record import Record
from attncli.core.report import Chart
from attncli.render.text import printable

if TYPE_CHECKING:
    from attncli.render.view import Item, View

#: Words of a page: a message, which every printer says in its language, or a text that has none (a name, a number).
Said = Message | str
#: Says the words of a page in one language.
Speaker = Callable[[Said], str]


def say_in(language: Language) -> Speaker:
    """Says messages in a language, without signs that nothing may print."""

    def say(words: Said) -> str:
        text = words.text(language) if isinstance(words, Message) else words
        return "\n".join(map(printable, text.split("\n")))

    return say


class Symbol(Record):
    """A formula among words, in LaTeX."""

    latex: str


class Gap(Record):
    """An empty line of a screen; the blocks of a page are apart anyway."""


class Heading(Record):
    """A heading: of level 1 for the whole, 2 for a part, 3 for an entry."""

    text: Said
    level: int = 2


class Paragraph(Record):
    """A sentence or more; `tone` says what they are ("aside", "strong", "right", "wrong", "remark"), not how that looks.

    On a screen its lines stand `indent` columns in, those after the first one `hanging` further.
    """

    text: Said
    tone: str = ""
    indent: int = 0
    hanging: int = 0


class Code(Record):
    """Lines to copy, which nothing breaks."""

    text: str
    tone: str = ""


class Sentences(Record):
    """Sentences one below the other."""

    lines: tuple[Paragraph, ...]


class ListEntry(Record):
    """A line of a list: a sign (✓, ✗, or none), a name, and a text; a text with a name is a formula or number."""

    text: Said
    name: Said = ""
    sign: str = ""
    tone: str = ""


class Listing(Record):
    """A list, one entry a line, so many columns in on a screen."""

    entries: tuple[ListEntry, ...]
    indent: int = 2


class TabularColumn(Record):
    """A column of a table: what stands above it, line by line; whether it belongs to the one before it, and stands out."""

    head: tuple[Said, ...]
    is_number: bool = True
    joined: bool = False
    strong: bool = False


class Tabular(Record):
    """Words and numbers in rows; with `labelled`, the first column says what each row is."""

    columns: tuple[TabularColumn, ...]
    rows: tuple[tuple[Said | Symbol, ...], ...]
    labelled: bool = False


class Columns(Record):
    """Short texts in columns without heads."""

    rows: tuple[tuple[Said, ...], ...]


class Counts(Record):
    """How often something was counted, by name: kinds with their tone, and for every name a count of each kind."""

    kinds: tuple[tuple[Said, str], ...]
    rows: tuple[tuple[str, tuple[int, ...]], ...]


class Bars(Record):
    """Bars from 0: a name, a length, and a text each. A page has their numbers in a table beside them."""

    rows: tuple[tuple[str, float, str], ...]
    is_framed: bool = True


class Branch(Record):
    """A number of a tree: its name, how it comes about, and what it was made from."""

    name: str
    text: Said
    branches: tuple[Branch, ...] = ()


class ShownStep(Record):
    """A step of a run, with its number among them, or an input; what it means, and where it was asked for its arithmetic."""

    view: View
    item: Item
    number: int | None = None
    why: Message | None = None


class Steps(Record):
    """Steps that belong together; `aside` where they stand next to one another as far as there is room (inputs)."""

    steps: tuple[ShownStep, ...]
    aside: bool = False


class Grid(Record):
    """A matrix on a worksheet: its shape and worth as a note, names of its lines, remarks below; a cell of None is a box to fill in."""

    name: str
    symbol: str
    note: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[str | None, ...], ...]
    below: tuple[str, ...] = ()

    @property
    def has_boxes(self) -> bool:
        return any(cell is None for row in self.cells for cell in row)


def with_names(
    rows: Iterable[str], columns: Iterable[str], cells: Iterable[Sequence[str]], *, lead: bool
) -> list[list[str]]:
    """The lines of a matrix below the names of its columns; with `lead` behind the names of its rows."""
    heads = ["", *columns] if lead else list(columns)
    return [heads, *([name, *row] if lead else list(row) for name, row in zip(rows, cells, strict=True))]


class Grids(Record):
    """Matrices next to one another as far as there is room."""

    grids: tuple[Grid, ...]
    asked: bool = False


class Fields(Record):
    """Lines to write on: a name, a class."""

    names: tuple[str, ...]


class Marks(Record):
    """A matrix on a marked sheet: what stands in each cell, and which cells are wrong."""

    cells: tuple[tuple[str, ...], ...]
    wrong: tuple[tuple[bool, ...], ...]


class StepVerdict(Record):
    """A step on a marked sheet: a sign and its tone, the step, the verdict in words, and what there is to say about it."""

    sign: str
    tone: str
    name: str
    words: str
    body: tuple[Paragraph | Marks, ...] = ()


class StepVerdicts(Record):
    """A marked sheet, step by step."""

    verdicts: tuple[StepVerdict, ...]


Block = (
    Gap | Heading | Paragraph | Sentences | Code | Listing | Columns | Tabular | Counts | Bars | Branch | Steps | Grids | Fields | StepVerdicts | Chart
)  # fmt: skip


class Page(Record):
    """Blocks that make a whole sheet of paper; `code`: of its language; `is_key`: nothing is to be filled in."""

    code: str
    blocks: tuple[Block, ...]
    is_key: bool = False

    @property
    def title(self) -> str:
        heading = self.blocks[0]
        assert isinstance(heading, Heading) and isinstance(heading.text, str)
        return heading.text
