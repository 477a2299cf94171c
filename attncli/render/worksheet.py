r"""Worksheets: a question with boxes to fill in, or with its key, as a page to print, LaTeX, Markdown and text.

What stands on the page is put together once (`page`); a printer a format puts it down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from attncli.core.graph import show_shape
from attncli.core.message import N_, Language, Listed, Localized, Message
from attncli.core.record import Record
from attncli.locale.wrap import columns, wrap
from attncli.problems.question import Asked, Question
from attncli.render import exercise
from attncli.render.formula import as_latex, as_mathml, as_text
from attncli.render.latex import text as tex
from attncli.render.markdown import escaped
from attncli.render.names import localized, printable
from attncli.render.numbers import number_text
from attncli.render.view import Block, _blocks, items
from attncli.worksheets.key import KeyLine

GIVEN = Message(N_("Given"))
TO_FILL_IN = Message(N_("To fill in"))
KEY = Message(N_("Answer key"))
_NAME = Message(N_("Name"))
_CLASS = Message(N_("Class"))
_CARRY_ON = N_(
    "Write {decimals} in every box, and carry on what you have written: your next line is judged from your own numbers."
)
_RANGE = N_("Right numbers lie from {least} to {most}: it depends on where one rounds.")
_AS_ASKED = Message(N_("the decimals asked for"))
_HEAD = N_("head {number}")
#: Signs of a text page.
_WIDTH = 78


class Grid(Record):
    """A matrix on the page.

    Parameters
    ----------
    name : of the step ("scores"); symbol : LaTeX
    note : its shape and what it is worth
    rows, columns : names of its lines
    cells : what stands in them; None: a box to fill in
    below : remarks under it
    """

    name: str
    symbol: str
    note: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[str | None, ...], ...]
    below: tuple[str, ...] = ()


class Page(Record):
    """A worksheet, before any format.

    Parameters
    ----------
    before : paragraphs above what is given; under : lines under it
    is_key : nothing is to be filled in
    """

    title: str
    code: str
    fields: tuple[str, ...]
    before: tuple[str, ...]
    given_title: str
    given: tuple[Grid, ...]
    under: tuple[str, ...]
    asked_title: str
    asked: tuple[Grid, ...]
    is_key: bool


def page(question: Question, language: Language, key: Mapping[str, KeyLine] | None = None, student: str = "") -> Page:
    """A worksheet; with a key, the same with its answers.

    Parameters
    ----------
    student : whose sheet it is, where that is known
    """
    from attncli import models
    from attncli.problems.run import run

    problem = question.problem
    turned = problem.layout == "columns"
    language = language.with_columns() if turned else language

    def say(message: Message) -> str:
        return printable(" ".join(message.text(language).split()))

    own = printable(" ".join(localized(problem.title, language.code).split()))
    title = own or say(Message(models.get(problem.model).text))
    if problem.id:
        title = f"{title} ({problem.id})"
    if key is not None:
        title = f"{say(KEY)}: {title}"
    places = question.decimals
    before = [say(Localized(problem.prompt))] if problem.prompt else []
    if key is None and places:
        shown = exercise.decimals(places[0]) if len(places) == 1 and places[0] is not None else _AS_ASKED
        before.append(say(Message(_CARRY_ON, decimals=shown)))
    result = run(problem, steps=question.given)  # nothing but what is given
    given = [
        grid
        for item in items(result, question.given, turned=turned)
        for grid in _grids(item.id, item.symbol, f"{item.shape}", item.blocks, item.text, say)
    ]
    under = [f"{id} = {printable(text)}" for id, text in question.texts.items()]
    if question.settings:
        settings = Listed(f"{id} = {value}" for id, value in question.settings.items())
        under.append(say(Message(N_("Settings: {settings}"), settings=settings)))
    if question.loss is not None:
        under.append(say(Message(N_("Loss: L = {loss}"), loss=question.loss)))
    asked = [
        grid
        for one in question.asked
        for grid in _asked(one, question, say, None if key is None else key.get(one.step))
    ]
    fields = [f"{say(_NAME)}: {printable(student)}" if student else say(_NAME), say(_CLASS)]
    return Page(
        title, language.code, () if key is not None else tuple(fields), tuple(before), say(GIVEN), tuple(given), tuple(under),
        say(TO_FILL_IN if key is None else KEY), tuple(asked), key is not None,
    )  # fmt: skip


Say = Callable[[Message], str]


def _grids(
    name: str, symbol: str, note: str, blocks: Sequence[Block], text: Callable[[Any], str] | None, say: Say
) -> Iterator[Grid]:
    for block in blocks:
        head = "" if block.head is None else f" · {say(Message(_HEAD, number=block.head))}"
        cells = tuple(tuple(None if text is None else text(value) for value in row) for row in block.values)
        yield Grid(name, symbol, note + head, block.rows, block.columns, cells)


def _asked(one: Asked, question: Question, say: Say, key: KeyLine | None) -> Iterator[Grid]:
    """The boxes of a step, or its answer with what belongs to it."""
    graph, turned = question.graph, question.problem.layout == "columns"
    places = question.problem.decimals_of(one.step)
    values = np.zeros(graph.shape(one.step)) if key is None else key.values
    blocks = list(_blocks(values, graph.axes(one.step), graph.labels, turned))
    note = f"{show_shape(one.shape)} · {say(exercise.points(one.points))}"
    if len(question.decimals) > 1:
        note += f" · {say(exercise.decimals(one.decimals))}"

    def text(value: Any) -> str:
        return number_text(value, places)

    grids = list(_grids(one.step, one.symbol, note, blocks, None if key is None else text, say))
    if key is None:
        yield from grids
        return
    yield from grids[:-1]
    yield grids[-1].changed(below=tuple(_below(key, text, turned, say)))


def _below(key: KeyLine, text: Callable[[Any], str], turned: bool, say: Say) -> Iterator[str]:
    def shown(values: Any) -> str:
        return _one_line(np.swapaxes(values, -1, -2) if turned and np.ndim(values) > 1 else values, text)

    if not key.is_sharp:
        yield say(Message(_RANGE, least=shown(key.least), most=shown(key.most)))
    for one in key.wrong:
        yield f"{', '.join(one.ids)}: {shown(one.values)} ({say(Listed(one.said, N_('{one} {another}')))})"


def _one_line(values: Any, text: Callable[[Any], str]) -> str:
    """A matrix as it is written on a sheet."""
    blocks = values if values.ndim == 3 else [np.atleast_2d(values)]
    return " | ".join("; ".join(" ".join(map(text, row)) for row in block) for block in blocks)


# Printers.

_TAGS = {"en": "en", "zh": "zh-Hans"}


def html(pages: Sequence[Page]) -> str:
    """Pages to print, A4, in one file that needs nothing from outside."""
    tag = _TAGS.get(pages[0].code, pages[0].code)
    style = Path(__file__).with_name("worksheet.css").read_text(encoding="utf-8")
    title = escape(pages[0].title)
    body = "\n".join(map(_html_page, pages))
    return (
        f'<!DOCTYPE html>\n<html lang="{tag}">\n<head>\n<meta name="generator" content="attncli-worksheet">\n'
        '<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _html_page(one: Page) -> str:
    lines = [f'<section class="sheet{" key" if one.is_key else ""}">', f"<h1>{escape(one.title)}</h1>"]
    if one.fields:
        lines.append(f'<div class="fields">{"".join(f"<span>{escape(field)}</span>" for field in one.fields)}</div>')
    lines += [f"<p>{escape(text)}</p>" for text in one.before]
    if one.given or one.under:
        lines += [f"<h2>{escape(one.given_title)}</h2>", '<div class="grids">', *map(_html_grid, one.given), "</div>"]
    lines += [f"<p>{escape(text)}</p>" for text in one.under]
    lines += [f"<h2>{escape(one.asked_title)}</h2>", '<div class="grids asked">', *map(_html_grid, one.asked), "</div>"]
    return "\n".join([*lines, "</section>"])


def _html_grid(grid: Grid) -> str:
    symbol = "" if as_text(grid.symbol) == grid.name else f" {as_mathml(grid.symbol)}"
    lines = [
        "<figure>",
        f"<figcaption><code>{escape(grid.name)}</code>{symbol} <small>{escape(grid.note)}</small></figcaption>",
        "<table>",
    ]
    if any(grid.columns):
        head = "".join(f"<th>{escape(name)}</th>" for name in (*([""] if any(grid.rows) else []), *grid.columns))
        lines.append(f"<tr>{head}</tr>")
    for name, row in zip(grid.rows, grid.cells, strict=True):
        lead = f"<th>{escape(name)}</th>" if any(grid.rows) else ""
        cells = "".join('<td class="box"></td>' if cell is None else f"<td>{escape(cell)}</td>" for cell in row)
        lines.append(f"<tr>{lead}{cells}</tr>")
    lines.append("</table>")
    if grid.below:
        lines.append(f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in grid.below)}</ul>")
    return "\n".join([*lines, "</figure>"])


def markdown(pages: Sequence[Page]) -> str:
    """The same as Markdown: a table for every matrix, an empty cell for every box."""
    return "\n\n---\n\n".join("\n\n".join(_markdown_page(one)) for one in pages) + "\n"


def _markdown_page(one: Page) -> Iterator[str]:
    yield f"# {escaped(one.title)}"
    if one.fields:
        yield " ".join(f"{escaped(field)} \\_\\_\\_\\_\\_\\_\\_\\_\\_\\_\\_\\_" for field in one.fields)
    yield from map(escaped, one.before)
    if one.given or one.under:
        yield f"## {escaped(one.given_title)}"
    for grid in one.given:
        yield from _markdown_grid(grid)
    yield from map(escaped, one.under)
    yield f"## {escaped(one.asked_title)}"
    for grid in one.asked:
        yield from _markdown_grid(grid)


def _markdown_grid(grid: Grid) -> Iterator[str]:
    symbol = "" if as_text(grid.symbol) == grid.name else f" ${as_latex(grid.symbol)}$"
    yield f"**{escaped(grid.name)}**{symbol} ({escaped(grid.note)})"
    lead = [""] if any(grid.rows) else []
    lines = [[*lead, *map(escaped, grid.columns)], [*("---" for _ in lead), *("---:" for _ in grid.columns)]]
    for name, row in zip(grid.rows, grid.cells, strict=True):
        lines.append([*([escaped(name)] if lead else []), *(cell or "&emsp;&emsp;" for cell in row)])
    yield "\n".join(f"| {' | '.join(line)} |" for line in lines)
    if grid.below:
        yield "\n".join(f"- {escaped(line)}" for line in grid.below)


def latex(pages: Sequence[Page]) -> str:
    """The same as a LaTeX document; Chinese needs XeLaTeX or LuaLaTeX."""
    body = "\n\\clearpage\n".join("\n\n".join(_latex_page(one)) for one in pages)
    chinese = any(one.code == "zh" for one in pages) or any(columns(sign) == 2 for sign in set(body))
    font = "\\usepackage[UTF8,scheme=plain]{ctex}\n" if chinese else "\\usepackage[T1]{fontenc}\n"
    engine = "XeLaTeX, LuaLaTeX" if chinese else "pdfLaTeX, XeLaTeX, LuaLaTeX"
    return (
        f"% attncli-worksheet: {engine}\n\\documentclass[11pt,a4paper]{{article}}\n"
        f"\\usepackage[margin=16mm]{{geometry}}\n{font}\\usepackage{{amsmath,array}}\n"
        "\\setlength{\\parindent}{0pt}\\setlength{\\parskip}{4pt}\\pagestyle{empty}\\raggedright\n"
        "\\newcommand{\\blank}{\\rule[-2.5mm]{0pt}{8mm}\\hspace*{14mm}}\n"
        f"\\begin{{document}}\n{body}\n\\end{{document}}\n"
    )


def _latex_page(one: Page) -> Iterator[str]:
    yield f"\\section*{{{tex(one.title)}}}"
    if one.fields:
        yield "\\quad ".join(f"{tex(field)}\\enspace\\underline{{\\hspace{{45mm}}}}" for field in one.fields)
    yield from map(tex, one.before)
    if one.given or one.under:
        yield f"\\subsection*{{{tex(one.given_title)}}}"
        yield "\\qquad\n".join(map(_latex_grid, one.given))
    yield from map(tex, one.under)
    yield f"\\subsection*{{{tex(one.asked_title)}}}"
    if one.is_key:
        for grid in one.asked:
            yield _latex_grid(grid)
            if grid.below:
                lines = "\n".join(rf"  \item {tex(line)}" for line in grid.below)
                yield f"{{\\small\\begin{{itemize}}\\setlength{{\\itemsep}}{{0pt}}\n{lines}\n\\end{{itemize}}}}"
    else:
        yield "\\qquad\n".join(map(_latex_grid, one.asked))


def _latex_grid(grid: Grid) -> str:
    symbol = "" if as_text(grid.symbol) == grid.name else f" ${as_latex(grid.symbol)}$"
    lead = any(grid.rows)
    rows = [" & ".join(([""] if lead else []) + [tex(name) for name in grid.columns]) + r" \\ \hline"]
    for name, row in zip(grid.rows, grid.cells, strict=True):
        cells = ["\\blank" if cell is None else tex(cell) for cell in row]
        rows.append(" & ".join(([tex(name)] if lead else []) + cells) + r" \\ \hline")
    layout = ("r|" if lead else "|") + "r|" * len(grid.columns)
    body = "\n  ".join(rows)
    return (
        f"\\begin{{tabular}}[t]{{@{{}}l@{{}}}}\\texttt{{{tex(grid.name)}}}{symbol} {{\\small {tex(grid.note)}}}\\\\[1mm]\n"
        f"\\begin{{tabular}}{{{layout}}}\n  {body}\n\\end{{tabular}}\\end{{tabular}}"
    )


def text(pages: Sequence[Page]) -> str:
    """The same as text for a screen or a plain printer."""
    return ("\n" + "═" * _WIDTH + "\n\n").join("\n".join(_text_page(one)) + "\n" for one in pages)


def _text_page(one: Page) -> Iterator[str]:
    yield one.title
    if one.fields:
        yield ""
        yield "  ".join(f"{field} ____________________" for field in one.fields)
    for paragraph in one.before:
        yield ""
        yield wrap(paragraph, _WIDTH)
    for title, grids, under in ((one.given_title, one.given, one.under), (one.asked_title, one.asked, ())):
        if grids or under:
            yield ""
            yield title
        for grid in grids:
            yield ""
            yield from _text_grid(grid)
        if under:
            yield ""
        yield from (wrap(line, _WIDTH) for line in under)


def _text_grid(grid: Grid) -> Iterator[str]:
    symbol = as_text(grid.symbol)
    yield f"{grid.name}{'' if symbol == grid.name else f'  {symbol}'}   {grid.note}"
    lead = [[name] for name in grid.rows] if any(grid.rows) else [[] for _ in grid.rows]
    table = [
        [*start, *("_______" if cell is None else cell for cell in row)]
        for start, row in zip(lead, grid.cells, strict=True)
    ]
    if any(grid.columns):
        table.insert(0, [*([""] if any(grid.rows) else []), *grid.columns])
    widths = [max(columns(row[j]) for row in table) for j in range(len(table[0]))]
    for row in table:
        yield (
            "  " + "  ".join(" " * (width - columns(cell)) + cell for cell, width in zip(row, widths, strict=True))
        ).rstrip()
    for line in grid.below:
        yield wrap(line, _WIDTH, "  - ", "    ")


PRINTERS: Mapping[str, Callable[[Sequence[Page]], str]] = {
    ".html": html, ".htm": html, ".tex": latex, ".md": markdown, ".markdown": markdown, ".txt": text,
}  # fmt: skip
__all__ = ["PRINTERS", "Page", "html", "latex", "markdown", "page", "text"]
