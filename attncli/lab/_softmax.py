"""How concentrated a softmax is and how much gradient it lets through, by the project's own graph."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from attncli.core.matrix import FloatArray, as_matrix
from attncli.core.record import Record
from attncli.problems.problem import Problem


class Behaviour(Record):
    """Of every row of scores: the weights, their entropy (in nats), the largest one, and the norm of the Jacobian."""

    weights: FloatArray
    entropy: FloatArray
    largest: FloatArray
    gradient: FloatArray


def behaviour(scores: FloatArray) -> Behaviour:
    """What softmax makes of scores (row key).

    The Jacobian of a row, ∂a_i/∂s_j, is calculated by the backward steps of the model `softmax`: with the unit vector
    e_i as upstream gradient, the gradient of the scores is its row i. One head does this for each i. The norm is
    Frobenius': the root of the sum of the squares.
    """
    rows, keys = scores.shape
    upstream = np.broadcast_to(np.eye(keys)[:, None, :], (keys, rows, keys))
    problem = Problem(
        model="softmax",
        inputs={"scores": as_matrix(np.broadcast_to(scores, (keys, rows, keys)))},
        upstream=as_matrix(upstream),
    )
    trace = problem.graph().evaluate(until=("A", "G_scores"))
    weights: FloatArray = trace["A"][0]
    return Behaviour(weights, entropy(weights), weights.max(-1), np.sqrt((trace["G_scores"] ** 2).sum((0, 2))))


def entropy(weights: Any) -> FloatArray:
    """−Σ a ln a along the last axis, in nats; a weight of 0 adds nothing."""
    logs = np.log(weights, where=weights > 0, out=np.zeros_like(weights))
    total: FloatArray = -(weights * logs).sum(-1)
    return total + 0.0  # no −0


def share_of_most(value: float, keys: int) -> float:
    """An entropy as a share of the largest that so many keys allow, ln n."""
    return value / math.log(keys)
