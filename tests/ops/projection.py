"""A gradient checked by one random projection: ⟨u, G⟩ is the slope along u (after HIPS/autograd, test_util.py)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_STEP = 1e-6


def direction(values: np.ndarray, seed: int = 7) -> np.ndarray:
    """Random numbers of this shape, none of them near 0 but for the 0 at what is hidden."""
    random = np.random.default_rng(seed)
    u = random.choice([-1.0, 1.0], size=values.shape) * random.uniform(0.5, 1.5, size=values.shape)
    return np.where(np.isfinite(values), u, 0.0)


def assert_slope(
    number: Callable[[np.ndarray], float], values: np.ndarray, gradient: np.ndarray, name: str, rtol: float = 1e-6
) -> None:
    """`gradient` is that of `number` at `values`: two evaluations, however many entries. What is hidden receives 0."""
    u = direction(values, seed=11)
    slope = (number(values + _STEP * u) - number(values - _STEP * u)) / (2 * _STEP)
    projected, size = np.sum(u * gradient), np.sum(np.abs(u * gradient))
    assert abs(slope - projected) <= rtol * size + 3e-8, f"{name}: the slope is {slope}, its gradient says {projected}"
    assert not gradient[~np.isfinite(values)].any(), name
