"""What a training begins with, from what is written: a text, sizes, how it learns; or a saved training and what changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attncli.core.limits import MOST_TEXT_BYTES
from attncli.core.message import AttnError, InputError, Message, unknown
from attncli.models.vocabulary import MOST, printable
from attncli.problems.reading import as_text, read_bounded
from attncli.problems.request import Stdin
from attncli.problems.settings import LARGEST_SEED, number, whole_number
from attncli.training.spec import Spec
from attncli.training.trainer import TrainingState, begin

#: Updates that are made where nothing is said, and at most.
STEPS, MOST_STEPS = 500, 1_000_000
#: Options that say what is trained, which a saved training knows already.
_SIZES = (
    *("split", "context", "d_model", "d_k", "d_v", "heads", "kv_heads", "layers", "d_ff", "positions", "rotary"),
    *("norm", "normalisation", "activation", "tied", "seed"),
)
#: The largest sizes, and what stands where nothing is said.
_COUNTS = {
    "context": (1, 4096, 32),
    "d_model": (1, 1024, 4),
    "d_k": (1, 1024, 2),
    "d_v": (1, 1024, 2),
    "heads": (1, 64, 1),
    "kv_heads": (1, 64, None),
    "layers": (0, 48, 0),
    "d_ff": (0, 4096, 0),
    "seed": (0, LARGEST_SEED, 0),
}
_CHOICES = {
    "split": ("characters", "words"),
    "positions": ("sinusoidal", "none", "learned"),
    "norm": ("pre", "post"),
    "normalisation": ("layer", "rms", "none"),
    "activation": ("gelu", "relu", "gelu_tanh", "silu", "swiglu"),
    "optimizer": ("adam", "sgd"),
}
_ETA = {"adam": 0.05, "sgd": 0.2}


def state_of(words: Mapping[str, Any]) -> TrainingState:
    """A new training, or a saved one to go on with.

    Parameters
    ----------
    words : the options of `attncli train`, by parameter name

    Raises
    ------
    InputError
        There is no text, or something is written that does not work.
    """
    if words["load"] is None:
        if words["text"] is None:
            raise InputError("There is no text to learn. Write one, like: attncli train 我喜欢数学")
        return _new(words, text_of(words["text"]))
    from attncli.training.saved import load

    for name in _SIZES:
        if words[name] not in (None, False):
            raise InputError(
                "The saved training fixes --{option}. Leave it out, or start a new training without --load.",
                option=name.replace("_", "-"),
            )
    state = load(words["load"])
    learning = _learning(words, state.spec)
    if learning["optimizer"] != state.spec.optimizer:
        raise InputError("The saved training fixes --optimizer. Leave it out, or start a new training without --load.")
    text = state.text if words["text"] is None else text_of(words["text"])
    return state.changed(spec=state.spec.changed(**learning), text=text)


def _learning(words: Mapping[str, Any], spec: Spec | None) -> dict[str, Any]:
    optimizer = _choice("optimizer", words["optimizer"]) if words["optimizer"] or spec is None else spec.optimizer
    if words["eta"] is not None:
        eta = number("--eta", words["eta"], 0.0, 1e6)
        if eta == 0:
            raise InputError("--eta: with a learning rate of 0 nothing is learned. Write a number above 0, like 0.05.")
    else:
        eta = spec.eta if spec is not None else _ETA[optimizer]
    return {"optimizer": optimizer, "eta": eta}


def _new(words: Mapping[str, Any], text: str) -> TrainingState:
    values: dict[str, Any] = {name: _choice(name, words[name]) for name in _CHOICES if name != "optimizer"}
    for name, (least, most, usual) in _COUNTS.items():
        given = whole_number(f"--{name.replace('_', '-')}", words[name], least, most)
        values[name] = usual if given is None else given
    if values["kv_heads"] is None:
        values["kv_heads"] = values["heads"]
    values |= {"rotary": bool(words["rotary"]), "tied": bool(words["tied"]), **_learning(words, None)}
    if values["rotary"] and words["positions"] is None:
        values["positions"] = "none"  # the heads know the positions already
    pieces = text.split(" ") if values["split"] == "words" else list(text)
    tokens = tuple(dict.fromkeys(pieces))
    values["context"] = min(values["context"], max(1, len(pieces) - 1))
    return begin(Spec(tokens=tokens, **values), text)


def _choice(name: str, given: str | None) -> str:
    known = _CHOICES[name]
    if given is None:
        return known[0]
    if given not in known:
        raise unknown(Message("--{option}:", option=name.replace("_", "-")), given, known)
    return given


def text_of(word: str) -> str:
    """The text itself, from a file (@FILE), or from standard input (-); runs of white space are one space."""

    if word == "-":
        text = _from(Message("standard input"), Stdin())
    elif word.startswith("@") and len(word) > 1:
        text = _from(word[1:], lambda: read_bounded(word[1:], MOST_TEXT_BYTES))
    else:
        text = word
    text = " ".join(text.split())
    if not text:
        raise InputError("The text is empty. Write at least two tokens, like: attncli train 我喜欢数学")
    if len(text) > MOST:
        raise InputError(
            "The text has {count} characters; the limit is {limit}. Give the beginning of it.",
            count=len(text),
            limit=MOST,
        )
    return printable(text)


def _from(where: Message | str, read: Callable[[], bytes]) -> str:
    """The text that is there; an error names the place."""
    try:
        return as_text(read(), where)
    except AttnError as error:
        raise error.at(where) from None
