"""Vectors that every row shares (biases, γ, β), as one row."""

from __future__ import annotations

from attncli.core.graph import Graph, show_shape
from attncli.core.matrix import Matrix
from attncli.core.message import Message, ShapeError
from attncli.models import Given


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
    graph: Graph, given: Given, name: str, axis: str, *, id: str | None = None, symbol: str | None = None, why: Message
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
    return graph.input(id or name, row, ("", axis), symbol=symbol, why=why)
