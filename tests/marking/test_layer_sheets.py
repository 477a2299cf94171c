"""Sheets of norms, rotary and heads: what simulated learners found the marker lacking."""

from __future__ import annotations

import random

import numpy as np
import pytest
from learn_heads import MULTI_HEAD
from learn_layers import EXERCISES, ROTARY_SCORES
from learner import Learner, as_text
from simulation import problem

from attncli.marking.mark import Marker
from attncli.problems.answers import sheet

LAYER_NORM = EXERCISES[0]
DECIMALS = 4


def drawn(exercise, fits, seed: int = 0):  # type: ignore[no-untyped-def]
    rng = random.Random(seed)
    return next(case for case in iter(lambda: exercise.draw(rng), None) if fits(case))


def marked(case, values, ids=None):  # type: ignore[no-untyped-def]
    answers = {id: as_text(values[id], DECIMALS) for id in ids or values}
    steps = Marker(problem(case, DECIMALS)).mark(sheet({"answers": answers})).steps
    return {
        step.id: (step.verdict, {(one.step, one.id) for one in step.mistakes})
        for step in steps
        if step.written is not None
    }


def wrong(case, **lines):  # type: ignore[no-untyped-def]
    return Learner(case, DECIMALS, wrong=lines).run()


def test_a_line_that_follows_from_the_first_of_two_wrong_ones() -> None:
    """G_K_rotated comes from the rotated queries; that the keys are wrong too does not matter there."""
    case = drawn(ROTARY_SCORES, lambda case: "K" in case.inputs)
    values = wrong(case, rotated=lambda g: g("X") + 0.371, K_rotated=lambda g: g("K") * 0.77 - 0.529)
    found = {id: verdict for id, (verdict, _) in marked(case, values).items()}
    assert [id for id in found if found[id] == "wrong"] == ["rotated", "K_rotated"]
    assert found["G_rotated"] == found["G_K_rotated"] == found["G_X"] == found["G_K"] == "follow_through"


@pytest.mark.parametrize("square", [False, True], ids=["more rows than columns", "as many"])
def test_a_norm_down_the_columns_is_followed_through_its_own_shapes(square: bool) -> None:
    case = drawn(LAYER_NORM, lambda case: (case.inputs["X"].shape == (3, 3)) == square)
    x, eps = case.inputs["X"], case.settings["eps"]
    values = {"mean": x.mean(0, keepdims=True)}
    values["centred"] = x - values["mean"]
    values["variance"] = (values["centred"] ** 2).mean(0, keepdims=True)
    values["std"] = np.sqrt(values["variance"] + eps)
    values["normalised"] = values["centred"] / values["std"]
    found = marked(case, values)
    assert found.pop("mean") == ("wrong", {("mean", "normalised-over-tokens")})
    assert {verdict for verdict, _ in found.values()} == {"follow_through"}
    alone = marked(case, values, ["normalised"])["normalised"]
    assert alone[0] == "wrong"
    assert {id for _, id in alone[1]} == {"normalised-over-tokens"}


def test_a_single_head_written_without_its_axis_and_transposed() -> None:
    case = drawn(MULTI_HEAD, lambda case: case.settings["heads"] == 1 and case.inputs["X"].shape[0] == 3)
    values = Learner(case, DECIMALS).run()
    values["Q_heads"] = values["Q_heads"][0].T
    found = marked(case, values)
    assert found["Q_heads"] == ("wrong", {("Q_heads", "layout-transposed")})
    assert found["scores"][0] in ("correct", "follow_through")


@pytest.mark.parametrize("axis", [-1, -2])
def test_columns_or_rows_exchanged_within_a_head(axis: int) -> None:
    case = drawn(MULTI_HEAD, lambda case: case.settings["heads"] == 2)
    values = Learner(case, DECIMALS).run()
    head = values["Q_heads"][1]
    exchanged = np.take(head, [1, 0, *range(2, head.shape[axis])], axis)
    found = marked(case, {**values, "Q_heads": np.stack([values["Q_heads"][0], exchanged])})
    assert ("Q_heads", "cells-exchanged") in found["Q_heads"][1]


def test_a_mistake_in_the_angles_that_all_heads_share() -> None:
    case = drawn(ROTARY_SCORES, lambda case: case.inputs["X"].ndim == 3 and case.inputs["X"].shape[-1] > 2)
    case.settings["base"] = 10000.0
    pairs = case.inputs["X"].shape[-1] // 2
    at = np.arange(case.inputs["X"].shape[-2])[:, None]
    values = wrong(case, angle=lambda g: at / 100.0 ** (np.arange(pairs) / pairs))
    assert ("angle", "base-changed") in marked(case, values, ["rotated"])["rotated"][1]


def test_a_mistake_before_heads_are_summed_and_joined() -> None:
    case = drawn(MULTI_HEAD, lambda case: case.settings["heads"] == 4)
    values = wrong(case, G_K_shared=lambda g: np.swapaxes(g("scores"), -1, -2) @ g("Q_heads"))
    assert ("G_K_shared", "value-for-gradient") in marked(case, values, ["G_K"])["G_K"][1]
    heads = wrong(case, G_Q=lambda g: g("G_Q_heads").reshape(len(case.inputs["X"]), -1))
    assert ("G_Q", "merge-without-transpose") in marked(case, heads)["G_Q"][1]
