"""The losses cross_entropy(logits, T) and nll(P, T): minus the logarithm of each target's probability.

As torch.nn.functional.cross_entropy and nll_loss define them: averaged over the tokens that count (reduction "mean"), or
added up ("sum"); a target is a class, or a row of probabilities (soft). cross_entropy takes softmax of its logits, nll
takes probabilities. Steps loss.row_max … loss.P, loss.picked, loss.surprise, L; and backwards loss.error and the gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from attncli.core.graph import Graph, show_shape
from attncli.core.matrix import Matrix
from attncli.core.message import N_, InputError, Message, ShapeError, unknown
from attncli.models.loss_text import ONE, Factor, Measure
from attncli.ops.elementwise import SCALE
from attncli.ops.losses import AVERAGE, BATCH_SHARE, CLASS_ERROR, LOG_LOSS, LOG_SLOPE, NEGATIVE_LOG, PICK
from attncli.ops.softmax import softmax

#: Targets that say: this token does not count. The second is PyTorch's.
NOT_COUNTED = (-1, -100)

#: Writes the gradient with a factor in front: (id, symbol, factor).
SendBack: TypeAlias = Callable[[str, str, Factor], None]


def add(
    graph: Graph,
    part: Measure,
    matrices: Mapping[str, Matrix],
    forms: Message,
    prefix: str,
    step_id: str,
    probabilities: str | None,
) -> SendBack:
    """Add the steps of one loss over classes, the last called `id`; returns what writes its gradient.

    Parameters
    ----------
    part : what is asked for: the array (token class), the targets, and perhaps "mean" or "sum"
    matrices : where the targets are found; the model's own token ids stand for the next token of each
    forms : the ways to write a loss, for messages
    probabilities : a step that is the softmax of the logits already, or the probabilities themselves

    Raises
    ------
    InputError, ShapeError
        Targets that are missing, that are no classes, or of another number; what to write instead.
    """
    reduction = part.rest[0] if part.rest else "mean"
    if reduction not in ("mean", "sum"):
        raise unknown(Message(N_("How the losses are put together")), reduction, ["mean", "sum"])
    if len(graph.shape(part.name)) != 2:
        raise ShapeError(
            "{loss} needs one {row} of scores for each token, but {output} is {shape}. Use a loss like sum({output}).",
            loss=part.kind,
            output=part.name,
            shape=show_shape(graph.shape(part.name)),
        )
    soft = _soft(graph, part, matrices)
    targets = None if soft is not None else _targets(graph, part.name, part.target, matrices)
    if targets is not None and not (targets >= 0).any():
        raise InputError("No token counts: every target is −1. Give at least one a class, counted from 0.")
    return _Classes(graph, part, prefix, step_id, probabilities, soft, targets, reduction == "mean").written()


def _soft(graph: Graph, part: Measure, matrices: Mapping[str, Matrix]) -> Matrix | None:
    """The targets as rows of probabilities, where they are given so.

    Raises
    ------
    InputError
        Numbers below 0, or a row that does not add up to 1.
    """
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


class _Classes:
    """One loss over classes: its steps and its gradient."""

    def __init__(
        self,
        graph: Graph,
        part: Measure,
        prefix: str,
        step_id: str,
        probabilities: str | None,
        soft: Matrix | None,
        targets: np.ndarray[tuple[int], np.dtype[np.int_]] | None,
        mean: bool,
    ) -> None:
        self.graph, self.part, self.prefix, self.id, self.mean = graph, part, prefix, step_id, mean
        self.probabilities, self.soft, self.targets = probabilities, soft, targets
        token, classes = graph.axes(part.name)
        self.token = token.name
        counted = np.ones(token.size, dtype=np.bool_) if targets is None else targets >= 0
        self.rows = np.flatnonzero(counted)
        self.some = not counted.all()
        matrix = soft if targets is None else one_hot(targets, classes.size)
        assert matrix is not None
        self.weights = matrix
        said = (
            N_("The targets, one {row} for each token: how probable each class should have been.")
            if targets is None
            else N_("The targets, one {row} for each token: 1 at the class that would have been right, 0 elsewhere.")
        )
        names = (token.name, classes.name)
        self.y = graph.input(
            f"{prefix}Y", matrix, names, symbol="Y", differentiable=False, phase="target", why=Message(said)
        )

    def written(self) -> SendBack:
        graph, prefix = self.graph, self.prefix
        self.p = self.probabilities or softmax(graph, self.part.name, prefix=prefix, result="P", probabilities=True)
        if self.targets is None:
            why = Message(
                N_("Minus the logarithm of every probability, weighted by how probable the class should have been.")
            )
            surprise = graph.apply(
                LOG_LOSS, f"{prefix}surprise", self.p, self.y, symbol="s", rows=True,
                why=why,
            )  # fmt: skip
        else:
            surprise = self._of_classes()
        graph.apply(AVERAGE, self.id, surprise, symbol="L" if self.id == "L" else "l", mean=self.mean)
        return self._send_back

    def _of_classes(self) -> str:
        graph, prefix, rows = self.graph, self.prefix, self.rows
        labels = graph.labels.get(self.token)
        if labels is not None and self.some:
            graph.labels["counted"] = tuple(labels[i] for i in rows)
        axis = self.token if not self.some else "counted"
        picked = graph.apply(PICK, f"{prefix}picked", self.p, self.y, symbol="p", count=len(rows), axes=(axis,))
        return graph.apply(NEGATIVE_LOG, f"{prefix}surprise", picked, symbol="s")

    def _send_back(self, step_id: str, symbol: str, factor: Factor) -> None:
        """The error, shared among the tokens, times the factor in front of the loss; `id` is the last of these."""
        graph, prefix = self.graph, self.prefix
        share, scaled = self.mean and len(self.rows) > 1, factor.entry != ONE.entry
        last = step_id if not share and not scaled else f"{prefix}error"
        look = symbol if last == step_id else r"\Delta"
        if self.part.kind == "nll":
            graph.apply(LOG_SLOPE, last, self.p, self.y, symbol=look)
        else:
            graph.apply(CLASS_ERROR, last, self.p, self.y, symbol=look, some=self.some)
        if share:
            shared = f"{prefix}shared" if scaled else step_id
            graph.apply(BATCH_SHARE, shared, last, symbol=r"\Delta_{mean}" if scaled else symbol, count=len(self.rows))
            last = shared
        if scaled:
            said = Message(N_("The loss counts with its factor, and so does its gradient."))
            times = Matrix(np.asarray(factor.value), None, (factor.entry,))
            graph.apply(SCALE, step_id, last, symbol=symbol, factor=times, why=said)
