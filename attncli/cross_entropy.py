"""The loss cross_entropy(logits, T): softmax over the classes, minus the logarithm of each target's probability.

As torch.nn.functional.cross_entropy defines it: averaged over the tokens that count (reduction "mean"), or added up
("sum"). Steps loss.row_max … loss.P, loss.picked, loss.surprise, L; and backwards loss.error and the logits' gradient.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from attncli.core.graph import Graph, show_shape
from attncli.gradient import gradient_id, gradient_symbol
from attncli.matrix import Matrix
from attncli.message import N_, InputError, Message, ShapeError, unknown
from attncli.ops import average, batch_share, class_error, negative_log, pick
from attncli.softmax import softmax

#: Targets that say: this token does not count. The second is PyTorch's.
NOT_COUNTED = (-1, -100)

_PART = "loss."


def cross_entropy(graph: Graph, arguments: Sequence[str], matrices: Mapping[str, Matrix], forms: Message) -> None:
    """Add the loss over the graph's output (token class) and the gradient there.

    Parameters
    ----------
    arguments : the output, the name of the targets, and perhaps "mean" or "sum"
    matrices : where the targets are found; the model's own token ids stand for the next token of each
    forms : the ways to write a loss, for messages

    Raises
    ------
    InputError, ShapeError
        Targets that are missing, that are no classes, or of another number; what to write instead.
    """
    if not 2 <= len(arguments) <= 3 or not arguments[1]:
        raise InputError("cross_entropy takes the output and the targets. {forms}", forms=forms)
    name, reduction = arguments[1], arguments[2] if len(arguments) == 3 else "mean"
    if reduction not in ("mean", "sum"):
        raise unknown(Message(N_("How the losses are put together")), reduction, ["mean", "sum"])
    if len(graph.shape(graph.output)) != 2:
        raise ShapeError(
            "cross_entropy needs one {row} of scores for each token, but {output} is {shape}. Use a loss like sum({output}).",
            output=graph.output,
            shape=show_shape(graph.shape(graph.output)),
        )
    targets = _targets(graph, name, matrices)
    counted = targets >= 0
    if not counted.any():
        raise InputError("No token counts: every target is −1. Give at least one a class, counted from 0.")
    _steps(graph, targets, counted, reduction == "mean")


def _targets(graph: Graph, name: str, matrices: Mapping[str, Matrix]) -> np.ndarray[tuple[int], np.dtype[np.int_]]:
    """The class of every token, −1 where it does not count."""
    tokens, classes = graph.shape(graph.output)
    own = _own_tokens(graph, name)
    if own is not None and name not in matrices:
        if len(own) != tokens:
            raise ShapeError(
                "{name} has {count} tokens, but {output} has {rows} rows.",
                name=name,
                count=len(own),
                output=graph.output,
                rows=tokens,
            )
        graph.notes.append(
            Message(
                N_(
                    "{name} is the text itself, so each token has to predict the one that follows it. The last one has"
                    " nothing to predict and does not count."
                ),
                name=name,
            )
        )
        given = np.array([*own[1:], -1.0])
    elif name in matrices:
        given = matrices[name].values.ravel()
    else:
        raise InputError(
            "The loss names the targets “{name}”, which are not given. Give them beside the loss, in [gradient] of the"
            ' problem file ({name} = "…") or with --set {name}="…": for each token the class it should get, counted from'
            " 0, and −1 where it does not count.",
            name=name,
        )
    if len(given) != tokens:
        raise ShapeError(
            "The targets {name} are {count}, but {output} has {rows} rows, one for each token. Give one class for each;"
            " −1 where it does not count.",
            name=name,
            count=len(given),
            output=graph.output,
            rows=tokens,
        )
    return np.array([_class(name, position, value, classes) for position, value in enumerate(given, start=1)])


def _own_tokens(graph: Graph, name: str) -> Sequence[float] | None:
    """The ids of the tokens that the model itself takes under this name."""
    if name in graph.inputs and len(graph.shape(name)) == 1:
        return [float(value) for value in graph.inputs[name].matrix.values]
    step = graph.steps.get(name)
    return None if step is None or step.op.name != "encode" else [float(value) for value in step.params["ids"]]


def _class(name: str, position: int, value: float, classes: int) -> int:
    if value in NOT_COUNTED:
        return -1
    if not np.isfinite(value) or value != int(value) or not 0 <= value < classes:
        raise InputError(
            "{name}, entry {position}: {value} is not a class. Classes are whole numbers from 0 to {last}; −1 means that the"
            " token does not count.",
            name=name,
            position=position,
            value=f"{value:g}",
            last=classes - 1,
        )
    return int(value)


def one_hot(targets: np.ndarray[tuple[int], np.dtype[np.int_]], classes: int) -> Matrix:
    """Y (token class): a single 1 in the row of every token, at its target; nothing where a target is −1."""
    rows = np.zeros((len(targets), classes))
    counted = np.flatnonzero(targets >= 0)
    rows[counted, targets[counted]] = 1.0
    return Matrix(rows)


def _steps(
    graph: Graph,
    targets: np.ndarray[tuple[int], np.dtype[np.int_]],
    counted: np.ndarray[tuple[int], np.dtype[np.bool_]],
    mean: bool,
) -> None:
    output = graph.output
    token, classes = graph.axes(output)
    for axis in (token, classes):
        graph.bound.setdefault(_PART + axis.name, axis)
    y = graph.input(
        f"{_PART}Y",
        one_hot(targets, classes.size),
        (token.name, classes.name),
        symbol="Y",
        differentiable=False,
        phase="target",
        why=Message(
            N_("The targets, one {row} for each token: 1 at the class that would have been right, 0 elsewhere.")
        ),
    )
    p = softmax(graph, output, prefix=_PART, result="P", probabilities=True)
    rows = np.flatnonzero(counted)
    axis_name = token.name if counted.all() else "counted"
    labels = graph.labels.get(token.name)
    if labels is not None and not counted.all():
        graph.labels["counted"] = tuple(labels[i] for i in rows)
    picked = graph.apply(pick.OP, f"{_PART}picked", p, y, symbol="p", count=len(rows), axis=axis_name)
    surprise = graph.apply(negative_log.OP, f"{_PART}surprise", picked, symbol="s")
    graph.apply(average.OP, "L", surprise, symbol="L", mean=mean)
    graph.loss = "L"
    graph.phase = "backward"
    share = mean and len(rows) > 1
    target, symbol = gradient_id(output), gradient_symbol(graph.symbol(output))
    error_id, error_symbol = (f"{_PART}error", r"\Delta") if share else (target, symbol)
    error = graph.apply(class_error.OP, error_id, p, y, symbol=error_symbol, some=not counted.all())
    if share:
        graph.apply(batch_share.OP, target, error, symbol=symbol, count=len(rows))
    graph.phase = "forward"
