"""Blocks of the Transformer: sublayers with a residual connection around each and a norm behind or before it
(post-norm: Vaswani et al., arXiv 1706.03762, section 3.1; pre-norm: Xiong et al., arXiv 2002.04745, figure 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from attncli.core.graph import Graph
from attncli.core.message import N_, AttnError, Message, ShapeError
from attncli.models import feed_forward as forward
from attncli.models import heads, norms
from attncli.models.attention import SETTINGS as ATTENTION
from attncli.models.model import TOKENS, Argument, Given, Model, Setting
from attncli.ops.elementwise import RESIDUAL

#: What every block is told once for all its sublayers.
SHARED = (
    Setting(
        "norm",
        "choice",
        N_("where the norm stands: post (behind each sublayer and its residual) or pre (before each sublayer)"),
        ("post", "pre"),
    ),
    Setting("normalisation", "choice", N_("the norm: layer (default), rms, or none"), ("layer", "rms", "none")),
    *norms.SETTINGS,
    *forward.SETTINGS,
)

SETTINGS = (*(setting for setting in heads.SETTINGS if setting.name not in ("max_over",)), *SHARED)

#: What a mask is called that lies over the other sequence.
_CROSS = {"cross_mask": "mask", "cross_keep": "keep", "cross_hide": "hide"}

CROSS_SETTINGS = tuple(
    Setting(name, setting.kind, text)
    for name, text in (
        ("cross_mask", N_("as mask, over the other sequence")),
        ("cross_keep", N_("as keep, over the other sequence")),
        ("cross_hide", N_("as hide, over the other sequence")),
    )
    for setting in ATTENTION
    if setting.name == _CROSS[name]
)

_OF_SELF = N_("self-attention")
_OF_CROSS = N_("cross-attention")
_OF_FORWARD = N_("the feed-forward sublayer")
_OF_NORM = N_("norm {number}")
_OF_LAST_NORM = N_("the last norm")


def encoder_arguments(prefix: str = "", repeat: tuple[str, int] | None = None) -> tuple[Argument, ...]:
    """The weights of an encoder block: self., norm1., ffn., norm2."""
    return _arguments(("self", "ffn"), prefix, repeat)


def decoder_arguments(prefix: str = "", repeat: tuple[str, int] | None = None) -> tuple[Argument, ...]:
    """The weights of a decoder block: self., norm1., cross., norm2., ffn., norm3."""
    return _arguments(("self", "cross", "ffn"), prefix, repeat)


def _arguments(parts: Sequence[str], prefix: str, repeat: tuple[str, int] | None) -> tuple[Argument, ...]:
    out: list[Argument] = []
    for number, part in enumerate(parts, start=1):
        weights = forward.WEIGHTS if part == "ffn" else heads.WEIGHTS
        out += [_named(argument, part) for argument in weights]
        out += [
            argument.changed(name=f"norm{number}.{argument.name}", axes=("d_model",))
            for argument in (norms.GAMMA, norms.BETA)
        ]
    return tuple(argument.changed(name=prefix + argument.name, repeat=repeat) for argument in out)


def _named(argument: Argument, part: str) -> Argument:
    axes = argument.axes
    if part == "cross" and argument.name in ("W_K", "W_V"):
        axes = ("d_memory", *axes[1:])
    return argument.changed(name=f"{part}.{argument.name}", axes=axes)


def encoder(graph: Graph, x: str, given: Given, prefix: str = "") -> str:
    """Self-attention, then feed-forward, for x (token d_model); returns the id of the block's output (token d_model)."""
    x = _attention(graph, x, None, given, prefix, "self", 1)
    return _feed_forward(graph, x, given, prefix, 2)


def decoder(graph: Graph, x: str, memory: str, given: Given, prefix: str = "") -> str:
    """Causal self-attention, attention to `memory` (source d_memory), feed-forward; returns the id of the output."""
    x = _attention(graph, x, None, _with(given, causal=True), prefix, "self", 1)
    x = _attention(graph, x, memory, _across(given), prefix, "cross", 2)
    return _feed_forward(graph, x, given, prefix, 3)


def causal(graph: Graph, x: str, given: Given, prefix: str = "") -> str:
    """A block of a GPT: causal self-attention, then feed-forward where its weights are given; returns the output's id."""
    x = _attention(graph, x, None, _with(given, causal=True), prefix, "self", 1)
    if not any(name.startswith(f"{prefix}ffn.") for name in given.inputs):
        return x
    return _feed_forward(graph, x, given, prefix, 2)


def _attention(graph: Graph, x: str, memory: str | None, given: Given, prefix: str, part: str, number: int) -> str:
    def attend(source: str) -> str:
        width = graph.axes(x)[-1].name
        if memory is None:
            return heads.multi_head(graph, source, source, given, f"{prefix}{part}.", out=width)
        with masks_named_across():
            return heads.multi_head(graph, source, memory, given, f"{prefix}{part}.", out=width)

    return _sublayer(graph, x, attend, given, prefix, part, number, _OF_SELF if memory is None else _OF_CROSS)


def _feed_forward(graph: Graph, x: str, given: Given, prefix: str, number: int) -> str:
    def through(source: str) -> str:
        return forward.feed_forward(graph, source, given, f"{prefix}ffn.", out=graph.axes(x)[-1].name)

    return _sublayer(graph, x, through, given, prefix, "ffn", number, _OF_FORWARD)


def _sublayer(
    graph: Graph, x: str, apply: Callable[[str], str], given: Given, prefix: str, part: str, number: int, name: str
) -> str:
    """LN(x + f(x)) post-norm, x + f(LN(x)) pre-norm; returns the id of the result."""
    pre = given.setting("norm", "post") == "pre"
    source = normed(graph, x, given, f"{prefix}norm{number}.", number) if pre else x
    with told(Message(name)):
        through = apply(source)
        added = graph.apply(RESIDUAL, f"{prefix}{part}.residual", x, through, symbol="R")
    return added if pre else normed(graph, added, given, f"{prefix}norm{number}.", number)


def normed(graph: Graph, x: str, given: Given, prefix: str, number: int | None = None) -> str:
    """The norm of x that the settings ask for; x itself where they ask for none. Without a number it is a stack's last."""
    kind = given.setting("normalisation", "layer")
    if kind == "none":
        return x
    with told(Message(_OF_LAST_NORM) if number is None else Message(_OF_NORM, number=number)):
        return norms.layer_norm(graph, x, given, prefix) if kind == "layer" else norms.rms_norm(graph, x, given, prefix)


@contextmanager
def told(where: Message) -> Iterator[None]:
    """An error inside says which part of the model it happened in."""
    try:
        yield
    except AttnError as error:
        raise error.at(where) from None


@contextmanager
def masks_named_across() -> Iterator[None]:
    """An error about a mask over the other sequence calls it what it was called: cross_hide, not hide."""
    try:
        yield
    except ShapeError as error:
        message = _named_across(error.message)
        raise ShapeError(message.template, **message.fields) from None


def _named_across(message: Message) -> Message:
    names = {own: name for name, own in _CROSS.items()}
    fields = {
        key: _named_across(value)
        if isinstance(value, Message)
        else names.get(str(value), value)
        if key == "name"
        else value
        for key, value in message.fields.items()
    }
    return Message(message.template, **fields)


def _with(given: Given, **settings: Any) -> Given:
    return given.changed(settings={**given.settings, **settings})


#: Settings that belong to the self-attention alone: across two sequences nothing comes before or after.
_OWN = ("causal", "window", "mask", "keep", "hide", "alibi", "rotary")


def _across(given: Given) -> Given:
    settings: Mapping[str, Any] = {name: value for name, value in given.settings.items() if name not in _OWN}
    masks = {own: given.setting(name) for name, own in _CROSS.items() if name in given.settings}
    return given.changed(settings={**settings, **masks})


# --- Models -----------------------------------------------------------------------------------------------------------

_MEMORY = Argument("memory", ("source", "d_memory"), N_("the encoder's output, one row for each source token"))
_INTO = Argument("X", ("token", "d_model"), N_("what went in, one row per token"))
_OUT_OF = Argument("F", ("token", "d_model"), N_("what came out, of the same shape"))


def _decoder_block(graph: Graph, given: Given) -> str:
    x = given.enter(graph, TOKENS)
    why = N_("What the encoder made of the source: cross-attention takes its keys and values from here.")
    return decoder(graph, x, given.enter(graph, _MEMORY, why, symbol="M"), given)


def _residual(graph: Graph, given: Given) -> str:
    x = given.enter(graph, _INTO)
    return graph.apply(RESIDUAL, "Y", x, given.enter(graph, _OUT_OF, N_("What the sublayer made of X.")))


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
        arguments=(TOKENS, *encoder_arguments()),
        settings=SETTINGS,
        build=lambda graph, given: encoder(graph, given.enter(graph, TOKENS), given),
    ),
    Model(
        name="decoder_block",
        text=N_(
            "a block of the decoder: causal self-attention, cross-attention and feed-forward, each with residual and norm"
        ),
        arguments=(TOKENS, _MEMORY, *decoder_arguments()),
        settings=(*(setting for setting in SETTINGS if setting.name != "causal"), *CROSS_SETTINGS),
        build=_decoder_block,
    ),
)
