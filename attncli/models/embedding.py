"""From ids or text to rows of an embedding table, the table's update, and what begins with it."""

from __future__ import annotations

from functools import partial

import numpy as np

from attncli.core.message import N_, InputError
from attncli.models import attention
from attncli.models.model import Argument, Model, Part, Setting
from attncli.models.updates import updated
from attncli.models.vocabulary import Vocabulary
from attncli.ops.embedding import ENCODE, LOOK_UP

TABLE = Argument("E", ("vocabulary", "d_model"), N_("the embedding table, one row per vocabulary entry"))
ARGUMENTS = (
    TABLE,
    Argument("T", ("token",), N_("the tokens as ids, counted from 0"), required=False, kind="ids"),
    Argument("text", (), N_("the tokens as text, instead of T"), required=False, kind="text"),
)

VOCABULARY_SETTINGS = (
    Setting("vocabulary", "words", N_("the known tokens, in the order of their ids")),
    Setting("corpus", "text", N_("a text to build the vocabulary from, by first appearance")),
    Setting("unknown", "text", N_("the token that stands in for unknown ones; without it they are an error")),
    Setting("split", "choice", N_("how a text is cut into tokens"), ("characters", "words")),
)

SETTINGS = (
    *VOCABULARY_SETTINGS,
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
    check_ids(numbers, graph.shape(table)[0])
    return part.apply(LOOK_UP, "X", table, ids)


def check_ids(numbers: np.ndarray[tuple[int, ...], np.dtype[np.float64]], count: int) -> None:
    """Refuse what are no ids of a table of `count` rows.

    Raises
    ------
    InputError
        Names the first id that is not, and where it stands.
    """
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


MODELS = (
    Model(
        name="tokens",
        text=N_("cut a text into tokens and look up their ids in a vocabulary"),
        arguments=(Argument("text", (), N_("the text"), kind="text"),),
        settings=VOCABULARY_SETTINGS,
        build=tokens,
    ),
    Model(
        name="embedding",
        text=N_("look up tokens in an embedding table, and where their gradients go"),
        arguments=ARGUMENTS,
        settings=SETTINGS,
        build=embed,
        after=partial(updated, arguments=(TABLE,)),
    ),
    Model(
        name="embedded_attention",
        text=N_("tokens to embeddings to self-attention, with every gradient back to the table"),
        arguments=(*ARGUMENTS, *attention.WEIGHTS),
        settings=(*SETTINGS, *attention.SETTINGS),
        build=lambda part: attention.self_attend(part, embed(part)),
        after=partial(updated, arguments=(TABLE,)),
    ),
)
