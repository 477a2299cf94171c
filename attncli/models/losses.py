"""A loss written as text, added to a graph: sum(O), O[1,1] + 2*O[1,2], 0.5*mse(O, T) + 0.01*sum(W_Q^2), -ln A[1,2].

Its gradients are what the backward steps start from: one for every array that the loss looks at. cross_entropy(logits, T)
and nll(P, T) are as torch.nn.functional.cross_entropy and nll_loss define them: minus the logarithm of each target's
probability, averaged over the tokens that count ("mean") or added up ("sum").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from attncli.arithmetic import Indices
from attncli.arithmetic.expression import FLOATS, evaluate, written
from attncli.core.axes import show_shape
from attncli.core.gradient import Backward, Seed, Seeds, upstream
from attncli.core.graph import Graph, Op
from attncli.core.matrix import Expression, Matrix
from attncli.core.message import N_, InputError, Message, unknown
from attncli.models.loss_text import ONE, Measure, negated, plain_text, read, times
from attncli.models.targets import Targets, class_weights, target_of
from attncli.ops.elementwise import IDENTITY, SCALE
from attncli.ops.losses import (
    AVERAGE,
    BATCH_SHARE,
    CLASS_ERROR,
    LOG_LOSS,
    LOG_SLOPE,
    MEAN_SQUARE,
    NEGATIVE_LOG,
    PICK,
    SQUARE_SUM,
    WEIGHTED_SUM,
    WEIGHTED_TOTAL,
    signed_sum,
)
from attncli.ops.rows import SUBTRACT
from attncli.ops.softmax import softmax

#: A loss with more terms, or longer numbers, stands as Σ G ⊙ O.
_MOST_TERMS, _MOST_DIGITS = 8, 12

#: Parts that are numbers times entries, and so one step together.
_LINEAR = ("entry", "sum", "mean")

_TWO: Expression = ("num", "2")

_CLASSES = N_("The targets, one {row} for each token: 1 at the class that would have been right, 0 elsewhere.")
_SOFT = N_("The targets, one {row} for each token: how probable each class should have been.")
_WEIGHTED = N_("Minus the logarithm of every probability, weighted by how probable the class should have been.")


def apply(graph: Graph, text: str, matrices: Targets) -> Seeds:
    """Add the steps of the loss L; returns what writes the gradients at the arrays it looks at.

    Parameters
    ----------
    text : the loss
    matrices : further matrices it may name (a target)

    Raises
    ------
    InputError, ShapeError
        Says what cannot be read or does not fit, and which forms there are.
    """
    parts = read(text, forms(graph))
    for part in parts:
        _check_factor(part, text)
        _check_array(graph, part)
    _check_learned(graph, parts)
    names = [part.name for part in parts]
    if graph.output not in names:
        steps = list(graph.steps)
        graph.output = max(names, key=lambda name: steps.index(name) if name in graph.steps else -1)
    groups = _grouped(parts)
    whole = _Whole(graph, matrices, plain_text(text), alone=len(groups) == 1)
    for number, group in enumerate(groups, start=1):
        whole.add(group, "loss." if number == 1 else f"loss{number}.")
    whole.finish()
    graph.loss = "L"
    return whole.seeds


def forms(graph: Graph) -> Message:
    """The forms a loss may have, for messages."""
    logits = logits_of(graph, graph.output)
    if logits is not None:
        return Message(
            "Write sum({output}), {output}[1,1] + 2*{output}[1,2], -ln {output}[1,2], nll({output}, classes),"
            " cross_entropy({logits}, classes), or mse({output}, target).",
            output=graph.output,
            logits=logits,
        )
    return Message(
        "Write sum({output}), {output}[1,1] + 2*{output}[1,2], 1/2*sum(({output} - target)^2), mse({output}, target), or cross_entropy({output}, classes).",
        output=graph.output,
    )


def logits_of(graph: Graph, step_id: str) -> str | None:
    """What softmax was taken of, where its result is the step of this id."""
    step = graph.steps.get(step_id)
    softmax = step.composite if step is not None and step.op.name == "divide" else None
    return None if softmax is None else softmax.source


def _softmax_of(graph: Graph, logits: str) -> str | None:
    """The softmax of these logits that stands in the graph already."""
    return next((step_id for step_id in graph.steps if logits_of(graph, step_id) == logits), None)


# --- What is asked for ------------------------------------------------------------------------------------------------


def _check_factor(part: Measure, text: str) -> None:
    try:
        finite = np.isfinite(evaluate(part.factor, FLOATS))
    except ZeroDivisionError:
        finite = False
    if not finite:
        raise InputError(
            "The loss “{loss}” has a factor that is not finite. Write ordinary numbers.", loss=plain_text(text)[:60]
        )


def _check_array(graph: Graph, part: Measure) -> None:
    """The array must be part of the calculation, and the entry in it."""
    name = part.name
    if name not in graph:
        raise _not_the_output(graph, name)
    shape = graph.shape(name)
    if len(shape) not in (2, 3):
        raise InputError(
            "The loss names {name}, which is {shape}: a loss is taken of matrices. {forms}",
            name=name,
            shape=show_shape(shape),
            forms=forms(graph),
        )
    if part.kind not in ("entry", "log"):
        return
    if len(part.index) != len(shape) or not all(1 <= i <= size for i, size in zip(part.index, shape, strict=False)):
        raise InputError(
            "The loss names {name}[{index}], but {name} is {shape}: rows and columns are counted from 1.",
            name=name,
            index=",".join(map(str, part.index)),
            shape=show_shape(shape),
        )


def _not_the_output(graph: Graph, name: str) -> InputError:
    return InputError(
        "The loss names “{name}”, but the output here is {output}. {forms}",
        name=name[:40],
        output=graph.output,
        forms=forms(graph),
    )


def _check_learned(graph: Graph, parts: Sequence[Measure]) -> None:
    """A loss looks at something that was worked out, and at nothing that stays as it is."""
    if not any(
        part.name in graph.steps
        or part.name == graph.output
        or (part.kind == "cross_entropy" and _softmax_of(graph, part.name))
        for part in parts
    ):
        raise _not_the_output(graph, parts[0].name)
    depends = {step_id for step_id, depth in Backward(graph, {}).depth.items() if depth is not None}
    for part in parts if depends else ():
        if part.name not in depends:
            raise InputError(
                "The loss names {name}, which depends on nothing that is learned here: it would send back no gradient. {forms}",
                name=part.name,
                forms=forms(graph),
            )


def _grouped(parts: Sequence[Measure]) -> list[list[Measure]]:
    """Entries and sums of one array together, its logarithms together, everything else by itself."""
    groups: dict[tuple[object, ...], list[Measure]] = {}
    for place, part in enumerate(parts):
        kind = "linear" if part.kind in _LINEAR else part.kind
        key = (kind, part.name) if kind in ("linear", "log") else (kind, place)
        groups.setdefault(key, []).append(part)
    return list(groups.values())


# --- The steps --------------------------------------------------------------------------------------------------------


class _Whole:
    """The loss as it grows: its parts, their factors, and what they send back."""

    def __init__(self, graph: Graph, matrices: Targets, text: str, *, alone: bool) -> None:
        self.graph, self.matrices, self.alone = graph, matrices, alone
        self.asked = Message("The loss as it was asked for: {loss}.", loss=text)
        self.text = text
        self.values: list[tuple[str, Expression]] = []
        self.seeds: dict[str, list[Seed]] = {}

    def add(self, group: Sequence[Measure], prefix: str) -> None:
        part = group[0]
        for axis in self.graph.axes(part.name):
            self.graph.bound.setdefault(axis.name, axis)
            self.graph.bound.setdefault(prefix + axis.name, axis)
        if part.kind in _LINEAR:
            self._linear(group, prefix)
        elif part.kind == "log":
            self._logarithms(group, prefix)
        elif part.kind in ("squares", "mean_squares"):
            self._squares(part, prefix)
        else:
            self._classes(part, prefix)

    def finish(self) -> None:
        """The parts with their factors added up to L, where L does not stand yet."""
        if "L" in self.graph:
            return
        ids, factors = zip(*self.values, strict=True)
        notes = {"written": tuple(_latex(factor) or f"{evaluate(factor, FLOATS):.6g}" for factor in factors)}
        self.graph.apply(
            WEIGHTED_TOTAL,
            "L",
            *ids,
            symbol="L",
            why=self.asked,
            factors=tuple(map(written, factors)),
            notes=notes,
        )

    def _result(self, op: Op, inputs: Sequence[str], name: str, factor: Expression = ONE, **more: Any) -> None:
        """A part's number; it is L where it is all of the loss."""
        step_id = "L" if self.alone and factor == ONE else name
        self.graph.apply(op, step_id, *inputs, symbol="L" if step_id == "L" else "l", **more)
        self.values.append((step_id, factor))

    def _target(self, target_id: str, matrix: Matrix, like: str, why: Message | str, symbol: str | None = None) -> str:
        """Numbers that the loss holds against the array `like`."""
        axes = [axis.name for axis in self.graph.axes(like)]
        return self.graph.input(target_id, matrix, axes, symbol=symbol, differentiable=False, phase="target", why=why)

    def _sends(self, name: str, label: str, write: Callable[[str, str], object]) -> None:
        """What writes a gradient at the array `name`: as the step of an id, with a symbol."""
        self.seeds.setdefault(name, []).append(Seed(label, write))

    def _linear(self, parts: Sequence[Measure], prefix: str) -> None:
        """Σ c ⊙ O: the number in front of each entry is its gradient."""
        graph, name = self.graph, parts[0].name
        shape = graph.shape(name)
        matrix = _by_cell(shape, (cell for part in parts for cell in _in_front(part, shape)))
        why = Message(
            "Read off the loss L = {loss}: the number in front of each entry of {output}.",
            loss=self.text,
            output=name,
        )
        if self.alone:
            given = upstream(graph, matrix, why)
            self.seeds[name] = []
        else:
            given = self._target(f"{prefix}C", matrix, name, why, "C")
            said = N_("A sum of entries: each one's gradient is the number in front of it.")
            self._sends(
                name, "linear", lambda step_id, symbol: graph.apply(IDENTITY, step_id, given, symbol=symbol, why=said)
            )
        self._result(
            WEIGHTED_SUM,
            (name, given),
            f"{prefix}linear",
            ndim=len(shape),
            notes={"written": _formula(graph.symbol(name), parts)},
            why=N_("The loss, as it was asked for.") if self.alone else None,
        )

    def _logarithms(self, parts: Sequence[Measure], prefix: str) -> None:
        """−ln of chosen entries."""
        graph, name = self.graph, parts[0].name
        shape = graph.shape(name)
        matrix = _by_cell(shape, ((part.place, negated(part.factor)) for part in parts))
        why = Message("Which entries of {name} the loss asks for: 1 where minus its logarithm counts once.", name=name)
        y = self._target(f"{prefix}Y", matrix, name, why, "Y")
        notes = {"written": _formula(graph.symbol(name), parts)}
        self._result(LOG_LOSS, (name, y), f"{prefix}nll", ndim=len(shape), notes=notes)
        self._sends(name, "nll", lambda step_id, symbol: graph.apply(LOG_SLOPE, step_id, name, y, symbol=symbol))

    def _squares(self, part: Measure, prefix: str) -> None:
        """Squared errors or the squares themselves, added up or averaged."""
        graph, name = self.graph, part.name
        shape = graph.shape(name)
        mean = part.kind == "mean_squares"
        base, label, why = name, "L2", None
        if part.target:
            base, label = self._error(part, prefix), "mse" if mean else "squares"
            why = N_("The loss: the mean of the squared errors.") if mean else N_("The squared errors, added up.")
        self._result(
            MEAN_SQUARE if mean else SQUARE_SUM,
            (base,),
            f"{prefix}{label if part.target else part.kind}",
            part.factor,
            ndim=len(shape),
            why=why,
        )
        count = math.prod(shape) if mean else 0
        slope = times(part.factor, ("/", _TWO, ("num", str(count))) if mean else _TWO)
        self._sends(name, label, lambda step_id, symbol: _square_slope(graph, step_id, base, symbol, slope, count))

    def _error(self, part: Measure, prefix: str) -> str:
        """How far each entry is from its target."""
        graph = self.graph
        target = target_of(graph, part, self.matrices)
        if target not in graph:
            why = N_("The target: what the output should have been.")
            self._target(target, self.matrices[target], part.name, why)
        step_id = "error" if "error" not in graph else f"{prefix}error"
        why = N_("How far each entry is from its target.")
        return graph.apply(SUBTRACT, step_id, part.name, target, symbol=r"\Delta", why=why)

    def _classes(self, part: Measure, prefix: str) -> None:
        """Cross-entropy from logits, or minus the logarithm of probabilities that stand there already."""
        logits = logits_of(self.graph, part.name)
        if part.kind == "cross_entropy" and logits is not None:
            raise InputError(
                "cross_entropy takes softmax of what it is given, but {name} is a softmax already: softmax would be taken"
                " twice. Write cross_entropy({logits}, {target}) for the scores, or nll({name}, {target}), which is"
                " minus the logarithm alone; of one entry -ln {name}[1,2].",
                name=part.name,
                logits=logits,
                target=part.target,
            )
        reduction = part.rest[0] if part.rest else "mean"
        if reduction not in ("mean", "sum"):
            raise unknown(Message("How the losses are put together"), reduction, ["mean", "sum"])
        graph, (weights, soft) = self.graph, class_weights(self.graph, part, self.matrices)
        token, counted = graph.axes(part.name)[0], np.flatnonzero(weights.values.any(-1))
        y = self._target(f"{prefix}Y", weights, part.name, _SOFT if soft else _CLASSES, "Y")
        p = part.name if part.kind == "nll" else _softmax_of(graph, part.name)
        p = p or softmax(graph, part.name, prefix=prefix, result="P", probabilities=True)
        surprise = self._surprise(p, y, soft, counted, prefix)
        self._result(AVERAGE, (surprise,), f"{prefix}{part.kind}", part.factor, mean=reduction == "mean")

        def error(step_id: str, symbol: str) -> str:
            if part.kind == "nll":
                return graph.apply(LOG_SLOPE, step_id, p, y, symbol=symbol)
            return graph.apply(CLASS_ERROR, step_id, p, y, symbol=symbol, some=len(counted) < token.size)

        among = len(counted) if reduction == "mean" else 1
        self._sends(part.name, part.kind, self._shared(error, among, part.factor, prefix))

    def _surprise(self, p: str, y: str, soft: bool, counted: Indices, prefix: str) -> str:
        """Minus the logarithm of each target's probability, of the tokens that count."""
        graph, token = self.graph, self.graph.axes(p)[0]
        if soft:
            return graph.apply(LOG_LOSS, f"{prefix}surprise", p, y, symbol="s", rows=True, why=_WEIGHTED)
        axis = token.name if len(counted) == token.size else _counted(graph, token.name, counted)
        picked = graph.apply(PICK, f"{prefix}picked", p, y, symbol="p", count=len(counted), axes=(axis,))
        return graph.apply(NEGATIVE_LOG, f"{prefix}surprise", picked, symbol="s")

    def _shared(
        self, error: Callable[[str, str], str], among: int, factor: Expression, prefix: str
    ) -> Callable[[str, str], object]:
        """The error of each token, shared among those that count where it is a mean, times the loss's factor."""
        graph, scaled = self.graph, factor != ONE
        if among == 1 and not scaled:
            return error

        def write(step_id: str, symbol: str) -> None:
            last = error(f"{prefix}error", r"\Delta")
            if among > 1:
                shared, look = (f"{prefix}shared", r"\Delta_{mean}") if scaled else (step_id, symbol)
                last = graph.apply(BATCH_SHARE, shared, last, symbol=look, count=among)
            if scaled:
                said = N_("The loss counts with its factor, and so does its gradient.")
                graph.apply(SCALE, step_id, last, symbol=symbol, factor=written(factor), why=said)

        return write


def _counted(graph: Graph, token: str, rows: Indices) -> str:
    """The axis of the tokens that count, called as these are."""
    if (labels := graph.labels.get(token)) is not None:
        graph.labels["counted"] = tuple(labels[i] for i in rows)
    return "counted"


def _in_front(part: Measure, shape: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Expression]]:
    """The cells that a part adds up, each with the number in front of it."""
    if part.kind == "entry":
        yield part.place, part.factor
        return
    factor = ("/", part.factor, ("num", str(math.prod(shape)))) if part.kind == "mean" else part.factor
    for cell in np.ndindex(*shape):
        yield cell, factor


def _by_cell(shape: tuple[int, ...], numbers: Iterable[tuple[tuple[int, ...], Expression]]) -> Matrix:
    """Numbers at their cells, those of the same cell added up, and 0 elsewhere."""
    at: dict[tuple[int, ...], Expression] = {}
    for cell, factor in numbers:
        at[cell] = ("+", at[cell], factor) if cell in at else factor
    every = tuple(at.get(cell, ("num", "0")) for cell in np.ndindex(*shape))
    values = np.array([evaluate(entry, FLOATS) for entry in every]).reshape(shape) + 0.0
    return Matrix(values, None, every)


def _square_slope(graph: Graph, step_id: str, base: str, symbol: str, slope: Expression, count: int) -> None:
    """∂(c a²)/∂a = 2c a."""
    if evaluate(slope, FLOATS) == 1.0:
        cancels = N_("The slope of a square is twice its base, and the factor in front cancels the 2.")
        graph.apply(IDENTITY, step_id, base, symbol=symbol, why=cancels)
        return
    shares = N_("The slope of a square is twice its base, and the mean shares it among {count} entries.")
    times = N_("The slope of a square is twice its base, times the factor in front of it.")
    why = Message(shares, count=count) if count else times
    graph.apply(SCALE, step_id, base, symbol=symbol, factor=written(slope), why=why)


# --- Formulas ---------------------------------------------------------------------------------------------------------


def _formula(symbol: str, parts: Sequence[Measure]) -> str:
    r"""The measures as they were written, O[1,1] + 2 \cdot O[1,2]; empty where it is no short sum."""
    if len(parts) == 1 and parts[0].kind == "sum" and parts[0].factor == ONE:
        return r"\sum #1"
    factors = [_latex(part.factor) for part in parts]
    if len(parts) > _MOST_TERMS or None in factors:
        return ""
    return signed_sum((factor or "", _measure(symbol, part)) for factor, part in zip(factors, parts, strict=True))


def _measure(symbol: str, part: Measure) -> str:
    if part.kind in ("sum", "mean"):
        return rf"\sum {symbol}" if part.kind == "sum" else rf"\frac{{1}}{{N}} \sum {symbol}"
    return (r"\ln " if part.kind == "log" else "") + f"{symbol}[{','.join(map(str, part.index))}]"


def _latex(entry: Expression | str) -> str | None:
    """A number, a fraction or a root, perhaps with a minus before it; anything else has none here."""
    match entry:
        case ("neg", positive):
            latex = _latex(positive)
            return None if latex is None else f"-{latex}"
        case ("num", str(text)) if len(text) <= _MOST_DIGITS:
            return text
        case ("/", above, ("num", _) as below):
            over, under = _latex(above), _latex(below)
            return rf"\frac{{{over}}}{{{under}}}" if over and under else None
        case ("sqrt", ("num", str(text))) if len(text) <= _MOST_DIGITS:
            return rf"\sqrt{{{text}}}"
    return None
