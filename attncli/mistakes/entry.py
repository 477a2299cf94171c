"""What a mistake is, what the catalogue knows of it, and how the wrong calculation is written down."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Op, Params, Step, Swap, part_of
from attncli.core.matrix import as_matrix
from attncli.core.message import N_
from attncli.core.record import Record
from attncli.core.terms import Index, Term
from attncli.ops.elementwise import IDENTITY

#: What is calculated instead, by step id.
Swaps: TypeAlias = "Mapping[str, Swap]"

_NOTHING: Mapping[str, Any] = MappingProxyType({})


#: Of sums and means along the wrong lines, wherever they are taken.
LINES = N_("Look again at which way you added up: along a {row}, never down a {column}.")


class Mistake(Record):
    """A wrong calculation that stands in for a right one.

    Parameters
    ----------
    id : its name in the catalogue ("softmax-over-columns")
    swap : what is calculated instead, by step id; a complete mistake by itself
    alike : what the same learner calculates instead at other steps, because it is the same mistake made the same way
    """

    id: str
    swap: Swaps
    alike: Swaps = _NOTHING


class Words(Record):
    """What a mistake does, and where to look again, without the answer."""

    did: str
    look: str


class Entry(Record):
    """A mistake of the catalogue: all that is known of it, in one place.

    Parameters
    ----------
    id : its name, a contract with whoever reads the marks
    seen : independent public threads or repositories it was found in
    did, look : what was done, and what to look at again, without giving the answer away
    at : names of the ops at whose steps it is made; "" for every step
    made : (graph, step) -> what is calculated instead, in every way that people do it
    alike : (graph, step, swap) -> the same mistake, made the same way, at other steps
    elsewhere : other words, by the kind of step it is made at (see catalogue)
    rank : 0 a single wrong calculation; 1 another plan for several lines; 2 a slip of the pen, which teaches less
    vaguer_than : mistakes that say the same, only more exactly
    """

    id: str
    seen: int
    did: str
    look: str
    at: tuple[str, ...] = ()
    made: Callable[[Graph, Step], Iterator[Swaps]] | None = None
    alike: Callable[[Graph, Step, Swaps], Swaps] | None = None
    elsewhere: Mapping[str, Words] = _NOTHING
    rank: int = 0
    vaguer_than: frozenset[str] = frozenset()


def instead(step: Step, compute: Callable[..., Value], *inputs: str, **params: Any) -> dict[str, Swap]:
    """At this step, `compute(arithmetic, *inputs, **params)`.

    Of more than one operation, it settles every line that a person writes down in between. Operands may all have one
    more axis in front, of sheets side by side: the result is then the stack of what each would come to.
    """
    return {step.id: Swap(Op("instead", compute, "", "", _no_terms, ""), inputs, params)}


def with_operands(step: Step, op: Op, inputs: Sequence[str], params: Params) -> dict[str, Swap]:
    """At this step, an op applied to other operands, or the other way round."""
    return {step.id: Swap(op, tuple(inputs), params)}


def passing(step: Step, id: str) -> dict[str, Swap]:
    """At this step, the numbers of `id` as they are."""
    return with_operands(step, IDENTITY, (id,), {})


def together(*swaps: Swaps) -> dict[str, Swap]:
    """Several steps done otherwise at once."""
    return {id: swap for one in swaps for id, swap in one.items()}


def number(xp: Arithmetic, value: float) -> Value:
    """A plain number of the arithmetic."""
    return xp.constant(as_matrix(float(value)))


def backward_of(graph: Graph, id: str, use: Step | None = None) -> Step | None:
    """The step of the gradient of `id`; of the path through `use`, where `id` is used more than once."""
    part = part_of(id)
    gradient = f"{part}G_{id.removeprefix(part)}"
    if use is not None:
        for mark in (use.id.removeprefix(part_of(use.id)), use.id.replace(".", "_")):
            if f"{gradient}_{mark}" in graph.steps:
                return graph.steps[f"{gradient}_{mark}"]
    return graph.steps.get(gradient)


def value_of(graph: Graph, gradient: str) -> str | None:
    """The id whose gradient this is: A for G_A; None for what is no gradient."""
    part = part_of(gradient)
    name = gradient.removeprefix(part)
    value = part + name.removeprefix("G_")
    return value if name.startswith("G_") and value in graph else None


def _no_terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    return Term("text", "?")
