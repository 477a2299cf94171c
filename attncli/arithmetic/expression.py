"""A number as written: -0.5, 1/3, √2/2, e^-1, -∞. Read by this grammar and nothing else, and evaluated in any arithmetic; never as code.

sum     = product (("+" | "-") product)*
product = signed (("*" | "/") signed | √…)*
signed  = ("+" | "-") signed | power
power   = atom ("^" signed)?
atom    = number | "inf" | "∞" | "e" | "(" sum ")" | "√" atom | ("sqrt" | "exp") "(" sum ")"
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from attncli.core.matrix import EXACT, Expression, Matrix
from attncli.core.message import InputError, Message
from attncli.core.record import Record

#: Signs a single entry may have; longer ones are not numbers that a person writes.
MOST_TOKENS = 100
#: Characters of one entry: enough for every digit of any float64.
MOST_CHARACTERS = 1100

#: Signs of a page, of LaTeX and of Chinese input methods, and those of a keyboard that mean the same.
KEYBOARD = str.maketrans(
    {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
    | dict.fromkeys("−–—", "-") | dict.fromkeys("×·⋅∗", "*") | dict.fromkeys("\ufeff\u00a0　", " ")
    | {"、": ",", "÷": "/", "【": "[", "】": "]"}
)  # fmt: skip

#: A number without its sign.
NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_TOKEN = rf"\s*(?:{NUMBER}|[A-Za-z]+|[∞√]|[-+*/^()])"
_PLAIN = re.compile(r"[-+]?(?:[0-9]+(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([-+]?[0-9]{1,4}))?\Z")

#: What each kind of expression does with its parts, in one arithmetic: {"num": float, "+": operator.add, …}.
Operations: TypeAlias = Mapping[str, Callable[..., Any]]


def evaluate(entry: Expression, operations: Operations) -> Any:
    """An expression in the arithmetic of these operations."""
    kind, *parts = entry
    return operations[str(kind)](*(evaluate(part, operations) if isinstance(part, tuple) else part for part in parts))


FLOATS: Operations = {
    "num": float,
    "inf": lambda: math.inf,
    "e": lambda: math.e,
    "pi": lambda: math.pi,
    "neg": operator.neg,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "^": operator.pow,
    "sqrt": math.sqrt,
    "exp": math.exp,
}


def written(entry: Expression) -> Matrix:
    """A number without axes that is an expression, so that exact arithmetic stays exact."""
    return Matrix(np.asarray(evaluate(entry, FLOATS)), None, (entry,))


ALLOWED = Message("Write numbers like -0.5, 1/3, √2, e^-1 or -inf.")


class EntryError(InputError):
    """This is not a number."""


def parse_entry(text: str) -> tuple[float, int, Expression]:
    """The value, the decimals it was written with (`EXACT` for an expression), and the expression.

    Raises
    ------
    EntryError
        Says what is wrong with it and what to write.
    """
    if len(text) > MOST_CHARACTERS:
        raise EntryError(
            "“{text}” is too long for one number ({count} characters; the limit is {limit}). Write it shorter, like 0.333.",
            text=shown(text),
            count=len(text),
            limit=MOST_CHARACTERS,
        )
    plain = _PLAIN.match(text)
    if plain is not None:
        value = float(text)
        if math.isinf(value):
            raise _too_large(text)
        places = len(plain[1] or plain[2] or "") - int(plain[3] or 0)
        return value, max(places, 0), ("num", text)
    parser = _Parser(text)
    entry = parser.sum()
    parser.expect_end()
    value = _value(entry, text)
    if math.isnan(value):
        raise EntryError("“{text}” is not a number: it has no value. Write −∞ as -inf.", text=shown(text))
    return value, EXACT, entry


def entries_in(piece: str) -> list[str]:
    """The entries in a run of text without commas: cut at spaces, but not inside brackets or around an operator."""
    parts = piece.split()
    if not any(sign in piece for sign in "+-*/^()√"):
        return parts
    words: list[str] = []
    together: list[str] = []
    depth = 0
    for part in parts:
        if together and depth == 0 and not _goes_on(together, part):
            words.append("".join(together))
            together = []
        if together and _is_part_of_number(together[-1][-1], ".)∞") and _is_part_of_number(part[0], ".(∞√"):
            together.append(" ")  # (1 2) is not (12)
        together.append(part)
        depth = max(depth + part.count("(") - part.count(")"), 0)
    return [*words, "".join(together)] if together else words


def _is_part_of_number(sign: str, others: str) -> bool:
    return sign in others or (sign.isascii() and sign.isalnum())


def _goes_on(together: list[str], part: str) -> bool:
    """Whether an entry continues after a space: 1 / 3 and 1 - 2 do, 1 -2 does not."""
    before = together[-1]
    if before[-1] in "+-*/^√":
        return len(together) > 1 or len(before) > 1 or before in "-+√"
    return part[0] in "*/^" or part in ("+", "-")


def shown(text: str) -> str:
    """A piece of input for a message: short, and without control characters."""
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text.strip())
    return clean if len(clean) <= 40 else clean[:37] + "…"


def _too_large(text: str) -> EntryError:
    return EntryError(
        "“{text}” is too large: numbers here go up to about 1.8e308. Write inf or -inf if you mean infinity.",
        text=shown(text),
    )


class Token(Record):
    """A piece of a text, from `start` to `end`."""

    text: str
    start: int
    end: int


class TokenReader:
    """The tokens of a text, one after another.

    Parameters
    ----------
    pattern : what a token is, white space before it included

    Attributes
    ----------
    rest : how far the text could be cut into tokens
    """

    def __init__(self, text: str, pattern: str) -> None:
        self.text = text
        self.tokens: list[Token] = []
        self.next = self.rest = 0
        token = re.compile(pattern)  # kept by re; made only when it is needed
        while found := token.match(text, self.rest):
            piece = found.group().lstrip()
            self.tokens.append(Token(piece, found.end() - len(piece), found.end()))
            self.rest = found.end()

    def peek(self, ahead: int = 0) -> str:
        place = self.next + ahead
        return self.tokens[place].text if 0 <= place < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.next += 1
        return token


class _Parser(TokenReader):
    """Recursive descent over the tokens of one entry."""

    def __init__(self, text: str) -> None:
        super().__init__(text.rstrip(), _TOKEN)
        if len(self.tokens) > MOST_TOKENS:
            raise EntryError(
                "“{text}” is too long for one number (more than {limit} signs). Write its value instead.",
                text=shown(text),
                limit=MOST_TOKENS,
            )
        if self.rest < len(self.text):
            raise EntryError(
                "“{text}” is not a number: “{sign}” does not belong in one. {allowed}",
                text=shown(text),
                sign=shown(self.text[self.rest :].lstrip()[:1]),
                allowed=ALLOWED,
            )

    def expect_end(self) -> None:
        if self.peek():
            raise self._unexpected()

    def _unexpected(self) -> EntryError:
        token = self.peek()
        if not token:
            return EntryError(
                "“{text}” stops in the middle of a number. {allowed}", text=shown(self.text), allowed=ALLOWED
            )
        return EntryError(
            "“{text}” is not a number: “{sign}” does not belong there. {allowed}",
            text=shown(self.text),
            sign=shown(token),
            allowed=ALLOWED,
        )

    def sum(self) -> Expression:
        left = self.product()
        while self.peek() in ("+", "-"):
            left = (self.take(), left, self.product())
        return left

    def product(self) -> Expression:
        left = self.signed()
        while True:
            if self.peek() in ("*", "/"):
                left = (self.take(), left, self.signed())
            elif self._stands_next_to_number():
                left = ("*", left, self._next_to_number())  # 2√2, 3e^-1, (1/2)√2
            else:
                return left

    def _stands_next_to_number(self) -> bool:
        """Whether a root or a power of e follows a number, or a root what stands in brackets: a factor without a sign."""
        before = self.peek(-1)
        if self.peek() in ("√", "sqrt"):
            return before[-1:].isdigit() or before == ")"
        return self.peek() in ("exp", "e") and before[-1:].isdigit()

    def _next_to_number(self) -> Expression:
        """A factor without a sign before it. 1e alone is refused: it is as likely the start of 1e3."""
        if self.peek() == "e" and self.peek(1) != "^":
            number = self.peek(-1)
            raise EntryError(
                "“{text}” may be a number without its exponent, or {number} times e. Write {number}e3 or {number}*e.",
                text=shown(self.text),
                number=shown(number),
            )
        return self.power()

    def signed(self) -> Expression:
        if self.peek() == "-":
            self.take()
            return ("neg", self.signed())
        if self.peek() == "+":
            self.take()
            return self.signed()
        return self.power()

    def power(self) -> Expression:
        base = self.atom()
        if self.peek() == "^":
            self.take()
            return ("^", base, self.signed())
        return base

    def atom(self) -> Expression:
        token = self.take()
        if token and (token[0].isdigit() or token[0] == "."):
            return ("num", token)
        if token in ("∞", "inf", "Inf", "INF", "infinity", "Infinity"):
            return ("inf",)
        if token == "e":
            return ("e",)
        if token == "√":
            return ("sqrt", self.atom())
        if token == "(":
            inside = self.sum()
            self._close()
            return inside
        if token in ("sqrt", "exp"):
            if self.take() != "(":
                self.next -= 1
                raise EntryError(
                    "“{text}”: write {name} with brackets, like {name}(2).", text=shown(self.text), name=token
                )
            inside = self.sum()
            self._close()
            return (token, inside)
        self.next -= 1
        if token.casefold() == "nan":
            raise EntryError("NaN is not a number to calculate with. Write a number there.")
        raise self._unexpected()

    def _close(self) -> None:
        if not self.peek():
            raise EntryError("“{text}”: a bracket “(” is not closed. Write “)” where it ends.", text=shown(self.text))
        if self.take() != ")":
            self.next -= 1
            raise self._unexpected()


def _value(entry: Expression, text: str) -> float:
    """The float64 value of an expression."""
    try:
        value: float = evaluate(entry, _CHECKED)
    except ZeroDivisionError:
        raise EntryError(
            "“{text}” divides by zero. Write inf or -inf if you mean infinity.", text=shown(text)
        ) from None
    except OverflowError:
        raise _too_large(text) from None
    except ValueError:
        raise EntryError(
            "“{text}” takes the square root of a negative number, which is not real.", text=shown(text)
        ) from None
    except TypeError:
        raise EntryError("“{text}” is not a real number.", text=shown(text)) from None
    return value


def _checked(function: Callable[..., Any]) -> Callable[..., float]:
    """The same, but what is no real number is a TypeError, and what has grown infinite an OverflowError."""

    def checked(*parts: Any) -> float:
        result = float(function(*parts))
        if math.isinf(result) and not any(isinstance(part, float) and math.isinf(part) for part in parts):
            raise OverflowError
        return result

    return checked


_CHECKED = {kind: function if kind == "inf" else _checked(function) for kind, function in FLOATS.items()}


#: How tightly each kind of expression holds together; a part of a looser kind needs brackets.
_TIGHT = {"+": 1, "-": 1, "*": 2, "/": 2, "neg": 3, "^": 4}


def entry_text(entry: Expression) -> str:
    """An expression as it was written: 1.50, 1/3, √2/2, e^-1."""
    return _text(entry, 0)


def _text(entry: Expression, needed: int) -> str:
    kind = str(entry[0])
    parts = [part for part in entry[1:] if isinstance(part, tuple)]
    match kind:
        case "num":
            return str(entry[1])
        case "inf":
            return "∞"
        case "e":
            return "e"
        case "sqrt":
            return f"√{_text(parts[0], 5)}"
        case "exp":
            return f"exp({_text(parts[0], 0)})"
        case "neg":
            text = "−∞" if parts[0] == ("inf",) else f"-{_text(parts[0], 3)}"
        case "^":
            text = f"{_text(parts[0], 5)}^{_text(parts[1], 3)}"
        case "*" if parts[0][0] == "num" and parts[1][0] == "sqrt":
            text = f"{_text(parts[0], 2)}{_text(parts[1], 3)}"
        case _:
            own = _TIGHT[kind]
            gap = " " if own == 1 else ""
            text = f"{_text(parts[0], own)}{gap}{kind}{gap}{_text(parts[1], own + 1)}"
    return f"({text})" if _TIGHT[kind] < needed else text


# --- Guaranteed bounds of a written number ----------------------------------------------------------------------------

#: lo ≤ value ≤ hi
Bounds: TypeAlias = tuple[float, float]

_LINE = (-math.inf, math.inf)
#: Float64 neighbours that a result of exp or a power is moved by; C libraries are within one or two.
_ULPS = 4


def entry_bounds(entry: Expression) -> Bounds:
    """Bounds of the exact value of an expression."""
    bounds: Bounds = evaluate(entry, _BOUNDS)
    return bounds


def _number(text: str) -> Bounds:
    value = float(text)
    # Decimal compares numbers with large exponents without writing them out.
    return (value, value) if Decimal(value) == Decimal(text) else _out(value, value)


def _hull(candidates: Iterable[float]) -> Bounds:
    values = list(candidates)
    return _LINE if any(math.isnan(value) for value in values) else (min(values), max(values))


def _out(lo: float, hi: float, times: int = 1) -> Bounds:
    """Bounds moved outwards by so many float64 numbers; an undefined end is no bound."""
    for _ in range(times):
        lo, hi = math.nextafter(lo, -math.inf), math.nextafter(hi, math.inf)
    return (-math.inf if math.isnan(lo) else lo), (math.inf if math.isnan(hi) else hi)


def _or_infinity(function: Callable[..., float], *parts: float) -> float:
    try:
        return function(*parts)
    except OverflowError:
        return math.inf


def _power(base: Bounds, exponent: Bounds) -> Bounds:
    """Bounds of a power, from its corners: with a positive base, exponent · log(base) is largest and smallest there."""
    if base[0] <= 0:
        return _whole_power(base, exponent)
    lo, hi = _out(*_hull(_or_infinity(math.pow, x, y) for x, y in product(base, exponent)), _ULPS)
    return max(lo, 0.0), hi


def _whole_power(base: Bounds, exponent: Bounds) -> Bounds:
    """Bounds of a power of a number that may be negative; only whole exponents are known to be real."""
    if exponent[0] != exponent[1] or not exponent[0].is_integer():
        return (0.0, 0.0) if base == (0.0, 0.0) and exponent[0] > 0 else _LINE
    power = exponent[0]
    if power == 0:
        return 1.0, 1.0
    if base[1] >= 0 and power < 0:
        return _LINE
    size = (
        _or_infinity(math.pow, max(-base[0], base[1]), power),
        _or_infinity(math.pow, min(-base[0], abs(base[1])), power),
    )
    lo, hi = _out(min(size), max(size), _ULPS)
    lo = max(lo, 0.0)
    if base[1] >= 0:
        return (-hi if power % 2 else 0.0), hi
    return (-hi, -lo) if power % 2 else (lo, hi)


_BOUNDS: Operations = {
    "num": _number,
    "inf": lambda: (math.inf, math.inf),
    "e": lambda: _out(math.e, math.e),
    "pi": lambda: _out(math.pi, math.pi),
    "neg": lambda a: (-a[1], -a[0]),
    "+": lambda a, b: _out(a[0] + b[0], a[1] + b[1]),
    "-": lambda a, b: _out(a[0] - b[1], a[1] - b[0]),
    "*": lambda a, b: _out(*_hull(x * y for x, y in product(a, b))),
    "/": lambda a, b: _LINE if b[0] <= 0 <= b[1] else _out(*_hull(x / y for x, y in product(a, b))),
    "sqrt": lambda a: _LINE if a[0] < 0 else _out(math.sqrt(a[0]), math.sqrt(a[1])),
    "exp": lambda a: _out(_or_infinity(math.exp, a[0]), _or_infinity(math.exp, a[1]), _ULPS),
    "^": _power,
}
