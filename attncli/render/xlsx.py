"""A spreadsheet that lives: every number a formula over the cells it comes from, made of the same terms as everywhere.

No result is stored in it, so that every program works them out on opening. −∞ is written −10⁹: e to that is 0 as well.
Needs XlsxWriter (the extra `xlsx`).
"""

from __future__ import annotations

import io
import math
import re
from datetime import datetime
from typing import Any

import numpy as np

from attncli.core.message import InputError, LimitError, Localized, Message
from attncli.core.terms import Index, Term
from attncli.problems.question import changeable
from attncli.render.run import ending, parts
from attncli.render.text import clean
from attncli.render.view import Item, Panel, View
from attncli.render.view import view as view_of

#: What stands for −∞, and from where on a number means it.
HIDDEN = "-1E9"
_HIDDEN_BELOW = "-5E8"
#: What spreadsheet programs take: rows, columns, signs of a formula, arguments of a function.
_MOST_ROWS, _MOST_COLUMNS, _MOST_SIGNS, _MOST_ARGUMENTS = 1_000_000, 16_000, 8_000, 250
_FUNCTIONS = {
    "exp": "EXP", "ln": "LN", "root": "SQRT", "tanh": "TANH", "erf": "ERF", "sin": "SIN", "cos": "COS", "power": "POWER",
}  # fmt: skip
_FAINT = "#57606A"


def workbook(view: View) -> bytes:
    """The workbook: one sheet with the inputs, every step, and what to know about them.

    Raises
    ------
    InputError
        XlsxWriter is not installed, or the run is exact or rounded line by line, which a spreadsheet cannot be.
    LimitError
        More than spreadsheet programs take.
    """
    if view.run.trace.arithmetic != "floating":
        raise InputError("A spreadsheet calculates in full precision. Leave out --exact and --carry for .xlsx.")
    return Workbook(view).content()


class Workbook:
    """One run on one sheet: first the texts and where every number stands, then the numbers, whose formulas name these places."""

    def __init__(self, view: View) -> None:
        run = view.run
        if set(run.shown) != set(run.trace.numbers) - set(run.graph.inputs):  # formulas need what they come from
            run = run.changed(shown=tuple(step.id for step in run.trace.steps))
            view = view_of(run, view.language)
        self.view = view
        self.given = changeable(run)
        self.items = [item for _, items in parts(view) for item in items]
        #: By id and head, the row of a matrix's first number, counted from 0, and whether its rows stand as columns.
        self.places: dict[tuple[str, int | None], tuple[int, bool]] = {}
        self.file = io.BytesIO()
        self.book = _empty(self.file)
        self.sheet = self.book.add_worksheet(_sheet_name(run.problem.id or run.problem.model))
        self.sheet.set_column(0, 0, 14)
        self.sheet.set_column(1, 60, 10)
        self.styles = {name: self.book.add_format(how) for name, how in _STYLES.items()}
        self._lay_out()
        for item in self.items:
            self._numbers(item)
        self.book.close()

    def content(self) -> bytes:
        """The file."""
        return self.file.getvalue()

    def _lay_out(self) -> None:
        view = self.view
        row = self._write(0, view.title(), "title")
        asked = Localized(view.run.problem.prompt).text(view.language)
        row = self._write(row, asked, "text") if asked else row
        row = self._write(row, view.say(_LEGEND), "faint")
        number = 0
        for title, items in parts(view):
            row = self._write(row + 1, view.say(title), "part")
            for item in items:
                number += item.step is not None
                row = self._item(row, item, number)
        for message in ending(view):
            row = self._write(row, view.say(message), "text")

    def _write(self, row: int, text: str, how: str, column: int = 0) -> int:
        self.sheet.write_string(row, column, clean(text), self.styles[how])
        return row + 1

    def _item(self, row: int, item: Item, number: int) -> int:
        formula = f"{item.name} = {item.formula_text}" if item.formula else item.name
        row = self._write(row, f"{number}. {formula}" if item.step is not None else formula, "step")
        if item.why is not None:
            row = self._write(row, self.view.say(item.why), "faint")
        for block in item.panels:
            if block.title is not None:
                row = self._write(row, self.view.say(block.title), "faint")
            row = self._block(row, item, block)
        return row + 1

    def _block(self, row: int, item: Item, block: Panel) -> int:
        """The names of its columns and rows, and room for its numbers."""
        count, columns = block.values.shape
        if row + count + 2 > _MOST_ROWS or columns + 1 > _MOST_COLUMNS:
            raise LimitError(
                "{name} is {shape}: more rows or columns than spreadsheet programs take. Use .csv or .npz.",
                name=item.id,
                shape=item.shape,
            )
        if any(block.columns):
            for j, name in enumerate(block.columns):
                self._write(row, name, "name", j + 1)
            row += 1
        for i, name in enumerate(block.rows):
            if name:
                self._write(row + i, name, "name")
        self.places[item.id, block.head] = row, block.as_columns and block.ndim > 1
        return int(row + count)

    def _numbers(self, item: Item) -> None:
        values = self.view.run.trace.numbers[item.id]
        shown = _format(item.decimals, hidden=bool(np.isneginf(values).any()))
        fixed, given = (self.book.add_format({"num_format": shown, **how}) for how in ({}, _GIVEN))
        terms = None if item.step is None else item.step.terms(self.view.run.trace.numbers)
        for index, value in np.ndenumerate(values):
            at = self.place(item.id, index)
            formula = None if terms is None else self.formula(item.id, terms[index])
            if formula is not None or math.isnan(value):
                self.sheet.write_formula(*at, formula or "=NA()", fixed, "")
            elif math.isinf(value):
                self.sheet.write_number(*at, math.copysign(1e9, value), fixed)
            else:
                self.sheet.write_number(*at, value, given if item.id in self.given else fixed)
        for block in item.panels if item.weights else ():
            row, _ = self.places[item.id, block.head]
            count, columns = block.values.shape
            self.sheet.conditional_format(row, 1, row + count - 1, columns, _SHADES)

    def place(self, step_id: str, index: Index) -> tuple[int, int]:
        """Row and column of a number, counted from 0."""
        row, as_columns = self.places[step_id, index[0] + 1 if len(index) == 3 else None]
        i, j = (0, *index)[-2:]
        return (row + j, 1 + i) if as_columns else (row + i, 1 + j)

    def address(self, step_id: str, index: Index) -> str:
        """Where a number stands: "C7"."""
        from xlsxwriter.utility import xl_rowcol_to_cell

        return str(xl_rowcol_to_cell(*self.place(step_id, index)))

    def formula(self, step_id: str, term: Term) -> str | None:
        """The formula of a number of a step, or None where no number stands behind it."""
        if term.kind == "text":
            return None
        text = self.written(term)
        text = f"={text[1:-1] if term.kind in _BRACKETED and text.startswith('(') else text}"
        if len(text) > _MOST_SIGNS:
            raise LimitError(
                "{name}: the formula of one cell is longer than spreadsheet programs take. Use .csv or .npz.",
                name=step_id,
            )
        return text

    def written(self, term: Term) -> str:
        """A term in the language of spreadsheets."""
        return term.fold(self.address, _constant, self._written_over, str)

    def _written_over(self, term: Term, written: list[str]) -> str:
        inner = term.terms
        match term.kind:
            case "sum":
                return f"({'+'.join(written)})" if written else "0"
            case "product":
                return "*".join(written)
            case "quotient":
                divisor = f"({written[1]})" if inner[1].kind == "product" else written[1]
                return f"({written[0]}/{divisor})"
            case "negative":
                return f"(-{written[0]})"
            case "positive":
                return f"IF({written[0]}>0,1,0)"
            case "max":
                return _largest(written)
            case "difference":
                a, b = written
                if self._may_be_hidden(inner[0]) and self._may_be_hidden(inner[1]):
                    return f"IF(AND({a}<{_HIDDEN_BELOW},{b}<{_HIDDEN_BELOW}),{HIDDEN},{a}-{b})"
                return f"({a}-{b})"
        return f"{_FUNCTIONS[term.kind]}({','.join(written)})"

    def _may_be_hidden(self, term: Term) -> bool:
        return any(np.isneginf(self.view.run.trace.numbers[step_id]).any() for step_id, _ in term.cells())


#: Kinds of terms that are written in brackets, which a whole formula does without.
_BRACKETED = frozenset({"sum", "difference", "quotient", "negative"})
_LEGEND = Message(
    "Numbers on yellow can be changed; everything else is a formula and follows. −∞ is written as -1,000,000,000."
)
_GIVEN = {"font_color": "#0550AE", "bg_color": "#FFF8DC"}
#: Attention weights, the darker the nearer to 1.
_SHADES = {
    "type": "2_color_scale", "min_color": "#FFFFFF", "max_color": "#7FB0F5", "min_type": "num", "min_value": 0, "max_type": "num",
    "max_value": 1,
}  # fmt: skip
_STYLES: dict[str, dict[str, Any]] = {
    "title": {"bold": True, "font_size": 15},
    "part": {"bold": True, "font_size": 13, "bottom": 1},
    "step": {"bold": True},
    "text": {},
    "faint": {"font_color": _FAINT},
    "name": {"font_color": _FAINT, "align": "right"},
}


def _format(decimals: int, *, hidden: bool) -> str:
    """How a number is shown: its decimals; in a matrix with hidden scores also what stands for −∞, as −∞.

    The minus of other numbers is written out: with conditions LibreOffice leaves it to the format.
    """
    plain = "0." + "0" * decimals if decimals else "0"
    return f'[<-500000000]"−∞";[<0]-{plain};{plain}' if hidden else plain


def _constant(value: float) -> str:
    if math.isinf(value):
        return f"({HIDDEN})" if value < 0 else HIDDEN.removeprefix("-")
    text = repr(value).upper()
    return f"({text})" if value < 0 else text


def _largest(parts: list[str]) -> str:
    """MAX, nested where there are more numbers than it takes at once."""
    while len(parts) > _MOST_ARGUMENTS:
        groups = [parts[i : i + _MOST_ARGUMENTS] for i in range(0, len(parts), _MOST_ARGUMENTS)]
        parts = [f"MAX({','.join(group)})" for group in groups]
    return f"MAX({','.join(parts)})"


def _empty(file: io.BytesIO) -> Any:
    """A workbook of XlsxWriter, which has no types."""
    try:
        import xlsxwriter
    except ImportError:
        raise InputError(
            "A spreadsheet needs XlsxWriter, which is not installed. Install it with: pip install 'attncli[xlsx]'"
        ) from None
    book = xlsxwriter.Workbook(file, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False})
    book.set_properties({"created": datetime(2000, 1, 1), "comments": "attncli"})  # the same run, the same bytes
    return book


def _sheet_name(text: str) -> str:
    """A name that a sheet may have."""
    return re.sub(r"[\[\]:*?/\\']", " ", clean(text)).strip()[:31] or "attncli"
