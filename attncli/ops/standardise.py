"""Every row divided by its own standard deviation, or by its own root mean square."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attncli.core.matrix import as_matrix
from attncli.core.message import N_, Message
from attncli.ops import divide, multiply, row_sum, scale

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def gradient_divisor(graph: Graph, step: Step, upstream: str, id: str) -> None:
    """∂(a/b)/∂b = −(a/b)/b, added up along the row."""
    product = graph.apply(
        multiply.OP,
        f"{id}_product",
        upstream,
        step.id,
        symbol="P",
        why=Message(N_("How much each entry would pull on the common divisor of its {row}.")),
    )
    pulls = Message(N_("All entries of a {row} share one divisor, so their pulls on it are added up."))
    total = graph.apply(row_sum.OP, f"{id}_total", product, symbol="p", why=pulls)
    share = graph.apply(
        divide.OP,
        f"{id}_share",
        total,
        step.inputs[1],
        symbol="q",
        why=Message(N_("If the divisor b grows, a/b falls by (a/b)/b. This is that size; the minus comes next.")),
    )
    why = Message(N_("A larger divisor makes every entry of the {row} smaller, hence the minus."))
    graph.apply(scale.OP, id, share, factor=as_matrix(-1.0), why=why)


# A division in everything but its name and its gradient.
OP = divide.OP.changed(
    name="standardise",
    why=N_("Each {row} divided by its own spread: whatever its size was, it is about 1 now."),
    backward=(divide.gradient_a, gradient_divisor),
)
