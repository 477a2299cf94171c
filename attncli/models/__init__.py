"""The architectures, by subject: a file exports its MODELS.

A model is a function that writes a graph with ops. It names its inputs with their axes and its
settings; everything else (tables, gradients, exact results, marking) follows from the graph.
"""

from __future__ import annotations

from functools import cache

from attncli.core.message import N_, Message, unknown
from attncli.models.model import Model


@cache
def _all() -> dict[str, Model]:
    from attncli.models import (
        attention,
        block,
        embedding,
        feed_forward,
        gpt,
        heads,
        latent,
        norms,
        positions,
        scores,
        transformer,
    )

    files = (
        attention,
        block,
        embedding,
        feed_forward,
        gpt,
        heads,
        latent,
        norms,
        positions,
        scores,
        transformer,
    )
    return {model.name: model for file in files for model in file.MODELS}


def names() -> list[str]:
    """The names of all models, in alphabetical order."""
    return sorted(_all())


def get(name: str) -> Model:
    """The model of this name.

    Raises
    ------
    InputError
        There is none; the likely one is suggested.
    """
    if name not in _all():
        raise unknown(Message(N_("The model")), name, names())
    return _all()[name]
