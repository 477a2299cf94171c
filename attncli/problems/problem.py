"""A problem: what is to be calculated, and what is known about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli import models
from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Step, Trace, gradient_id
from attncli.core.limits import MOST_CELLS
from attncli.core.matrix import EXACT, Matrix
from attncli.core.message import N_, AttnError, InputError, LimitError, Message, ShapeError, counted, unknown
from attncli.core.record import Record
from attncli.models.model import Model, Part
from attncli.problems.matrix_text import comma_said, parse_matrix, with_points
from attncli.problems.settings import read_settings

if TYPE_CHECKING:
    from attncli.core import gradient
    from attncli.core.gradient import Verification

DEFAULT_DECIMALS = 3

ByLanguage = Mapping[str, str]

#: The default of every table of a problem: records are never changed, so one empty table serves all.
NOTHING: Mapping[str, Any] = {}

#: The id of a file that gives none.
UNNAMED = "problem"


class Contrast(Record):
    """A second run shown beside the first: the settings and inputs that differ in it, as written, and the steps to show of it."""

    settings: Mapping[str, Any] = NOTHING
    inputs: Mapping[str, Any] = NOTHING
    steps: tuple[str, ...] = ()


class Marking(Record):
    """How answers are marked.

    Parameters
    ----------
    points : by step; none given: one for each step that is asked for
    follow_through, imprecise : the share of them that such a line is worth
    rounding : what rounded the answers: "hand" (a person), "printed", "float32" or "float16" (a program)
    """

    points: Mapping[str, float] = NOTHING
    follow_through: float = 1.0
    imprecise: float = 0.5
    rounding: str = "hand"


class Problem(Record):
    """An exercise, or just a calculation.

    Parameters
    ----------
    model : a name from `attncli models`
    inputs : matrices by name; `texts`: inputs that are text
    settings : as written; the model says what they may be
    upstream : the gradient at the output; or `loss`: a loss as text, with `extras` (targets)
    decimals : places a written answer is judged and shown at; `step_decimals` by step
    as_written : steps of whose answers each cell is judged at the places it was written with; "default": all others
    title, prompt, hint, notice, source : learner-facing text by language
    labels : names of rows by axis ("query", "key", "token")
    published : a source's printed numbers by step, as text; `how` by step: "rounded", "carried", "truncated", "wrong: why"
    how_texts : the remark "wrong: why" by language, where a file gives it in several
    shapes : published shapes by step, as text
    contrast : a second run shown beside the first
    marking : points and credits
    """

    model: str
    inputs: Mapping[str, Matrix] = NOTHING
    texts: Mapping[str, str] = NOTHING
    settings: Mapping[str, Any] = NOTHING
    upstream: Matrix | None = None
    loss: str | None = None
    extras: Mapping[str, Matrix] = NOTHING
    id: str = ""
    decimals: int = DEFAULT_DECIMALS
    step_decimals: Mapping[str, int] = NOTHING
    as_written: frozenset[str] = frozenset()
    source: ByLanguage = NOTHING
    title: ByLanguage = NOTHING
    prompt: ByLanguage = NOTHING
    hint: ByLanguage = NOTHING
    notice: ByLanguage = NOTHING
    labels: Mapping[str, tuple[str, ...]] = NOTHING
    published: Mapping[str, str] = NOTHING
    how: Mapping[str, str] = NOTHING
    how_texts: Mapping[str, ByLanguage] = NOTHING
    shapes: Mapping[str, str] = NOTHING
    contrast: Contrast | None = None
    marking: Marking = Marking()
    layout: str = "rows"

    @property
    def has_gradient(self) -> bool:
        """Whether the backward steps are turned on."""
        return self.upstream is not None or self.loss is not None

    def decimals_of(self, step: str) -> int:
        """Places that this step is judged and shown at."""
        return self.step_decimals.get(step, self.decimals)

    def is_as_written(self, step: str) -> bool:
        """Whether each cell of this step is judged at the places it was written with."""
        return step in self.as_written or ("default" in self.as_written and step not in self.step_decimals)

    def points(self) -> dict[str, Fraction]:
        """Points by step: as the problem says, else 1 for every published step, else 1 for every step."""
        if self.marking.points:
            return {step_id: Fraction(str(points)) for step_id, points in self.marking.points.items()}
        steps = self.graph().steps
        return dict.fromkeys([step_id for step_id in self.published if step_id in steps] or steps, Fraction(1))

    def graph(self, *, backward: bool | None = None) -> Graph:
        """The calculation, with its backward steps where a gradient is given (or as `backward` says).

        A problem does not change, so its calculation is put together once; whoever asks again is given the same one.

        Raises
        ------
        InputError, ShapeError
            The inputs do not fit the model, or there is nothing to start the backward steps from.
        """
        wanted = self.has_gradient if backward is None else backward
        if wanted not in self._graphs:
            try:
                self._graphs[wanted] = self._graph(wanted)
            except ShapeError as error:
                raise self._with_commas_said(error, wanted) from None
        return self._graphs[wanted]

    def _with_commas_said(self, error: ShapeError, backward: bool) -> ShapeError:
        """The error, with a word on commas where one matrix with decimal commas, or all, would have fitted."""
        given = {name: matrix for name, matrix in {**self.inputs, **self.extras, "": self.upstream}.items() if matrix}
        typed = {name: matrix.text for name, matrix in given.items() if matrix.text is not None}
        for names in [*([name] for name in typed), list(typed)] if typed else []:
            try:
                meant = {name: parse_matrix(with_points(typed[name])) for name in names}
                self.changed(
                    inputs={name: meant.get(name, matrix) for name, matrix in self.inputs.items()},
                    extras={name: meant.get(name, matrix) for name, matrix in self.extras.items()},
                    upstream=meant.get("", self.upstream),
                )._graph(backward)
            except AttnError:
                continue
            return comma_said(error, typed[names[0]])
        return error

    @cached_property
    def _graphs(self) -> dict[bool, Graph]:
        """The calculation without and with its backward steps, as far as it was asked for."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """What another process is sent: the fields, from which it puts the calculation together itself."""
        return {name: self.__dict__[name] for name in self._fields}

    def _graph(self, backward: bool) -> Graph:
        model = models.get(self.model)
        graph = Graph(self.model)
        whole = Part(
            graph,
            {name: _as_kind(model, name, matrix, self.layout) for name, matrix in self.inputs.items()},
            self.texts,
            read_settings(model, self.settings, self.layout),
            set(),
        )
        model.check(whole)
        graph.output = model.build(whole)
        if backward:
            self._backward(model, whole)
        elif self.loss is not None and self.upstream is None:
            self._loss(graph)
        model.check_used(whole)
        self._label(graph)
        return graph

    def _backward(self, model: Model, whole: Part) -> None:
        from attncli.core import gradient

        graph = whole.graph
        if not any(input.differentiable for input in graph.inputs.values()):
            raise InputError(
                "Model {model} has no gradients: none of its inputs can be changed by a little (ids and words cannot).",
                model=self.model,
            )
        if self.upstream is not None and self.loss is not None:
            raise InputError(
                "Both an upstream gradient and a loss are given. Keep one: the gradient {gradient}, or the loss it comes from.",
                gradient=gradient_id(graph.output),
            )
        if self.loss is not None:
            gradient.append(graph, self._loss(graph))
        elif self.upstream is not None:
            gradient.upstream(graph, _oriented(self.upstream, self.layout))
            gradient.append(graph)
        else:
            raise InputError(
                "The backward steps need a gradient to start from: --upstream MATRIX (the gradient {gradient}, the shape of"
                ' {output}), or --loss TEXT, like --loss "sum({output})".',
                output=graph.output,
                gradient=gradient_id(graph.output),
            )
        if model.after is not None:
            model.after(whole)
        graph.phase = "forward"

    def _loss(self, graph: Graph) -> gradient.Seeds:
        """The steps of the loss; returns what it sends back."""
        from attncli.models import losses

        extras = {**{name: m for name, m in self.inputs.items() if name not in graph}, **self.extras}
        oriented = {name: _oriented(matrix, self.layout) for name, matrix in extras.items()}
        return losses.apply(graph, self.loss or "", oriented)

    def _label(self, graph: Graph) -> None:
        """Names for rows and columns, checked against the axes they belong to."""
        labels = dict(self.labels)
        sizes = {axis.name: axis.size for step_id in (*graph.inputs, *graph.steps) for axis in graph.axes(step_id)}
        if "token" in sizes and "token" not in labels:
            named = labels.pop("query", None) or labels.get("key")
            if named is not None:
                labels["token"] = named
            labels.pop("key", None)
        for axis, names in labels.items():
            if axis not in sizes:
                raise unknown(Message("labels: the axis"), axis, [name for name in sizes if name])
            if len(names) != sizes[axis]:
                raise InputError(
                    "labels.{axis}: {count} given, but the axis “{axis}” has length {size}. Give one name for each.",
                    count=counted(len(names), N_("1 name"), N_("{count} names")),
                    axis=axis,
                    size=sizes[axis],
                )
            graph.labels[axis] = tuple(names)


def _oriented(matrix: Matrix, layout: str) -> Matrix:
    """Tokens as rows, whichever way the matrix was given."""
    return matrix.transposed() if layout == "columns" else matrix


def _as_kind(model: Model, name: str, matrix: Matrix, layout: str) -> Matrix:
    """Ids as a flat list, everything else with tokens as rows."""
    kind = model.kind_of(name)
    if kind == "text":
        raise InputError("{name} is text, but a matrix was given. Write it as text.", name=name)
    if kind == "ids":
        if matrix.values.ndim == 2 and 1 not in matrix.shape:
            raise InputError(
                "{name} is a list of ids, but {rows} rows were given. Write one row, like “0 2 1”.",
                name=name,
                rows=matrix.shape[0],
            )
        return matrix.reshaped((matrix.values.size,))
    return _oriented(matrix, layout)


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

    def __getitem__(self, step_id: str) -> Value:
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
    from attncli.problems.names import Names

    graph = problem.graph(backward=backward)
    check_cells(graph, MOST_CELLS)
    names = Names(graph)
    wanted = [names.resolve(step) for step in steps]
    until = wanted or None
    places = problem.decimals if decimals is None else decimals
    trace = graph.evaluate(arithmetic_called(arithmetic, places, rounding), until=until)
    shown = tuple(step for step in graph.steps if step in trace.numbers and (not wanted or step in wanted))
    verified = None
    if check:
        from attncli.core.gradient import verify

        verified = verify(graph, rounded=arithmetic == "hand")
    return Run(
        problem,
        graph,
        trace,
        shown if wanted else tuple(graph.steps),
        decimals,
        full=graph.evaluate(until=until) if arithmetic == "hand" else None,
        verification=verified,
    )


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


def arithmetic_called(name: str, decimals: int = 3, rounding: str = "away") -> Arithmetic:
    """The number system called `name`: "floating", "hand" or "exact".

    Raises
    ------
    InputError
        `exact` without SymPy installed, or a name that does not exist.
    """
    if name == "floating":
        from attncli.arithmetic.floating import FLOATING

        return FLOATING
    if name == "hand":
        from attncli.arithmetic.hand import Hand

        return Hand(decimals, rounding)
    if name == "exact":
        from attncli.arithmetic.exact import Exact

        return Exact()
    raise unknown(Message("The arithmetic"), name, ["floating", "hand", "exact"])
