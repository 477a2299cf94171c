"""Why scores are divided by √d_k: the spread of a dot product, measured beside what theory says.

With entries of q and k independent, mean 0 and variance 1, every product q_i k_i has mean 0 and variance 1, and the
variances of independent numbers add up: Var(q·k) = d_k (Vaswani et al., arXiv 1706.03762, section 3.2.1, footnote 4).
"""

from __future__ import annotations

import numpy as np

from attncli.core.graph import Axis, Graph, default_symbol
from attncli.core.matrix import Matrix, as_matrix
from attncli.core.message import N_, Message
from attncli.models import Argument, Given, Model
from attncli.ops import mean_square, multiply, root, row_sum, scale


def build(graph: Graph, given: Given) -> str:
    """q, k (sample d_k) → scaled (sample 1), with the variances before and after; returns the id of scaled."""
    q = graph.input("q", given.inputs["q"], ("sample", "d_k"), why=Message(N_("Many queries, one a {row}.")))
    k = graph.input("k", given.inputs["k"], ("sample", "d_k"), why=Message(N_("As many keys, one a {row}.")))
    _measure(graph, q, k)
    _expect(graph, graph.axes(q)[-1].size)
    return "scaled"


def _measure(graph: Graph, q: str, k: str) -> None:
    """products, dots, variance, std, scaled, scaled_variance: from the samples."""
    graph.apply(
        multiply.OP,
        "products",
        q,
        k,
        symbol="P",
        why=Message(N_("Each query is multiplied by its own key, entry by entry.")),
    )
    graph.apply(
        row_sum.OP, "dots", "products", symbol="s", why=Message(N_("Added up along the {row}: one score q·k a sample."))
    )
    graph.apply(mean_square.OP, "variance", "dots", symbol=r"\sigma^2", why=Message(_MEASURED))
    graph.apply(root.OP, "std", "variance", symbol=r"\sigma")
    width = graph.axes(q)[-1]
    graph.apply(
        scale.OP,
        "scaled",
        "dots",
        symbol="s_{scaled}",
        root=as_matrix(width.size),
        label=default_symbol(width.name),
        why=Message(N_("The same scores, divided by √{d}."), d=width.size),
    )
    graph.apply(mean_square.OP, "scaled_variance", "scaled", symbol=r"\sigma_{scaled}^2", why=Message(_MEASURED))


_MEASURED = N_("The measured variance: the mean of the squares, because the mean itself is 0 (up to chance).")


def _expect(graph: Graph, width: int) -> None:
    """expected_variance, expected_std, expected_scaled_variance: what theory says."""
    graph.bound.setdefault("", Axis("", 1, "unit"))
    graph.input(
        "unit",
        Matrix(np.ones((1, width)), np.zeros((1, width), dtype=np.int_)),
        ("", "d_k"),
        symbol=r"\mathbf{1}",
        differentiable=False,
        why=Message(N_("In theory: the variance of each of the {d} products is 1 · 1 = 1."), d=width),
    )
    graph.apply(
        row_sum.OP,
        "expected_variance",
        "unit",
        symbol=r"\operatorname{Var}",
        why=Message(N_("In theory: variances of independent numbers add up, so Var(q·k) = d_k = {d}."), d=width),
    )
    graph.apply(root.OP, "expected_std", "expected_variance", symbol=r"\operatorname{Std}")
    graph.apply(
        scale.OP,
        "expected_scaled_variance",
        "expected_variance",
        symbol=r"\operatorname{Var}_{scaled}",
        factor=Matrix(np.asarray(1.0 / width), None, (("/", ("num", "1"), ("num", str(width))),)),
        why=Message(
            N_("In theory: dividing numbers by √{d} divides their variance by {d}, which leaves 1, whatever d_k is."),
            d=width,
        ),
    )


MODEL = Model(
    name="dot_variance",
    text=N_("why scores are divided by √d_k: the variance of many dot products q·k, before and after"),
    arguments=(
        Argument("q", ("sample", "d_k"), N_("random queries, one row per sample")),
        Argument("k", ("sample", "d_k"), N_("random keys, one row per sample")),
    ),
    settings=(),
    build=build,
)
