"""A running mean that began at 0, corrected for that: divided by 1 − βᵗ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op
from attncli.message import N_
from attncli.ops import Mistake, at, fixed, pass_on, with_operands
from attncli.terms import Index, Term

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step, Swap


def compute(xp: Arithmetic, a: Value, correction: Value) -> Value:
    """a / correction: a (i j), correction (1 1)."""
    return xp.divide(a, correction)


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    a, correction = step.inputs
    return Term("quotient", at(values, a, index), at(values, correction, (0, 0)))


def mistakes(graph: Graph, step: Step) -> Iterator[Mistake]:
    """The running mean left as it is: here, or by habit in both of a parameter's means."""
    both: dict[str, Swap] = {}
    for after in graph.steps.values():
        if after.op.name == "adam_update" and step.id in after.inputs:
            for one in (graph.steps[id] for id in after.inputs[1:]):
                both |= _left(one).swap
    if len(both) > 1:
        yield Mistake(_ID, both)
    yield _left(step)


def _left(step: Step) -> Mistake:
    return with_operands(_ID, step, pass_on.OP, step.inputs[:1], {})


_ID = "no-bias-correction"

OP = Op(
    name="unbiased",
    compute=compute,
    axes="i j, 1 1 -> i j",
    formula=fixed(r"\frac{{{0}}}{{{1}}}"),
    terms=terms,
    why=N_("The running mean began at 0 and is too small at first; this makes up for it."),
    mistakes=mistakes,
)
