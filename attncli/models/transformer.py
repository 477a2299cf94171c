"""The Transformer (Vaswani et al., arXiv 1706.03762, figure 1): blocks of sublayers, and stacks of blocks.

A sublayer has a residual connection around it and a norm behind it (post-norm: section 3.1) or before it (pre-norm:
Xiong et al., arXiv 2002.04745, figure 1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from attncli.core.message import N_, Message, placed
from attncli.models import heads, masks
from attncli.models.layers import (
    BETA,
    FORWARD_SETTINGS,
    FORWARD_WEIGHTS,
    GAMMA,
    NORM_SETTINGS,
    feed_forward,
    layer_norm,
    logits,
    rms_norm,
)
from attncli.models.model import TOKENS, Argument, Model, Part, Setting
from attncli.models.positions import BASE, EXPONENTS, positions
from attncli.ops.elementwise import RESIDUAL
from attncli.ops.positions import ADD_POSITIONS

#: Of every block: what its attention is told, and what is said once for all its sublayers.
SETTINGS = (
    *(setting for setting in heads.SETTINGS if setting.name != "max_over"),
    Setting(
        "norm",
        "choice",
        N_("where the norm stands: post (behind each sublayer and its residual) or pre (before each sublayer)"),
        ("post", "pre"),
    ),
    Setting("normalisation", "choice", N_("the norm: layer (default), rms, or none"), ("layer", "rms", "none")),
    *NORM_SETTINGS,
    *FORWARD_SETTINGS,
)

#: Of a stack: blocks that cannot choose what they see, and positions in front.
STACKED = (BASE, EXPONENTS, *(setting for setting in SETTINGS if setting.name not in ("causal", "base")))

_OVER_SOURCE = {
    "mask": N_("as mask, over the other sequence"),
    "keep": N_("as keep, over the other sequence"),
    "hide": N_("as hide, over the other sequence"),
}

#: The masks that lie over the other sequence, and what they are called.
_CROSS = {name: f"cross_{name}" for name in _OVER_SOURCE}
CROSS_SETTINGS = tuple(
    mask.changed(name=_CROSS[mask.name], text=_OVER_SOURCE[mask.name])
    for mask in masks.SETTINGS
    if mask.name in _OVER_SOURCE
)


# --- blocks -----------------------------------------------------------------------------------------------------------


#: The sublayers of a block of the encoder, and of the decoder.
ENCODER, DECODER = ("self", "ffn"), ("self", "cross", "ffn")


def block_arguments(
    sublayers: Sequence[str], prefix: str = "", repeat: tuple[str, int] | None = None
) -> tuple[Argument, ...]:
    """The weights of a block, a norm after those of each sublayer: self., norm1., cross., norm2., ffn., norm3."""
    out: list[Argument] = []
    for number, part in enumerate(sublayers, start=1):
        for weight in FORWARD_WEIGHTS if part == "ffn" else heads.WEIGHTS:
            of_memory = part == "cross" and weight.name in ("W_K", "W_V")
            axes = ("d_memory", *weight.axes[1:]) if of_memory else weight.axes
            out.append(weight.changed(name=f"{part}.{weight.name}", axes=axes))
        out += [one.changed(name=f"norm{number}.{one.name}", axes=("d_model",)) for one in (GAMMA, BETA)]
    return tuple(argument.changed(name=prefix + argument.name, repeat=repeat) for argument in out)


def encoder(block: Part, x: str) -> str:
    """Self-attention, then feed-forward, for x (token d_model); returns the id of the block's output (token d_model)."""
    return _feed_forward(block, _attention(block, x, None, "self.", 1), 2)


def decoder(block: Part, x: str, memory: str) -> str:
    """Causal self-attention, attention to `memory` (source d_memory), feed-forward; returns the id of the output."""
    x = _attention(block.inside("", causal=True), x, None, "self.", 1)
    x = _attention(_across(block), x, memory, "cross.", 2)
    return _feed_forward(block, x, 3)


def causal(block: Part, x: str) -> str:
    """A block of a GPT: causal self-attention, then feed-forward where its weights are given; returns the output's id."""
    x = _attention(block.inside("", causal=True), x, None, "self.", 1)
    if not any(name.startswith(block.named("ffn.")) for name in block.inputs):
        return x
    return _feed_forward(block, x, 2)


def _attention(block: Part, x: str, memory: str | None, name: str, number: int) -> str:
    width = block.graph.axes(x)[-1].name

    def attend(source: str) -> str:
        return heads.multi_head(block.inside(name), source, memory or source, width)

    where = N_("self-attention") if memory is None else N_("cross-attention")
    return _sublayer(block, x, attend, name, number, where)


def _feed_forward(block: Part, x: str, number: int) -> str:
    width = block.graph.axes(x)[-1].name

    def through(source: str) -> str:
        return feed_forward(block.inside("ffn."), source, width)

    return _sublayer(block, x, through, "ffn.", number, N_("the feed-forward sublayer"))


def _sublayer(block: Part, x: str, apply: Callable[[str], str], name: str, number: int, where: str) -> str:
    """LN(x + f(x)) post-norm, x + f(LN(x)) pre-norm; returns the id of the result."""
    pre = block.setting("norm", "post") == "pre"
    norm, which = block.inside(f"norm{number}."), Message("norm {number}", number=number)
    source = _normed(norm, x, which) if pre else x
    with placed(Message(where)):
        through = apply(source)
        added = block.apply(RESIDUAL, f"{name}residual", x, through, symbol="R")
    return added if pre else _normed(norm, added, which)


def _normed(part: Part, x: str, which: Message) -> str:
    """The norm of x that the settings ask for; x itself where they ask for none."""
    kind = part.setting("normalisation", "layer")
    if kind == "none":
        return x
    with placed(which):
        return layer_norm(part, x) if kind == "layer" else rms_norm(part, x)


def last_norm(part: Part, x: str) -> str:
    """The norm behind a stack of pre-norm blocks; x itself behind others."""
    return _normed(part, x, Message("the last norm")) if part.setting("norm", "post") == "pre" else x


#: Settings that belong to the self-attention alone: across two sequences nothing comes before or after.
_OWN = ("causal", "window", "mask", "keep", "hide", "alibi", "rotary")


def _across(block: Part) -> Part:
    """A block as its cross-attention is told: masks over the other sequence, and none of its own."""
    settings = {name: value for name, value in block.settings.items() if name not in _OWN}
    across = {own: block.setting(name) for own, name in _CROSS.items() if name in block.settings}
    return block.changed(settings={**settings, **across}, names=_CROSS)


# --- stacks of blocks -------------------------------------------------------------------------------------------------


def positioned(part: Part, x: str, past: int = 0) -> str:
    """x plus the sinusoidal code of its positions, which count from `past`; returns the id of the sum."""
    rows, width = part.graph.shape(x)[-2:]
    return part.apply(ADD_POSITIONS, "positioned", x, positions(part, rows, width, past), symbol="X_{pos}")


def layers(part: Part, x: str, count: int, write: Callable[[Part, str], str]) -> str:
    """A block after another, layer1. to the last; returns the id of the last one's output."""
    for layer in range(1, count + 1):
        with placed(Message("layer {layer}", layer=layer)):
            x = write(part.inside(f"layer{layer}."), x)
    return x


def _stack(part: Part, x: str, count: int, write: Callable[[Part, str], str]) -> str:
    """Positions, blocks, and in pre-norm a last norm behind; returns the id of the result."""
    if part.setting("positions", "sinusoidal") != "none":
        x = positioned(part, x)
    return last_norm(part.inside("norm."), layers(part, x, count, write))


def _of_source(part: Part) -> Part:
    """The encoder, as it is told: nothing in the source comes too early, but some of it may be padding.

    A mask over the source that is a single row holds for whoever looks there, the source's own tokens included. One
    with a row for each token of the target says what those may see, and is none of the encoder's business.
    """
    settings = {name: value for name, value in part.settings.items() if name not in _CROSS}
    for own, name in _CROSS.items():
        mask = part.setting(name)
        if mask is not None and np.size(values := getattr(mask, "values", mask)) == np.shape(values)[-1]:
            settings[own] = mask
    return part.changed(prefix="encoder.", settings=settings, names=_CROSS)


def _transformer(part: Part) -> str:
    """X (source d_model) through the encoder, Y (token d_model) through the decoder → output, or logits with W_out."""
    count = int(part.setting(*_LAYERS))
    source = part.enter(_SOURCE, N_("The source sequence."))
    target = part.enter(_TARGET, N_("The sequence that is being written, as far as it goes."))
    with placed(Message("the encoder")):
        memory = _stack(_of_source(part), source, count, encoder)
    with placed(Message("the decoder")):
        output = _stack(part.inside("decoder."), target, count, lambda block, x: decoder(block, x, memory))
    return logits(part, output) if "W_out" in part else output


# --- Models -----------------------------------------------------------------------------------------------------------

_MEMORY = Argument("memory", ("source", "d_memory"), N_("the encoder's output, one row for each source token"))
_INTO = Argument("X", ("token", "d_model"), N_("what went in, one row per token"))
_OUT_OF = Argument("F", ("token", "d_model"), N_("what came out, of the same shape"))
_SOURCE = Argument("X", ("source", "d_model"), N_("the source sequence, one row per token"))
_TARGET = Argument("Y", ("token", "d_model"), N_("the sequence that is written, one row per token"))
_LAYERS = ("layers", 1)


def _decoder_block(part: Part) -> str:
    x = part.enter(TOKENS)
    why = N_("What the encoder made of the source: cross-attention takes its keys and values from here.")
    return decoder(part, x, part.enter(_MEMORY, why, "M"))


def _residual(part: Part) -> str:
    return part.apply(RESIDUAL, "Y", part.enter(_INTO), part.enter(_OUT_OF, N_("What the sublayer made of X.")))


_LAST_NORMS = {
    "encoder.norm.gamma": N_("γ of the encoder's last norm, where norm = pre"),
    "encoder.norm.beta": N_("β of the encoder's last norm, where norm = pre"),
    "decoder.norm.gamma": N_("γ of the decoder's last norm, where norm = pre"),
    "decoder.norm.beta": N_("β of the decoder's last norm, where norm = pre"),
}


def _last_norm(stack: str) -> list[Argument]:
    names = {name: text for name, text in _LAST_NORMS.items() if name.startswith(stack)}
    return [Argument(name, ("d_model",), text, required=False) for name, text in names.items()]


MODELS = (
    Model(
        name="residual",
        text=N_("a residual connection: what went into a sublayer, plus what came out"),
        arguments=(_INTO, _OUT_OF),
        settings=(),
        build=_residual,
    ),
    Model(
        name="encoder_block",
        text=N_("a block of the encoder: self-attention and feed-forward, each with a residual and a norm"),
        arguments=(TOKENS, *block_arguments(ENCODER)),
        settings=SETTINGS,
        build=lambda part: encoder(part, part.enter(TOKENS)),
    ),
    Model(
        name="decoder_block",
        text=N_(
            "a block of the decoder: causal self-attention, cross-attention and feed-forward, each with residual and norm"
        ),
        arguments=(TOKENS, _MEMORY, *block_arguments(DECODER)),
        settings=(*(setting for setting in SETTINGS if setting.name != "causal"), *CROSS_SETTINGS),
        build=_decoder_block,
    ),
    Model(
        name="transformer",
        text=N_("encoder and decoder: N blocks each, with positions, tied together by cross-attention"),
        arguments=(
            _SOURCE,
            _TARGET,
            *block_arguments(ENCODER, "encoder.layerN.", _LAYERS),
            *_last_norm("encoder"),
            *block_arguments(DECODER, "decoder.layerN.", _LAYERS),
            *_last_norm("decoder"),
            Argument("W_out", ("d_model", "vocabulary"), N_("weights from the output to the logits"), required=False),
            Argument("b_out", ("vocabulary",), N_("bias of the logits"), required=False),
        ),
        settings=(
            Setting("layers", "count", N_("blocks in the encoder, and as many in the decoder (default: 1)")),
            Setting(
                "positions",
                "choice",
                N_("what is added to both sequences: sinusoidal positions (default), or none"),
                ("sinusoidal", "none"),
            ),
            *STACKED,
            *CROSS_SETTINGS,
        ),
        build=_transformer,
    ),
)
