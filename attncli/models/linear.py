"""x W + b, as every layer has it: a weight matrix, and perhaps a bias that all rows share."""

from __future__ import annotations

from attncli.core.graph import Graph, show_shape
from attncli.core.matrix import Matrix
from attncli.core.message import N_, Message, ShapeError
from attncli.models.model import Given
from attncli.ops.product import AFFINE, PRODUCT


def linear(
    graph: Graph,
    given: Given,
    x: str,
    step_id: str,
    weight: str,
    axis: str,
    *,
    bias: str | None = None,
    symbol: str | None = None,
    why: str,
) -> str:
    """The step `id`: x ([…] i) times the weights (i axis), plus a bias (axis) where one of this name is given; returns its id.

    Ids and names stand in the part of the model they belong to: self.Q, self.W_Q, self.b_Q.
    """
    w = graph.input(weight, given.inputs[weight], (graph.axes(x)[-1].name, axis))
    said = Message(
        N_("The bias of {name}: the same numbers are added to every {row}."), name=step_id.rpartition(".")[2]
    )
    b = None if bias is None else vector(graph, given, bias, axis, why=said)
    return times(graph, x, w, b, step_id, symbol=symbol, why=why)


def times(
    graph: Graph,
    x: str,
    w: str,
    b: str | None,
    step_id: str,
    *,
    symbol: str | None = None,
    why: str,
    transposed: bool = False,
) -> str:
    """The step `id`: x W or, with a bias, x W + b; `transposed`: x Wᵀ."""
    if b is None:
        return graph.apply(PRODUCT, step_id, x, w, symbol=symbol, why=Message(why), transpose_b=transposed)
    return graph.apply(AFFINE, step_id, x, w, b, symbol=symbol, why=Message(why), transpose_b=transposed)


def logits(graph: Graph, given: Given, x: str, tied: str | None = None) -> str:
    """The step logits: one score for every entry of the vocabulary, with W_out or with a table that is used again."""
    weight = tied
    if weight is None:
        why = N_("Weights that turn a token's vector into one score for every entry of the vocabulary.")
        weight = graph.input("W_out", given.inputs["W_out"], (graph.axes(x)[-1].name, "vocabulary"), why=why)
    bias = vector(graph, given, "b_out", "vocabulary", why=N_("The bias of the logits."))
    said = N_("One score for every entry of the vocabulary: how well it would go on from here.")
    return times(graph, x, weight, bias, "logits", symbol="Z", why=said, transposed=tied is not None)


def one_row(matrix: Matrix) -> Matrix:
    """A vector written as a list, a row or a column, as one row; anything else as it is."""
    size = matrix.values.size
    if max(matrix.shape, default=1) != size:
        return matrix
    return Matrix(
        matrix.values.reshape(1, size),
        None if matrix.decimals is None else matrix.decimals.reshape(1, size),
        matrix.entries,
    )


def vector(
    graph: Graph, given: Given, name: str, axis: str, *, symbol: str | None = None, why: Message | str
) -> str | None:
    """Add a vector (1 axis) to the graph where it is given; returns its id, or None.

    Raises
    ------
    ShapeError
        Several rows.
    """
    if name not in given:
        return None
    row = one_row(given.inputs[name])
    if row.values.ndim == 2 and row.shape[0] != 1:
        before = graph.binding(name, axis)
        raise ShapeError(
            "{name} is {shape}, but it is a vector: all {rows} share it. Write one {row} of {length}.",
            name=name,
            shape=show_shape(row.shape),
            length=row.shape[1] if before is None else before.size,
        )
    return graph.input(name, row, ("", axis), symbol=symbol, why=why)
