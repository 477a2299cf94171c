"""The primitives: one a file, found by listing this folder.

An op knows its value, its formula, the arithmetic behind one of its cells, which axes its operands
share, and its backward rule, which is written with ops again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from attncli.core.graph import Graph, Op, Params, Step, Swap
from attncli.record import Record
from attncli.terms import Index, Term, cell


class Mistake(Record):
    """A wrong calculation that stands in for a right one.

    Parameters
    ----------
    id : its name in the catalogue ("softmax-over-columns")
    swap : what is calculated instead, by step id; a complete mistake by itself
    alike : what the same learner calculates instead at other steps, because it is the same mistake made the same way
    """

    id: str
    swap: Mapping[str, Swap]
    alike: Mapping[str, Swap] = MappingProxyType({})


def instead(id: str, step: Step, compute: Callable[..., Any], *inputs: str) -> Mistake:
    """The mistake `id`: at this step, `compute(arithmetic, *inputs)` is calculated instead."""
    wrong = Op(id, compute, "", fixed(""), _no_terms, "")
    return Mistake(id, {step.id: Swap(wrong, inputs, {})})


def with_operands(id: str, step: Step, op: Op, inputs: Sequence[str], params: Params) -> Mistake:
    """The mistake `id`: at this step, an op is applied to other operands or the other way round."""
    return Mistake(id, {step.id: Swap(op, tuple(inputs), params)})


def values_for_gradients(graph: Graph, step: Step) -> Iterator[tuple[str, ...]]:
    """The step's operands with a forward value where its gradient belongs: A for G_A."""
    for position, id in enumerate(step.inputs):
        prefix, dot, name = id.rpartition(".")
        value = f"{prefix}{dot}{name.removeprefix('G_')}"
        if name.startswith("G_") and value in graph and graph.shape(value) == graph.shape(id):
            yield (*step.inputs[:position], value, *step.inputs[position + 1 :])


def _no_terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    return Term("text", "?")


def names() -> list[str]:
    """The names of all ops: the files in this folder."""
    return sorted(file.stem for file in Path(__file__).parent.glob("*.py") if not file.stem.startswith("_"))


def get(name: str) -> Op:
    """The op of this name."""
    import importlib

    op: Op = importlib.import_module(f"{__name__}.{name}").OP
    return op


def fixed(formula: str) -> Callable[[Params, bool], str]:
    """A formula that depends neither on parameters nor on the layout."""
    return lambda params, columns: formula


def at(values: Mapping[str, Any], id: str, index: Sequence[int]) -> Term:
    """The cell of `id` at `index`, counted from the last axis; an axis of length 1 is spread."""
    shape = values[id].shape
    own = tuple(index)[len(index) - len(shape) :]
    return cell(id, tuple(0 if size == 1 else i for i, size in zip(own, shape, strict=True)))
