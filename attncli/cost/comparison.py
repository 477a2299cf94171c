"""Models and variants side by side: what is to be compared, from what is written, and the comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from attncli.core.message import InputError, Message, placed, unknown
from attncli.core.record import Record
from attncli.cost import published
from attncli.cost.claims import Claim, SameWeights, claims, on_same_weights
from attncli.cost.count import DIMENSIONS, VARIANTS, Count, GivenSizes, count
from attncli.cost.published import NONE, ComparedModel, completed
from attncli.problems.settings import whole_number
from attncli.problems.source import Stdin

#: Files of --config that stand side by side.
_MOST_FILES = 20
#: Where nothing is said.
PRESET = "llama-2-7b"

#: Sizes that make an attention of one's own; the others can also be changed in a published one.
_OWN = ("d_model", "heads", "d_head")
_DTYPES = {
    "fp32": Fraction(4), "fp16": Fraction(2), "bf16": Fraction(2), "fp8": Fraction(1), "int8": Fraction(1), "int4": Fraction(1, 2),
}  # fmt: skip


class VariantCount(Record):
    """One variant at one model's sizes, and MHA at the same sizes to measure it by."""

    model: ComparedModel
    count: Count
    baseline: Count

    @property
    def own(self) -> bool:
        """Whether this is what the model uses."""
        return self.count.variant == self.model.preset.variant and not set(self.model.given) - _NOT_THE_MODEL

    @property
    def cache_share(self) -> Fraction:
        """The cache as a share of MHA's."""
        return Fraction(self.count.cache.value, self.baseline.cache.value)

    def share(self, part: str) -> Fraction | None:
        """A part as a share of MHA's: "absorbed" is MLA's other way to a "decode". None where there is no such part."""
        if part not in self.count.parts:
            return None
        return Fraction(self.count.total(part), self.baseline.total("decode" if part == "absorbed" else part))


#: Sizes of a run, not of a model.
_NOT_THE_MODEL = {"context", "bytes", "causal"}


class Comparison(Record):
    """Everything that is shown.

    Parameters
    ----------
    models, entries : what is compared
    claims : what is said about these variants, examined
    same : MQA and MHA as special cases of GQA, by numbers
    """

    models: tuple[ComparedModel, ...]
    entries: tuple[VariantCount, ...]
    claims: tuple[Claim, ...]
    same: SameWeights

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants that occur, in their usual order."""
        return tuple(variant for variant in VARIANTS if self.of_variant(variant))

    def of_variant(self, variant: str) -> list[VariantCount]:
        """What is compared of one variant."""
        return [entry for entry in self.entries if entry.count.variant == variant]


def variants_of(words: Sequence[str]) -> tuple[str, ...]:
    """The variants in the order they were named, each once."""
    for word in words:
        if word.casefold() in published.names():
            raise InputError(
                "“{name}” is a model. Write it as: attncli compare --preset {preset}", name=word, preset=word.casefold()
            )
        if word.casefold().endswith(".json"):
            raise InputError("“{name}” is a file. Write it as: attncli compare --config {name}", name=word)
        if word.casefold() not in VARIANTS:
            raise unknown(Message("The variant"), word, list(VARIANTS))
    return tuple(dict.fromkeys(word.casefold() for word in words))


def sizes_of(words: Mapping[str, Any]) -> GivenSizes:
    """The sizes that were given, by name."""
    given: dict[str, int | Fraction] = {}
    for name, size in DIMENSIONS.items():
        number = whole_number(f"--{name.replace('_', '-')}", words[name], size.least, size.most) if size.most else None
        if number is not None:
            given[name] = number
    if words["bytes"] is not None:
        given["bytes"] = _bytes(words["bytes"])
    if words["bias"]:
        given["bias"] = True
    prefill = words["prefill"]
    if prefill is not None:
        if prefill not in ("causal", "full"):
            raise unknown(Message("The prefill"), prefill, ["causal", "full"])
        if prefill == "full":
            given["causal"] = False
    return given


def _bytes(text: str) -> Fraction:
    word = text.strip().casefold()
    if word in _DTYPES:
        return _DTYPES[word]
    # Of plain digits and a point alone: Fraction takes much else, and powers that fill the memory.
    plain = word.replace(".", "", 1)
    value = Fraction(word) if plain.isascii() and plain.isdigit() and len(word) < 10 else None
    if value is None or not Fraction(1, 16) <= value <= 16:
        raise InputError(
            "--bytes: “{given}” is not allowed here. Write a number from 0.0625 to 16, like 2 or 0.5, or one of {choices}.",
            given=text[:40],
            choices=", ".join(_DTYPES),
        )
    return value


def models_of(names: Sequence[str], files: Sequence[str], given: GivenSizes) -> list[ComparedModel]:
    """The presets and files that are named, one's own sizes, or the usual preset.

    Of several models without a context, all get the shortest of theirs: at different ones the numbers say nothing of each
    other.
    """
    words = list(dict.fromkeys(word.strip().casefold() for name in names for word in name.split(",")))
    if not words and not files and any(name in given for name in _OWN):
        return [completed(NONE, given)]
    models = [completed(published.get(word), given) for word in words or ([] if files else [PRESET])]
    models += _configured(files, given)
    if len(models) == 1 or "context" in given:
        return models
    context = min(model.sizes.context for model in models)
    return [
        model.changed(sizes=model.sizes.changed(context=context), assumed={**model.assumed, "context": "shortest"})
        for model in models
    ]


def _configured(files: Sequence[str], given: GivenSizes) -> Iterator[ComparedModel]:
    if len(files) > _MOST_FILES:
        raise InputError(
            "--config: {count} files are too many. Give at most {most}.", count=len(files), most=_MOST_FILES
        )
    stdin = Stdin()
    for file in dict.fromkeys(files):
        with placed("--config"):
            preset = published.configured(file, given, stdin)
        with placed(f"--config {preset.source}"):
            yield completed(preset, given)


def comparison(models: Sequence[ComparedModel], variants: Sequence[str]) -> Comparison:
    """The comparison of these variants; where none is named, all of them, or each model's own if there are several."""
    entries = [
        VariantCount(model, count(variant, model.sizes), count("mha", model.sizes))
        for model in models
        for variant in variants or (VARIANTS if len(models) == 1 else (model.preset.variant,))
    ]
    models_of_variant = {
        variant: [entry.model for entry in entries if entry.count.variant == variant] for variant in VARIANTS
    }
    return Comparison(tuple(models), tuple(entries), claims(models_of_variant), on_same_weights())
