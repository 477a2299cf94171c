r"""What to take away from a run, in sentences: its result, where rounding shows, where numbers end or vanish."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attncli.core.graph import first_not_finite
from attncli.core.message import N_, Listed, Message
from attncli.problems.problem import Run
from attncli.render.text import SIGNIFICANT, cell_name, is_cut, number_text


def remarks(run: Run) -> Iterator[Message]:
    """What the model says of itself, and what to take away."""
    yield from run.graph.notes
    yield from summary(run)


def summary(run: Run) -> Iterator[Message]:
    """What to take away, from the numbers of the run."""
    output = run.graph.output
    if output in run.shown and run.trace.numbers[output].ndim == 2 and run.trace.numbers[output].size <= 24:
        cells = [[number_text(v, run.places(output)) for v in row] for row in run.trace.numbers[output]]
        # Exact numbers have spaces inside: “1 - √2 1” could be two numbers or three.
        between = ", " if any(" " in cell for row in cells for cell in row) else " "
        rows = "; ".join(between.join(row) for row in cells)
        yield Message("Result: {output} = {rows}", output=output, rows=rows).of("result")
    loss = run.graph.loss
    if loss is not None and loss in run.shown and len(run.shown) > 1:
        value = number_text(run.trace.numbers[loss][0, 0], run.places(loss))
        yield Message("Loss: {id} = {value}", id=loss, value=value).of("loss")
    yield from _carried(run)
    lost = list(_lost(run))
    yield from lost or _not_finite(run)
    yield from _beyond(run)
    yield from _tiny(run)


def in_full(run: Run) -> Iterator[Message]:
    """That the source of these numbers carries rounded ones on, and this run does not."""
    carried = any(run.problem.how.get(step_id) == "carried" for step_id in run.shown)
    if carried and run.full is None and run.trace.arithmetic == "floating":
        yield Message(
            "Worked out here with all digits. The source carries rounded values on: --carry gives its digits."
        )


def _carried(run: Run) -> Iterator[Message]:
    """The first cell where carrying rounded values changes a printed digit."""
    if run.full is None:
        yield from in_full(run)
        return
    for step_id in run.shown:
        carried, full, places = run.trace.numbers[step_id], run.full.numbers[step_id], run.places(step_id)
        for index in np.ndindex(carried.shape):
            ours, theirs = number_text(carried[index], places), number_text(full[index], places)
            if _number(ours) != _number(theirs):
                yield Message(
                    "{cell} is {carried} here because rounded values were carried on; in full precision it is {full}."
                    " Both are right answers on paper.",
                    cell=cell_name(step_id, index, run.problem.layout),
                    carried=ours,
                    full=theirs,
                )
                return


def _number(text: str) -> float | str:
    """A printed number, which may have more zeros than it needs; else the text."""
    try:
        return float(text)
    except ValueError:
        return text


def _lost(run: Run) -> Iterator[Message]:
    """Rows without a value, and how they lost it: 0/0, or ∞/∞."""
    for step_id in run.shown:
        step, values = run.graph.steps[step_id], run.trace.numbers[step_id]
        if not step.is_attention or values.dtype != np.float64 or not np.isnan(values).any():
            continue
        totals, without = run.trace.numbers[step.inputs[1]], np.isnan(values).any(axis=-1, keepdims=True)
        empty = N_(
            "{Row} {which}: lost. Every e^x there became 0, so the sum is 0, and 0/0 has no value (NaN)."
            " The maximum that was subtracted is far above everything visible."
        )
        endless = N_(
            "{Row} {which}: lost. e^x has grown to ∞ there, and ∞/∞ has no value (NaN)."
            " Subtracting each {row}'s maximum first prevents it."
        )
        for lost, why in ((without & (totals == 0), empty), (without & np.isinf(totals), endless)):
            rows = sorted({int(index[-2]) + 1 for index in np.argwhere(lost)})
            if rows:
                yield Message(why, which=Listed(rows))


def _not_finite(run: Run) -> Iterator[Message]:
    """Where the numbers stop being finite, and why."""
    lost = first_not_finite(run.trace)
    if lost is None:
        return
    cell = cell_name(lost.step.id, lost.index, run.problem.layout)
    value = number_text(lost.value, 0)
    if lost.overflow:
        text = N_(
            "{cell} = {value} is the first number that is not finite. It is larger than a float64 can be (about 1.8·10^308)"
            " or was divided by 0, and nothing that follows from it can be relied on."
        )
    else:
        text = N_(
            "{cell} = {value} is the first number that is not finite: 0/0, ∞ − ∞ and the like have no value. Nothing that"
            " follows from it can be relied on."
        )
    yield Message(text, cell=cell, value=value)


def _beyond(run: Run) -> Iterator[Message]:
    """More decimals asked for than a float64 holds."""
    shown = ((run.trace.numbers[step_id], run.places(step_id)) for step_id in run.shown)
    if any(values.dtype == np.float64 and is_cut(values, places) for values, places in shown):
        yield Message(
            "Numbers are shown to {digits} significant digits: a float64 holds no more, and rounding on the way may"
            " have cost some of those. For exact results: --exact.",
            digits=SIGNIFICANT,
        )


def _tiny(run: Run) -> Iterator[Message]:
    """The first step whose numbers are not 0 but look like it."""
    for step_id in run.shown:
        values, places = run.trace.numbers[step_id], run.places(step_id)
        if values.dtype != np.float64 or not values.size:
            continue
        small = np.abs(values[(values != 0) & np.isfinite(values)])
        if small.size and small.max() < 0.5 * 10.0**-places and run.is_not_zero(step_id):
            yield Message(
                "{id} is not 0, only too small for {places} decimals. See more with --decimals {more}.",
                id=step_id,
                places=places,
                more=min(15, int(np.ceil(-np.log10(small.max()))) + 3),
            )
            return
