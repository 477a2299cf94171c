"""What goes wrong on the way back, at any step: other numbers in a gradient's place, paths left out or counted twice; and
the residual connection, which is such a path: left out or doubled, forward or back."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from itertools import combinations

from attncli.arithmetic import Arithmetic, Value
from attncli.core.gradient import SUM_PATHS
from attncli.core.graph import Graph, Step, Swap
from attncli.core.matrix import as_matrix
from attncli.core.message import N_
from attncli.mistakes.mistake import (
    LINES,
    Made,
    MistakeKind,
    Swaps,
    anywhere,
    backward_of,
    instead,
    passing,
    step_of,
    value_of,
    ways,
    where,
    with_operands,
)
from attncli.ops.elementwise import SCALE, numeral

_BACK = N_("Look again at the way back: what arrives, and which forward values it is multiplied by.")
_PATHS = N_("Look again at every place this matrix is used: each sends a gradient back, and all are added.")
_RESIDUAL = N_("Look again at the residual connection: X + F, and its gradient goes both ways in full.")
_SOFTMAX = N_("Look again at softmax's rule: weight times (gradient minus the {row}'s average).")


# --- any gradient -----------------------------------------------------------------------------------------------------


def _value_for_gradient(graph: Graph, step: Step) -> Iterator[Swaps]:
    """A forward value where its gradient belongs: A for G_A."""
    if step.phase != "backward":
        return
    for position, source in enumerate(step.inputs):
        value = value_of(graph, source)
        if value is not None and graph.shape(value) == graph.shape(source):
            operands = (*step.inputs[:position], value, *step.inputs[position + 1 :])
            yield with_operands(step, step.op, operands, step.params)


def _others(graph: Graph, step: Step) -> Iterator[Step]:
    """The gradients of the other matrices of the same kind: G_K for G_Q, G_W_V for G_W_Q, G_X_K for G_X_Q."""
    kind = _KIND.fullmatch(step.id) if step.phase == "backward" else None
    if kind is None:
        return
    for name in "QKV":
        for of in _OF_HEADS:
            other = graph.steps.get(f"{kind['start']}{name}{of}")
            if other is not None and other is not step and other.op is step.op:
                yield other


def _exchanged(graph: Graph, step: Step) -> Iterator[Swaps]:
    for other in _others(graph, step):
        yield with_operands(step, other.op, other.inputs, other.params)


def _exchanged_too(graph: Graph, step: Step, swap: Swaps) -> Swaps:
    """The other one of the two, where it comes later: who has exchanged them has them both wrong."""
    taken = next(other for other in _others(graph, step) if other.inputs == swap[step.id].inputs)
    order = list(graph.steps)
    is_later = order.index(taken.id) > order.index(step.id)
    return with_operands(taken, step.op, step.inputs, step.params) if is_later else {}


#: What a projection is called on its way through the heads.
_OF_HEADS = ("", "_heads", "_shared", "_all", "_rotated")

#: A gradient's id with the projection it belongs to: self.G_W_Q, G_K_heads.
_KIND = re.compile(rf"(?P<start>(?:.*\.)?G_(?:[A-Z]+_)?)[QKV](?:{'|'.join(_OF_HEADS)})")


def _mean_of_rows(graph: Graph, step: Step) -> Iterator[Swaps]:
    if graph.shape(step.inputs[0])[-2] > 1:
        yield instead(step, _mean_down, step.inputs[0])


def _mean_down(xp: Arithmetic, a: Value) -> Value:
    return xp.divide(xp.round_step(xp.sum(a, -2)), numeral(xp, a.shape[-2]))


# --- through softmax --------------------------------------------------------------------------------------------------


def _rule(graph: Graph, step: Step) -> tuple[str, str, str, str] | None:
    """For `ways`, where softmax's rule A ⊙ (G_A − r) ends: a, g, the difference d, and r; None at another product."""
    deviation = step_of(graph, step.inputs[1], "subtract") if step.phase == "backward" else None
    return None if deviation is None else (step.inputs[0], deviation.inputs[0], deviation.id, deviation.inputs[1])


def _from(operands: str, compute: Callable[..., Value]) -> Callable[..., Swaps]:
    """For `ways`: calculated so from some of a, g, d and r."""
    return lambda step, *rule: instead(step, compute, *(rule["agdr".index(one)] for one in operands))


def _deviates(step: Step) -> bool:
    """G_A − r, the line before."""
    return step.phase == "backward" and step.op.name == "subtract" and bool(step.params.get("column"))


def _slopes_times(xp: Arithmetic, a: Value, g: Value) -> Value:
    """Only the diagonal of the Jacobian: a (1 − a) g."""
    return xp.multiply(_share(xp, a, _rest(xp, a)), g)


def _weighted_times_rest(xp: Arithmetic, a: Value, g: Value) -> Value:
    """The same from a g, which stands on the page already."""
    return xp.multiply(_share(xp, a, g), _rest(xp, a))


def _share(xp: Arithmetic, a: Value, other: Value) -> Value:
    return xp.round_step(xp.multiply(a, other))


def _rest(xp: Arithmetic, a: Value) -> Value:
    return xp.round_step(xp.subtract(numeral(xp, 1.0), a))


def _weighted(xp: Arithmetic, a: Value, g: Value) -> Value:
    return xp.multiply(a, g)


def _turned_round(xp: Arithmetic, a: Value, g: Value, r: Value) -> Value:
    return xp.multiply(a, xp.round_step(xp.subtract(r, g)))


def _once_more(xp: Arithmetic, a: Value, d: Value, factor: Value) -> Value:
    """What the rule comes to, multiplied once more."""
    return xp.multiply(_share(xp, a, d), factor)


def _either(*made: Made) -> Made:
    """A mistake that is made at steps of several kinds."""
    return lambda graph, step: (swap for one in made for swap in one(graph, step))


def _average_taken_down(graph: Graph, step: Step) -> Iterator[Swaps]:
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


def without(joined: Step | None, left_out: Collection[str]) -> dict[str, Swap]:
    """At a sum of paths, the sum of the others, where there are any of either."""
    paths = () if joined is None or joined.op is not SUM_PATHS else joined.inputs
    kept = tuple(path for path in paths if path not in left_out)
    return sum_of(joined, kept) if joined is not None and 0 < len(kept) < len(paths) else {}


# --- the way past a sublayer ------------------------------------------------------------------------------------------


def _no_way_back(graph: Graph, step: Step, swap: Swaps) -> Swaps:
    """Without a way past on the way forward, none on the way back."""
    joined, past = backward_of(graph, step.inputs[0]), backward_of(graph, step.inputs[0], step)
    if past is None:
        return {}
    if joined is not None and joined.op is SUM_PATHS:
        return without(joined, [past.id])
    return with_operands(past, SCALE, past.inputs[:1], {"factor": as_matrix(0.0)})


def _twice_back(graph: Graph, step: Step, swap: Swaps) -> Swaps:
    through = backward_of(graph, step.inputs[1], step)
    twice = {} if through is None else sum_of(through, through.inputs[:1] * 2)
    return {**_no_way_back(graph, step, swap), **twice}


def _past_missing(graph: Graph, step: Step) -> Iterator[Swaps]:
    for path in step.inputs if len(step.inputs) > 1 else ():
        if _goes_past(graph, path):
            yield without(step, [path])


def _goes_past(graph: Graph, path: str) -> bool:
    """Whether a path is the one past a sublayer: a residual's gradient, handed on as it is."""
    step = step_of(graph, path, "identity")
    return step is not None and step_of(graph, value_of(graph, step.inputs[0]), "residual") is not None


MISTAKES = (
    MistakeKind("residual-missing", 0, N_("You left out what went in: the sublayer's output is added to its input."), _RESIDUAL, ("residual",), ways(anywhere, lambda step: passing(step, step.inputs[1])), _no_way_back),
    MistakeKind("residual-doubled", 1, N_("You added the sublayer's output to itself. It is added to what went in."), _RESIDUAL, ("residual",), ways(anywhere, lambda step: with_operands(step, step.op, step.inputs[1:] * 2, {})), _twice_back),
    MistakeKind("residual-path-missing", 2, N_("You left out the gradient that goes past the sublayer."), _RESIDUAL, ("sum_paths",), _past_missing),
    MistakeKind("value-for-gradient", 1, N_("You used a forward value where its gradient belongs."), _BACK, ("",), _value_for_gradient),
    MistakeKind("gradients-swapped", 1, N_("This is the gradient of another matrix: two were swapped."), _BACK, ("",), _exchanged, _exchanged_too),
    MistakeKind("softmax-passed-through", 1, N_("You passed the gradient straight through softmax."), _SOFTMAX, ("multiply",), ways(_rule, lambda step, a, g, d, r: passing(step, g))),
    MistakeKind("softmax-diagonal-only", 4, N_("You used only the diagonal, a(1 − a). Raising one weight also lowers the others in its {row}."), _SOFTMAX, ("multiply",), ways(_rule, _from("ag", _slopes_times), _from("ag", _weighted_times_rest))),
    MistakeKind("row-dot-missing", 3, N_("You did not take the {row}'s average away from the gradient. Weights share a total of 1: what one gains, the others lose."), _SOFTMAX, ("multiply", "subtract"), _either(ways(where(_deviates), passing), ways(_rule, _from("ag", _weighted)))),
    MistakeKind("softmax-sign", 1, N_("The difference has the wrong sign: it is the gradient minus the average."), N_("Look again at the order of the subtraction."), ("multiply", "subtract"), _either(ways(where(_deviates), lambda step: with_operands(step, step.op, step.inputs[::-1], step.params)), ways(_rule, _from("agr", _turned_round)))),
    MistakeKind("row-dot-over-columns", 0, N_("You added up in the wrong direction."), LINES, ("row_sum",), _average_taken_down),
    MistakeKind("upstream-twice", 2, N_("You multiplied once more than the rule says."), _BACK, ("multiply",), ways(_rule, _from("adg", _once_more), _from("ada", _once_more))),
    MistakeKind("path-missing", 3, N_("A path is missing from the sum."), _PATHS, ("sum_paths",), _path_missing, vaguer_than=frozenset({"residual-path-missing", "norm-paths-missing", "output-head-missing"})),
    MistakeKind("path-twice", 3, N_("A path is counted twice in the sum."), N_("Look again at every place this matrix is used: each counts once."), ("sum_paths",), _path_twice),
    MistakeKind("mean-for-sum", 1, N_("You took the mean over the {rows}. It is their sum: every {row} used the same numbers."), N_("Look again at how the {rows} are put together: they are added, not averaged."), ("column_sum",), _mean_of_rows),
)  # fmt: skip
