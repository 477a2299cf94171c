r"""The text of a loss, read: 0.5*mse(O, T) + 0.01*sum(W_Q^2), -ln A[1,2], ½Σ(O−T)². Never evaluated as code.

sum     = term (("+" | "-") term)*
term    = sign* piece (("*" | "/" | nothing) piece)*            one measure at most, the others are numbers
piece   = number | "(" sum ")" | measure
measure = NAME "[" i "," j "]"                                  an entry
        | ("sum" | "mean") "(" array ")" | "Σ" array            array = NAME | NAME^2 | (NAME - NAME)^2
        | "‖" NAME ("-" NAME)? "‖" "^2"
        | ("ln" | "log") NAME "[" i "," j "]"                   brackets around it allowed
        | "mse" "(" NAME, NAME ")" | ("cross_entropy" | "nll") "(" NAME, NAME, "mean" | "sum" ")"
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from attncli.arithmetic.expression import KEYBOARD, NUMBER, TokenReader, parse_entry
from attncli.core.matrix import Expression
from attncli.core.message import InputError, Message, closest, placed
from attncli.core.record import Record

MOST_CHARACTERS = 10_000
#: Brackets inside brackets: more than anybody writes.
_DEEPEST = 20


#: The factor of what has none.
ONE: Expression = ("num", "1")


def times(a: Expression, b: Expression) -> Expression:
    if a == ONE:
        return b
    return a if b == ONE else ("*", a, b)


def negated(a: Expression) -> Expression:
    return a[1] if a[0] == "neg" and isinstance(a[1], tuple) else ("neg", a)


class Measure(Record):
    """One measure with its factor.

    Parameters
    ----------
    kind : "entry", "sum", "mean", "squares", "mean_squares", "log", "cross_entropy" or "nll"
    name : the array it is taken of
    index : of an entry, counted from 1; as it was written
    target : what is subtracted before squaring, or the classes
    rest : further words in the brackets
    factor : the number in front of it
    """

    kind: str
    name: str
    index: tuple[int, ...] = ()
    target: str = ""
    rest: tuple[str, ...] = ()
    factor: Expression = ONE

    @property
    def place(self) -> tuple[int, ...]:
        """The index, counted from 0."""
        return tuple(i - 1 for i in self.index)


#: What adds up: measures, or a number that is none's factor yet.
_Sum: TypeAlias = "list[Measure] | Expression"

#: What a function's name stands for, and how many names it takes.
FUNCTIONS = ("sum", "mean", "mse", "cross_entropy", "nll", "ln", "log")

_SIGNS = KEYBOARD | str.maketrans(
    {"²": "^2", "∑": "Σ", "∥": "‖", "½": "(1/2)", "⅓": "(1/3)", "¼": "(1/4)", "⅔": "(2/3)", "¾": "(3/4)"}
)
_LATEX = (
    (r"\$|\\(?:left|right|,|;|!|quad)(?![A-Za-z])", ""),
    (r"\\[dt]?frac\s*(\d)\s*(\d)", r"(\1/\2)"),
    (r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}", r"((\1)/(\2))"),
    (r"\\sum(?:\\limits)?|Σ", "Σ"),
    (r"Σ\s*_\s*(?:\{[^{}]*\}|[A-Za-z])", "Σ"),
    (r"\\(ln|log|sqrt)\b", r"\1"),
    (r"\\(?:cdot|times)\b", "*"),
    (r"\\(?:lVert|rVert|Vert|\|)|\|\|", "‖"),
    (r"_\{\s*(\d+)\s*,\s*(\d+)\s*\}", r"[\1,\2]"),
    (r"\^\s*\{\s*2\s*\}", "^2"),
    (r"([A-Za-z])_\{(\w+)\}", r"\1_\2"),
    (r"sqrt\s*\{([^{}]*)\}", r"sqrt(\1)"),
)
_TOKEN = rf"\s*(?:{NUMBER}|[A-Za-z_]\w*(?:\.\w+)*|[-+*/^()\[\],√∞Σ‖])"
_NUMBER_WORDS = ("sqrt", "exp", "e", "inf", "infinity", "√", "∞")


def plain_text(text: str) -> str:
    """A loss with the signs of a keyboard in the place of those of a page or of LaTeX."""
    out = text
    if any(sign in out for sign in "\\$‖∥|_Σ∑^{"):
        for pattern, plain in _LATEX:
            out = re.sub(pattern, plain, out)
    return out.translate(_SIGNS).strip()


def read(text: str, forms: Message) -> list[Measure]:
    """The measures that a loss adds up.

    Parameters
    ----------
    forms : the ways to write a loss, for messages

    Raises
    ------
    InputError
        Says from where on it cannot be read, and which forms there are.
    """
    if len(text) > MOST_CHARACTERS:
        raise InputError(
            "The loss has {count} characters; the limit is {limit}.", count=len(text), limit=MOST_CHARACTERS
        )
    plain = plain_text(text)
    if not plain:
        raise InputError("The loss is empty. {forms}", forms=forms)
    return _LossReader(plain, forms).read()


class _LossReader(TokenReader):
    """Recursive descent over the tokens of one loss; what cannot be cut into tokens is named where it is reached."""

    def __init__(self, text: str, forms: Message) -> None:
        super().__init__(text, _TOKEN)
        self.forms = forms
        self.depth = 0

    def read(self) -> list[Measure]:
        found = self.sum()
        if self.peek() or self.rest < len(self.text):
            raise self.unreadable()
        if isinstance(found, tuple):
            self.next = 0
            raise self.unreadable()
        return found

    def start(self) -> int:
        return self.tokens[self.next].start if self.next < len(self.tokens) else self.rest

    def unreadable(self, at: int | None = None) -> InputError:
        start = self.start() if at is None else at
        if not self.text[start:].strip():
            return InputError("The loss “{loss}” stops in the middle. {forms}", loss=self.text[:60], forms=self.forms)
        return InputError(
            "The loss “{loss}” cannot be read from “{rest}” on. {forms}",
            loss=self.text[:60],
            rest=self.text[start : start + 20],
            forms=self.forms,
        )

    def expect(self, sign: str) -> None:
        if self.peek() != sign:
            raise self.unreadable()
        self.next += 1

    def sum(self) -> _Sum:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.unreadable()
        whole = self.term()
        while self.peek() in ("+", "-"):
            at = self.start()
            minus = self.take() == "-"
            more = _each(self.term(), negated) if minus else self.term()
            if isinstance(whole, tuple) and isinstance(more, tuple):
                whole = ("+", whole, more)
            elif isinstance(whole, tuple) or isinstance(more, tuple):
                raise self.unreadable(at)  # a number on its own changes no gradient
            else:
                whole = [*whole, *more]
        self.depth -= 1
        return whole

    def term(self) -> _Sum:
        minus = False
        while self.peek() in ("+", "-"):
            minus ^= self.take() == "-"
        whole = self.piece()
        while self.peek() in ("*", "/") or self._goes_on():
            at = self.start()
            sign = self.take() if self.peek() in ("*", "/") else "*"
            more = self.piece()
            if isinstance(more, tuple):
                whole = _scaled(whole, more) if sign == "*" else _each(whole, partial(_over, more))
            elif isinstance(whole, tuple) and sign == "*":
                whole = _scaled(more, whole)
            else:
                raise self.unreadable(at)
        return _each(whole, negated) if minus else whole

    def _goes_on(self) -> bool:
        """Whether a factor follows without a sign: 2 sum(O), ½Σ(O−T)²."""
        token = self.peek()
        return bool(token) and (token[0] in "(√Σ‖_." or token[0].isalnum())

    def piece(self) -> _Sum:
        token = self.peek()
        if token == "(":
            self.take()
            inside = self.sum()
            self.expect(")")
            if self.peek() == "^":
                raise self.unreadable()
            return inside
        if token and (token[0].isdigit() or token[0] == "." or token in _NUMBER_WORDS) and not self._is_entry():
            return self.number()
        return [self.measure()]

    def _is_entry(self) -> bool:
        """An array may be called e."""
        return self.peek(1) == "["

    def number(self) -> Expression:
        begin = self.next
        self._primary()
        if self.peek() == "^":
            self.take()
            if self.peek() in ("+", "-"):
                self.take()
            self._primary()
        text = self.text[self.tokens[begin].start : self.tokens[self.next - 1].end]
        with placed(Message("The loss “{loss}”", loss=self.text[:60])):
            _, _, entry = parse_entry(text)
        return entry

    def _primary(self) -> None:
        """Go past one number: 0.5, √2, sqrt(2), (1/2)."""
        if not self.peek():
            raise self.unreadable()
        token = self.take()
        if token == "√":
            self._primary()
            return
        if token in ("sqrt", "exp"):
            token = self.peek()
            self.expect("(")
        if token == "(":
            deep = 1
            while deep:
                token = self.take()
                if not token:
                    raise self.unreadable()
                deep += (token == "(") - (token == ")")

    def measure(self) -> Measure:
        token = self.peek()
        if token == "Σ":
            self.take()
            return self.array("sum", brackets=False)
        if token == "‖":
            return self.norm()
        if not token or not (token[0].isalpha() or token[0] == "_"):
            raise self.unreadable()
        if token in ("ln", "log") and self.peek(1) != "[":
            return self.log()
        if self.peek(1) == "[":
            name, index = self.entry()
            return Measure("entry", name, index)
        if self.peek(1) == "(":
            return self.call()
        raise self.unreadable()

    def call(self) -> Measure:
        name = self.peek()
        if name not in FUNCTIONS:
            likely = closest(name, list(FUNCTIONS))
            raise InputError(
                "The loss “{name}(…)” is not known here.{likely} {forms}",
                name=name[:40],
                likely=Message(" Did you mean {likely}?", likely=likely) if likely else "",
                forms=self.forms,
            )
        self.next += 2
        if name in ("sum", "mean"):
            if self.peek() == ")" or self.peek(1) == ",":
                raise InputError("{name} takes one matrix. {forms}", name=name, forms=self.forms)
            part = self.array(name, brackets=True)
            self.expect(")")
            if self.peek() == "^":
                raise InputError(
                    "{name}(…)^2 would square the sum. For a sum of squares write the square inside: {name}(({array} - target)^2).",
                    name=name,
                    array=part.name,
                )
            return part
        names = self.names()
        if name == "mse":
            if len(names) != 2:
                raise InputError("mse takes the output and a target. {forms}", forms=self.forms)
            return Measure("mean_squares", names[0], target=names[1])
        if not 2 <= len(names) <= 3:
            raise InputError("{name} takes the output and the targets. {forms}", name=name, forms=self.forms)
        return Measure(name, names[0], target=names[1], rest=tuple(names[2:]))

    def names(self) -> list[str]:
        """Names with commas between them, to the closing bracket."""
        names: list[str] = []
        while self.peek() != ")":
            if names:
                self.expect(",")
            begin = self.start()
            while self.peek() and self.peek() not in (",", ")", "("):
                self.take()
            names.append(self.text[begin : self.start()].strip())
            if not self.peek() or self.peek() == "(":
                raise self.unreadable()
        self.take()
        return [name for name in names if name]

    def array(self, kind: str, *, brackets: bool) -> Measure:
        """What a sum or a mean is taken over: O, O^2, (O - T)^2; after Σ the brackets may be left out."""
        if self.peek() == "(":
            self.take()
            part = self._inside(kind)
            self.expect(")")
            squared = self._squared()
            if squared and part.kind != kind:
                raise self.unreadable()
        else:
            part = self._inside(kind) if brackets else Measure(kind, self.name())
            squared = part.kind == kind and not part.target and self._squared()
        if squared:
            return part.changed(kind=_SQUARES[kind])
        if part.target and part.kind == kind:
            raise InputError(
                "A sum of {name} − {target} without a square would grow ever smaller with negative errors."
                " Write sum(({name} - {target})^2).",
                name=part.name,
                target=part.target,
            )
        return part

    def _inside(self, kind: str) -> Measure:
        """O, O^2, or O - T."""
        if self.peek() == "(":
            return self.array(kind, brackets=True)
        name = self.name()
        if self._squared():
            return Measure(_SQUARES[kind], name)
        return Measure(kind, name, target=self._subtracted())

    def _subtracted(self) -> str:
        if self.peek() != "-":
            return ""
        self.take()
        return self.name()

    def _squared(self) -> bool:
        if self.peek() != "^":
            return False
        self.take()
        self.expect("2")
        return True

    def norm(self) -> Measure:
        """‖O − T‖², ‖W‖²: the sum of squares."""
        self.take()
        part = Measure("squares", self.name(), target=self._subtracted())
        self.expect("‖")
        if not self._squared():
            raise self.unreadable()
        return part

    def name(self) -> str:
        token = self.peek()
        if not token or not (token[0].isalpha() or token[0] == "_") or self.peek(1) in ("[", "("):
            raise self.unreadable()
        return self.take()

    def entry(self) -> tuple[str, tuple[int, ...]]:
        """O[1,2]; of an index that is longer than any array the first digits are kept: it is nowhere either way."""
        name = self.take()
        self.expect("[")
        index: list[int] = []
        while True:
            if not self.peek().isdecimal():
                raise self.unreadable()
            index.append(int(self.take()[:9]))
            if self.peek() != ",":
                break
            self.take()
        self.expect("]")
        return name, tuple(index)

    def log(self) -> Measure:
        self.take()
        brackets = self.peek() == "("
        if brackets:
            self.take()
        if not self.peek() or self.peek(1) != "[":
            raise self.unreadable()
        name, index = self.entry()
        if brackets:
            self.expect(")")
        return Measure("log", name, index)


_SQUARES = {"sum": "squares", "mean": "mean_squares"}


def _each(found: _Sum, change: Callable[[Expression], Expression]) -> _Sum:
    """A number changed so, or the factor of every measure."""
    if isinstance(found, tuple):
        return change(found)
    return [part.changed(factor=change(part.factor)) for part in found]


def _scaled(found: _Sum, factor: Expression) -> _Sum:
    if factor == ("neg", ONE):
        return _each(found, negated)
    return times(found, factor) if isinstance(found, tuple) else _each(found, partial(times, factor))


def _over(divisor: Expression, own: Expression) -> Expression:
    return ("/", own, divisor)
