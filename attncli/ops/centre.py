"""Every row minus its own mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attncli.core.message import N_
from attncli.ops import subtract

if TYPE_CHECKING:
    pass


# A subtraction in everything but that no other constant will do.
OP = subtract.OP.changed(
    name="centre",
    why=N_("Each {row} minus its mean, so that it is centred on 0."),
)
