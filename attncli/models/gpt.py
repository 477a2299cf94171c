"""A GPT: tokens, embedding, positions, causal blocks, logits. With cross-entropy and an update it learns by hand.

Layers as in GPT-2 (Radford et al., Language Models are Unsupervised Multitask Learners, 2019); with 0 layers it is
the bare causal attention: E, T → X → Q, K, V → O → logits.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from attncli.core.graph import Graph, show_shape
from attncli.core.matrix import Matrix
from attncli.core.message import N_, InputError, Message, ShapeError
from attncli.models import attention, block, embedding, heads, updates
from attncli.models.attention import past_keys
from attncli.models.linear import logits
from attncli.models.model import Argument, Given, Model, Setting
from attncli.models.positions import BASE, EXPONENTS, positions
from attncli.ops.embedding import LOOK_UP
from attncli.ops.positions import ADD_POSITIONS

LAYERS = ("layers", 0)

#: Keys and values of earlier tokens, by layer; with 0 layers and a single attention without the head axis.
_CACHES = (
    Argument(
        "K_past", ("kv_head", "past_key", "d_k"), N_("with layers = 0: cached keys that go before K"), required=False
    ),
    Argument(
        "V_past", ("kv_head", "past_key", "d_v"), N_("with layers = 0: cached values that go before V"), required=False
    ),
    *(
        cache.changed(name=f"layerN.self.{cache.name}", repeat=LAYERS)
        for cache in heads.CACHE
        if cache.name in ("K_past", "V_past")
    ),
)

_PARAMETERS = (
    embedding.ARGUMENTS[0],
    Argument(
        "P", ("position", "d_model"), N_("learned positions, one row for each place, from place 0"), required=False
    ),
    *(weight.changed(required=False) for weight in attention.WEIGHTS),
    Argument("W_O", ("heads·d_v", "d_model"), N_("with layers = 0: mixes the joined heads"), required=False),
    *(
        weight.changed(required=weight.required and "ffn." not in weight.name)
        for weight in block.encoder_arguments("layerN.", LAYERS)
    ),
    Argument("final.gamma", ("d_model",), N_("γ of the last norm, where norm = pre"), required=False),
    Argument("final.beta", ("d_model",), N_("β of the last norm, where norm = pre"), required=False),
    Argument(
        "W_out",
        ("d_model", "vocabulary"),
        N_("weights from a token's vector to the logits, one score for every entry of the vocabulary"),
        required=False,
    ),
    Argument("b_out", ("vocabulary",), N_("bias of the logits"), required=False),
)

SETTINGS = (
    *embedding.VOCABULARY_SETTINGS,
    Setting("layers", "count", N_("blocks (default: 0, just causal attention)"), least=0),
    Setting(
        "positions",
        "choice",
        N_("what is added to the embeddings: none (default), sinusoidal, or learned (the input P)"),
        ("none", "sinusoidal", "learned"),
    ),
    Setting("tied", "flag", N_("the logits use the embedding table again, transposed, instead of W_out")),
    BASE,
    EXPONENTS,
    *(s for s in block.SETTINGS if s.name not in ("causal", "base")),
    *updates.SETTINGS,
)


def _gpt(graph: Graph, given: Given) -> str:
    """E (vocabulary d_model), T (token) and the weights → logits (token vocabulary)."""
    layers = int(given.setting(*LAYERS))
    x = _positioned(graph, embedding.embed(graph, given), given, _past(given, layers))
    for layer in range(1, layers + 1):
        with block.told(Message(N_("layer {layer}"), layer=layer)):
            x = block.causal(graph, x, given, f"layer{layer}.")
    if layers == 0:
        x = _bare(graph, x, given)
    elif given.setting("norm", "post") == "pre":
        x = block.normed(graph, x, given, "final.")
    return _logits(graph, x, given)


def _past(given: Given, layers: int) -> int:
    """Tokens that are in the caches: as many in every layer."""
    parts = [f"layer{layer}.self." for layer in range(1, layers + 1)] or [""]
    lengths = {f"{part}K_past": past_keys(given, part) for part in parts}
    first = next(iter(lengths))
    for name, length in lengths.items():
        if length != lengths[first]:
            raise ShapeError(
                "{name} holds {length} tokens, but {first} holds {expected}. Every layer has seen the same tokens: give all"
                " caches the same length.",
                name=name,
                length=length,
                first=first,
                expected=lengths[first],
            )
    return lengths[first]


def _positioned(graph: Graph, x: str, given: Given, past: int) -> str:
    """X plus sinusoidal or learned positions, where they are asked for; they count from the tokens in the cache."""
    kind = given.setting("positions", "none")
    if (kind == "learned") != ("P" in given):
        if kind == "learned":
            raise InputError("Learned positions need P, a {row} of d_model numbers for each place.")
        raise InputError("P is given, but positions is {kind}. Set positions to learned, or leave P out.", kind=kind)
    if kind == "none":
        return x
    rows, width = graph.shape(x)
    code = (
        positions(graph, given, rows, width, "", past) if kind == "sinusoidal" else _learned(graph, given, rows, past)
    )
    return graph.apply(ADD_POSITIONS, "positioned", x, code, symbol="X_{pos}")


def _learned(graph: Graph, given: Given, rows: int, past: int) -> str:
    why = N_("Learned positions: {row} 1 belongs to the first place, and so on.")
    table = graph.input("P", given.inputs["P"], ("position", "d_model"), why=why)
    most = graph.shape(table)[0]
    if past + rows > most:
        raise ShapeError(
            "P is {shape}: it has a vector for {most} places, but there are {rows} tokens. Give P a row for each token.",
            shape=show_shape(graph.shape(table)),
            most=most,
            rows=past + rows,
        )
    places = graph.input(
        "places",
        Matrix(np.arange(float(past), float(past + rows))),
        ("token",),
        symbol="p",
        differentiable=False,
        why=N_("The places of the tokens, counted from 0."),
    )
    said = N_("Each place names a {row} of P: what the model has learned about standing there.")
    return graph.apply(LOOK_UP, "X_P", table, places, symbol="X_P", why=said)


def _bare(graph: Graph, x: str, given: Given) -> str:
    """Causal attention and nothing else: heads where W_O is given, a single attention where it is not."""
    missing = [weight.name for weight in attention.WEIGHTS if weight.name not in given]
    if missing:
        raise InputError(
            "Model gpt with 0 layers needs {missing}. Give the weights of its attention, or set layers.",
            missing=", ".join(missing),
        )
    causal = given.changed(settings={**given.settings, "causal": True})
    if "W_O" in given:
        return heads.multi_head(graph, x, x, causal, out="d_model")
    for name in ("heads", "kv_heads", "rotary"):
        if given.setting(name) not in (None, 1, False):
            raise InputError("{name} needs W_O, which joins the heads. Give W_O, or leave {name} out.", name=name)
    return attention.self_attend(graph, x, causal)


def _logits(graph: Graph, x: str, given: Given) -> str:
    axis = graph.axes(x)[-1]
    tied = bool(given.setting("tied"))
    if tied == ("W_out" in given):
        raise InputError(
            "tied is set, so the logits use E, but W_out is given too. Keep one."
            if tied
            else "The logits need W_out (a {row} for each number of a token's vector, a {column} for each token of the"
            " vocabulary), or tied = true, which uses E again."
        )
    if tied and axis.size != graph.shape("E")[1]:
        raise ShapeError(
            "tied uses E ({shape}) for the logits too, but a token's vector has {size} numbers there. Give W_O with"
            " {width} columns, or W_out instead of tied.",
            shape=show_shape(graph.shape("E")),
            size=axis.size,
            width=graph.shape("E")[1],
        )
    return logits(graph, given, x, "E" if tied else None)


MODELS = (
    Model(
        name="gpt",
        text=N_("a GPT: tokens, embedding, positions, causal blocks, logits; with a loss and η, one step of training"),
        arguments=(
            *_PARAMETERS[:1],
            *embedding.ARGUMENTS[1:],
            *_PARAMETERS[1:],
            *_CACHES,
            *updates.memories(_PARAMETERS),
        ),
        settings=SETTINGS,
        build=_gpt,
        after=partial(updates.updated, arguments=_PARAMETERS),
    ),
)
