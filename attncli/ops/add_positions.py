"""What a token is, plus where it stands: embeddings and positions added."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attncli.core.message import N_
from attncli.ops import residual

if TYPE_CHECKING:
    pass


# A sum in everything but what it is for.
OP = residual.OP.changed(
    name="add_positions",
    why=N_(
        "Attention by itself does not see the order of the tokens. What a token is, plus where it stands, tells it both."
    ),
)
