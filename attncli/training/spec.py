"""What is trained: the sizes and settings of a GPT as they are written, its vocabulary, its first numbers; and where it stands."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from attncli.core.limits import MOST_TEXT_BYTES
from attncli.core.matrix import FloatArray
from attncli.core.message import InputError, LimitError, Message, placed, unknown
from attncli.core.record import Record
from attncli.models.vocabulary import MOST, Vocabulary, printable
from attncli.problems.reading import decoded, read_bounded
from attncli.problems.settings import LARGEST_SEED, number, whole_number
from attncli.problems.source import Stdin

#: Numbers that may be learned: what a laptop trains in minutes.
MOST_PARAMETERS = 2_000_000
#: Numbers that one step may hold at once, its gradients included: 400 MB.
MOST_CELLS = 50_000_000
#: Updates that are made where nothing is said, and at most.
STEPS, MOST_STEPS = 500, 1_000_000

#: What may be written for the fields of a spec: whole numbers between two, and words.
COUNTS = {
    "context": (1, 4096), "d_model": (1, 1024), "d_k": (1, 1024), "d_v": (1, 1024), "heads": (1, 64), "kv_heads": (1, 64),
    "layers": (0, 48), "d_ff": (0, 4096), "seed": (0, LARGEST_SEED),
}  # fmt: skip
CHOICES = {
    "split": ("characters", "words"),
    "positions": ("sinusoidal", "none", "learned"),
    "norm": ("pre", "post"),
    "normalisation": ("layer", "rms", "none"),
    "activation": ("gelu", "relu", "gelu_tanh", "silu", "swiglu"),
    "optimizer": ("adam", "sgd"),
}
#: The learning rate where nothing is said, and at most.
_ETA, MOST_ETA = {"adam": 0.05, "sgd": 0.2}, 1e6


class Spec(Record):
    """A GPT to be trained.

    Parameters
    ----------
    tokens : the vocabulary, in the order of its ids; `split` says how a text is cut
    context : tokens that are looked at together
    d_model, d_k, d_v : widths of a token, of a head's queries and keys, of its values
    layers : blocks; 0: causal attention and nothing else
    d_ff : width of the feed-forward sublayer; 0: there is none
    seed : of the first numbers and of the order of the windows
    """

    tokens: tuple[str, ...]
    split: str = "characters"
    context: int = 32
    d_model: int = 4
    d_k: int = 2
    d_v: int = 2
    heads: int = 1
    kv_heads: int = 1
    layers: int = 0
    d_ff: int = 0
    positions: str = "sinusoidal"
    rotary: bool = False
    norm: str = "pre"
    normalisation: str = "layer"
    activation: str = "gelu"
    tied: bool = False
    optimizer: str = "adam"
    eta: float = 0.05
    seed: int = 0

    def encode(self, text: str) -> list[int]:
        """The ids of a text's tokens.

        Raises
        ------
        InputError
            A token that was not there when the training began.
        """
        vocabulary = Vocabulary.of(self.tokens, split=self.split)
        known = set(self.tokens)
        for piece in vocabulary.cut(text):
            if piece not in known:
                raise InputError(
                    "“{token}” is not one of the tokens that this training knows: {known}. Use only those.",
                    token=piece,
                    known=" ".join(self.tokens[:20]) + (" …" if len(self.tokens) > 20 else ""),
                )
        return vocabulary.encode(text)

    def settings(self) -> dict[str, Any]:
        """The settings of the model `gpt`: those that its calculation asks for, since it refuses others."""
        idle: set[str] = set()
        if not self.layers:
            idle = {"norm", "normalisation", "activation"}
        elif not self.d_ff:
            idle = {"activation"}
        names = (
            *("split", "layers", "positions", "tied", "heads", "kv_heads"),
            *("rotary", "norm", "normalisation", "activation"),
        )
        return {"vocabulary": list(self.tokens), **{name: getattr(self, name) for name in names if name not in idle}}

    def learning(self, t: int) -> dict[str, Any]:
        """The settings of the update number t, counted from 1; plain gradient descent does not count."""
        counted = {"t": t} if self.optimizer == "adam" else {}
        return {"eta": self.eta, "optimizer": self.optimizer, **counted}

    def checked(self) -> Spec:
        """The same, if its parts go together.

        Raises
        ------
        InputError, LimitError
            Says which do not, and what to write.
        """
        if self.heads % self.kv_heads:
            raise InputError(
                "{heads} query heads cannot share {kv_heads} heads of keys and values evenly. Give --kv-heads a number that"
                " divides {heads}.",
                heads=self.heads,
                kv_heads=self.kv_heads,
            )
        if self.layers == 0 and self.d_ff:
            raise InputError("--d-ff belongs to a block, but there are none. Write --layers 1, or leave --d-ff out.")
        if self.rotary and not self._has_output_projection():
            raise InputError("--rotary turns the heads of a block. Write --layers 1 or --heads 2 with it.")
        if self.rotary and self.d_k % 2:
            raise InputError("--rotary turns columns in pairs. Write an even --d-k, like {even}.", even=self.d_k + 1)
        count = self.size()
        if count > MOST_PARAMETERS:
            raise LimitError(
                "{count} numbers would have to be learned; the limit is {limit}. Choose smaller sizes.",
                count=f"{count:,}",
                limit=f"{MOST_PARAMETERS:,}",
            )
        cells = self.cells(self.context)
        if cells > MOST_CELLS:
            raise LimitError(
                "One step would hold about {count} numbers at once; the limit is {limit}. Choose a smaller --context ({context}"
                " here), or fewer heads or layers.",
                count=f"{cells:,}",
                limit=f"{MOST_CELLS:,}",
                context=self.context,
            )
        return self

    def size(self) -> int:
        """How many numbers are learned."""
        return sum(math.prod(shape) for _, shape in self.shapes())

    def cells(self, length: int) -> int:
        """About how many numbers a step over so many tokens holds, its gradients and update included.

        Fourteen arrays have a number for every pair of tokens, one set of them a head; the rest grows with the tokens.
        Against the graphs themselves this is too much by a tenth to a third.
        """
        layers = max(1, self.layers)
        pairs = 14 * length * length * self.heads * layers
        widths = 30 * self.d_model + 12 * self.heads * (self.d_k + self.d_v) + 10 * self.d_ff
        return pairs + length * (layers * widths + 8 * len(self.tokens)) + 6 * self.size()

    def shapes(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Every parameter with its shape, in the order of the model's inputs; a vector is a single row."""
        width, words = self.d_model, len(self.tokens)
        heads = {"W_Q": self.heads * self.d_k, "W_K": self.kv_heads * self.d_k, "W_V": self.kv_heads * self.d_v}
        output = (self.heads * self.d_v, width)
        yield "E", (words, width)
        if self.positions == "learned":
            yield "P", (self.context, width)
        if not self.layers:
            yield from ((name, (width, size)) for name, size in heads.items())
            if self._has_output_projection():
                yield "W_O", output
        for layer in (f"layer{i}." for i in range(1, self.layers + 1)):
            yield from ((f"{layer}self.{name}", (width, size)) for name, size in heads.items())
            yield f"{layer}self.W_O", output
            yield from self._norm(f"{layer}norm1.")
            if self.d_ff:
                yield f"{layer}ffn.W_1", (width, self.d_ff)
                yield f"{layer}ffn.W_2", (self.d_ff, width)
                if self.activation == "swiglu":
                    yield f"{layer}ffn.W_gate", (width, self.d_ff)
                yield from self._norm(f"{layer}norm2.")
        if self.layers and self.norm == "pre":
            yield from self._norm("final.")
        if not self.tied:
            yield "W_out", (width if self._has_output_projection() else self.d_v, words)

    def _norm(self, part: str) -> Iterator[tuple[str, tuple[int, int]]]:
        if self.normalisation != "none":
            yield f"{part}gamma", (1, self.d_model)
        if self.normalisation == "layer":
            yield f"{part}beta", (1, self.d_model)

    def _has_output_projection(self) -> bool:
        """Whether there are heads to be joined, or a width to be led back to that of the embeddings."""
        return self.layers > 0 or self.heads > 1 or self.tied or self.rotary


def diverged(step: int, eta: float) -> InputError:
    """The error for numbers that grew beyond all bounds."""
    return InputError(
        "After {step} steps the loss is no longer a number: the steps were too large. Choose an --eta below {eta}.",
        step=step,
        eta=f"{eta:g}",
    )


def first_numbers(spec: Spec) -> dict[str, FloatArray]:
    """Where training begins: small random numbers, so that no two start alike; γ is 1 and β is 0.

    A weight matrix gets a standard deviation of 1/√(its rows), so that what goes through it keeps its size
    (LeCun et al., Efficient BackProp, 1998, section 4.6). W_Q and W_K get a tenth of that: at first every token looks
    at all others about evenly. With two numbers a head, sharp random looks often never come loose again: of the
    seeds 0 to 9 all learn 我喜欢数学 in 500 steps this way, and 6 without the tenth.
    """
    random = np.random.default_rng(spec.seed)
    out: dict[str, FloatArray] = {}
    for name, shape in spec.shapes():
        kind = name.rpartition(".")[2]
        if kind in ("gamma", "beta"):
            out[name] = np.full(shape, 1.0 if kind == "gamma" else 0.0)
        elif kind in ("E", "P"):
            out[name] = random.standard_normal(shape)
        elif kind in ("W_Q", "W_K"):
            out[name] = random.standard_normal(shape) * (0.1 / math.sqrt(shape[0]))
        else:
            out[name] = random.standard_normal(shape) / math.sqrt(shape[0])
    return out


def as_plain(spec: Spec) -> dict[str, Any]:
    """The fields of a spec, for a file."""
    return {**{name: getattr(spec, name) for name in Spec._fields}, "tokens": list(spec.tokens)}


class TrainingState(Record):
    """Where a training stands.

    Parameters
    ----------
    spec : what is trained
    text : what it is trained on
    step : updates that were made
    numbers : the parameters by name; `memory`: what Adam remembers, by the names of the graph
    losses : the loss before every update
    """

    spec: Spec
    text: str
    step: int
    numbers: Mapping[str, FloatArray]
    memory: Mapping[str, FloatArray]
    losses: tuple[float, ...]


def begin(spec: Spec, text: str) -> TrainingState:
    """A training before its first step."""
    return TrainingState(spec, text, 0, first_numbers(spec.checked()), {}, ())


def begun(words: Mapping[str, Any]) -> TrainingState:
    """A new training.

    Parameters
    ----------
    words : the options of `attncli train`, by parameter name

    Raises
    ------
    InputError
        There is no text, or something is written that does not work.
    """
    if words["text"] is None:
        raise InputError("There is no text to learn. Write one, like: attncli train 我喜欢数学")
    text = text_of(words["text"])
    given: dict[str, Any] = {name: _choice(name, words[name]) for name in CHOICES if words[name] is not None}
    for name, (least, most) in COUNTS.items():
        if words[name] is not None:
            given[name] = whole_number(f"--{name.replace('_', '-')}", words[name], least, most)
    given["eta"] = _eta(words["eta"], _ETA[given.get("optimizer", "adam")])
    given.setdefault("kv_heads", given.get("heads", 1))
    if words["rotary"]:
        given.setdefault("positions", "none")  # the heads know the positions already
    pieces = text.split(" ") if given.get("split") == "words" else list(text)
    spec = Spec(tuple(dict.fromkeys(pieces)), rotary=bool(words["rotary"]), tied=bool(words["tied"]), **given)
    return begin(spec.changed(context=min(spec.context, max(1, len(pieces) - 1))), text)


def continued(state: TrainingState, words: Mapping[str, Any]) -> TrainingState:
    """A saved training that goes on, with what its options change: the text and the learning rate.

    Raises
    ------
    InputError
        They say what is settled already, or something that does not work.
    """
    spec = state.spec
    for name in Spec._fields:
        if name not in ("tokens", "eta", "optimizer") and words[name] not in (None, False):
            raise _settled(name)
    if words["optimizer"] is not None and _choice("optimizer", words["optimizer"]) != spec.optimizer:
        raise _settled("optimizer")
    text = state.text if words["text"] is None else text_of(words["text"])
    return state.changed(spec=spec.changed(eta=_eta(words["eta"], spec.eta)), text=text)


def _settled(name: str) -> InputError:
    return InputError(
        "The saved training fixes --{option}. Leave it out, or start a new training without --load.",
        option=name.replace("_", "-"),
    )


def _choice(name: str, given: str) -> str:
    if given not in CHOICES[name]:
        raise unknown(Message("--{option}:", option=name.replace("_", "-")), given, CHOICES[name])
    return given


def _eta(given: str | None, usual: float) -> float:
    eta = usual if given is None else number("--eta", given, 0.0, MOST_ETA)
    if eta == 0:
        raise InputError("--eta: with a learning rate of 0 nothing is learned. Write a number above 0, like 0.05.")
    return eta


def text_of(word: str) -> str:
    """The text itself, from a file (@FILE), or from standard input (-); runs of white space are one space."""
    if word == "-" or (word.startswith("@") and len(word) > 1):
        where = Message("standard input") if word == "-" else word[1:]
        with placed(where):
            word = decoded(Stdin()() if word == "-" else read_bounded(word[1:], MOST_TEXT_BYTES))
    text = " ".join(word.split())
    if not text:
        raise InputError("The text is empty. Write at least two tokens, like: attncli train 我喜欢数学")
    if len(text) > MOST:
        raise InputError(
            "The text has {count} characters; the limit is {limit}. Give the beginning of it.",
            count=len(text),
            limit=MOST,
        )
    return printable(text)
