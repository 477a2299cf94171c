"""What a mistake is, what the catalogue knows of it, and how the wrong calculation is written down."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from attncli.arithmetic import Value
from attncli.core.graph import Graph, Op, Params, Step, Swap, gradient_id, part_of
from attncli.core.message import N_
from attncli.core.record import Record
from attncli.ops.elementwise import IDENTITY

#: What is calculated instead, by step id.
Swaps: TypeAlias = Mapping[str, Swap]
#: (graph, step) -> what is calculated instead, in every way that people do it.
Made: TypeAlias = Callable[[Graph, Step], Iterable[Swaps]]
#: (graph, step, swap) -> the same mistake, made the same way, at other steps.
Alike: TypeAlias = Callable[[Graph, Step, Swaps], Swaps]

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


class Wording(Record):
    """What a mistake does, and where to look again, without the answer."""

    did: str
    look: str


class MistakeKind(Record):
    """A mistake of the catalogue: all that is known of it, in one place.

    Parameters
    ----------
    id : its name, a contract with whoever reads the marks
    seen : independent public threads or repositories it was found in
    did, look : what was done, and what to look at again, without giving the answer away
    at : names of the ops at whose steps it is made; "" for every step
    made, alike : what is calculated instead; the same at other steps. A slip of the pen is no calculation
    elsewhere : other words, by the kind of step it is made at (see `_kind`)
    rank : 0 a single wrong calculation; 1 another plan for several lines; 2 a slip of the pen, which teaches less
    vaguer_than : mistakes that say the same, only more exactly
    """

    id: str
    seen: int
    did: str
    look: str
    at: tuple[str, ...] = ()
    made: Made = lambda graph, step: ()
    alike: Alike = lambda graph, step, swap: _NOTHING
    elsewhere: Mapping[str, Wording] = _NOTHING
    rank: int = 0
    vaguer_than: frozenset[str] = frozenset()


# --- what is calculated instead ---------------------------------------------------------------------------------------


def instead(step: Step, compute: Callable[..., Value], *inputs: str, **params: Any) -> dict[str, Swap]:
    """At this step, `compute(arithmetic, *inputs, **params)`.

    Of more than one operation, it settles every line that a person writes down in between. Operands may all have one
    more axis in front, of sheets side by side: the result is then the stack of what each would come to.
    """
    return {step.id: Swap(Op("instead", "", compute, "", ""), inputs, params)}


def with_operands(step: Step, op: Op, inputs: Sequence[str], params: Params) -> dict[str, Swap]:
    """At this step, an op applied to other operands, or the other way round."""
    return {step.id: Swap(op, tuple(inputs), params)}


def passing(step: Step, source: str | None = None) -> dict[str, Swap]:
    """At this step, the numbers of `source` as they are; without one, those of the step's first operand."""
    return with_operands(step, IDENTITY, (source or step.inputs[0],), {})


def together(*swaps: Swaps) -> dict[str, Swap]:
    """Several steps done otherwise at once."""
    return {step_id: swap for one in swaps for step_id, swap in one.items()}


# --- where it is made -------------------------------------------------------------------------------------------------


def ways(found: Callable[[Graph, Step], tuple[Any, ...] | None], *wrong: Callable[..., Swaps]) -> Made:
    """Where `found` finds what the mistake needs, each of these ways to make it: `way(step, *what was found)`."""

    def made(graph: Graph, step: Step) -> Iterator[Swaps]:
        needed = found(graph, step)
        if needed is not None:
            yield from (way(step, *needed) for way in wrong)

    return made


def where(condition: Callable[[Step], object]) -> Callable[[Graph, Step], tuple[()] | None]:
    """For `ways`: the steps that meet a condition; nothing else is needed."""
    return lambda graph, step: () if condition(step) else None


#: For `ways`: every step of these ops.
anywhere = where(lambda step: True)


def steps_of(graph: Graph, *ops: str, using: str | None = None) -> Iterator[Step]:
    """The steps of these ops, in order; of those that use an array, if one is named."""
    for step in graph.steps.values():
        if step.op.name in ops and (using is None or using in step.inputs):
            yield step


def step_of(graph: Graph, step_id: str | None, *ops: str) -> Step | None:
    """The step of this id, where it is one of these ops."""
    step = graph.steps.get(step_id or "")
    return step if step is not None and step.op.name in ops else None


def source_of_softmax(graph: Graph, step_id: str) -> str | None:
    """What softmax was taken of, where this is its last line."""
    step = graph.steps.get(step_id)
    return None if step is None or step.composite is None else step.composite.source


def by_habit(wrong: Callable[[Step], Swaps], step: Step, others: Iterable[Step]) -> Iterator[Swaps]:
    """A mistake at one step, and before that at all of `others` alike, where it is one of several."""
    every = list(others)
    if len(every) > 1 and step in every:
        yield together(*map(wrong, every))
    yield wrong(step)


# --- the way back -----------------------------------------------------------------------------------------------------


def backward_of(graph: Graph, source: str, use: Step | None = None) -> Step | None:
    """The step of the gradient of `source`; of the path through `use`, where it is used more than once."""
    gradient = gradient_id(source)
    if use is not None:
        for mark in (use.id.removeprefix(part_of(use.id)), use.id.replace(".", "_")):
            if f"{gradient}_{mark}" in graph.steps:
                return graph.steps[f"{gradient}_{mark}"]
    return graph.steps.get(gradient)


def and_back(wrong: Callable[[Step], Swaps], *ops: str) -> Alike:
    """The same at the gradients of what the mistake was made with, where these are steps of such ops."""

    def alike(graph: Graph, step: Step, swap: Swaps) -> Swaps:
        made_at = [graph.steps[step_id] for step_id in swap] if step.phase == "forward" else []
        backs = [backward_of(graph, one.inputs[0], one) for one in made_at]
        return together(*(wrong(back) for back in backs if back is not None and back.op.name in ops))

    return alike


def value_of(graph: Graph, gradient: str) -> str | None:
    """The id whose gradient this is: A for G_A; None for what is no gradient."""
    part = part_of(gradient)
    name = gradient.removeprefix(part)
    value = part + name.removeprefix("G_")
    return value if name.startswith("G_") and value in graph else None
