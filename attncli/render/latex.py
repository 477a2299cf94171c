"""A LaTeX fragment for a worksheet or paper: to be put into a document that loads amsmath."""

from __future__ import annotations

from collections.abc import Iterator
from unicodedata import east_asian_width

from attncli.core.message import N_, Message
from attncli.render import lesson
from attncli.render.arithmetic import escaped
from attncli.render.equations import about, arithmetic, equation, values_latex, values_width
from attncli.render.formula import as_latex
from attncli.render.run import (
    GRADIENT,
    INPUTS,
    NOTES,
    VERDICT,
    VERIFICATION,
    WORST,
    clean,
    ending,
    head,
    is_named,
    parts,
    verified,
)
from attncli.render.view import Block, Item, View

#: Characters that fit between the margins of a page, and rows that fit well on one.
_WIDTH = 66
_ROWS = 32
_PACKAGES = r"""% Put this into a document with \usepackage{amsmath}.
% Chinese text needs \usepackage{ctex} (or xeCJK) and XeLaTeX or LuaLaTeX; English works with pdfLaTeX too."""

#: Signs that pdfLaTeX does not know as text.
_MATHS = {
    "√": r"$\surd$", "∞": r"$\infty$", "−": "$-$", "×": r"$\times$", "·": r"$\cdot$", "η": r"$\eta$", "⊙": r"$\odot$",
    "Δ": r"$\Delta$", "σ": r"$\sigma$", "∂": r"$\partial$", "Σ": r"$\Sigma$", "ᵀ": r"$^{\top}$", "²": "$^{2}$",
    "→": r"$\to$", "≤": r"$\leq$", "≥": r"$\geq$", "≈": r"$\approx$", "∛": r"$\sqrt[3]{\,}$", "ε": r"$\varepsilon$",
    "\N{REPLACEMENT CHARACTER}": "?", "✓": r"$\surd$", "✗": r"$\times$",
}  # fmt: skip


def document(view: View) -> str:
    """The run as a LaTeX fragment."""
    return "\n\n".join(_fragment(view)) + "\n"


def _fragment(view: View) -> Iterator[str]:
    yield f"{_PACKAGES}\n\\section*{{{text(view.title())}}}"
    for message in (lesson.prompt(view), lesson.source(view)):
        if message is not None:
            yield text(view.say(message))
    if view.inputs:
        yield _heading(view.say(INPUTS))
        for item in view.inputs:
            yield from _item(view, item)
    for title, items in parts(view):
        yield _heading(view.say(title))
        for item in items:
            yield from _item(view, item)
    lines = [view.say(message) for message in (*ending(view), *about(view, _WIDTH))]
    if lines:
        yield _heading(view.say(NOTES))
        yield _listed([text(line) for line in lines])
    yield from _verification(view)
    yield from _lesson(view)


def _lesson(view: View) -> Iterator[str]:
    """The printed numbers of a worked example, its second run, and what to notice."""
    lines = [text(view.say(message)) for _, message in lesson.printed(view)]
    if lines:
        yield _heading(view.say(lesson.PRINTED))
        yield _listed(lines)
    compared = lesson.compared(view)
    if compared is not None and view.contrast is not None:
        changes, steps, said = compared
        yield _heading(view.say(lesson.COMPARISON))
        yield text(view.say(changes))
        for item in steps:
            yield from _item(view.contrast, item)
        yield from (text(view.say(line)) for line in said)
    notice = lesson.notice(view)
    if notice is not None:
        yield _heading(view.say(lesson.NOTICE))
        yield text(view.say(notice))


def _heading(words: str) -> str:
    return f"\\subsection*{{{text(words)}}}"


def _item(view: View, item: Item) -> Iterator[str]:
    shape = item.shape.replace("×", r" \times ")
    id = "" if item.id == item.symbol else rf"\quad \texttt{{{text(item.id)}}}"
    why = f"\n{text(view.say(item.why))}" if item.why is not None else ""
    yield rf"\paragraph{{${as_latex(item.symbol)}${id} \quad ${shape}$}}{why}"
    for block in item.blocks:
        if block.head is not None:
            yield rf"\noindent\textbf{{{text(view.say(head(block)))}}}"
        yield from _displays(view, item, block)
        if view.expand and item.step is not None:
            yield _listed([f"${line}$" for line in arithmetic(view, item, block)])


def _displays(view: View, item: Item, block: Block) -> Iterator[str]:
    """The equation; a matrix that leaves the page in parts; names of rows and columns where there are some."""
    named = is_named(view, item)
    pieces = list(_pieces(item, block, named))
    if len(pieces) == 1:
        yield _display(equation(view, item, block, _WIDTH))
    elif item.formula:
        yield _display(f"{as_latex(item.symbol)} = {as_latex(item.formula)}")
    for rows, columns in pieces:
        if len(pieces) > 1:
            yield rf"\noindent {text(view.say(_where(rows, columns)))}"
        if named:
            yield _display(_named(item, block, rows, columns))
        elif len(pieces) > 1:
            values = block.values[rows.start : rows.stop, columns.start : columns.stop]
            yield _display(values_latex(values, item.decimals))


def _display(formula: str) -> str:
    return f"\\[\n{formula}\n\\]"


def _where(rows: range, columns: range) -> Message:
    return Message(
        N_("Rows {first_row}–{last_row}, columns {first_column}–{last_column}:"),
        first_row=rows.start + 1,
        last_row=rows.stop,
        first_column=columns.start + 1,
        last_column=columns.stop,
    )


def _pieces(item: Item, block: Block, named: bool) -> Iterator[tuple[range, range]]:
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


def _named(item: Item, block: Block, rows: range, columns: range) -> str:
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


def _verification(view: View) -> Iterator[str]:
    rows = list(verified(view))
    if not rows:
        return
    yield _heading(view.say(VERIFICATION))
    lines = [" & ".join(text(view.say(word)) for word in (GRADIENT, WORST, VERDICT)) + r" \\ \hline"]
    lines += [rf"${as_latex(symbol)}$ & {worst} & {text(view.say(verdict))} \\" for symbol, worst, verdict in rows]
    body = "\n  ".join(lines)
    yield f"\\begin{{center}}\n\\begin{{tabular}}{{lrl}}\n  {body}\n\\end{{tabular}}\n\\end{{center}}"


def text(words: str) -> str:
    """Words as LaTeX text: specials escaped, signs of mathematics in maths mode."""
    return "".join(_MATHS.get(sign, sign) for sign in escaped(clean(words)))
