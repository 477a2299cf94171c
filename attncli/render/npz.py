"""NumPy's .npz: every input and step under its id, float64. The same run gives the same bytes."""

from __future__ import annotations

import io
import zipfile

import numpy as np
from numpy.lib import format as npy

from attncli.matrix import FloatArray
from attncli.render._view import View

BINARY = True

#: The earliest time a zip file can hold; numpy.savez writes the present one.
_TIME = (1980, 1, 1, 0, 0, 0)


def render(view: View) -> bytes:
    """A file that numpy.load(…, allow_pickle=False) reads; exact results are in it as float64."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for item in (*view.inputs, *view.steps):
            entry = zipfile.ZipInfo(f"{item.id}.npy", _TIME)
            entry.create_system = 3  # the same on every system
            archive.writestr(entry, _bytes(np.array(item.array, dtype=np.float64, order="C")))
    return out.getvalue()


def _bytes(array: FloatArray) -> bytes:
    out = io.BytesIO()
    npy.write_array(out, array.astype("<f8"), allow_pickle=False)
    return out.getvalue()
