"""From ids or text to rows of an embedding table, and what begins with them, up to a GPT: tokens, embedding, positions,
causal blocks, logits. With cross-entropy and an update it learns by hand.

Layers as in GPT-2 (Radford et al., Language Models are Unsupervised Multitask Learners, 2019); with 0 layers it is
the bare causal attention: E, T → X → Q, K, V → O → logits.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from attncli.core.axes import show_shape
from attncli.core.matrix import FloatArray, Matrix
from attncli.core.message import N_, InputError, ShapeError
from attncli.models import attention, heads, transformer, updates
from attncli.models.attention import past_keys
from attncli.models.layers import logits
from attncli.models.model import Argument, Model, Part, Setting
from attncli.models.vocabulary import Vocabulary
from attncli.ops.embedding import ENCODE, LOOK_UP
from attncli.ops.positions import ADD_POSITIONS

# --- from ids or text to rows of an embedding table -------------------------------------------------------------------

TABLE = Argument("E", ("vocabulary", "d_model"), N_("the embedding table, one row per vocabulary entry"))
TOKENS = (
    Argument("T", ("token",), N_("the tokens as ids, counted from 0"), required=False, kind="ids"),
    Argument("text", (), N_("the tokens as text, instead of T"), required=False, kind="text"),
)

_VOCABULARY = (
    Setting("vocabulary", "words", N_("the known tokens, in the order of their ids")),
    Setting("corpus", "text", N_("a text to build the vocabulary from, by first appearance")),
    Setting("unknown", "text", N_("the token that stands in for unknown ones; without it they are an error")),
    Setting("split", "choice", N_("how a text is cut into tokens"), ("characters", "words")),
)

_EMBEDDED = (
    *_VOCABULARY,
    Setting("eta", "positive", N_("learning rate η: adds the updated table E_new"), update=True),
)


def vocabulary_of(part: Part) -> Vocabulary | None:
    """The vocabulary that the settings give or build, or None."""
    words, corpus = part.setting("vocabulary"), part.setting("corpus")
    split, unknown = part.setting("split", "characters"), part.setting("unknown")
    if words is not None and corpus is not None:
        raise InputError(
            "Both vocabulary and corpus are given. Keep one: a list of tokens, or a text to build it from."
        )
    if words is not None:
        return Vocabulary.of(words, split=split, unknown=unknown)
    if corpus is not None:
        return Vocabulary.built_from(corpus, split=split, unknown=unknown)
    return None


def tokens(part: Part) -> str:
    """The ids T (token), given or encoded from text; returns the id of T."""
    vocabulary, labels = vocabulary_of(part), part.graph.labels
    if "T" in part and "text" in part:
        raise InputError("Both T and text are given. Keep one: ids, or the text they come from.")
    if vocabulary is not None:
        labels["vocabulary"] = vocabulary.tokens
    if "text" in part:
        if vocabulary is None:
            raise InputError(
                "A text needs a vocabulary to become ids. Add the setting vocabulary (a list of tokens, in the order of"
                " their ids) or corpus (a text to build it from)."
            )
        labels["token"] = tuple(vocabulary.cut(part.texts["text"]))
        encoded = np.asarray(vocabulary.encode(part.texts["text"]), dtype=np.float64)
        return part.apply(ENCODE, "T", ids=encoded, count=len(encoded), notes={"tokens": labels["token"]})
    if "T" not in part:
        raise InputError("The tokens are missing. Give ids as T (like “0 2 1”), or a text with a vocabulary.")
    if vocabulary is not None and part.matrix("T").values.size:
        ids = [int(i) for i in part.matrix("T").values.ravel()]
        if all(0 <= i < len(vocabulary.tokens) for i in ids):
            labels["token"] = tuple(vocabulary.tokens[i] for i in ids)
    why = N_("The tokens as ids: each names a {row} of the table, counted from 0.")
    return part.input("T", ("token",), differentiable=False, why=why)


def embed(part: Part) -> str:
    """E (vocabulary d_model), T (token) → X (token d_model); returns the id of X."""
    graph = part.graph
    table = part.enter(TABLE, N_("The embedding table: one {row} of numbers for every entry of the vocabulary."))
    ids = tokens(part)
    numbers = graph.inputs[ids].matrix.values if ids in graph.inputs else graph.steps[ids].params["ids"]
    _check_ids(numbers, graph.shape(table)[0])
    return part.apply(LOOK_UP, "X", table, ids)


def _check_ids(numbers: FloatArray, count: int) -> None:
    """Refuse what are no ids of a table of `count` rows, and say where the first stands."""
    for position, value in enumerate(numbers.ravel(), start=1):
        if not np.isfinite(value) or value != int(value):
            raise InputError(
                "T, entry {position}: {value} is not an id. Ids are whole numbers from 0 to {last}.",
                position=position,
                value=f"{value:g}",
                last=count - 1,
            )
        if not 0 <= value < count:
            raise InputError(
                "T, entry {position}: id {value} is out of range. E has {count} rows, so ids go from 0 to {last}.",
                position=position,
                value=int(value),
                count=count,
                last=count - 1,
            )


# --- the GPT -----------------------------------------------------------------------------------------------------------

LAYERS = ("layers", 0)

#: Keys and values of earlier tokens, by layer; with 0 layers and a single attention without the head axis.
_CACHES = (
    Argument(
        "K_past", ("kv_head", "past_key", "d_k"), N_("with layers = 0: cached keys that go before K"), required=False
    ),
    Argument(
        "V_past", ("kv_head", "past_key", "d_v"), N_("with layers = 0: cached values that go before V"), required=False
    ),
    *(cache.changed(name=f"layerN.self.{cache.name}", repeat=LAYERS) for cache in heads.CACHE),
)

_PARAMETERS = (
    TABLE,
    Argument(
        "P", ("position", "d_model"), N_("learned positions, one row for each place, from place 0"), required=False
    ),
    *(weight.changed(required=False) for weight in attention.WEIGHTS),
    Argument("W_O", ("heads·d_v", "d_model"), N_("with layers = 0: mixes the joined heads"), required=False),
    *(
        weight.changed(required=weight.required and "ffn." not in weight.name)
        for weight in transformer.block_arguments(transformer.ENCODER, "layerN.", LAYERS)
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
    *_VOCABULARY,
    Setting("layers", "count", N_("blocks (default: 0, just causal attention)"), least=0),
    Setting(
        "positions",
        "choice",
        N_("what is added to the embeddings: none (default), sinusoidal, or learned (the input P)"),
        ("none", "sinusoidal", "learned"),
    ),
    Setting("tied", "flag", N_("the logits use the embedding table again, transposed, instead of W_out")),
    *transformer.STACKED,
    *updates.SETTINGS,
)


def _gpt(part: Part) -> str:
    """E (vocabulary d_model), T (token) and the weights → logits (token vocabulary)."""
    layers = int(part.setting(*LAYERS))
    x = _positioned(part, embed(part), _past(part, layers))
    if layers == 0:
        return _logits(part, _bare(part, x))
    x = transformer.layers(part, x, layers, transformer.causal)
    return _logits(part, transformer.last_norm(part.inside("final."), x))


def _past(part: Part, layers: int) -> int:
    """Tokens that are in the caches: as many in every layer."""
    parts = [part.inside(f"layer{layer}.self.") for layer in range(1, layers + 1)] or [part]
    lengths = {each.named("K_past"): past_keys(each) for each in parts}
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


def _positioned(part: Part, x: str, past: int) -> str:
    """X plus sinusoidal or learned positions, where they are asked for; they count from the tokens in the cache."""
    kind = part.setting("positions", "none")
    if kind == "learned" and "P" not in part:
        raise InputError("Learned positions need P, a {row} of d_model numbers for each place.")
    if kind != "learned" and "P" in part:
        raise InputError("P is given, but positions is {kind}. Set positions to learned, or leave P out.", kind=kind)
    if kind == "none":
        return x
    if kind == "sinusoidal":
        return transformer.positioned(part, x, past)
    return part.apply(ADD_POSITIONS, "positioned", x, _learned(part, part.graph.shape(x)[0], past), symbol="X_{pos}")


def _learned(part: Part, rows: int, past: int) -> str:
    why = N_("Learned positions: {row} 1 belongs to the first place, and so on.")
    table = part.input("P", ("position", "d_model"), why=why)
    shape = part.graph.shape(table)
    if past + rows > shape[0]:
        raise ShapeError(
            "P is {shape}: it has vectors for {most} places, but there are {rows} tokens. Give P a row for each token.",
            shape=show_shape(shape),
            most=shape[0],
            rows=past + rows,
        )
    numbers = Matrix(np.arange(float(past), float(past + rows)))
    why = N_("The places of the tokens, counted from 0.")
    places = part.input("places", ("token",), numbers, symbol="p", differentiable=False, why=why)
    why = N_("Each place names a {row} of P: what the model has learned about standing there.")
    return part.apply(LOOK_UP, "X_P", table, places, symbol="X_P", why=why)


def _bare(part: Part, x: str) -> str:
    """Causal attention and nothing else: heads where W_O is given, a single attention where it is not."""
    missing = [weight.name for weight in attention.WEIGHTS if weight.name not in part]
    if missing:
        raise InputError(
            "Model gpt with 0 layers needs {missing}. Give the weights of its attention, or set layers.",
            missing=", ".join(missing),
        )
    causal = part.inside("", causal=True)
    if "W_O" in part:
        return heads.multi_head(causal, x, x, out="d_model")
    for name in ("heads", "kv_heads", "rotary"):
        if part.setting(name) not in (None, 1, False):
            raise InputError("{name} needs W_O, which joins the heads. Give W_O, or leave {name} out.", name=name)
    return attention.self_attend(causal, x)


def _logits(part: Part, x: str) -> str:
    graph = part.graph
    axis = graph.axes(x)[-1]
    tied = bool(part.setting("tied"))
    if tied == ("W_out" in part):
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
    return logits(part, x, "E" if tied else None)


MODELS = (
    Model(
        name="tokens",
        text=N_("cut a text into tokens and look up their ids in a vocabulary"),
        arguments=(Argument("text", (), N_("the text"), kind="text"),),
        settings=_VOCABULARY,
        build=tokens,
    ),
    Model(
        name="embedding",
        text=N_("look up tokens in an embedding table, and where their gradients go"),
        arguments=(TABLE, *TOKENS),
        settings=_EMBEDDED,
        build=embed,
        after=partial(updates.updated, arguments=(TABLE,)),
    ),
    Model(
        name="embedded_attention",
        text=N_("tokens to embeddings to self-attention, with every gradient back to the table"),
        arguments=(TABLE, *TOKENS, *attention.WEIGHTS),
        settings=(*_EMBEDDED, *attention.SETTINGS),
        build=lambda part: attention.self_attend(part, embed(part)),
        after=partial(updates.updated, arguments=(TABLE,)),
    ),
    Model(
        name="gpt",
        text=N_("a GPT: tokens, embedding, positions, causal blocks, logits; with a loss and η, one step of training"),
        arguments=(
            TABLE,
            *TOKENS,
            *_PARAMETERS[1:],
            *_CACHES,
            *updates.memories(_PARAMETERS),
        ),
        settings=SETTINGS,
        build=_gpt,
        after=partial(updates.updated, arguments=_PARAMETERS),
    ),
)
