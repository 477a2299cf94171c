"""Tokens, their ids, and the table that they look up and send gradients back to."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Step
from attncli.core.matrix import as_matrix
from attncli.core.message import N_
from attncli.mistakes.entry import Entry, Swaps, instead, number, passing
from attncli.ops.embedding import added_up, rows_named

_REPEATED = N_("Look again at tokens that occur more than once.")


def _from_one(graph: Graph, step: Step) -> Iterator[Swaps]:
    ids = as_matrix(np.asarray(step.params["ids"]) + 1.0)
    yield instead(step, lambda xp: xp.constant(ids))


def _one_each(later: bool, graph: Graph, step: Step) -> Iterator[Swaps]:
    """Of every id only the gradient of its last token, or of its first."""
    yield instead(step, _added_once, *step.inputs, count=step.params["count"], later=later)


def _added_once(xp: Arithmetic, rows_of: Value, ids: Value, count: int, later: bool) -> Value:
    rows = rows_named(xp, ids, count)
    same = rows[..., :, None] == rows[..., None, :]
    lost = (np.triu(same, 1) if later else np.tril(same, -1)).any(-1)
    return added_up(xp, xp.where(lost[..., None], number(xp, 0.0), rows_of), rows, count)


def _look_up_alone(graph: Graph, step: Step) -> Iterator[Swaps]:
    for path in step.inputs:
        if graph.steps[path].op.name == "scatter_add":
            yield passing(step, path)


ENTRIES = (
    Entry("ids-from-one", 1, N_("You counted the ids from 1. The first entry of the vocabulary is number 0."), N_("Look again at where counting starts."), ("encode",), _from_one),
    Entry("output-head-missing", 1, N_("You took only the look-up's part. The same table also makes the logits, and sends a gradient back from there too."), N_("Look again at every place where the table E is used: at the beginning and at the end."), ("sum_paths",), _look_up_alone),
    Entry("gradient-overwritten", 4, N_("A repeated token kept only its last gradient. Repeated tokens add up."), _REPEATED, ("scatter_add",), partial(_one_each, True)),
    Entry("first-gradient-only", 1, N_("A repeated token kept only its first gradient. Repeated tokens add up."), _REPEATED, ("scatter_add",), partial(_one_each, False)),
)  # fmt: skip
