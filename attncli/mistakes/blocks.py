"""The residual connection left out or doubled, and the norm in another place of its sublayer.

Post-norm is LN(x + f(x)), pre-norm x + f(LN(x)). Each is a mistake where the other is asked for; so are
x + LN(f(x)) and LN(x) + f(LN(x)) for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Step, Swap, part_of
from attncli.core.message import N_
from attncli.mistakes.gradients import sum_of
from attncli.mistakes.mistake import (
    MistakeKind,
    Swaps,
    backward_of,
    instead,
    passing,
    steps_of,
    together,
    value_of,
    with_operands,
)
from attncli.ops.elementwise import numeral

_RESIDUAL = N_("Look again at the residual connection: X + F, and its gradient goes both ways in full.")


# --- the way past -----------------------------------------------------------------------------------------------------


def _left_out(graph: Graph, step: Step) -> Iterator[Swaps]:
    yield passing(step, step.inputs[1])


def _doubled(graph: Graph, step: Step) -> Iterator[Swaps]:
    yield instead(step, lambda xp, f: xp.add(f, f), step.inputs[1])


def _no_way_back(graph: Graph, step: Step, swap: Swaps) -> Swaps:
    """Without a way past on the way forward, none on the way back."""
    joined, past = backward_of(graph, step.inputs[0]), backward_of(graph, step.inputs[0], step)
    if joined is None or joined.op.name != "sum_paths":
        return {} if past is None else instead(past, lambda xp, g: xp.multiply(g, numeral(xp, 0.0)), past.inputs[0])
    kept = tuple(path for path in joined.inputs if past is None or path != past.id)
    return sum_of(joined, kept) if 0 < len(kept) < len(joined.inputs) else {}


def _twice_back(graph: Graph, step: Step, swap: Swaps) -> Swaps:
    through = backward_of(graph, step.inputs[1], step)
    twice = {} if through is None else instead(through, lambda xp, g: xp.add(g, g), through.inputs[0])
    return {**_no_way_back(graph, step, swap), **twice}


def _past_missing(graph: Graph, step: Step) -> Iterator[Swaps]:
    for path in step.inputs:
        kept = tuple(other for other in step.inputs if other != path)
        if kept and _goes_past(graph, path):
            yield sum_of(step, kept)


def _goes_past(graph: Graph, path: str) -> bool:
    """Whether a path is the one past a sublayer: a residual's gradient, handed on as it is."""
    step = graph.steps[path]
    past = graph.steps.get(value_of(graph, step.inputs[0]) or "") if step.op.name == "identity" else None
    return past is not None and past.op.name == "residual"


# --- the norm in another place ----------------------------------------------------------------------------------------


def _placed(graph: Graph, step: Step) -> Iterator[Swaps]:
    """Told at the residual, and at the steps that its sublayer begins with: their rows are normalised, or not."""
    if step.op.name == "residual":
        residuals = [step]
    elif step.phase == "forward" and step.inputs[1].removeprefix(part_of(step.inputs[1])).startswith("W_"):
        part = part_of(step.id)
        residuals = [other for other in steps_of(graph, "residual") if part_of(other.id) == part]
    else:
        return
    for residual in residuals:
        yield from (swap for swap in _misplaced(graph, residual) if step.id in swap)


def _misplaced(graph: Graph, step: Step) -> Iterator[Swaps]:
    """The other placements of the norm around the residual `step` = x + f."""
    x = step.inputs[0]
    part = part_of(step.id)
    beside = [s for s in graph.steps.values() if s.phase == "forward" and s is not step and part_of(s.id) == part]
    behind, before = _norm_of(graph, step.id), _norm_of(graph, x)
    if before is not None:  # pre-norm: that a norm follows too belongs to the next sublayer
        yield from _instead_of_pre(step, before, [other for other in beside if before.result in other.inputs])
    elif behind is not None:
        yield from _instead_of_post(step, behind, [other for other in beside if x in other.inputs])


class Norm:
    """The steps of one norm, which can be worked out for other rows."""

    def __init__(self, steps: list[Step], source: str) -> None:
        self.steps = steps
        self.source = source
        self.result = steps[-1].id
        own = {step.id for step in steps}
        self.others = tuple(
            dict.fromkeys(operand for step in steps for operand in step.inputs if operand not in {*own, source})
        )

    def of(self, xp: Arithmetic, rows: Value, others: tuple[Value, ...]) -> Value:
        """The norm of `rows`, line by line, with γ and β in `others`."""
        values: dict[str, Value] = {self.source: rows, **dict(zip(self.others, others, strict=True))}
        for step in self.steps:
            values[step.id] = xp.round_step(
                step.op.compute(xp, *(values[operand] for operand in step.inputs), **step.params)
            )
        return values[self.result]


def _norm_of(graph: Graph, source: str) -> Norm | None:
    """The norm that is taken of `source`."""
    # It begins with the mean of LayerNorm, or with the mean square of RMSNorm.
    for first in steps_of(graph, "row_mean", "row_mean_square", using=source):
        part = part_of(first.id)
        steps = [step for step in graph.steps.values() if step.phase == "forward" and part_of(step.id) == part]
        return Norm(steps, source) if part else None
    return None


def _instead_of_post(step: Step, norm: Norm, fed: list[Step]) -> Iterator[Swaps]:
    x, f = step.inputs
    through_norm = together(*(_with_norm(other, x, norm) for other in fed))
    last = norm.steps[-1]
    plain = passing(last, step.id)
    yield {**through_norm, **plain}  # x + f(LN(x))
    # x + LN(f(x))
    around = instead(last, lambda xp, a, b, *rest: xp.add(a, norm.of(xp, b, rest)), x, f, *norm.others)
    yield {**passing(step, f), **around}
    # LN(x) + f(LN(x))
    added = instead(step, lambda xp, a, b, *rest: xp.add(norm.of(xp, a, rest), b), x, f, *norm.others)
    yield {**through_norm, **added, **plain}


def _instead_of_pre(step: Step, norm: Norm, fed: list[Step]) -> Iterator[Swaps]:
    x, f = step.inputs
    bare = together(
        *(
            with_operands(
                other, other.op, [x if source == norm.result else source for source in other.inputs], other.params
            )
            for other in fed
        )
    )
    # LN(x + f(x))
    whole = instead(step, lambda xp, a, b, *rest: norm.of(xp, xp.round_step(xp.add(a, b)), rest), x, f, *norm.others)
    yield {**bare, **whole}
    # x + LN(f(x))
    inner = instead(step, lambda xp, a, b, *rest: xp.add(a, norm.of(xp, b, rest)), x, f, *norm.others)
    yield {**bare, **inner}
    # LN(x) + f(LN(x))
    yield with_operands(step, step.op, (norm.result, f), step.params)


def _with_norm(step: Step, x: str, norm: Norm) -> dict[str, Swap]:
    """The step with the norm of x where x belongs."""
    places = [place for place, source in enumerate(step.inputs) if source == x]
    count = len(step.inputs)
    compute: Callable[..., Value] = step.op.compute

    def normed(xp: Arithmetic, *values: Any) -> Value:
        operands = list(values[:count])
        for place in places:
            operands[place] = norm.of(xp, operands[place], values[count:])
        return compute(xp, *operands, **step.params)

    return instead(step, normed, *step.inputs, *norm.others)


MISTAKES = (
    MistakeKind("norm-placement", 3, N_("You put the norm in a different place in the sublayer."), N_("Look again at where the norm stands: behind the sum, LN(x + f(x)), or before the sublayer, x + f(LN(x))?"), ("residual", "product", "affine"), _placed, rank=1),
    MistakeKind("residual-missing", 0, N_("You left out what went in: the sublayer's output is added to its input."), _RESIDUAL, ("residual",), _left_out, _no_way_back),
    MistakeKind("residual-doubled", 1, N_("You added the sublayer's output to itself. It is added to what went in."), _RESIDUAL, ("residual",), _doubled, _twice_back),
    MistakeKind("residual-path-missing", 2, N_("You left out the gradient that goes past the sublayer."), _RESIDUAL, ("sum_paths",), _past_missing),
)  # fmt: skip
