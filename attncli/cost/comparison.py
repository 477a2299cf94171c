"""Models and variants side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from attncli.core.record import Record
from attncli.cost.claims import Claim, LatentAsGroups, claims, latent_as_groups
from attncli.cost.count import VARIANTS, Count, count
from attncli.cost.presets import Preset
from attncli.cost.same import Compared, compared
from attncli.cost.sizes import Assumed, Sizes, complete


class ComparedModel(Record):
    """A model's sizes and where they come from.

    Parameters
    ----------
    name, title : of the preset; "" for own sizes
    source, config : the address of its config.json, and the entries taken from there
    sizes : complete
    given : sizes that were given by hand
    assumed : sizes that nobody gave
    variant : the attention it uses; "" for own sizes
    """

    name: str
    title: str
    source: str
    config: Mapping[str, int]
    sizes: Sizes
    given: tuple[str, ...]
    assumed: tuple[Assumed, ...]
    variant: str = ""


class VariantCount(Record):
    """One variant at one model's sizes, and MHA at the same sizes to measure it by."""

    model: ComparedModel
    count: Count
    baseline: Count

    @property
    def own(self) -> bool:
        """Whether this is what the model uses."""
        return self.count.variant == self.model.variant and not set(self.model.given) - _NOT_THE_MODEL

    @property
    def cache_share(self) -> Fraction:
        """The cache as a share of MHA's."""
        return Fraction(self.count.cache.value, self.baseline.cache.value)

    def share(self, part: str) -> Fraction | None:
        """A part as a share of MHA's: "absorbed" is MLA's other way to a "decode". None where there is no such part."""
        if not getattr(self.count, part):
            return None
        return Fraction(self.count.total(part), self.baseline.total("decode" if part == "absorbed" else part))


#: Sizes of a run, not of a model.
_NOT_THE_MODEL = {"context", "bytes", "causal"}


class Comparison(Record):
    """Everything that is shown.

    Parameters
    ----------
    models, entries : what is compared
    latent : MLA's cache as groups of GQA, for every model
    claims : what is said about these variants, examined
    same : MQA and MHA as special cases of GQA, by numbers
    """

    models: tuple[ComparedModel, ...]
    entries: tuple[VariantCount, ...]
    latent: tuple[LatentAsGroups, ...]
    claims: tuple[Claim, ...]
    same: Compared

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants that occur, in their usual order."""
        return tuple(variant for variant in VARIANTS if any(entry.count.variant == variant for entry in self.entries))


def published(preset: Preset, given: Mapping[str, Any]) -> ComparedModel:
    """A published model, with the sizes that were given by hand in the place of its own."""
    sizes, assumed = complete({**preset.sizes(), **given})
    return ComparedModel(
        preset.name, preset.title, preset.source, preset.config, sizes, tuple(given), assumed, preset.variant
    )


def in_one_context(models: Sequence[ComparedModel]) -> list[ComparedModel]:
    """The models at the shortest context of them: at different ones the numbers say nothing of each other."""
    context = min(model.sizes.context for model in models)
    shared = Assumed("context", "shortest")
    return [
        model.changed(sizes=model.sizes.changed(context=context), assumed=(*model.assumed, shared)) for model in models
    ]


def own(given: Mapping[str, Any]) -> ComparedModel:
    """Sizes given by hand."""
    sizes, assumed = complete(given)
    return ComparedModel("", "", "", {}, sizes, tuple(given), assumed)


def comparison(models: Sequence[ComparedModel], variants: Sequence[str]) -> Comparison:
    """The comparison of these variants; where none is named, all of them, or each model's own if there are several."""
    entries = [
        VariantCount(model, count(variant, model.sizes), count("mha", model.sizes))
        for model in models
        for variant in variants or (VARIANTS if len(models) == 1 else (model.variant,))
    ]
    named = {variant: [_named(entry) for entry in entries if entry.count.variant == variant] for variant in VARIANTS}
    return Comparison(
        tuple(models), tuple(entries), tuple(latent_as_groups(*one) for one in named["mla"]), claims(named), compared()
    )


def _named(entry: VariantCount) -> tuple[str, Sizes]:
    return entry.model.name, entry.model.sizes
