"""The architectures, by subject: a file exports its MODELS.

A model is a function that writes a graph with ops. It names its inputs with their axes and its
settings; everything else (tables, gradients, exact results, marking) follows from the graph.
"""

from __future__ import annotations

from importlib import import_module

from attncli.core.message import Message, unknown
from attncli.models.model import Model

#: The models of every file, so that one is opened without the others.
FILES = {
    "attention": ("attention", "dot_variance", "product", "self_attention", "softmax"),
    "gpt": ("embedded_attention", "embedding", "gpt", "tokens"),
    "heads": ("multi_head",),
    "latent": ("latent",),
    "layers": ("feed_forward", "layer_norm", "rms_norm"),
    "positions": ("positions", "rotary"),
    "transformer": ("decoder_block", "encoder_block", "residual", "transformer"),
}


def names() -> list[str]:
    """The names of all models."""
    return sorted(name for models in FILES.values() for name in models)


def get(name: str) -> Model:
    """The model of this name.

    Raises
    ------
    InputError
        There is none; the likely one is suggested.
    """
    file = next((file for file, models in FILES.items() if name in models), None)
    if file is None:
        raise unknown(Message("The model"), name, names())
    models: tuple[Model, ...] = import_module(f"{__name__}.{file}").MODELS
    return next(model for model in models if model.name == name)
