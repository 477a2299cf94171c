"""`attncli compare` in this process, and graphs of the models to count in."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from harness import Ran, run

from attncli.core.graph import Graph
from attncli.core.matrix import as_matrix
from attncli.cost.count import Sizes
from attncli.problems.problem import Problem


def compare(*words: str, **how: Any) -> Ran:
    """Run `attncli compare …`."""
    return run("compare", *words, **how)


def shown(*words: str, **how: Any) -> str:
    """What a command that works shows."""
    status, out, err = compare(*words, **how)
    assert (status, err) == (0, ""), err
    return str(out)


def data(*words: str) -> dict[str, Any]:
    """The same as data."""
    found: dict[str, Any] = json.loads(shown(*words, "--format", "json"))
    return found


def _weights(shapes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    return {name: as_matrix(np.full(shape, 0.1)) for name, shape in shapes.items()}


def multi_head(sizes: Sizes, kv_heads: int, *, tokens: int, past: int = 0) -> Graph:
    """The graph of multi_head at these sizes, for `tokens` tokens after `past` in the cache."""
    d, wide, narrow = sizes.d_model, sizes.heads * sizes.d_head, kv_heads * sizes.d_head
    shapes: dict[str, tuple[int, ...]] = {
        "X": (tokens, d), "W_Q": (d, wide), "W_K": (d, narrow), "W_V": (d, narrow), "W_O": (wide, d),
    }  # fmt: skip
    if sizes.bias:
        shapes |= {"b_Q": (wide,), "b_K": (narrow,), "b_V": (narrow,), "b_O": (d,)}
    if past:
        shapes |= dict.fromkeys(("K_past", "V_past"), (kv_heads, past, sizes.d_head))
    settings = {"heads": sizes.heads, "kv_heads": kv_heads, "causal": sizes.causal}
    return Problem("multi_head", _weights(shapes), settings=settings).graph()


def latent(sizes: Sizes, *, tokens: int, past: int = 0, absorbed: bool = False) -> Graph:
    """The graph of latent."""
    d, wide = sizes.d_model, sizes.heads * sizes.d_head
    source = sizes.d_c_q or d
    shapes: dict[str, tuple[int, ...]] = {
        "X": (tokens, d), "W_DKV": (d, sizes.d_c), "W_UK": (sizes.d_c, wide), "W_UV": (sizes.d_c, wide), "W_UQ": (source, wide), "W_O": (wide, d),
    }  # fmt: skip
    if sizes.d_c_q:
        shapes["W_DQ"] = (d, sizes.d_c_q)
    if sizes.d_rope:
        shapes |= {"W_QR": (source, sizes.heads * sizes.d_rope), "W_KR": (d, sizes.d_rope)}
    if past:
        shapes["c_KV_past"] = (past, sizes.d_c)
        shapes |= {"K_R_past": (past, sizes.d_rope)} if sizes.d_rope else {}
    settings = {"heads": sizes.heads, "causal": sizes.causal, "absorbed": absorbed}
    return Problem("latent", _weights(shapes), settings=settings).graph()


def parameters(graph: Graph) -> int:
    """Numbers in all weights and biases."""
    return sum(math.prod(graph.shape(id)) for id in graph.inputs if id.startswith(("W_", "b_")))


def multiply_adds(graph: Graph) -> int:
    """Of all matrix products: every number of the result takes as many as its row and column are long."""
    found = 0
    for step in graph.steps.values():
        if step.op.name in ("product", "affine"):
            long = graph.shape(step.inputs[0])[-2 if step.params.get("transpose_a") else -1]
            found += step.cells * long
    return found


def hidden_pairs(graph: Graph) -> int:
    """Pairs of a query and a key that the mask hides."""
    return int(np.isneginf(graph.inputs["M"].matrix.values).sum()) if "M" in graph.inputs else 0
