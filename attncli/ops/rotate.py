"""Pairs of columns turned by an angle of their own (rotary position embedding, Su et al., arXiv 2104.09864, eq. 34)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.core.message import N_, Message
from attncli.core.terms import Index, Term, at
from attncli.ops.join_rows import joined

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value, cos: Value, sin: Value, *, pairing: str, reverse: bool = False) -> Value:
    """Pair i of every row of a (… n d), turned by the angle of cos and sin (n pairs); columns without a pair stay."""
    pairs = cos.shape[-1]
    first, second = (_columns(xp, a, places) for places in _places(pairs, pairing))
    one, other = xp.multiply(first, cos), xp.multiply(second, sin)
    three, four = xp.multiply(first, sin), xp.multiply(second, cos)
    if reverse:
        turned = [xp.add(one, other), xp.subtract(four, three)]
    else:
        turned = [xp.subtract(one, other), xp.add(three, four)]
    whole = _columns(xp, xp.concatenate(turned, -1), np.argsort(np.concatenate(_places(pairs, pairing))))
    if 2 * pairs == a.shape[-1]:
        return whole
    return joined(xp, whole, xp.slice(a, -1, 2 * pairs, a.shape[-1]), -1)


def _places(pairs: int, pairing: str) -> tuple[Any, Any]:
    """The columns of the first and of the second number of every pair."""
    each = np.arange(pairs)
    return (each, each + pairs) if pairing == "half" else (2 * each, 2 * each + 1)


def _columns(xp: Arithmetic, a: Value, places: Any) -> Value:
    return xp.swapaxes(xp.take(xp.swapaxes(a, -1, -2), places), -1, -2)


def formula(params: Params, columns: bool) -> str:
    angle = r"-\theta" if params.get("reverse") else r"\theta"
    return rf"R_{{{{{angle}}}}} \, {{0}} \ ({{1}}, {{2}})"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    a, cos, sin = step.inputs
    *head, row, column = index
    pairs = values[cos].shape[-1]
    if column >= 2 * pairs:
        return at(values, a, index)
    first, second = _places(pairs, step.params["pairing"])
    pair = int(np.argmax((first == column) | (second == column)))
    is_first = bool(first[pair] == column)
    own = Term("product", at(values, a, index), at(values, cos, (row, pair)))
    partner = int(second[pair] if is_first else first[pair])
    other = Term("product", at(values, a, (*head, row, partner)), at(values, sin, (row, pair)))
    minus = is_first != bool(step.params.get("reverse"))
    return Term("difference" if minus else "sum", own, other)


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    """A rotation is undone by turning back, and that is its transpose."""
    back = not step.params.get("reverse", False)
    why = Message(N_("The gradient is turned back by the same angle."))
    graph.apply(OP, id, upstream, *step.inputs[1:], pairing=step.params["pairing"], reverse=back, why=why)


OP = Op(
    name="rotate",
    compute=compute,
    axes="n d, n p, n p -> n d",
    formula=formula,
    terms=terms,
    why=N_("Each pair (x, y) is turned by its angle: (x cos θ − y sin θ, x sin θ + y cos θ). Its length stays."),
    backward=(gradient, None, None),
)
