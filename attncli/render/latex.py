"""LaTeX: a fragment of a run, to be put into a document that loads amsmath; worksheets as documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from unicodedata import east_asian_width

from attncli.core.message import Message
from attncli.locale.fit import columns
from attncli.render.document import (
    Block,
    Fields,
    Grid,
    Grids,
    Heading,
    Listing,
    Page,
    Paragraph,
    Said,
    ShownStep,
    Speaker,
    Steps,
    Symbol,
    Tabular,
    say_in,
)
from attncli.render.equations import about, arithmetic, equation, escaped, is_named, values_latex, values_width
from attncli.render.formula import as_latex, as_text
from attncli.render.run import page
from attncli.render.text import clean
from attncli.render.view import Item, Panel, View

#: Characters that fit between the margins of a page, and rows that fit well on one.
_WIDTH = 66
_ROWS = 32
_PACKAGES = r"""% Put this into a document with \usepackage{amsmath}.
% Chinese text needs \usepackage{ctex} (or xeCJK) and XeLaTeX or LuaLaTeX; English works with pdfLaTeX too."""

#: Signs that pdfLaTeX does not know as text.
_MATHS = {
    "√": r"$\surd$", "∞": r"$\infty$", "−": "$-$", "×": r"$\times$", "·": r"$\cdot$", "⊙": r"$\odot$",
    "Δ": r"$\Delta$", "∂": r"$\partial$", "Σ": r"$\Sigma$", "ᵀ": r"$^{\top}$", "²": "$^{2}$",
    "→": r"$\to$", "≤": r"$\leq$", "≥": r"$\geq$", "≈": r"$\approx$", "∛": r"$\sqrt[3]{\,}$", "ε": r"$\varepsilon$",
    "α": r"$\alpha$", "β": r"$\beta$", "γ": r"$\gamma$", "δ": r"$\delta$", "η": r"$\eta$", "θ": r"$\theta$", "λ": r"$\lambda$",
    "μ": r"$\mu$", "π": r"$\pi$", "σ": r"$\sigma$", "τ": r"$\tau$", "φ": r"$\varphi$", "ω": r"$\omega$", "½": r"$\frac{1}{2}$",
    "\N{REPLACEMENT CHARACTER}": "?", "✓": r"$\surd$", "✗": r"$\times$",
}  # fmt: skip


def document(view: View) -> str:
    """The run as a LaTeX fragment."""
    return f"{_PACKAGES}\n{_printed(page(view, *about(view, _WIDTH)), say_in(view.language))}\n"


def sheets(pages: Sequence[Page]) -> str:
    """Worksheets as a LaTeX document; Chinese needs XeLaTeX or LuaLaTeX."""
    body = "\n\\clearpage\n".join(_printed(page.blocks, str) for page in pages)
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


def _printed(blocks: Iterable[Block], say: Speaker) -> str:
    latex = Latex(say)
    return "\n\n".join(piece for block in blocks for piece in latex.pieces(block))


class Latex:
    """Prints blocks, each as pieces that stand apart."""

    def __init__(self, say: Speaker) -> None:
        self.say = say

    def words(self, said: Said) -> str:
        return text(self.say(said))

    def pieces(self, block: Block) -> Iterator[str]:
        match block:
            case Heading():
                yield rf"\{'sub' * (block.level - 1)}section*{{{self.words(block.text)}}}"
            case Paragraph():
                yield self.words(block.text)
            case Listing():
                yield _listed([self.words(entry.text) for entry in block.entries])
            case Tabular():
                yield self.table(block)
            case Steps():
                for step in block.steps:
                    yield from self.step(step)
            case Grids():
                yield from self.grids(block)
            case Fields():
                yield r"\quad ".join(rf"{text(field)}\enspace\underline{{\hspace{{45mm}}}}" for field in block.names)

    def table(self, table: Tabular) -> str:
        lines = [" & ".join(" ".join(map(self.words, column.head)) for column in table.columns) + r" \\ \hline"]
        lines += [" & ".join(map(self.cell, row)) + r" \\" for row in table.rows]
        layout = "".join("r" if column.is_number else "l" for column in table.columns)
        body = "\n  ".join(lines)
        return f"\\begin{{center}}\n\\begin{{tabular}}{{{layout}}}\n  {body}\n\\end{{tabular}}\n\\end{{center}}"

    def cell(self, cell: Said | Symbol) -> str:
        return f"${as_latex(cell.latex)}$" if isinstance(cell, Symbol) else self.words(cell)

    def step(self, step: ShownStep) -> Iterator[str]:
        view, item = step.view, step.item
        shape = item.shape.replace("×", r" \times ")
        id = "" if item.id == item.symbol else rf"\quad \texttt{{{text(item.id)}}}"
        why = f"\n{self.words(item.why)}" if item.why is not None else ""
        yield rf"\paragraph{{${as_latex(item.symbol)}${id} \quad ${shape}$}}{why}"
        for block in item.panels:
            if block.title is not None:
                yield rf"\noindent\textbf{{{self.words(block.title)}}}"
            yield from _displays(view, item, block)
            if view.expand and item.step is not None:
                yield _listed([f"${line}$" for line in arithmetic(view, item, block)])

    def grids(self, block: Grids) -> Iterator[str]:
        """Side by side; answers one below the other, with the remarks on them."""
        if not block.asked or any(grid.has_boxes for grid in block.grids):
            yield "\\qquad\n".join(map(_grid, block.grids))
            return
        for grid in block.grids:
            yield _grid(grid)
            if grid.below:
                yield f"{{\\small{_listed([text(line) for line in grid.below])}}}"


def _displays(view: View, item: Item, block: Panel) -> Iterator[str]:
    """The equation; a matrix that leaves the page in parts; names of rows and columns where there are some."""
    named = is_named(view, item)
    pieces = list(_pieces(item, block, named))
    if len(pieces) == 1:
        yield _display(equation(view, item, block, _WIDTH))
    elif item.formula:
        yield _display(f"{as_latex(item.symbol)} = {as_latex(item.formula)}")
    for rows, across in pieces:
        if len(pieces) > 1:
            yield rf"\noindent {text(view.say(_where(rows, across)))}"
        if named:
            yield _display(_named(item, block, rows, across))
        elif len(pieces) > 1:
            values = block.values[rows.start : rows.stop, across.start : across.stop]
            yield _display(values_latex(values, item.decimals))


def _display(formula: str) -> str:
    return f"\\[\n{formula}\n\\]"


def _where(rows: range, columns: range) -> Message:
    return Message(
        "Rows {first_row}–{last_row}, columns {first_column}–{last_column}:",
        first_row=rows.start + 1,
        last_row=rows.stop,
        first_column=columns.start + 1,
        last_column=columns.stop,
    )


def _pieces(item: Item, block: Panel, named: bool) -> Iterator[tuple[range, range]]:
    """Ranges of rows and columns that fit on a page."""
    count_rows, count_columns = block.values.shape
    room = _WIDTH - max(map(_cells, block.rows), default=0) if named else _WIDTH
    widths = [values_width(block.values[:, j : j + 1], item.decimals) for j in range(count_columns)]
    if named:
        widths = [max(width, _cells(name) + 2) for width, name in zip(widths, block.columns, strict=True)]
    for top in range(0, count_rows, _ROWS):
        left = 0
        while left < count_columns:
            right = left + 1
            while right < count_columns and sum(widths[left : right + 1]) <= room:
                right += 1
            yield range(top, min(top + _ROWS, count_rows)), range(left, right)
            left = right


def _cells(words: str) -> int:
    """How wide text is: a Chinese character takes two places."""
    return sum(2 if east_asian_width(sign) in "WF" else 1 for sign in words)


def _named(item: Item, block: Panel, rows: range, columns: range) -> str:
    """The numbers with the names of their rows and columns around them."""
    named = any(block.rows)
    lead = [""] if named else []
    lines = [" & ".join(lead + [_name(block.columns[j]) for j in columns]) + r" \\ \hline"]
    for i in rows:
        numbers = [item.latex(block.values[i, j]) for j in columns]
        lines.append(" & ".join(([_name(block.rows[i])] if named else []) + numbers) + r" \\")
    layout = ("r|" if named else "") + "r" * len(columns)
    body = "\n  ".join(lines)
    return f"\\begin{{array}}{{{layout}}}\n  {body}\n\\end{{array}}"


def _name(name: str) -> str:
    return rf"\text{{{text(name)}}}" if name else ""


def _listed(lines: list[str]) -> str:
    items = "\n".join(rf"  \item {line}" for line in lines)
    return f"\\begin{{itemize}}\\setlength{{\\itemsep}}{{0pt}}\n{items}\n\\end{{itemize}}"


def _grid(grid: Grid) -> str:
    symbol = "" if as_text(grid.symbol) == grid.name else f" ${as_latex(grid.symbol)}$"
    lead = any(grid.rows)
    rows = [" & ".join(([""] if lead else []) + [text(name) for name in grid.columns]) + r" \\ \hline"]
    for name, row in zip(grid.rows, grid.cells, strict=True):
        cells = ["\\blank" if cell is None else text(cell) for cell in row]
        rows.append(" & ".join(([text(name)] if lead else []) + cells) + r" \\ \hline")
    layout = ("r|" if lead else "|") + "r|" * len(grid.columns)
    body = "\n  ".join(rows)
    return (
        f"\\begin{{tabular}}[t]{{@{{}}l@{{}}}}\\texttt{{{text(grid.name)}}}{symbol} {{\\small {text(grid.note)}}}\\\\[1mm]\n"
        f"\\begin{{tabular}}{{{layout}}}\n  {body}\n\\end{{tabular}}\\end{{tabular}}"
    )


def text(words: str) -> str:
    """Words as LaTeX text: specials escaped, signs of mathematics in maths mode."""
    return "".join(_MATHS.get(sign, sign) for sign in escaped(clean(words)))
