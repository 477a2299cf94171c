"""Graphs of every model, backward steps and losses included, in which mistakes are made."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from block_cases import weights as inputs_of
from cases import EACH, IDS, Case, heads, qkv, some, table, weights

from attncli.core.graph import Graph
from attncli.core.matrix import as_matrix
from attncli.core.message import InputError

PADDED = [[True, True, False]]

#: A table of as many entries as columns, which fits either way round.
TIED = (
    inputs_of(
        "gpt", {}, leave_out=("gamma", "beta"), without=("W_out",), sizes={"heads·d_v": 4, "vocabulary": 4}, T=[1, 3, 1]
    ),
    {"positions": "learned", "tied": True},
)

#: What no case of the models has: a causal mask over padding, losses of tokens.
MORE: list[tuple[str, str, Case]] = [
    ("causal-over-padding", "attention", Case(qkv(3, 3, 2, 2), {"causal": True, "keep": PADDED})),
    (
        "causal-over-padding-heads",
        "multi_head",
        Case(heads(3, 4, 2, 2, 4, 2), {"heads": 2, "causal": True, "keep": PADDED}),
    ),
    ("padding", "attention", Case(qkv(3, 3, 2, 2), {"keep": PADDED})),
    ("tied-square", "gpt", Case(*TIED)),
    ("repeated-tokens", "embedded_attention", Case(table(4, 3, [2, 0, 2]) | weights(3, 2, 4), {"causal": True})),
]

#: Targets of a loss: every token counts, or one does not.
TARGETS = {"loss": [0, 2, 1], "loss-of-some": [3, -1, 0]}


@cache
def graphs() -> dict[str, Graph]:
    """By name; every model of the registry, and a few more."""
    return dict(_built())


def _built() -> Iterator[tuple[str, Graph]]:
    for (model, case), name in zip(EACH, IDS, strict=True):
        yield name, _of(model, case)
    for name, model, case in MORE:
        yield name, _of(model, case)
    for name, goal in TARGETS.items():
        case = Case({"A": some(3, 2), "V": some(2, 4)})
        problem = case.problem("product", loss="cross_entropy(O, goal)", extras={"goal": as_matrix(goal)})
        yield name, problem.graph()
    positive = Case({"A": abs(some(3, 2)), "V": abs(some(2, 4))})
    yield (
        "loss-of-no-softmax",
        positive.problem("product", loss="nll(O, goal)", extras={"goal": as_matrix([0, 2, 1])}).graph(),
    )
    inputs = {"A": some(3, 2), "V": some(2, 4)}
    extras = {"target": as_matrix(some(3, 4)), "goal": as_matrix([0, 2, 1])}
    loss = "1/2*mse(O, target) + 3*cross_entropy(O, goal)"
    yield "loss-of-parts", Case(inputs).problem("product", loss=loss, extras=extras).graph()


def _of(model: str, case: Case) -> Graph:
    try:
        return case.with_upstream(model).graph(backward=True)
    except InputError:  # nothing in it has a gradient
        return case.problem(model).graph()
