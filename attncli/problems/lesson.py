"""A worked example beside its calculation: what its source printed, digit by digit; a second run; what to notice.

What to notice is text whose numbers come from the calculation, never from a keyboard.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from string import Formatter
from typing import NamedTuple

import numpy as np

from attncli import models
from attncli.arithmetic.hand import ROUNDINGS, Hand, round_decimal, truncate_decimal
from attncli.core.axes import show_shape
from attncli.core.graph import Trace
from attncli.core.matrix import EXACT, BoolArray, FloatArray, Matrix
from attncli.core.message import N_, AttnError, InputError, Localized, Message, placed, unknown
from attncli.core.record import Record
from attncli.locale import CODES
from attncli.problems.matrix_text import parse_matrix, write_entry
from attncli.problems.problem import Contrast, Problem, Run, run
from attncli.problems.question import as_in_a_file, as_shown
from attncli.problems.source import matrix_of


class PrintedCheck(NamedTuple):
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


class Lesson(Record):
    """What a worked example says beside its steps.

    Parameters
    ----------
    checks : the printed numbers, compared with the calculation
    contrast : the second run, or None; `changes`: what differs in it, as a problem file writes it; `steps`: those to show
    observations : what to notice, by language, its numbers filled in
    """

    problem: Problem
    checks: tuple[PrintedCheck, ...]
    contrast: Run | None
    changes: str
    steps: tuple[str, ...]
    observations: Mapping[str, str]

    @property
    def ok(self) -> bool:
        """Whether every printed number is what it is said to be."""
        return all(checked.ok for checked in self.checks)


def lesson_of(problem: Problem, only: Sequence[str] = ()) -> Lesson:
    """The lesson of a problem; `only`: the steps that are shown, where not all are."""
    made = _Evaluations(problem)
    other = None if only else contrast(problem)
    described = problem.contrast or Contrast()
    return Lesson(
        problem,
        tuple(checked for checked in _checks(made) if not only or not checked.ok or checked.step in only),
        None if other is None else run(other),
        ", ".join(
            f"{name} = {as_in_a_file(value)}"
            for name, value in (*described.settings.items(), *described.inputs.items())
        ),
        described.steps,
        {code: _noticed(made, code) for code in CODES if problem.notice},
    )


def check(problem: Problem) -> list[PrintedCheck]:
    """Every published number and shape of a problem against the calculation, in the order they were written down."""
    return _checks(_Evaluations(problem))


def observations(problem: Problem, language_code: str) -> str:
    """The notice of a problem in a language, its places filled with numbers of the calculation.

    A place names a cell counted from 1 (rows are tokens), the run it comes from, and the decimals to show (without
    them, the step's own): {A[1,2]}, {O[1,2]:4}, {carried.O[1,2]} (every line rounded by hand), {contrast.A[1,2]};
    and {shape.X} is a shape. Braces that are meant as such are doubled.

    Returns
    -------
    str
        The English text where there is none in `language_code`; empty where there is none at all.
    """
    return _noticed(_Evaluations(problem), language_code)


def arithmetic_of_source(problem: Problem) -> str:
    """As the source of an exercise did: by hand, where it carried rounded numbers on."""
    return "hand" if "carried" in problem.how.values() else "floating"


def check_layout(problem: Problem, layout: str | None) -> None:
    """Refuse a layout that the published numbers of an exercise do not have."""
    if layout is not None and layout != problem.layout:
        raise InputError(
            "{id} is written with tokens as {layout}, and so are its published numbers. Leave out --layout.",
            id=problem.id,
            layout=Message(problem.layout),
        )


def contrast(problem: Problem) -> Problem | None:
    """The problem with the settings and inputs of its contrast; None where it has none."""
    if problem.contrast is None:
        return None
    model = models.get(problem.model)
    given = problem.contrast.inputs
    texts = {name: str(value) for name, value in given.items() if model.kind_of(name) == "text"}
    matrices: dict[str, Matrix] = {}
    for name, value in given.items():
        if name not in texts:
            with placed(f"contrast.inputs.{name}"):
                matrices[name] = matrix_of(value)
    return problem.changed(
        inputs={**problem.inputs, **matrices},
        texts={**problem.texts, **texts},
        settings={**problem.settings, **problem.contrast.settings},
        contrast=None,
    )


class _Evaluations:
    """What printed numbers are held against and a notice quotes from, made when it is first asked for."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.graph = problem.graph()

    @cached_property
    def full(self) -> Trace:
        return self.graph.evaluate()

    @cached_property
    def carried(self) -> tuple[Trace, ...]:
        """By hand, ties away from zero and ties to even; of “as written” at the most places that a printed number has."""
        places = 0
        if "default" in self.problem.as_written:
            printed = [parse_matrix(_one_line(text), blanks=True).decimals for text in self.problem.published.values()]
            places = max((int(written.max(initial=0)) for written in printed if written is not None), default=0)
        return tuple(self.graph.evaluate(Hand(places or self.problem.decimals, ties)) for ties in ROUNDINGS)

    @cached_property
    def contrast(self) -> Trace:
        other = contrast(self.problem)
        if other is None:
            raise InputError("The notice quotes the contrast, but this problem has none. Add a table [contrast].")
        return other.graph().evaluate()


# --- What was printed -------------------------------------------------------------------------------------------------

#: How printed numbers may come from the calculation; a remark "wrong: why" says that they do not.
HOW = ("rounded", "carried", "truncated")
#: Two float64 calculations of the same number differ by no more than this, relative to max(1, |number|).
_NEAR = 32 * float(np.finfo(np.float64).eps)


def _checks(made: _Evaluations) -> list[PrintedCheck]:
    problem = made.problem
    numbers = [
        (_numbers, step, _one_line(text), problem.how.get(step, "rounded")) for step, text in problem.published.items()
    ]
    shapes = [(_shape, step, text, "shape") for step, text in problem.shapes.items()]
    checks: list[PrintedCheck] = []
    for checked, step, text, how in (*numbers, *shapes):
        try:
            checks.append(checked(made, step, text, how))
        except AttnError as error:  # an entry that cannot be compared at all
            checks.append(PrintedCheck(step, how, False, text, "", error.message))
    for step, how in problem.how.items():
        if step not in problem.published:
            said = Message(
                "published_how says something about “{step}”, but no numbers are published for it.", step=step
            )
            checks.append(PrintedCheck(step, how, False, "", "", said))
    return checks


def _one_line(text: str) -> str:
    """A matrix text with its rows separated by “;” instead of new lines."""
    return re.sub(r"\s*\n\s*", "; ", re.sub(r"\s*\n\s*\|\s*", " | ", text.strip()))


def _shape(made: _Evaluations, step: str, text: str, how: str) -> PrintedCheck:
    made.graph.resolve(step)
    shape = tuple(int(size) for size in re.findall(r"\d+", text))
    actual = made.graph.shape(step)
    if shape == as_shown(made.problem, actual):
        return PrintedCheck(step, how, True, text, show_shape(shape))
    said = Message("published as {printed}, but {step} is {shape}.", printed=text, step=step, shape=show_shape(actual))
    return PrintedCheck(step, how, False, text, show_shape(actual), said)


def _numbers(made: _Evaluations, step: str, text: str, how: str) -> PrintedCheck:
    printed = parse_matrix(text, blanks=True)
    full, *carried = (_as_printed(made, trace[step], step, printed) for trace in (made.full, *made.carried))
    assert printed.decimals is not None
    places, whole = np.maximum(printed.decimals, 0), printed.decimals <= 0
    matches = {
        # A number printed without decimals is that very number, or another one.
        "rounded": np.logical_or.reduce(
            [_same(printed, np.where(whole, full, round_decimal(full, places, ties))) for ties in ROUNDINGS]
        ),
        "carried": max((_same(printed, numbers) for numbers in carried), key=np.count_nonzero),
        "truncated": _same(printed, np.where(whole, full, truncate_decimal(full, places))),
    }
    explained = [name for name in HOW if matches[name].all()]
    message = None
    if how.startswith("wrong:"):
        why = {code: _reason(said) for code, said in made.problem.how_texts.get(step, {"en": how}).items()}
        message = Message("The source is off here: {why}", why=Localized(why))
        if explained:  # numbers said to be wrong must be wrong: in no way do they follow from the inputs
            message = Message(_STALE[explained[0]])
        elif not _reason(how):
            message = Message("“wrong:” needs a reason after the colon.")
        ok = not explained and bool(_reason(how))
        return PrintedCheck(step, how, ok, text, _written(printed, full, matches["rounded"]), message)
    if how not in HOW:
        raise unknown(Message("published_how.{step}:", step=step), how, [*HOW, "wrong: …"])
    value = carried[0] if how == "carried" else full
    if how not in explained:
        message = _off(printed, value, matches[how], explained)
    elif how != "rounded" and "rounded" in explained:
        message = Message(_NEEDLESS[how])
    return PrintedCheck(step, how, how in explained, text, _written(printed, value, matches[how]), message)


def _same(printed: Matrix, numbers: FloatArray) -> BoolArray:
    """Where the printed numbers are these, to float64 precision; what was not printed is never off."""
    with np.errstate(invalid="ignore"):
        near = np.abs(printed.values - numbers) <= _NEAR * np.maximum(1.0, np.abs(numbers))
    same: BoolArray = np.where(np.isfinite(numbers), near, printed.values == numbers)
    return same if printed.blank is None else same | printed.blank


def _as_printed(made: _Evaluations, value: FloatArray, step: str, printed: Matrix) -> FloatArray:
    """The calculation's numbers in the printed layout; a vector may be printed as a row or as a column."""
    shown = np.swapaxes(value, -1, -2) if made.problem.layout == "columns" and value.ndim > 1 else value
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


def _reason(how: str) -> str:
    return how.removeprefix("wrong:").strip()


_NEEDLESS = {
    "carried": N_("Rounding alone gives the same digits, so the remark “carried” is not needed."),
    "truncated": N_("Rounding gives the same digits, so the remark “truncated” is not needed."),
}
_STALE = {
    "rounded": N_("marked as wrong, but the calculation gives exactly these digits. Take the remark away."),
    "carried": N_("marked as wrong, but carrying rounded values gives these digits. Write “carried”."),
    "truncated": N_("marked as wrong, but cutting the digits off gives these. Write “truncated”."),
}


_HINTS = {
    "rounded": N_(" (plain rounding would explain it)"),
    "carried": N_(" (carrying rounded values would explain it: write “carried”)"),
    "truncated": N_(" (cutting the digits off would explain it: write “truncated”)"),
}


def _off(printed: Matrix, value: FloatArray, right: BoolArray, explained: Sequence[str]) -> Message:
    """The first cell that is off; and whether another way of arriving at the digits explains them all."""
    cell = tuple(np.argwhere(~right)[0])
    assert printed.decimals is not None
    places = int(printed.decimals[cell])
    return Message(
        "cell [{index}] is printed as {printed}, but the calculation gives {value}{hint}.",
        index=",".join(str(i + 1) for i in cell),
        printed=_digits(float(printed.values[cell]), places),
        value=_digits(float(value[cell]), places if places == EXACT else places + 3),
        hint=Message(_HINTS[explained[0]]) if explained else "",
    )


def _written(printed: Matrix, value: FloatArray, right: BoolArray) -> str:
    """The calculation's numbers as text, in the shape and at the decimals that were printed."""
    assert printed.decimals is not None
    texts = np.full(printed.shape, "?", dtype=object)
    for cell in np.ndindex(printed.shape):
        if printed.blank is None or not printed.blank[cell]:
            places = int(printed.decimals[cell])
            texts[cell] = _digits(float(value[cell]), places if right[cell] or places == EXACT else places + 3)
    blocks = texts if texts.ndim == 3 else texts[None]
    return " | ".join("; ".join(" ".join(row) for row in block) for block in blocks)


def _digits(value: float, places: int) -> str:
    if places == EXACT or not np.isfinite(value):
        return write_entry(value) if not np.isnan(value) else "NaN"
    return f"{float(round_decimal(value, places)):.{places}f}"


# --- What to notice ---------------------------------------------------------------------------------------------------

_PLACE = re.compile(
    r"(?:(?P<run>full|carried|contrast|shape)\.)?(?P<step>[A-Za-z_][\w.]*)(?:\[(?P<index>[\d,\s]+)\])?\Z"
)


def _noticed(made: _Evaluations, language_code: str) -> str:
    notice = made.problem.notice
    try:
        pieces = list(Formatter().parse(notice.get(language_code) or notice.get("en", "")))
    except ValueError:
        raise InputError(
            "The notice has a brace that is not closed or not opened. Write {{{{ and }}}} for braces that are meant as such."
        ) from None
    return "".join(
        literal + ("" if name is None else _quoted(made, name, places or "", conversion))
        for literal, name, places, conversion in pieces
    )


def _quoted(made: _Evaluations, name: str, places: str, conversion: str | None) -> str:
    """What stands in for one place."""
    found = _PLACE.match(name)
    if (
        found is None
        or conversion
        or (places and not places.isdecimal())
        or (found["run"] != "shape" and not found["index"])
    ):
        raise InputError(
            "The notice has a place that cannot be read: “{written}”. Name a cell, like A[1,2], O[1,2]:4, carried.O[1,2] or"
            " contrast.A[1,2], and double the braces that are meant as such.",
            written=name + (f"!{conversion}" if conversion else "") + (f":{places}" if places else ""),
        )
    step, run = found["step"], found["run"]
    trace = made.carried[0] if run == "carried" else made.contrast if run == "contrast" else made.full
    if step not in trace:
        raise unknown(Message("The notice quotes the step"), step, list(trace))
    shape = trace[step].shape
    if run == "shape":
        return show_shape(shape)
    cell = tuple(int(part) - 1 for part in found["index"].split(",") if part.strip())
    if len(cell) != len(shape) or not all(0 <= i < size for i, size in zip(cell, shape, strict=True)):
        raise InputError(
            "The notice quotes {step}[{index}], but {step} is {shape}: rows and columns are counted from 1.",
            step=step,
            index=found["index"],
            shape=show_shape(shape),
        )
    text = _digits(float(trace[step][cell]), int(places) if places else made.problem.decimals_of(step))
    return text.replace("-", "−").replace("inf", "∞")
