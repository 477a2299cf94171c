"""Axes checked by name: which sizes fit together, who set them, and what to write where they do not fit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from attncli.core.message import N_, Message, ShapeError, counted
from attncli.core.record import Record


class Axis(Record):
    """One axis of an array: its name ("query", "d_k"), its length, and the operand that set it."""

    name: str
    size: int
    setter: str


#: What a step is computed from: each operand's id and axes.
Operands: TypeAlias = Sequence[tuple[str, tuple[Axis, ...]]]

#: Stands for a head axis in front, which goes through every op.
_HEADS = "head"


def join_axes(
    pattern: str, step_id: str, params: Mapping[str, Any], new: Sequence[str], operands: Operands
) -> tuple[Axis, ...]:
    """The axes of the result, after checking that the operands fit the pattern of an op ("i k, j k -> i j").

    Raises
    ------
    ShapeError
        Names the operands with their shapes, the axis, and who set it.
    """
    left, _, right = pattern.partition("->")
    wanted = [part.split() for part in left.split(",")] if left.strip() else []
    if wanted and wanted[-1][-1] == "?":
        wanted = [*wanted[:-1], wanted[-1][:-1]] if len(operands) == len(wanted) else wanted[:-1]
    bound: dict[str, tuple[Axis, str]] = {}
    for (name, axes), letters in zip(operands, wanted, strict=True):
        if len(axes) == len(letters) + 1:
            letters = [_HEADS, *letters]
        if len(axes) != len(letters):
            text = N_("{name} has {count}, expected {expected}")
            what = Message(text, name=name, count=count_axes(len(axes)), expected=len(letters))
            raise _do_not_fit(step_id, operands, what)
        for letter, axis in zip(letters, axes, strict=True):
            known, setter = bound.setdefault(letter, (axis, name))
            expected = 1 if letter == "1" else known.size
            if axis.size != expected:
                text = N_("the axis “{axis}” has length {size} in {name} but {expected} in {setter}")
                sizes = {"size": axis.size, "expected": expected}
                what = Message(text, axis=known.name, name=name, setter=setter, **sizes)
                raise _do_not_fit(step_id, operands, what)
    names = iter(new)
    result = [_result_axis(letter, bound, params, names, step_id) for letter in right.split()]
    return (bound[_HEADS][0], *result) if _HEADS in bound else tuple(result)


def _result_axis(
    letter: str, bound: Mapping[str, tuple[Axis, str]], params: Mapping[str, Any], names: Iterator[str], step_id: str
) -> Axis:
    if letter == "1":
        return Axis("", 1, step_id)
    if letter.startswith("="):
        name, _, param = letter[1:].partition(":")
        return Axis(next(names, name), int(params[param]), step_id)
    for sign, together in (("+", sum), ("*", math.prod)):
        if sign in letter:
            parts = [bound[part][0] for part in letter.split(sign)]
            return Axis(next(names, parts[-1].name), together(part.size for part in parts), step_id)
    return bound[letter][0]


# --- What does not fit ------------------------------------------------------------------------------------------------


def _do_not_fit(step_id: str, operands: Operands, what: Message) -> ShapeError:
    shown = ", ".join(f"{name} {show_shape([axis.size for axis in axes])}" for name, axes in operands)
    return ShapeError("Step {id} cannot take {operands}: {what}.", id=step_id, operands=shown, what=what)


def wrong_axis_count(name: str, shape: Sequence[int], axes: Sequence[str]) -> ShapeError:
    """An array has another number of axes than the model gives it names for."""
    return ShapeError(
        "{name} has shape {shape}, but it needs {count}: {axes}. {fix}",
        name=name,
        shape=show_shape(shape),
        count=count_axes(len(axes)),
        axes=" × ".join(axes),
        fix=Message(_FIXES[min(len(axes), 3) - 1]),
    )


def wrong_length(name: str, shape: Sequence[int], position: int, expected: Axis, setter_shape: str) -> ShapeError:
    """An axis of an array has another length than the one who set it gave it."""
    from_end = len(shape) - position
    return ShapeError(
        "{name} is {shape}: it has {found}, but the axis “{axis}” has length {size}, set by {setter} ({setter_shape})."
        " Give {name} {expected}, or change {setter}.",
        name=name,
        shape=show_shape(shape),
        found=_length(shape[position], from_end, len(shape)),
        axis=expected.name,
        size=expected.size,
        expected=_length(expected.size, from_end, len(shape)),
        setter=expected.setter,
        setter_shape=setter_shape,
    )


#: How long an axis is, said with what it is in a matrix: of a list, and of the last axis, the one before it, one in front.
_ENTRIES = (N_("1 entry"), N_("{count} entries"))
_LENGTHS = (
    (N_("1 column"), N_("{count} columns")),
    (N_("1 row"), N_("{count} rows")),
    (N_("1 head"), N_("{count} heads")),
)
#: What to write for an array of 1, 2, 3 axes.
_FIXES = (
    N_("Write one row of numbers, like “0 1 2”."),
    N_("Write rows separated by “;”, like “1 2; 3 4”."),
    N_("Write one block per head, separated by “|”, like “1 2; 3 4 | 5 6; 7 8”."),
)


def _length(count: int, from_end: int, ndim: int) -> Message:
    return counted(count, *(_ENTRIES if ndim == 1 else _LENGTHS[min(from_end, 3) - 1]))


def show_shape(shape: Sequence[int]) -> str:
    """3×2; the shape of a single number is 1."""
    return "×".join(map(str, shape)) if shape else "1"


def count_axes(count: int) -> Message:
    """“2 axes”."""
    return counted(count, N_("1 axis"), N_("{count} axes"))
