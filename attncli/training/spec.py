"""What is trained: the sizes and settings of a GPT, its vocabulary, and its first numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from attncli import models
from attncli.core.matrix import FloatArray
from attncli.core.message import InputError, LimitError
from attncli.core.record import Record
from attncli.models.model import Argument
from attncli.models.vocabulary import Vocabulary

#: Numbers that may be learned: what a laptop trains in minutes.
MOST_PARAMETERS = 2_000_000
#: Numbers that one step may hold at once, its gradients included: 400 MB.
MOST_CELLS = 50_000_000


#: With 0 layers the model names the widths of a single head; several stand side by side.
_BARE = {"W_Q": "heads·d_k", "W_K": "kv_heads·d_k", "W_V": "kv_heads·d_v"}


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
    split: str
    context: int
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

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary.of(self.tokens, split=self.split)

    def encode(self, text: str) -> list[int]:
        """The ids of a text's tokens.

        Raises
        ------
        InputError
            A token that was not there when the training began.
        """
        vocabulary = self.vocabulary
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
        idle = {
            "norm": self.layers == 0,
            "normalisation": self.layers == 0,
            "activation": self.layers == 0 or self.d_ff == 0,
        }
        found = {
            "vocabulary": list(self.tokens),
            "split": self.split,
            "layers": self.layers,
            "positions": self.positions,
            "tied": self.tied,
            "heads": self.heads,
            "kv_heads": self.kv_heads,
            "rotary": self.rotary,
            "norm": self.norm,
            "normalisation": self.normalisation,
            "activation": self.activation,
        }
        return {name: value for name, value in found.items() if not idle.get(name)}

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
                "{heads} query heads cannot share {kv_heads} heads of keys and values evenly. Write --kv-heads with a"
                " number that divides {heads}.",
                heads=self.heads,
                kv_heads=self.kv_heads,
            )
        if self.layers == 0 and self.d_ff:
            raise InputError("--d-ff belongs to a block, but there are none. Write --layers 1, or leave --d-ff out.")
        if self.rotary and not self._has_output_projection():
            raise InputError("--rotary turns the heads of a block. Write --layers 1 or --heads 2 with it.")
        if self.rotary and self.d_k % 2:
            raise InputError("--rotary turns pairs of columns. Write an even --d-k, like {even}.", even=self.d_k + 1)
        count = self.size()
        if count > MOST_PARAMETERS:
            raise LimitError(
                "{count} numbers would have to be learned; the limit is {limit}. Take smaller sizes.",
                count=f"{count:,}",
                limit=f"{MOST_PARAMETERS:,}",
            )
        cells = self.cells(self.context)
        if cells > MOST_CELLS:
            raise LimitError(
                "One step would hold about {count} numbers at once; the limit is {limit}. Take a smaller --context ({context}"
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

    def shapes(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Every parameter with its shape; a vector is a single row."""
        lengths = {
            "vocabulary": len(self.tokens),
            "position": self.context,
            "d_model": self.d_model,
            "d": self.d_model,
            "d_out": self.d_model,
            "d_k": self.d_k,
            "d_v": self.d_v,
            "heads·d_k": self.heads * self.d_k,
            "kv_heads·d_k": self.kv_heads * self.d_k,
            "kv_heads·d_v": self.kv_heads * self.d_v,
            "heads·d_v": self.heads * self.d_v,
            "d_ff": self.d_ff,
        }
        bare = self.layers == 0
        for argument in models.get("gpt").takes({"layers": self.layers}):
            if not self._uses(argument):
                continue
            shape = tuple(lengths[axis] for axis in argument.axes)
            if bare and argument.name in _BARE:
                shape = (self.d_model, lengths[_BARE[argument.name]])
            if argument.name == "W_out" and bare and not self._has_output_projection():
                shape = (self.d_v, shape[1])
            yield argument.name, (1, *shape) if len(shape) == 1 else shape

    def _has_output_projection(self) -> bool:
        """Whether there are heads to be joined, or a width to be led back to that of the embeddings."""
        return self.layers > 0 or self.heads > 1 or self.tied or self.rotary

    def _uses(self, argument: Argument) -> bool:
        part, _, name = argument.name.rpartition(".")
        if argument.kind != "matrix" or not argument.listed or name.endswith("_past") or name.startswith("b_"):
            return False
        if part.endswith("norm2") and not self.d_ff:
            return False
        if name in ("gamma", "beta"):
            last = part != "final" or self.norm == "pre"
            return self.layers > 0 and last and (self.normalisation == "layer" or (name == "gamma" and self._norms()))
        if part.endswith("ffn"):
            return self.d_ff > 0 and (name != "W_gate" or self.activation == "swiglu")
        if part:
            return True
        if name in ("W_Q", "W_K", "W_V"):
            return self.layers == 0
        uses = {
            "W_O": self.layers == 0 and self._has_output_projection(),
            "P": self.positions == "learned",
            "W_out": not self.tied,
        }
        return uses.get(name, True)

    def _norms(self) -> bool:
        return self.normalisation != "none"


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
    return {name: list(value) if isinstance(value, tuple) else value for name, value in _fields(spec).items()}


def _fields(spec: Spec) -> Mapping[str, Any]:
    return {name: getattr(spec, name) for name in Spec._fields}
