"""The losses cross_entropy(logits, T) and nll(P, T): minus the logarithm of each target's probability.

As torch.nn.functional.cross_entropy and nll_loss define them: averaged over the tokens that count (reduction "mean"), or
added up ("sum"); a target is a class, or a row of probabilities (soft). cross_entropy takes softmax of its logits, nll
takes probabilities. Steps loss.row_max … loss.P, loss.picked, loss.surprise, L; and backwards loss.error and the gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from attncli.arithmetic.expression import written
from attncli.core.axes import show_shape
from attncli.core.graph import Graph
from attncli.core.matrix import Matrix
from attncli.core.message import N_, InputError, Message, ShapeError, unknown
from attncli.models.loss_text import ONE, Measure
from attncli.ops.elementwise import SCALE
from attncli.ops.losses import BATCH_SHARE, CLASS_ERROR, LOG_LOSS, LOG_SLOPE, NEGATIVE_LOG, PICK
from attncli.ops.softmax import softmax

_CLASSES = N_("The targets, one {row} for each token: 1 at the class that would have been right, 0 elsewhere.")
_SOFT = N_("The targets, one {row} for each token: how probable each class should have been.")
_WEIGHTED = N_("Minus the logarithm of every probability, weighted by how probable the class should have been.")

#: Targets that say: this token does not count. The second is PyTorch's.
NOT_COUNTED = (-1, -100)


def add(
    graph: Graph, part: Measure, matrices: Mapping[str, Matrix], prefix: str, probabilities: str | None
) -> tuple[str, bool, Callable[[str, str], None]]:
    """Add the steps of one loss over classes up to the surprise of each token.

    Parameters
    ----------
    part : what is asked for: the array (token class), the targets, and perhaps "mean" or "sum"
    matrices : where the targets are found; the model's own token ids stand for the next token of each
    probabilities : a step that is the softmax of the logits already, or the probabilities themselves

    Returns
    -------
    The id of the surprises, whether their mean is taken (else their sum), and what writes the gradient at the array

    Raises
    ------
    InputError, ShapeError
        Targets that are missing, that are no classes, or of another number; what to write instead.
    """
    reduction = part.rest[0] if part.rest else "mean"
    if reduction not in ("mean", "sum"):
        raise unknown(Message("How the losses are put together"), reduction, ["mean", "sum"])
    if len(graph.shape(part.name)) != 2:
        raise ShapeError(
            "{loss} needs one {row} of scores for each token, but {output} is {shape}. Use a loss like sum({output}).",
            loss=part.kind,
            output=part.name,
            shape=show_shape(graph.shape(part.name)),
        )
    token, classes = graph.axes(part.name)
    soft = _soft(graph, part, matrices)
    weights = soft or one_hot(_targets(graph, part.name, part.target, matrices), classes.size)
    rows = np.flatnonzero(weights.values.any(-1))
    if not len(rows):
        raise InputError("No token counts: every target is −1. Give at least one a class, counted from 0.")
    axes = (token.name, classes.name)
    why = _SOFT if soft else _CLASSES
    y = graph.input(f"{prefix}Y", weights, axes, symbol="Y", differentiable=False, phase="target", why=why)
    p = probabilities or softmax(graph, part.name, prefix=prefix, result="P", probabilities=True)
    if soft:
        surprise = graph.apply(LOG_LOSS, f"{prefix}surprise", p, y, symbol="s", rows=True, why=_WEIGHTED)
    else:
        axis = token.name if len(rows) == token.size else _counted(graph, token.name, rows.tolist())
        picked = graph.apply(PICK, f"{prefix}picked", p, y, symbol="p", count=len(rows), axes=(axis,))
        surprise = graph.apply(NEGATIVE_LOG, f"{prefix}surprise", picked, symbol="s")

    def error(step_id: str, symbol: str) -> str:
        if part.kind == "nll":
            return graph.apply(LOG_SLOPE, step_id, p, y, symbol=symbol)
        return graph.apply(CLASS_ERROR, step_id, p, y, symbol=symbol, some=len(rows) < token.size)

    def send_back(step_id: str, symbol: str) -> None:
        """The error of each token, shared among those that count where it is a mean, times the loss's factor."""
        among, scaled = len(rows) if reduction == "mean" else 1, part.factor != ONE
        if among == 1 and not scaled:
            error(step_id, symbol)
            return
        last = error(f"{prefix}error", r"\Delta")
        if among > 1:
            shared, look = (f"{prefix}shared", r"\Delta_{mean}") if scaled else (step_id, symbol)
            last = graph.apply(BATCH_SHARE, shared, last, symbol=look, count=among)
        if scaled:
            said = N_("The loss counts with its factor, and so does its gradient.")
            graph.apply(SCALE, step_id, last, symbol=symbol, factor=written(part.factor), why=said)

    return surprise, reduction == "mean", send_back


def _counted(graph: Graph, token: str, rows: Sequence[int]) -> str:
    """The axis of the tokens that count, called as these are."""
    if (labels := graph.labels.get(token)) is not None:
        graph.labels["counted"] = tuple(labels[i] for i in rows)
    return "counted"


def _soft(graph: Graph, part: Measure, matrices: Mapping[str, Matrix]) -> Matrix | None:
    """The targets as rows of probabilities, where they are given so."""
    matrix = matrices.get(part.target)
    tokens, classes = graph.shape(part.name)
    if matrix is None or matrix.shape != (tokens, classes) or matrix.values.size == tokens:
        return None
    if (matrix.values < 0).any():
        raise InputError("{name} has a negative number, but its rows are probabilities.", name=part.target)
    sums = matrix.values.sum(-1)
    wrong = np.flatnonzero(np.abs(sums - 1) > 1e-6)
    if len(wrong):
        raise InputError(
            "{name}, row {row} adds up to {sum}, but a row of probabilities adds up to 1. Give that, or one class for each"
            " token, counted from 0.",
            name=part.target,
            row=int(wrong[0]) + 1,
            sum=f"{sums[wrong[0]]:g}",
        )
    return matrix


def _targets(
    graph: Graph, output: str, name: str, matrices: Mapping[str, Matrix]
) -> np.ndarray[tuple[int], np.dtype[np.int_]]:
    """The class of every token, −1 where it does not count."""
    tokens, classes = graph.shape(output)
    own = _own_tokens(graph, name)
    if own is not None and name not in matrices:
        if len(own) != tokens:
            raise ShapeError(
                "{name} has {count} tokens, but {output} has {rows} rows.",
                name=name,
                count=len(own),
                output=output,
                rows=tokens,
            )
        graph.notes.append(
            Message(
                "{name} is the text itself, so each token has to predict the one that follows it. The last one has"
                " nothing to predict and does not count.",
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
            "{name} has {count} targets, but {output} has {rows} rows, one for each token. Give one class for each; −1 where it does not count.",
            name=name,
            count=len(given),
            output=output,
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
