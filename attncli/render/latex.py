r"""LaTeX: a fragment of a run, to be put into a document that loads amsmath; worksheets as documents; formulas for every page.

Formulas have their numbers put in, S = Q K^{\top} = [1 2] [1 0; 0 1]^{\top} = [1 2]; they stand in maths mode and work with
amsmath as well as with KaTeX and MathJax.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from attncli.arithmetic import Value
from attncli.core.message import Message
from attncli.core.terms import Index, Term
from attncli.locale.fit import columns
from attncli.render import document as doc
from attncli.render.arithmetic import ABOUT, EQUAL, ShowCell
from attncli.render.formula import as_latex, as_text, put_in
from attncli.render.run import page
from attncli.render.text import cell_name, clean, constant_latex, number_latex, number_text, printable
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
    return f"{_PACKAGES}\n{_printed(page(view, *about(view, _WIDTH)), doc.say_in(view.language))}\n"


def sheets(pages: Sequence[doc.Page]) -> str:
    """Worksheets as a LaTeX document; Chinese needs XeLaTeX or LuaLaTeX."""
    body = "\n\\clearpage\n".join(_printed(page.blocks, str) for page in pages)
    chinese = any(page.code == "zh" for page in pages) or any(columns(sign) == 2 for sign in set(body))
    font = "\\usepackage[UTF8,scheme=plain]{ctex}\n" if chinese else "\\usepackage[T1]{fontenc}\n"
    engine = "XeLaTeX, LuaLaTeX" if chinese else "pdfLaTeX, XeLaTeX, LuaLaTeX"
    return (
        f"% attncli-worksheet: {engine}\n\\documentclass[11pt,a4paper]{{article}}\n"
        f"\\usepackage[margin=16mm]{{geometry}}\n{font}\\usepackage{{amsmath,array}}\n"
        "\\setlength{\\parindent}{0pt}\\setlength{\\parskip}{4pt}\\pagestyle{empty}\\raggedright\n"
        "\\newcommand{\\blank}{\\rule[-2.5mm]{0pt}{8mm}\\hspace*{14mm}}\n"
        f"\\begin{{document}}\n{body}\n\\end{{document}}\n"
    )


def _printed(blocks: Iterable[doc.Block], say: doc.Speaker) -> str:
    latex = Latex(say)
    return "\n\n".join(piece for block in blocks for piece in latex.pieces(block))


class Latex:
    """Prints blocks, each as pieces that stand apart."""

    def __init__(self, say: doc.Speaker) -> None:
        self.say = say

    def words(self, said: doc.Said) -> str:
        return text(self.say(said))

    def pieces(self, block: doc.Block) -> Iterator[str]:
        match block:
            case doc.Heading():
                yield rf"\{'sub' * (block.level - 1)}section*{{{self.words(block.text)}}}"
            case doc.Paragraph():
                yield self.words(block.text)
            case doc.Listing():
                yield _listed([self.words(entry.text) for entry in block.entries])
            case doc.Tabular():
                yield self.table(block)
            case doc.Steps():
                for step in block.steps:
                    yield from self.step(step)
            case doc.Grids():
                yield from self.grids(block)
            case doc.Fields():
                yield r"\quad ".join(rf"{text(field)}\enspace\underline{{\hspace{{45mm}}}}" for field in block.names)

    def table(self, table: doc.Tabular) -> str:
        heads = [" ".join(map(self.words, column.head)) for column in table.columns]
        layout = "".join("r" if column.is_number else "l" for column in table.columns)
        body = _lines_of_cells("tabular", layout, [heads, *(map(self.cell, row) for row in table.rows)])
        return f"\\begin{{center}}\n{body}\n\\end{{center}}"

    def cell(self, cell: doc.Said | doc.Symbol) -> str:
        return f"${as_latex(cell.latex)}$" if isinstance(cell, doc.Symbol) else self.words(cell)

    def step(self, step: doc.ShownStep) -> Iterator[str]:
        view, item = step.view, step.item
        shape = item.shape.replace("×", r" \times ")
        name = "" if item.id == item.symbol else rf"\quad \texttt{{{text(item.id)}}}"
        why = f"\n{self.words(item.why)}" if item.why is not None else ""
        yield rf"\paragraph{{${as_latex(item.symbol)}${name} \quad ${shape}$}}{why}"
        for block in item.panels:
            if block.title is not None:
                yield rf"\noindent\textbf{{{self.words(block.title)}}}"
            yield from _displays(view, item, block)
            if view.expand and item.step is not None:
                yield _listed([f"${line}$" for line in arithmetic(view, item, block)])

    def grids(self, block: doc.Grids) -> Iterator[str]:
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
        values, heads = block.values[rows, across], block.columns[across]
        if len(pieces) > 1:
            yield rf"\noindent {text(view.say(_where(rows, across)))}"
        if named:
            yield _display(_named(item, block.changed(values=values, rows=block.rows[rows], columns=heads)))
        elif len(pieces) > 1:
            yield _display(values_latex(values, item.decimals))


def _display(formula: str) -> str:
    return f"\\[\n{formula}\n\\]"


def _where(rows: slice, columns: slice) -> Message:
    return Message(
        "Rows {first_row}–{last_row}, columns {first_column}–{last_column}:",
        first_row=rows.start + 1,
        last_row=rows.stop,
        first_column=columns.start + 1,
        last_column=columns.stop,
    )


def _pieces(item: Item, block: Panel, named: bool) -> Iterator[tuple[slice, slice]]:
    """Rows and columns that fit on a page."""
    count_rows, count_columns = block.values.shape
    room = _WIDTH - max(map(columns, block.rows), default=0) if named else _WIDTH
    widths = [values_width(block.values[:, j : j + 1], item.decimals) for j in range(count_columns)]
    if named:
        widths = [max(width, columns(name) + 2) for width, name in zip(widths, block.columns, strict=True)]
    for top in range(0, count_rows, _ROWS):
        left = 0
        while left < count_columns:
            right = left + 1
            while right < count_columns and sum(widths[left : right + 1]) <= room:
                right += 1
            yield slice(top, min(top + _ROWS, count_rows)), slice(left, right)
            left = right


def _named(item: Item, block: Panel) -> str:
    """The numbers with the names of their rows and columns around them."""
    lines = [list(map(item.latex, row)) for row in block.values]
    layout = ("r|" if any(block.rows) else "") + "r" * len(block.columns)
    named = doc.with_names(map(_name, block.rows), map(_name, block.columns), lines, lead=any(block.rows))
    return _lines_of_cells("array", layout, named)


def _name(name: str) -> str:
    return rf"\text{{{text(name)}}}" if name else ""


def _lines_of_cells(environment: str, layout: str, lines: Iterable[Iterable[str]], *, ruled: bool = False) -> str:
    """A table in its environment, a rule under the first line, or under every one."""
    first, *others = (" & ".join(line) + r" \\" for line in lines)
    rule = r" \hline" * ruled
    body = "\n  ".join([first + r" \hline", *(line + rule for line in others)])
    return f"\\begin{{{environment}}}{{{layout}}}\n  {body}\n\\end{{{environment}}}"


def _listed(lines: list[str]) -> str:
    items = "\n".join(rf"  \item {line}" for line in lines)
    return f"\\begin{{itemize}}\\setlength{{\\itemsep}}{{0pt}}\n{items}\n\\end{{itemize}}"


def _grid(grid: doc.Grid) -> str:
    symbol = "" if as_text(grid.symbol) == grid.name else f" ${as_latex(grid.symbol)}$"
    cells = [[r"\blank" if cell is None else text(cell) for cell in row] for row in grid.cells]
    lines = doc.with_names(map(text, grid.rows), map(text, grid.columns), cells, lead=any(grid.rows))
    layout = ("r|" if any(grid.rows) else "|") + "r|" * len(grid.columns)
    title = rf"\texttt{{{text(grid.name)}}}{symbol} {{\small {text(grid.note)}}}"
    body = _lines_of_cells("tabular", layout, lines, ruled=True)
    return f"\\begin{{tabular}}[t]{{@{{}}l@{{}}}}{title}\\\\[1mm]\n{body}\\end{{tabular}}"


def text(words: str) -> str:
    """Words as LaTeX text: specials escaped, signs of mathematics in maths mode."""
    return "".join(_MATHS.get(sign, sign) for sign in escaped(clean(words)))


# Formulas with their numbers.

_SIGNS = {EQUAL: "=", ABOUT: r"\approx"}
_ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\textdollar{}", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "`": r"\textquoteleft{}",
}  # fmt: skip
#: amsmath's bmatrix has at most this many columns unless told otherwise.
_MOST_COLUMNS = 10
#: A matrix with more rows is not repeated inside the formula of another.
_MOST_ROWS = 32


def matrix(texts: list[list[str]]) -> str:
    r"""Numbers in LaTeX as a matrix in brackets, a line break after each \\: without it GitHub loses the \\."""
    rows = " \\\\\n".join(" & ".join(row) for row in texts)
    columns = max(map(len, texts), default=0)
    if columns <= _MOST_COLUMNS:
        return rf"\begin{{bmatrix}} {rows} \end{{bmatrix}}"
    return rf"\left[\begin{{array}}{{{'r' * columns}}} {rows} \end{{array}}\right]"


def values_latex(values: Value, decimals: int) -> str:
    """A 2-D array as a matrix in brackets."""
    return matrix([[number_latex(value, decimals) for value in row] for row in values])


def values_width(values: Value, decimals: int) -> int:
    """How many characters a 2-D array takes, about."""
    widths = [max((len(number_text(value, decimals)) for value in column), default=0) for column in values.T]
    return sum(widths) + 2 * len(widths) + 2


def equation(view: View, item: Item, block: Panel, width: int) -> str:
    """The symbol, its formula, the formula with the matrices put in, and the result.

    Lines up under the first = where it is longer than `width` characters; the matrices are put in where
    they fit at all.
    """
    sides = [as_latex(formula) for formula in (item.formula, item.numbers) if formula]
    result = values_latex(block.values, item.decimals)
    put_in, taken = with_matrices(view, item, block)
    room = width - len(item.name) - 3
    if put_in not in ("", *sides, result) and taken <= room:
        sides.append(put_in)
    else:
        taken = 0
    last = block_sign(view, item, block) if taken else "="
    taken += len(item.formula_text) + values_width(block.values, item.decimals) + 3 * (len(sides) + 1)
    if not sides or taken <= room:
        return f"{' = '.join([as_latex(item.symbol), *sides])} {last} {result}"
    lines = " \\\\\n  &= ".join(sides)
    return f"\\begin{{aligned}}\n{as_latex(item.symbol)} &= {lines} \\\\\n  &{last} {result}\n\\end{{aligned}}"


def block_sign(view: View, item: Item, block: Panel) -> str:
    r"""= between a formula with its matrices and the result if it is true of every cell as printed, else \approx."""
    if view.run.trace.arithmetic == "exact":
        return "="
    indices = (block.index(i, j) for i, j in np.ndindex(*block.values.shape))
    signs = (view.sign(item.id, index, view.term(item.id, index, open_weights=False)) for index in indices)
    return "=" if all(sign == EQUAL for sign in signs) else r"\approx"


def about(view: View, width: int) -> tuple[Message, ...]:
    """Why there are ≈ in a document, if there are any: equations true only with digits that are not printed."""
    found = any(
        (view.expand and view.is_about(item)) or any(_is_about(view, item, block, width) for block in item.panels)
        for item in view.steps
    )
    return (view.why_about(),) if found else ()


def _is_about(view: View, item: Item, block: Panel, width: int) -> bool:
    put_in, taken = with_matrices(view, item, block)
    return bool(put_in) and taken <= width - len(item.name) - 3 and block_sign(view, item, block) != "="


def with_matrices(view: View, item: Item, block: Panel) -> tuple[str, int]:
    """The formula with its operands' numbers, and how wide they are; empty where an operand has other heads or many rows."""
    step = item.step
    if step is None or not step.inputs:
        return "", 0
    operands, taken = [], 0
    for step_id in step.inputs:
        values, places = _operand(view, step_id, item, block), view.run.places(step_id)
        if values is None:
            return "", 0
        if values.ndim == 1:  # ids stand in an index: they keep their name
            operands.append(view.run.graph.symbol(step_id))
            continue
        if len(values) > _MOST_ROWS:
            return "", 0
        operands.append(values_latex(values, places))
        taken += values_width(values, places)
    template = step.numbers() or step.formula(view.layout == "columns")
    return put_in(as_latex(template), operands), taken


def _operand(view: View, step_id: str, item: Item, block: Panel) -> Value:
    """An operand's numbers as shown beside `block`: its own head of them; None where the heads do not match."""
    values = view.run.trace.numbers[step_id]
    if values.ndim == 3:
        if block.head is None or len(values) != len(item.values):
            return None
        values = values[block.head - 1]
    return np.swapaxes(values, 0, 1) if view.layout == "columns" and values.ndim == 2 else values


def arithmetic(view: View, item: Item, block: Panel) -> Iterator[str]:
    r"""Every cell of a block: S_{1,2} = 1 \times 0 + 2 \times 1 = 2."""
    for i, j in np.ndindex(*block.values.shape):
        index = block.index(i, j)
        yield f"{_cell_symbol(item.symbol, index, view.layout)} = {_cell(view, item, index)}"


def _cell_symbol(latex: str, index: Index, layout: str) -> str:
    symbol, place = as_latex(latex), cell_name("", index, layout)[1:-1]
    return f"{symbol}_{{{place}}}" if re.fullmatch(r"\\?[A-Za-z]+", symbol) else f"({symbol})_{{{place}}}"


def _cell(view: View, item: Item, index: Index) -> str:
    numbers, graph = view.run.trace.numbers, view.run.graph

    def show(step_id: str, at: Index) -> str:
        return number_latex(numbers[step_id][at], view.run.places(step_id))

    term = view.term(item.id, index)
    result = show(item.id, index)
    if term.kind == "cell":  # a number taken over goes by its name, as in `equation`
        source, place = term.place
        return f"{_cell_symbol(graph.symbol(source), place, view.layout)} = {result}"
    left = term_latex(term, show)
    return left if left == result else f"{left} {_SIGNS[view.sign(item.id, index, term)]} {result}"


def is_named(view: View, item: Item) -> bool:
    """Whether its rows or columns carry names that were given (tokens), not just numbers."""
    return any(axis.name in view.run.graph.labels for axis in view.run.graph.axes(item.id))


# The arithmetic of a cell.


def term_latex(term: Term, show: ShowCell) -> str:
    """A term in LaTeX, its cells put in by `show`."""
    return term.fold(show, constant_latex, _latex_over, lambda word: rf"\text{{{escaped(word)}}}")


#: Terms in which nothing needs brackets.
_FORMS = {
    "quotient": r"\frac{#1}{#2}", "exp": "e^{#1}", "root": r"\sqrt{#1}", "positive": "[#1 > 0]", "erf": r"\mathrm{erf}\left(#1\right)",
}  # fmt: skip


def _latex_over(term: Term, parts: list[str]) -> str:
    """The LaTeX of a term from that of the terms in it."""
    if term.kind in _FORMS:
        return put_in(_FORMS[term.kind], parts)
    match term.kind:
        case "sum":
            return _sum(parts)
        case "difference":
            return f"{parts[0]} - {_beside(parts[1])}"
        case "product":
            return r" \times ".join(_beside(part, is_first=i == 0) for i, part in enumerate(parts))
        case "negative":
            alone = term.terms[0].kind in ("cell", "ln") and not parts[0].startswith("-")
            return f"-{parts[0] if alone else _bracketed(parts[0])}"
        case "power":
            return f"{_beside(parts[0])}^{{{parts[1]}}}"
    return rf"\{term.kind}{_bracketed(', '.join(parts))}"


def _sum(parts: list[str]) -> str:
    """Terms joined by +, or by − where a single number is negative; another negative one gets brackets."""
    out = parts[0] if parts else "0"
    for part in parts[1:]:
        if re.fullmatch(r"-[\d.]+", part):
            out += f" - {part[1:]}"
        else:
            out += f" + {_bracketed(part) if part.startswith('-') else part}"
    return out


def _bracketed(latex: str) -> str:
    return rf"\left({latex}\right)"


def _beside(latex: str, *, is_first: bool = False) -> str:
    """A part beside a sign that holds it together: a sum in brackets, and what is negative unless it stands first."""
    return _bracketed(latex) if _is_sum(latex) or (latex.startswith("-") and not is_first) else latex


def _is_sum(latex: str) -> bool:
    """Whether a + or − stands outside all brackets, after the first sign."""
    depth = 0
    for i, sign in enumerate(latex):
        depth += (sign in "{(") - (sign in "})")
        if depth == 0 and i and sign in "+-" and latex[i - 1] == " ":
            return True
    return False


def escaped(text: str) -> str:
    """Text in which nothing is a command of LaTeX, of KaTeX or of Markdown around it."""
    return "".join(_ESCAPES.get(sign, sign) for sign in printable(text))
