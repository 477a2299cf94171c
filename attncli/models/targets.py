"""What a loss is held against: a target for every entry, or for every token a class or a row of probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from attncli.arithmetic import Indices
from attncli.core.axes import show_shape
from attncli.core.graph import Graph
from attncli.core.matrix import Matrix
from attncli.core.message import InputError, Message, ShapeError
from attncli.models.loss_text import Measure

#: What is given beside a loss, by name.
Targets: TypeAlias = Mapping[str, Matrix]

#: Targets that say: this token does not count. The second is PyTorch's.
NOT_COUNTED = (-1, -100)


def target_of(graph: Graph, part: Measure, matrices: Targets) -> str:
    """The name of what is subtracted, which is given and fits."""
    output, target = part.name, part.target
    if not (target.isascii() and target.isidentifier()):
        raise InputError(
            "The target “{target}” is not a name. Use letters, digits and _, like “target”.", target=target[:40]
        )
    again = target in graph.inputs and graph.inputs[target].phase == "target"
    if (target in graph and not again) or target in ("L", "error") or target.startswith("G_"):
        raise InputError(
            "The loss names “{target}” as its target, but that is part of this calculation already. Give the target a name"
            " of its own, like target: mse({output}, target).",
            target=target,
            output=output,
        )
    if target not in matrices:
        raise InputError(
            "The loss names the target “{target}”, which is not given. Give it beside the loss, in [gradient] of the"
            ' problem file ({target} = "…") or with --set {target}="…".',
            target=target,
        )
    shape = matrices[target].shape
    if shape != graph.shape(output):
        raise ShapeError(
            "The target {target} is {shape}, but the output {output} is {expected}. Give one target number for each entry.",
            target=target,
            shape=show_shape(shape),
            output=output,
            expected=show_shape(graph.shape(output)),
        )
    return target


# --- classes ----------------------------------------------------------------------------------------------------------


def class_weights(graph: Graph, part: Measure, matrices: Targets) -> tuple[Matrix, bool]:
    """How much each class counts (token class), 1 at the target of a token; and whether probabilities were given (soft).

    The model's own token ids stand for the next token of each.

    Raises
    ------
    InputError, ShapeError
        Targets that are missing, that are no classes, or of another number; what to write instead.
    """
    shape = graph.shape(part.name)
    if len(shape) != 2:
        raise ShapeError(
            "{loss} needs one {row} of scores for each token, but {output} is {shape}. Use a loss like sum({output}).",
            loss=part.kind,
            output=part.name,
            shape=show_shape(shape),
        )
    soft = _soft(graph, part, matrices)
    weights = soft or one_hot(_targets(graph, part.name, part.target, matrices), shape[1])
    if not weights.values.any():
        raise InputError("No token counts: every target is −1. Give at least one a class, counted from 0.")
    return weights, soft is not None


def _soft(graph: Graph, part: Measure, matrices: Targets) -> Matrix | None:
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


def _targets(graph: Graph, output: str, name: str, matrices: Targets) -> Indices:
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


def one_hot(targets: Indices, classes: int) -> Matrix:
    """Y (token class): a single 1 in the row of every token, at its target; nothing where a target is −1."""
    rows = np.zeros((len(targets), classes))
    counted = np.flatnonzero(targets >= 0)
    rows[counted, targets[counted]] = 1.0
    return Matrix(rows)
