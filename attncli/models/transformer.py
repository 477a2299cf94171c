"""The Transformer (Vaswani et al., arXiv 1706.03762, figure 1): a stack of encoder blocks and one of decoder blocks."""

from __future__ import annotations

import numpy as np

from attncli.core.graph import Graph
from attncli.core.message import N_, Message
from attncli.models import Argument, Given, Model, Setting, _block
from attncli.models._positions import BASE, EXPONENTS, positions
from attncli.models._vector import vector
from attncli.ops import add_positions, affine, product

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
    *(s for s in _block.SETTINGS if s.name not in ("causal", "base")),
    *_block.CROSS_SETTINGS,
)


def build(graph: Graph, given: Given) -> str:
    """X (source d_model) through the encoder, Y (token d_model) through the decoder → output, or logits with W_out."""
    layers = int(given.setting(*_LAYERS))
    source = graph.input("X", given.inputs["X"], ("source", "d_model"), why=Message(N_("The source sequence.")))
    why = Message(N_("The sequence that is being written, as far as it goes."))
    target = graph.input("Y", given.inputs["Y"], ("token", "d_model"), why=why)
    with _block.told(Message(N_("the encoder"))):
        memory = _stack(graph, source, given, "encoder.", layers, None)
    with _block.told(Message(N_("the decoder"))):
        output = _stack(graph, target, given, "decoder.", layers, memory)
    return _logits(graph, output, given)


def _stack(graph: Graph, x: str, given: Given, prefix: str, layers: int, memory: str | None) -> str:
    """Positions, blocks, and before them in pre-norm a last norm behind; returns the id of the result."""
    x = positioned(graph, x, given, prefix)
    own = _of_source(given) if memory is None else given
    for layer in range(1, layers + 1):
        with _block.told(Message(N_("layer {layer}"), layer=layer)):
            part = f"{prefix}layer{layer}."
            if memory is not None:
                x = _block.decoder(graph, x, memory, own, part)
                continue
            with _block.masks_named_across():
                x = _block.encoder(graph, x, own, part)
    if given.setting("norm", "post") == "pre":
        x = _block.normed(graph, x, given, f"{prefix}norm.")
    return x


#: The source's own mask is the one that cross-attention lays over it.
_SOURCE = {"cross_mask": "mask", "cross_keep": "keep", "cross_hide": "hide"}


def _of_source(given: Given) -> Given:
    """What the encoder is told: nothing in the source comes too early, but some of it may be padding.

    A mask over the source that is a single row holds for whoever looks there, the source's own tokens included. One
    with a row for each token of the target says what those may see, and is none of the encoder's business.
    """
    settings = {name: value for name, value in given.settings.items() if name not in _SOURCE.values()}
    for name, own in _SOURCE.items():
        mask = given.setting(name)
        if mask is not None and np.size(values := getattr(mask, "values", mask)) == np.shape(values)[-1]:
            settings[own] = mask
    return given.changed(settings=settings)


def positioned(graph: Graph, x: str, given: Given, prefix: str = "") -> str:
    """x plus its sinusoidal positions, where they are asked for; returns the id of the sum."""
    if given.setting("positions", "sinusoidal") == "none":
        return x
    rows, width = graph.shape(x)[-2:]
    code = positions(graph, given, rows, width, prefix)
    return graph.apply(add_positions.OP, f"{prefix}positioned", x, code, symbol="X_{pos}")


def _logits(graph: Graph, output: str, given: Given) -> str:
    if "W_out" not in given:
        return output
    why = Message(N_("Weights that turn a token's vector into one score for every entry of the vocabulary."))
    weight = graph.input("W_out", given.inputs["W_out"], (graph.axes(output)[-1].name, "vocabulary"), why=why)
    bias = vector(graph, given, "b_out", "vocabulary", why=Message(N_("The bias of the logits.")))
    said = Message(N_("One score for every entry of the vocabulary: how well it would go on from here."))
    if bias is None:
        return graph.apply(product.OP, "logits", output, weight, symbol="Z", why=said)
    return graph.apply(affine.OP, "logits", output, weight, bias, symbol="Z", why=said)


MODEL = Model(
    name="transformer",
    text=N_("encoder and decoder: N blocks each, with positions, tied together by cross-attention"),
    arguments=(
        Argument("X", ("source", "d_model"), N_("the source sequence, one row per token")),
        Argument("Y", ("token", "d_model"), N_("the sequence that is written, one row per token")),
        *_block.encoder_arguments("encoder.layerN.", _LAYERS),
        Argument(
            "encoder.norm.gamma", ("d_model",), N_("γ of the encoder's last norm, where norm = pre"), required=False
        ),
        Argument(
            "encoder.norm.beta", ("d_model",), N_("β of the encoder's last norm, where norm = pre"), required=False
        ),
        *_block.decoder_arguments("decoder.layerN.", _LAYERS),
        Argument(
            "decoder.norm.gamma", ("d_model",), N_("γ of the decoder's last norm, where norm = pre"), required=False
        ),
        Argument(
            "decoder.norm.beta", ("d_model",), N_("β of the decoder's last norm, where norm = pre"), required=False
        ),
        Argument("W_out", ("d_model", "vocabulary"), N_("weights from the output to the logits"), required=False),
        Argument("b_out", ("vocabulary",), N_("bias of the logits"), required=False),
    ),
    settings=SETTINGS,
    build=build,
)
