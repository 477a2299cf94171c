"""What went into a sublayer, added to what came out of it (He et al., arXiv 1512.03385, equation 1)."""

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


def compute(xp: Arithmetic, a: Value, b: Value) -> Value:
    """a + b: the way past the sublayer, and the way through it."""
    return xp.add(a, b)


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    return Term("sum", *(at(values, id, index) for id in step.inputs))


def gradient(graph: Graph, step: Step, upstream: str, id: str) -> None:
    why = Message(
        N_("A sum hands its gradient on to both parts in full; this is why a residual keeps gradients alive.")
    )
    graph.apply(pass_on.OP, id, upstream, why=why)


OP = Op(
    name="residual",
    compute=compute,
    axes="i j, i j -> i j",
    formula=fixed("{0} + {1}"),
    terms=terms,
    why=N_("What went in is added to what came out, so a sublayer only has to learn the difference."),
    backward=(gradient, gradient),
)
