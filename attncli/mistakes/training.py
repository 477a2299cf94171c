"""Where training begins and ends: tokens and their table, the loss, and one step against the gradient."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Step, Swap, part_of
from attncli.core.matrix import as_matrix
from attncli.core.message import N_
from attncli.mistakes.mistake import (
    Alike,
    Made,
    MistakeKind,
    Swaps,
    instead,
    passing,
    source_of_softmax,
    step_of,
    steps_of,
    together,
    with_operands,
)
from attncli.ops.elementwise import IDENTITY, SCALE, numeral
from attncli.ops.embedding import added_up, rows_named
from attncli.ops.losses import AVERAGE, BATCH_SHARE, NEGATIVE_LOG, WEIGHTED_TOTAL

_REPEATED = N_("Look again at tokens that occur more than once.")
_MEAN = N_("Look again at what the loss is a mean over.")

#: Other bases that a logarithm is taken to: of bits, and of a calculator's key “log”.
_BASES = (2.0, 10.0)

# --- tokens, their ids, and the table that they look up and send gradients back to ------------------------------------


def _ids_from_one(graph: Graph, step: Step) -> Iterator[Swaps]:
    yield with_operands(step, step.op, (), {**step.params, "ids": step.params["ids"] + 1.0})


def _kept_once(later: bool) -> Made:
    """Of every id only the gradient of its last token, or of its first."""
    return lambda graph, step: [instead(step, _added_once, *step.inputs, count=step.params["count"], later=later)]


def _added_once(xp: Arithmetic, rows_of: Value, ids: Value, count: int, later: bool) -> Value:
    rows = rows_named(xp, ids, count)
    same = rows[..., :, None] == rows[..., None, :]
    lost = (np.triu(same, 1) if later else np.tril(same, -1)).any(-1)
    return added_up(xp, xp.where(lost[..., None], numeral(xp, 0.0), rows_of), rows, count)


def _look_up_alone(graph: Graph, step: Step) -> Iterator[Swaps]:
    for path in step.inputs:
        if graph.steps[path].op.name == "scatter_add":
            yield passing(step, path)


# --- another logarithm, or one of another number ----------------------------------------------------------------------


def _other_log(graph: Graph, step: Step) -> Iterator[Swaps]:
    def to_base(xp: Arithmetic, *operands: Value, base: float) -> Value:
        return xp.divide(step.op.compute(xp, *operands, **step.params), xp.log(numeral(xp, base)))

    for base in _BASES:
        yield instead(step, to_base, *step.inputs, base=base)


def _of_logit(graph: Graph, step: Step) -> Iterator[Swaps]:
    """−ln of the target's logit in place of its probability; or the logit itself, with its sign or without."""
    picked = graph.steps.get(step.inputs[0])
    logits = None if picked is None else source_of_softmax(graph, picked.inputs[0])
    if picked is None or logits is None:
        return

    def logit(xp: Arithmetic, z: Value, y: Value) -> Value:
        return picked.op.compute(xp, z, y, **picked.params)

    operands = (logits, *picked.inputs[1:])
    yield instead(step, lambda xp, z, y: NEGATIVE_LOG.compute(xp, xp.round_step(logit(xp, z, y))), *operands)
    yield instead(step, lambda xp, z, y: xp.subtract(numeral(xp, 0.0), logit(xp, z, y)), *operands)
    yield instead(step, logit, *operands)


# --- the mean over the tokens -----------------------------------------------------------------------------------------


def _means(graph: Graph, *ops: str) -> list[Step]:
    """Where the mean is taken: in a loss of several tokens, and in what each of them is sent back."""
    return [
        step
        for step in steps_of(graph, *ops)
        if step.op is BATCH_SHARE or (step.params["mean"] and graph.shape(step.inputs[0])[-2] > 1)
    ]


def _other_mean(wrong: Callable[[Graph, Step], Swaps]) -> tuple[Made, Alike]:
    """The mean taken otherwise: here, and alike on the way back, or in the loss."""

    def alike(graph: Graph, step: Step, swap: Swaps) -> Swaps:
        others = _means(graph, "batch_share" if step.op is AVERAGE else "average")
        return together(*(wrong(graph, other) for other in others))

    return lambda graph, step: [wrong(graph, step)] if step in _means(graph, step.op.name) else [], alike


def _added_up(graph: Graph, step: Step) -> Swaps:
    """Not divided by how many there are."""
    return passing(step) if step.op is BATCH_SHARE else with_operands(step, step.op, step.inputs, {"mean": False})


def _divided_twice(graph: Graph, step: Step) -> Swaps:
    """Divided by how many there are, and once more."""
    count = step.params["count"] if step.op is BATCH_SHARE else graph.shape(step.inputs[0])[-2]

    def again(xp: Arithmetic, a: Value) -> Value:
        return xp.divide(xp.round_step(step.op.compute(xp, a, **step.params)), numeral(xp, count))

    return instead(step, again, step.inputs[0])


# --- factors of a loss of several parts -------------------------------------------------------------------------------


def _total(graph: Graph) -> Step | None:
    """The step that adds up the parts of a loss, each with its factor."""
    return next(steps_of(graph, "weighted_total"), None)


def _sizes(total: Step | None) -> dict[str, float]:
    """The parts of a loss that have a factor other than 1 or −1, and its size."""
    parts = {} if total is None else dict(zip(total.inputs, total.params["factors"], strict=True))
    sizes = {part: abs(float(factor.values)) for part, factor in parts.items()}
    return {part: size for part, size in sizes.items() if size not in (0.0, 1.0)}


def _without(total: Step, parts: Collection[str]) -> dict[str, Swap]:
    """The sum with these parts counted once, with their signs."""
    factors = tuple(
        as_matrix(math.copysign(1.0, float(factor.values))) if part in parts else factor
        for part, factor in zip(total.inputs, total.params["factors"], strict=True)
    )
    return with_operands(total, WEIGHTED_TOTAL, total.inputs, {**total.params, "factors": factors})


def _sent_back(graph: Graph) -> dict[str, tuple[str, dict[str, Swap]]]:
    """The steps that send back a part's gradient, its factor included: whose, and the same without the factor."""
    total = _total(graph)
    found = dict[str, tuple[str, dict[str, Swap]]]()
    for step in graph.steps.values() if total is not None else ():
        if step.phase == "backward" and (step.op is IDENTITY or "factor" in step.params):
            for part, size in _sizes(total).items():
                prefix = part_of(part)
                if step.inputs[0] in (graph.steps[part].inputs[0], f"{prefix}error", f"{prefix}shared"):
                    own = float(step.params["factor"].values) if "factor" in step.params else 1.0
                    bare = with_operands(step, SCALE, step.inputs[:1], {"factor": as_matrix(own / size)})
                    found.setdefault(step.id, (part, bare))
    return found


def _no_factor(graph: Graph, step: Step) -> Iterator[Swaps]:
    """All factors left out, or one of several."""
    if step.op is not WEIGHTED_TOTAL:
        back = _sent_back(graph).get(step.id)
        if back is not None:
            yield back[1]
        return
    parts = list(_sizes(step))
    if parts:
        yield _without(step, parts)
    if len(parts) > 1:
        yield from (_without(step, [part]) for part in parts)


def _no_factor_alike(graph: Graph, step: Step, swap: Swaps) -> Swaps:
    """On the way back of the same parts; or in the sum, of the part that was sent back without."""
    total, backs = _total(graph), _sent_back(graph)
    if total is None:
        return {}
    if step is not total:
        return _without(total, [backs[step.id][0]])
    factors = zip(total.inputs, total.params["factors"], swap[step.id].params["factors"], strict=True)
    left_out = {part for part, old, new in factors if old is not new}
    return together(*(bare for part, bare in backs.values() if part in left_out))


# --- a step of training: uphill, or with means that nobody corrected --------------------------------------------------


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
        means = [step_of(graph, mean, "unbiased") for mean in step.inputs[1:]]
        bare = [one.inputs[0] for one in means if one is not None]
        if len(bare) == len(means):
            yield with_operands(step, step.op, (step.inputs[0], *bare), step.params)
        return
    both: dict[str, Swap] = {}
    for after in steps_of(graph, "adam_update", using=step.id):
        both |= together(*(passing(graph.steps[mean]) for mean in after.inputs[1:]))
    if len(both) > 1:
        yield both
    yield passing(step)


MISTAKES = (
    MistakeKind("ids-from-one", 1, N_("You counted the ids from 1. The first entry of the vocabulary is number 0."), N_("Look again at where counting starts."), ("encode",), _ids_from_one),
    MistakeKind("output-head-missing", 1, N_("You took only the look-up's part. The same table also makes the logits, and sends a gradient back from there too."), N_("Look again at every place where the table E is used: at the beginning and at the end."), ("sum_paths",), _look_up_alone),
    MistakeKind("gradient-overwritten", 4, N_("A repeated token kept only its last gradient. Repeated tokens add up."), _REPEATED, ("scatter_add",), _kept_once(later=True)),
    MistakeKind("first-gradient-only", 1, N_("A repeated token kept only its first gradient. Repeated tokens add up."), _REPEATED, ("scatter_add",), _kept_once(later=False)),
    MistakeKind("log-base", 0, N_("You took a logarithm to another base. The loss uses the natural one, ln."), N_("Look again at the logarithm: ln, to the base e; log₂ and log₁₀ are other numbers."), ("negative_log", "log_loss"), _other_log),
    MistakeKind("loss-of-logit", 2, N_("You took the logit for the probability. The loss is −ln of what softmax makes of it."), N_("Look again at what the logarithm is taken of: a probability, between 0 and 1."), ("negative_log",), _of_logit),
    MistakeKind("batch-factor-missing", 1, N_("You forgot to divide by the number of tokens: the loss is their mean, so each has 1/N of it, and of the gradient."), _MEAN, ("average", "batch_share"), *_other_mean(_added_up)),
    MistakeKind("mean-taken-twice", 1, N_("You divided by the number of tokens twice. The mean takes 1/N once, and so does its gradient."), _MEAN, ("average", "batch_share"), *_other_mean(_divided_twice)),
    MistakeKind("loss-factor-missing", 0, N_("You left out a factor in front of a part of the loss. It counts in the loss, and in the gradient that comes from that part."), N_("Look again at the numbers in front of the parts of the loss."), ("weighted_total", "scale", "identity"), _no_factor, _no_factor_alike),
    MistakeKind("no-bias-correction", 0, N_("You left out Adam's correction: m and v began at 0 and are too small at first, so they are divided by 1 − βᵗ."), N_("Look again at what Adam divides by 1 − βᵗ before its step."), ("unbiased", "adam_update"), _uncorrected),
    MistakeKind("update-sign", 0, N_("You took a step uphill: the step is subtracted, not added."), N_("Look again at the sign of the step: against the gradient."), ("update", "adam_update"), _uphill),
)  # fmt: skip
