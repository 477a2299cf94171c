"""The calculation itself: an ordered list of steps over named inputs, evaluated in any arithmetic.

Showing, rounding by hand, exact results, guaranteed bounds, error carried forward and naming a
mistake are all `Graph.evaluate` with another arithmetic, other given numbers, or another op in a
step's place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.arithmetic.floating import FLOATING, recording
from attncli.core.axes import Axis, join_axes, show_shape, wrong_axis_count, wrong_length
from attncli.core.matrix import FloatArray, Matrix
from attncli.core.message import InputError, LimitError, Message, NoSuchRow, ShapeError, unknown
from attncli.core.record import Record
from attncli.core.terms import WRITTEN, Cells, Index, Term, Values, cells_of

Params: TypeAlias = Mapping[str, Any]

#: What is written in a step's formula and in no calculation: the name of a factor, a token, the loss as it was asked for.
Notes: TypeAlias = Mapping[str, str | tuple[str, ...]]

#: Writes the gradient of one operand: (graph, step, id of the step's gradient, id to write).
Rule: TypeAlias = "Callable[[Graph, Step, str, str], object]"


class Op(Record):
    """A primitive.

    Parameters
    ----------
    name : what it is called
    axes : "i k, j k -> i j": letters that stand for the last axes of each operand and of the result; a leading
        head axis goes through; "1" is an axis of length 1, "a+b" and "a*b" join two, "=name:param" is a new one
        whose length is a parameter; a step may give these two other names; a last operand with "?" may be missing
    compute : (arithmetic, *operands, **params) -> value; in the arithmetic of terms, what stands behind every cell
    formula : LaTeX with operand places #1, #2 as TeX has them, or (params and notes, columns) -> LaTeX; `columns`: with tokens as
        columns
    why : what it does and why, for a step that says nothing more special
    backward : one rule an operand, None for a constant; an empty tuple: no operand has one of its own
    numbers : (params and notes) -> the formula with the numbers put in, where that says more
    terms : (step, index) -> the arithmetic of one cell, where a step has no operands to say it of
    """

    name: str
    axes: str | Callable[[Params], str]
    compute: Callable[..., Value]
    formula: str | Callable[[Params, bool], str]
    why: str
    backward: tuple[Rule | None, ...] = ()
    numbers: Callable[[Params], str] | None = None
    terms: Callable[[Step, Index], Term] | None = None


class Swap(Record):
    """Another op in a step's place, with its own inputs and parameters where they differ."""

    op: Op
    inputs: tuple[str, ...]
    params: Params


class CompositeRule(Record):
    """The closed gradient rule of a composite (softmax): from its last step straight back to its source."""

    source: str
    rule: Callable[[Graph, Step, str, str], None]


class Input(Record):
    """A given array: its id, LaTeX symbol, named axes, numbers, and whether a gradient is taken for it."""

    id: str
    symbol: str
    axes: tuple[Axis, ...]
    matrix: Matrix
    differentiable: bool = True
    phase: str = "input"
    why: Message | None = None


class Step(Record):
    """One line of the calculation.

    Parameters
    ----------
    id : the name that files and commands use ("scores", "G_A")
    symbol : LaTeX
    op, inputs, params : what is computed from which ids
    axes : the named axes of the result
    notes : what only the formula and the words of a cell need, not the calculation
    phase : "forward", "backward" or "update"
    why : what the line means and why it is there
    composite : for the last step of a composite, its gradient rule
    gradient_order : operand positions in the order their gradients are written down
    is_attention : the result holds attention weights (rows of shares)
    cells : numbers in the result
    """

    id: str
    symbol: str
    op: Op
    inputs: tuple[str, ...]
    params: Params
    axes: tuple[Axis, ...]
    notes: Notes
    phase: str
    why: Message
    composite: CompositeRule | None = None
    gradient_order: tuple[int, ...] | None = None
    is_attention: bool = False
    cells: int = 0

    def formula(self, columns: bool = False) -> str:
        """LaTeX with places for the operands."""
        formula = self.op.formula
        return formula if isinstance(formula, str) else formula({**self.params, **self.notes}, columns)

    def numbers(self) -> str | None:
        """The formula with the numbers put in, where that says more."""
        return self.op.numbers({**self.params, **self.notes}) if self.op.numbers is not None else None

    def terms(self, values: Values) -> Cells:
        """The arithmetic behind every cell, from the numbers of an evaluation.

        They choose rows and say what is hidden; beyond that a cell is calculated in the same way whatever they are, so
        that a page or a spreadsheet can calculate it anew from others.
        """
        if self.op.terms is not None:
            return Cells(tuple(axis.size for axis in self.axes), partial(self.op.terms, self))
        cells: Cells = self.op.compute(WRITTEN, *(cells_of(name, values[name]) for name in self.inputs), **self.params)
        return cells


#: Of a step: id, what computes it, operands, parameters.
Call: TypeAlias = tuple[str, Callable[..., Value], tuple[str, ...], Params]


class Trace(Mapping[str, Value]):
    """The numbers of one evaluation, by step id; inputs included."""

    def __init__(self, graph: Graph, arithmetic: str, numbers: dict[str, Value]) -> None:
        self.graph = graph
        self.arithmetic = arithmetic
        self.numbers = numbers

    def __getitem__(self, key: str) -> Value:
        return self.numbers[self.graph.resolve(key)]

    def __contains__(self, key: object) -> bool:
        return key in self.numbers

    def get(self, key: str, default: Value = None) -> Value:
        return self.numbers.get(key, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def steps(self) -> list[Step]:
        """The steps that were evaluated, in order."""
        return [step for step in self.graph.steps.values() if step.id in self.numbers]


class Lost(Record):
    """The first cell that is NaN, or infinite without being hidden; `overflow`: everything it came from was finite."""

    step: Step
    index: tuple[int, ...]
    value: float
    overflow: bool


def first_not_finite(trace: Trace) -> Lost | None:
    """The first step with such a cell; None where all numbers are what they should be, and for exact ones.

    A score that a mask hides is −∞, and so is what follows from it; −∞ that comes from nothing hidden is too large a
    number.
    """
    for step in trace.steps:
        values = trace[step.id]
        if values.dtype != np.float64 or np.isfinite(values).all():
            continue
        operands = [trace[step_id] for step_id in step.inputs]
        hidden = any(np.isneginf(operand).any() for operand in operands)
        wrong = np.isnan(values) | (np.isinf(values) if not hidden else np.isposinf(values))
        if wrong.any():
            index: tuple[int, ...] = tuple(map(int, np.argwhere(wrong)[0]))
            return Lost(step, index, float(values[index]), bool(np.isinf(values[index])) and _finite(operands))
    return None


def _finite(operands: list[Value]) -> bool:
    return all(bool((np.isfinite(operand) | np.isneginf(operand)).all()) for operand in operands)


class Graph:
    """An ordered list of steps over named inputs.

    Shapes are checked when a step is added, from the op's axes, so that an error can name the
    operands and the axis; NumPy never sees operands that do not fit.

    Attributes
    ----------
    inputs, steps : by id, in order
    bound : the named axes of the inputs, by name; a part of a model (self., layer2.ffn.) binds names of its own
    labels : names of rows, by axis name
    notes : remarks that belong to the whole calculation
    output : id of the result, where the upstream gradient enters; `loss`: id of the loss, where there is one
    phase : of the steps that are added next
    """

    def __init__(self, model: str) -> None:
        self.model = model
        self.inputs: dict[str, Input] = {}
        self.steps: dict[str, Step] = {}
        self.bound: dict[str, Axis] = {}
        self._calls: tuple[list[Call], list[int]] = [], []
        self._shapes: dict[str, tuple[int, ...]] = {}
        self.labels: dict[str, tuple[str, ...]] = {}
        self.notes: list[Message] = []
        self.output = ""
        self.loss: str | None = None
        self.phase = "forward"

    def input(
        self,
        input_id: str,
        matrix: Matrix,
        axes: Sequence[str],
        *,
        symbol: str | None = None,
        differentiable: bool = True,
        hidden: bool = False,
        phase: str = "input",
        why: Message | str | None = None,
    ) -> str:
        """Add a given array whose axes carry these names, and return its id.

        Parameters
        ----------
        hidden : −∞ may stand in it (scores, masks)

        Raises
        ------
        ShapeError
            Another number of axes, or an axis whose length was set differently before.
        InputError
            No numbers at all, or one that is not finite.
        """
        if matrix.values.ndim != len(axes):
            raise wrong_axis_count(input_id, matrix.shape, axes)
        _check_numbers(input_id, matrix.values, hidden)
        named = []
        for position, (name, size) in enumerate(zip(axes, matrix.shape, strict=True)):
            before = self.binding(input_id, name) or self.bound.setdefault(
                part_of(input_id) + name, Axis(name, size, input_id)
            )
            if before.size != size:
                setter = before.setter
                setter_shape = show_shape(self.shape(setter)) if setter in self else str(before.size)
                raise wrong_length(input_id, matrix.shape, position, before, setter_shape)
            named.append(Axis(name, size, before.setter))
        reason = Message(why) if isinstance(why, str) else why
        self.inputs[input_id] = Input(
            input_id, symbol or default_symbol(input_id), tuple(named), matrix, differentiable, phase, reason
        )
        return input_id

    def binding(self, step_id: str, name: str) -> Axis | None:
        """The axis called `name` where `step_id` stands: its own part's, else that of the parts around it."""
        part = part_of(step_id)
        while part and part + name not in self.bound:
            part = part_of(part[:-1])
        return self.bound.get(part + name)

    def apply(
        self,
        op: Op,
        step_id: str,
        *inputs: str,
        symbol: str | None = None,
        why: Message | str | None = None,
        composite: CompositeRule | None = None,
        gradient_order: tuple[int, ...] | None = None,
        is_attention: bool = False,
        axes: Sequence[str] = (),
        notes: Notes | None = None,
        **params: Any,
    ) -> str:
        """Append a step and return its id.

        Parameters
        ----------
        why : what it means and why it is there; without it what the op says of itself
        axes : names of the axes that are new in the result, in order; without them those of the op

        Raises
        ------
        ShapeError
            The operands do not fit the op's axes; the message names them.
        """
        if step_id in self:
            raise ValueError(f"step {step_id!r} exists already")
        pattern = op.axes if isinstance(op.axes, str) else op.axes(params)
        named = join_axes(pattern, step_id, params, axes, [(name, self.axes(name)) for name in inputs])
        self.steps[step_id] = Step(
            step_id,
            symbol or default_symbol(step_id),
            op,
            inputs,
            params,
            named,
            notes or {},
            self.phase,
            why if isinstance(why, Message) else Message(why or op.why),
            composite,
            gradient_order,
            is_attention,
            math.prod(axis.size for axis in named),
        )
        return step_id

    def __contains__(self, step_id: object) -> bool:
        return step_id in self.steps or step_id in self.inputs

    def node(self, step_id: str) -> Step | Input:
        """The step or input of this id."""
        return self.steps.get(step_id) or self.inputs[step_id]

    def axes(self, step_id: str) -> tuple[Axis, ...]:
        return self.node(step_id).axes

    def shape(self, step_id: str) -> tuple[int, ...]:
        shape = self._shapes.get(step_id)
        if shape is None:  # asked for at every evaluation, so it is kept
            shape = self._shapes[step_id] = tuple([axis.size for axis in self.axes(step_id)])
        return shape

    def symbol(self, step_id: str) -> str:
        return self.node(step_id).symbol

    def resolve(self, step_id: str) -> str:
        """`step_id`, if it is a step or input of this graph.

        Raises
        ------
        InputError
            It is not; the likely one is suggested.
        """
        if step_id in self:
            return step_id
        raise unknown(Message("The step"), step_id, [*self.inputs, *self.steps])

    def needed(self, targets: Sequence[str], swap: Mapping[str, Swap] | None = None) -> set[str]:
        """The ids that `targets` are computed from, themselves included; a swapped step needs its swap's inputs."""
        swap = swap or {}
        wanted: set[str] = set()
        waiting = [self.resolve(target) for target in targets]
        while waiting:
            step_id = waiting.pop()
            if step_id not in wanted:
                wanted.add(step_id)
                step = swap.get(step_id) or self.steps.get(step_id)
                waiting.extend(step.inputs if step else ())
        return wanted

    def evaluate(
        self,
        arithmetic: Arithmetic = FLOATING,
        given: Mapping[str, Value] | None = None,
        swap: Mapping[str, Swap] | None = None,
        until: str | Sequence[str] | None = None,
    ) -> Trace:
        """The numbers of every step.

        Parameters
        ----------
        arithmetic : the number system
        given : numbers that stand in for an input or a step, in that system, of the same shape
        swap : another op in a step's place
        until : only these steps and what they need

        Raises
        ------
        ShapeError
            A given array of another shape.
        """
        given = given or {}
        swap = swap or {}
        shapes = self._shapes
        for step_id, value in given.items():
            if value.shape != shapes.get(step_id):
                self._check_shape(step_id, value.shape)
        wanted = None if until is None else self.needed([until] if isinstance(until, str) else until, swap)
        calls, cells = self._calls
        if len(calls) != len(self.steps):  # kept, because a training evaluates thousands of times
            calls = [(s.id, s.op.compute, s.inputs, s.params) for s in self.steps.values()]
            cells = [s.cells for s in self.steps.values()]
            self._calls = calls, cells
        if wanted is not None:
            calls = [call for call in calls if call[0] in wanted]
            cells = [self.steps[call[0]].cells for call in calls]
        values: dict[str, Value] = {}
        with arithmetic.context():
            for step_id, input in self.inputs.items():
                if wanted is None or step_id in wanted:
                    values[step_id] = given[step_id] if step_id in given else arithmetic.constant(input.matrix)
            xp = recording(arithmetic, cells)
            round_step, replaced = xp.round_step, {*given, *swap}
            step_id = ""
            try:
                for step_id, compute, inputs, params in calls:
                    if step_id in replaced:
                        if step_id in given:
                            values[step_id] = given[step_id]
                            continue
                        instead = swap[step_id]
                        compute, inputs, params = instead.op.compute, instead.inputs, instead.params
                    # Operands one by one: to hand over a list of them takes as long as many an op of small matrices.
                    if len(inputs) == 2:
                        value = compute(xp, values[inputs[0]], values[inputs[1]], **params)
                    elif len(inputs) == 1:
                        value = compute(xp, values[inputs[0]], **params)
                    else:
                        value = compute(xp, *[values[operand] for operand in inputs], **params)
                    values[step_id] = round_step(value)
            except (LimitError, NoSuchRow) as error:
                raise error.at(step_id) from None  # the steps before it can still be asked for
        return Trace(self, arithmetic.name, values)

    def _check_shape(self, step_id: str, shape: tuple[int, ...]) -> None:
        expected = self.shape(self.resolve(step_id))
        if shape != expected:
            raise ShapeError(
                "{name} is {shape}, but this calculation has {expected} there.",
                name=step_id,
                shape=show_shape(shape),
                expected=show_shape(expected),
            )


def _check_numbers(input_id: str, values: FloatArray, hidden: bool) -> None:
    if values.size == 0:
        raise InputError(
            "{name} is {shape}, so it is empty. Give it at least one number.",
            name=input_id,
            shape=show_shape(values.shape),
        )
    wrong = ~np.isfinite(values)
    if hidden:
        wrong &= ~np.isneginf(values)
    if wrong.any():
        raise InputError(
            "{name}[{index}] is not a finite number. Only scores and masks may hold -inf.",
            name=input_id,
            index=",".join(str(i + 1) for i in np.argwhere(wrong)[0]),
        )


# --- Names ------------------------------------------------------------------------------------------------------------


def part_of(step_id: str) -> str:
    """The part of a model that an id belongs to, with its dot: "layer2.ffn." for layer2.ffn.hidden, "" for scores."""
    return step_id[: step_id.rfind(".") + 1]


def default_symbol(step_id: str) -> str:
    """The LaTeX symbol of an id or an axis: W_Q is W_Q, G_W_Q is G_{W_Q}, K_past is K_{past}, d_model d_{model}."""
    head, _, tail = step_id.rpartition(".")[2].partition("_")
    if not tail:
        return head
    return f"{head}_{{{tail}}}" if len(tail) > 1 else f"{head}_{tail}"


def gradient_id(step_id: str) -> str:
    """The id of the gradient of `step_id`: G_Q for Q, self.G_Q for self.Q."""
    prefix, dot, name = step_id.rpartition(".")
    return f"{prefix}{dot}G_{name}"


def gradient_symbol(symbol: str) -> str:
    """LaTeX: G_A for A, G_{W_Q} for W_Q, G_{masked} for S_{masked}."""
    if symbol.startswith("S_{"):
        symbol = symbol[3:-1]
    return f"G_{symbol}" if len(symbol) == 1 else f"G_{{{symbol}}}"
