"""A problem, calculated: what the commands and the Python interface show."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.arithmetic.systems import by_name
from attncli.core.graph import Graph, Step, Trace
from attncli.core.limits import MOST_CELLS
from attncli.core.matrix import EXACT
from attncli.core.message import LimitError
from attncli.core.record import Record
from attncli.problems.problem import Problem

if TYPE_CHECKING:
    from attncli.core.verify import Verification


#: Numbers of a calculation that is worked out in bounds to tell whether one of them is 0.
_MOST_BOUNDED = 100_000
#: Decimals up to which an input is shown as it was written.
_MOST_WRITTEN = 6


class Run(Record):
    """One evaluation of a problem.

    Parameters
    ----------
    problem, graph : what was calculated
    trace : the numbers, in the arithmetic that was asked for
    shown : ids of the steps to show, in order
    decimals : places to show; None: as the problem says, step by step
    full : the numbers in full precision, where `trace` carries rounded ones
    verification : the finite-difference check, where it was asked for
    """

    problem: Problem
    graph: Graph
    trace: Trace
    shown: tuple[str, ...]
    decimals: int | None = None
    full: Trace | None = None
    verification: Verification | None = None

    def __getitem__(self, step_id: str) -> Any:
        """The numbers of a step or input: a NumPy array."""
        return self.trace[step_id]

    @property
    def steps(self) -> list[Step]:
        """The steps in order."""
        return self.trace.steps

    def places(self, step_id: str) -> int:
        """Decimals that a step or input is shown at; an input as it was written, if that is short enough."""
        places = self.decimals if self.decimals is not None else self.problem.decimals_of(step_id)
        given = self.graph.inputs.get(step_id)
        if given is None or given.matrix.decimals is None or (given.matrix.decimals == EXACT).any():
            return places
        written = int(given.matrix.decimals.max(initial=0))
        return written if written <= _MOST_WRITTEN else max(places, _MOST_WRITTEN)

    def is_not_zero(self, step_id: str) -> bool:
        """Whether a step of small numbers is truly not 0: guaranteed bounds of a cell, rounding included, leave 0 out."""
        values = self.trace[step_id]
        if sum(step.cells for step in self.graph.steps.values()) > _MOST_BOUNDED:  # too much: by the sizes it came from
            step = self.graph.steps[step_id]
            sizes = (
                np.abs(self.trace[operand]).max(initial=0.0, where=np.isfinite(self.trace[operand]))
                for operand in step.inputs
            )
            return bool(np.abs(values).max() > 1e-12 * max(sizes, default=0.0))
        bounds = self._bounds[step_id]
        return bool(((bounds.lo > 0) | (bounds.hi < 0)).any())

    @cached_property
    def _bounds(self) -> Trace:
        from attncli.arithmetic.interval import IntervalArithmetic

        return self.graph.evaluate(IntervalArithmetic(), until=list(self.trace))

    def __str__(self) -> str:
        from attncli.render import render

        return str(render(self, "table"))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from attncli.render.html import fragment
        from attncli.render.view import view

        return fragment(view(self))


def run(
    problem: Problem,
    *,
    backward: bool | None = None,
    arithmetic: str = "floating",
    decimals: int | None = None,
    rounding: str = "away",
    steps: Sequence[str] = (),
    check: bool = False,
) -> Run:
    """Calculate a problem.

    Parameters
    ----------
    backward : with the backward steps; None: where the problem gives a gradient
    arithmetic : "floating", "hand" (carry rounded values) or "exact"
    decimals : places to show and, by hand, to round at; None: the problem's
    rounding : "away" or "even", by hand
    steps : only these; others are calculated as far as they are needed
    check : compare the gradients with finite differences

    Raises
    ------
    InputError, ShapeError, LimitError
        What was given does not work; the message says what to write.
    """
    graph = problem.graph(backward=backward)
    check_cells(graph, MOST_CELLS)
    wanted = [named_step(graph, step) for step in steps]
    until = wanted or None
    places = problem.decimals if decimals is None else decimals
    trace = graph.evaluate(by_name(arithmetic, places, rounding), until=until)
    shown = tuple(step for step in graph.steps if step in trace.numbers and (not wanted or step in wanted))
    return Run(
        problem,
        graph,
        trace,
        shown if wanted else tuple(graph.steps),
        decimals,
        full=graph.evaluate(until=until) if arithmetic == "hand" else None,
        verification=_verified(graph) if check else None,
    )


def named_step(graph: Graph, name: str) -> str:
    """The step that a name means: its id, symbol, number, or a word for it.

    Raises
    ------
    InputError
        It means none or several; the steps are listed.
    """
    if name in graph:
        return name
    from attncli.problems.names import Names

    return Names(graph).resolve(name)


def check_cells(graph: Graph, most: int) -> None:
    """Refuse a calculation that records more numbers than there is room for.

    Raises
    ------
    LimitError
        Says how many, and at which step the most of them.
    """
    count = sum(step.cells for step in graph.steps.values())
    if count > most:
        largest = max(graph.steps.values(), key=lambda step: step.cells)
        raise LimitError(
            "All steps together would be {count} numbers ({step} alone {cells}); the limit is {limit}. Give smaller matrices.",
            count=f"{count:,}",
            step=largest.id,
            cells=f"{largest.cells:,}",
            limit=f"{most:,}",
        )


def _verified(graph: Graph) -> Verification:
    from attncli.core.verify import verify

    return verify(graph)
