"""A norm in the wrong place of a sublayer: every other way that people put f, LN and x together.

Post-norm is LN(x + f(x)), pre-norm x + f(LN(x)). Each is a mistake where the other is asked for; so are
x + LN(f(x)) and LN(x) + f(LN(x)) for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Swap
from attncli.names import part_of
from attncli.ops import Mistake, instead, pass_on, with_operands

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step

_ID = "norm-placement"

#: The first step of a norm: the mean of LayerNorm, the mean square of RMSNorm.
_FIRST = ("row_mean", "row_mean_square")


def misplaced(graph: Graph, step: Step) -> Iterator[Mistake]:
    """The other placements of the norm around the residual `step` = x + f."""
    x = step.inputs[0]
    users = [other for other in graph.steps.values() if other.phase == "forward" and other is not step]
    behind, before = _norm_of(graph, step.id), _norm_of(graph, x)
    if before is not None:  # pre-norm: that a norm follows too belongs to the next sublayer
        fed = [other for other in users if before.result in other.inputs and part_of(other.id) == part_of(step.id)]
        yield from _instead_of_pre(step, before, fed)
    elif behind is not None:
        fed = [other for other in users if x in other.inputs and part_of(other.id) == part_of(step.id)]
        yield from _instead_of_post(step, behind, fed)


def misplaced_before(graph: Graph, step: Step) -> Iterator[Mistake]:
    """The same placements, told at a step that the sublayer begins with: its rows are normalised, or not."""
    for other in graph.steps.values():
        if other.op.name == "residual" and part_of(other.id) == part_of(step.id):
            yield from (mistake for mistake in misplaced(graph, other) if step.id in mistake.swap)


class Norm:
    """The steps of one norm, which can be worked out for other rows."""

    def __init__(self, steps: list[Step], source: str) -> None:
        self.steps = steps
        self.source = source
        self.result = steps[-1].id
        own = {step.id for step in steps}
        self.others = tuple(dict.fromkeys(id for step in steps for id in step.inputs if id not in own and id != source))

    def of(self, xp: Arithmetic, rows: Value, others: tuple[Value, ...]) -> Value:
        """The norm of `rows`, with γ and β in `others`."""
        values: dict[str, Value] = {self.source: rows, **dict(zip(self.others, others, strict=True))}
        for step in self.steps:
            values[step.id] = step.op.compute(xp, *(values[id] for id in step.inputs), **step.params)
        return values[self.result]


def _norm_of(graph: Graph, source: str) -> Norm | None:
    """The norm that is taken of `source`."""
    for first in graph.steps.values():
        if first.op.name in _FIRST and first.inputs[0] == source:
            part = part_of(first.id)
            steps = [step for step in graph.steps.values() if step.phase == "forward" and part_of(step.id) == part]
            return Norm(steps, source) if part else None
    return None


def _instead_of_post(step: Step, norm: Norm, fed: list[Step]) -> Iterator[Mistake]:
    x, f = step.inputs
    through_norm = _swapped(fed, lambda other: _with_norm(other, x, norm))
    last = norm.steps[-1]
    plain = with_operands(_ID, last, pass_on.OP, (step.id,), {}).swap
    yield Mistake(_ID, {**through_norm, **plain})  # x + f(LN(x))
    # x + LN(f(x))
    yield Mistake(
        _ID,
        {
            **with_operands(_ID, step, pass_on.OP, (f,), {}).swap,
            **instead(_ID, last, lambda xp, a, b, *rest: xp.add(a, norm.of(xp, b, rest)), x, f, *norm.others).swap,
        },
    )
    # LN(x) + f(LN(x))
    added = instead(_ID, step, lambda xp, a, b, *rest: xp.add(norm.of(xp, a, rest), b), x, f, *norm.others).swap
    yield Mistake(_ID, {**through_norm, **added, **plain})


def _instead_of_pre(step: Step, norm: Norm, fed: list[Step]) -> Iterator[Mistake]:
    x, f = step.inputs
    bare = _swapped(
        fed,
        lambda other: with_operands(
            _ID, other, other.op, tuple(x if id == norm.result else id for id in other.inputs), other.params
        ),
    )
    # LN(x + f(x))
    whole = instead(_ID, step, lambda xp, a, b, *rest: norm.of(xp, xp.add(a, b), rest), x, f, *norm.others).swap
    yield Mistake(_ID, {**bare, **whole})
    # x + LN(f(x))
    inner = instead(_ID, step, lambda xp, a, b, *rest: xp.add(a, norm.of(xp, b, rest)), x, f, *norm.others).swap
    yield Mistake(_ID, {**bare, **inner})
    # LN(x) + f(LN(x))
    yield with_operands(_ID, step, step.op, (norm.result, f), step.params)


def _swapped(steps: list[Step], wrong: Callable[[Step], Mistake]) -> dict[str, Swap]:
    return {id: swap for step in steps for id, swap in wrong(step).swap.items()}


def _with_norm(step: Step, x: str, norm: Norm) -> Mistake:
    """The step with the norm of x where x belongs."""
    places = [i for i, id in enumerate(step.inputs) if id == x]
    count = len(step.inputs)

    def compute(xp: Arithmetic, *values: Any) -> Value:
        operands = list(values[:count])
        for place in places:
            operands[place] = norm.of(xp, operands[place], values[count:])
        return step.op.compute(xp, *operands, **step.params)

    return instead(_ID, step, compute, *step.inputs, *norm.others)
