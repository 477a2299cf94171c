"""Other ways that are right too: another order that ends in the same place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.arithmetic.interval import Interval
from attncli.core.graph import Graph, Step, Swap, part_of
from attncli.matrix import as_matrix
from attncli.message import N_, Message
from attncli.ops import instead, pass_on, with_operands
from attncli.problems.written import Written
from attncli.record import Record

if TYPE_CHECKING:
    from attncli.marking.chain import Chain


class Route(Record):
    """Another right way: what is calculated instead, and a word on it.

    Parameters
    ----------
    id : its name in JSON
    swap : what is calculated instead, by step id
    after : what must have been calculated instead before, for this way to be open
    """

    id: str
    swap: dict[str, Swap]
    said: Message
    after: Mapping[str, Swap] = MappingProxyType({})

    def is_open(self, chain: Chain) -> bool:
        """Whether a chain has gone the way that this one goes on from."""
        return all(chain.swap.get(id) is swap for id, swap in self.after.items())


def routes(graph: Graph) -> Iterator[Route]:
    """The routes through the softmaxes, scales and masks of a graph."""
    for step in graph.steps.values():
        if step.phase != "forward":
            continue
        if step.op.name == "row_max":
            yield from _without_maximum(graph, step)
        elif step.op.name == "scale":
            yield from _queries_scaled(graph, step)
        elif step.op.name == "mask":
            yield from _mask_first(graph, step)


def _swaps(*mistakes: Any) -> dict[str, Swap]:
    return {id: swap for mistake in mistakes for id, swap in mistake.swap.items()}


def _without_maximum(graph: Graph, step: Step) -> Iterator[Route]:
    shifted = next(
        (other for other in graph.steps.values() if other.op.name == "subtract" and other.inputs[1] == step.id), None
    )
    if shifted is None:
        return
    source = shifted.inputs[0]
    zero = lambda xp, s: xp.enter(as_matrix(np.zeros((*s.shape[:-1], 1))))  # noqa: E731
    yield Route(
        "maximum-left-out",
        _swaps(instead("zero", step, zero, source)),
        Message(
            N_(
                "Right: you left out subtracting the maximum. The weights are the same; with large scores e^x would overflow."
            )
        ),
    )
    masked = graph.steps.get(source)
    if masked is not None and masked.op.name == "mask":
        yield Route(
            "maximum-before-mask",
            _swaps(with_operands("all", step, step.op, (masked.inputs[0],), {})),
            Message(
                N_(
                    "Right on paper: you took the maximum before masking. On a computer a large hidden score can then wipe out a {row}."
                )
            ),
        )
    whole = lambda xp, s: _spread_maximum(xp, s)  # noqa: E731
    yield Route(
        "one-maximum",
        _swaps(instead("whole", step, whole, source)),
        Message(
            N_("Right: you subtracted one maximum from the whole matrix. Any constant leaves the weights as they are.")
        ),
    )


def _spread_maximum(xp: Arithmetic, scores: Value) -> Value:
    """The maximum of the whole matrix, once a row."""
    top = xp.max(xp.swapaxes(xp.max(scores, -1), -1, -2), -1)
    return xp.repeat(top, scores.shape[-2], -2)


def _queries_scaled(graph: Graph, step: Step) -> Iterator[Route]:
    scores = graph.steps.get(step.inputs[0])
    if scores is None or scores.op.name != "product":
        return
    scaled_early = lambda xp, q, k: scores.op.compute(  # noqa: E731
        xp, xp.aside(step.op.compute(xp, q, **step.params)), k, **scores.params
    )
    early = Route(
        "query-scaled",
        _swaps(
            instead("early", scores, scaled_early, *scores.inputs),
            with_operands("late", step, pass_on.OP, step.inputs, {}),
        ),
        Message(N_("Right: you scaled before the product. A factor may go in at either place.")),
    )
    yield early
    yield from _queries_scaled_back(graph, step, scores, early)


def _queries_scaled_back(graph: Graph, step: Step, scores: Step, early: Route) -> Iterator[Route]:
    """The way back for scores that hold the factor already: it comes in behind them, at the queries."""
    part = part_of(scores.id)
    back = graph.steps.get(f"{part}G_{scores.id.removeprefix(part)}")
    if back is None or back.op is not step.op:
        return
    swaps = [with_operands("late", back, pass_on.OP, back.inputs, {})]
    query = scores.inputs[0]
    for after in graph.steps.values():
        if after.op.name != "product" or after.inputs[0] != back.id:
            continue

        def scaled_query(xp: Arithmetic, g: Value, q: Value, after: Step = after) -> Value:
            return after.op.compute(xp, g, xp.aside(step.op.compute(xp, q, **step.params)), **after.params)

        def scaled_result(xp: Arithmetic, g: Value, k: Value, after: Step = after) -> Value:
            return step.op.compute(xp, xp.aside(after.op.compute(xp, g, k, **after.params)), **step.params)

        swaps.append(
            instead("early", after, scaled_query if after.inputs[1] == query else scaled_result, *after.inputs)
        )
    said = Message(N_("Right: your scores were scaled already, so their gradient is this; the factor comes in at Q."))
    yield Route("query-scaled-back", _swaps(*swaps), said, {scores.id: early.swap[scores.id]})


def _mask_first(graph: Graph, step: Step) -> Iterator[Route]:
    scaled = graph.steps.get(step.inputs[0])
    mask = graph.inputs[step.inputs[1]].matrix.values
    if scaled is None or scaled.op.name != "scale" or not np.isin(mask, (0.0, -np.inf)).all():
        return
    early = lambda xp, s, m: scaled.op.compute(xp, xp.add(s, m), **scaled.params)  # noqa: E731
    yield Route(
        "mask-before-scale",
        _swaps(
            instead("early", scaled, early, scaled.inputs[0], step.inputs[1]),
            with_operands("late", step, pass_on.OP, (scaled.id,), {}),
        ),
        Message(N_("Right: you masked before scaling. −∞ stays −∞ whichever comes first.")),
    )


def constant(chain: Chain, id: str, written: Written, places: int) -> Message | None:
    """Another constant taken away from every visible score of a line: seen in the shifted scores, or in their e^x."""
    step = chain.graph.steps.get(id)
    if step is None or step.phase != "forward":
        return None
    stands = written.rounded_to(places)
    if step.op.name == "exp" and step.inputs[0] in chain.graph.steps and step.inputs[0] not in chain.given:
        shifted = chain.graph.steps[step.inputs[0]]
        if (written.values < 0).any():
            return None
        stands = Interval(np.log(np.maximum(stands.lo, 0.0)), np.log(stands.hi))
        hidden = written.values == 0
    else:
        shifted = step
        hidden = np.isneginf(written.values)
    if shifted.op.name != "subtract" or not shifted.params.get("column") or written.blank.any():
        return None
    source = chain.carried(shifted.inputs[0])
    visible = ~np.isneginf(source.hi)
    if (shifted is step and (hidden != ~visible).any()) or (~hidden & ~visible).any() or not visible.any(-1).all():
        return None
    if not np.isfinite(np.where(visible & ~hidden, written.values, 0.0)).all():
        return None
    lo = np.where(visible, source.lo - stands.hi, -np.inf).max(-1, keepdims=True)
    hi = np.where(visible, source.hi - stands.lo, np.inf).min(-1, keepdims=True)
    if not (lo <= hi).all():
        return None
    # A line with one visible score alone would agree with any number; some other line must show the constant.
    top = chain.raw(shifted.inputs[1])
    other = (lo > top.hi) | (hi < top.lo)
    several = visible.sum(-1, keepdims=True) > 1
    if not (other & several).any() and (several.any() or not other.all()):
        return None
    return Message(N_("Right: you took away a constant of your own. Any constant leaves the weights as they are."))
