r"""Names and numbers as text: a cell, an operand, the lines of a matrix; a number with the decimals that were asked for."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np

from attncli.arithmetic import Number, Value
from attncli.arithmetic.hand import round_decimal
from attncli.core.axes import Axis
from attncli.core.graph import Graph, part_of
from attncli.core.message import Language, Localized, Message
from attncli.core.terms import Index
from attncli.locale.fit import fitted, fitting
from attncli.problems.problem import Problem

# Names.


def cell_name(name: str, index: Index, layout: str = "rows") -> str:
    """S[1,2], counted from 1; with tokens as columns, row and column change places."""
    shown = [i + 1 for i in index]
    if layout == "columns" and len(shown) > 1:
        shown[-2:] = shown[:-3:-1]
    return f"{name}[{','.join(map(str, shown))}]"


def operands(graph: Graph) -> Callable[[str, str], str]:
    """How an operand is called in the formula of a step (its id, the step's id): its symbol, in LaTeX.

    Where another part of the model has something of the same symbol, the part is named: in a block the residual adds
    Y_{norm1} + Y, the norm's and the sublayer's, not Y + Y.
    """
    parts: dict[str, set[str]] = defaultdict(set)
    for step_id in (*graph.inputs, *graph.steps):
        parts[graph.symbol(step_id)].add(part_of(step_id))

    def operand(step_id: str, of: str) -> str:
        symbol = graph.symbol(step_id)
        theirs, ours = part_of(step_id).split(".")[:-1], part_of(of).split(".")[:-1]
        while theirs and ours and theirs[0] == ours[0]:
            theirs, ours = theirs[1:], ours[1:]
        return _marked(symbol, ".".join(theirs)) if theirs and len(parts[symbol]) > 1 else symbol

    return operand


def _marked(symbol: str, mark: str) -> str:
    r"""Y and norm1 give Y_{norm1}, G_R gives G_{R,norm1}, \sigma^2 gives \sigma_{norm1}^2."""
    base, power, exponent = symbol.partition("^")
    head, _, index = base.partition("_")
    index = index[1:-1] if index.startswith("{") else index
    return f"{head}_{{{index},{mark}}}{power}{exponent}" if index else f"{head}_{{{mark}}}{power}{exponent}"


_PREFIX = {"query": "q", "key": "k", "token": "t", "past_key": "p", "new_key": "k", "source": "s"}


def names(axis: Axis, labels: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Names of the lines of an axis: tokens where given, q1, q2 … for queries, ids for the vocabulary."""
    given = labels.get(axis.name)
    if axis.name == "position" and not given:
        return tuple(map(str, range(axis.size)))
    if axis.name == "vocabulary":
        return tuple(f"{i} {printable(given[i])}" if given else str(i) for i in range(axis.size))
    if given and len(given) == axis.size:
        return tuple(printable(name) for name in given)
    if axis.name == "":
        return ("",) * axis.size
    prefix = _PREFIX.get(axis.name, "")
    return tuple(f"{prefix}{i}" for i in range(1, axis.size + 1))


def printable(text: str) -> str:
    """Text from a file without control characters, which must not reach a terminal."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or unicodedata.category(c) == "Zs" else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def title_of(problem: Problem, language: Language, instead: str = "") -> str:
    """What stands above a problem, on one line: its title, or `instead`, or what its model is."""
    from attncli import models

    title = clean(Localized(problem.title).text(language)) or instead
    return title or clean(Message(models.get(problem.model).text).text(language))


def clean(text: str) -> str:
    """Text from a file on one line and without control characters."""
    return printable(" ".join(text.split()))


def shortened(name: str, most: int, encoding: str) -> str:
    """A name, cut off where it would take more columns of a screen."""
    text = fitted(printable(name), encoding)
    return text[: fitting(text, most)]


# Numbers. Exact whole numbers are bare; everything else has the decimals that were asked for.

#: From here on a decimal number says less than powers of ten.
_HUGE = 1e15
#: Digits that every float64 keeps of a decimal number.
SIGNIFICANT = 15


def number_text(value: Number, decimals: int) -> str:
    """One number: 2, 0.707, -1.500, −∞, NaN; an exact one as it is, like √2/2."""
    if not isinstance(value, (float, int, np.floating, np.integer)):
        from attncli.render.exact import exact_text

        return exact_text(value)
    number = float(value)
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "−∞" if number < 0 else "∞"
    if abs(number) >= _HUGE:
        return f"{number:.6e}"
    if number.is_integer():
        return str(int(number))
    places = min(decimals, _places_held(number))
    rounded = float(round_decimal(number, places))
    text = f"{rounded:.{places}f}"
    return text.removeprefix("-") if rounded == 0 else text


def _places_held(number: float) -> int:
    """Decimals of a finite number other than 0 up to which a float64 holds what it is."""
    return max(SIGNIFICANT - 1 - math.floor(math.log10(abs(number))), 0)


def is_cut(values: Value, decimals: int) -> bool:
    """Whether one of the numbers is shown with fewer decimals than these, because it holds no more."""
    sizes = np.abs(values)
    largest = float(np.max(sizes, initial=0.0, where=(sizes < _HUGE) & (np.trunc(sizes) != sizes)))
    return largest > 0 and _places_held(largest) < decimals


_LATEX = {"NaN": r"\text{NaN}", "∞": r"\infty", "−∞": r"-\infty"}


def number_latex(value: Number, decimals: int) -> str:
    """The same in LaTeX."""
    if not isinstance(value, (float, int, np.floating, np.integer)):
        from attncli.render.exact import exact_latex

        return exact_latex(value)
    text = number_text(value, decimals)
    if text in _LATEX:
        return _LATEX[text]
    mantissa, _, power = text.partition("e")
    return rf"{mantissa} \times 10^{{{int(power)}}}" if power else text


def constant_text(value: float) -> str:
    """A number of the formula itself in six digits, without zeros at its end: 0.1, 10, 0.333333; a small one as 1e-8, never as 0."""
    if not math.isfinite(value) or (value.is_integer() and abs(value) < _HUGE):
        return number_text(value, 0)
    return re.sub(r"e([+-])0*", r"e\1", f"{value:.6g}")


def constant_latex(value: float) -> str:
    """The same in LaTeX: 1e-8 is 10^{-8}."""
    if not math.isfinite(value):
        return number_latex(value, 0)
    digits, _, power = constant_text(value).partition("e")
    if not power:
        return digits
    size = f"10^{{{int(power)}}}"
    return size if digits == "1" else rf"{digits} \times {size}"


def plain(values: Value) -> object:
    """Numbers as nested lists for data formats: floats in full, infinities as "inf" and "-inf", NaN as "nan"."""
    if values.dtype == object:
        values = values.astype(np.float64)
    return values.tolist() if np.isfinite(values).all() else finite(values.tolist())


def finite(value: object) -> object:
    """A value for JSON, which has no infinities and no NaN: they are "inf", "-inf" and "nan"."""
    if isinstance(value, (list, tuple)):
        return [finite(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def aligned(texts: list[str]) -> list[str]:
    """A column of numbers, aligned at the point by spaces on the right of whole numbers."""
    tails = [len(text) - text.index(".") if "." in text else 0 for text in texts]
    width = max(tails, default=0)
    return [text + " " * (width - tail) if _is_decimal(text) else text for text, tail in zip(texts, tails, strict=True)]


def _is_decimal(text: str) -> bool:
    return text.lstrip("-").replace(".", "", 1).isdigit()


def points_text(value: float | Fraction) -> str:
    """Points without needless zeros: 2, 0.5, 1.33."""
    return f"{float(value):.2f}".rstrip("0").rstrip(".")
