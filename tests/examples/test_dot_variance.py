"""The model behind exercise A5: measured spread beside the theory."""

from __future__ import annotations

import numpy as np
import pytest

from attncli.problems import library
from attncli.problems.file import from_data


@pytest.mark.parametrize("width", [1, 4, 64])
def test_measured_and_expected(width: int) -> None:
    inputs = {name: {"random": "normal", "shape": [4000, width], "seed": seed} for name, seed in (("q", 1), ("k", 2))}
    trace = from_data({"model": "dot_variance", "inputs": inputs}).graph().evaluate()
    assert trace["expected_variance"] == width and trace["expected_std"] == np.sqrt(width)
    assert trace["expected_scaled_variance"] == 1
    # The variance of a sample variance is about (kurtosis − 1) / samples; a product of normals has kurtosis 9.
    assert trace["variance"] == pytest.approx(np.array([[width]]), rel=4 * np.sqrt(8 / 4000))
    assert trace["variance"] == pytest.approx(np.mean(trace["dots"] ** 2))
    assert trace["scaled_variance"] == pytest.approx(trace["variance"] / width)


def test_the_example_is_the_same_everywhere() -> None:
    trace = library.load("a5-variance").graph().evaluate()
    assert trace["q"][0, :3] == pytest.approx([0.4412274868, -0.3308701741, 2.430771187])
    assert trace["dots"].shape == (500, 1)
