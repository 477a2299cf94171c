"""One HTML page in both languages that needs nothing from outside: to explore, or to read; a notebook shows the latter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from attncli.arithmetic import Number, Value
from attncli.core.message import Localized, Message
from attncli.core.terms import Index
from attncli.render import document as doc
from attncli.render.formula import as_mathml, as_text
from attncli.render.latex import about, block_sign, values_latex, values_width, with_matrices
from attncli.render.run import page as page_of
from attncli.render.run import source
from attncli.render.text import aligned, clean
from attncli.render.view import Item, Panel, View

_NAMES = {"en": "English", "zh": "中文"}
_TAGS = {"en": "en", "zh": "zh-Hans"}
#: Cells whose arithmetic is listed without being asked for (--expand lists all).
_MOST_CELLS = 256
#: Columns from which a table may be wider than the page, and gets a place in the keyboard's order to scroll it.
_WIDE = 8
#: Characters up to which the formula is repeated with its matrices.
_WIDTH = 72

_PAGE = """<!DOCTYPE html>
<html lang="{lang}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="attncli">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


def whole_page(view: View, *, policy: str, style: str, body: str) -> str:
    """A file of its own, which may do what the policy allows."""
    title = escape(clean(view.title()))
    return _PAGE.format(lang=tag(view), policy=policy, title=title, style=style, body=body)


def reading_page(view: View, reason: Message | None = None) -> str:
    """The run as a page without any script."""
    return whole_page(
        view,
        policy="default-src 'none'; style-src 'unsafe-inline'",
        style="body { margin: 0 } body > .attncli { min-height: 100vh }",
        body=Fragment(view, top=1, contents=True, reason=reason).text(),
    )


def fragment(view: View) -> str:
    """The run as one <div> with its own style, for a page that is there already (a notebook)."""
    return Fragment(view, top=3, contents=False).text()


def tag(view: View) -> str:
    return _TAGS.get(view.language.code, view.language.code)


class Fragment:
    """One run as HTML: every text in all languages, every number once."""

    def __init__(self, view: View, *, top: int, contents: bool, reason: Message | None = None) -> None:
        from attncli.locale import CODES, language

        self.view = view
        others = [language(code) for code in CODES if code != view.language.code]
        self.views = [view, *(view.in_language(other) for other in others)]
        self.top = top
        self.contents = contents
        counted = [item.id for item in view.steps if item.step is not None]
        #: The number of every step, as the terminal counts them.
        self.numbers = {step_id: number for number, step_id in enumerate(counted, start=1)}
        self.reason = reason

    def text(self) -> str:
        """The whole <div>."""
        style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
        code = self.view.language.code
        return (
            f'<div class="attncli attncli-{code}" lang="{tag(self.view)}">\n<style>\n{style}</style>\n'
            f'<div class="attncli-body">\n{"".join(self.body())}</div>\n</div>'
        )

    def say(self, words: doc.Said) -> str:
        """A message in every language, one of them shown; a name or number as it is."""
        return self.both([view.say(words) if isinstance(words, Message) else words for view in self.views])

    def both(self, texts: list[str]) -> str:
        texts = [escape(clean(text)) for text in texts]
        if len(set(texts)) == 1:
            return texts[0]
        return "".join(
            f'<span class="{view.language.code}" lang="{tag(view)}">{text}</span>'
            for view, text in zip(self.views, texts, strict=True)
        )

    def heading(self, depth: int, name: str, inside: str) -> str:
        level = self.top + depth
        return f'<h{level} class="{name}">{inside}</h{level}>\n'

    def body(self) -> Iterator[str]:
        yield from self.top_of_page()
        if self.contents:
            yield self.list_of_steps()
        for heading, blocks in _sections(page_of(self.view, *self.remarks())):
            yield self.section(heading, blocks)

    def section(self, heading: doc.Heading, blocks: Sequence[doc.Block]) -> str:
        inside = "".join(map(self.block, blocks))
        return f"<section>\n{self.heading(1, 'part', self.say(heading.text))}{inside}</section>\n"

    def block(self, block: doc.Block) -> str:
        match block:
            case doc.Paragraph():
                return f"<p>{self.say(block.text)}</p>\n"
            case doc.Listing():
                lines = "".join(f"<li>{self.say(entry.text)}</li>\n" for entry in block.entries)
                return f'<ul class="notes">\n{lines}</ul>\n'
            case doc.Tabular():
                return self.words(block)
            case doc.Steps():
                return self.steps(block)
        raise TypeError(type(block).__name__)

    def steps(self, block: doc.Steps) -> str:
        inside = "".join(
            (self if step.view is self.view else self.of_contrast(step.view)).item(step.item) for step in block.steps
        )
        return f'<div class="steps{" matrices" * block.aside}">\n{inside}</div>\n'

    def words(self, table: doc.Tabular) -> str:
        """A table of words, its first cells naming the rows."""
        heads = "".join(f'<th scope="col">{"".join(map(self.say, column.head))}</th>' for column in table.columns)
        lines = "\n".join(
            f'<tr class="line">{"".join(map(self.cell_of_words, row, table.columns))}</tr>' for row in table.rows
        )
        inside = f'<thead><tr class="line">{heads}</tr></thead>\n<tbody>{lines}</tbody>'
        return f'<div class="scroll"><table class="matrix">{inside}</table></div>\n'

    def cell_of_words(self, cell: doc.Said | doc.Symbol, column: doc.TabularColumn) -> str:
        if isinstance(cell, doc.Symbol):
            return f'<th scope="row">{as_mathml(cell.latex)}</th>'
        return f"<td>{self.say(cell)}</td>" if column.is_number else f'<td class="words">{self.say(cell)}</td>'

    def of_contrast(self, view: View) -> Fragment:
        """How the second run is written."""
        return Fragment(view, top=self.top, contents=False)

    def top_of_page(self) -> Iterator[str]:
        """The languages, the title, what is asked; and why a page is only to read."""
        yield self.switch()
        yield self.heading(0, "title", self.both([view.title() for view in self.views]))
        asked = [Localized(view.run.problem.prompt).text(view.language) for view in self.views]
        if any(asked):
            yield f'<p class="question">{self.both(asked)}</p>\n'
        where = source(self.view)
        if where is not None:
            yield f"<p><small>{self.say(where)}</small></p>\n"
        if self.reason is not None:
            yield f'<p class="reason">{self.say(self.reason)}</p>\n'

    def switch(self) -> str:
        labels = "".join(
            f'<label lang="{tag(view)}"><input type="radio" name="language" class="to-{view.language.code}"'
            f' autocomplete="off"{"" if i else " checked"}> {_NAMES.get(view.language.code, view.language.code)}</label>'
            for i, view in enumerate(self.views)
        )
        return f'<form class="languages" aria-label="Language · 语言">{labels}</form>\n'

    def list_of_steps(self) -> str:
        links = "".join(
            f'<li><a href="#{anchor(item)}" title="{escape(item.id)}">{as_mathml(item.symbol)}</a></li>'
            for item in (*self.view.inputs, *self.view.steps)
        )
        return f'<nav class="contents" aria-label="Contents · 目录"><ol>{links}</ol></nav>\n'

    def item(self, item: Item) -> str:
        """A step: its formula as heading, what it means, its matrices, the arithmetic."""
        why = f"<p>{self.say(item.why)}</p>\n" if item.why is not None else ""
        tables = "".join(self.table(item, block) for block in item.panels)
        arithmetic = self.arithmetic(item) if item.step is not None else ""
        return (
            f"<section {self.attributes(item)}>\n{self.step_title(item)}{why}"
            f'<div class="matrices">\n{tables}</div>\n{arithmetic}</section>\n'
        )

    def attributes(self, item: Item) -> str:
        """What the element of a step says of it."""
        return f'class="step" id="{anchor(item)}"' if self.contents else 'class="step"'

    def step_title(self, item: Item) -> str:
        """7. A = U / z"""
        number = f'<span class="number">{self.numbers[item.id]}.</span> ' if item.id in self.numbers else ""
        code = "" if item.id == item.symbol else f" <code>{escape(item.id)}</code>"
        formula = f"{item.symbol} = {item.formula_latex}" if item.formula else item.symbol
        return self.heading(2, "step-title formula", f"{number}{as_mathml(formula, 'large')}{code}")

    def table(self, item: Item, block: Panel) -> str:
        """The numbers with the names of rows and columns; attention weights shaded."""
        count, columns = block.values.shape
        shape = f"{count}×{columns}" if block.ndim > 1 else str(columns)
        words = f" · {self.say(block.title)}" if block.title is not None else ""
        caption = f"<caption>{as_mathml(item.symbol)}{words} · {shape}</caption>"
        named = any(block.rows)
        head = ""
        if any(block.columns):
            corner = '<td class="corner"></td>' if named else ""
            names = "".join(f'<th scope="col">{escape(name)}</th>' for name in block.columns)
            head = f'<thead><tr class="line">{corner}{names}</tr></thead>\n'
        texts = [self.written(item, column) for column in block.values.T]
        body = ""
        for i, name in enumerate(block.rows):
            first = f'<th scope="row">{escape(name)}</th>' if named else ""
            cells = (self.cell(item, block.index(i, j), *texts[j][i]) for j in range(columns))
            body += f'<tr class="line">{first}{"".join(cells)}</tr>\n'
        table = f'<table class="matrix"{self.role}>{caption}\n{head}<tbody>\n{body}</tbody></table>'
        label = escape(f"{item.name} {shape}")
        reach = f' tabindex="0" role="region" aria-label="{label}"' if columns > _WIDE else ""
        return f'<div class="scroll"{reach}>{table}</div>\n'

    #: What a table says of itself besides its caption.
    role = ""

    def written(self, item: Item, column: Value) -> list[tuple[str, str]]:
        """One column's numbers as they stand in its cells, and what lines each of them up at the point."""
        if column.dtype == object:
            return [(as_mathml(item.latex(value)), "") for value in column]
        return [(escape(text), f' data-pad="{pad}"' if pad else "") for text, pad in padding(map(item.text, column))]

    def cell(self, item: Item, index: Index, text: str, pad: str) -> str:
        """One number as a table cell."""
        return f"<td{self.shade(item, item.values[index])}{pad}>{text}</td>"

    def shade(self, item: Item, value: Number) -> str:
        """How strongly an attention weight is shaded, from 0 to 1."""
        if not item.weights:
            return ""
        share = float(value)
        return f' class="share" style="--share:{min(1.0, max(0.0, share)):.3f}"' if share == share else ""

    def arithmetic(self, item: Item) -> str:
        """Every cell's arithmetic, folded away unless it was asked for."""
        view = self.view
        if item.values.size > _MOST_CELLS and not view.expand:
            words = Message("{count} cells: --expand lists the arithmetic of each.", count=item.values.size)
            return f"<p><small>{self.say(words)}</small></p>\n"
        formulas = "".join(f'<div class="formula">{as_mathml(line, "block")}</div>\n' for line in self.equations(item))
        lines = (f"<b>{escape(name)}</b> = {escape(clean(text))}" for name, text in view.arithmetic(item))
        cells = "".join(f"<li>{line}</li>\n" for line in lines)
        return f'{self.folded()}\n{formulas}<ul class="cells">\n{cells}</ul></details>\n'

    def folded(self, kind: str = "") -> str:
        """The beginning of what is folded away unless it was asked for."""
        summary = self.say(Message("The arithmetic of every cell"))
        return f"<details{kind}{' open' if self.view.expand else ''}><summary>{summary}</summary>"

    def equations(self, item: Item) -> Iterator[str]:
        """The formula with its matrices, for each head, where it fits."""
        for block in item.panels:
            put_in, taken = with_matrices(self.view, item, block)
            if put_in and taken + values_width(block.values, item.decimals) <= _WIDTH:
                sign = block_sign(self.view, item, block)
                yield f"{item.symbol} = {put_in} {sign} {values_latex(block.values, item.decimals)}"

    def remarks(self) -> Iterator[Message]:
        """Why there is a ≈ in the arithmetic, if there is one."""
        view = self.view
        shown = [item for item in view.steps if view.expand or item.values.size <= _MOST_CELLS]
        if about(view, _WIDTH) or any(view.is_about(item) for item in shown):
            yield view.why_about()


def _sections(blocks: Iterable[doc.Block]) -> Iterator[tuple[doc.Heading, list[doc.Block]]]:
    """Headings with what stands below each; what stands above all of them is the page's own business."""
    found: list[tuple[doc.Heading, list[doc.Block]]] = []
    for block in blocks:
        if isinstance(block, doc.Heading) and block.level > 1:
            found.append((block, []))
        elif found:
            found[-1][1].append(block)
    yield from found


def anchor(item: Item) -> str:
    return f"attncli-{escape(''.join(item.id.split()))}"


def padding(numbers: Iterable[str]) -> list[tuple[str, str]]:
    """Each number of a column, and the decimals it would need to reach as far as the longest: ("2", ".000").

    The style shows these without ink, so that points stand under one another in any font.
    """
    texts = list(numbers)
    return [(text, _tail(text, len(wide) - len(text))) for text, wide in zip(texts, aligned(texts), strict=True)]


def _tail(number: str, missing: int) -> str:
    return "0" * missing if "." in number or not missing else "." + "0" * (missing - 1)


# Worksheets.


def sheets(pages: Sequence[doc.Page]) -> str:
    """Pages to print, A4, in one file that needs nothing from outside."""
    lang = _TAGS.get(pages[0].code, pages[0].code)
    style = Path(__file__).with_name("worksheet.css").read_text(encoding="utf-8")
    title = escape(pages[0].title)
    body = "\n".join(map(_sheet, pages))
    return (
        f'<!DOCTYPE html>\n<html lang="{lang}">\n<head>\n<meta name="generator" content="attncli-worksheet">\n'
        '<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _sheet(page: doc.Page) -> str:
    body = "\n".join(map(_sheet_block, filter(lambda block: not isinstance(block, doc.Gap), page.blocks)))
    return f'<section class="sheet{" key" if page.is_key else ""}">\n{body}\n</section>'


def _sheet_block(block: doc.Block) -> str:
    match block:
        case doc.Heading():
            return f"<h{block.level}>{escape(str(block.text))}</h{block.level}>"
        case doc.Paragraph():
            return f"<p>{escape(str(block.text))}</p>"
        case doc.Fields():
            return f'<div class="fields">{"".join(f"<span>{escape(field)}</span>" for field in block.names)}</div>'
        case doc.Grids():
            return "\n".join([f'<div class="grids{" asked" * block.asked}">', *map(_grid, block.grids), "</div>"])
    raise TypeError(type(block).__name__)


def _grid(grid: doc.Grid) -> str:
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
