"""A loss written as text, added to a graph: sum(O), O[1,1] + 2*O[1,2], mse(O, T).

Its gradient at the output is what the backward steps start from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from attncli.core.graph import Graph, show_shape
from attncli.gradient import gradient_id, gradient_symbol, upstream
from attncli.matrix import Entry, Matrix, as_matrix
from attncli.message import N_, AttnError, InputError, Message, ShapeError, closest
from attncli.ops import mean_square, scale, subtract, weighted_sum

MOST_CHARACTERS = 10_000

#: A loss with more terms, or longer numbers, stands as Σ G ⊙ O.
_MOST_TERMS, _MOST_DIGITS = 8, 12

_CALL = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*\((?P<inside>[^()]*)\)\s*\Z")
_TERM = re.compile(
    r"\s*(?P<sign>[-+])?\s*(?:(?P<factor>[^-+*\[\]\s][^*\[\]]*?)\s*\*\s*)?(?P<name>[A-Za-z_][\w.]*)\s*\[(?P<index>[\d,\s]+)\]"
    r"(?:\s*/\s*(?P<divisor>[\d.]+))?"
)


#: A number as it was read: its value, its decimals, and how it was written.
Number: TypeAlias = tuple[float, int, Entry]


def apply(graph: Graph, text: str, matrices: Mapping[str, Matrix], parse_number: Callable[[str], Number]) -> None:
    """Add the loss L and the gradient at the graph's output.

    Parameters
    ----------
    text : the loss
    matrices : further matrices it may name (a target)
    parse_number : reads one factor

    Raises
    ------
    InputError
        Says what cannot be read and which forms there are.
    """
    if len(text) > MOST_CHARACTERS:
        raise InputError(
            "The loss has {count} characters; the limit is {limit}.", count=len(text), limit=MOST_CHARACTERS
        )
    call = _CALL.match(text)
    if call is None:
        _linear(graph, text, parse_number)
        return
    functions: dict[str, Callable[[Graph, list[str], Mapping[str, Matrix]], None]] = {
        "sum": _sum,
        "mse": _mse,
        "cross_entropy": _cross_entropy,
    }
    name = call["name"]
    if name not in functions:
        likely = closest(name, list(functions))
        raise InputError(
            "The loss “{name}(…)” is not known here.{likely} {forms}",
            name=name,
            likely=Message(N_(" Did you mean {likely}?"), likely=likely) if likely else "",
            forms=forms(graph.output),
        )
    functions[name](graph, [part.strip() for part in call["inside"].split(",")], matrices)
    graph.loss = "L"


def forms(output: str) -> Message:
    """The forms a loss may have, for messages."""
    return Message(
        N_(
            "Write sum({output}), {output}[1,1] + 2*{output}[1,2], mse({output}, target), or cross_entropy({output}, classes)."
        ),
        output=output,
    )


def _output_named(graph: Graph, name: str) -> None:
    if name != graph.output:
        raise InputError(
            "The loss names “{name}”, but the output here is {output}. {forms}",
            name=name,
            output=graph.output,
            forms=forms(graph.output),
        )


def _weighted(graph: Graph, coefficients: Matrix, text: str, written: str) -> None:
    given = upstream(
        graph,
        coefficients,
        Message(
            N_("Read off the loss L = {loss}: the number in front of each entry of {output}."),
            loss=text,
            output=graph.output,
        ),
    )
    graph.apply(
        weighted_sum.OP,
        "L",
        graph.output,
        given,
        symbol="L",
        ndim=coefficients.values.ndim,
        written=written,
        why=Message(N_("The loss as it was asked for: {loss}."), loss=text),
    )
    graph.loss = "L"


def _sum(graph: Graph, arguments: list[str], matrices: Mapping[str, Matrix]) -> None:
    if len(arguments) != 1 or not arguments[0]:
        raise InputError("sum takes one matrix. {forms}", forms=forms(graph.output))
    _output_named(graph, arguments[0])
    _weighted(graph, as_matrix(np.ones(graph.shape(graph.output))), f"sum({graph.output})", r"\sum {0}")


def _linear(graph: Graph, text: str, parse_number: Callable[[str], Number]) -> None:
    """Σ factor · O[i, j], indices counted from 1."""
    output = graph.output
    shape = graph.shape(output)
    coefficients = np.zeros(shape)
    written: dict[tuple[int, ...], Entry] = {}
    terms: list[tuple[Entry, list[int]]] = []
    position, plain = 0, text.translate(_SIGNS).strip()
    while position < len(plain):
        term = _TERM.match(plain, position)
        if term is None or (position > 0 and term["sign"] is None):
            raise InputError(
                "The loss “{loss}” cannot be read from “{rest}” on. {forms}",
                loss=plain[:60],
                rest=plain[position : position + 20],
                forms=forms(output),
            )
        _output_named(graph, term["name"])
        index = _index(term["index"])
        if len(index) != len(shape) or not all(1 <= i <= size for i, size in zip(index, shape, strict=False)):
            raise InputError(
                "The loss names {name}[{index}], but {name} is {shape}: rows and columns are counted from 1.",
                name=output,
                index=term["index"][:40],
                shape=show_shape(shape),
            )
        factor, entry = _coefficient(term, plain, parse_number)
        terms.append((entry, index))
        cell = tuple(i - 1 for i in index)
        coefficients[cell] += factor
        written[cell] = ("+", written[cell], entry) if cell in written else entry
        position = term.end()
        while position < len(plain) and plain[position].isspace():
            position += 1
    if not plain:
        raise InputError("The loss is empty. {forms}", forms=forms(output))
    if not np.isfinite(coefficients).all():
        raise InputError("The loss “{loss}” has a factor that is not finite. Write ordinary numbers.", loss=plain[:60])
    entries = tuple(written.get(cell, ("num", "0")) for cell in np.ndindex(*shape))
    _weighted(graph, Matrix(coefficients, None, entries), plain, _formula(graph.symbol(output), terms))


def _formula(symbol: str, terms: Sequence[tuple[Entry, list[int]]]) -> str:
    r"""The loss as it was written, O[1,1] + 2 \cdot O[1,2], for a formula's template; empty where it is no short sum."""
    if len(terms) > _MOST_TERMS:
        return ""
    text = ""
    for entry, index in terms:
        minus = entry[0] == "neg"
        factor = _latex(entry[1] if minus else entry)
        if factor is None:
            return ""
        sign = (" - " if minus else " + ") if text else "-" if minus else ""
        times = "" if factor == "1" else rf"{factor} \cdot "
        text += f"{sign}{times}{symbol}[{','.join(map(str, index))}]"
    return text.replace("{", "{{").replace("}", "}}")


def _latex(entry: object) -> str | None:
    """A number, a fraction or a root; anything else has none here."""
    match entry:
        case ("num", str(text)) if len(text) <= _MOST_DIGITS:
            return text
        case ("/", above, ("num", _) as below):
            over, under = _latex(above), _latex(below)
            return rf"\frac{{{over}}}{{{under}}}" if over and under else None
        case ("sqrt", ("num", str(text))) if len(text) <= _MOST_DIGITS:
            return rf"\sqrt{{{text}}}"
    return None


def _index(text: str) -> list[int]:
    """Counted from 1; an index with too many digits, or missing, is 0 and so nowhere."""
    return [int(part) if part.strip().isdecimal() and len(part) < 10 else 0 for part in text.split(",")]


def _coefficient(term: re.Match[str], loss: str, parse_number: Callable[[str], Number]) -> tuple[float, Entry]:
    """The number in front of an entry, with its sign and what it is divided by: its value, and how it was written."""
    factor, entry = _factor(term["factor"], loss, parse_number) if term["factor"] else (1.0, ("num", "1"))
    if term["divisor"]:
        divisor, below = _factor(term["divisor"], loss, parse_number)
        factor, entry = factor / divisor if divisor else np.nan, ("/", entry, below)
    return (-factor, ("neg", entry)) if term["sign"] == "-" else (factor, entry)


def _factor(text: str, loss: str, parse_number: Callable[[str], Number]) -> tuple[float, Entry]:
    try:
        value, _, entry = parse_number(text)
        return value, entry
    except AttnError as error:
        raise error.at(Message(N_("The loss “{loss}”"), loss=loss[:60])) from None


_SIGNS = {ord("−"): "-", ord("·"): "*", ord("×"): "*", ord("，"): ",", ord("＋"): "+", ord("－"): "-"}


def _cross_entropy(graph: Graph, arguments: list[str], matrices: Mapping[str, Matrix]) -> None:
    from attncli.cross_entropy import cross_entropy

    _output_named(graph, arguments[0])
    cross_entropy(graph, arguments, matrices, forms(graph.output))


def _mse(graph: Graph, arguments: list[str], matrices: Mapping[str, Matrix]) -> None:
    """Mean of the squared differences over all entries (torch.nn.MSELoss, reduction "mean")."""
    output, target = graph.output, _target(graph, arguments, matrices)
    matrix, shape = matrices[target], graph.shape(output)
    for axis in graph.axes(output):
        graph.bound.setdefault(axis.name, axis)
    given = graph.input(
        target, matrix, [axis.name for axis in graph.axes(output)], differentiable=False, phase="target",
        why=Message(N_("The target: what the output should have been.")),
    )  # fmt: skip
    error = graph.apply(
        subtract.OP, "error", output, given, symbol=r"\Delta", why=Message(N_("How far each entry is from its target."))
    )
    graph.apply(
        mean_square.OP,
        "L",
        error,
        symbol="L",
        ndim=len(shape),
        why=Message(N_("The loss: the mean of the squared errors.")),
    )
    graph.loss = "L"
    count = int(np.prod(shape))
    graph.phase = "backward"
    graph.apply(
        scale.OP,
        gradient_id(output),
        error,
        symbol=gradient_symbol(graph.symbol(output)),
        factor=Matrix(np.asarray(2.0 / count), None, (("/", ("num", "2"), ("num", str(count))),)),
        why=Message(
            N_("The slope of a square is twice its base, and the mean shares it among {count} entries."), count=count
        ),
    )
    graph.phase = "forward"


def _target(graph: Graph, arguments: list[str], matrices: Mapping[str, Matrix]) -> str:
    """The name of the target in mse(output, target), which is given and fits.

    Raises
    ------
    InputError, ShapeError
    """
    if len(arguments) != 2 or not arguments[1]:
        raise InputError("mse takes the output and a target. {forms}", forms=forms(graph.output))
    output, target = arguments
    if not (target.isascii() and target.isidentifier()):
        raise InputError(
            "The target “{target}” is not a name. Use letters, digits and _, like “target”.", target=target[:40]
        )
    _output_named(graph, output)
    if target in graph or target in ("L", "error") or target.startswith("G_"):
        raise InputError(
            "The loss names “{target}” as its target, but that is part of this calculation already. Give the target a name"
            " of its own, like target: mse({output}, target).",
            target=target,
            output=output,
        )
    if target not in matrices:
        raise InputError(
            "The loss names the target “{target}”, which is not given. Give it beside the loss, in [gradient] of the"
            ' problem file ({target} = "…") or with --set {target}="…".',
            target=target,
        )
    shape = matrices[target].shape
    if shape != graph.shape(output):
        raise ShapeError(
            "The target {target} is {shape}, but the output {output} is {expected}. Give one target number for each entry.",
            target=target,
            shape=show_shape(shape),
            output=output,
            expected=show_shape(graph.shape(output)),
        )
    return target
