"""A few steps of training against PyTorch's own optimisers: the loss and every parameter after each step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attncli.training.spec import Spec, TrainingState
from attncli.training.trainer import Trainer

_FILE = Path(__file__).parents[1] / "reference" / "torch_training.json"
CASES = json.loads(_FILE.read_text("utf-8"))["cases"]


def trainer(case: dict[str, Any]) -> Trainer:
    spec = Spec(**{**case["spec"], "tokens": tuple(case["spec"]["tokens"])}).checked()
    numbers = {name: np.array(values) for name, values in case["first"].items()}
    assert {name: values.shape for name, values in numbers.items()} == dict(spec.shapes())
    return Trainer(TrainingState(spec, case["text"], 0, numbers, {}, ()))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['text']}-{case['spec']['optimizer']}")
def test_every_step_is_pytorchs(case: dict[str, Any]) -> None:
    ours = trainer(case)
    for after in case["after"]:
        (loss,) = ours.run(1)
        assert loss == pytest.approx(after["loss"], rel=1e-10)
        for name, values in after["numbers"].items():
            np.testing.assert_allclose(ours.numbers[name], values, rtol=1e-10, atol=1e-10, err_msg=name)


def test_the_cases_cover_both_optimisers_and_blocks() -> None:
    specs = [case["spec"] for case in CASES]
    assert {spec["optimizer"] for spec in specs} == {"adam", "sgd"}
    assert {spec["layers"] for spec in specs} == {0, 1, 2}
    assert {spec["norm"] for spec in specs if spec["layers"]} == {"pre", "post"}
    assert {spec["positions"] for spec in specs} == {"none", "sinusoidal", "learned"}
