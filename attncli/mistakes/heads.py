"""Numbers that go to another head than they belong to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import permutations
from typing import TypeAlias

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Step, Swap, part_of
from attncli.core.message import N_
from attncli.mistakes.mistake import MistakeKind, Swaps, backward_of, instead, together, ways_back
from attncli.ops.layout import MERGE_HEADS, SPLIT_HEADS

_HEADS = N_("Look again at which numbers belong to which head, and which head goes where.")

#: Heads up to which every other order is tried.
_FEW = 3

#: What one step comes out as wrongly, by its operands.
Compute: TypeAlias = "Callable[..., Value]"


# --- heads cut out of the columns, and put side by side again ---------------------------------------------------------


def _cut_in_memory_order(step: Step) -> Compute:
    heads, width = step.params["heads"], step.params["width"]
    return lambda xp, a: xp.reshape(a, (*a.shape[:-2], heads, a.shape[-2], width))


def _joined_in_memory_order(xp: Arithmetic, a: Value) -> Value:
    *more, heads, rows, width = a.shape
    return xp.reshape(a, (*more, rows, heads * width))


def _in_memory_order(step: Step) -> dict[str, Swap]:
    cut = step.op.name == "split_heads"
    return instead(step, _cut_in_memory_order(step) if cut else _joined_in_memory_order, step.inputs[0])


def _has_choice(graph: Graph, step: Step) -> bool:
    """Whether the order in memory is another one: several heads of several rows."""
    rows = graph.shape(step.inputs[0])[-2]
    return bool(step.params["heads"] > 1 and rows > 1)


def _alone_and_alike(
    wrong: Callable[[Step], Swaps], graph: Graph, step: Step, names: str, tail: str
) -> Iterator[Swaps]:
    """A mistake here, or by habit in all of these steps of the same part of the model."""
    yield wrong(step)
    ids = [f"{part_of(step.id)}{name}{tail}" for name in names]
    # A key or value with a single head is cut the same way either way.
    alike = [
        graph.steps[step_id]
        for step_id in ids
        if step_id in graph.steps and graph.steps[step_id].params.get("heads", 1) > 1
    ]
    if step.id in ids and len(alike) > 1:
        yield together(*map(wrong, alike))


def _split_without_transpose(graph: Graph, step: Step) -> Iterator[Swaps]:
    """Heads cut out in memory order: here, or in queries, keys and values alike."""
    if _has_choice(graph, step):
        yield from _alone_and_alike(_in_memory_order, graph, step, "QKV", "_heads")


def _merge_without_transpose(graph: Graph, step: Step) -> Iterator[Swaps]:
    if _has_choice(graph, step):
        yield _in_memory_order(step)


def _memory_order_back(graph: Graph, step: Step, swap: Swaps) -> Swaps:
    """The gradient put together, or cut, in memory order too."""
    backs = ways_back(graph, step, swap)
    return together(*(_in_memory_order(back) for back in backs if back.op.name in ("split_heads", "merge_heads")))


def _orders(heads: int) -> list[tuple[int, ...]]:
    right = tuple(range(heads))
    return [order for order in (permutations(right) if heads <= _FEW else [right[::-1]]) if order != right]


def _reordered(xp: Arithmetic, a: Value, order: Sequence[int]) -> Value:
    return xp.concatenate([xp.slice(a, -3, head, head + 1) for head in order], -3)


def _joined_in_order(xp: Arithmetic, a: Value, order: Sequence[int]) -> Value:
    return _joined(xp, _reordered(xp, a, order))


def _joined(xp: Arithmetic, a: Value) -> Value:
    *_, heads, _, width = a.shape
    return MERGE_HEADS.compute(xp, a, heads=heads, width=width)


def _reversed(graph: Graph, step: Step) -> Iterator[Swaps]:
    for order in _orders(step.params["heads"]):
        yield instead(step, _joined_in_order, step.inputs[0], order=order)


def _reversed_back(graph: Graph, step: Step, swap: Swaps) -> Swaps:
    """The gradient cut into heads in that order."""
    back = backward_of(graph, step.inputs[0], step)
    if step.phase != "forward" or back is None or back.op.name != "split_heads":
        return {}
    order = swap[step.id].params["order"]
    undone = tuple(order.index(head) for head in range(len(order)))

    def cut(xp: Arithmetic, g: Value) -> Value:
        return _reordered(xp, SPLIT_HEADS.compute(xp, g, **back.params), undone)

    return instead(back, cut, back.inputs[0])


# --- heads of keys and values that are shared -------------------------------------------------------------------------


def _tiled(graph: Graph, step: Step) -> Iterator[Swaps]:
    """The heads dealt out in turn, a, b, a, b: here, or in the keys and the values alike; put together so on the way back."""
    group = step.params["group"]
    if step.op.name == "sum_kv_groups":
        if group > 1 and step.params["heads"] > 1:
            yield _dealt(step)
        return
    if group == 1 or graph.shape(step.inputs[0])[-3] == 1:
        return

    yield from _alone_and_alike(_dealt_out, graph, step, "KV", "_shared")


def _dealt_out(step: Step) -> dict[str, Swap]:
    return instead(step, lambda xp, a: xp.concatenate([a] * step.params["group"], -3), step.inputs[0])


def _tiled_back(graph: Graph, step: Step, swap: Swaps) -> Swaps:
    return together(*(_dealt(back) for back in ways_back(graph, step, swap) if back.op.name == "sum_kv_groups"))


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
        yield instead(step, partial(_one_of_each, only=only, group=group, heads=heads), step.inputs[0])


def _one_of_each(xp: Arithmetic, a: Value, only: int, group: int, heads: int) -> Value:
    *more, _, rows, width = a.shape
    grouped = xp.reshape(a, (*more, heads, group, rows * width))
    return xp.reshape(xp.slice(grouped, -2, only, only + 1), (*more, heads, rows, width))


MISTAKES = (
    MistakeKind("split-without-transpose", 6, N_("You cut the heads out of consecutive {rows}. Each token's own {columns} are shared out: head 1 gets the first ones of every token."), _HEADS, ("split_heads",), _split_without_transpose, _memory_order_back),
    MistakeKind("merge-without-transpose", 3, N_("You put the heads one after another in memory order. They stand side by side: each token gets its own {row} of every head."), _HEADS, ("merge_heads",), _merge_without_transpose, _memory_order_back),
    MistakeKind("heads-reversed", 0, N_("You joined the heads in a different order."), _HEADS, ("merge_heads",), _reversed, _reversed_back),
    MistakeKind("kv-heads-tiled", 4, N_("You dealt the shared heads out in turn, 1 2 1 2. Neighbouring query heads share one: 1 1 2 2."), _HEADS, ("repeat_kv", "sum_kv_groups"), _tiled, _tiled_back),
    MistakeKind("group-not-summed", 2, N_("You took the gradient of one query head only. A shared head gets the sum over its whole group."), N_("Look again at how many query heads used this one: each sends a gradient back, and all are added."), ("sum_kv_groups",), _not_summed),
)  # fmt: skip
