"""Numbers that go to another head than they belong to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Step, Swap, part_of
from attncli.core.message import N_
from attncli.mistakes.mistake import MistakeKind, Swaps, and_back, instead, together
from attncli.ops.layout import MERGE_HEADS, SPLIT_HEADS

_HEADS = N_("Look again at which numbers belong to which head, and which head goes where.")

#: Heads up to which every other order is tried.
_FEW = 3


def _here_and_alike(wrong: Callable[[Step], Swaps], graph: Graph, step: Step, names: str, tail: str) -> Iterator[Swaps]:
    """A mistake here, or by habit in all of these steps of the same part of the model."""
    yield wrong(step)
    beside = [graph.steps.get(f"{part_of(step.id)}{name}{tail}") for name in names]
    # A key or value with a single head is cut the same way either way.
    alike = [one for one in beside if one is not None and one.params.get("heads", 1) > 1]
    if step in beside and len(alike) > 1:
        yield together(*map(wrong, alike))


# --- heads cut out of the columns, and put side by side again ---------------------------------------------------------


def _cut_in_memory_order(xp: Arithmetic, a: Value, heads: int, width: int) -> Value:
    return xp.reshape(a, (*a.shape[:-2], heads, a.shape[-2], width))


def _joined_in_memory_order(xp: Arithmetic, a: Value, heads: int, width: int) -> Value:
    return xp.reshape(a, (*a.shape[:-3], a.shape[-2], heads * width))


def _in_memory_order(step: Step) -> dict[str, Swap]:
    wrong = _cut_in_memory_order if step.op is SPLIT_HEADS else _joined_in_memory_order
    return instead(step, wrong, step.inputs[0], **step.params)


def _cut_or_joined(graph: Graph, step: Step) -> Iterator[Swaps]:
    """Several heads of several rows in memory order: here; or cut so in queries, keys and values alike."""
    if step.params["heads"] > 1 and graph.shape(step.inputs[0])[-2] > 1:
        yield from _here_and_alike(_in_memory_order, graph, step, "QKV", "_heads")


def _reordered(xp: Arithmetic, a: Value, order: Sequence[int]) -> Value:
    return xp.concatenate([xp.slice(a, -3, head, head + 1) for head in order], -3)


def _joined_in_order(xp: Arithmetic, a: Value, order: Sequence[int]) -> Value:
    return MERGE_HEADS.compute(xp, _reordered(xp, a, order), heads=len(order), width=a.shape[-1])


def _cut_in_order(xp: Arithmetic, g: Value, order: Sequence[int]) -> Value:
    heads = len(order)
    cut = SPLIT_HEADS.compute(xp, g, heads=heads, width=g.shape[-1] // heads)
    return _reordered(xp, cut, [order.index(head) for head in range(heads)])


def _in_other_order(graph: Graph, step: Step) -> Iterator[Swaps]:
    right = tuple(range(step.params["heads"]))
    for order in permutations(right) if len(right) <= _FEW else [right[::-1]]:
        if order != right:
            yield instead(step, _joined_in_order, step.inputs[0], order=order)


def _in_other_order_back(graph: Graph, step: Step, swap: Swaps) -> Swaps:
    """The gradient cut into heads in that order."""
    order = swap[step.id].params["order"]
    cut = and_back(lambda back: instead(back, _cut_in_order, back.inputs[0], order=order), "split_heads")
    return cut(graph, step, swap)


# --- heads of keys and values that are shared -------------------------------------------------------------------------


def _tiled(graph: Graph, step: Step) -> Iterator[Swaps]:
    """The heads dealt out in turn, a, b, a, b: here, or in the keys and the values alike; put together so on the way back."""
    if step.params["group"] == 1:
        return
    if step.op.name == "repeat_kv" and graph.shape(step.inputs[0])[-3] > 1:
        yield from _here_and_alike(_dealt_out, graph, step, "KV", "_shared")
    elif step.op.name == "sum_kv_groups" and step.params["heads"] > 1:
        yield _dealt(step)


def _dealt_out(step: Step) -> dict[str, Swap]:
    return instead(step, lambda xp, a: xp.concatenate([a] * step.params["group"], -3), step.inputs[0])


def _dealt(step: Step) -> dict[str, Swap]:
    """Every other head added up: 1 and 3, 2 and 4."""
    group, heads = step.params["group"], step.params["heads"]

    def every_other(xp: Arithmetic, a: Value) -> Value:
        *more, _, rows, width = a.shape
        dealt = xp.reshape(a, (*more, group, heads * rows * width))
        return xp.reshape(xp.sum(dealt, -2), (*more, heads, rows, width))

    return instead(step, every_other, step.inputs[0])


def _not_summed(graph: Graph, step: Step) -> Iterator[Swaps]:
    group, heads = step.params["group"], step.params["heads"]
    for only in range(group) if group > 1 else ():
        yield instead(step, _one_of_each, step.inputs[0], only=only, group=group, heads=heads)


def _one_of_each(xp: Arithmetic, a: Value, only: int, group: int, heads: int) -> Value:
    *more, _, rows, width = a.shape
    grouped = xp.reshape(a, (*more, heads, group, rows * width))
    return xp.reshape(xp.slice(grouped, -2, only, only + 1), (*more, heads, rows, width))


MISTAKES = (
    MistakeKind("split-without-transpose", 6, N_("You cut the heads out of consecutive {rows}. Each token's own {columns} are shared out: head 1 gets the first ones of every token."), _HEADS, ("split_heads",), _cut_or_joined, and_back(_in_memory_order, "split_heads", "merge_heads")),
    MistakeKind("merge-without-transpose", 3, N_("You put the heads one after another in memory order. They stand side by side: each token gets its own {row} of every head."), _HEADS, ("merge_heads",), _cut_or_joined, and_back(_in_memory_order, "split_heads", "merge_heads")),
    MistakeKind("heads-reversed", 0, N_("You joined the heads in a different order."), _HEADS, ("merge_heads",), _in_other_order, _in_other_order_back),
    MistakeKind("kv-heads-tiled", 4, N_("You dealt the shared heads out in turn, 1 2 1 2. Neighbouring query heads share one: 1 1 2 2."), _HEADS, ("repeat_kv", "sum_kv_groups"), _tiled, and_back(_dealt, "sum_kv_groups")),
    MistakeKind("group-not-summed", 2, N_("You took the gradient of one query head only. A shared head gets the sum over its whole group."), N_("Look again at how many query heads used this one: each sends a gradient back, and all are added."), ("sum_kv_groups",), _not_summed),
)  # fmt: skip
