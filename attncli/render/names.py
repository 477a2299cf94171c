r"""Names in a formula: a cell of a step, and an operand with the part of the model that it comes from."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping

from attncli.core.graph import Axis, Graph, part_of
from attncli.core.message import Language, Message
from attncli.core.terms import Index
from attncli.problems.problem import UNNAMED, Problem


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
    for id in (*graph.inputs, *graph.steps):
        parts[graph.symbol(id)].add(part_of(id))

    def operand(id: str, of: str) -> str:
        symbol = graph.symbol(id)
        theirs, ours = part_of(id).split(".")[:-1], part_of(of).split(".")[:-1]
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


def localized(texts: Mapping[str, str], code: str) -> str:
    """The text in this language, else in English, else in any."""
    return texts.get(code) or texts.get("en") or next(iter(texts.values()), "")


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


def title_of(problem: Problem, language: Language) -> str:
    """What stands above a sheet or a class: the exercise's title, else its id, else what its model is."""
    from attncli import models

    title = localized(problem.title, language.code) or (problem.id if problem.id != UNNAMED else "")
    return title or Message(models.get(problem.model).text).text(language)


def clean(text: str) -> str:
    """Text from a file on one line and without control characters."""
    return printable(" ".join(text.split()))
