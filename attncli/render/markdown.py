"""Markdown with LaTeX blocks, as GitHub, Jupyter, Obsidian and KaTeX show it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from attncli.core.message import Language, Message
from attncli.core.report import Maps, Plot, Spans
from attncli.marking.feedback import Marked
from attncli.render import document as doc
from attncli.render import sheet
from attncli.render.chart import drawn
from attncli.render.formula import as_latex, as_text
from attncli.render.latex import about, arithmetic, equation, is_named
from attncli.render.run import page
from attncli.render.tables import MarkedRow, marked_lines
from attncli.render.text import printable
from attncli.render.view import View

#: Characters up to which an equation stands on one line.
_WIDTH = 96
_SPECIAL = re.compile(r"[\\`*\[\]|~]|(?<![^\W_])_|_(?![^\W_])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"}
_AT_START = re.compile(r"^([#+=-]|\d+(?=[.)]))")
_BLANK = "\\_" * 12
#: Characters that a picture is wide.
_PICTURE = 80


def document(view: View) -> str:
    """The run as a Markdown document."""
    return as_markdown(page(view, *about(view, _WIDTH)), doc.say_in(view.language))


def as_markdown(blocks: Iterable[doc.Block], say: doc.Speaker) -> str:
    """Blocks as a Markdown document."""
    return "\n\n".join(piece for block in blocks for piece in Markdown(say).pieces(block)) + "\n"


def sheets(pages: Sequence[doc.Page]) -> str:
    """Worksheets: a table for every matrix, an empty cell for every box."""
    return "\n---\n\n".join(as_markdown(page.blocks, str) for page in pages)


def feedback(marked: Marked, language: Language, *, reveal: str = "first") -> str:
    """A marked sheet as a page that can be sent to a student."""
    said = doc.say_in(sheet.language_of(marked, language))
    return as_markdown(sheet.page(marked, language, reveal=reveal, score_first=True), said)


def unreadable(student: str, why: str) -> str:
    """What a student gets whose sheet could not be read."""
    return as_markdown((doc.Heading(student, 1), doc.Paragraph(why)), str)


def remark(note: Message, language: Language) -> str:
    """A remark at the end of a student's page."""
    return f"\n{escaped(note.text(language))}\n"


class Markdown:
    """Prints blocks, each as pieces that stand apart."""

    def __init__(self, say: doc.Speaker) -> None:
        self.say = say

    def words(self, said: doc.Said) -> str:
        return escaped(self.say(said))

    def pieces(self, block: doc.Block) -> Iterator[str]:
        match block:
            case doc.Heading():
                yield f"{'#' * block.level} {self.words(block.text)}"
            case doc.Paragraph():
                yield f"**{self.words(block.text)}**" if block.tone == "strong" else self.words(block.text)
            case doc.Sentences():
                yield "  \n".join(self.words(line.text) for line in block.lines)
            case doc.Listing():
                yield "\n".join(map(self.entry, block.entries))
            case doc.Tabular():
                yield "\n".join(self.table(block))
            case doc.Steps():
                for step in block.steps:
                    yield from self.step(step)
            case doc.Grids():
                for grid in block.grids:
                    yield from self.grid(grid)
            case doc.Fields():
                yield " ".join(f"{escaped(field)} {_BLANK}" for field in block.names)
            case doc.StepVerdicts():
                yield "\n".join(self.verdicts(block)).rstrip("\n")
            case Plot() | Spans() | Maps():
                yield "```text\n" + "\n".join(drawn(block, self.say, _PICTURE, "utf-8")) + "\n```"

    def entry(self, entry: doc.ListEntry) -> str:
        name = f"**{self.words(entry.name)}**" if entry.name else ""
        text = code(self.say(entry.text)) if entry.name else self.words(entry.text)
        return "- " + " ".join(filter(None, (entry.sign, name, text)))

    def table(self, table: doc.Tabular) -> Iterator[str]:
        yield _row([" ".join(map(self.words, column.head)) for column in table.columns])
        yield _row(["---:" if column.is_number else "---" for column in table.columns])
        for row in table.rows:
            yield _row([self.cell(cell, column.is_number) for cell, column in zip(row, table.columns, strict=True)])

    def cell(self, cell: doc.Said | doc.Symbol, is_number: bool) -> str:
        if isinstance(cell, doc.Symbol):
            return f"${as_latex(cell.latex)}$"
        # A number has nothing in it that Markdown reads.
        return self.say(cell) if is_number else self.words(self.say(cell).strip())

    def step(self, step: doc.ShownStep) -> Iterator[str]:
        view, item = step.view, step.item
        name = "" if item.id == item.symbol else f" · {code(item.id)}"
        yield f"### ${as_latex(item.symbol)}${name} · {item.shape}"
        if item.why is not None:
            yield self.words(item.why)
        for block in item.panels:
            if block.title is not None:
                yield f"#### {self.words(block.title)}"
            yield f"$$\n{equation(view, item, block, _WIDTH)}\n$$"
            if is_named(view, item):
                names = [f"**{escaped(name)}**" if name else "" for name in block.rows]
                yield _matrix(names, block.columns, [list(map(item.text, row)) for row in block.values])
            if view.expand and item.step is not None:
                yield "\n".join(f"- ${line}$" for line in arithmetic(view, item, block))

    def grid(self, grid: doc.Grid) -> Iterator[str]:
        symbol = "" if as_text(grid.symbol) == grid.name else f" ${as_latex(grid.symbol)}$"
        yield f"**{escaped(grid.name)}**{symbol} ({escaped(grid.note)})"
        cells = [[cell or "&emsp;&emsp;" for cell in row] for row in grid.cells]
        yield _matrix(list(map(escaped, grid.rows)), grid.columns, cells)
        if grid.below:
            yield "\n".join(f"- {escaped(line)}" for line in grid.below)

    def verdicts(self, block: doc.StepVerdicts) -> Iterator[str]:
        """A list whose entries hold what there is to say: sentences, and matrices as code."""
        for verdict in block.verdicts:
            yield f"- {verdict.sign} {code(verdict.name)}: {escaped(verdict.words)}"
            last: doc.Paragraph | MarkedRow | None = None
            for line in self.lines(verdict):
                if not (isinstance(line, MarkedRow) and isinstance(last, MarkedRow)):
                    yield ""
                yield f"      {line.text.rstrip()}" if isinstance(line, MarkedRow) else f"  {self.words(line.text)}"
                last = line
            if last is not None:
                yield ""

    def lines(self, verdict: doc.StepVerdict) -> Iterator[doc.Paragraph | MarkedRow]:
        for part in verdict.body:
            yield from marked_lines(part, _PICTURE) if isinstance(part, doc.Marks) else (part,)


def _matrix(rows: Sequence[str], columns: Sequence[str], cells: Iterable[Sequence[str]]) -> str:
    """Cells with the names of their rows, written already, and columns."""
    lead = any(rows)
    heads, *lines = doc.with_names(rows, map(escaped, columns), cells, lead=lead)
    rule = ["---"] * lead + ["---:"] * len(columns)
    return "\n".join(map(_row, [heads, rule, *lines]))


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escaped(text: str) -> str:
    """Text in which nothing is Markdown, HTML or the start of a formula."""
    text = re.sub("[&<>$]", lambda found: _ENTITIES[found[0]], printable(" ".join(text.splitlines())).strip())
    text = _SPECIAL.sub(lambda found: f"\\{found[0]}", text)
    return _AT_START.sub(lambda found: found[1] + "\\" if found[1].isdigit() else f"\\{found[1]}", text)


def code(text: str) -> str:
    """Text as it is, in a code span; text with a backtick, which not every reader of Markdown keeps in one, escaped."""
    return escaped(text) if "`" in text else f"`{text}`"
