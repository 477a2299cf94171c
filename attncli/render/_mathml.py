r"""LaTeX formulas as MathML, which browsers show without any script: \frac{U}{z} as a fraction.

Only the commands that ops, models and exact numbers use; a test lists every formula and finds none left over.
"""

from __future__ import annotations

import html
import re

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
#: Scripts of these stand under and over them.
_BIG = frozenset({r"\sum", r"\max"})
_FUNCTIONS = frozenset({r"\max", r"\tanh", r"\log", r"\sin", r"\cos", r"\ln"})
_WORDS = frozenset({r"\text", r"\operatorname", r"\mathrm", r"\mathbf"})
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[A-Za-z]+|\d+(?:\.\d+)?|\s+|.", re.DOTALL)


def mathml(latex: str, display: str = "") -> str:
    """The formula as a <math> element.

    Parameters
    ----------
    display : "block" for one on a line of its own, "large" for one within a line but with full-size fractions

    Raises
    ------
    ValueError
        A command that has no MathML here.
    """
    attribute = {"": "", "block": ' display="block"', "large": ' displaystyle="true"'}[display]
    return f"<math{attribute}>{_Reader(latex).row()}</math>"


class _Reader:
    """One pass over the tokens of a formula."""

    def __init__(self, latex: str) -> None:
        self.latex = latex
        self.tokens = [(found.group(), found.start()) for found in _TOKEN.finditer(latex)]
        self.place = 0

    def peek(self) -> str:
        return self.tokens[self.place][0] if self.place < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.place += 1
        return token

    def row(self, *ends: str) -> str:
        """Everything up to one of `ends` (which is left there) as one element."""
        parts: list[str] = []
        while self.peek() and self.peek() not in ends:
            if self.peek().isspace():
                self.take()
            else:
                parts.append(self.scripted())
        return parts[0] if len(parts) == 1 else f"<mrow>{''.join(parts)}</mrow>"

    def scripted(self) -> str:
        """One thing with its sub- and superscript."""
        big, function = self.peek() in _BIG, self.peek() in _FUNCTIONS
        base = self.one()
        scripts: dict[str, str] = {}
        while self.peek() in ("_", "^"):
            sign = self.take()
            if sign in scripts:  # {G_X}^{(Q)}^{\top}: LaTeX refuses it as well
                raise ValueError(f"formula {self.latex!r}: two {sign} at one place")
            scripts[sign] = self.argument()
        if not scripts:
            return base + (self.gap() if function else "")
        below, above = ("under", "over") if big else ("sub", "sup")
        tag = "m" + below * ("_" in scripts) + above * ("^" in scripts)
        return f"<{tag}>{base}{scripts.get('_', '')}{scripts.get('^', '')}</{tag}>" + (self.gap() if function else "")

    def gap(self) -> str:
        """The space between a function's name and what it is taken of, unless that stands in brackets."""
        while self.peek().isspace():
            self.take()
        return "" if self.peek() in ("", "(", r"\left", "}") else _space(r"\,")

    def argument(self) -> str:
        while self.peek().isspace():
            self.take()
        return self.one()

    def one(self) -> str:
        """A group, a command with its arguments, or a single sign."""
        token = self.take()
        if token == "{":
            inside = self.row("}")
            self.expect("}")
            return inside
        if token in (r"\frac", r"\tfrac"):
            return f"<mfrac>{self.argument()}{self.argument()}</mfrac>"
        if token == r"\sqrt":
            return self.root()
        if token == r"\begin":
            return self.matrix()
        if token in (r"\left", r"\right"):
            return _operator(self.take())
        if token in _WORDS:
            return self.words(token)
        return self.sign(token)

    def sign(self, token: str) -> str:
        if token in ("", "}", "&") or (token[0] == "\\" and token not in _KNOWN):
            raise ValueError(f"formula {self.latex!r}: {token or 'its end'} has no MathML")
        if token in _LETTERS:
            return f"<mi>{_LETTERS[token]}</mi>"
        if token in _SPACES:
            return _space(token)
        if token in _OPERATORS:
            return _operator(token)
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        return f"<mi>{html.escape(token)}</mi>"

    def expect(self, token: str) -> None:
        if self.take() != token:
            raise ValueError(f"formula {self.latex!r}: {token} is missing")

    def root(self) -> str:
        if self.peek() != "[":
            return f"<msqrt>{self.argument()}</msqrt>"
        self.take()
        degree = self.row("]")
        self.expect("]")
        return f"<mroot>{self.argument()}{degree}</mroot>"

    def words(self, command: str) -> str:
        inside = html.escape(self.raw())
        if command == r"\text":
            return f"<mtext>{inside}</mtext>"
        bold = ' class="bold"' if command == r"\mathbf" else ""
        return f'<mi mathvariant="normal"{bold}>{inside}</mi>'

    def raw(self) -> str:
        """The letters between braces."""
        self.expect("{")
        out = ""
        while self.peek() not in ("}", ""):
            out += self.take()
        self.expect("}")
        return out

    def matrix(self) -> str:
        name = self.raw()
        if name == "array":
            self.raw()  # how its columns are aligned
        rows, row = [], [self.row("&", r"\\", r"\end")]
        while self.peek() in ("&", r"\\"):
            if self.take() == r"\\":
                rows.append(row)
                row = []
            row.append(self.row("&", r"\\", r"\end"))
        rows.append(row)
        self.expect(r"\end")
        if name not in ("bmatrix", "array") or self.raw() != name:
            raise ValueError(f"formula {self.latex!r}: {name} has no MathML")
        cells = "".join(f"<mtr>{''.join(f'<mtd>{cell}</mtd>' for cell in row)}</mtr>" for row in rows)
        table = f"<mtable>{cells}</mtable>"
        return f"<mrow><mo>[</mo>{table}<mo>]</mo></mrow>" if name == "bmatrix" else table


def _space(command: str) -> str:
    return f'<mspace width="{_SPACES[command]}"></mspace>'


def _operator(sign: str) -> str:
    return f"<mo>{html.escape(_OPERATORS[sign])}</mo>"
