r"""Formulas: one reader of the LaTeX that ops and models write, a small tree, and two printers of it.

LaTeX is the shortest way to write a formula down, and what JSON gives. From the tree it is printed as text for a terminal
(`as_text`: Q Kᵀ / √d_k), and for pages as MathML (`as_mathml`), which browsers show without any script; `as_latex` makes it fit
for documents. A test lists every formula and finds each of them printable.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

_OPERATORS = {
    r"\cdot": "·", r"\times": "×", r"\odot": "⊙", r"\sum": "∑", "-": "−", "+": "+", "=": "=", r"\approx": "≈", "/": "/", ",": ",", ":": ":",
    ";": ";", "<": "<", ">": ">", "|": "|", "(": "(", ")": ")", "[": "[", "]": "]",
}  # fmt: skip
_LETTERS = {
    r"\eta": "η", r"\Delta": "Δ", r"\sigma": "σ", r"\partial": "∂", r"\infty": "∞", r"\top": "⊤", r"\pi": "π",
    r"\max": "max", r"\tanh": "tanh", r"\log": "log", r"\varepsilon": "ε", r"\mu": "μ", r"\theta": "θ", r"\tau": "τ", r"\gamma": "γ",
    r"\beta": "β", r"\sin": "sin", r"\ln": "ln", r"\cos": "cos", r"\Phi": "Φ", r"\ldots": "…",
}  # fmt: skip
_SPACES = {r"\,": "0.17em", r"\ ": "0.3em", r"\quad": "1em"}
_KNOWN = _OPERATORS.keys() | _LETTERS.keys() | _SPACES.keys()
#: What a line of text has where a page has something else.
_IN_TEXT = {r"\sum": "Σ", "-": "-", r"\top": "ᵀ", r"\ln": "ln ", r"\,": "", r"\ ": " ", r"\quad": " "}
#: Scripts of these stand under and over them.
_BIG = frozenset({r"\sum", r"\max"})
_FUNCTIONS = frozenset({r"\max", r"\tanh", r"\log", r"\sin", r"\cos", r"\ln"})
_WORDS = frozenset({r"\text", r"\operatorname", r"\mathrm", r"\mathbf"})
_MATRICES = ("bmatrix", "array")
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[A-Za-z]+|\d+(?:\.\d+)?|\s+|.", re.DOTALL)
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Sign(NamedTuple):
    r"""One token: a letter or word, a number, an operator, a space; `source` as LaTeX has it ("Q", "\cdot", "2.5")."""

    source: str


class Words(NamedTuple):
    r"""Letters in another type: \text{token}, \operatorname{concat}, \mathbf{1}."""

    command: str
    inside: str


class Row(NamedTuple):
    """Things side by side."""

    parts: tuple[Formula, ...]


class Fraction(NamedTuple):
    above: Formula
    below: Formula


class Root(NamedTuple):
    inside: Formula
    degree: Formula | None


class Scripts(NamedTuple):
    """A thing with what stands below ("_") and above it ("^"), in the order they are written."""

    base: Formula
    scripts: tuple[tuple[str, Formula], ...]


class Fenced(NamedTuple):
    r"""What stands between \left and \right, which grow with it."""

    left: str
    inside: Formula
    right: str


class Array(NamedTuple):
    """A matrix of formulas: in brackets ("bmatrix"), or bare (an "array")."""

    name: str
    rows: tuple[tuple[Formula, ...], ...]


Formula = Sign | Words | Row | Fraction | Root | Scripts | Fenced | Array


# The reader.


def read(source: str) -> Formula:
    """The tree of a formula written in LaTeX.

    Raises
    ------
    ValueError
        It is not whole, or has a command that is not known here.
    """
    reader = _Reader(source)
    row = reader.row()
    if reader.peek():
        raise ValueError(f"formula {source!r}: {reader.peek()} stands for nothing here")
    return row


class _Reader:
    """One pass over the tokens of a formula."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = _TOKEN.findall(source)
        self.place = 0

    def peek(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.place += 1
        return token

    def expect(self, token: str) -> None:
        if self.take() != token:
            raise ValueError(f"formula {self.source!r}: {token} is missing")

    def row(self, *ends: str) -> Row:
        """Everything up to one of `ends` (which is left there)."""
        parts: list[Formula] = []
        while self.peek() not in ("", "}", "&", r"\\", r"\end", r"\right", *ends):
            parts.append(self.scripted())
        return Row(tuple(parts))

    def scripted(self) -> Formula:
        """One thing with its sub- and superscript."""
        base = self.atom()
        scripts: list[tuple[str, Formula]] = []
        while self.peek() in ("_", "^"):
            sign = self.take()
            if sign in dict(scripts):  # {G_X}^{(Q)}^{\top}: LaTeX refuses it as well
                raise ValueError(f"formula {self.source!r}: two {sign} at one place")
            scripts.append((sign, self.argument()))
        return Scripts(base, tuple(scripts)) if scripts else base

    def argument(self) -> Formula:
        while self.peek().isspace():
            self.take()
        return self.atom()

    def atom(self) -> Formula:
        """A group, a command with its arguments, or a single sign."""
        token = self.take()
        if token == "{":
            inside = self.row()
            self.expect("}")
            return inside
        if token in (r"\frac", r"\tfrac"):
            return Fraction(self.argument(), self.argument())
        if token == r"\sqrt":
            return self.root()
        if token == r"\begin":
            return self.table()
        if token == r"\left":
            left = self.take()
            inside = self.row()
            self.expect(r"\right")
            return Fenced(left, inside, self.take())
        if token in _WORDS:
            return Words(token, self.raw())
        if token in ("", "}", "&") or (token[0] == "\\" and token not in _KNOWN):
            raise ValueError(f"formula {self.source!r}: {token or 'its end'} is not known here")
        return Sign(token)

    def root(self) -> Root:
        degree: Row | None = None
        if self.peek() == "[":
            self.take()
            degree = self.row("]")
            self.expect("]")
        return Root(self.argument(), degree)

    def raw(self) -> str:
        """The letters between braces."""
        self.expect("{")
        out = ""
        while self.peek() not in ("}", ""):
            out += self.take()
        self.expect("}")
        return out

    def table(self) -> Array:
        name = self.raw()
        if name == "array":
            self.raw()  # how its columns are aligned
        rows = [[self.row()]]
        while self.peek() in ("&", r"\\"):
            if self.take() == r"\\":
                rows.append([])
            rows[-1].append(self.row())
        self.expect(r"\end")
        if name not in _MATRICES or self.raw() != name:
            raise ValueError(f"formula {self.source!r}: {name} is not known here")
        return Array(name, tuple(map(tuple, rows)))


def put_in(form: str, operands: Sequence[str]) -> str:
    """A form with its operands, all LaTeX, in their places: #1, #2."""
    return re.sub(r"#(\d+)", lambda place: operands[int(place[1]) - 1], form)


# On a line of text.


@lru_cache(4096)
def as_text(source: str) -> str:
    r"""The formula on one line, in Unicode: \frac{Q K^{\top}}{\sqrt{d_k}} is Q Kᵀ / √d_k."""
    return re.sub(r"\s+", " ", _text(read(source))).strip()


def _text(formula: Formula) -> str:
    match formula:
        case Sign(source):
            return _IN_TEXT.get(source, _OPERATORS.get(source, _LETTERS.get(source, source)))
        case Words(_, inside):
            return inside
        case Row(parts):
            return "".join(map(_text, parts))
        case Fraction(above, below):
            return f"{_grouped(_text(above))} / {_grouped(_text(below))}"
        case Root(inside, degree):
            of = _text(inside)
            return f"{_text(degree) if degree else ''}√{of if _is_word(of) else f'({of})'}"
        case Scripts(base, scripts):
            return _text(base) + "".join(_script_text(sign, _text(script)) for sign, script in scripts)
        case Fenced(left, inside, right):
            return f"{left}{_text(inside)}{right}"
        case Array(_, rows):
            return f"[{';'.join(' '.join(map(_text, row)) for row in rows)}]"


def _grouped(text: str) -> str:
    return f"({text})" if re.search(r"[ +\-/]", text.strip()) and not _is_root(text) else text


def _is_root(text: str) -> bool:
    """Whether the whole text stands under one root."""
    return bool(re.fullmatch(r"√([\w.]+|\([^()]*\))", text))


def _script_text(sign: str, text: str) -> str:
    if sign == "_":
        return f"_{text}"
    if text in ("ᵀ", "2"):
        return {"ᵀ": "ᵀ", "2": "²"}[text]
    if re.fullmatch(r"-\d+", text):
        return text.translate(_RAISED)
    if text.startswith("(") and text.endswith(")"):
        return f" {text}"
    return f"^{text}" if _is_word(text) else f"^({text})"


def _is_word(text: str) -> bool:
    return bool(re.fullmatch(r"[\w.]+", text))


# In LaTeX.

#: A word that stands upright or is none already, a command, any other word.
_WORD = re.compile(r"(\\(?:text|mathrm|mathbf|begin|end)\{[^}]*\}|\\[A-Za-z]+)|([A-Za-z]{2,})")


@lru_cache(4096)
def as_latex(source: str) -> str:
    r"""The formula for a document, words of two letters and more upright: S_{masked} is S_{\mathrm{masked}}.

    GitHub shows no \operatorname; \mathrm is shown everywhere.
    """
    source = source.replace(r"\operatorname{", r"\mathrm{")
    return _WORD.sub(lambda found: found[1] or rf"\mathrm{{{found[2]}}}", source)


# In MathML.


def as_mathml(source: str, display: str = "") -> str:
    """The formula as a <math> element.

    Parameters
    ----------
    display : "block" for one on a line of its own, "large" for one within a line but with full-size fractions

    Raises
    ------
    ValueError
        A command that is not known here.
    """
    attribute = {"": "", "block": ' display="block"', "large": ' displaystyle="true"'}[display]
    return f"<math{attribute}>{_mathml(read(source))}</math>"


def _mathml(formula: Formula) -> str:
    match formula:
        case Sign(source):
            return _sign_mathml(source)
        case Words(command, inside):
            if command == r"\text":
                return f"<mtext>{_escaped(inside)}</mtext>"
            bold = ' class="bold"' if command == r"\mathbf" else ""
            return f'<mi mathvariant="normal"{bold}>{_escaped(inside)}</mi>'
        case Row(parts):
            shown = [part for part in parts if not _is_blank(part)]
            return _side_by_side([_mathml(part) + _gap(part, shown[i + 1 :]) for i, part in enumerate(shown)])
        case Fraction(above, below):
            return f"<mfrac>{_mathml(above)}{_mathml(below)}</mfrac>"
        case Root(inside, degree):
            of = _mathml(inside)
            return f"<msqrt>{of}</msqrt>" if degree is None else f"<mroot>{of}{_mathml(degree)}</mroot>"
        case Scripts(base, scripts):
            found = {sign: _mathml(script) for sign, script in scripts}
            places = ("under", "over") if isinstance(base, Sign) and base.source in _BIG else ("sub", "sup")
            tag = "m" + places[0] * ("_" in found) + places[1] * ("^" in found)
            return f"<{tag}>{_mathml(base)}{found.get('_', '')}{found.get('^', '')}</{tag}>"
        case Fenced(left, inside, right):
            return _fenced(left, _mathml(inside), right)
        case Array(name, rows):
            cells = "".join(f"<mtr>{''.join(f'<mtd>{_mathml(cell)}</mtd>' for cell in row)}</mtr>" for row in rows)
            return _fenced("[", f"<mtable>{cells}</mtable>", "]") if name == "bmatrix" else f"<mtable>{cells}</mtable>"


#: What html.escape does, without the table of all entities that comes with it: a run on a screen needs neither.
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})


def _escaped(text: str) -> str:
    return text.translate(_ESCAPES)


def _side_by_side(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"<mrow>{''.join(parts)}</mrow>"


def _fenced(left: str, inside: str, right: str) -> str:
    """Brackets around something high. Chromium makes them as high only if the font is one for mathematics, so the style
    draws those that it knows by the class of the row; the signs stay there to be read aloud and copied."""
    kind = {"[]": ' class="square"', "()": ' class="round"'}.get(left + right, "")
    return f"<mrow{kind}><mo>{_escaped(left)}</mo>{inside}<mo>{_escaped(right)}</mo></mrow>"


def _is_blank(formula: Formula) -> bool:
    return isinstance(formula, Sign) and formula.source.isspace()


def _gap(formula: Formula, following: Sequence[Formula]) -> str:
    """The space between a function's name and what it is taken of, unless that stands in brackets."""
    base = formula.base if isinstance(formula, Scripts) else formula
    if not (isinstance(base, Sign) and base.source in _FUNCTIONS) or not following:
        return ""
    return "" if isinstance(following[0], Fenced) or following[0] == Sign("(") else _space(r"\,")


def _sign_mathml(source: str) -> str:
    if source in _LETTERS:
        return f"<mi>{_LETTERS[source]}</mi>"
    if source in _SPACES:
        return _space(source)
    if source in _OPERATORS:
        return f"<mo>{_escaped(_OPERATORS[source])}</mo>"
    return f"<mn>{source}</mn>" if source[0].isdigit() else f"<mi>{_escaped(source)}</mi>"


def _space(command: str) -> str:
    return f'<mspace width="{_SPACES[command]}"></mspace>'
