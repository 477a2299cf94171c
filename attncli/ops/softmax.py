"""Softmax over rows, in its visible steps, with its closed gradient."""

from __future__ import annotations

import numpy as np

from attncli.core.graph import CompositeRule, Graph, Step, part_of
from attncli.core.matrix import BoolArray, Matrix
from attncli.core.message import N_
from attncli.ops.elementwise import EXP, MULTIPLY
from attncli.ops.rows import BROADCAST, DIVIDE, LOGARITHM, ROW_MAX, ROW_SUM, SUBTRACT

_WEIGHTS_SOME_EMPTY = N_(
    "Each entry as a share of its {row}: attention weights. Before rounding, every {row} in which something is visible adds up to exactly 1;"
    " where nothing is, all weights are 0."
)
_WEIGHTS = N_(
    "Each entry as a share of its {row}: attention weights. Before rounding, every {row} adds up to exactly 1, because numerators and denominator are the same numbers."
)
_PROBABILITIES = N_(
    "Each entry as a share of its {row}: the probability that the model gives to each class. Before rounding, every {row} adds up to exactly 1."
)


def softmax(
    graph: Graph,
    source: str,
    *,
    prefix: str = "",
    empty: bool = False,
    maximum_of: str | None = None,
    shift: Matrix | None = None,
    result: str = "A",
    probabilities: bool = False,
) -> str:
    """softmax over the last axis of `source`, shifted by the row maximum; returns the id of the weights.

    Parameters
    ----------
    empty : in some row nothing is visible; its weights are 0
    maximum_of : take the maximum of this id instead (over scores that are not masked yet)
    shift : subtract this constant instead of the row maximum; 0 shows the bare formula
    result : the last step's id
    probabilities : what comes out are probabilities of classes, no weights
    """
    if shift is None:
        shifted = _below_maximum(
            graph, source, prefix, maximum_of or source, "Z_{shifted}" if probabilities else "S_{shifted}"
        )
    else:
        shifted = _less_constant(graph, source, prefix, shift)
    power = graph.apply(EXP, f"{prefix}exp", shifted, symbol="U")
    why = N_("Add up each {row}: this is what every entry of the {row} is divided by.")
    total = graph.apply(ROW_SUM, f"{prefix}row_sum", power, symbol="z", why=why)
    return graph.apply(
        DIVIDE, f"{prefix}{result}", power, total, *((shifted,) if empty else ()), is_attention=True,
        composite=CompositeRule(source, softmax_gradient),
        why=_PROBABILITIES if probabilities else _WEIGHTS_SOME_EMPTY if empty else _WEIGHTS,
    )  # fmt: skip


def _below_maximum(graph: Graph, source: str, prefix: str, maximum_of: str, symbol: str) -> str:
    """The scores less the maximum of their row; the steps row_max and shifted."""
    top = graph.apply(ROW_MAX, f"{prefix}row_max", maximum_of, symbol="m")
    why = N_(
        "Take each {row}'s maximum away from the whole {row}. The largest entry becomes 0 and e^x cannot overflow;"
        " the weights stay the same, because the common factor cancels in the division."
    )
    return graph.apply(SUBTRACT, f"{prefix}shifted", source, top, symbol=symbol, column=True, why=why)


def _less_constant(graph: Graph, source: str, prefix: str, shift: Matrix) -> str:
    """The scores less one constant, the input c; themselves where it is 0."""
    number = float(shift.values)
    if number == 0.0:
        return source
    axes = graph.axes(source)
    graph.bound.setdefault("", axes[0].changed(name="", size=1, setter="c"))
    shape = (*(axis.size for axis in axes[:-1]), 1)
    constant = graph.input(
        f"{prefix}c",
        Matrix(np.full(shape, number), None, tuple(shift.each()) * int(np.prod(shape))),
        (*(axis.name for axis in axes[:-1]), ""),
        differentiable=False,
        why=N_("The constant that is taken away from every score."),
    )
    why = N_("Take the same constant away from every score. Softmax does not notice: the factor e^−c cancels.")
    return graph.apply(SUBTRACT, f"{prefix}shifted", source, constant, symbol="S_{shifted}", column=True, why=why)


def softmax_gradient(graph: Graph, step: Step, upstream: str, target: str) -> None:
    """∂L/∂s = A ⊙ (G_A − rowsum(G_A ⊙ A)): the Jacobian diag(a) − a aᵀ of each row, applied without building it."""
    prefix = part_of(step.id)
    why = N_("Each weight times its own gradient: how much it would pull on the loss.")
    weighted = graph.apply(MULTIPLY, f"{prefix}weighted", upstream, step.id, symbol="H", why=why)
    why = N_(
        "The {row}'s average gradient, weighted by attention. Weights share a total of 1: what one gains, the others lose."
    )
    average = graph.apply(ROW_SUM, f"{prefix}row_dot", weighted, symbol="r", why=why)
    why = N_(
        "Only what differs from that average changes anything: raising all scores of a {row} alike changes no weight."
    )
    deviation = graph.apply(SUBTRACT, f"{prefix}deviation", upstream, average, symbol="D", column=True, why=why)
    why = N_(
        "Softmax's own rule: weight times deviation. Each {row} adds up to 0, and a key with weight 0 gets gradient 0."
    )
    graph.apply(MULTIPLY, target, step.id, deviation, why=why)


def hidden_rows(mask: Matrix) -> BoolArray | None:
    """Rows (bool, … i 1) of a mask or of scores in which everything is −∞; None if there is none."""
    empty: BoolArray = np.all(np.isneginf(mask.values), -1, keepdims=True)
    return empty if empty.any() else None


def log_softmax(graph: Graph, source: str) -> str:
    """The step log_A = s − max − ln z, from the steps of a softmax that stands there already; returns its id."""
    shifted = "shifted" if "shifted" in graph else source
    why = N_("The logarithm of the {row}'s sum of exponentials: the same number for the whole {row}.")
    log = graph.apply(LOGARITHM, "log_sum", "row_sum", symbol=r"\ln z", why=why)
    why = N_("The logarithm of a quotient is a difference: no weight is worked out first, so none can round to 0.")
    rule = CompositeRule(source, log_softmax_gradient)
    return graph.apply(SUBTRACT, "log_A", shifted, log, symbol="A_{log}", column=True, composite=rule, why=why)


def log_softmax_gradient(graph: Graph, step: Step, upstream: str, target: str) -> None:
    """∂L/∂s = G − A ⊙ rowsum(G)."""
    why = N_("The gradient that arrives at each {row}, added up.")
    total = graph.apply(ROW_SUM, "row_total", upstream, symbol="t", why=why)
    width = graph.axes(step.id)[-1]
    in_row = graph.apply(BROADCAST, "total_spread", total, symbol="T_{row}", width=width.size, axes=(width.name,))
    why = N_("Every score is part of the sum inside the logarithm, and its share there is its weight.")
    share = graph.apply(MULTIPLY, "share", "A", in_row, symbol="H", why=why)
    why = N_("What each score gets for itself, minus its share in the sum: each {row} adds up to 0.")
    graph.apply(SUBTRACT, target, upstream, share, why=why)
