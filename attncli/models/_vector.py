"""Vectors that every row shares (biases, γ, β), as one row."""

from __future__ import annotations

from attncli.graph import Graph
from attncli.matrix import Matrix
from attncli.message import Message
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
    """Add a vector (1 axis) to the graph where it is given; returns its id, or None."""
    if name not in given:
        return None
    return graph.input(id or name, one_row(given.inputs[name]), ("", axis), symbol=symbol, why=why)
