"""NumPy's .npz: every input and step under its id, float64. The same run gives the same bytes."""

from __future__ import annotations

import numpy as np

from attncli.core.npz import npz_bytes
from attncli.render._view import View

BINARY = True


def render(view: View) -> bytes:
    """A file that numpy.load(…, allow_pickle=False) reads; exact results are in it as float64."""
    items = (*view.inputs, *view.steps)
    return npz_bytes({item.id: np.array(item.array, dtype="<f8", order="C") for item in items})
