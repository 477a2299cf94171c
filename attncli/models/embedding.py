"""The embedding table on its own: ids to rows, and back to the table's gradient."""

from __future__ import annotations

from attncli.core.message import N_
from attncli.models import Model
from attncli.models._embed import ARGUMENTS, SETTINGS, embed, updated

MODEL = Model(
    name="embedding",
    text=N_("look up tokens in an embedding table, and where their gradients go"),
    arguments=ARGUMENTS,
    settings=SETTINGS,
    build=embed,
    after=updated,
)
