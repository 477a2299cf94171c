"""The Transformer (Vaswani et al., arXiv 1706.03762, figure 1): a stack of encoder blocks and one of decoder blocks."""

from __future__ import annotations

import numpy as np

from attncli.core.graph import Graph
from attncli.core.message import N_, Message
from attncli.models import block
from attncli.models.linear import logits
from attncli.models.model import Argument, Given, Model, Setting
from attncli.models.positions import BASE, EXPONENTS, positions
from attncli.ops.positions import ADD_POSITIONS

_LAYERS = ("layers", 1)

SETTINGS = (
    Setting("layers", "count", N_("blocks in the encoder, and as many in the decoder (default: 1)")),
    Setting(
        "positions",
        "choice",
        N_("what is added to both sequences: sinusoidal positions (default), or none"),
        ("sinusoidal", "none"),
    ),
    BASE,
    EXPONENTS,
    *(s for s in block.SETTINGS if s.name not in ("causal", "base")),
    *block.CROSS_SETTINGS,
)


_SOURCE = Argument("X", ("source", "d_model"), N_("the source sequence, one row per token"))
_TARGET = Argument("Y", ("token", "d_model"), N_("the sequence that is written, one row per token"))


def _transformer(graph: Graph, given: Given) -> str:
    """X (source d_model) through the encoder, Y (token d_model) through the decoder → output, or logits with W_out."""
    layers = int(given.setting(*_LAYERS))
    source = given.enter(graph, _SOURCE, N_("The source sequence."))
    target = given.enter(graph, _TARGET, N_("The sequence that is being written, as far as it goes."))
    with block.told(Message(N_("the encoder"))):
        memory = _stack(graph, source, given, "encoder.", layers, None)
    with block.told(Message(N_("the decoder"))):
        output = _stack(graph, target, given, "decoder.", layers, memory)
    return logits(graph, given, output) if "W_out" in given else output


def _stack(graph: Graph, x: str, given: Given, prefix: str, layers: int, memory: str | None) -> str:
    """Positions, blocks, and before them in pre-norm a last norm behind; returns the id of the result."""
    x = _positioned(graph, x, given, prefix)
    own = _of_source(given) if memory is None else given
    for layer in range(1, layers + 1):
        with block.told(Message(N_("layer {layer}"), layer=layer)):
            part = f"{prefix}layer{layer}."
            if memory is not None:
                x = block.decoder(graph, x, memory, own, part)
                continue
            with block.masks_named_across():
                x = block.encoder(graph, x, own, part)
    if given.setting("norm", "post") == "pre":
        x = block.normed(graph, x, given, f"{prefix}norm.")
    return x


#: The source's own mask is the one that cross-attention lays over it.
_SOURCE_MASKS = {"cross_mask": "mask", "cross_keep": "keep", "cross_hide": "hide"}


def _of_source(given: Given) -> Given:
    """What the encoder is told: nothing in the source comes too early, but some of it may be padding.

    A mask over the source that is a single row holds for whoever looks there, the source's own tokens included. One
    with a row for each token of the target says what those may see, and is none of the encoder's business.
    """
    settings = {name: value for name, value in given.settings.items() if name not in _SOURCE_MASKS.values()}
    for name, own in _SOURCE_MASKS.items():
        mask = given.setting(name)
        if mask is not None and np.size(values := getattr(mask, "values", mask)) == np.shape(values)[-1]:
            settings[own] = mask
    return given.changed(settings=settings)


def _positioned(graph: Graph, x: str, given: Given, prefix: str = "") -> str:
    """x plus its sinusoidal positions, where they are asked for; returns the id of the sum."""
    if given.setting("positions", "sinusoidal") == "none":
        return x
    rows, width = graph.shape(x)[-2:]
    code = positions(graph, given, rows, width, prefix)
    return graph.apply(ADD_POSITIONS, f"{prefix}positioned", x, code, symbol="X_{pos}")


_LAST_NORM = {
    "encoder": (
        N_("γ of the encoder's last norm, where norm = pre"),
        N_("β of the encoder's last norm, where norm = pre"),
    ),
    "decoder": (
        N_("γ of the decoder's last norm, where norm = pre"),
        N_("β of the decoder's last norm, where norm = pre"),
    ),
}


def _last_norm(stack: str) -> tuple[Argument, ...]:
    return tuple(
        Argument(f"{stack}.norm.{name}", ("d_model",), text, required=False)
        for name, text in zip(("gamma", "beta"), _LAST_NORM[stack], strict=True)
    )


MODELS = (
    Model(
        name="transformer",
        text=N_("encoder and decoder: N blocks each, with positions, tied together by cross-attention"),
        arguments=(
            _SOURCE,
            _TARGET,
            *block.encoder_arguments("encoder.layerN.", _LAYERS),
            *_last_norm("encoder"),
            *block.decoder_arguments("decoder.layerN.", _LAYERS),
            *_last_norm("decoder"),
            Argument("W_out", ("d_model", "vocabulary"), N_("weights from the output to the logits"), required=False),
            Argument("b_out", ("vocabulary",), N_("bias of the logits"), required=False),
        ),
        settings=SETTINGS,
        build=_transformer,
    ),
)
