"""MQA and MHA are GQA with one group and with a group for every head: shown by numbers, on the same weights.

The model `multi_head` computes all heads at once; beside it every head is computed on its own by the model
`attention`, from its own columns of the same weights, and the heads are put together by hand.
"""

from __future__ import annotations

import numpy as np

from attncli.core.matrix import FloatArray, as_matrix
from attncli.core.record import Record
from attncli.problems.problem import Problem

TOKENS, D_MODEL, HEADS, KV_HEADS, D_HEAD = 5, 12, 4, 2, 3
SEED = 0


class Same(Record):
    """The largest difference between `multi_head` with these kv_heads and the heads computed one by one."""

    variant: str
    kv_heads: int
    difference: float


class Compared(Record):
    """What was compared.

    Parameters
    ----------
    rows : for kv_heads = 1, in between, and heads
    absorbed : the largest difference between MLA with keys and values rebuilt and with W_UK and W_UV absorbed
    apart : the largest difference between MQA and MHA themselves, so that a difference of 0 says something
    tokens, d_model, heads, d_head, seed : of the weights
    """

    rows: tuple[Same, ...]
    absorbed: float
    apart: float
    tokens: int = TOKENS
    d_model: int = D_MODEL
    heads: int = HEADS
    d_head: int = D_HEAD
    seed: int = SEED


def compared(seed: int = SEED) -> Compared:
    """Run all of it on seeded weights."""
    weights = seeded_weights(seed)
    cases = (("mqa", 1), ("gqa", KV_HEADS), ("mha", HEADS))
    outputs = {kv_heads: together(weights, kv_heads) for _, kv_heads in cases}
    rows = [
        Same(variant, kv_heads, largest_difference(outputs[kv_heads], one_by_one(weights, kv_heads)))
        for variant, kv_heads in cases
    ]
    return Compared(tuple(rows), _absorbed(seed), largest_difference(outputs[1], outputs[HEADS]), seed=seed)


def _absorbed(seed: int) -> float:
    """`latent` run both ways on the same weights, with a latent of queries and a rotary part."""
    random = np.random.default_rng(seed)
    wide, d_c, d_c_q, d_rope = HEADS * D_HEAD, 2 * D_HEAD, 4, 2
    shapes = {
        "X": (TOKENS, D_MODEL), "W_DKV": (D_MODEL, d_c), "W_UK": (d_c, wide), "W_UV": (d_c, wide), "W_DQ": (D_MODEL, d_c_q),
        "W_UQ": (d_c_q, wide), "W_QR": (d_c_q, HEADS * d_rope), "W_KR": (D_MODEL, d_rope), "W_O": (wide, D_MODEL),
    }  # fmt: skip
    inputs = {name: as_matrix(random.normal(size=shape) / np.sqrt(shape[0])) for name, shape in shapes.items()}
    plain, absorbed = (
        _result(Problem("latent", inputs, settings={"heads": HEADS, "causal": True, "absorbed": absorbed}))
        for absorbed in (False, True)
    )
    return largest_difference(plain, absorbed)


def seeded_weights(seed: int) -> dict[str, FloatArray]:
    """X, W_Q, W_K, W_V, W_O with as many heads of keys and values as of queries."""
    random = np.random.default_rng(seed)
    wide = HEADS * D_HEAD
    shapes = {"X": (TOKENS, D_MODEL), **dict.fromkeys(("W_Q", "W_K", "W_V"), (D_MODEL, wide)), "W_O": (wide, D_MODEL)}
    return {name: random.normal(size=shape) / np.sqrt(shape[0]) for name, shape in shapes.items()}


def together(weights: dict[str, FloatArray], kv_heads: int) -> FloatArray:
    """The output of `multi_head` that uses the first `kv_heads` heads of W_K and W_V."""
    own = {
        name: values[:, : kv_heads * D_HEAD] if name in ("W_K", "W_V") else values for name, values in weights.items()
    }
    inputs = {name: as_matrix(values) for name, values in own.items()}
    problem = Problem("multi_head", inputs, settings={"heads": HEADS, "kv_heads": kv_heads, "causal": True})
    return _result(problem)


def one_by_one(weights: dict[str, FloatArray], kv_heads: int) -> FloatArray:
    """The same without `multi_head`: `attention` for one head at a time."""
    x = weights["X"]
    found = []
    for head in range(HEADS):
        # Neighbours share: with 2 heads of keys and values, query heads 1 and 2 take the first.
        shared = head * kv_heads // HEADS
        columns = {"Q": ("W_Q", head), "K": ("W_K", shared), "V": ("W_V", shared)}
        inputs = {
            name: as_matrix(x @ weights[weight][:, own * D_HEAD : (own + 1) * D_HEAD])
            for name, (weight, own) in columns.items()
        }
        found.append(_result(Problem("attention", inputs, settings={"causal": True})))
    return np.concatenate(found, axis=1) @ weights["W_O"]


def _result(problem: Problem) -> FloatArray:
    graph = problem.graph()
    result: FloatArray = graph.evaluate(until=graph.output)[graph.output]
    return result


def largest_difference(a: FloatArray, b: FloatArray) -> float:
    return float(np.abs(a - b).max())
