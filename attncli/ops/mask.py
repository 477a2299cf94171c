"""A mask added to the scores: 0 where a key may be seen, −∞ where it may not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, fixed
from attncli.core.message import N_, Message
from attncli.core.terms import Index, Term, at
from attncli.ops import pass_on

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, scores: Value, mask: Value) -> Value:
    """scores + mask."""
    return xp.add(scores, mask)


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    scores, mask = step.inputs
    return Term("sum", at(values, scores, index), at(values, mask, index))


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    """Adding a constant changes no slope."""
    graph.apply(
        pass_on.OP,
        id,
        upstream,
        why=Message(
            N_(
                "The mask only adds a constant, so the gradient passes unchanged."
                " Hidden places already carry 0: their weight was 0."
            )
        ),
    )


OP = Op(
    name="mask",
    compute=compute,
    axes="i j, i j -> i j",
    formula=fixed("{0} + {1}"),
    terms=terms,
    why=N_("Adding −∞ hides a key, adding 0 leaves it alone. e^−∞ = 0, so a hidden key gets a weight of exactly 0."),
    backward=(gradient, None),
)
