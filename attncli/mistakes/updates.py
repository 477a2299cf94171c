"""One step of training: uphill, or with means that nobody corrected."""

from __future__ import annotations

from collections.abc import Iterator

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Step, Swap
from attncli.core.message import N_
from attncli.mistakes.entry import Entry, Swaps, instead, passing, together, with_operands


def _uphill(graph: Graph, step: Step) -> Iterator[Swaps]:
    eta = step.params["eta"]
    if step.op.name == "update":
        yield instead(step, lambda xp, a, g: xp.add(a, xp.round_step(xp.multiply(xp.constant(eta), g))), *step.inputs)
        return
    eps = step.params["eps"]

    def added(xp: Arithmetic, a: Value, mean: Value, square: Value) -> Value:
        size = xp.round_step(xp.add(xp.round_step(xp.sqrt(square)), xp.constant(eps)))
        return xp.add(a, xp.round_step(xp.multiply(xp.constant(eta), xp.round_step(xp.divide(mean, size)))))

    yield instead(step, added, *step.inputs)


def _uncorrected(graph: Graph, step: Step) -> Iterator[Swaps]:
    """The running mean left as it is: here, or by habit in both of a parameter's means."""
    if step.op.name == "adam_update":
        means = [graph.steps.get(id) for id in step.inputs[1:]]
        if all(one is not None and one.op.name == "unbiased" for one in means):
            bare = [one.inputs[0] for one in means if one is not None]
            yield with_operands(step, step.op, (step.inputs[0], *bare), step.params)
        return
    both: dict[str, Swap] = {}
    for after in graph.steps.values():
        if after.op.name == "adam_update" and step.id in after.inputs:
            both |= together(*(passing(graph.steps[id], graph.steps[id].inputs[0]) for id in after.inputs[1:]))
    if len(both) > 1:
        yield both
    yield passing(step, step.inputs[0])


ENTRIES = (
    Entry("no-bias-correction", 0, N_("You left out Adam's correction: m and v began at 0 and are too small at first, so they are divided by 1 − βᵗ."), N_("Look again at what Adam divides by 1 − βᵗ before its step."), ("unbiased", "adam_update"), _uncorrected),
    Entry("update-sign", 0, N_("You took a step uphill: it has to be subtracted, not added."), N_("Look again at the sign of the step: against the gradient."), ("update", "adam_update"), _uphill),
)  # fmt: skip
