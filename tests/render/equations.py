"""Printed equations read back and worked out again, by nothing of attncli: digits and signs in, true or false out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from mpmath import mp, mpf

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?|∞|NaN)|(?P<name>ln|exp|tanh|erf|sin|cos|max|e)|(?P<sign>[-−+×/^√(),\[\]>]))"
)


class Equation(NamedTuple):
    """name = left = right, or with ≈ in the place of the last =."""

    name: str
    left: str
    sign: str
    right: str


class Sum:
    """A printed sum or product, as one reads it: ^ and √ first, then × and /, then + and −."""

    def __init__(self, text: str) -> None:
        self.tokens = [
            (found.lastgroup, found.group().strip()) for found in _TOKEN.finditer(text) if found.lastgroup is not None
        ]
        assert "".join(token for _, token in self.tokens) == re.sub(r"\s", "", text), text
        self.places = max((len(found) for found in re.findall(r"\.(\d+)", text)), default=0)
        self.at = 0

    def value(self) -> mpf:
        out = self.sum()
        assert self.at == len(self.tokens), self.tokens[self.at :]
        return out

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        token = self.peek()
        assert not wanted or token in wanted, (token, wanted)
        self.at += 1
        return token

    def sum(self) -> mpf:
        out = self.product()
        while self.peek() in ("+", "-", "−") and self.peek():
            out = out + self.product() if self.take() == "+" else out - self.product()
        return out

    def product(self) -> mpf:
        out = self.signed()
        while self.peek() in ("×", "/") and self.peek():
            if self.take() == "×":
                out = out * self.signed()
            else:
                below = self.signed()
                out = out / below if below else (mp.nan if not out else mp.sign(out) * mp.inf)
        return out

    def signed(self) -> mpf:
        if self.peek() in ("-", "−"):
            self.take()
            return -self.signed()
        return self.power()

    def power(self) -> mpf:
        base = self.one()
        if self.peek() != "^":
            return base
        self.take()
        if self.peek() in ("-", "−"):
            self.take()
            return base ** -self.power()
        return base ** self.power()

    def one(self) -> mpf:
        kind, token = self.tokens[self.at]
        self.take()
        if kind == "number":
            return {"∞": mp.inf, "NaN": mp.nan}.get(token) or mpf(token)
        if token == "e":
            return mp.e
        if token == "√":
            return mp.sqrt(self.one())
        if token == "(":
            out = self.sum()
            self.take(")")
            return out
        if token == "[":  # [x > 0]: 1 where it is so
            out = self.sum()
            self.take(">")
            self.take("0")
            self.take("]")
            return mpf(out > 0)
        self.take("(")
        parts = [self.sum()]
        while self.peek() == ",":
            self.take()
            parts.append(self.sum())
        self.take(")")
        if token == "max":
            return max(parts)
        function = {"ln": mp.log, "tanh": mp.tanh, "erf": mp.erf, "sin": mp.sin, "cos": mp.cos}[token]
        return function(*parts)


def is_true(equation: Equation, least: int = 0) -> bool:
    """Whether what stands on the left, worked out with the printed digits, rounds to what stands on the right.

    A whole number on the right without decimals is one: 0.667×3 = 2 is false, it is 2.001.
    """
    with mp.workdps(80):
        sum = Sum(equation.left)
        left, right = sum.value(), Sum(equation.right).value()
        if mp.isnan(left) or mp.isnan(right):
            return bool(mp.isnan(left) and mp.isnan(right))
        if mp.isinf(left) or mp.isinf(right):
            return bool(left == right)
        found = re.fullmatch(r"-?\d+(?:\.(\d*))?(?:e([+-]?\d+))?", equation.right)
        assert found is not None, equation
        places = len(found[1] or "") - int(found[2] or 0)
        if found[1] is None:
            places = max(sum.places, least)
        unit = mpf(10) ** -places
        rounded = (
            mp.sign(left) * mp.floor(abs(left) / unit + mpf("0.5") + mpf(10) ** -40) * unit
        )  # a 5 goes up, as at school
        return bool(abs(rounded - right) < unit / 1000)


def is_arithmetic(text: str) -> bool:
    """Whether numbers are put in: neither a cell taken over as it is (U[1,2]) nor a token."""
    return re.sub(_TOKEN, "", text).strip() == "" and bool(re.search(r"\d|∞|NaN", text))


_NAME = r"[^\s=≈│├└─][^=≈│├└─]*\[\d+(?:,\d+)*\]"


def in_text(text: str) -> Iterator[Equation]:
    """The equations of a screen: S[1,2] = 1×0 + 2×1 = 2. One that ends in ? is a question."""
    for line in text.splitlines():
        found = re.fullmatch(rf"[\s│├└─-]*({_NAME}) = (.+) (=|≈) ([^=≈]+)", line)
        if found and is_arithmetic(found[2]) and found[4].strip() != "?":
            yield Equation(found[1], found[2], found[3], found[4].strip())


def as_text(latex: str) -> str:
    """The formula of a cell in LaTeX as one line of text."""
    latex = re.sub(r"\\left|\\right", "", latex)
    for command, sign in (
        (r"\times", "×"),
        (r"\infty", "∞"),
        (r"\approx", "≈"),
        (r"\mathrm{erf}", "erf"),
        (r"\text{NaN}", "NaN"),
    ):
        latex = latex.replace(command, sign)
    latex = re.sub(r"\\(max|tanh|sin|cos|ln)", r"\1", latex)
    return _without_commands(latex).replace("{", "(").replace("}", ")")


def _without_commands(latex: str) -> str:
    r"""Every \frac{…}{…} as ((…) / (…)) and every \sqrt{…} as √(…), however deep one stands in another."""
    found = re.search(r"\\(frac|sqrt)(?=\{)", latex)
    if found is None:
        return latex
    first, end = _group(latex, found.end())
    if found[1] == "sqrt":
        return f"{latex[: found.start()]}√({_without_commands(first)}){_without_commands(latex[end:])}"
    second, end = _group(latex, end)
    fraction = f"(({_without_commands(first)}) / ({_without_commands(second)}))"
    return f"{latex[: found.start()]}{fraction}{_without_commands(latex[end:])}"


def _group(latex: str, start: int) -> tuple[str, int]:
    """What stands in the braces that open at start, and where it goes on after them."""
    depth = 0
    for place in range(start, len(latex)):
        depth += {"{": 1, "}": -1}.get(latex[place], 0)
        if depth == 0:
            return latex[start + 1 : place], place + 1
    raise AssertionError(f"a brace that is never closed: {latex[start:]}")


def in_latex(text: str) -> Iterator[Equation]:
    r"""The equations of cells: $(S_{\mathrm{scaled}})_{1,2} = \frac{2}{\sqrt{2}} = 1.414$."""
    for name, left, sign, right in re.findall(r"\$([^$=]*_\{\d+(?:,\d+)*\}) = ([^$]+) (=|\\approx) ([^$=]+?)\$", text):
        if is_arithmetic(as_text(left)):
            yield Equation(name, as_text(left), {"=": "="}.get(sign, "≈"), as_text(right))
