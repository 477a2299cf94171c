"""The architectures, by subject: a file exports its MODELS.

A model is a function that writes a graph with ops. It names its inputs with their axes and its
settings; everything else (tables, gradients, exact results, marking) follows from the graph.
"""

from __future__ import annotations

from importlib import import_module

from attncli.core.message import N_, Message, unknown
from attncli.models.model import Model

#: The file of every model, so that one is opened without the others.
FILES = {
    "attention": "attention",
    "decoder_block": "block",
    "dot_variance": "scores",
    "embedded_attention": "embedding",
    "embedding": "embedding",
    "encoder_block": "block",
    "feed_forward": "feed_forward",
    "gpt": "gpt",
    "latent": "latent",
    "layer_norm": "norms",
    "multi_head": "heads",
    "positions": "positions",
    "product": "attention",
    "residual": "block",
    "rms_norm": "norms",
    "rotary": "positions",
    "self_attention": "attention",
    "softmax": "scores",
    "tokens": "embedding",
    "transformer": "transformer",
}


def names() -> list[str]:
    """The names of all models."""
    return list(FILES)


def get(name: str) -> Model:
    """The model of this name.

    Raises
    ------
    InputError
        There is none; the likely one is suggested.
    """
    if name not in FILES:
        raise unknown(Message(N_("The model")), name, names())
    models: tuple[Model, ...] = import_module(f"{__name__}.{FILES[name]}").MODELS
    return next(model for model in models if model.name == name)
