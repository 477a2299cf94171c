r"""The arithmetic of one cell as text, 1×1 + 2×0 = 1, and whether that is true as printed."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from decimal import Decimal, localcontext

from attncli.arithmetic import Value
from attncli.arithmetic.decimals import CONTEXT, DECIMALS, rounds_to
from attncli.core.graph import Graph, Step
from attncli.core.message import Message
from attncli.core.terms import Index, Term, cell
from attncli.render.text import constant_text, printable

#: A hidden score as text.
HIDDEN = "−∞"
#: Ops that an attention weight is opened down through, to the powers of e.
OPENED = frozenset({"exp", "row_sum"})
#: An exact number that is a power of e: it holds together without brackets around it.
_POWER_OF_E = re.compile(r"e\^\([^()]*\)")
ShowCell = Callable[[str, Index], str]


def term_text(term: Term, show: ShowCell) -> str:
    """A term, its cells put in by `show`."""
    return term.fold(show, constant_text, _text_over, str)


def _text_over(term: Term, parts: list[str]) -> str:
    """The text of a term from the texts of the terms in it."""
    kinds = [part.kind for part in term.terms]
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
            return " / ".join(
                part if kind == "exp" or _POWER_OF_E.fullmatch(part) else _grouped(part)
                for part, kind in zip(parts, kinds, strict=True)
            )
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
    return text if _single(text) else f"({text})"


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


def cell_term(
    step: Step, index: Index, graph: Graph, values: Mapping[str, Value], written: Container[str] = ()
) -> Term:
    """The arithmetic a learner writes for a cell: attention weights down to the powers of e.

    Parameters
    ----------
    written : steps whose numbers are taken from a page, whatever they come from
    """

    def opened(step_id: str, index: Index) -> Term:
        below = graph.steps.get(step_id)
        if below is None or below.op.name not in OPENED or step_id in written:
            return cell(step_id, index)
        return below.terms(values)[index].with_cells(opened)

    term = step.terms(values)[index]
    return term.with_cells(opened) if step.is_attention else term


# Whether an equation is true as printed.

EQUAL, ABOUT = "=", "≈"

#: Why a screen has ≈ in it, said once.
WHY_ABOUT = Message(
    "≈: the numbers shown are rounded; attncli goes on with all their digits. --carry goes on with the rounded ones."
)
#: The same where rounded numbers are carried on already.
WHY_ABOUT_BY_HAND = Message(
    "≈: this step has lines of its own in between, and each of them is rounded; the formula is all that is shown."
)
#: The same below a cell of a learner's sheet.
WHY_ABOUT_IN_MARKS = Message("≈: the numbers shown here are rounded; more digits were used.")

_DECIMAL = r"-?(\d+(\.\d+)?(e[+-]?\d+)?|Infinity)|NaN"


def sign(term: Term, show: ShowCell, result: str, places: int) -> str:
    """`=` where the printed numbers give the printed result, else `≈`; of exact ones, like √2/2, it is `=`.

    Parameters
    ----------
    term : the arithmetic on the left
    show : the text of a cell in it
    result : the text on the right
    places : decimals of the result; a whole number is printed without them only if it is one
    """
    most = places

    def operand(step_id: str, index: Index) -> Decimal:
        nonlocal most
        text = show(step_id, index)
        most = max(most, len(text.partition(".")[2]) if "e" not in text else 0)
        return _decimal(text)

    with localcontext(CONTEXT):
        try:
            left = term.fold(
                operand,
                lambda value: _decimal(constant_text(value)),
                lambda over, parts: DECIMALS[over.kind](*parts),
                _no_decimal,
            )
            return EQUAL if rounds_to(left, _decimal(result), most) else ABOUT
        except ValueError:
            return EQUAL


def equation(
    term: Term, show: ShowCell, named: Callable[[str, Index], str], result: str, places: int
) -> tuple[str, str]:
    """What stands behind the name of a cell: its arithmetic and its result; and whether they are equal, or about equal.

    A number taken over from another step goes by its name there, since 1.7321 = 1.7321 would say nothing.
    """
    if term.kind == "cell":
        return f"{named(*term.place)} = {result}", EQUAL
    left = printable(term_text(term, show))
    if left == result:
        return result, EQUAL
    relation = sign(term, show, result, places)
    return f"{left} {relation} {result}", relation


def _decimal(text: str) -> Decimal:
    """A printed number, which √2/2 and the like are not."""
    plain = text.replace("−", "-").replace("∞", "Infinity")
    return Decimal(plain) if re.fullmatch(_DECIMAL, plain) else _no_decimal(text)


def _no_decimal(text: str) -> Decimal:
    raise ValueError(text)
