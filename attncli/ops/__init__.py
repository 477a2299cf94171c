"""The primitives: one a file, found by listing this folder.

An op knows its value, its formula, the arithmetic behind one of its cells, which axes its operands
share, and its backward rule, which is written with ops again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from attncli.message import N_, Message, ShapeError
from attncli.names import Axis, count_axes, show_shape
from attncli.record import Record
from attncli.terms import Index, Term, cell

if TYPE_CHECKING:
    from attncli.graph import Graph, Step

Params: TypeAlias = Mapping[str, Any]

#: Writes the gradient of one operand: (graph, step, id of the step's gradient, id to write).
Rule: TypeAlias = "Callable[[Graph, Step, str, str], None]"


class Mistake(Record):
    """A wrong calculation that stands in for a right one.

    Parameters
    ----------
    id : its name in the catalogue ("softmax-over-columns")
    swap : what is calculated instead, by step id
    """

    id: str
    swap: Mapping[str, Swap]


class Op(Record):
    """A primitive.

    Parameters
    ----------
    name : its file
    compute : (arithmetic, *operands, **params) -> value
    axes : "i k, j k -> i j": letters that stand for the last axes of each operand and of the result; a leading
        head axis goes through; "1" is an axis of length 1, "a+b" one that joins two, "=name:param" a new one
        whose length is a parameter
    formula : (params, columns) -> LaTeX with operand places {0}, {1}; `columns`: with tokens as columns
    terms : (step, index, values) -> the arithmetic of one cell
    why : what it does and why, for a step that says nothing more special
    backward : one rule an operand, None for a constant; an empty tuple: no operand has one of its own
    numbers : (params) -> the formula with the numbers put in, where that says more
    mistakes : (graph, step) -> the mistakes people make in it at this step
    """

    name: str
    compute: Callable[..., Any]
    axes: str | Callable[[Params], str]
    formula: Callable[[Params, bool], str]
    terms: Callable[[Step, Index, Mapping[str, Any]], Term]
    why: str
    backward: tuple[Rule | None, ...] = ()
    numbers: Callable[[Params], str] | None = None
    mistakes: Callable[[Graph, Step], Iterator[Mistake]] | None = None


class Swap(Record):
    """Another op in a step's place, with its own inputs and parameters where they differ."""

    op: Op
    inputs: tuple[str, ...]
    params: Params


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


def join_axes(op: Op, id: str, params: Params, operands: Sequence[tuple[str, tuple[Axis, ...]]]) -> tuple[Axis, ...]:
    """The axes of the result, after checking that the operands fit.

    Raises
    ------
    ShapeError
        Names the operands with their shapes, the axis, and who set it.
    """
    spec = op.axes if isinstance(op.axes, str) else op.axes(params)
    left, _, right = spec.partition("->")
    wanted = [part.split() for part in left.split(",")] if left.strip() else []
    bound: dict[str, tuple[Axis, str]] = {}
    heads: Axis | None = None
    misfit = partial(_misfit, op, id, operands)
    for (name, axes), letters in zip(operands, wanted, strict=True):
        extra = len(axes) - len(letters)
        if extra not in (0, 1):
            text = N_("{name} has {count}, expected {expected}")
            raise misfit(Message(text, name=name, count=count_axes(len(axes)), expected=len(letters)))
        if extra:
            if heads is not None and heads.size != axes[0].size:
                text = N_("the axis “head” has length {size} in {name} but {expected} in {setter}")
                sizes = {"size": axes[0].size, "expected": heads.size}
                raise misfit(Message(text, name=name, setter=heads.setter, **sizes))
            heads = heads or axes[0]
        for letter, axis in zip(letters, axes[extra:], strict=True):
            known = bound.setdefault(letter, (axis, name))
            expected = 1 if letter == "1" else known[0].size
            if axis.size != expected:
                text = N_("the axis “{axis}” has length {size} in {name} but {expected} in {setter}")
                sizes = {"size": axis.size, "expected": expected}
                raise misfit(Message(text, axis=known[0].name, name=name, setter=known[1], **sizes))
    result = [_result_axis(letter, bound, params, id) for letter in right.split()]
    return (heads, *result) if heads is not None else tuple(result)


def _result_axis(letter: str, bound: Mapping[str, tuple[Axis, str]], params: Params, id: str) -> Axis:
    if letter == "1":
        return Axis("", 1, id)
    if letter.startswith("="):
        name, _, param = letter[1:].partition(":")
        return Axis(params.get("axis", name), int(params[param]), id)
    if "+" in letter:
        parts = [bound[part][0] for part in letter.split("+")]
        return Axis(params.get("axis") or parts[-1].name, sum(part.size for part in parts), id)
    return bound[letter][0]


def _misfit(op: Op, id: str, operands: Sequence[tuple[str, tuple[Axis, ...]]], what: Message) -> ShapeError:
    shown = ", ".join(f"{name} {show_shape([axis.size for axis in axes])}" for name, axes in operands)
    return ShapeError("Step {id} cannot take {operands}: {what}.", id=id, operands=shown, what=what)
