"""What goes wrong on the way back, at any step: other numbers in a gradient's place, paths left out or counted twice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import reduce
from itertools import combinations

from attncli.arithmetic import Arithmetic, Value
from attncli.core.gradient import SUM_PATHS
from attncli.core.graph import Graph, Step, Swap
from attncli.core.message import N_
from attncli.mistakes.entry import LINES, Entry, Swaps, instead, number, passing, value_of, with_operands

_BACK = N_("Look again at the way back: what arrives, and which forward values it is multiplied by.")
_PATHS = N_("Look again at every place this matrix is used: each sends a gradient back, and all are added.")
_RULE = N_("Look again at softmax's rule: weight times (gradient minus the {row}'s average).")


# --- any gradient -----------------------------------------------------------------------------------------------------


def _value_for_gradient(graph: Graph, step: Step) -> Iterator[Swaps]:
    """A forward value where its gradient belongs: A for G_A."""
    if step.phase != "backward":
        return
    for position, id in enumerate(step.inputs):
        value = value_of(graph, id)
        if value is not None and graph.shape(value) == graph.shape(id):
            operands = (*step.inputs[:position], value, *step.inputs[position + 1 :])
            yield with_operands(step, step.op, operands, step.params)


def _exchanged(graph: Graph, step: Step) -> Iterator[Swaps]:
    """Another matrix's gradient of the same kind: G_Q and G_K, G_W_Q and G_W_V, G_X_Q and G_X_K."""
    kind = _KIND.fullmatch(step.id) if step.phase == "backward" else None
    if kind is None:
        return
    for name in "QKV":
        for of in _OF_HEADS:
            other = graph.steps.get(f"{kind['start']}{name}{of}")
            if other is not None and other is not step and other.op is step.op:
                yield with_operands(step, other.op, other.inputs, other.params)


#: What a projection is called on its way through the heads.
_OF_HEADS = ("", "_heads", "_shared", "_all", "_rotated")

#: A gradient's id with the projection it belongs to: self.G_W_Q, G_K_heads.
_KIND = re.compile(r"(?P<start>(?:.*\.)?G_(?:[A-Z]+_)?)[QKV](?:_heads|_shared|_all|_rotated)?")


def _mean_of_rows(graph: Graph, step: Step) -> Iterator[Swaps]:
    rows = graph.shape(step.inputs[0])[-2]
    if rows > 1:
        yield instead(step, lambda xp, a: xp.divide(xp.round_step(xp.sum(a, -2)), number(xp, rows)), step.inputs[0])


# --- through softmax --------------------------------------------------------------------------------------------------


def _rule_of_softmax(graph: Graph, step: Step) -> tuple[str, str, str] | None:
    """Of A ⊙ (G_A − r): A, G_A and r; None where the step is another product."""
    if step.phase != "backward" or step.op.name != "multiply":
        return None
    deviation = graph.steps.get(step.inputs[1])
    if deviation is None or deviation.op.name != "subtract":
        return None
    upstream, average = deviation.inputs
    return step.inputs[0], upstream, average


def _passed_through(graph: Graph, step: Step) -> Iterator[Swaps]:
    rule = _rule_of_softmax(graph, step)
    if rule is not None:
        yield passing(step, rule[1])


def _diagonal_only(graph: Graph, step: Step) -> Iterator[Swaps]:
    rule = _rule_of_softmax(graph, step)
    if rule is not None:
        yield instead(step, _slopes_times, *rule[:2])
        yield instead(step, _weighted_times_rest, *rule[:2])


def _slopes_times(xp: Arithmetic, weights: Value, upstream: Value) -> Value:
    """Only the diagonal of the Jacobian: a (1 − a) g."""
    return xp.multiply(xp.round_step(xp.multiply(weights, _rest(xp, weights))), upstream)


def _weighted_times_rest(xp: Arithmetic, weights: Value, upstream: Value) -> Value:
    """The same from a g, which stands on the page already."""
    return xp.multiply(xp.round_step(xp.multiply(weights, upstream)), _rest(xp, weights))


def _rest(xp: Arithmetic, weights: Value) -> Value:
    return xp.round_step(xp.subtract(number(xp, 1.0), weights))


def _average_missing(graph: Graph, step: Step) -> Iterator[Swaps]:
    if step.phase == "backward" and step.op.name == "subtract" and step.params.get("column"):
        yield passing(step, step.inputs[0])
    rule = _rule_of_softmax(graph, step)
    if rule is not None:
        yield instead(step, lambda xp, a, g: xp.multiply(a, g), *rule[:2])


def _sign_of_softmax(graph: Graph, step: Step) -> Iterator[Swaps]:
    if step.phase == "backward" and step.op.name == "subtract" and step.params.get("column"):
        yield instead(step, lambda xp, a, b: xp.subtract(b, a), *step.inputs)
    rule = _rule_of_softmax(graph, step)
    if rule is not None:
        yield instead(step, lambda xp, a, g, r: xp.multiply(a, xp.round_step(xp.subtract(r, g))), *rule)


def _once_more(graph: Graph, step: Step) -> Iterator[Swaps]:
    rule = _rule_of_softmax(graph, step)
    if rule is not None:
        weights, upstream, _ = rule
        for factor in (upstream, weights):
            yield instead(
                step, lambda xp, a, d, m: xp.multiply(xp.round_step(xp.multiply(a, d)), m), *step.inputs, factor
            )


def _over_columns(graph: Graph, step: Step) -> Iterator[Swaps]:
    source = graph.steps.get(step.inputs[0])
    if step.phase == "backward" or (source is not None and source.phase == "backward"):
        yield instead(step, lambda xp, a: xp.swapaxes(xp.sum(a, -2), -1, -2), step.inputs[0])


# --- sums of paths ----------------------------------------------------------------------------------------------------


def sum_of(step: Step, paths: tuple[str, ...]) -> dict[str, Swap]:
    """At this step, the sum of these paths."""
    return passing(step, *paths) if len(paths) == 1 else with_operands(step, SUM_PATHS, paths, {"count": len(paths)})


def _path_missing(graph: Graph, step: Step) -> Iterator[Swaps]:
    """A path or two left out, or all but one."""
    paths = step.inputs
    for missing in sorted({1, 2, len(paths) - 1}):
        for kept in combinations(paths, len(paths) - missing):
            if kept:
                yield sum_of(step, kept)


def _path_twice(graph: Graph, step: Step) -> Iterator[Swaps]:
    for path in step.inputs:
        yield sum_of(step, (*step.inputs, path))


def straight_through(xp: Arithmetic, arriving: Value, divisor: Value, *others: Value) -> Value:
    return reduce(
        xp.add, others, xp.round_step(xp.divide(arriving, divisor)) if others else xp.divide(arriving, divisor)
    )


ENTRIES = (
    Entry("value-for-gradient", 1, N_("You used a forward value where its gradient belongs."), _BACK, ("",), _value_for_gradient),
    Entry("gradients-swapped", 1, N_("This is another matrix's gradient: two were exchanged."), _BACK, ("",), _exchanged),
    Entry("softmax-passed-through", 1, N_("You passed the gradient straight through softmax."), _RULE, ("multiply",), _passed_through),
    Entry("softmax-diagonal-only", 4, N_("You used only the diagonal, a(1 − a). Raising one weight also lowers the others in its {row}."), _RULE, ("multiply",), _diagonal_only),
    Entry("row-dot-missing", 3, N_("You did not take the {row}'s average away from the gradient. Weights share a total of 1: what one gains, the others lose."), _RULE, ("multiply", "subtract"), _average_missing),
    Entry("softmax-sign", 1, N_("The difference has the wrong sign: it is the gradient minus the average."), N_("Look again at the order of the subtraction."), ("multiply", "subtract"), _sign_of_softmax),
    Entry("row-dot-over-columns", 0, N_("You added up along the wrong lines."), LINES, ("row_sum",), _over_columns),
    Entry("upstream-twice", 2, N_("You multiplied once more than the rule says."), _BACK, ("multiply",), _once_more),
    Entry("path-missing", 3, N_("A path is missing from the sum."), _PATHS, ("sum_paths",), _path_missing, vaguer_than=frozenset({"residual-path-missing", "norm-paths-missing", "output-head-missing"})),
    Entry("path-twice", 3, N_("A path is counted twice in the sum."), N_("Look again at every place this matrix is used: each counts once."), ("sum_paths",), _path_twice),
    Entry("mean-for-sum", 1, N_("You took the mean over the {rows}. It is their sum: every {row} used the same numbers."), N_("Look again at how the {rows} are put together: they are added, not averaged."), ("column_sum",), _mean_of_rows),
)  # fmt: skip
