"""A source's printed numbers, recomputed digit by digit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from attncli.arithmetic.hand import ROUNDINGS, Hand, round_decimal, truncate_decimal
from attncli.core.axes import show_shape
from attncli.core.graph import Trace
from attncli.core.matrix import EXACT, FloatArray, Matrix
from attncli.core.message import N_, AttnError, InputError, Localized, Message, unknown
from attncli.problems.matrix_text import parse_matrix, write_entry
from attncli.problems.problem import Problem

#: How printed numbers may come from the calculation; a remark "wrong: why" says that they do not.
HOW = ("rounded", "carried", "truncated")

#: Two float64 calculations of the same number differ by no more than this, relative to max(1, |number|).
_NEAR = 32 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class PrintedCheck:
    """One published step against the calculation.

    Parameters
    ----------
    step : its id
    how : "rounded", "carried", "truncated", "wrong: why", or "shape" for a published shape
    ok : whether what was published is what `how` says
    printed : as the source printed it, in one line
    computed : the calculation's numbers in the same layout, at the printed decimals (three more in a cell that is off)
    message : what is off, or worth saying; None where there is nothing to say
    """

    step: str
    how: str
    ok: bool
    printed: str
    computed: str
    message: Message | None = None


class PrintedCell(NamedTuple):
    """A printed cell: where it stands (from 0, as printed), its number and the decimals it was printed with."""

    where: tuple[int, ...]
    printed: float
    places: int


def check(problem: Problem) -> list[PrintedCheck]:
    """Every published number and shape of a problem against the calculation, in the order they were written down.

    Raises
    ------
    InputError, ShapeError
        The problem itself cannot be calculated.
    """
    return Published(problem).check()


class Published:
    """A problem's published numbers, with the evaluations they are held against."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.graph = problem.graph()

    @cached_property
    def full(self) -> Trace:
        return self.graph.evaluate()

    @cached_property
    def carried(self) -> list[Trace]:
        """By hand, ties away from zero and ties to even."""
        return [self.graph.evaluate(Hand(self._places_carried(), ties)) for ties in ROUNDINGS]

    def _places_carried(self) -> int:
        """Places that a source rounds its lines to; of “as written”, the most that one of its numbers has."""
        if "default" not in self.problem.as_written:
            return self.problem.decimals
        printed = [parse_matrix(_one_line(text), blanks=True).decimals for text in self.problem.published.values()]
        most = max((int(places.max(initial=0)) for places in printed if places is not None), default=0)
        return most or self.problem.decimals

    def check(self) -> list[PrintedCheck]:
        published = self.problem.published.items()
        numbers = [self._safely(self._numbers, step, _one_line(text)) for step, text in published]
        shapes = [self._safely(self._shape, step, text) for step, text in self.problem.shapes.items()]
        stray = [self._stray(step) for step in self.problem.how if step not in self.problem.published]
        return [*numbers, *shapes, *stray]

    def _safely(self, checked: Callable[[str, str], PrintedCheck], step: str, text: str) -> PrintedCheck:
        """A published entry that cannot be compared at all fails with the reason."""
        try:
            return checked(step, text)
        except AttnError as error:
            how = self.problem.how.get(step, "rounded") if checked == self._numbers else "shape"
            return PrintedCheck(step, how, False, text, "", error.message)

    def _stray(self, step: str) -> PrintedCheck:
        message = Message(
            "published_how says something about “{step}”, but no numbers are published for it.", step=step
        )
        return PrintedCheck(step, self.problem.how[step], False, "", "", message)

    def _shape(self, step: str, text: str) -> PrintedCheck:
        self.graph.resolve(step)
        shape = tuple(int(size) for size in re.findall(r"\d+", text))
        actual = self.graph.shape(step)
        if shape == self._shown(np.empty(actual)).shape:
            return PrintedCheck(step, "shape", True, text, show_shape(shape))
        message = Message(
            "published as {printed}, but {step} is {shape}.", printed=text, step=step, shape=show_shape(actual)
        )
        return PrintedCheck(step, "shape", False, text, show_shape(actual), message)

    def _numbers(self, step: str, text: str) -> PrintedCheck:
        how = self.problem.how.get(step, "rounded")
        printed = parse_matrix(text, blanks=True)
        value = self._as_printed(self.full[step], step, printed)
        cells = list(_cells(printed))
        matches = {name: self._matches(name, step, printed, cells) for name in HOW}
        if how in HOW:
            return self._claimed(how, step, text, printed, matches)
        if how.startswith("wrong:"):
            why = Localized(
                {code: _reason(said) for code, said in self.problem.how_texts.get(step, {"en": how}).items()}
            )
            return _remarked(step, how, why, text, _write(printed, value, matches["rounded"]), matches)
        raise unknown(Message("published_how.{step}:", step=step), how, [*HOW, "wrong: …"])

    def _claimed(self, how: str, step: str, text: str, printed: Matrix, matches: dict[str, list[bool]]) -> PrintedCheck:
        trace = self.carried[0] if how == "carried" else self.full
        value = self._as_printed(trace[step], step, printed)
        computed = _write(printed, value, matches[how])
        if not all(matches[how]):
            return PrintedCheck(step, how, False, text, computed, _off(how, printed, value, matches))
        if how != "rounded" and all(matches["rounded"]):
            return PrintedCheck(step, how, True, text, computed, Message(_NEEDLESS[how]))
        return PrintedCheck(step, how, True, text, computed)

    def _matches(self, how: str, step: str, printed: Matrix, cells: list[PrintedCell]) -> list[bool]:
        """For every printed cell, whether it comes from the calculation in this way."""
        if how == "carried":
            values = [self._as_printed(trace[step], step, printed) for trace in self.carried]
            return _best([[_same(cell.printed, float(value[cell.where])) for cell in cells] for value in values])
        value = self._as_printed(self.full[step], step, printed)
        rule = _is_rounded if how == "rounded" else _is_truncated
        return [rule(cell, float(value[cell.where])) for cell in cells]

    def _shown(self, value: FloatArray) -> FloatArray:
        """In the layout of the source."""
        return np.swapaxes(value, -1, -2) if self.problem.layout == "columns" and value.ndim > 1 else value

    def _as_printed(self, value: FloatArray, step: str, printed: Matrix) -> FloatArray:
        """The calculation's numbers in the printed layout; a vector may be printed as a row or as a column.

        Raises
        ------
        InputError
            The shapes differ.
        """
        shown = self._shown(value)
        if shown.shape == printed.shape:
            return shown
        vector = value.ndim == 1 or (value.ndim == 2 and value.shape[-1] == 1)
        if vector and 1 in printed.shape and value.size == printed.values.size:
            return value.reshape(printed.shape)
        if shown.ndim == 3 and shown.shape == (1, *printed.shape):
            return shown.reshape(printed.shape)  # a single head printed without its axis
        raise InputError(
            "published with the shape {printed}, but {step} is {shape}.",
            printed=show_shape(printed.shape),
            step=step,
            shape=show_shape(shown.shape),
        )


def _one_line(text: str) -> str:
    """A matrix text with its rows separated by “;” instead of new lines."""
    return re.sub(r"\s*\n\s*", "; ", re.sub(r"\s*\n\s*\|\s*", " | ", text.strip()))


def _best(matches: list[list[bool]]) -> list[bool]:
    """Of several ways to do the same, the one that explains most cells."""
    return max(matches, key=sum)


def _cells(printed: Matrix) -> Iterator[PrintedCell]:
    """The cells that were printed; one the source left out is written as “?”."""
    assert printed.decimals is not None
    for index in np.ndindex(printed.shape):
        if printed.blank is None or not printed.blank[index]:
            yield PrintedCell(index, float(printed.values[index]), int(printed.decimals[index]))


def _same(printed: float, value: float) -> bool:
    """Equal to float64 precision."""
    if not np.isfinite(value):
        return printed == value
    return abs(printed - value) <= _NEAR * max(1.0, abs(value))


def _is_rounded(cell: PrintedCell, value: float) -> bool:
    """The value rounded at the printed decimals, ties either way; a whole number only if the value is one."""
    if cell.places in (EXACT, 0):
        return _same(cell.printed, value)
    return any(_same(cell.printed, float(round_decimal(value, cell.places, ties))) for ties in ROUNDINGS)


def _is_truncated(cell: PrintedCell, value: float) -> bool:
    """The value cut off at the printed decimals."""
    if cell.places in (EXACT, 0):
        return _same(cell.printed, value)
    return _same(cell.printed, float(truncate_decimal(value, cell.places)))


def _reason(how: str) -> str:
    return how.removeprefix("wrong:").strip()


def _remarked(
    step: str, how: str, why: Localized, text: str, computed: str, matches: dict[str, list[bool]]
) -> PrintedCheck:
    """Numbers said to be wrong must be wrong: in no way do they follow from the inputs."""
    for name in HOW:
        if all(matches[name]):
            return PrintedCheck(step, how, False, text, computed, Message(_STALE[name]))
    if not _reason(how):
        return PrintedCheck(step, how, False, text, computed, Message("“wrong:” needs a reason after the colon."))
    return PrintedCheck(step, how, True, text, computed, Message("The source is off here: {why}", why=why))


_NEEDLESS = {
    "carried": N_("Rounding alone gives the same digits, so the remark “carried” is not needed."),
    "truncated": N_("Rounding gives the same digits, so the remark “truncated” is not needed."),
}
_STALE = {
    "rounded": N_("marked as wrong, but the calculation gives exactly these digits. Take the remark away."),
    "carried": N_("marked as wrong, but carrying rounded values gives these digits. Write “carried”."),
    "truncated": N_("marked as wrong, but cutting the digits off gives these. Write “truncated”."),
}


def _off(how: str, printed: Matrix, value: FloatArray, matches: dict[str, list[bool]]) -> Message:
    """The first cell that is off; and whether another way of arriving at the digits explains them all."""
    cell = next(cell for cell, ok in zip(_cells(printed), matches[how], strict=True) if not ok)
    other = next((name for name in HOW if all(matches[name])), None)
    return Message(
        "cell [{index}] is printed as {printed}, but the calculation gives {value}{hint}.",
        index=",".join(str(i + 1) for i in cell.where),
        printed=_digits(cell.printed, cell.places),
        value=_digits(float(value[cell.where]), EXACT if cell.places == EXACT else cell.places + 3),
        hint=Message(_HINTS[other]) if other else "",
    )


_HINTS = {
    "rounded": N_(" (plain rounding would explain it)"),
    "carried": N_(" (carrying rounded values would explain it: write “carried”)"),
    "truncated": N_(" (cutting the digits off would explain it: write “truncated”)"),
}


def _write(printed: Matrix, value: FloatArray, ok: list[bool]) -> str:
    """The calculation's numbers as text, in the shape and at the decimals that were printed."""
    texts = np.full(printed.shape, "?", dtype=object)
    for cell, right in zip(_cells(printed), ok, strict=True):
        places = cell.places if right or cell.places == EXACT else cell.places + 3
        texts[cell.where] = _digits(float(value[cell.where]), places)
    blocks = texts if texts.ndim == 3 else texts[None]
    return " | ".join("; ".join(" ".join(row) for row in block) for block in blocks)


def _digits(value: float, places: int) -> str:
    if places == EXACT or not np.isfinite(value):
        return write_entry(value) if not np.isnan(value) else "NaN"
    rounded = float(round_decimal(value, places)) + 0.0
    return f"{rounded:.{places}f}"
