"""Another logarithm, another number that it is taken of, or another share of the mean."""

from __future__ import annotations

from collections.abc import Iterator

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Step, Swap
from attncli.message import N_
from attncli.mistakes.entry import Entry, Swaps, instead, number, passing, together
from attncli.ops import negative_log

_MEAN = N_("Look again at what the loss is a mean over.")

#: Other bases that a logarithm is taken to: of bits, and of a calculator's key “log”.
_BASES = (2.0, 10.0)


def _other_log(graph: Graph, step: Step) -> Iterator[Swaps]:
    for base in _BASES:

        def to_base(xp: Arithmetic, *operands: Value, base: float = base) -> Value:
            return xp.divide(step.op.compute(xp, *operands, **step.params), xp.log(number(xp, base)))

        yield instead(step, to_base, *step.inputs)


def _of_logit(graph: Graph, step: Step) -> Iterator[Swaps]:
    """−ln of the target's logit in place of its probability; or the logit itself, with its sign or without."""
    picked = graph.steps.get(step.inputs[0])
    probabilities = graph.steps.get(picked.inputs[0]) if picked is not None and picked.op.name == "pick" else None
    if picked is None or probabilities is None or probabilities.closed is None:
        return

    def logit(xp: Arithmetic, logits: Value, y: Value) -> Value:
        return picked.op.compute(xp, logits, y, **picked.params)

    operands = (probabilities.closed.source, *picked.inputs[1:])
    yield instead(step, lambda xp, z, y: negative_log.compute(xp, xp.settle(logit(xp, z, y))), *operands)
    yield instead(step, lambda xp, z, y: xp.subtract(number(xp, 0.0), logit(xp, z, y)), *operands)
    yield instead(step, logit, *operands)


# --- the mean over the tokens -----------------------------------------------------------------------------------------


def _mean_of_loss(graph: Graph) -> Step | None:
    """The step of the loss, where it is a mean of several."""
    for step in graph.steps.values():
        if step.op.name == "average" and step.params["mean"] and graph.shape(step.inputs[0])[-2] > 1:
            return step
    return None


def _shares(graph: Graph) -> list[Step]:
    return [step for step in graph.steps.values() if step.op.name == "batch_share"]


def _summed(step: Step) -> dict[str, Swap]:
    return instead(step, lambda xp, a: xp.sum(a, -2), step.inputs[0])


def _not_shared(graph: Graph, step: Step) -> Iterator[Swaps]:
    """Added up, and not divided by how many there are."""
    if step.op.name == "batch_share":
        yield passing(step, step.inputs[0])
    elif step is _mean_of_loss(graph):
        yield _summed(step)


def _not_shared_alike(graph: Graph, step: Step, swap: Swaps) -> Swaps:
    loss = _mean_of_loss(graph)
    if step.op.name == "average":
        return together(*(passing(share, share.inputs[0]) for share in _shares(graph)))
    return {} if loss is None else _summed(loss)


def _shared_twice(graph: Graph, step: Step) -> Iterator[Swaps]:
    """Divided by how many there are, and once more."""
    if step.op.name == "batch_share" or step is _mean_of_loss(graph):
        yield _twice(graph, step)


def _twice(graph: Graph, step: Step) -> dict[str, Swap]:
    count = step.params["count"] if step.op.name == "batch_share" else graph.shape(step.inputs[0])[-2]

    def again(xp: Arithmetic, a: Value) -> Value:
        return xp.divide(xp.settle(step.op.compute(xp, a, **step.params)), number(xp, count))

    return instead(step, again, step.inputs[0])


def _shared_twice_alike(graph: Graph, step: Step, swap: Swaps) -> Swaps:
    loss = _mean_of_loss(graph)
    if step.op.name == "average":
        return together(*(_twice(graph, share) for share in _shares(graph)))
    return {} if loss is None else _twice(graph, loss)


ENTRIES = (
    Entry("log-base", 0, N_("You took a logarithm to another base. The loss uses the natural one, ln."), N_("Look again at the logarithm: ln, to the base e; log₂ and log₁₀ are other numbers."), ("negative_log", "log_loss"), _other_log),
    Entry("loss-of-logit", 2, N_("You took the logit for the probability. The loss is −ln of what softmax makes of it."), N_("Look again at what the logarithm is taken of: a probability, between 0 and 1."), ("negative_log",), _of_logit),
    Entry("batch-factor-missing", 1, N_("You forgot to divide by the number of tokens: the loss is their mean, so each has 1/N of it, and of the gradient."), _MEAN, ("average", "batch_share"), _not_shared, _not_shared_alike),
    Entry("mean-taken-twice", 1, N_("You divided by the number of tokens twice. The mean takes 1/N once, and so does its gradient."), _MEAN, ("average", "batch_share"), _shared_twice, _shared_twice_alike),
)  # fmt: skip
