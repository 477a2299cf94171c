"""What is given and plays no part is refused: who gave it meant something by it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from block_cases import block_cases

import attncli
from attncli.core.message import InputError, ShapeError


def message(model: str, inputs: dict[str, Any], settings: dict[str, Any], **more: Any) -> str:
    with pytest.raises(InputError) as error:
        attncli.problem(model, inputs=inputs, settings=settings, **more).graph()
    return str(error.value)


@pytest.mark.parametrize(
    ("model", "number", "inputs", "settings", "named"),
    [
        ("encoder_block", 0, {}, {"base": 500}, "base"),
        ("encoder_block", 0, {}, {"pairing": "half"}, "pairing"),
        ("encoder_block", 0, {}, {"normalisation": "none", "eps": 0.1}, "eps"),
        ("encoder_block", 0, {"norm1.gamma": "5 5 5 5"}, {"normalisation": "none"}, "norm1.gamma"),
        ("decoder_block", 0, {}, {"pairing": "half"}, "pairing"),
        ("transformer", 0, {}, {"base": 500}, "base"),
        ("gpt", 0, {}, {"norm": "pre"}, "norm"),
        ("gpt", 0, {}, {"activation": "relu"}, "activation"),
        ("gpt", 0, {"final.gamma": "1 1 1 1"}, {}, "final.gamma"),
    ],
)
def test_what_plays_no_part_is_refused(
    model: str, number: int, inputs: dict[str, Any], settings: dict[str, Any], named: str
) -> None:
    given, own = block_cases()[model][number]
    attncli.problem(model, inputs=given, settings=own).graph()
    said = message(model, {**given, **inputs}, {**own, **settings})
    assert said.startswith(f"{named} is given, but this calculation does not use it."), said


def test_settings_of_an_update_wait_for_the_gradient() -> None:
    """The learning rate in a file plays its part only once the way back is asked for; that is no mistake."""
    given, own = block_cases()["gpt"][0]
    problem = attncli.problem("gpt", inputs=given, settings={**own, "eta": 0.5, "optimizer": "adam", "t": 3})
    assert "E_new" not in problem.graph()
    said = message("gpt", given, {**own, "eta": 0.5, "t": 3}, gradient={"loss": "sum(logits)"})
    assert said.startswith("t is given")


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_cache_is_not_trained(optimizer: str) -> None:
    """Cached keys and values were calculated from parameters; they are none themselves."""
    given, own = block_cases()["gpt"][0]
    d_k, d_v = given["W_Q"].shape[1], given["W_V"].shape[1]
    caches = {"K_past": np.ones((2, d_k)), "V_past": np.ones((2, d_v))}
    settings = {**own, "eta": 0.5, "optimizer": optimizer}
    graph = attncli.problem(
        "gpt", inputs={**given, **caches}, settings=settings, gradient={"loss": "sum(logits)"}
    ).graph()
    assert "W_K_new" in graph and "K_past_new" not in graph and "G_K_past" in graph


def test_a_cache_of_another_number_of_axes_is_said() -> None:
    given, own = block_cases()["gpt"][0]
    with pytest.raises(ShapeError, match="K_past"):
        attncli.problem("gpt", inputs={**given, "K_past": np.ones(2), "V_past": np.ones(2)}, settings=own).graph()
