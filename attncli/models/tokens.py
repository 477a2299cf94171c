"""Text to ids."""

from __future__ import annotations

from attncli.core.graph import Graph
from attncli.core.message import N_
from attncli.models import Argument, Given, Model
from attncli.models._embed import VOCABULARY_SETTINGS, tokens


def build(graph: Graph, given: Given) -> str:
    """text → T (token)."""
    return tokens(graph, given)


MODEL = Model(
    name="tokens",
    text=N_("cut a text into tokens and look up their ids in a vocabulary"),
    arguments=(Argument("text", (), N_("the text"), kind="text"),),
    settings=VOCABULARY_SETTINGS,
    build=build,
)
