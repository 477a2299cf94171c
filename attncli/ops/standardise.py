"""Every row divided by its own standard deviation, or by its own root mean square."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.matrix import Matrix, as_matrix
from attncli.message import N_, Message
from attncli.ops import Mistake, divide, instead, multiply, row_sum, scale
from attncli.ops._norm import mean, mean_of_squares, source_of

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


def mistakes(graph: Graph, step: Step) -> Iterator[Mistake]:
    """Another divisor, or the statistics of another line."""
    divided, divisor = step.inputs
    root = graph.steps.get(divisor)
    if root is None or root.op.name != "root_eps":
        return
    eps: Matrix = root.params["eps"]
    square = root.inputs[0]
    source, centred = source_of(graph, divided)
    yield instead("not-square-rooted", step, lambda xp, a, v: xp.divide(a, xp.add(v, xp.enter(eps))), divided, square)
    if float(eps.values):
        yield instead("eps-outside-root", step, _eps_outside(eps), divided, square)
    yield instead("normalised-over-tokens", step, _normalised(eps, -2, centred), source)
    if centred:
        yield instead("not-centred", step, _normalised(eps, -1, False), source)
        yield instead("not-centred", step, divide.compute, source, divisor)


def _eps_outside(eps: Matrix) -> Any:
    return lambda xp, a, v: xp.divide(a, xp.add(xp.sqrt(v), xp.enter(eps)))


def _normalised(eps: Matrix, axis: int, centred: bool) -> Any:
    """The whole norm at once, along another axis or without the mean taken away."""

    def norm(xp: Arithmetic, a: Value) -> Value:
        moved = xp.subtract(a, mean(xp, a, axis)) if centred else a
        return xp.divide(moved, xp.sqrt(xp.add(mean_of_squares(xp, moved, axis), xp.enter(eps))))

    return norm


# A division in everything but its mistakes.
OP = divide.OP.changed(
    name="standardise",
    why=N_("Each {row} divided by its own spread: whatever its size was, it is about 1 now."),
    backward=(divide.gradient_a, gradient_divisor),
    mistakes=mistakes,
)
