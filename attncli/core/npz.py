"""NumPy's .npz files with the same bytes for the same arrays, and no pickles."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib import format as npy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

#: The earliest time a zip file can hold; numpy.savez writes the present one.
_TIME = (1980, 1, 1, 0, 0, 0)


def npz_bytes(arrays: Mapping[str, ArrayLike]) -> bytes:
    """A file that numpy.load(…, allow_pickle=False) reads: every array under its name, in its own type."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", _TIME)
            entry.create_system = 3  # the same on every system
            archive.writestr(entry, _bytes(np.asarray(array)))
    return out.getvalue()


def _bytes(array: NDArray[np.generic]) -> bytes:
    out = io.BytesIO()
    npy.write_array(out, np.ascontiguousarray(array).reshape(array.shape), allow_pickle=False)
    return out.getvalue()
