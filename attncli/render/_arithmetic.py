"""The arithmetic of one cell as text: 1×1 + 2×0 = 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attncli.core.graph import Graph, Step
from attncli.core.message import N_, Message
from attncli.core.terms import Index, Term

#: A hidden score as text.
HIDDEN = "−∞"
#: Ops that an attention weight is opened down through, to the powers of e.
OPENED = frozenset({"exp", "row_sum"})
ShowCell = Callable[[str, Index], str]


def term_text(term: Term, show: ShowCell, number: Callable[[float], str]) -> str:
    """A term with its numbers put in by `show` (cells) and `number` (constants)."""
    match term.kind:
        case "cell":
            step, index = term.parts
            assert isinstance(step, str) and isinstance(index, tuple)
            return show(step, index)
        case "number":
            return number(float(str(term.parts[0])))
        case "text":
            return str(term.parts[0])
    parts = [term_text(part, show, number) for part in term.parts if isinstance(part, Term)]
    kinds = [part.kind for part in term.parts if isinstance(part, Term)]
    match term.kind:
        case "sum":
            return _joined_sum(parts)
        case "difference":
            if parts[0] == parts[1] == HIDDEN:
                return HIDDEN  # hidden stays hidden: nothing is taken away from it
            return f"{parts[0]} - {_signed(parts[1])}"
        case "product":
            return "×".join(
                _factor(part, kind, first=i == 0) for i, (part, kind) in enumerate(zip(parts, kinds, strict=True))
            )
        case "quotient":
            return f"{_grouped(parts[0])} / {_grouped(parts[1])}"
        case "exp":
            return f"e^{parts[0]}" if _single(parts[0]) else f"e^({parts[0]})"
        case "negative":
            return (
                f"-{parts[0]}"
                if kinds[0] in ("cell", "ln", "exp", "root") and parts[0][:1] != "-"
                else f"-({parts[0]})"
            )
        case "root":
            return f"√{parts[0]}" if _single(parts[0]) else f"√({parts[0]})"
        case "power":
            return f"{_grouped(parts[0])}^{parts[1] if _single(parts[1]) else f'({parts[1]})'}"
        case "positive":
            return f"[{parts[0]} > 0]"
        case "ln" | "tanh" | "max" | "erf" | "sin" | "cos":
            return f"{term.kind}({', '.join(parts)})"
    raise ValueError(term.kind)


def _single(text: str) -> bool:
    return not any(sign in text for sign in " ×/+")


def _grouped(text: str) -> str:
    return text if _single(text) or (text.startswith("e^") and " " not in text) else f"({text})"


def _signed(text: str) -> str:
    return f"({text})" if text[:1] in ("-", "−") or not (_single(text) or ("×" in text and " " not in text)) else text


def _factor(text: str, kind: str, *, first: bool) -> str:
    if text[:1] in ("-", "−") and not first:
        return f"({text})"
    return f"({text})" if kind in ("sum", "difference", "quotient") or " " in text else text


def _joined_sum(parts: list[str]) -> str:
    """Terms joined by +, or by − where a single number is negative; another negative one gets brackets: 1 + (-1×2)."""
    if not parts:
        return "0"
    out = parts[0]
    for part in parts[1:]:
        if part.startswith("-") and _single(part):
            out += f" - {part[1:]}"
        else:
            out += f" + ({part})" if part.startswith(("-", "−")) else f" + {part}"
    return out


def opened(term: Term, graph: Graph, values: Mapping[str, Any], names: frozenset[str]) -> Term:
    """The term with the cells of steps by these ops replaced by their own arithmetic."""
    if term.kind == "cell":
        id, index = term.parts
        step = graph.steps.get(str(id))
        if step is None or step.op.name not in names or not isinstance(index, tuple):
            return term
        return opened(step.op.terms(step, index, values), graph, values, names)
    if term.kind in ("number", "text"):
        return term
    return Term(term.kind, *(opened(part, graph, values, names) for part in term.parts if isinstance(part, Term)))


def cell_term(step: Step, index: Index, graph: Graph, values: Mapping[str, Any], *, by_hand: bool = False) -> Term:
    """The arithmetic a learner writes for a cell: attention weights down to the powers of e, unless those were rounded."""
    term = step.op.terms(step, index, values)
    if step.weights and not by_hand:
        return opened(term, graph, values, OPENED)
    return term


#: Said where a cell refers to nothing: a row of a table that no token looked up.
NOTHING = Message(N_("no gradient arrives here"))
